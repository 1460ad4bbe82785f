"""May this file go? Everything that deletes files of tables asks here, and nowhere else."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.catalog.context.catalog import Catalog
from app.catalog.context.places.file_names import EXPORTS
from app.catalog.context.places.locations import is_allowed
from app.catalog.context.places.table_places import (
    claims_around,
    own_places,
    spellings_of,
    with_real_folders,
)
from app.catalog.context.places.tables_of_trees import TablesOfTrees
from app.database.warehouses import Layout
from app.engine.model.ids import Location, TableUuid
from app.engine.model.table_metadata import TableMetadata
from app.engine.model.view_metadata import ViewMetadata
from app.errors import MetadataFileMissing
from app.fileio.locations import folders_of
from app.formats.metadata.version_names import version_in

log = logging.getLogger(__name__)

_EXPORTS = f"/{EXPORTS}/"
BATCH = 256
"""How many files the database is asked for in one question."""
LEASE_MS = 10 * 60_000
"""For so long a worker has an entry of the queue, and a deletion may still be on its way to a store."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The table or view on whose behalf files are deleted."""

    uuid: TableUuid
    pointer_id: int | None
    """None if a pointer of the table is not known any more."""
    places: frozenset[str]
    """Its own folders, as `table_places.own_places` returns them."""

    @staticmethod
    def of(uuid: TableUuid, pointer_id: int | None, *states: TableMetadata | ViewMetadata | None) -> Owner:
        """Return a table or view as the owner of what lies in the places of these states of it."""
        return Owner(uuid, pointer_id, own_places(*states))


def deletable(catalog: Catalog, owner: Owner | None, locations: Sequence[Location]) -> list[Location]:
    """Return those of some files that may be deleted on behalf of a table.

    Paths are written by clients, who may name any file. So a file goes only if all of this holds:

    1. It lies inside the table's own places, and where its warehouse may delete.
    2. No pointer of any warehouse names it as its current metadata file.
    3. It lies in no folder that another table or view claims (`table_places.claimed_places`), wherever the two
       folders lie and whatever symbolic links lead to them. If a table's location is the root of a warehouse, or above
       another table's, then what lies in the other one's folder stays. If it is the same folder as another one's, or
       inside it, then everything stays: nothing says which of the two wrote a file.
    4. No other pointer may have the same files by its uuid, and the table has always had one
       (`database.pointers.sharing.may_share_files`).

    5. It lies in no folder of a file-system table, unless that folder is one of the table's own places: then the
       table was adopted. Rows do not know file-system tables: their warehouses are looked at.

    6. If it is called like the version of a file-system table, it is the table's own: after a drop, another table may
       come to have versions of the same names in the same folder.

    The caller sees to it that nothing of the table itself reaches the file. Registrations are seen to by
    `FileDeletions.begin`.

    Args:
        owner: None for files that this very request has written, under names with a new uuid in them: then only the
            second point matters.

    Raises:
        DatabaseUnavailable: the database does not answer; nothing is known.
        FilesUnavailable: a warehouse of file-system tables cannot be looked at; nothing is known.
    """
    return [
        location
        for start in range(0, len(locations), BATCH)
        for location in _deletable(catalog, owner, locations[start : start + BATCH])
    ]


def _deletable(catalog: Catalog, owner: Owner | None, locations: Sequence[Location]) -> list[Location]:
    pointers = catalog.server.pointers
    if owner is None:
        current = pointers.claims(_spelled(locations), ()).current
        return [location for location in locations if current.isdisjoint(spellings_of(location))]
    if pointers.may_share_files(owner.uuid, owner.pointer_id):
        log.warning("files of table %s stay: another name may have the same files", owner.uuid)
        return []
    folders = {location: folders_of(location) for location in locations if is_allowed(catalog, location)}
    inside = [
        location
        for location, around in folders.items()
        if not owner.places.isdisjoint(around) and not any(folder.endswith(_EXPORTS) for folder in around)
    ]
    claimable = claims_around(catalog, inside)
    around_them = {folder for around in claimable.values() for folder in around}
    claims = pointers.claims(_spelled(inside), sorted(around_them), owner.pointer_id)
    going = [
        location
        for location in inside
        if claims.current.isdisjoint(spellings_of(location)) and claims.places.isdisjoint(claimable[location])
    ]
    going = _outside_other_trees(catalog, owner, {location: claimable[location] for location in going})
    going = [location for location in going if not _is_version_of_other(catalog, owner, location)]
    staying = set(locations).difference(going)
    if staying:
        log.warning(
            "%d files stay, such as %s: not surely those of table %s alone",
            len(staying),
            min(staying),
            owner.uuid,
        )
    return going


def _outside_other_trees(
    catalog: Catalog, owner: Owner, around: Mapping[Location, Sequence[str]]
) -> list[Location]:
    """Return the files that lie in no file-system table but the owner itself.

    Args:
        catalog: the owner's warehouse.
        owner: on whose behalf they are to go.
        around: the files, with all folders that each lies in.
    """
    warehouses = catalog.server.warehouses.list(Layout.HADOOP)
    if not warehouses:
        return list(around)
    trees, own = TablesOfTrees(catalog.server, warehouses), with_real_folders(owner.places)
    return [location for location, folders in around.items() if trees.find_around(folders, own) is None]


def _is_version_of_other(catalog: Catalog, owner: Owner, location: Location) -> bool:
    """Say whether a file is a version of another table; one without a uuid may be ours."""
    if version_in(location) is None:
        return False
    try:
        uuid, _ = catalog.server.metadata_files.identify(catalog.files, location)
    except MetadataFileMissing:
        return False
    return uuid not in ("", owner.uuid)


def _spelled(locations: Sequence[Location]) -> list[str]:
    return [spelling for location in locations for spelling in spellings_of(location)]
