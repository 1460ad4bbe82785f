"""Sweeps: deleting files that a server wrote and that no commit landed.

A server that is killed between writing files and moving the pointer leaves them; so does a store that keeps a file
whose upload it did not acknowledge. Which files servers wrote, their names say. Files of clients are not looked for.
What a server could not delete because the database or the store was away, it remembers, and takes back soon.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from app.catalog.context.catalog import Catalog, own_catalog
from app.catalog.context.deletable import BATCH, LEASE_MS, Owner, deletable
from app.catalog.context.kinds import TABLES, VIEWS, Kind
from app.catalog.context.places.file_names import content_mark, mark_of
from app.catalog.context.seen.left_metadata import LeftFile
from app.catalog.context.server import Server
from app.catalog.deletions.orphan_search import check_may_delete, files_now_ms, path_hash
from app.catalog.deletions.other_readers import OtherReaders
from app.catalog.deletions.reached_states import ReachedStates
from app.catalog.deletions.runner import Hold, PlanOutdated
from app.catalog.exports.forks import CLOCKS_DIFFER_MS, find_fork, find_view_fork, fork_text
from app.catalog.manifests.table_manifests import CheckedManifests
from app.database.pointers.pointer import Pointer, PointerKind
from app.engine.model.ids import Location, TableUuid
from app.engine.model.table_metadata import TableMetadata
from app.engine.model.view_metadata import ViewMetadata
from app.engine.retention.reachability import UNREADABLE, statistics_of
from app.errors import AccessRefused, IcetowerError, MetadataFileMissing, OrphansRefused, Unavailable
from app.fileio.files import files_in
from app.fileio.locations import place_of
from app.formats.metadata.names import metadata_folder
from app.formats.metadata.own_names import is_own_content, own_version

log = logging.getLogger(__name__)


@dataclass
class OwnFiles:
    """Files in one folder that servers on this database wrote long ago, with their times."""

    metadata: list[tuple[Location, int, int]] = field(default_factory=list)
    """Metadata files, with the version in the name and epoch milliseconds."""
    contents: list[tuple[Location, int]] = field(default_factory=list)
    """Manifests, manifest lists and partition statistics, with epoch milliseconds."""
    young: list[Location] = field(default_factory=list)
    """Those that were written later, of both kinds."""
    newest_version: int = 0
    """Of all metadata files of servers on this database that lie there, however young."""


def sweep_one(server: Server) -> bool:
    """Search the metadata folder whose turn it is; return whether there was one.

    Raises:
        IcetowerError: its metadata, the folder or the database cannot be read; the next turn tries again.
    """
    age_ms = server.rules.orphan_age_ms
    pointer_id = server.metadata_sweeps.take(age_ms) if age_ms else None
    if pointer_id is None:
        return False
    pointer = server.pointers.find_locked(pointer_id)
    if pointer is None:
        return True
    catalog, metadata = _read(server, pointer)
    current = own_version(pointer.metadata_location, mark_of(server))
    known = server.metadata_sweeps.known_files(pointer_id, pointer.uuid)
    if current is None or known is None:
        return True
    files = own_files(catalog, pointer.uuid, metadata_folder(metadata.location, metadata.properties))
    # A file of a later version may be one that a rollback left; one from before the history may have been the table's.
    named = set(map(place_of, known.locations)) | _logged(metadata)
    since_ms = known.since_ms + (CLOCKS_DIFFER_MS if known.is_whole else age_ms)
    doomed = [
        location
        for location, version, modified_ms in files.metadata
        if version <= current and modified_ms >= since_ms and place_of(location) not in named
    ]
    if doomed:
        fork = _find_fork(catalog, pointer, metadata)
        if fork is not None:
            log.warning("what no commit landed of %s stays: %s", _what(pointer), fork_text(fork))
            return True
    _delete(catalog, pointer, metadata, not_of_others(catalog, pointer.uuid, doomed))
    if isinstance(metadata, TableMetadata) and files.newest_version <= current:
        written = [
            location for location, modified_ms in files.contents if since_ms <= modified_ms < known.moved_ms
        ]
        _delete(catalog, pointer, metadata, _unreached(catalog, pointer, metadata, written))
    return True


def take_back_left(server: Server) -> None:
    """Delete metadata files that commits left while the database or the store was away.

    What is not back yet is asked again for as long as a deletion may be late anyway. Then it is left to the sweeps.
    """
    since_ms, left = server.now_ms() - LEASE_MS, defaultdict[int, list[LeftFile]](list)
    for each in server.left_metadata.take():
        if each.at_ms > since_ms:
            left[each.warehouse_id].append(each)
    for of_warehouse in left.values():
        groups = defaultdict[int, list[LeftFile]](list)
        for each in of_warehouse:
            groups[each.pointer_id].append(each)
        # Each table of a store that is away would be waited for. It may be away for one table alone: that comes last.
        while groups:
            pointer_id = next(iter(groups))
            files = groups.pop(pointer_id)
            if not _take_back(server, pointer_id, files):
                groups[pointer_id] = files
                break
        server.left_metadata.note(*chain.from_iterable(groups.values()))


def _take_back(server: Server, pointer_id: int, files: Sequence[LeftFile]) -> bool:
    """Delete files that commits to one table left; False if they cannot be looked at now."""
    if server.is_stopping.is_set():
        return False
    try:
        going = _find_left(server, pointer_id, [each.location for each in files])
    except Unavailable:
        return False
    except IcetowerError as error:
        log.info("what commits to table %d left stays: %s", pointer_id, error)
        return True
    try:
        if going is not None:
            _delete(*going)
    except IcetowerError as error:
        log.warning("could not delete what commits left: %s", error)
    return True


def _find_left(
    server: Server, pointer_id: int, locations: Sequence[Location]
) -> tuple[Catalog, Pointer, TableMetadata | ViewMetadata, list[Location]] | None:
    """Return a table or view, and which of some files were never its own; None for none."""
    pointer = server.pointers.find_locked(pointer_id)
    if pointer is None:
        return None
    catalog, metadata = _read(server, pointer)
    known = server.metadata_sweeps.known_files(pointer_id, pointer.uuid)
    if known is None:
        return None
    named = set(map(place_of, known.locations)) | _logged(metadata)
    doomed = [each for each in locations if place_of(each) not in named]
    if not doomed or _find_fork(catalog, pointer, metadata) is not None:
        return None
    return catalog, pointer, metadata, not_of_others(catalog, pointer.uuid, doomed)


def _read(server: Server, pointer: Pointer) -> tuple[Catalog, TableMetadata | ViewMetadata]:
    catalog = own_catalog(server, pointer.warehouse_id)
    is_view = pointer.kind is PointerKind.VIEW
    return catalog, catalog.read(VIEWS, pointer) if is_view else catalog.read(TABLES, pointer)


def _what(pointer: Pointer) -> str:
    return f"{pointer.kind.value} {pointer.identifier}"


def _logged(metadata: TableMetadata | ViewMetadata) -> set[Hashable]:
    if isinstance(metadata, ViewMetadata):
        return set()  # Views have no metadata log.
    return {place_of(entry.metadata_file) for entry in metadata.metadata_log}


def _find_fork(catalog: Catalog, pointer: Pointer, metadata: TableMetadata | ViewMetadata) -> Location | None:
    if isinstance(metadata, ViewMetadata):
        return find_view_fork(catalog, pointer, metadata)
    return find_fork(catalog, pointer.uuid, pointer.id, pointer.metadata_location, metadata)


def _delete(
    catalog: Catalog, pointer: Pointer, metadata: TableMetadata | ViewMetadata, doomed: Sequence[Location]
) -> None:
    """Delete files while an entry in the queue keeps them from being registered."""
    if not doomed:
        return
    queue = catalog.server.file_deletions
    deletion = queue.begin_sweep(pointer, catalog.now_ms(), LEASE_MS)
    if deletion is None:
        log.info(
            "what no commit landed of %s stays: it was registered anew, is gone, or may share its files",
            _what(pointer),
        )
        return
    owner, unanswered = Owner.of(pointer.uuid, pointer.id, metadata), set[Location]()
    try:
        delete_orphans(catalog, owner, doomed, Hold(catalog, deletion), unanswered)
    except PlanOutdated:
        log.info("what no commit landed of %s is looked for anew", _what(pointer))
    finally:
        # Else what the store was asked to delete may go until the lease is over.
        if not unanswered:
            queue.finish(deletion, "done")


def own_files(
    catalog: Catalog, uuid: TableUuid, folder: str, hold: Callable[[], object] = lambda: None
) -> OwnFiles:
    """Return the files in a metadata folder that servers of ours wrote long ago.

    Servers of ours are those on this database. The metadata files may be another table's that was there.

    Args:
        catalog: the table's warehouse.
        uuid: the table's.
        folder: its metadata folder.
        hold: called with each file: there may be many.

    Raises:
        FilesUnavailable: the store does not answer.
    """
    server, found = catalog.server, OwnFiles()
    mark, of_contents = mark_of(server), content_mark(server, uuid, folder)
    written_before_ms = files_now_ms(server) - server.rules.orphan_age_ms
    # In folders below it may be copies that wait to be taken elsewhere, with the names of these.
    for file in files_in(catalog.files, Location(folder)):
        hold()
        version = own_version(file.location, mark)
        if version is None and not is_own_content(file.location, of_contents):
            continue
        found.newest_version = max(found.newest_version, version or 0)
        if not 0 < file.modified_ms <= written_before_ms:
            found.young.append(file.location)
        elif version is not None:
            found.metadata.append((file.location, version, file.modified_ms))
        else:
            found.contents.append((file.location, file.modified_ms))
    return found


def not_of_others(
    catalog: Catalog, uuid: TableUuid, locations: Iterable[Location], known: Collection[Hashable] = ()
) -> list[Location]:
    """Return those of some metadata files that are no other table's or view's.

    In one folder there may be files of a table, or a view, that was dropped there without purge: they stay.

    Args:
        catalog: the table's warehouse.
        uuid: the table's.
        locations: the files.
        known: places of those that are known to be its own: they are not read.

    Raises:
        FilesUnavailable: one cannot be read now.
    """
    return [
        location
        for location in locations
        if place_of(location) in known or not _is_anothers(catalog, uuid, location)
    ]


def _is_anothers(catalog: Catalog, uuid: TableUuid, location: Location) -> bool:
    kinds: Sequence[Kind[Any]] = (TABLES, VIEWS)
    for kind in kinds:
        try:
            found: TableMetadata | ViewMetadata = catalog.read_file(kind, location)
            return found.uuid != uuid
        except Unavailable:
            raise
        except MetadataFileMissing:
            return True  # it was listed, and may be there again
        except IcetowerError:
            continue  # of the other kind, or what an upload left that was broken off
    return False


def _unreached(
    catalog: Catalog, pointer: Pointer, metadata: TableMetadata, written: Sequence[Location]
) -> list[Location]:
    """Return those of some manifests, lists and statistics that no state of a table reaches.

    Args:
        catalog: the table's warehouse.
        pointer: the table.
        metadata: as it is now.
        written: files that are older than the table's last commit. Who wrote them and has not landed by then never
            will: the pointer is not where that request had seen it. A request that plans anew after that has a day.
    """
    left = {path_hash(location): location for location in written}

    def note(location: str) -> bool:
        return left.pop(path_hash(location), None) is not None

    _note_current(catalog, metadata, note, left)
    if not left:
        return []
    try:
        check_may_delete(catalog, pointer, metadata)
        ReachedStates(catalog, note).add_table(pointer, metadata)
    except OrphansRefused as error:
        log.info("%d files of table %s may be orphans: %s", len(left), pointer.identifier, error)
        return []
    # A table that has moved meanwhile has its next turn tomorrow.
    return list(left.values()) if catalog.server.pointers.find_locked(pointer.id) == pointer else []


def _note_current(
    catalog: Catalog, metadata: TableMetadata, note: Callable[[str], object], left: Mapping[int, Location]
) -> None:
    """Note what the lists of a table name.

    Mostly nothing is left then, and no manifest has to be read.
    """
    for file in statistics_of(metadata):
        note(file.location)
    for snapshot in metadata.snapshots:
        note(snapshot.manifest_list or "")
    source = CheckedManifests(catalog, metadata)
    for snapshot in reversed(metadata.snapshots):
        if not left:
            return
        with suppress(*UNREADABLE):
            for manifest in source.manifests(snapshot):
                note(manifest.manifest_path)


def delete_orphans(
    catalog: Catalog,
    owner: Owner,
    doomed: Sequence[Location],
    hold: Hold,
    unanswered: set[Location] | None = None,
) -> None:
    """Delete files that nothing names, as far as `deletable` and other tables allow.

    Args:
        catalog: the table's warehouse.
        owner: the table.
        doomed: the files.
        hold: of the entry in the queue on whose behalf they go.
        unanswered: is given the file of which it is not known whether it will go.
    """
    if not doomed:
        return
    readers, deleted = OtherReaders(catalog, owner, hold.now_and_then), 0
    unanswered = set() if unanswered is None else unanswered
    for start in range(0, len(doomed), BATCH):
        hold.before_a_look()
        for location in readers.unread(deletable(catalog, owner, doomed[start : start + BATCH])):
            hold.now_and_then()
            try:
                catalog.files.delete(location)
            except AccessRefused:
                raise
            except BaseException:
                unanswered.add(location)
                raise
            deleted += 1
    log.info("deleted %d files of %s that no commit landed", deleted, owner.uuid)
