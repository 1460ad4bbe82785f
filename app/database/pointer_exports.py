"""Whose turn it is to export pointers, and what the history adds to them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, func, literal_column, or_, select, update

from app.database.connections.clock import database_now_ms, read_now_ms
from app.database.connections.database import Database
from app.database.pointers.history import UNREGISTERED
from app.database.schema.rows import pointer_exports as rows
from app.database.schema.rows import pointer_history as history
from app.database.statements.inserts import OnEachDatabase
from app.engine.model.ids import Location, TableUuid

LEASE_MS = 10 * 60_000
"""How long a server that has taken a turn is left alone with it."""
_IDS_AT_ONCE = 500
EVENTS_AT_ONCE = 10_000
"""How many events of one pointer are read in one statement."""
_FORWARD = (
    "created",
    "registered",
    "committed",
    "restored",
    "rebuilt",
    "renamed",
    "dropped",
    "undropped",
)
"""Events after which a pointer is where it was, or at a file that was built on the one before."""


def _rows_of(query: Select[Any], connection: Connection) -> list[Any]:
    return list(connection.execute(query).all())


def _is_due(interval_ms: int) -> ColumnElement[bool]:
    now = database_now_ms()
    # A turn that lies further ahead than an interval was set when the interval was longer.
    return or_(rows.c.due_ms <= now, rows.c.due_ms > now + max(interval_ms, LEASE_MS))


_INSERT = OnEachDatabase(rows, lambda insert: insert.on_conflict_do_nothing())


class PointerExports:
    """The turns of warehouses; each turn is taken by one server."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def waiting(self, interval_ms: int) -> frozenset[int]:
        """Return the ids of the warehouses whose turn is not due yet."""
        query = select(rows.c.warehouse_id).where(~_is_due(interval_ms))
        return self._database.read(lambda connection: frozenset(connection.scalars(query)))

    def take_turn(self, warehouse_id: int, interval_ms: int) -> bool:
        """Take a warehouse's turn if it is due; the first one comes after one interval."""
        of_warehouse, is_due = rows.c.warehouse_id == warehouse_id, _is_due(interval_ms)
        query = select(is_due).where(of_warehouse)
        due = self._database.read(lambda connection: connection.scalars(query).one_or_none())
        if due is None:
            values = {"warehouse_id": warehouse_id, "due_ms": self.now_ms() + interval_ms}
            insert = _INSERT[self._database.dialect_name]
            self._database.write(lambda connection: connection.execute(insert, values))
        if not due:
            return False
        take = update(rows).where(of_warehouse, is_due).values(due_ms=database_now_ms() + LEASE_MS)
        return self._database.write(lambda connection: connection.execute(take).rowcount == 1)

    def end_turn(self, warehouse_id: int, interval_ms: int) -> None:
        """Note that the turn is done; the next one comes after the interval."""
        statement = (
            update(rows)
            .where(rows.c.warehouse_id == warehouse_id)
            .values(due_ms=database_now_ms() + interval_ms)
        )
        self._database.write(lambda connection: connection.execute(statement))

    def now_ms(self) -> int:
        """Return the time of the database."""
        return read_now_ms(self._database)

    def last_sequence(self) -> int:
        """Return the sequence of the newest event of any pointer; 0 if there is none."""
        query = select(func.max(history.c.sequence))
        return self._database.read(lambda connection: connection.scalars(query).one()) or 0

    def places_left(self, pointer_ids: Collection[int]) -> dict[int, frozenset[Location]]:
        """Return what pointers had named when they were last set back or replaced, by id.

        A pointer that has only ever advanced has none: the one that it is at was built on all others. One that came by
        a registration may have been set back by that: then it has what other pointers of its table have named.
        """
        left: defaultdict[int, set[Location]] = defaultdict(set)
        ids = sorted(pointer_ids)
        for start in range(0, len(ids), _IDS_AT_ONCE):
            replaced = (
                select(history.c.pointer_id, func.max(history.c.sequence))
                .where(
                    history.c.pointer_id.in_(ids[start : start + _IDS_AT_ONCE]),
                    # There is an index of these, without which all events would have to be read.
                    history.c.event != literal_column("'committed'"),
                    history.c.event.not_in(_FORWARD),
                )
                .group_by(history.c.pointer_id)
            )
            for pointer_id, last in self._database.read(partial(_rows_of, replaced)):
                left[pointer_id].update(self._named_until(pointer_id, last))
            for pointer_id, other in self._others_of_registered(ids[start : start + _IDS_AT_ONCE]):
                left[pointer_id].update(self._named_until(other, None))
        return {pointer_id: frozenset(places) for pointer_id, places in left.items()}

    def _others_of_registered(self, pointer_ids: Collection[int]) -> Iterator[tuple[int, int]]:
        """Yield pairs of ids: a registered pointer, and another one that has or had its table.

        Where the one before ended at the file that was registered, nothing was left.
        """
        own, other = history.alias("own"), history.alias("other")
        commit: ColumnElement[str] = literal_column("'committed'")  # There is an index of all others.
        before = (
            select(
                own.c.pointer_id,
                own.c.uuid,
                other.c.pointer_id,
                and_(other.c.location.is_(None), other.c.previous_location == own.c.location),
            )
            .where(
                own.c.pointer_id.in_(pointer_ids),
                own.c.event != commit,
                own.c.event == literal_column("'registered'"),
                own.c.uuid != "",
                other.c.uuid == own.c.uuid,
                other.c.sequence < own.c.sequence,
                other.c.event != commit,
            )
            .order_by(other.c.sequence)
        )
        # What the last event of the other one says counts.
        last = {
            (id_, uuid, other_id): ends
            for id_, uuid, other_id, ends in self._database.read(partial(_rows_of, before))
        }
        set_back = {id_: uuid for (id_, uuid, _), ends in last.items() if not ends}
        if set_back:
            of_uuids = select(history.c.uuid, history.c.pointer_id).where(
                history.c.uuid.in_(set(set_back.values())), history.c.event != commit
            )
            others = self._database.read(partial(_rows_of, of_uuids.distinct()))
            yield from (
                (id_, other_id)
                for id_, of in set_back.items()
                for uuid, other_id in others
                if uuid == of and other_id != id_
            )

    def _named_until(self, pointer_id: int, last: int | None) -> Iterator[Location]:
        """Yield all that a pointer has named, up to an event if one is given."""
        after = 0
        while True:
            page = (
                select(history.c.sequence, history.c.location)
                .where(
                    history.c.pointer_id == pointer_id,
                    history.c.sequence > after,
                    *(() if last is None else (history.c.sequence <= last,)),
                )
                .order_by(history.c.sequence)
                .limit(EVENTS_AT_ONCE)
            )
            found = self._database.read(partial(_rows_of, page))
            yield from (Location(location) for _, location in found if location is not None)
            if len(found) < EVENTS_AT_ONCE:
                return
            after = found[-1].sequence

    def drop_times(self, warehouse_id: int) -> dict[TableUuid, int]:
        """Return when each uuid last left a warehouse, as far as the history goes back.

        In epoch milliseconds. Of what has come back since as well.
        """
        query = (
            select(history.c.uuid, func.max(history.c.at_ms))
            .where(history.c.warehouse_id == warehouse_id, history.c.location.is_(None))
            .group_by(history.c.uuid)
        )
        return {TableUuid(uuid): at_ms for uuid, at_ms in self._database.read(partial(_rows_of, query))}

    def unregistered_uuids(self, warehouse_id: int) -> list[TableUuid]:
        """Return the uuids of what was unregistered, as far as the history goes back."""
        query = select(history.c.uuid).where(
            history.c.warehouse_id == warehouse_id,
            history.c.location.is_(None),  # as of all last events: there is an index of them
            history.c.event == UNREGISTERED,
            history.c.uuid != "",
        )
        found = self._database.read(lambda connection: connection.scalars(query.distinct()).all())
        return sorted(map(TableUuid, found))
