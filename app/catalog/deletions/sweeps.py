"""Sweeps: deleting metadata files that a server wrote and that no commit landed.

A server that is killed between writing a file and moving the pointer leaves one; so does a store that keeps a file
whose upload it did not acknowledge. Manifests and data files are not looked for.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from app.catalog.context.catalog import Catalog
from app.catalog.context.deletable import Owner, deletable
from app.catalog.context.file_names import mark_of
from app.catalog.context.kinds import TABLES
from app.catalog.context.server import Server
from app.catalog.deletions.other_readers import OtherReaders
from app.catalog.deletions.runner import own_catalog
from app.engine.model.ids import Location
from app.engine.model.table_metadata import TableMetadata
from app.fileio.locations import place_of
from app.formats.metadata.names import metadata_folder
from app.formats.metadata.own_names import own_version

log = logging.getLogger(__name__)


def sweep_one(server: Server) -> bool:
    """Search the metadata folder of a table whose turn it is; return whether there was one.

    Raises:
        IcetowerError: the table's metadata, the folder or the database cannot be read; the next turn tries again.
    """
    age_ms = server.rules.orphan_age_ms
    pointer_id = server.metadata_sweeps.take(age_ms) if age_ms else None
    if pointer_id is None:
        return False
    pointer = server.pointers.find_locked(pointer_id)
    if pointer is None:
        return True
    catalog = own_catalog(server, pointer.warehouse_id)
    metadata = catalog.read(TABLES, pointer)
    current = own_version(pointer.metadata_location, mark_of(server))
    known = server.metadata_sweeps.known_files(pointer_id, pointer.uuid)
    if current is None or known is None:
        return True
    # A file of a later version may be one that a rollback left; one from before the history may have been the table's.
    named = {place_of(entry.metadata_file) for entry in metadata.metadata_log} | set(
        map(place_of, known.locations)
    )
    doomed = [
        location
        for location, version, modified_ms in own_files(catalog, metadata)
        if version <= current and modified_ms >= known.since_ms + age_ms and place_of(location) not in named
    ]
    delete_orphans(catalog, Owner.of(pointer.uuid, pointer.id, metadata), doomed)
    return True


def own_files(catalog: Catalog, metadata: TableMetadata) -> Iterator[tuple[Location, int, int]]:
    """Yield the files in a table's metadata folder that servers of ours wrote long ago.

    Servers of ours are those on this database. Each file comes with the version in its name, and the epoch
    milliseconds when it was written.
    """
    server = catalog.server
    written_before_ms = server.metadata_sweeps.now_ms() - server.rules.orphan_age_ms
    folder = Location(metadata_folder(metadata.location, metadata.properties))
    for file in catalog.files.list_files(folder):
        version = own_version(file.location, mark_of(server))
        if version is not None and file.modified_ms <= written_before_ms:
            yield file.location, version, file.modified_ms


def delete_orphans(catalog: Catalog, owner: Owner, doomed: list[Location]) -> None:
    """Delete files that nothing names, as far as `deletable` and other tables allow."""
    if not doomed:
        return
    going = OtherReaders(catalog, owner).unread(deletable(catalog, owner, doomed))
    for location in going:
        catalog.files.delete(location)
    log.info("deleted %d metadata files of table %s that no commit landed", len(going), owner.uuid)
