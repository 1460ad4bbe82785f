"""Purging: deleting the files of a dropped table, and later what servers had left."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from app.catalog.context.absent_stores import absence_of_store, absence_of_table
from app.catalog.context.catalog import Catalog
from app.catalog.context.deletable import Owner
from app.catalog.context.kinds import TABLES
from app.catalog.context.places.locations import is_allowed
from app.catalog.context.places.table_places import names_of, own_folders
from app.catalog.deletions.other_readers import OtherReaders
from app.catalog.deletions.runner import (
    HeldManifests,
    Hold,
    PlanOutdated,
    delete_groups,
    groups_of,
    wait_for_store,
)
from app.catalog.deletions.sweeps import OwnFiles, delete_orphans, not_of_others, own_files
from app.catalog.exports.forks import CLOCKS_DIFFER_MS, find_fork, fork_text
from app.database.deletions.file_deletions import Deletion, FinalState
from app.engine.model.ids import Location
from app.engine.model.settings.properties import allows_deletes, keeping_switch
from app.engine.model.table_metadata import TableMetadata
from app.engine.properties.own_properties import PROTECTED
from app.engine.retention.reachability import Expired, statistics_of, unreachable_files
from app.errors import CorruptMetadata, InvalidMetadata, MetadataFileMissing
from app.fileio.links import real_places
from app.fileio.locations import folders_of, place_of
from app.formats.metadata.names import metadata_folder


@dataclass(frozen=True, slots=True)
class PurgedPlaces:
    """Where a purged table was: what the queue keeps of it until it has been looked at again."""

    places: frozenset[str]
    """The table's folders, as locations."""
    metadata_folder: Location
    waits: bool = False
    """Whether all is deleted that the table named, and only what was too young then is left to be looked for."""
    is_last: bool = False
    """Whether only the metadata file is left of what the table named, if anything is."""
    is_gone: bool = False
    """Whether that was deleted, too."""

    @staticmethod
    def of(metadata: TableMetadata) -> PurgedPlaces:
        """Return the places of a table that is about to be deleted."""
        folder = Location(metadata_folder(metadata.location, metadata.properties))
        return PurgedPlaces(own_folders(metadata), folder)

    @staticmethod
    def from_json(text: str) -> PurgedPlaces:
        """Read what `to_json` has written."""
        found = json.loads(text)
        return PurgedPlaces(
            frozenset(found["places"]),
            Location(found["metadata-folder"]),
            found["waits"],
            found.get("is-last", False),  # Older builds did not note it.
            found.get("is-gone", False),
        )

    def owner(self, deletion: Deletion) -> Owner:
        """Return the table on whose behalf files are deleted there."""
        return Owner(deletion.uuid, deletion.pointer_id, names_of(self.places))

    def to_json(self, *, waits: bool, is_last: bool = False, is_gone: bool = False) -> str:
        """Return it as the queue keeps it."""
        return json.dumps(
            {
                "places": sorted(self.places),
                "metadata-folder": self.metadata_folder,
                "waits": waits,
                "is-last": is_last,
                "is-gone": is_gone,
            }
        )


def purge_files(catalog: Catalog, deletion: Deletion) -> FinalState | None:
    """Delete the files of a dropped table; return `done`, `kept`, or None to come back.

    Unreadable files are found before anything is deleted. The current metadata file is deleted last, so that an
    interrupted purge starts again from it. Files that servers wrote and that no commit landed go when they are old
    enough: if any is too young, the entry comes back then.

    Raises:
        FilesUnavailable: a file could not be read or deleted, or the store is not there; safe to try again.
        InvalidMetadata: the table's metadata cannot be read or is gone, or nothing was found for hours, or there are
            commits to it that the database does not know; nothing more was deleted.
        CorruptMetadata: a manifest list or manifest cannot be read; nothing was deleted.
        PlanOutdated: what was found is no longer right, or another worker has ended the purge.
    """
    if catalog.server.pointers.may_share_files(deletion.uuid):
        return "kept"
    hold = Hold(catalog, deletion)
    purged = None if deletion.expired is None else PurgedPlaces.from_json(deletion.expired)
    if purged is not None and purged.waits:
        return _look_again(catalog, hold, purged)
    try:
        metadata = catalog.read_file(TABLES, deletion.metadata_location)
    except MetadataFileMissing:
        if purged is not None and purged.is_gone:  # An earlier attempt got through everything.
            return _end(catalog, hold, purged, ())
        if catalog.server.file_deletions.was_purged(deletion):
            return "done"
        absence = absence_of_table(catalog, deletion.metadata_location)
        wait_for_store(catalog, deletion, absence)
        if purged is not None and purged.is_last:
            return _end(catalog, hold, purged, ())
        gone = f"The metadata file {deletion.metadata_location} is gone, so it is not known which files the table had"
        raise InvalidMetadata(f"{absence or gone}; what is left of the table's files stays") from None
    if deletion.empty_looks:
        catalog.server.file_deletions.note_empty_looks(deletion, 0)
    if metadata.uuid != deletion.uuid or not allows_deletes(metadata.properties):
        # With another uuid it is not the file that was dropped, but one that took its place.
        return "kept"
    if keeping_switch(metadata.properties.get(PROTECTED)):
        return "kept"  # the drop could not read that
    fork = find_fork(catalog, deletion.uuid, deletion.pointer_id, deletion.metadata_location, metadata)
    if fork is not None:
        raise InvalidMetadata(fork_text(fork))
    everything = Expired(tuple(metadata.snapshots), tuple(statistics_of(metadata)))
    doomed = unreachable_files(everything, None, HeldManifests(catalog, None, hold), place_of=real_places())
    if doomed.unreadable:
        raise CorruptMetadata(doomed.unreadable[0], "the files that it names are not known")
    # Of a table with two names, each purge begins with the file of its own.
    others = set(map(place_of, catalog.server.file_deletions.other_purges(deletion)))
    logged = (entry.metadata_file for entry in metadata.metadata_log)
    groups = {
        **groups_of(doomed),
        "log": [location for location in logged if place_of(location) not in others],
        "metadata": [deletion.metadata_location],
    }
    purged = PurgedPlaces.of(metadata)
    catalog.server.file_deletions.note(deletion, purged.to_json(waits=False))
    owner = Owner.of(deletion.uuid, deletion.pointer_id, metadata)
    readers = OtherReaders(catalog, owner, hold.now_and_then)

    def note_last() -> None:
        catalog.server.file_deletions.note(deletion, purged.to_json(waits=False, is_last=True))

    def note_gone() -> None:
        catalog.server.file_deletions.note(deletion, purged.to_json(waits=False, is_last=True, is_gone=True))

    delete_groups(
        catalog, hold, owner, groups, None, readers.unread, before_last=note_last, after_last=note_gone
    )
    return _end(catalog, hold, purged, list(itertools.chain.from_iterable(groups.values())))


