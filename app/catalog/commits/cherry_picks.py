"""Cherry-picks that need a new snapshot: its manifests and manifest list are written here."""

from __future__ import annotations

from collections.abc import Sequence

from app.catalog.commits.staged_files import StagedFiles
from app.catalog.context.catalog import Catalog
from app.catalog.manifests.table_manifests import TableManifests
from app.engine.branches.picked_changes import (
    FileChanges,
    added_again,
    check_replaced_partitions,
    file_changes,
    picked_summary,
    without_files,
)
from app.engine.branches.ref_changes import PickKind
from app.engine.model.ids import Location, SnapshotId, SpecId
from app.engine.model.manifests import DataFile, ManifestContent, ManifestEntry, ManifestFile
from app.engine.model.partition_values import schema_with_sources
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.errors import CorruptMetadata, InvalidRefMove
from app.formats.manifests.lists import assign_numbers, write_manifest_list
from app.formats.manifests.writer import write_manifest
from app.formats.metadata.names import metadata_folder


class CherryPicks:
    """Writes the new snapshots of cherry-picks to the files of one attempt."""

    def __init__(self, catalog: Catalog, files: StagedFiles) -> None:
        self._catalog = catalog
        self._files = files
        self._source = TableManifests(catalog)

    def reapply(self, base: TableMetadata, branch: str, picked: Snapshot, kind: PickKind) -> Snapshot:
        """Write a snapshot that repeats on a branch what another one did elsewhere.

        Raises:
            InvalidRefMove: the partitions it replaces have changed, or a file it removes is not there.
            CorruptMetadata: a manifest cannot be read.
            FileMissing: a manifest is gone.
            FilesUnavailable: the store does not answer.
        """
        ref = base.snapshot_refs.get(branch)
        head = base.snapshots_by_id[ref.snapshot_id] if ref else None
        changes = file_changes(self._source, picked)
        if kind is PickKind.APPEND:
            changes = FileChanges(changes.added, ())
        else:
            head_id = head.snapshot_id if head else None
            check_replaced_partitions(self._source, base, head_id, picked, changes)
        snapshot_id = self._new_snapshot_id(base)
        manifests = [
            *self._added_manifests(base, snapshot_id, changes.added),
            *self._kept_manifests(base, head, snapshot_id, changes.removed),
        ]
        return self._snapshot(base, head, snapshot_id, manifests, picked_summary(kind, picked, head, changes))

    def _new_snapshot_id(self, base: TableMetadata) -> SnapshotId:
        while True:
            number = int(self._catalog.server.new_uuid().replace("-", ""), 16)
            snapshot_id = SnapshotId((number >> 64 ^ number) & (1 << 63) - 1)
            if snapshot_id and snapshot_id not in base.snapshots_by_id:
                return snapshot_id

    def _added_manifests(
        self, base: TableMetadata, snapshot_id: SnapshotId, added: Sequence[DataFile]
    ) -> list[ManifestFile]:
        by_spec: dict[SpecId, list[ManifestEntry]] = {}
        for file in added:
            by_spec.setdefault(file.spec_id, []).append(added_again(file))
        return [
            self._write_manifest(base, spec_id, snapshot_id, entries) for spec_id, entries in by_spec.items()
        ]

    def _kept_manifests(
        self,
        base: TableMetadata,
        head: Snapshot | None,
        snapshot_id: SnapshotId,
        removed: Sequence[DataFile],
    ) -> list[ManifestFile]:
        if head is None:
            return []
        doomed = {file.file_path: file for file in removed}
        missing = set(doomed)
        kept = []
        for manifest in self._source.manifests(head):
            if not doomed or manifest.content is not ManifestContent.DATA:
                kept.append(manifest)
                continue
            entries = list(self._source.entries(manifest))
            found = {entry.file.file_path for entry in entries if entry.is_live} & doomed.keys()
            if not found:
                kept.append(manifest)
                continue
            missing -= found
            rewritten = without_files(entries, doomed, snapshot_id)
            kept.append(self._write_manifest(base, manifest.partition_spec_id, snapshot_id, rewritten))
        if missing:
            raise InvalidRefMove(f"Missing required files to delete: {', '.join(sorted(missing)[:5])}")
        return kept

    def _write_manifest(
        self, base: TableMetadata, spec_id: SpecId, snapshot_id: SnapshotId, entries: Sequence[ManifestEntry]
    ) -> ManifestFile:
        spec = base.find_spec(spec_id)
        if spec is None:
            raise CorruptMetadata(
                base.location, f"a manifest has partition spec {spec_id}, which the table has not"
            )
        written = write_manifest(
            entries,
            schema=schema_with_sources(base, spec),
            spec=spec,
            format_version=base.format_version,
            content=ManifestContent.DATA,
            snapshot_id=snapshot_id,
        )
        location = Location(
            f"{metadata_folder(base.location, base.properties)}/{self._catalog.server.new_uuid()}-m0.avro"
        )
        self._files.write(location, written.content)
        return written.at(location)

    def _snapshot(
        self,
        base: TableMetadata,
        head: Snapshot | None,
        snapshot_id: SnapshotId,
        manifests: Sequence[ManifestFile],
        summary: dict[str, str],
    ) -> Snapshot:
        sequence_number = base.last_sequence + 1 if base.format.has_sequence_numbers else 0
        first_row_id = (base.next_row_id or 0) if base.format.has_row_lineage else None
        parent_id = head.snapshot_id if head else None
        content = write_manifest_list(
            manifests,
            format_version=base.format_version,
            snapshot_id=snapshot_id,
            parent_snapshot_id=parent_id,
            sequence_number=sequence_number,
            first_row_id=first_row_id,
        )
        location = Location(
            f"{metadata_folder(base.location, base.properties)}/"
            f"snap-{snapshot_id}-1-{self._catalog.server.new_uuid()}.avro"
        )
        self._files.write(location, content)
        _, next_row_id = assign_numbers(manifests, sequence_number=sequence_number, first_row_id=first_row_id)
        return Snapshot(
            snapshot_id=snapshot_id,
            parent_snapshot_id=parent_id,
            sequence_number=sequence_number if base.format.has_sequence_numbers else None,
            # Time in the log must not run backwards, whatever the clocks of other writers said.
            timestamp_ms=max(self._catalog.now_ms(), base.last_updated_ms),
            manifest_list=location,
            summary=summary,
            schema_id=base.current_schema_id,
            first_row_id=first_row_id,
            added_rows=None if first_row_id is None else (next_row_id or first_row_id) - first_row_id,
        )
