"""Other tables that name files in the places of one: what they reach stays."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Sequence

from app.catalog.context.catalog import Catalog, own_catalog
from app.catalog.context.deletable import BATCH, Owner
from app.catalog.context.places.locations import may_be_of
from app.catalog.context.places.table_places import claims_around, with_real_folders
from app.catalog.deletions.file_system_readers import FileSystemReaders
from app.catalog.deletions.foreign_looks import ForeignLook
from app.catalog.deletions.orphan_search import path_hash
from app.database.deletions.foreign_places import ForeignReader
from app.engine.model.ids import Location
from app.errors import NoSuchWarehouse
from app.fileio.links import real_locations
from app.fileio.locations import loose_place_of

log = logging.getLogger(__name__)


class OtherReaders:
    """What other tables reach of one table's files; each is read when it first matters.

    Mostly there are none: one indexed question for each batch says so.
    """

    def __init__(self, catalog: Catalog, owner: Owner, hold: Callable[[], object] = lambda: None) -> None:
        """Start without having read anything.

        Args:
            catalog: the warehouse of the table whose files are deleted.
            owner: that table.
            hold: called with each batch of files, and while tables are read: that may take long.
        """
        self._catalog, self._owner, self._hold = catalog, owner, hold
        self._starts = tuple(
            f"{loose_place_of(place)[1]}/".lstrip("/") for place in with_real_folders(owner.places)
        )
        self._looks: dict[int, ForeignLook] = {}
        self._file_systems = FileSystemReaders(catalog.server, self._note)
        self._warehouses: dict[int, Catalog | None] = {}
        self._reached: set[int] = set()
        self._real_location_of = real_locations()

    def unread(self, locations: Sequence[Location]) -> list[Location]:
        """Return those of some files that no other table reaches now.

        Raises:
            FilesUnavailable: a table that may reach some cannot be read.
            DatabaseUnavailable: safe to try again.
        """
        return [
            location
            for start in range(0, len(locations), BATCH)
            for location in self._unread(locations[start : start + BATCH])
        ]

    def _unread(self, locations: Sequence[Location]) -> list[Location]:
        self._hold()
        around = claims_around(self._catalog, locations).values()
        folders = sorted(set(itertools.chain.from_iterable(around)))
        for reader in self._catalog.server.foreign_places.readers(folders, self._owner.pointer_id):
            if reader.is_known or self._may_read(reader, locations):
                self._look(reader)
        self._file_systems.look(locations)
        staying = [location for location in locations if self._is_reached(location)]
        if not staying:
            return list(locations)
        log.warning(
            "%d files of table %s stay, such as %s: another table names them",
            len(staying),
            self._owner.uuid,
            staying[0],
        )
        stays = set(staying)
        return [location for location in locations if location not in stays]

    def _is_reached(self, location: Location) -> bool:
        return not self._reached.isdisjoint(
            {path_hash(location), path_hash(self._real_location_of(location))}
        )

    def _look(self, reader: ForeignReader) -> None:
        look = self._looks.get(reader.pointer.id)
        if look is None:
            look = ForeignLook(self._catalog.server, reader.pointer.id, self._note)
            self._looks[reader.pointer.id] = look
        look.look(reader.pointer)

    def _may_read(self, reader: ForeignReader, locations: Sequence[Location]) -> bool:
        """Say whether one of the files may lie where a table's warehouse may read."""
        warehouse_id = reader.pointer.warehouse_id
        if warehouse_id not in self._warehouses:
            try:
                self._warehouses[warehouse_id] = own_catalog(self._catalog.server, warehouse_id)
            except NoSuchWarehouse:
                self._warehouses[warehouse_id] = None
        catalog = self._warehouses[warehouse_id]
        return catalog is not None and any(may_be_of(catalog, location) for location in locations)

    def _note(self, location: str) -> None:
        self._hold()
        for path in {loose_place_of(each)[1] for each in {location, self._real_location_of(location)}}:
            if path.startswith(self._starts):
                # Some clients take these for the end of the path.
                self._reached.update(
                    hash(part) for part in {path, path.partition("?")[0], path.partition("#")[0]}
                )