def _end(catalog: Catalog, hold: Hold, purged: PurgedPlaces, named: Sequence[Location]) -> FinalState | None:
    """Delete what is old enough and was not named; come back if anything was too young.

    What another name of the table has was not named either: while that has not been purged, no file is deleted.
    """
    # First of all: an attempt that is broken off leaves nothing that says which folders these are.
    _delete_empty_folders(catalog, hold, purged.owner(hold.deletion), named)
    if not _has_other_purges(catalog, hold) and not _delete_left(catalog, hold, purged, named):
        return "done"
    _come_back(catalog, hold, purged)
    return None


def _has_other_purges(catalog: Catalog, hold: Hold) -> bool:
    return bool(catalog.server.file_deletions.other_purges(hold.deletion))


def _come_back(catalog: Catalog, hold: Hold, purged: PurgedPlaces) -> None:
    # Ages are counted by other clocks than the queue's.
    wait_ms = catalog.rules.orphan_age_ms + CLOCKS_DIFFER_MS
    catalog.server.file_deletions.come_back(hold.deletion, wait_ms, purged.to_json(waits=True))


def _look_again(catalog: Catalog, hold: Hold, purged: PurgedPlaces) -> FinalState | None:
    """Delete what was too young when the table was purged, or come back as `_end` does.

    A table that lies there by now, or that names the files, keeps them: `deletable` and `OtherReaders` see to it.

    Raises:
        FilesUnavailable: the store may not be there.
        PlanOutdated: another worker has the entry.
    """
    if _has_other_purges(catalog, hold):
        _come_back(catalog, hold, purged)
        return None
    wait_for_store(catalog, hold.deletion, absence_of_store(catalog, hold.deletion.metadata_location))
    if not catalog.server.file_deletions.begin(hold.deletion, None):
        raise PlanOutdated
    _delete_left(catalog, hold, purged, ())
    return "done"


def _delete_left(
    catalog: Catalog, hold: Hold, purged: PurgedPlaces, named: Sequence[Location]
) -> list[Location]:
    """Delete what servers wrote and no commit landed, and folders that are empty then.

    Returns the files that are too young.

    Args:
        catalog: the table's warehouse.
        hold: of the entry in the queue: there may be as many files as the table had commits.
        purged: where the table was.
        named: the files that it named; what is left of them is another's.
    """
    owner, found = purged.owner(hold.deletion), OwnFiles()
    if catalog.rules.orphan_age_ms and is_allowed(catalog, purged.metadata_folder):
        found = own_files(catalog, owner.uuid, purged.metadata_folder, hold.now_and_then)
    left = [*(location for location, _ in found.contents), *_own_metadata(catalog, hold, owner, found)]
    delete_orphans(catalog, owner, left, hold)
    folders = [f"{place}{name}/_" for place in purged.places for name in ("metadata", "data")]
    _delete_empty_folders(catalog, hold, owner, [*left, *map(Location, folders)])
    kept = set(map(place_of, named))
    return [location for location in found.young if place_of(location) not in kept]


def _own_metadata(catalog: Catalog, hold: Hold, owner: Owner, found: OwnFiles) -> list[Location]:
    """Return the metadata files of a purged table, and none of earlier ones there."""
    history = None
    if owner.pointer_id is not None:
        history = catalog.server.metadata_sweeps.known_files(owner.pointer_id, owner.uuid)
    known = set(map(place_of, history.locations)) if history is not None else set()

    def files() -> Iterator[Location]:
        for location, _, _ in found.metadata:
            hold.now_and_then()
            yield location

    return not_of_others(catalog, owner.uuid, files(), known)


def _delete_empty_folders(catalog: Catalog, hold: Hold, owner: Owner, deleted: Iterable[Location]) -> None:
    """Delete the folders that the purge has emptied; a store without folders has none."""
    emptied = {location.rpartition("/")[0] for location in deleted}
    deepest_first = [(-len(folder), folder) for folder in emptied]
    heapify(deepest_first)  # there may be as many as files
    while deepest_first:
        _, folder = heappop(deepest_first)
        hold.now_and_then()
        if not is_allowed(catalog, folder) or owner.places.isdisjoint(folders_of(f"{folder}/_")):
            continue
        above = folder.rpartition("/")[0]
        if catalog.files.delete_empty_folder(Location(folder)) and above not in emptied:
            emptied.add(above)
            heappush(deepest_first, (-len(above), above))
