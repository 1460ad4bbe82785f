"""Snapshots that the server makes itself: their manifests, manifest lists and numbers."""

from __future__ import annotations

from collections.abc import Sequence

from app.catalog.commits.staged_files import StagedFiles
from app.catalog.context.catalog import Catalog
from app.engine.model.ids import Location, SnapshotId, SpecId
from app.engine.model.manifests import ManifestContent, ManifestEntry, ManifestFile
from app.engine.model.partition_values import schema_with_sources
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.errors import CorruptMetadata
from app.formats.manifests.lists import assign_numbers, write_manifest_list
from app.formats.manifests.writer import WrittenManifest, write_manifest
from app.formats.metadata.names import metadata_folder


class NewSnapshots:
    """Writes snapshots on top of a base to the files of one attempt."""

    def __init__(self, catalog: Catalog, files: StagedFiles, base: TableMetadata) -> None:
        self._catalog = catalog
        self._files = files
        self._base = base
        self._folder = metadata_folder(base.location, base.properties)

    def new_id(self) -> SnapshotId:
        """Return an id that no snapshot of the table has."""
        while True:
            number = int(self._catalog.server.new_uuid().replace("-", ""), 16)
            snapshot_id = SnapshotId((number >> 64 ^ number) & (1 << 63) - 1)
            if snapshot_id and snapshot_id not in self._base.snapshots_by_id:
                return snapshot_id

    def pack(
        self, spec_id: SpecId, snapshot_id: SnapshotId, entries: Sequence[ManifestEntry]
    ) -> WrittenManifest:
        """Return a manifest of data files, not stored yet.

        Raises:
            CorruptMetadata: the table does not have the spec, or an entry does not fit it.
        """
        spec = self._base.find_spec(spec_id)
        if spec is None:
            raise CorruptMetadata(
                self._base.location, f"a manifest has partition spec {spec_id}, which the table has not"
            )
        try:
            return write_manifest(
                entries,
                schema=schema_with_sources(self._base, spec),
                spec=spec,
                format_version=self._base.format_version,
                content=ManifestContent.DATA,
                snapshot_id=snapshot_id,
            )
        except ValueError as error:
            raise CorruptMetadata(self._base.location, str(error)) from error

    def store(self, written: WrittenManifest) -> ManifestFile:
        """Store a manifest, and return it as a list names it.

        Raises:
            FilesUnavailable: the store does not answer, or refuses.
        """
        location = Location(f"{self._folder}/{self._catalog.server.new_uuid()}-m0.avro")
        self._files.write(location, written.content)
        return written.at(location)

    def write_manifest(
        self, spec_id: SpecId, snapshot_id: SnapshotId, entries: Sequence[ManifestEntry]
    ) -> ManifestFile:
        """Write a manifest of data files; raises like `pack` and `store`."""
        return self.store(self.pack(spec_id, snapshot_id, entries))

    def write_snapshot(
        self,
        head: Snapshot | None,
        snapshot_id: SnapshotId,
        manifests: Sequence[ManifestFile],
        summary: dict[str, str],
    ) -> Snapshot:
        """Write the manifest list of a snapshot that follows a head, and return the snapshot.

        Raises:
            FilesUnavailable: the store does not answer, or refuses.
        """
        base = self._base
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
        location = Location(f"{self._folder}/snap-{snapshot_id}-1-{self._catalog.server.new_uuid()}.avro")
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
