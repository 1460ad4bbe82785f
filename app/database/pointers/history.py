"""The history of pointers: one row per event, written in the transaction of the event.

All events of one transaction have the same time, and the events of one pointer have times that never fall, however
the clocks of several servers differ: so the events until some time are whole transactions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import (
    CTE,
    BigInteger,
    ColumnElement,
    Connection,
    FromClause,
    Insert,
    Row,
    Text,
    Update,
    bindparam,
    case,
    func,
    insert,
    null,
    select,
)

from app.database.connections.driver_calls import run_on_sqlite
from app.database.namespace_keys import namespace_of
from app.database.outcomes.receipt import CommitReceipt, LandedChange, Outcome, ReceiptHead, landed
from app.database.pointers.pointer import PointerKind
from app.database.schema.rows import namespaces, pointers
from app.database.schema.rows import pointer_history as rows
from app.database.statements.driver_sql import sqlite_sql
from app.database.statements.pages import ALL_ROWS
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location, TableUuid

UNREGISTERED: Final = "unregistered"
"""The event of what left the catalog with all its files."""


@dataclass(frozen=True, slots=True)
class Author:
    """Who makes a change, in which request, and when."""

    principal: str
    request_id: str
    at_ms: int
    head: ReceiptHead | None = None
    """What its receipt begins with; None for what the server does unasked."""

    def receipts_of(self, change: LandedChange | None, *before: LandedChange) -> list[CommitReceipt]:
        """Return the receipt of a request that makes this change or none, if it is to have one.

        What had to be made before is named first.
        """
        if self.head is None:
            return []
        if change is None:
            return [CommitReceipt(self.head, Outcome.UNCHANGED, self.at_ms)]
        return [landed(self.head, self.at_ms, [*before, change])]


@dataclass(frozen=True, slots=True)
class PointerEvent:
    """One event of a pointer; sequences of one pointer rise in the order of its events."""

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
    job: str | None
    """The job of upkeep that did it, if one did."""


def _copied(row: FromClause) -> dict[str, ColumnElement[Any]]:
    """Return what an event takes from a pointer's row, and what it is given.

    The name is copied from the row and not from the request: a rename may have come between. So is the time: see
    `event_time`.
    """
    return {
        "pointer_id": row.c.id,
        "warehouse_id": namespaces.c.warehouse_id,
        "namespace_key": namespaces.c.key,
        "name": row.c.name,
        "kind": row.c.kind,
        "event": bindparam("event", type_=Text),
        "previous_location": bindparam("previous_location", type_=Text),
        "location": row.c.metadata_location,
        "uuid": row.c.uuid,
        "at_ms": row.c.updated_ms,
        "author": bindparam("author", type_=Text),
        "request_id": bindparam("request_id", type_=Text),
        "job": bindparam("job", type_=Text),
    }


def event_time(updated_ms: ColumnElement[int]) -> ColumnElement[int]:
    """Return the time of a pointer's next event: the author's, but never before its last one."""
    wanted = bindparam("event_at_ms", type_=BigInteger)
    return case((updated_ms > wanted, updated_ms), else_=wanted)


_COPIED = _copied(pointers)
_COPY = (
    select(*_COPIED.values())
    .select_from(pointers.join(namespaces, namespaces.c.id == pointers.c.namespace_id))
    .where(pointers.c.id == bindparam("of_pointer", type_=BigInteger))
)
_COPY_WITHOUT_LOCATION = _COPY.with_only_columns(
    *{**_COPIED, "location": null(), "at_ms": event_time(pointers.c.updated_ms)}.values()
)
_INSERT = insert(rows).from_select(list(_COPIED), _COPY)
_INSERT_ON_SQLITE = sqlite_sql(_INSERT)
_INSERT_LAST = insert(rows).from_select(list(_COPIED), _COPY_WITHOUT_LOCATION)
_SELECT = (
    select(rows)
    .where(
        rows.c.pointer_id == bindparam("of_pointer", type_=BigInteger),
        rows.c.sequence < bindparam("before", type_=BigInteger),
    )
    .order_by(rows.c.sequence.desc())
    .limit(bindparam("at_most", type_=BigInteger))
)


def with_event(change: Update, receipt: CTE | None = None) -> Insert:
    """Return a change of a pointer's row and its event as one statement, for Postgres.

    With a receipt, that is written too, and each row that comes back says how many receipts were.
    """
    changed = change.returning(pointers).cte("changed")
    columns = _copied(changed)
    copy = select(*columns.values()).join_from(changed, namespaces, namespaces.c.id == changed.c.namespace_id)
    statement = insert(rows).from_select(list(columns), copy)
    if receipt is not None:
        written = select(func.count()).select_from(receipt).scalar_subquery()
        return statement.returning(written.label("receipts"))
    return statement


def insert_event(
    connection: Connection, pointer_id: int, event: str, author: Author, previous_location: str | None
) -> None:
    """Record what this transaction has done to a pointer, which it has locked."""
    values = event_values(pointer_id, event, author, previous_location)
    if connection.dialect.name == "sqlite":
        run_on_sqlite(connection, _INSERT_ON_SQLITE, values)
    else:
        connection.execute(_INSERT, values)


def insert_events(
    connection: Connection,
    pointer_id: int,
    events: Sequence[tuple[str, Author]],
    previous_location: str | None,
) -> None:
    """Record several of them, in this order: what each is called, and who did it."""
    values = [event_values(pointer_id, event, author, previous_location) for event, author in events]
    if connection.dialect.name == "sqlite":
        for each in values:
            run_on_sqlite(connection, _INSERT_ON_SQLITE, each)
    elif values:
        connection.execute(_INSERT, values)  # all at once: each alone would be a round trip


def insert_last_event(
    connection: Connection, pointer_id: int, event: str, author: Author, previous_location: str
) -> None:
    """Record that this transaction will delete a pointer, which it has locked."""
    connection.execute(_INSERT_LAST, event_values(pointer_id, event, author, previous_location))


def select_events(
    connection: Connection, pointer_id: int, before: int | None, limit: int | None
) -> list[PointerEvent]:
    """Return a pointer's events, newest first, whose sequence is less than `before`."""
    parameters = {
        "of_pointer": pointer_id,
        "before": ALL_ROWS if before is None else before,
        "at_most": ALL_ROWS if limit is None else limit,
    }
    return [_event(row) for row in connection.execute(_SELECT, parameters)]


def event_values(
    pointer_id: int, event: str, author: Author, previous_location: str | None
) -> dict[str, Any]:
    """Return the values of an event for its statement."""
    return {
        "of_pointer": pointer_id,
        "event": event,
        "previous_location": previous_location,
        "event_at_ms": author.at_ms,
        "author": author.principal,
        "request_id": author.request_id,
        "job": None if author.head is None else author.head.job,
    }


def _event(row: Row[*tuple[Any, ...]]) -> PointerEvent:
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
        job=row.job,
    )
