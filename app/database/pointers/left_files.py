"""Files that a pointer's move leaves behind, queued for deletion in its transaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, insert

from app.database.pointers.pointer import Pointer
from app.database.rows import file_deletions as rows
from app.engine.model.ids import Location


@dataclass(frozen=True, slots=True)
class QueuedExpiry:
    """Files that a commit puts out of reach."""

    expired: str
    """What the commit takes out of the table, as JSON."""
    not_before_ms: int | None
    """When deletion may begin; None if there is nothing to delete and the entry is only a record."""


def insert_deletion(connection: Connection, dropped: Pointer, now_ms: int) -> None:
    """Queue a dropped table's files for deletion."""
    _insert(
        connection,
        dropped,
        now_ms,
        kind="purge",
        metadata_location=dropped.metadata_location,
        state="queued",
        not_before_ms=now_ms,
    )


def insert_expiry(
    connection: Connection, expiry: QueuedExpiry, seen: Pointer, location: Location, now_ms: int
) -> None:
    """Queue files that go out of reach when the pointer moves to a location."""
    has_work = expiry.not_before_ms is not None
    _insert(
        connection,
        seen,
        now_ms,
        kind="expire",
        metadata_location=location,
        state="queued" if has_work else "done",
        not_before_ms=expiry.not_before_ms if has_work else now_ms,
        finished_ms=None if has_work else now_ms,
        pointer_id=seen.id,
        expired=expiry.expired,
    )


def _insert(connection: Connection, pointer: Pointer, now_ms: int, **values: Any) -> None:
    connection.execute(
        insert(rows).values(
            warehouse_id=pointer.warehouse_id,
            uuid=pointer.uuid,
            identifier=str(pointer.identifier),
            attempts=0,
            leased_until_ms=0,
            created_ms=now_ms,
            **values,
        )
    )
