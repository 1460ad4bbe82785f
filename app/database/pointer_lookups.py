"""The hot read: where the metadata of one table, or of up to 64 at once, is now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.database.connection import Database
from app.database.pointer_kinds import PointerKind
from app.engine.model.identifiers import LEVEL_SEPARATOR, TableIdentifier
from app.engine.model.ids import Location, TableUuid

PointerKey = tuple[int, TableIdentifier]
"""A warehouse's id, and a name in it."""

MAX_KEYS = 64


@dataclass(frozen=True, slots=True)
class Pointer:
    """The row that names a table's or view's current metadata file."""

    id: int
    warehouse_id: int
    kind: PointerKind
    identifier: TableIdentifier
    uuid: TableUuid
    metadata_location: Location


# Written out, because building a statement costs ten times what running it does.
_FIND_ONE = """
    SELECT p.id, p.kind, p.uuid, p.metadata_location
    FROM namespaces n JOIN pointers p ON p.namespace_id = n.id
    WHERE n.warehouse_id = {0} AND n.key = {0} AND p.name = {0}
"""
_FIND_MANY_POSTGRES = """
    SELECT wanted.position, p.id, p.kind, p.uuid, p.metadata_location
    FROM unnest(%s::bigint[], %s::text[], %s::text[]) WITH ORDINALITY
        AS wanted (warehouse_id, key, name, position)
    JOIN namespaces n ON n.warehouse_id = wanted.warehouse_id AND n.key = wanted.key
    JOIN pointers p ON p.namespace_id = n.id AND p.name = wanted.name
"""
_FIND_IN_BATCH_SQLITE = """
    SELECT {position}, p.id, p.kind, p.uuid, p.metadata_location
    FROM namespaces n JOIN pointers p ON p.namespace_id = n.id
    WHERE n.warehouse_id = ? AND n.key = ? AND p.name = ?
"""
_KINDS = {kind.value: kind for kind in PointerKind}


class PointerLookups:
    """Statements that find pointers by name, prepared for one database."""

    def __init__(self, database: Database) -> None:
        self._fetch = database.fetch
        self._is_postgres = database.dialect_name == "postgresql"
        self._find_one = _FIND_ONE.format("%s" if self._is_postgres else "?")
        # SQLite plans a join with a list of values anew for every length; a union of look-ups is as quick as any.
        parts = [_FIND_IN_BATCH_SQLITE.format(position=position) for position in range(1, MAX_KEYS + 1)]
        self._find_many_sqlite = [" UNION ALL ".join(parts[:length]) for length in range(MAX_KEYS + 1)]

    def find(self, warehouse_id: int, identifier: TableIdentifier) -> Pointer | None:
        """Return the pointer of this name, be it a table's or a view's."""
        key = LEVEL_SEPARATOR.join(identifier.namespace.levels)
        rows = self._fetch(self._find_one, (warehouse_id, key, identifier.name))
        if not rows:
            return None
        pointer_id, kind, uuid, location = rows[0]
        return Pointer(pointer_id, warehouse_id, _KINDS[kind], identifier, uuid, location)

    def find_many(self, keys: Sequence[PointerKey]) -> dict[PointerKey, Pointer]:
        """Return the pointers that exist among these names, with one statement for each 64 names."""
        found: dict[PointerKey, Pointer] = {}
        for start in range(0, len(keys), MAX_KEYS):
            batch = keys[start : start + MAX_KEYS]
            for position, pointer_id, kind, uuid, location in self._fetch_batch(batch):
                key = batch[position - 1]
                found[key] = Pointer(pointer_id, key[0], _KINDS[kind], key[1], uuid, location)
        return found

    def _fetch_batch(self, batch: Sequence[PointerKey]) -> Sequence[tuple[int, int, str, TableUuid, Location]]:
        if self._is_postgres:
            parameters: list[object] = [
                [warehouse_id for warehouse_id, _ in batch],
                [LEVEL_SEPARATOR.join(identifier.namespace.levels) for _, identifier in batch],
                [identifier.name for _, identifier in batch],
            ]
            return self._fetch(_FIND_MANY_POSTGRES, parameters)
        flat: list[object] = []
        for warehouse_id, identifier in batch:
            flat += (warehouse_id, LEVEL_SEPARATOR.join(identifier.namespace.levels), identifier.name)
        return self._fetch(self._find_many_sqlite[len(batch)], flat)
