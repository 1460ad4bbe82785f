"""The history of pointers: one row for each event, written in the transaction of the event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, insert, literal, select

from app.database.namespace_keys import namespace_of
from app.database.pointer_kinds import PointerKind
from app.database.rows import namespaces, pointers
from app.database.rows import pointer_history as rows
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location, TableUuid


@dataclass(frozen=True, slots=True)
class Author:
    """Who makes a change, in which request, and when."""

    principal: str
    request_id: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class PointerEvent:
    """One thing that happened to a pointer; sequences of one pointer rise in the order of its events."""

    sequence: int
    pointer_id: int
    warehouse_id: int
    identifier: TableIdentifier
    kind: PointerKind
    event: str
    previous_location: Location | None
    location: Location | None
    uuid: TableUuid
    at_ms: int
    author: str
    request_id: str


def insert_event(
    connection: Connection,
    pointer_id: int,
    event: str,
    author: Author,
    *,
    previous_location: str | None,
    is_gone: bool = False,
) -> None:
    """Record what this transaction does, or is about to do, to a pointer that it has locked.

    The name is copied from the row and not from the request: a rename may have come between.
    """
    values = {
        "pointer_id": pointers.c.id,
        "warehouse_id": namespaces.c.warehouse_id,
        "namespace_key": namespaces.c.key,
        "name": pointers.c.name,
        "kind": pointers.c.kind,
        "event": literal(event),
        "previous_location": literal(previous_location, rows.c.previous_location.type),
        "location": literal(None, rows.c.location.type) if is_gone else pointers.c.metadata_location,
        "uuid": pointers.c.uuid,
        "at_ms": literal(author.at_ms, rows.c.at_ms.type),
        "author": literal(author.principal),
        "request_id": literal(author.request_id),
    }
    source = (
        select(*values.values())
        .select_from(pointers.join(namespaces, namespaces.c.id == pointers.c.namespace_id))
        .where(pointers.c.id == pointer_id)
    )
    connection.execute(insert(rows).from_select(list(values), source))


def select_events(
    connection: Connection, pointer_id: int, before: int | None, limit: int | None
) -> list[PointerEvent]:
    """Return a pointer's events, newest first, of which the sequence is less than `before`."""
    query = select(rows).where(rows.c.pointer_id == pointer_id)
    if before is not None:
        query = query.where(rows.c.sequence < before)
    found: Sequence[Row[Any]] = connection.execute(query.order_by(rows.c.sequence.desc()).limit(limit)).all()
    return [_event(row) for row in found]


def _event(row: Row[Any]) -> PointerEvent:
    return PointerEvent(
        sequence=row.sequence,
        pointer_id=row.pointer_id,
        warehouse_id=row.warehouse_id,
        identifier=TableIdentifier(namespace_of(row.namespace_key), row.name),
        kind=PointerKind(row.kind),
        event=row.event,
        previous_location=row.previous_location,
        location=row.location,
        uuid=row.uuid,
        at_ms=row.at_ms,
        author=row.author,
        request_id=row.request_id,
    )
