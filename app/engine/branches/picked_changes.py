"""What a cherry-pick repeats of a snapshot: files, entries of new manifests, summary."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from app.engine.branches.ref_changes import PUBLISHED_WAP_ID, SOURCE_SNAPSHOT_ID, WAP_ID, PickKind
from app.engine.change.summaries import added_counts, changed_partition_count, removed_counts, totals_after
from app.engine.model.ancestry import ancestors
from app.engine.model.files.manifests import (
    DataFile,
    EntryStatus,
    FileKey,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    ManifestSource,
)
from app.engine.model.ids import SnapshotId
from app.engine.model.snapshot import REPLACE_PARTITIONS, Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.engine.selection.files import PartitionSelection
from app.errors import InvalidRefMove


@dataclass(frozen=True, slots=True)
class FileChanges:
    """The data files that a snapshot added and removed."""

    added: tuple[DataFile, ...]
    removed: tuple[DataFile, ...]


def file_changes(source: ManifestSource, snapshot: Snapshot) -> FileChanges:
    """Return the data files that a snapshot itself added and removed.

    Raises:
        CorruptMetadata, FileMissing, FilesUnavailable: a manifest cannot be read.
    """
    # As in the reference: what is added or deleted in a manifest that this snapshot wrote, this snapshot changed.
    added, removed = [], []
    for manifest in _own_manifests(source, snapshot):
        for entry in source.entries(manifest):
            if entry.status is EntryStatus.ADDED:
                added.append(entry.file)
            elif entry.status is EntryStatus.DELETED:
                removed.append(entry.file)
    return FileChanges(tuple(added), tuple(removed))


def _own_manifests(source: ManifestSource, snapshot: Snapshot) -> Iterator[ManifestFile]:
    for manifest in source.manifests(snapshot):
        if manifest.content is ManifestContent.DATA and manifest.added_snapshot_id == snapshot.snapshot_id:
            yield manifest


def written_since(
    source: ManifestSource,
    metadata: TableMetadata,
    head_id: SnapshotId | None,
    picked: Snapshot,
    changes: FileChanges,
) -> Iterator[tuple[Snapshot, DataFile]]:
    """Yield files added to the partitions that a picked overwrite replaces, newest first.

    It looks at the snapshots after the parent of the picked one.
    """
    replaced = PartitionSelection(file.partition_key for file in changes.added)
    for snapshot in ancestors(metadata, head_id):
        if snapshot.snapshot_id == picked.parent_snapshot_id:
            return
        for manifest in _own_manifests(source, snapshot):
            if manifest.added_files_count == 0 or not replaced.may_hold(manifest):
                continue
            for entry in replaced.live(manifest, source.entries(manifest)):
                if entry.status is EntryStatus.ADDED:
                    yield snapshot, entry.file


def changed_partition(snapshot: Snapshot, file: DataFile) -> str:
    """Return the reference's sentence on a file that keeps an overwrite from being picked."""
    return (
        f"Cannot cherry-pick replace partitions with changed partition: snapshot {snapshot.snapshot_id} "
        f"added {file.file_path}"
    )


def check_replaced_partitions(
    source: ManifestSource,
    metadata: TableMetadata,
    head_id: SnapshotId | None,
    picked: Snapshot,
    changes: FileChanges,
) -> None:
    """Check that the partitions that a picked overwrite replaces were not written since.

    Raises:
        InvalidRefMove: something was.
    """
    newest = next(written_since(source, metadata, head_id, picked, changes), None)
    if newest is not None:
        raise InvalidRefMove(changed_partition(*newest))


def check_files_are_new(
    source: ManifestSource, metadata: TableMetadata, head: Snapshot, picked: Snapshot, changes: FileChanges
) -> None:
    """Check that a branch has none of the files that a pick adds.

    The snapshot that picked them before may have been expired. Where the branch still shows everything since the
    parent of the picked snapshot, nothing has to be read to know.

    Raises:
        InvalidRefMove: it has one.
    """
    if any(item.snapshot_id == picked.parent_snapshot_id for item in ancestors(metadata, head.snapshot_id)):
        return
    added = {file.file_path for file in changes.added}
    partitions = PartitionSelection(file.partition_key for file in changes.added)
    for manifest in source.manifests(head):
        if manifest.content is not ManifestContent.DATA or not partitions.may_hold(manifest):
            continue
        for entry in partitions.live(manifest, source.entries(manifest)):
            if entry.file.file_path in added:
                raise InvalidRefMove(
                    f"Cannot cherrypick snapshot {picked.snapshot_id}: its file {entry.file.file_path} is there "
                    "already, as if it was picked before by a snapshot that has been expired"
                )


def added_again(file: DataFile) -> ManifestEntry:
    """Return the entry of an added file; it inherits the snapshot's numbers and row ids."""
    return ManifestEntry(EntryStatus.ADDED, None, None, None, replace(file, first_row_id=None))


def without_files(
    entries: Iterable[ManifestEntry], doomed: Container[FileKey], snapshot_id: SnapshotId
) -> list[ManifestEntry]:
    """Return a manifest's entries, rewritten by a snapshot that removes some files."""
    kept = []
    for entry in entries:
        if not entry.is_live:
            continue
        if entry.file.key in doomed:
            kept.append(replace(entry, status=EntryStatus.DELETED, snapshot_id=snapshot_id))
        else:
            kept.append(replace(entry, status=EntryStatus.EXISTING))
    return kept


def picked_summary(
    kind: PickKind,
    picked: Snapshot,
    head: Snapshot | None,
    changes: FileChanges,
    removed_vectors: Sequence[DataFile],
) -> dict[str, str]:
    """Return the summary of the snapshot that repeats a picked one on top of another head."""
    removed = (*changes.removed, *removed_vectors)
    theirs = picked.summary or {}
    summary = {
        "operation": picked.operation or "append",
        SOURCE_SNAPSHOT_ID: str(picked.snapshot_id),
    }
    if WAP_ID in theirs:
        summary[PUBLISHED_WAP_ID] = theirs[WAP_ID]
    if kind is PickKind.REPLACE_PARTITIONS:
        summary[REPLACE_PARTITIONS] = "true"
    summary.update(added_counts(changes.added))
    summary.update(removed_counts(removed))
    summary.update(changed_partition_count((*changes.added, *removed)))
    return {**summary, **totals_after(head, changes.added, removed)}
