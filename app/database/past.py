"""Names, pointers and namespaces as they were at a time.

A time stands for all transactions with events until then, and for nothing else: see `app.database.pointers.history`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Row,
    Select,
    Table,
    and_,
    bindparam,
    or_,
    select,
    union,
)

from app.database.connections.database import Database
from app.database.namespace_keys import key_of, namespace_of
from app.database.pointers.history import PointerEvent, select_events
from app.database.pointers.pointer import Pointer, PointerKind
from app.database.schema.rows import namespace_versions, pointer_history, pointer_names
from app.database.statements.pages import ALL_ROWS, names_on_page, page_of, page_parameters
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.ids import Location, TableUuid
from app.errors import NoSuchNamespace

REGISTRATION = 2**62
"""In pointers of the past. What is kept of current files is not believed: a registered file may have been replaced."""
_BATCH = 500
_AT = bindparam("at_ms", type_=BigInteger)


def _was_there(rows: Table) -> ColumnElement[bool]:
    return and_(rows.c.from_ms <= _AT, or_(rows.c.until_ms.is_(None), rows.c.until_ms > _AT))


_IN_NAMESPACE = (
    pointer_names.c.warehouse_id == bindparam("in_warehouse", type_=BigInteger),
    pointer_names.c.namespace_key == bindparam("of_key"),
    _was_there(pointer_names),
)
_LAST_EVENT = (
    select(pointer_history)
    .where(pointer_history.c.pointer_id == bindparam("of_pointer", type_=BigInteger))
    .where(pointer_history.c.at_ms <= _AT)
    # Times of one pointer never fall, so this is the order of its events, too, and there is an index for it.
    .order_by(pointer_history.c.at_ms.desc(), pointer_history.c.sequence.desc())
    .limit(1)
)
_NAMED = select(pointer_names).where(
    *_IN_NAMESPACE,
    pointer_names.c.kind.in_([kind.value for kind in PointerKind]),
    pointer_names.c.name == bindparam("of_name"),
)
_NAMES = page_of(
    select(pointer_names.c.name).where(*_IN_NAMESPACE, pointer_names.c.kind == bindparam("of_kind")),
    pointer_names.c.name,
)
_BELOW = (
    namespace_versions.c.warehouse_id == bindparam("in_warehouse", type_=BigInteger),
    namespace_versions.c.parent_key == bindparam("of_parent"),
    _was_there(namespace_versions),
)
_PROPERTIES = select(namespace_versions.c.properties).where(
    *_BELOW, namespace_versions.c.name == bindparam("of_name")
)
_CHILDREN = page_of(select(namespace_versions.c.name).where(*_BELOW), namespace_versions.c.name)


@dataclass(frozen=True, slots=True)
class PastState:
    """Where a table or view was at a time."""

    pointer_id: int
    kind: PointerKind
    identifier: TableIdentifier
    uuid: TableUuid
    location: Location | None
    """None if its history does not reach back so far."""

    def pointer(self, warehouse_id: int, location: Location) -> Pointer:
        """Return the pointer that it was, at its location, for reading."""
        return Pointer(
            self.pointer_id, warehouse_id, self.kind, self.identifier, self.uuid, location, REGISTRATION
        )


class Past:
    """Reads what was at a time, over all warehouses."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, warehouse_id: int, identifier: TableIdentifier, at_ms: int) -> PastState | None:
        """Return what had this name at a time."""
        named = {
            "in_warehouse": warehouse_id,
            "of_key": key_of(identifier.namespace),
            "of_name": identifier.name,
            "at_ms": at_ms,
        }

        def find(connection: Connection) -> PastState | None:
            row = connection.execute(_NAMED, named).first()
            return None if row is None else _state(connection, row, at_ms)

        return self._database.read(find)

    def last_event(self, warehouse_id: int, identifier: TableIdentifier) -> PointerEvent | None:
        """Return the last event of what had this name last; None if nothing is known of it."""
        names = pointer_names.c
        query = (
            select(names.pointer_id)
            .where(
                names.warehouse_id == warehouse_id,
                names.namespace_key == key_of(identifier.namespace),
                names.kind.in_([kind.value for kind in PointerKind]),
                names.name == identifier.name,
            )
            .order_by(names.from_ms.desc(), names.id.desc())
            .limit(1)
        )

        def last_event(connection: Connection) -> PointerEvent | None:
            pointer_id = connection.scalars(query).one_or_none()
            events = [] if pointer_id is None else select_events(connection, pointer_id, None, 1)
            return next(iter(events), None)

        return self._database.read(last_event)

    def states(self, pointer_ids: Sequence[int], at_ms: int) -> dict[int, PastState]:
        """Return those of some pointers that had a name at a time, by their ids."""
        query = select(pointer_names).where(
            pointer_names.c.pointer_id.in_(pointer_ids), _was_there(pointer_names)
        )
        return self._database.read(
            lambda connection: {
                row.pointer_id: _state(connection, row, at_ms)
                for row in connection.execute(query, {"at_ms": at_ms}).all()
            }
        )

    def list_names(
        self,
        warehouse_id: int,
        namespace: Namespace,
        kind: PointerKind,
        at_ms: int,
        after: str | None = None,
        limit: int | None = None,
    ) -> tuple[str, ...]:
        """Return up to `limit` names of tables or views that follow the name `after`, in order.

        Raises:
            NoSuchNamespace: the namespace was not there.
        """
        parameters = {
            "in_warehouse": warehouse_id,
            "of_key": key_of(namespace),
            "of_kind": kind,
            "at_ms": at_ms,
            **page_parameters(after, limit),
        }

        def list_names(connection: Connection) -> tuple[str, ...]:
            names = names_on_page(connection, _NAMES, parameters)
            if not names and self._properties(connection, warehouse_id, namespace, at_ms) is None:
                raise NoSuchNamespace(namespace)
            return names

        return self._database.read(list_names)

    def find_namespace(self, warehouse_id: int, namespace: Namespace, at_ms: int) -> dict[str, str] | None:
        """Return a namespace's properties at a time; None if it was not there."""
        text = self._database.read(
            lambda connection: self._properties(connection, warehouse_id, namespace, at_ms)
        )
        return None if text is None else json.loads(text)

    def list_children(
        self,
        warehouse_id: int,
        parent: Namespace | None,
        at_ms: int,
        after: str | None = None,
        limit: int | None = None,
    ) -> tuple[str, ...]:
        """Return the last levels of up to `limit` namespaces directly below `parent`, in order.

        Raises:
            NoSuchNamespace: the parent was not there.
        """
        parameters = {
            "in_warehouse": warehouse_id,
            "of_parent": "" if parent is None else key_of(parent),
            "at_ms": at_ms,
            **page_parameters(after, limit),
        }

        def list_children(connection: Connection) -> tuple[str, ...]:
            names = names_on_page(connection, _CHILDREN, parameters)
            is_there = parent is None or names or self._properties(connection, warehouse_id, parent, at_ms)
            if not is_there:
                raise NoSuchNamespace(parent)
            return names

        return self._database.read(list_children)

    def history(
        self, pointer_id: int, at_ms: int, before: int | None = None, limit: int | None = None
    ) -> list[PointerEvent]:
        """Return up to `limit` events until a time with a sequence below `before`, newest first."""
        rows = pointer_history
        # Times of one pointer never fall: the first later event has the smallest sequence. Asked for that, Postgres may
        # walk through the events of all tables.
        later = (
            select(rows.c.sequence)
            .where(rows.c.pointer_id == pointer_id, rows.c.at_ms > at_ms)
            .order_by(rows.c.at_ms, rows.c.sequence)
            .limit(1)
        )

        def history(connection: Connection) -> list[PointerEvent]:
            end = min(connection.scalars(later).one_or_none() or ALL_ROWS, before or ALL_ROWS)
            return select_events(connection, pointer_id, end, limit)

        return self._database.read(history)

    def replaced(self, pointer_id: int, after_ms: int, until_ms: int) -> list[Location]:
        """Return the metadata files that other ones replaced after one time and until another."""
        rows = pointer_history
        query = select(rows.c.previous_location).where(
            rows.c.pointer_id == pointer_id,
            rows.c.at_ms > after_ms,
            rows.c.at_ms <= until_ms,
            rows.c.previous_location != rows.c.location,
        )
        found = self._database.read(lambda connection: connection.scalars(query).all())
        return [Location(location) for location in found]

    def replaced_since(
        self, pointer_id: int, locations: Collection[Location], since_ms: int
    ) -> set[Location]:
        """Return those of some metadata files that other ones replaced after a time."""
        rows = pointer_history
        query = select(rows.c.previous_location).where(
            rows.c.pointer_id == pointer_id,
            rows.c.at_ms > since_ms,
            rows.c.previous_location.in_(bindparam("of_locations", expanding=True)),
            rows.c.previous_location != rows.c.location,
        )
        ordered = sorted(locations)
        batches = [ordered[start : start + _BATCH] for start in range(0, len(ordered), _BATCH)]
        return self._database.read(
            lambda connection: {
                Location(str(location))
                for batch in batches
                for location in connection.scalars(query, {"of_locations": batch})
            }
        )

    def moved_between(self, warehouse_id: int, from_ms: int, to_ms: int, after: int, limit: int) -> list[int]:
        """Return the ids of pointers with events after one time and until another, in their order.

        Args:
            warehouse_id: where they were.
            from_ms: the earlier time.
            to_ms: the later one.
            after: only greater ids.
            limit: how many at most.
        """
        rows = pointer_history
        query = (
            select(rows.c.pointer_id)
            .where(
                rows.c.at_ms > from_ms,
                rows.c.at_ms <= to_ms,
                rows.c.warehouse_id == warehouse_id,
                rows.c.pointer_id > after,
            )
            .group_by(rows.c.pointer_id)
            .order_by(rows.c.pointer_id)
            .limit(limit)
        )
        return self._database.read(lambda connection: list(connection.scalars(query)))

    def namespaces_between(self, warehouse_id: int, from_ms: int, to_ms: int) -> list[Namespace]:
        """Return the namespaces of which something changed after one time and until another."""
        rows = namespace_versions

        def changed(column: ColumnElement[int]) -> Select[Any]:
            return select(rows.c.parent_key, rows.c.name).where(
                rows.c.warehouse_id == warehouse_id, column > from_ms, column <= to_ms
            )

        query = union(changed(rows.c.from_ms), changed(rows.c.until_ms))
        found = self._database.read(lambda connection: connection.execute(query).all())
        return sorted(
            Namespace((*(namespace_of(row.parent_key).levels if row.parent_key else ()), row.name))
            for row in found
        )

    @staticmethod
    def _properties(
        connection: Connection, warehouse_id: int, namespace: Namespace, at_ms: int
    ) -> str | None:
        *above, name = namespace.levels
        parameters = {
            "in_warehouse": warehouse_id,
            "of_parent": key_of(Namespace(tuple(above))),
            "of_name": name,
            "at_ms": at_ms,
        }
        found: str | None = connection.scalars(_PROPERTIES, parameters).first()
        return found


def _state(connection: Connection, named: Row[Any], at_ms: int) -> PastState:
    event = connection.execute(_LAST_EVENT, {"of_pointer": named.pointer_id, "at_ms": at_ms}).one_or_none()
    return PastState(
        named.pointer_id,
        PointerKind(named.kind),
        TableIdentifier(namespace_of(named.namespace_key), named.name),
        TableUuid("" if event is None else event.uuid),
        None if event is None or event.location is None else Location(event.location),
    )
