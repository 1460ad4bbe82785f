"""The single checks: each yields one kind of conflict with concurrent snapshots."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from app.engine.conflicts.concurrent import (
    ADDING_DATA,
    ADDING_DELETES,
    ADDING_VECTORS,
    REMOVING_DATA,
    REWRITING_DATA,
    Concurrent,
    Operations,
)
from app.engine.conflicts.operations import RemovedFile
from app.engine.conflicts.report import Conflict, ConflictKind
from app.engine.conflicts.scopes import Scope
from app.engine.model.files.delete_files import is_deletion_vector
from app.engine.model.files.manifests import (
    DataFile,
    EntryStatus,
    FileContent,
    FileKey,
    ManifestContent,
    ManifestEntry,
)
from app.engine.model.ids import Location, SnapshotId
from app.engine.selection.deletes import DeleteIndex
from app.engine.selection.files import FileSelection

_NOT_THERE = "Missing required files to delete: {}"


def conflict_of(kind: ConflictKind, message: str, entry: ManifestEntry) -> Conflict:
    """Return a conflict with a file that a concurrent snapshot added or removed."""
    return Conflict.with_file(kind, message, entry.snapshot_id, entry.file)


def unknown_history(concurrent: Concurrent) -> Iterator[Conflict]:
    """Yield a conflict if the base is not an ancestor: what happened since is unknown."""
    if not concurrent.is_known:
        message = (
            f"Cannot determine history between starting snapshot {concurrent.base_id} "
            f"and the last known ancestor {concurrent.last_known_id}"
        )
        yield Conflict(ConflictKind.HISTORY, message, concurrent.last_known_id)


def no_ancestor(concurrent: Concurrent) -> Iterator[Conflict]:
    """Yield a conflict if the base is not an ancestor of the head."""
    is_ancestor = concurrent.base_id in {
        concurrent.head_id,
        *(snapshot.parent_snapshot_id for snapshot in concurrent.snapshots),
    }
    if concurrent.base_id is not None and not is_ancestor:
        message = f"Snapshot {concurrent.base_id} is not an ancestor of {concurrent.head_id}"
        yield Conflict(ConflictKind.HISTORY, message, concurrent.head_id)


def added_data_files(concurrent: Concurrent, scope: Scope) -> Iterator[Conflict]:
    """Yield data files in scope that were added."""
    ids = concurrent.ids(ADDING_DATA)
    for _, manifest in concurrent.manifests(ManifestContent.DATA, ADDING_DATA):
        if manifest.added_files_count == 0 or not scope.files.may_hold(manifest):
            continue
        for entry in scope.files.live(manifest, concurrent.entries(manifest)):
            if entry.status is EntryStatus.ADDED and entry.snapshot_id in ids:
                path = entry.file.file_path
                message = f"Found conflicting files that can contain records matching {scope.words}: {path}"
                yield conflict_of(ConflictKind.ADDED_DATA, message, entry)


def removed_data_files(
    concurrent: Concurrent, scope: Scope, operations: Operations = REMOVING_DATA
) -> Iterator[Conflict]:
    """Yield data files in scope that were removed."""
    for entry in _removed(concurrent, scope, operations):
        if scope.files.may_match(entry.file):
            message = (
                "Found conflicting deleted files that can contain records matching "
                f"{scope.words}: {entry.file.file_path}"
            )
            yield conflict_of(ConflictKind.REMOVED_DATA, message, entry)


def gone_data_files(
    concurrent: Concurrent, wanted: frozenset[Location], scope: Scope | None, *, is_after_deletes: bool
) -> Iterator[Conflict]:
    """Yield wanted files that were removed; by `delete` snapshots only if `is_after_deletes`."""
    for entry in _removed(concurrent, scope, REMOVING_DATA if is_after_deletes else REWRITING_DATA):
        file = entry.file
        if file.file_path in wanted and (scope is None or scope.files.may_match(file)):
            message = f"Cannot commit, missing data files: {file.file_path}"
            yield conflict_of(ConflictKind.MISSING_DATA_FILE, message, entry)


def _removed(concurrent: Concurrent, scope: Scope | None, operations: Operations) -> Iterator[ManifestEntry]:
    """Yield the removed data files of manifests that may have some in scope."""
    ids = concurrent.ids(operations)
    for _, manifest in concurrent.manifests(ManifestContent.DATA, operations):
        if manifest.deleted_files_count != 0 and (scope is None or scope.files.may_hold(manifest)):
            for entry in concurrent.entries(manifest):
                if entry.status is EntryStatus.DELETED and entry.snapshot_id in ids:
                    yield entry


def _new_deletes(concurrent: Concurrent, scope: Scope | None) -> Iterator[ManifestEntry]:
    """Yield the entries of live delete files in scope that are newer than the base."""
    if not concurrent.metadata.format.has_delete_files:
        return
    for _, manifest in concurrent.manifests(ManifestContent.DELETES, ADDING_DELETES):
        if not manifest.may_have_live_files or not (scope is None or scope.files.may_hold(manifest)):
            continue
        entries = concurrent.entries(manifest)
        for entry in entries if scope is None else scope.files.live(manifest, entries):
            if entry.is_live and (entry.data_sequence_number or 0) > concurrent.base_sequence:
                yield entry


def new_delete_files(concurrent: Concurrent, scope: Scope) -> Iterator[Conflict]:
    """Yield delete files in scope that are newer than the base."""
    for entry in _new_deletes(concurrent, scope):
        message = (
            "Found new conflicting delete files that can apply to records matching "
            f"{scope.words}: {entry.file.file_path}"
        )
        yield conflict_of(ConflictKind.NEW_DELETES, message, entry)


def new_deletes_for_files(
    concurrent: Concurrent,
    removed: Sequence[RemovedFile],
    scope: Scope | None = None,
    *,
    still_subject: Collection[Location] = (),
) -> Iterator[Conflict]:
    """Yield newer delete files that may apply to files that the operation removes.

    Whether rows were read does not matter: those that were not are copied from such a file as well, and would be back.

    Args:
        scope: only of files in it is a second deletion vector a conflict whatever the operation removes.
        still_subject: files whose rows keep an age and a spec at which equality deletes still apply to them.
    """
    if not removed:
        return
    metadata = concurrent.metadata
    deletes = DeleteIndex(_new_deletes(concurrent, None), metadata.partition_specs, metadata.schemas)
    yield from _surplus_vectors(deletes, scope)
    files = _located(concurrent, removed) if deletes.needs_partitions else {}
    for item in removed:
        with_equality = item.path not in still_subject
        word = "delete" if with_equality else "position delete"
        file = item.file or files.get(item.path)
        applying = (
            deletes.deletes_of_path(item.path)
            if file is None
            else deletes.deletes_of(file, concurrent.base_sequence)
        )
        for entry in applying:
            if not with_equality and entry.file.content is FileContent.EQUALITY_DELETES:
                continue
            message = f"Cannot commit, found new {word} for replaced data file: {item.path}"
            yield conflict_of(ConflictKind.NEW_DELETES_FOR_FILE, message, entry)


def _surplus_vectors(deletes: DeleteIndex, scope: Scope | None) -> Iterator[Conflict]:
    # The reference gives up when it finds a second deletion vector of any data file in scope.
    for entry in deletes.surplus_vectors():
        if scope is not None and not scope.files.may_match(entry.file):
            continue
        message = f"Cannot index multiple deletion vectors for {entry.file.referenced_data_file}"
        yield conflict_of(ConflictKind.NEW_DELETES_FOR_FILE, message, entry)


def _located(concurrent: Concurrent, removed: Iterable[RemovedFile]) -> dict[Location, DataFile]:
    """Return the files of the base of which the operation only names the path.

    Where the base has expired, the head has those that are still there.
    """
    wanted = {item.path for item in removed if item.file is None}
    found: dict[Location, DataFile] = {}
    is_there = concurrent.base_id in concurrent.metadata.snapshots_by_id
    snapshot_id = concurrent.base_id if is_there else concurrent.head_id
    for entry in concurrent.live_entries_at(snapshot_id, ManifestContent.DATA) if wanted else ():
        if entry.file.file_path in wanted:
            found[entry.file.file_path] = entry.file
            if len(found) == len(wanted):
                break
    return found


def missing_files(
    concurrent: Concurrent, removed: Sequence[RemovedFile], content: ManifestContent
) -> Iterator[Conflict]:
    """Yield files that the operation removes and that are gone already."""
    if not removed:
        return
    kind = (
        ConflictKind.MISSING_DATA_FILE
        if content is ManifestContent.DATA
        else ConflictKind.MISSING_DELETE_FILE
    )
    if not concurrent.is_known or concurrent.head_id is None:
        # Without a history only the head itself shows what is there.
        there = {entry.file.key for entry in concurrent.live_entries_at(concurrent.head_id, content)}
        paths = {path for path, _ in there}
        for item in removed:
            if item.path not in paths if item.file is None else item.file.key not in there:
                yield Conflict(kind, _NOT_THERE.format(item.path), None, item.path)
        return
    gone = {
        entry.file.key: entry
        for entry in _last_changes(concurrent, content)
        if entry.status is EntryStatus.DELETED
    }
    by_path = {path: entry for (path, _), entry in gone.items()}
    for item in removed:
        entry_or_none = by_path.get(item.path) if item.file is None else gone.get(item.file.key)
        if entry_or_none is not None:
            yield conflict_of(kind, _NOT_THERE.format(item.path), entry_or_none)


def _last_changes(concurrent: Concurrent, content: ManifestContent) -> Iterable[ManifestEntry]:
    """Return what last happened to each file; a snapshot removes files before it adds some."""
    by_snapshot: dict[SnapshotId, list[ManifestEntry]] = {}
    for snapshot, manifest in concurrent.manifests(content):
        if manifest.deleted_files_count != 0 or manifest.added_files_count != 0:
            by_snapshot.setdefault(snapshot.snapshot_id, []).extend(
                entry for entry in concurrent.entries(manifest) if entry.snapshot_id == snapshot.snapshot_id
            )
    last: dict[FileKey, ManifestEntry] = {}
    for entries in by_snapshot.values():
        for status in (EntryStatus.DELETED, EntryStatus.ADDED):
            last.update((entry.file.key, entry) for entry in entries if entry.status is status)
    return last.values()


def _came_in(concurrent: Concurrent) -> Iterator[ManifestEntry]:
    """Yield added data files that still exist; without a history, all that exist."""
    if not concurrent.is_known:
        return concurrent.live_entries_at(concurrent.head_id, ManifestContent.DATA)
    return (
        entry
        for entry in _last_changes(concurrent, ManifestContent.DATA)
        if entry.status is EntryStatus.ADDED
    )


def partially_matching_files(
    concurrent: Concurrent, matching: FileSelection, removed: Sequence[RemovedFile], words: str
) -> Iterator[Conflict]:
    """Yield added data files of which a filter may match some rows and not others."""
    named = {item.path for item in removed}
    for entry in _came_in(concurrent):
        file = entry.file
        if file.file_path not in named and matching.matches_in_part(file):
            message = (
                f"Cannot delete file where some, but not all, rows match filter {words}: {file.file_path}"
            )
            yield conflict_of(ConflictKind.PARTIAL_MATCH, message, entry)


def occupied_partitions(concurrent: Concurrent, scope: Scope) -> Iterator[Conflict]:
    """Yield files that were added to partitions that the operation expects to be empty."""
    for entry in _came_in(concurrent):
        if scope.files.may_match(entry.file):
            message = (
                f"Cannot commit file that conflicts with existing partition: {scope.words}, "
                f"which has {entry.file.file_path}"
            )
            yield conflict_of(ConflictKind.PARTITION_NOT_EMPTY, message, entry)


def added_vectors(
    concurrent: Concurrent, targets: frozenset[Location], scope: Scope | None
) -> Iterator[Conflict]:
    """Yield added deletion vectors of data files that the operation adds vectors for, too."""
    if not targets:
        return
    ids = concurrent.ids(ADDING_VECTORS)
    for _, manifest in concurrent.manifests(ManifestContent.DELETES, ADDING_VECTORS):
        for entry in concurrent.entries(manifest):
            file = entry.file
            if (
                entry.is_live
                and is_deletion_vector(file)
                and file.referenced_data_file in targets
                and entry.snapshot_id in ids
                and (scope is None or scope.files.may_match(file))
            ):
                message = f"Found concurrently added deletion vector for {file.referenced_data_file}: {file.file_path}"
                yield conflict_of(ConflictKind.ADDED_VECTOR, message, entry)


def added_outside_filter(
    added: Sequence[DataFile], matching: FileSelection, words: str
) -> Iterator[Conflict]:
    """Yield files that the operation adds and that may have rows outside of its own filter."""
    for file in added:
        if not matching.all_match(file):
            message = f"Cannot append file with rows that do not match filter: {words}: {file.file_path}"
            yield Conflict.with_file(ConflictKind.FILTER_MISMATCH, message, None, file)


def referenced_and_removed(
    removed: Sequence[RemovedFile], referenced: frozenset[Location]
) -> Iterator[Conflict]:
    """Yield files that the operation removes and that its own delete files refer to."""
    for item in removed:
        if item.path in referenced:
            message = f"Cannot delete data files [{item.path}] that are referenced by new delete files"
            yield Conflict(ConflictKind.REFERENCED_AND_REMOVED, message, None, item.path)


def missing_manifests(concurrent: Concurrent, removed: Sequence[Location]) -> Iterator[Conflict]:
    """Yield manifests that the operation replaces and that are gone already."""
    there = {manifest.manifest_path for manifest in concurrent.manifests_at_head()}
    for path in removed:
        if path not in there:
            message = (
                f"Deleted manifest {path} could not be found in the latest snapshot {concurrent.head_id}"
            )
            yield Conflict(ConflictKind.MISSING_MANIFEST, message, None, path)
