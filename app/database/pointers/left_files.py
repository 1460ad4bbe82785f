"""Files that pointers leave behind, queued for deletion in the same transaction.

A deletion and a registration of the same files exclude each other: each looks for the other while it holds a lock
(see `begin_deletion` and `check_registration`), so one of them always finds the other.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    bindparam,
    exists,
    false,
    func,
    insert,
    or_,
    select,
    union_all,
    update,
)

from app.database.connections.clock import database_now_ms
from app.database.pointers.pointer import Pointer
from app.database.pointers.sharing import may_share_files
from app.database.schema.rows import dropped, pointers, table_places
from app.database.schema.rows import file_deletions as rows
from app.database.statements.driver_sql import rows_of
from app.engine.model.ids import Location, TableUuid
from app.errors import FilesBeingDeleted

_LOCK = 7_406_310_221_904_513
"""Any number that no other advisory lock of the database has."""
_LONGEST_STEP_MS = 86_400_000
"""By how much the database's clock may be set back while a file is registered or appended."""


# What is marked has a report.
_IS_SWEEP = (rows.c.kind == "orphans") & rows.c.expired.is_(None)


@dataclass(frozen=True, slots=True)
class QueuedExpiry:
    """Files that a commit puts out of reach."""

    expired: str
    """What the commit takes out of the table, as JSON."""
    grace_ms: int | None
    """How long the files stay; None if there is nothing to delete and the entry is only a record."""


def insert_deletion(connection: Connection, dropped: Pointer, now_ms: int) -> None:
    """Queue a dropped table's files for deletion."""
    _insert(
        connection,
        dropped,
        now_ms,
        kind="purge",
        metadata_location=dropped.metadata_location,
        state="queued",
        not_before_ms=database_now_ms(),
    )


def insert_expiry(
    connection: Connection, expiry: QueuedExpiry, seen: Pointer, location: Location, now_ms: int
) -> None:
    """Queue files that go out of reach when the pointer moves to a location."""
    has_work = expiry.grace_ms is not None
    _insert(
        connection,
        seen,
        now_ms,
        kind="expire",
        metadata_location=location,
        state="queued" if has_work else "done",
        not_before_ms=database_now_ms() + (expiry.grace_ms or 0),
        finished_ms=None if has_work else database_now_ms(),
        expired=expiry.expired,
    )


def insert_orphans(connection: Connection, seen: Pointer, report: str, now_ms: int) -> int | None:
    """Add an entry for orphans and return its id; None if others of the table are queued.

    It is one whose files stay, and stays that if `queue_orphans` never comes.

    Args:
        report: what was found, as JSON.
    """
    if _has_queued_orphans(connection, seen.uuid):
        return None
    return _insert(
        connection,
        seen,
        now_ms,
        kind="orphans",
        metadata_location=seen.metadata_location,
        state="kept",
        not_before_ms=database_now_ms(),
        finished_ms=database_now_ms(),
        last_error="Not all of them were written down, so none is deleted; mark them again",
        expired=report,
    )


def queue_orphans(connection: Connection, deletion_id: int, uuid: TableUuid, grace_ms: int) -> bool:
    """Queue orphans that were added; False if others of the table are queued, or they are gone.

    Args:
        grace_ms: how long the files stay.
    """
    exclude(connection, registrations=True)
    if _has_queued_orphans(connection, uuid):
        return False
    queued = update(rows).where(rows.c.id == deletion_id, rows.c.state == "kept")
    values = {
        "state": "queued",
        "not_before_ms": database_now_ms() + grace_ms,
        "finished_ms": None,
        "last_error": None,
    }
    return connection.execute(queued.values(values)).rowcount == 1


def insert_sweep(connection: Connection, seen: Pointer, now_ms: int, lease_ms: int) -> int | None:
    """Add an entry, leased already, for what servers left of a table; returns its id.

    None if the table was registered anew or is gone, or its files may be another's: then the transaction must be
    undone.
    """
    number = _insert(
        connection,
        seen,
        now_ms,
        kind="orphans",
        metadata_location=seen.metadata_location,
        state="queued",
        not_before_ms=database_now_ms(),
        leased_until_ms=database_now_ms() + lease_ms,
        leases=1,
    )
    begins = begin_deletion(connection, rows.c.id == number, seen.id, seen.uuid, seen.registration)
    return number if begins else None


def _has_queued_orphans(connection: Connection, uuid: TableUuid) -> bool:
    is_queued = rows.c.uuid == uuid, rows.c.kind == "orphans", ~_IS_SWEEP, rows.c.state == "queued"
    return connection.scalars(select(rows.c.id).where(*is_queued).limit(1)).first() is not None


def comes_back() -> ColumnElement[bool]:
    """Return the condition that a purge only looks again, for what was too young."""
    # Negated, a comparison with null would not hold.
    return (rows.c.kind == "purge") & func.coalesce(rows.c.expired, "").like('%"waits": true%')


