"""The hot read: where the metadata of one table, or of up to 64 at once, is now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.database.connections.database import Database
from app.database.connections.shared_lookups import SharedLookups
from app.database.pointers.pointer import Pointer, PointerKey, PointerKind
from app.engine.model.identifiers import LEVEL_SEPARATOR, TableIdentifier
from app.waits import has_companions

MAX_KEYS = 64
# Few statements, because each connection prepares each of them.
_LENGTHS = (1, 2, 4, 8, 16, 32, 64)
_NOTHING = (0, "", "")


# Written out, because SQLAlchemy takes several times as long for a statement as the database does.
_FIND = """
    SELECT {position} p.id, p.kind, p.uuid, p.metadata_location, p.registration, p.reserved
    FROM namespaces n JOIN pointers p ON p.namespace_id = n.id
    WHERE n.warehouse_id = {mark} AND n.key = {mark} AND p.name = {mark}
"""
# The limit keeps Postgres from another plan than one look-up per name, such as reading a whole table.
_FIND_MANY_POSTGRES = """
    SELECT wanted.position, found.id, found.kind, found.uuid, found.metadata_location, found.registration,
           found.reserved
    FROM (VALUES {values}) AS wanted (position, warehouse_id, key, name)
    CROSS JOIN LATERAL (
        SELECT p.id, p.kind, p.uuid, p.metadata_location, p.registration, p.reserved
        FROM namespaces n JOIN pointers p ON p.namespace_id = n.id
        WHERE n.warehouse_id = wanted.warehouse_id AND n.key = wanted.key AND p.name = wanted.name
        LIMIT 1
    ) AS found
"""
_KINDS = {kind.value: kind for kind in PointerKind}


class PointerLookups:
    """Statements that find pointers by name, prepared for one database."""

    def __init__(self, database: Database) -> None:
        self._fetch = database.fetch
        is_postgres = database.dialect_name == "postgresql"
        self._shared = SharedLookups(self.find_many) if is_postgres else None
        self._find_one = _FIND.format(position="", mark="%s" if is_postgres else "?")
        many = _lookups_on_postgres if is_postgres else _lookups_on_sqlite
        self._find_many = {length: many(length) for length in _LENGTHS}
        # For each number of names, the shortest statement that has room for them.
        self._rooms = [min(length for length in _LENGTHS if length >= n) for n in range(MAX_KEYS + 1)]

    def find(self, warehouse_id: int, identifier: TableIdentifier) -> Pointer | None:
        """Return the pointer of this name, be it a table's or a view's."""
        if self._shared is not None and has_companions():
            return self._shared.find((warehouse_id, identifier))
        key = LEVEL_SEPARATOR.join(identifier.namespace.levels)
        rows = self._fetch(self._find_one, (warehouse_id, key, identifier.name))
        if not rows:
            return None
        pointer_id, kind, uuid, location, registration, reserved = rows[0]
        return Pointer(
            pointer_id, warehouse_id, _KINDS[kind], identifier, uuid, location, registration, bool(reserved)
        )

    def find_many(self, keys: Sequence[PointerKey]) -> dict[PointerKey, Pointer]:
        """Return the pointers that exist among these names, with one statement for each 64 names."""
        found: dict[PointerKey, Pointer] = {}
        for start in range(0, len(keys), MAX_KEYS):
            batch = keys[start : start + MAX_KEYS]
            for position, pointer_id, kind, *rest in self._fetch_batch(batch):
                key = batch[position]
                uuid, location, registration, reserved = rest
                found[key] = Pointer(
                    pointer_id, key[0], _KINDS[kind], key[1], uuid, location, registration, bool(reserved)
                )
        return found

    def _fetch_batch(self, batch: Sequence[PointerKey]) -> Sequence[tuple[Any, ...]]:
        parameters: list[object] = []
        for warehouse_id, identifier in batch:
            parameters += (warehouse_id, LEVEL_SEPARATOR.join(identifier.namespace.levels), identifier.name)
        room = self._rooms[len(batch)]
        parameters += _NOTHING * (room - len(batch))
        return self._fetch(self._find_many[room], parameters)


def _lookups_on_postgres(length: int) -> str:
    values = [f"({position}, %s::bigint, %s::text, %s::text)" for position in range(length)]
    return _FIND_MANY_POSTGRES.format(values=", ".join(values))


def _lookups_on_sqlite(length: int) -> str:
    # A join with a list of values is SQLite's to plan; of this there is one plan only.
    return " UNION ALL ".join(_FIND.format(position=f"{position},", mark="?") for position in range(length))
