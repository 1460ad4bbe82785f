"""Other tables that name files in some folders, as far as it is noted."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import CompoundSelect, Connection, Select, delete, select, union_all

from app.database.connections.database import Database
from app.database.pointers.foreign_files import ANYWHERE, insert_foreign
from app.database.pointers.pointer import Pointer
from app.database.pointers.pointer_rows import POINTER_COLUMNS, dropped_as_pointers, pointer_of
from app.database.schema.rows import dropped, namespaces, pointers, table_places
from app.database.schema.rows import foreign_places as rows


@dataclass(frozen=True, slots=True)
class ForeignReader:
    """A table that names files outside its own places, or may."""

    pointer: Pointer
    is_known: bool
    """Whether it is noted for one of the folders; False if it only may name files anywhere."""


class ForeignPlaces:
    """Reads what moves of pointers have noted, and takes out what turns out to be wrong."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def readers(self, folders: Collection[str], besides: int | None) -> list[ForeignReader]:
        """Return the tables that name files in some folders, or anywhere.

        Args:
            folders: as `app.fileio.locations.folder_name` spells them.
            besides: a pointer that is left out.
        """
        return self._readers(named_by_others(folders, besides))

    def unknown(self, after: int, limit: int) -> list[ForeignReader]:
        """Return tables that may name files anywhere, in the order of their pointers."""
        wanted = (rows.c.place == ANYWHERE) & (rows.c.pointer_id > after)
        queries = (query.where(wanted).order_by(rows.c.pointer_id).limit(limit) for query in _READERS)
        return sorted(self._readers(*queries), key=lambda reader: reader.pointer.id)[:limit]

    def of_table(self, pointer_id: int) -> dict[str, int]:
        """Return what is noted of a table: a number for each folder."""
        query = select(rows.c.place, rows.c.noted).where(rows.c.pointer_id == pointer_id)
        return self._database.read(
            lambda connection: {row.place: row.noted for row in connection.execute(query)}
        )

    def own_places(self, pointer_id: int) -> frozenset[str]:
        """Return the folders that a table claims as its own."""
        query = select(table_places.c.place).where(table_places.c.pointer_id == pointer_id)
        return self._database.read(lambda connection: frozenset(connection.scalars(query)))

    def replace(self, pointer_id: int, seen: Mapping[str, int], folders: Collection[str]) -> None:
        """Note where a table names files, instead of what was noted before.

        What commits have noted since stays.

        Args:
            pointer_id: the table's.
            seen: what `of_table` returned before.
            folders: as in `readers`; none if all its files lie in its own places.
        """

        def replace(connection: Connection) -> None:
            # Commits lock the pointer first, too.
            connection.execute(
                select(pointers.c.id).where(pointers.c.id == pointer_id).with_for_update(key_share=True)
            )
            for place, noted in sorted(seen.items()):
                is_seen = (
                    (rows.c.pointer_id == pointer_id) & (rows.c.place == place) & (rows.c.noted == noted)
                )
                connection.execute(delete(rows).where(is_seen))
            insert_foreign(connection, pointer_id, folders)

        self._database.write(replace)

    def _readers(self, *queries: Select[Any] | CompoundSelect[Any]) -> list[ForeignReader]:
        found = self._database.read(
            lambda connection: [row for query in queries for row in connection.execute(query)]
        )
        known = {row.id for row in found if row.place != ANYWHERE}
        by_id = {row.id: pointer_of(row) for row in found}
        return [ForeignReader(pointer, pointer.id in known) for pointer in by_id.values()]


# For tables that are there, and for dropped ones that can come back. Each joins for itself: SQLite would read all
# pointers before it joined a union of the two.
_READERS = (
    select(*POINTER_COLUMNS, rows.c.place)
    .join_from(rows, pointers, pointers.c.id == rows.c.pointer_id)
    .join(namespaces, namespaces.c.id == pointers.c.namespace_id),
    dropped_as_pointers(rows.c.place).join(rows, rows.c.pointer_id == dropped.c.pointer_id),
)


def named_by_others(folders: Collection[str], besides: int | None) -> CompoundSelect[Any]:
    """Return the query for `readers`; it has a row for each of a table's folders.

    It is one statement, so that a table which is dropped or comes back at this moment is found all the same.
    """
    wanted = rows.c.place.in_([ANYWHERE, *folders]), rows.c.pointer_id != (besides or 0)
    return union_all(*(query.where(*wanted) for query in _READERS))
