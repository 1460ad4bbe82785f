"""The operation of a snapshot, derived from its summary and its own manifests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from app.engine.conflicts import operations as ops
from app.engine.model.files.delete_files import is_deletion_vector, referenced_path
from app.engine.model.files.manifests import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestSource,
)
from app.engine.model.ids import Location
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata


def operation_of(metadata: TableMetadata, source: ManifestSource, snapshot: Snapshot) -> ops.Operation:
    """Return the operation that made a snapshot out of its parent, as far as its files show.

    They do not show which rows it has read: new rows only conflict in partitions that it replaces as a whole.

    Args:
        metadata: the table, which need not have the snapshot yet.

    Raises:
        InvalidMetadata, FileMissing, FilesUnavailable: a manifest cannot be read.
    """
    kind = snapshot.operation
    if kind == "append":
        return ops.Append()
    files = _OwnFiles(source, snapshot)
    if kind == "replace":
        if not files.removed and not files.removed_deletes:
            return ops.RewriteManifests(_removed_manifests(metadata, source, snapshot))
        number, moved = _kept_sequence_number(files, snapshot), _moved_files(metadata, files)
        return ops.RewriteFiles(files.removed, files.removed_deletes, number, moved)
    if snapshot.replaces_partitions:
        partitions = tuple((entry.file.spec_id, entry.file.partition) for entry in files.added)
        return ops.ReplacePartitions(partitions, checks_new_data=True, checks_new_deletes=True)
    if files.added_deletes:
        return replace(
            row_delta_of([entry.file for entry in files.added_deletes]),
            removed_files=files.removed,
            removed_delete_files=files.removed_deletes,
            checks_new_deletes=True,
        )
    if kind == "delete":
        return ops.Delete(removed_files=files.removed, checks_existence=True)
    return ops.Overwrite(
        removed_files=files.removed, removed_delete_files=files.removed_deletes, checks_new_deletes=True
    )


def row_delta_of(added_deletes: Sequence[DataFile]) -> ops.RowDelta:
    """Return the operation that adds delete files, for data files that must all be there."""
    named = [
        (path, is_deletion_vector(file))
        for file in added_deletes
        if file.content is FileContent.POSITION_DELETES
        if (path := referenced_path(file)) is not None
    ]
    return ops.RowDelta(
        conflict_filter=None,
        referenced_files=frozenset(path for path, _ in named),
        vector_targets=frozenset(path for path, is_vector in named if is_vector),
        checks_deleted_files=True,
    )


class _OwnFiles:
    """The files that a snapshot added and removed, by its own manifests."""

    def __init__(self, source: ManifestSource, snapshot: Snapshot) -> None:
        self.added: list[ManifestEntry] = []
        self.added_deletes: list[ManifestEntry] = []
        removed: list[ops.RemovedFile] = []
        removed_deletes: list[ops.RemovedFile] = []
        for manifest in source.manifests(snapshot):
            if manifest.added_snapshot_id != snapshot.snapshot_id:
                continue
            is_data = manifest.content is ManifestContent.DATA
            for entry in source.entries(manifest):
                if entry.snapshot_id != snapshot.snapshot_id:
                    continue
                if entry.status is EntryStatus.ADDED:
                    (self.added if is_data else self.added_deletes).append(entry)
                elif entry.status is EntryStatus.DELETED:
                    (removed if is_data else removed_deletes).append(ops.RemovedFile.of(entry.file))
        self.removed: tuple[ops.RemovedFile, ...] = tuple(removed)
        self.removed_deletes: tuple[ops.RemovedFile, ...] = tuple(removed_deletes)


def _kept_sequence_number(files: _OwnFiles, snapshot: Snapshot) -> int | None:
    """Return the data sequence number that rewritten files kept; None if they got a new one."""
    numbers = [entry.data_sequence_number for entry in files.added if entry.data_sequence_number is not None]
    kept = [number for number in numbers if number < snapshot.sequence]
    return min(kept) if kept and len(kept) == len(numbers) else None


def _moved_files(metadata: TableMetadata, files: _OwnFiles) -> frozenset[Location]:
    """Return removed files whose rows may get a spec where deletes of theirs do not apply."""
    now = {entry.file.spec_id for entry in files.added}
    moved: set[Location] = set()
    for item in files.removed:
        if item.file is not None and now - {item.file.spec_id}:
            spec = metadata.find_spec(item.file.spec_id)
            # Deletes of an unpartitioned spec apply everywhere.
            if spec is None or not spec.is_unpartitioned:
                moved.add(item.path)
    return frozenset(moved)


def _removed_manifests(
    metadata: TableMetadata, source: ManifestSource, snapshot: Snapshot
) -> tuple[Location, ...]:
    parent_id = snapshot.parent_snapshot_id
    parent = None if parent_id is None else metadata.snapshots_by_id.get(parent_id)
    kept = {manifest.manifest_path for manifest in source.manifests(snapshot)}
    there = source.manifests(parent) if parent else ()
    return tuple(manifest.manifest_path for manifest in there if manifest.manifest_path not in kept)
