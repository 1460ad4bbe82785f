"""Purging: deleting the files of a dropped table, its metadata last."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from app.catalog.context.catalog import Catalog
from app.catalog.context.deletable import Owner
from app.catalog.context.kinds import TABLES
from app.catalog.context.locations import is_allowed
from app.catalog.deletions.other_readers import OtherReaders
from app.catalog.deletions.runner import LEASE_MS, delete_groups, groups_of
from app.catalog.deletions.sweeps import delete_orphans, own_files
from app.catalog.manifests.table_manifests import CheckedManifests
from app.database.file_deletions import Deletion, FinalState
from app.engine.model.ids import Location
from app.engine.model.properties import GC_ENABLED, bool_property
from app.engine.retention.reachability import Expired, statistics_of, unreachable_files
from app.errors import CorruptMetadata, MetadataFileMissing
from app.fileio.locations import folders_of, place_of


def purge_files(catalog: Catalog, deletion: Deletion) -> FinalState:
    """Delete the files of a dropped table; return `done` or `kept`.

    Unreadable files are found before anything is deleted. The current metadata file is deleted last, so that an
    interrupted purge starts again from it.

    Raises:
        FilesUnavailable: a file could not be read or deleted; safe to try again.
        InvalidMetadata: the table's metadata cannot be read; nothing was deleted.
        CorruptMetadata: a manifest list or manifest cannot be read; nothing was deleted.
        PlanOutdated: what was found is no longer right, or another worker has ended the purge.
    """
    if catalog.server.pointers.may_share_files(deletion.uuid):
        return "kept"
    try:
        metadata = catalog.read_file(TABLES, deletion.metadata_location)
    except MetadataFileMissing:
        return "done"  # An earlier attempt got through everything.
    if metadata.uuid != deletion.uuid or not bool_property(metadata.properties, GC_ENABLED, default=True):
        # With another uuid it is not the file that was dropped, but one that took its place.
        return "kept"
    everything = Expired(tuple(metadata.snapshots), tuple(statistics_of(metadata)))
    doomed = unreachable_files(everything, None, CheckedManifests(catalog), place_of=place_of)
    if doomed.unreadable:
        raise CorruptMetadata(doomed.unreadable[0], "the files that it names are not known")
    groups = {
        **groups_of(doomed),
        "log": [entry.metadata_file for entry in metadata.metadata_log],
        "metadata": [deletion.metadata_location],
    }
    owner = Owner.of(deletion.uuid, deletion.pointer_id, metadata)
    readers = OtherReaders(catalog, owner, lambda: catalog.server.file_deletions.hold(deletion.id, LEASE_MS))
    delete_groups(catalog, deletion, owner, groups, None, readers.unread)
    if catalog.rules.orphan_age_ms:
        delete_orphans(catalog, owner, [location for location, _, _ in own_files(catalog, metadata)])
    _delete_empty_folders(catalog, owner, itertools.chain.from_iterable(groups.values()))
    return "done"


def _delete_empty_folders(catalog: Catalog, owner: Owner, deleted: Iterable[Location]) -> None:
    """Delete the folders that the purge has emptied; a store without folders has none."""
    emptied = {location.rpartition("/")[0] for location in deleted}
    while emptied:
        deepest = max(emptied, key=len)
        emptied.remove(deepest)
        if not is_allowed(catalog, deepest) or owner.places.isdisjoint(folders_of(f"{deepest}/_")):
            continue
        if catalog.files.delete_empty_folder(Location(deepest)):
            emptied.add(deepest.rpartition("/")[0])
