"""Whose metadata folder is searched next, and which of its files are known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, case, func, or_, select

from app.database.connections.clock import database_now_ms, read_now_ms
from app.database.connections.database import Database
from app.database.schema.rows import metadata_sweeps as rows
from app.database.schema.rows import pointer_history, pointers
from app.database.statements.inserts import OnEachDatabase
from app.engine.model.ids import Location, TableUuid

INTERVAL_MS = 24 * 3_600_000
"""How long each table or view is left alone after a search."""
PAGE = 10_000
"""So many events are read at once."""
STRETCH = 10_000
"""So many pointers are looked through for one that is due, and the next ones at the next turn."""

_TAKE = OnEachDatabase(
    rows,
    lambda insert: insert.on_conflict_do_update(
        index_elements=[rows.c.pointer_id],
        set_={"swept_ms": database_now_ms()},
        where=or_(rows.c.swept_ms <= database_now_ms() - INTERVAL_MS, rows.c.swept_ms > database_now_ms()),
    ).returning(rows.c.pointer_id),
)


@dataclass(frozen=True, slots=True)
class KnownFiles:
    """The metadata files of a table, as far as the history of its pointers goes back."""

    since_ms: int
    """When the oldest event that is still known happened; what is older is not known."""
    is_whole: bool
    """Whether that event is the making of the table: no file from before was ever its own."""
    moved_ms: int
    """When the commit began that moved the pointer last."""
    locations: frozenset[Location]
    dropped_ms: int | None = None
    """When the pointer was dropped, if it is gone."""
    began_at: Location | None = None
    """Where the pointer was made, or came back; None if the oldest event that is still known is a later one."""


class MetadataSweeps:
    """The turns of tables and views; each turn is taken by one server."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._after = 0
        """The last pointer that was looked at; 0 before the first one."""

    def now_ms(self) -> int:
        """Return the time of the database."""
        return read_now_ms(self._database)

    def take(self, age_ms: int) -> int | None:
        """Take the turn of a table that has changed since its last one.

        None if none of the next few is due: all are looked at in the end, one stretch after the other.

        Args:
            age_ms: how old files must be to be found: what was too young last time is looked for again.
        """
        found = self._find_due(age_ms)
        if found is None and not self._after:
            found = self._find_due(age_ms)
        if found is None:
            return None
        statement = _TAKE[self._database.dialect_name]
        values = {"pointer_id": found, "swept_ms": self.now_ms()}
        return self._database.write(lambda connection: connection.scalars(statement, values).one_or_none())

    def _find_due(self, age_ms: int) -> int | None:
        """Look through the next stretch; after the last one comes the first."""
        stretch = select(pointers.c.id).where(pointers.c.id > self._after).order_by(pointers.c.id)
        ids = stretch.limit(STRETCH).subquery()
        ends = select(func.max(ids.c.id), func.count())
        last, number = self._database.read(lambda connection: connection.execute(ends).one())
        due = (
            select(pointers.c.id)
            .outerjoin(rows, rows.c.pointer_id == pointers.c.id)
            .where(
                pointers.c.id > self._after,
                pointers.c.id <= (last or 0),
                pointers.c.created_ms <= database_now_ms() - age_ms,
                or_(
                    rows.c.swept_ms.is_(None),
                    rows.c.swept_ms > database_now_ms(),  # its clock was set back since
                    (rows.c.swept_ms <= database_now_ms() - INTERVAL_MS)
                    & (pointers.c.updated_ms > rows.c.swept_ms - 2 * (age_ms + INTERVAL_MS)),
                ),
            )
            .order_by(pointers.c.id)
            .limit(1)
        )
        found = self._database.read(lambda connection: connection.scalars(due).one_or_none())
        self._after = found or (last if number == STRETCH else 0)
        return found

    def known_files(self, pointer_id: int, uuid: TableUuid) -> KnownFiles | None:
        """Return the files that the pointers of a table have named; None if nothing is known.

        Under another name the table may have been at other files: its past is shown from them.
        """
        events = pointer_history.c
        of_pointer = events.pointer_id == pointer_id
        moved_at = case((func.coalesce(events.previous_location, "") != events.location, events.at_ms))
        made_at = case((events.event == "created", events.at_ms))
        dropped_at = case((events.location.is_(None), events.at_ms))
        there_at = case((events.location.is_not(None), events.at_ms))
        times = select(
            func.min(events.at_ms),
            func.min(made_at),
            func.max(moved_at),
            func.max(dropped_at),
            func.max(there_at),
        ).where(of_pointer)
        locations, first_files = set[Location](), dict[int, Location]()
        for row in self._events(of_pointer, order=events.sequence):
            locations.update(each for each in (row.location, row.previous_location) if each is not None)
            if row.previous_location is None:
                first_files.setdefault(row.at_ms, row.location)
        # Mostly there are no such events. The sum keeps the database from reading all events of all tables in order.
        others = self._events(events.uuid == uuid, ~of_pointer, order=events.sequence + 0) if uuid else ()
        for row in others:
            locations.update(each for each in (row.location, row.previous_location) if each is not None)
        # After the events: what was deleted of them meanwhile is not known to be older than these times.
        since_ms, made_ms, moved_ms, dropped_ms, there_ms = self._database.read(
            lambda connection: connection.execute(times).one()
        )
        if since_ms is None:
            return None
        is_gone = dropped_ms is not None and dropped_ms >= (there_ms or 0)
        return KnownFiles(
            since_ms,
            made_ms == since_ms,
            moved_ms or 0,
            frozenset(locations),
            dropped_ms if is_gone else None,
            first_files.get(since_ms),
        )

    def _events(self, *conditions: ColumnElement[bool], order: ColumnElement[int]) -> Iterator[Row[Any]]:
        """Yield events page by page: a table may have millions."""
        events, after = pointer_history.c, 0
        named = select(events.sequence, events.location, events.previous_location, events.at_ms)
        while page := self._read(named.where(*conditions, order > after).order_by(order).limit(PAGE)):
            yield from page
            after = page[-1].sequence

    def _read(self, query: Select[Any]) -> Sequence[Row[Any]]:
        return self._database.read(lambda connection: connection.execute(query).all())