def begin_deletion(
    connection: Connection,
    is_entry: ColumnElement[bool],
    pointer_id: int | None,
    uuid: TableUuid,
    registration: int | None,
) -> bool:
    """Note that files are deleted from now on; False if what was planned is no longer right.

    Args:
        is_entry: finds the entry of the queue, if it still is the worker's.
        pointer_id: the table's pointer, which may be gone.
        registration: what the table's pointer had when the deletion was planned; None if there was no pointer.
    """
    exclude(connection, registrations=True)
    of_table = union_all(
        select(pointers.c.registration).where(pointers.c.id == pointer_id, pointers.c.uuid == uuid),
        select(dropped.c.registration).where(dropped.c.pointer_id == pointer_id, dropped.c.uuid == uuid),
    )
    if connection.scalars(of_table).one_or_none() != registration:
        return False
    if connection.scalars(select(may_share_files(uuid, pointer_id))).one():
        return False
    begun = func.coalesce(rows.c.begun_ms, database_now_ms())
    statement = update(rows).where(is_entry).values(begun_ms=begun)
    return connection.execute(statement).rowcount == 1


def check_registration(
    connection: Connection,
    uuid: TableUuid,
    location: Location,
    places: Collection[str],
    read_since_ms: int | None,
) -> None:
    """Check that no deletion of these files has begun, and let none begin meanwhile.

    Args:
        read_since_ms: when reading the metadata began, by the database's clock. A deletion that has ended since may
            have come between. Those before do not count: the files are there again.

    Raises:
        FilesBeingDeleted: one has.
    """
    exclude(connection, registrations=False)
    same_places = exists().where(
        table_places.c.pointer_id == rows.c.pointer_id, table_places.c.place.in_(places)
    )
    query = (
        select(rows.c.kind, rows.c.identifier)
        .where(
            rows.c.begun_ms.is_not(None),
            or_(
                rows.c.state == "queued",
                false() if read_since_ms is None else _has_ended_since(read_since_ms),
            ),
            or_(rows.c.uuid == uuid, rows.c.metadata_location == location, same_places),
        )
        .limit(1)
    )
    found = connection.execute(query).one_or_none()
    if found is not None:
        raise FilesBeingDeleted(location, found.kind, found.identifier)


def _has_ended_since(since_ms: int | ColumnElement[int]) -> ColumnElement[bool]:
    """Return the condition that a deletion has ended since a time, by the database's clock.

    What has ended far ahead of now did so before that clock was set back. By a small step it may be set in between.
    """
    return rows.c.finished_ms.between(since_ms, database_now_ms() + _LONGEST_STEP_MS)


@dataclass(frozen=True, slots=True)
class BegunDeletion:
    """A deletion of files of a table, which is at work or has been."""

    id: int
    kind: str
    identifier: str
    created_ms: int
    is_sweep: bool
    """Whether it has only metadata files, manifests, lists and statistics that servers wrote."""
    is_at_work: bool
    """Whether it has not ended: what is there after it has ended stays."""


@dataclass(frozen=True, slots=True)
class TakenIn:
    """Files of any age that a commit takes into its table.

    None may be among those that go just then.
    """

    looked_ms: int
    """When it was seen that they are there, by the database's clock."""
    known: frozenset[int]
    """Deletions that had begun by then and have none of these files."""


_IS_AT_WORK = rows.c.state == "queued"
_BEGUN = select(rows.c.id, rows.c.kind, rows.c.identifier, rows.c.created_ms, _IS_SWEEP, _IS_AT_WORK).where(
    rows.c.uuid == bindparam("of_uuid"),
    rows.c.pointer_id == bindparam("of_pointer", type_=BigInteger),
    rows.c.begun_ms.is_not(None),
    or_(_IS_AT_WORK, _has_ended_since(bindparam("since_ms", type_=BigInteger))),
)


def begun_deletions(connection: Connection, seen: Pointer, since_ms: int) -> list[BegunDeletion]:
    """Return the deletions of a table's files that are at work, or have ended since some time."""
    values = {"of_uuid": seen.uuid, "of_pointer": seen.id, "since_ms": since_ms}
    return [BegunDeletion(*row) for row in rows_of(connection, _BEGUN, values)]


def are_known(connection: Connection, seen: Pointer, taken: TakenIn) -> bool:
    """Say whether all deletions of a table's files are known, and let no other begin meanwhile.

    One that begins later looks at the table once more, and so sees what this transaction takes in.
    """
    exclude(connection, registrations=False)
    return all(each.id in taken.known for each in begun_deletions(connection, seen, taken.looked_ms))


def exclude(connection: Connection, *, registrations: bool) -> None:
    """Exclude registrations, or the begin of deletions, until the transaction ends.

    What commits take in from outside their tables' places counts as registered.
    """
    # SQLite has one writer at a time anyway.
    if connection.dialect.name == "postgresql":
        lock = func.pg_advisory_xact_lock if registrations else func.pg_advisory_xact_lock_shared
        connection.execute(select(lock(_LOCK)))


def _insert(
    connection: Connection,
    pointer: Pointer,
    now_ms: int,
    *,
    leased_until_ms: int | ColumnElement[int] = 0,
    **values: Any,
) -> int:
    statement = insert(rows).values(
        warehouse_id=pointer.warehouse_id,
        uuid=pointer.uuid,
        identifier=str(pointer.identifier),
        attempts=0,
        leased_until_ms=leased_until_ms,
        created_ms=now_ms,
        pointer_id=pointer.id,
        **values,
    )
    deletion_id: int = connection.scalars(statement.returning(rows.c.id)).one()
    return deletion_id
