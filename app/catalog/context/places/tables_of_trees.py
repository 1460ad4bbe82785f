"""File-system tables around a place: no row says whose their folders are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from itertools import product

from app.catalog.context.server import Server
from app.catalog.filesystem_tables.versions import TableFolder
from app.database.warehouses import Layout, Warehouse
from app.engine.model.ids import Location
from app.errors import InvalidLocation
from app.fileio.links import real_location
from app.fileio.locations import folder_name, folders_of, scheme_of


class TablesOfTrees:
    """The file-system tables of all warehouses; each folder is looked at once."""

    def __init__(self, server: Server, warehouses: Sequence[Warehouse]) -> None:
        """Start with the warehouses of this layout."""
        self._server = server
        self._warehouses = warehouses
        self._roots: dict[int, list[str]] = {}
        self._is_table: dict[tuple[int, str], bool] = {}

    def find_around(self, folders: Iterable[str], own: Collection[str] = ()) -> Location | None:
        """Return the folder of a table that is one of these folders; None if none is.

        Args:
            folders: as `folder_name` spells them.
            own: folders whose tables do not matter.

        Raises:
            FilesUnavailable: a folder cannot be looked at.
        """
        around = [folder for folder in folders if folder not in own]
        is_local = any(folder.startswith("file:") for folder in around)
        for warehouse in self._warehouses:
            if scheme_of(warehouse.root_location) == "file" and not is_local:
                continue  # To ask where its links lead may take for ever: its disk may be in a network.
            for folder, root in product(around, self._roots_of(warehouse)):
                if folder.startswith(root) and folder != root:
                    below = Location(
                        f"{warehouse.root_location.rstrip('/')}/{folder[len(root) :].rstrip('/')}"
                    )
                    if self._is_table_in(warehouse, below):
                        return below
        return None

    def _roots_of(self, warehouse: Warehouse) -> list[str]:
        if warehouse.id not in self._roots:
            self._roots[warehouse.id] = _names_of_folder(warehouse.root_location)
        return self._roots[warehouse.id]

    def _is_table_in(self, warehouse: Warehouse, folder: Location) -> bool:
        found = self._is_table.get((warehouse.id, folder))
        if found is None:
            # Opened only here: what lies elsewhere does not wait for a store that cannot be.
            files = self._server.files_of(warehouse)
            found = self._is_table[warehouse.id, folder] = TableFolder(files, folder).is_there()
        return found


def check_no_table_around(server: Server, location: str) -> None:
    """Check that something new does not lie in the folder of a file-system table.

    Raises:
        InvalidLocation: it does; names that folder.
        FilesUnavailable, DatabaseUnavailable: it cannot be seen.
    """
    # Each creation asks.
    warehouses = server.warehouses.list_kept(Layout.HADOOP)
    if not warehouses:
        return
    trees = TablesOfTrees(server, warehouses)
    around = {folder for name in _names_of_folder(location) for folder in folders_of(f"{name}_")}
    table = trees.find_around(sorted(around))
    if table is not None:
        raise InvalidLocation(
            f"Invalid location {location[:500]!r}: it lies in the folder of a file-system table, {table}, which is "
            "deleted as a whole when that table is dropped; choose a folder outside"
        )


def _names_of_folder(location: str) -> list[str]:
    """Return the names of a folder, by its location and where symbolic links lead."""
    names = set()
    for each in (location, real_location(location)):
        with suppress(InvalidLocation):
            names.add(folder_name(each))
    return sorted(names)
