"""Cherry-picks that need a new snapshot: its manifests and manifest list are written here."""

from __future__ import annotations

from collections.abc import Sequence

from app.catalog.commits.files.snapshot_files import SnapshotFiles
from app.catalog.commits.files.staged_files import StagedFiles
from app.catalog.context.catalog import Catalog
from app.catalog.manifests.table_manifests import TableManifests
from app.engine.branches.picked_changes import (
    FileChanges,
    added_again,
    check_files_are_new,
    check_replaced_partitions,
    file_changes,
    picked_summary,
    without_files,
)
from app.engine.branches.ref_changes import PickKind
from app.engine.model.files.delete_files import is_deletion_vector, referenced_path
from app.engine.model.files.manifests import DataFile, ManifestContent, ManifestEntry, ManifestFile
from app.engine.model.ids import SnapshotId, SpecId
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.errors import InvalidRefMove


class CherryPicks:
    """Writes the new snapshots of cherry-picks to the files of one attempt."""

    def __init__(self, catalog: Catalog, files: StagedFiles) -> None:
        self._catalog = catalog
        self._files = files

    def reapply(self, base: TableMetadata, branch: str, picked: Snapshot, kind: PickKind) -> Snapshot:
        """Write a snapshot that repeats on a branch what another one did elsewhere.

        Raises:
            InvalidRefMove: the partitions it replaces have changed, a file it removes is not there, or one that it
                adds is.
            CorruptMetadata: a manifest cannot be read.
            FileMissing: a manifest is gone.
            FilesUnavailable: the store does not answer.
        """
        ref = base.snapshot_refs.get(branch)
        head = base.snapshots_by_id[ref.snapshot_id] if ref else None
        source = TableManifests(self._catalog, base)
        changes = file_changes(source, picked)
        if kind is PickKind.APPEND:
            changes = FileChanges(changes.added, ())
        else:
            head_id = head.snapshot_id if head else None
            check_replaced_partitions(source, base, head_id, picked, changes)
        if head is not None:
            check_files_are_new(source, base, head, picked, changes)
        new = SnapshotFiles(self._catalog, self._files, base)
        snapshot_id = new.new_id()
        kept, removed_vectors = _kept_manifests(source, new, head, snapshot_id, changes.removed)
        manifests = [*_added_manifests(new, snapshot_id, changes.added), *kept]
        summary = picked_summary(kind, picked, head, changes, removed_vectors)
        return new.write_snapshot(head, snapshot_id, manifests, summary)


def _kept_manifests(
    source: TableManifests,
    new: SnapshotFiles,
    head: Snapshot | None,
    snapshot_id: SnapshotId,
    removed: Sequence[DataFile],
) -> tuple[list[ManifestFile], list[DataFile]]:
    """Return the head's manifests without some data files, and the vectors that went along."""
    if head is None or not removed:
        return (list(source.manifests(head)) if head is not None else []), []
    doomed, paths = {file.key for file in removed}, {file.file_path for file in removed}
    missing = set(doomed)
    kept: list[ManifestFile] = []
    vectors: list[DataFile] = []
    for manifest in source.manifests(head):
        entries = list(source.entries(manifest))
        if manifest.content is ManifestContent.DATA:
            going = {entry.file.key for entry in entries if entry.is_live} & doomed
            missing -= going
        else:
            # As in the reference, a deletion vector goes with its file: no later file of this name may meet it.
            found = [
                entry.file
                for entry in entries
                if entry.is_live and is_deletion_vector(entry.file) and referenced_path(entry.file) in paths
            ]
            vectors += found
            going = {file.key for file in found}
        if not going:
            kept.append(manifest)
            continue
        rest = without_files(entries, going, snapshot_id)
        kept.append(new.write_manifest(manifest.partition_spec_id, snapshot_id, rest, manifest.content))
    if missing:
        names = sorted(path for path, _ in missing)
        raise InvalidRefMove(f"Missing required files to delete: {', '.join(names[:5])}")
    return kept, vectors


def _added_manifests(
    new: SnapshotFiles, snapshot_id: SnapshotId, added: Sequence[DataFile]
) -> list[ManifestFile]:
    by_spec: dict[SpecId, list[ManifestEntry]] = {}
    for file in added:
        by_spec.setdefault(file.spec_id, []).append(added_again(file))
    return [new.write_manifest(spec_id, snapshot_id, entries) for spec_id, entries in by_spec.items()]
