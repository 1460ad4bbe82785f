"""Metadata files that are a table's state, now or once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import Connection, Executable, Row, Select, exists, func, or_, select, union

from app.database.connections.database import Database
from app.database.pointers.left_files import comes_back
from app.database.pointers.pointer import Pointer, PointerKind
from app.database.pointers.pointer_rows import POINTER_COLUMNS, pointer_of
from app.database.schema.rows import file_deletions, namespaces, pointer_history, pointers
from app.engine.model.ids import Location, TableUuid


@dataclass(frozen=True, slots=True)
class EarlierState:
    """A metadata file that a pointer named once; the file may be gone."""

    warehouse_id: int
    kind: PointerKind
    location: Location
    is_purged: bool = False
    """Whether a purge has deleted all that the table named, as far as it might."""


_PAGE = 1_000
STRETCH = 500_000
"""How many events one statement looks through."""
_POINTERS = select(*POINTER_COLUMNS).join_from(
    pointers, namespaces, namespaces.c.id == pointers.c.namespace_id
)


class PointerStates:
    """Reads pointers and their history, over all warehouses."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def current(self, after: int = 0) -> Iterator[Pointer]:
        """Yield every pointer of every warehouse as it is now, in the order of their ids.

        Args:
            after: only those of which there are events since this one.
        """
        query = _POINTERS.order_by(pointers.c.id).limit(_PAGE)
        if after:
            events = pointer_history.c
            query = query.where(pointers.c.id.in_(select(events.pointer_id).where(events.sequence > after)))
        last_id = 0
        while page := self._read(query.where(pointers.c.id > last_id)):
            yield from page
            last_id = page[-1].id

    def find(self, pointer_id: int) -> Pointer | None:
        """Return a pointer as it is now; None if it was dropped."""
        return next(iter(self._read(_POINTERS.where(pointers.c.id == pointer_id))), None)

    def _read(self, query: Select[Any]) -> list[Pointer]:
        return [
            pointer_of(row) for row in self._database.read(lambda connection: connection.execute(query).all())
        ]

    def of_table(self, uuid: TableUuid, pointer_id: int) -> list[EarlierState]:
        """Return every state in the history of a table, and of its pointer."""
        rows = pointer_history
        of_table = (rows.c.uuid == uuid) | (rows.c.pointer_id == pointer_id)
        return self._states(
            union(
                *(
                    select(rows.c.warehouse_id, rows.c.kind, column.label("location")).where(
                        of_table, column.is_not(None)
                    )
                    for column in (rows.c.location, rows.c.previous_location)
                )
            )
        )

    def last_event(self) -> int:
        """Return the sequence of the newest event that can be seen."""
        query = select(func.coalesce(func.max(pointer_history.c.sequence), 0))
        return self._database.read(lambda connection: int(connection.scalars(query).one()))

    def locations_at(self, sequences: Sequence[int]) -> dict[int, str | None]:
        """Return where pointers came by some events, as far as these are still there."""
        events, found = pointer_history.c, dict[int, str | None]()
        for start in range(0, len(sequences), _PAGE):
            some = events.sequence.in_(sequences[start : start + _PAGE])
            rows = self._database.read(
                partial(_rows_of, select(events.sequence, events.location).where(some))
            )
            found |= {row.sequence: row.location for row in rows}
        return found

    def events_at(self, locations: Sequence[Location], since_ms: int) -> dict[Location, int]:
        """Return the sequences of the events since a time by which pointers came to some files."""
        events, found = pointer_history.c, dict[Location, int]()
        for start in range(0, len(locations), _PAGE):
            some = events.location.in_(locations[start : start + _PAGE])
            query = select(events.location, events.sequence).where(events.at_ms >= since_ms, some)
            rows = self._database.read(partial(_rows_of, query))
            found |= {Location(row.location): row.sequence for row in rows}
        return found

    def left(self, after: int = 0) -> list[EarlierState]:
        """Return the last state of each table and view that no pointer has any more.

        Args:
            after: only of those of which there are events since this one.
        """
        rows = pointer_history
        location = func.coalesce(rows.c.location, rows.c.previous_location)
        purges = file_deletions.c
        is_purged = exists().where(
            purges.pointer_id == rows.c.pointer_id,
            purges.metadata_location == location,
            purges.kind == "purge",
            or_(purges.state == "done", comes_back()),
        )
        states, last = list[EarlierState](), self._last_events(after)
        for start in range(0, len(last), _PAGE):
            query = select(rows.c.warehouse_id, rows.c.kind, location, is_purged).where(
                rows.c.sequence.in_(last[start : start + _PAGE])
            )
            states += (
                EarlierState(warehouse_id, PointerKind(kind), Location(where), bool(purged))
                for warehouse_id, kind, where, purged in self._database.read(partial(_rows_of, query))
            )
        return states

    def _last_events(self, after: int) -> list[int]:
        """Return the sequences of the last events of all that no pointer has any more.

        Of the whole history they are looked for stretch by stretch. What a pointer lets go meanwhile was current when
        that began.
        """
        rows, last = pointer_history, dict[tuple[int, str], int]()
        # Tables without a uuid are the same only under one pointer.
        is_same = (pointers.c.uuid == rows.c.uuid) & (
            (rows.c.uuid != "") | (pointers.c.id == rows.c.pointer_id)
        )
        # SQLite finds one of the two without reading all between them, but not both.
        bounds = select(
            select(func.min(rows.c.sequence)).where(rows.c.sequence > after).scalar_subquery(),
            select(func.max(rows.c.sequence)).where(rows.c.sequence > after).scalar_subquery(),
        )
        oldest, newest = self._database.read(lambda connection: connection.execute(bounds).one())
        after = max(after, (oldest or 0) - 1)
        while True:
            end = after + STRETCH
            is_last_stretch = end >= (newest or 0)  # It has what comes meanwhile, too.
            query = (
                select(rows.c.pointer_id, rows.c.uuid, func.max(rows.c.sequence))
                .where(
                    rows.c.sequence > after,
                    *(() if is_last_stretch else (rows.c.sequence <= end,)),
                    ~exists().where(is_same),
                )
                .group_by(rows.c.pointer_id, rows.c.uuid)
            )
            for pointer_id, uuid, sequence in self._database.read(partial(_rows_of, query)):
                last[pointer_id, uuid] = sequence
            if is_last_stretch:
                return sorted(last.values())
            after = end

    def ended(self, uuid: TableUuid, besides: int = 0) -> list[EarlierState]:
        """Return the last state with a uuid under each pointer that has or had it.

        Args:
            besides: a pointer that is left out.
        """
        rows = pointer_history
        last = (
            select(func.max(rows.c.sequence))
            .where(rows.c.uuid == uuid, rows.c.pointer_id != besides)
            .group_by(rows.c.pointer_id)
        )
        location = func.coalesce(rows.c.location, rows.c.previous_location).label("location")
        return self._states(
            select(rows.c.warehouse_id, rows.c.kind, location).where(rows.c.sequence.in_(last))
        )

    def queued_expiries(self, uuid: TableUuid) -> list[str]:
        """Return what expiries took out of a table whose files wait in the queue, as JSON."""
        rows = file_deletions
        query = select(rows.c.expired).where(
            rows.c.uuid == uuid, rows.c.kind == "expire", rows.c.state == "queued"
        )
        return self._database.read(
            lambda connection: [found for found in connection.scalars(query) if found is not None]
        )

    def _states(self, query: Executable) -> list[EarlierState]:
        found = self._database.read(lambda connection: connection.execute(query).all())
        return [
            EarlierState(row.warehouse_id, PointerKind(row.kind), Location(row.location)) for row in found
        ]


def _rows_of(query: Executable, connection: Connection) -> Sequence[Row[*tuple[Any, ...]]]:
    return connection.execute(query).all()
