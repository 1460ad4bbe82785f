"""Purging: deleting the files of a dropped table, its metadata last."""

from __future__ import annotations

from app.catalog.context.catalog import Catalog
from app.catalog.context.deletable import Owner
from app.catalog.context.kinds import TABLES
from app.catalog.deletions.runner import delete_groups, groups_of
from app.catalog.manifests.table_manifests import CheckedManifests
from app.database.file_deletions import Deletion, FinalState
from app.engine.model.properties import GC_ENABLED, bool_property
from app.engine.retention.reachability import Expired, statistics_of, unreachable_files
from app.errors import CorruptMetadata, MetadataFileMissing
from app.fileio.locations import place_of


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
    delete_groups(catalog, deletion, owner, groups, registration=None)
    return "done"
