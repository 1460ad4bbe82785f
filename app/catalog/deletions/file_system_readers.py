"""File-system tables that may name files of other tables: no row says which they name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from app.catalog.context.catalog import Catalog, own_catalog
from app.catalog.context.kinds import TABLES
from app.catalog.context.places.locations import may_be_of
from app.catalog.context.server import Server
from app.catalog.deletions.state_files import StateFiles
from app.catalog.filesystem_tables.places import WarehouseTree
from app.database.pointers.pointer import Pointer, PointerKind
from app.database.warehouses import Layout
from app.engine.model.ids import Location
from app.errors import FilesUnavailable, IcetowerError, NoSuchTable, NoSuchWarehouse, Unavailable
from app.fileio.locations import folder_name

_PAGE = 10_000
"""Each page lists all folders of a warehouse."""


def file_system_warehouses(server: Server) -> list[Catalog]:
    """Return the warehouses whose tables have no rows, as the server itself sees them."""
    found = []
    for warehouse in server.warehouses.list(Layout.HADOOP):
        with suppress(NoSuchWarehouse):
            found.append(own_catalog(server, warehouse.id))
    return found


def tables_that_count(catalog: Catalog) -> Iterator[Pointer]:
    """Yield the tables of a file-system warehouse, without those that were adopted.

    An adopted table is read by its new name; what lies in its folder still names the same files.
    """
    tree, after = WarehouseTree(catalog.warehouse.root_location), 0
    while pointers := catalog.pointers.list_pointers(catalog.warehouse.id, PointerKind.TABLE, after, _PAGE):
        for pointer in pointers:
            folder = folder_name(tree.folder_of(pointer.identifier))
            if not (catalog.server.pointers.claims((), [folder]).places and _has_rows(catalog, pointer)):
                yield pointer
        if len(pointers) < _PAGE:
            return  # These were the last ones.
        after = pointers[-1].id


def _has_rows(catalog: Catalog, pointer: Pointer) -> bool:
    """Say whether a table is one of rows, too, or has no uuid by which to know it."""
    neighbours, uuid = catalog.server.neighbours, pointer.uuid
    return (
        not uuid
        or bool(neighbours.with_uuid(uuid, 1))
        or bool(neighbours.dropped_with_uuid(uuid, catalog.now_ms(), 1))
    )


class FileSystemReaders:
    """Looks at the file-system tables that may name some files, also where they went since."""

    def __init__(self, server: Server, note: Callable[[str], object]) -> None:
        """Start without having read anything; `note` is called with each file that is named."""
        self._server = server
        self._files = StateFiles(note)
        self._seen: set[Pointer] = set()

    def look(self, locations: Sequence[Location]) -> None:
        """Read the tables of the warehouses that may use one of these locations.

        Raises:
            FilesUnavailable: a table cannot be read, so it is not known which files it names.
            DatabaseUnavailable: safe to try again.
        """
        for catalog in file_system_warehouses(self._server):
            if any(may_be_of(catalog, location) for location in locations):
                for pointer in tables_that_count(catalog):
                    if pointer not in self._seen:
                        self._read(catalog, pointer)
                        self._seen.add(pointer)

    def _read(self, catalog: Catalog, pointer: Pointer) -> None:
        try:
            _, metadata = catalog.read_now(TABLES, pointer.identifier)
            self._files.add(catalog, metadata, is_current=False)
        except (NoSuchTable, Unavailable) as error:
            if isinstance(error, Unavailable):
                raise
        except IcetowerError as error:
            raise FilesUnavailable(
                f"It is not known which files the file-system table {pointer.identifier} reaches: {error}"
            ) from error
