"""What a snapshot changed, as another branch can repeat it: its files, the new manifests' entries, the summary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from app.engine.change.ref_changes import (
    PUBLISHED_WAP_ID,
    REPLACE_PARTITIONS,
    SOURCE_SNAPSHOT_ID,
    WAP_ID,
    PickKind,
)
from app.engine.model.ancestry import ancestors
from app.engine.model.ids import Location, SnapshotId
from app.engine.model.manifests import (
    DataFile,
    EntryStatus,
    ManifestContent,
    ManifestEntry,
    ManifestSource,
)
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.errors import InvalidRefMove


@dataclass(frozen=True, slots=True)
class FileChanges:
    """The data files that a snapshot added and removed."""

    added: tuple[DataFile, ...]
    removed: tuple[DataFile, ...]


def file_changes(source: ManifestSource, snapshot: Snapshot) -> FileChanges:
    """Return the data files that a snapshot itself added and removed.

    Raises:
        CorruptMetadata: a manifest cannot be read.
        FileMissing: a manifest is gone.
        FilesUnavailable: the store does not answer.
    """
    added, removed = [], []
    for entry in _own_entries(source, snapshot):
        if entry.status is EntryStatus.ADDED:
            added.append(entry.file)
        elif entry.status is EntryStatus.DELETED:
            removed.append(entry.file)
    return FileChanges(tuple(added), tuple(removed))


def _own_entries(source: ManifestSource, snapshot: Snapshot) -> Iterable[ManifestEntry]:
    # As in the reference: what a manifest written by this snapshot says was added or deleted, it added or deleted.
    for manifest in source.manifests(snapshot):
        if manifest.content is ManifestContent.DATA and manifest.added_snapshot_id == snapshot.snapshot_id:
            yield from source.entries(manifest)


def check_replaced_partitions(
    source: ManifestSource,
    metadata: TableMetadata,
    head_id: SnapshotId | None,
    picked: Snapshot,
    changes: FileChanges,
) -> None:
    """Check that nothing was written since into the partitions that a picked overwrite replaces.

    Raises:
        InvalidRefMove: something was.
    """
    replaced = {(file.spec_id, file.partition) for file in changes.added}
    for snapshot in ancestors(metadata, head_id):
        if snapshot.snapshot_id == picked.parent_snapshot_id:
            return
        for file in file_changes(source, snapshot).added:
            if (file.spec_id, file.partition) in replaced:
                raise InvalidRefMove(
                    f"Cannot cherry-pick replace partitions with changed partition: snapshot "
                    f"{snapshot.snapshot_id} added {file.file_path}"
                )


def added_again(file: DataFile) -> ManifestEntry:
    """Return the entry of a file that a new snapshot adds; its numbers and row ids will be the new snapshot's."""
    return ManifestEntry(EntryStatus.ADDED, None, None, None, replace(file, first_row_id=None))


def without_files(
    entries: Iterable[ManifestEntry], doomed: Mapping[Location, DataFile], snapshot_id: SnapshotId
) -> list[ManifestEntry]:
    """Return a manifest's entries as a snapshot that removes some files writes them anew."""
    kept = []
    for entry in entries:
        if not entry.is_live:
            continue
        if entry.file.file_path in doomed:
            kept.append(replace(entry, status=EntryStatus.DELETED, snapshot_id=snapshot_id))
        else:
            kept.append(replace(entry, status=EntryStatus.EXISTING))
    return kept


def picked_summary(
    kind: PickKind, picked: Snapshot, head: Snapshot | None, changes: FileChanges
) -> dict[str, str]:
    """Return the summary of the snapshot that repeats a picked one on top of another head."""
    theirs = picked.summary or {}
    summary = {
        "operation": theirs.get("operation", "append"),
        SOURCE_SNAPSHOT_ID: str(picked.snapshot_id),
    }
    if WAP_ID in theirs:
        summary[PUBLISHED_WAP_ID] = theirs[WAP_ID]
    if kind is PickKind.REPLACE_PARTITIONS:
        summary[REPLACE_PARTITIONS] = "true"
    summary.update(_counts("added-data-files", "added-records", "added-files-size", changes.added))
    summary.update(_counts("deleted-data-files", "deleted-records", "removed-files-size", changes.removed))
    partitions = {(file.spec_id, file.partition) for file in (*changes.added, *changes.removed)}
    summary["changed-partition-count"] = str(len(partitions))
    return {**summary, **_totals(head, changes)}


def _counts(files_key: str, records_key: str, size_key: str, files: Sequence[DataFile]) -> dict[str, str]:
    if not files:
        return {}
    return {
        files_key: str(len(files)),
        records_key: str(sum(file.record_count for file in files)),
        size_key: str(sum(file.file_size_in_bytes for file in files)),
    }


def _totals(head: Snapshot | None, changes: FileChanges) -> dict[str, str]:
    """Return the totals that can be told: those of the head, moved on; one that the head does not have stays away."""
    moves = {
        "total-records": sum(file.record_count for file in changes.added)
        - sum(file.record_count for file in changes.removed),
        "total-data-files": len(changes.added) - len(changes.removed),
        "total-files-size": sum(file.file_size_in_bytes for file in changes.added)
        - sum(file.file_size_in_bytes for file in changes.removed),
        "total-delete-files": 0,
        "total-position-deletes": 0,
        "total-equality-deletes": 0,
    }
    before = dict.fromkeys(moves, "0") if head is None else head.summary or {}
    totals = {}
    for key, change in moves.items():
        known = before.get(key, "")
        if known.isascii() and known.isdigit():
            totals[key] = str(max(0, int(known) + change))
    return totals
