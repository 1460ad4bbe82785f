"""Neighbours: which tables and views have a uuid, or keep files in or around some folders."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, Select, and_, or_, select

from app.database.connections.database import Database
from app.database.namespace_keys import namespace_of
from app.database.pointers.pointer import PointerKind
from app.database.schema.rows import dropped, namespaces, pointers, table_places, warehouses
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location, TableUuid


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A table or view of any warehouse, and one folder where it keeps files."""

    pointer_id: int
    warehouse: str
    kind: PointerKind
    identifier: TableIdentifier
    uuid: TableUuid
    location: Location
    """Of its metadata file."""
    place: str = ""
    """As `app.fileio.locations.folder_name` spells it; empty if it was not asked for."""

    def __str__(self) -> str:
        """Return what it is and where, for a sentence."""
        return f"{self.kind.value} {self.identifier} of warehouse {self.warehouse}"


_AS_NEIGHBOUR = (
    pointers.c.id,
    warehouses.c.name.label("warehouse"),
    pointers.c.kind,
    namespaces.c.key,
    pointers.c.name,
    pointers.c.uuid,
    pointers.c.metadata_location,
)


class Neighbours:
    """Reads pointers and their places, over all warehouses."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def with_uuid(self, uuid: TableUuid, limit: int) -> list[Neighbour]:
        """Return up to `limit` tables and views that have a uuid."""
        query = (
            select(*_AS_NEIGHBOUR)
            .join_from(pointers, namespaces, namespaces.c.id == pointers.c.namespace_id)
            .join(warehouses, warehouses.c.id == namespaces.c.warehouse_id)
            .where(pointers.c.uuid == uuid)
        )
        return self._read(query.order_by(pointers.c.id).limit(limit))

    def dropped_with_uuid(self, uuid: TableUuid, now_ms: int, limit: int) -> list[Neighbour]:
        """Return up to `limit` tables and views that have a uuid, were dropped, and can come back."""
        query = (
            select(
                dropped.c.pointer_id,
                warehouses.c.name.label("warehouse"),
                dropped.c.kind,
                dropped.c.namespace_key,
                dropped.c.name,
                dropped.c.uuid,
                dropped.c.metadata_location,
            )
            .join_from(dropped, warehouses, warehouses.c.id == dropped.c.warehouse_id)
            .where(dropped.c.uuid == uuid, dropped.c.until_ms > now_ms)
        )
        return self._read(query.order_by(dropped.c.id).limit(limit))

    def in_or_around(
        self, places: Collection[str], around: Collection[str], besides: int | None, limit: int
    ) -> list[Neighbour]:
        """Return up to `limit` tables and views whose folders overlap with some places.

        Args:
            places: folders, as `folder_name` spells them.
            around: these and all folders above them.
            besides: a pointer that is left out.
            limit: how many at most.
        """
        # All that lies below a folder follows it, and comes before the same text with the sign after the slash.
        below = [
            and_(table_places.c.place > place, table_places.c.place < place[:-1] + "0") for place in places
        ]
        query = (
            select(*_AS_NEIGHBOUR, table_places.c.place)
            .join_from(table_places, pointers, pointers.c.id == table_places.c.pointer_id)
            .join(namespaces, namespaces.c.id == pointers.c.namespace_id)
            .join(warehouses, warehouses.c.id == namespaces.c.warehouse_id)
            .where(or_(table_places.c.place.in_(around), *below), pointers.c.id != (besides or 0))
        )
        return self._read(query.order_by(pointers.c.id).limit(limit))

    def _read(self, query: Select[Any]) -> list[Neighbour]:
        found = self._database.read(lambda connection: connection.execute(query).all())
        return [_neighbour(row) for row in found]


def _neighbour(row: Row[*tuple[Any, ...]]) -> Neighbour:
    pointer_id, warehouse, kind, key, name, uuid, location, *place = row
    identifier = TableIdentifier(namespace_of(key), name)
    return Neighbour(pointer_id, warehouse, PointerKind(kind), identifier, uuid, location, *place)
