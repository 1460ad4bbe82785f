"""Finding and deleting the files that only expired snapshots reached."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from app.catalog.commits.files.expiry_records import ExpiryRecord
from app.catalog.context.absent_stores import absence_of_store, check_table_is_there
from app.catalog.context.catalog import Catalog
from app.catalog.context.deletable import Owner
from app.catalog.context.kinds import TABLES
from app.catalog.context.places.table_places import names_of, own_places
from app.catalog.deletions.orphan_search import path_hash
from app.catalog.deletions.other_readers import OtherReaders
from app.catalog.deletions.purge import PurgedPlaces
from app.catalog.deletions.runner import (
    HeldManifests,
    Hold,
    PlanOutdated,
    delete_groups,
    groups_of,
    wait_for_store,
)
from app.catalog.deletions.state_files import StateFiles
from app.catalog.exports.forks import find_fork, fork_text
from app.catalog.manifests.table_manifests import CheckedManifests
from app.database.deletions.file_deletions import Deletion, FinalState
from app.database.pointers.pointer import Pointer
from app.engine.model.ids import Location, TableUuid
from app.engine.model.settings.properties import allows_deletes
from app.engine.model.table_metadata import TableMetadata
from app.engine.retention.reachability import statistics_of, unreachable_files
from app.errors import (
    FileMissing,
    FilesUnavailable,
    IcetowerError,
    InvalidMetadata,
    MetadataFileMissing,
    Unavailable,
)
from app.fileio.links import real_places

log = logging.getLogger(__name__)


def delete_expired_files(catalog: Catalog, deletion: Deletion) -> FinalState:
    """Delete the files that only expired snapshots reached; return `done` or `kept`.

    Each run asks the current table what is reachable. Nothing is deleted while another table has the same uuid, if the
    table has left the catalog, or if a remaining file that matters cannot be read. The next attempt deletes what this
    one could not.

    Raises:
        FilesUnavailable: a file could not be read or deleted, or the store is not there; safe to try again.
        CorruptMetadata, MetadataFileMissing: the table's metadata cannot be read; nothing was deleted.
        InvalidMetadata: the record in the queue, or what the table still reaches, cannot be read, or there are commits
            to the table that the database does not know; nothing was deleted.
        PlanOutdated: what was found is no longer right, or another worker has ended it.
    """
    assert deletion.pointer_id is not None
    assert deletion.expired is not None
    if catalog.server.pointers.may_share_files(deletion.uuid, deletion.pointer_id):
        return "kept"
    hold = Hold(catalog, deletion)
    current: TableMetadata | None = None
    registration: int | None = None
    pointer = catalog.server.pointers.find_locked(deletion.pointer_id)
    if pointer is not None and pointer.uuid == deletion.uuid:
        current, registration = _read(catalog, pointer), pointer.registration
        if not allows_deletes(current.properties):
            return "kept"
    elif catalog.server.file_deletions.find_purge(deletion.uuid) is None:
        # The new owner of the table may know of files that the catalog does not know.
        return "kept"
    else:
        wait_for_store(catalog, deletion, absence_of_store(catalog, deletion.metadata_location))
    if current is not None and pointer is not None:
        fork = find_fork(catalog, deletion.uuid, pointer.id, pointer.metadata_location, current)
        if fork is not None:
            raise InvalidMetadata(fork_text(fork))
    record = ExpiryRecord.from_json(deletion.expired)
    landed = _state_at(catalog, deletion.metadata_location, deletion.uuid, registration or 0)
    doomed = unreachable_files(
        record.expired,
        current,
        HeldManifests(catalog, current, hold),
        level=record.cleanup,
        landed=landed if current is not None else None,
        stays=(pointer.metadata_location,) if pointer is not None else (),
        place_of=real_places(),
    )
    if doomed.obstacle is not None:
        raise InvalidMetadata(
            f"It is not known what the table still reaches, nothing is deleted: {doomed.obstacle}"
        )
    for location in doomed.unreadable:
        log.warning("expiry of %s leaves %s and what it names: unreadable", deletion.identifier, location)
    owner = Owner.of(deletion.uuid, deletion.pointer_id, current, landed)
    if current is None:
        owner = replace(owner, places=owner.places | _purged_places(catalog, deletion.uuid))
    readers = OtherReaders(catalog, owner, hold.now_and_then)
    own = None if pointer is None or current is None else _OwnTable(catalog, pointer, current, hold)

    def unread(locations: Sequence[Location]) -> list[Location]:
        return readers.unread(locations if own is None else own.unread(locations))

    delete_groups(catalog, hold, owner, groups_of(doomed), registration, unread)
    return "done"


def _read(catalog: Catalog, pointer: Pointer) -> TableMetadata:
    """Return the table's metadata, if its file is there.

    What is kept of it says nothing of the store.
    """
    try:
        catalog.check_file(TABLES, pointer)
        return catalog.read(TABLES, pointer)
    except MetadataFileMissing:
        check_table_is_there(catalog, pointer.metadata_location)
        raise


class _OwnTable:
    """The table itself: what commits take in again while its expired files are deleted stays."""

    def __init__(self, catalog: Catalog, pointer: Pointer, current: TableMetadata, hold: Hold) -> None:
        """Start with the state that was asked what is reachable."""
        self._catalog = catalog
        self._seen = pointer
        self._current = current
        self._hold = hold
        self._reached: set[int] = set()
        self._files = StateFiles(self._note)

    def unread(self, locations: Sequence[Location]) -> list[Location]:
        """Return those of some files that the table does not reach now.

        Raises:
            PlanOutdated: the table was registered anew, has gone, or its files are to stay now.
            FilesUnavailable, CorruptMetadata: it cannot be read.
        """
        now = self._catalog.server.pointers.find_locked(self._seen.id)
        if now is None or (now.uuid, now.registration) != (self._seen.uuid, self._seen.registration):
            raise PlanOutdated
        if now.metadata_location != self._seen.metadata_location:
            self._read(now)
        return [location for location in locations if path_hash(location) not in self._reached]

    def _read(self, now: Pointer) -> None:
        try:
            metadata = self._catalog.read(TABLES, now)
            if not allows_deletes(metadata.properties):
                raise PlanOutdated
            known = self._current.snapshots_by_id
            if not self._reached:
                self._pass_over_known()
            for snapshot in metadata.snapshots:
                if snapshot.snapshot_id not in known:
                    self._files.add_snapshot(self._catalog, snapshot, is_current=True)
        except (MetadataFileMissing, FileMissing) as error:
            raise FilesUnavailable(f"Cannot look at {now.identifier}: it has moved on: {error}") from error
        for file in statistics_of(metadata):
            self._reached.add(path_hash(file.location))
        self._seen = now

    def _note(self, location: str) -> None:
        self._hold.now_and_then()
        self._reached.add(path_hash(location))

    def _pass_over_known(self) -> None:
        heads = {ref.snapshot_id for ref in (self._current.refs or {}).values()}
        heads |= {snapshot.snapshot_id for snapshot in [self._current.current_snapshot] if snapshot}
        source = CheckedManifests(self._catalog, self._current)
        for snapshot in self._current.snapshots:
            if snapshot.snapshot_id in heads:
                known = source.read_list(snapshot)
                self._files.pass_over(self._catalog, (manifest.manifest_path for manifest in known))


def _state_at(
    catalog: Catalog, location: Location, uuid: TableUuid, registration: int
) -> TableMetadata | None:
    """Return the table as a metadata file of it says; None if that file is gone."""
    try:
        return catalog.read_file(TABLES, location, uuid, registration)
    except Unavailable:
        raise
    except IcetowerError:
        return None


def _purged_places(catalog: Catalog, uuid: TableUuid) -> frozenset[str]:
    """Return where a purged table was.

    The purge may have deleted all metadata files that say it.
    """
    queue = catalog.server.file_deletions
    purge = queue.find_purge(uuid)
    last = None if purge is None else _state_at(catalog, purge.metadata_location, uuid, 0)
    # Noted before that file goes, so looked up after it.
    purge = queue.find_purge(uuid)
    noted = () if purge is None or purge.facts is None else PurgedPlaces.from_json(purge.facts).places
    return own_places(last) | names_of(noted)
