"""Manifests and manifest lists of snapshots that the server makes itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Final

from app.catalog.commits.files.staged_files import StagedFiles
from app.catalog.context.catalog import Catalog
from app.catalog.context.places.file_names import new_content_uuid
from app.catalog.manifests.table_manifests import TableManifests
from app.engine.model.files.manifests import (
    EntryStatus,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    Partition,
)
from app.engine.model.files.partition_values import schema_with_sources
from app.engine.model.ids import Location, SnapshotId, SpecId
from app.engine.model.partition_spec import PartitionSpec
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.errors import CorruptTable
from app.formats.manifests.lists import KnownLines, write_manifest_list
from app.formats.manifests.writer import ManifestPacker, WrittenManifest, write_manifest
from app.formats.metadata.names import metadata_folder

_COUNTS: Final = attrgetter(
    "added_snapshot_id",
    *(f"{status.name.lower()}_{what}_count" for status in EntryStatus for what in ("files", "rows")),
)
"""What each line of a list says from version 2 on."""


@dataclass(frozen=True, slots=True)
class StagedList:
    """A manifest list that was written for one attempt, and the numbers that it gives."""

    location: Location
    lines: KnownLines
    """What readers find in it."""
    sequence_number: int
    """The snapshot's; 0 where the format version has none."""
    first_row_id: int | None
    added_rows: int | None


class SnapshotFiles:
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
        self,
        spec_id: SpecId,
        snapshot_id: SnapshotId,
        entries: Sequence[ManifestEntry],
        content: ManifestContent = ManifestContent.DATA,
    ) -> WrittenManifest:
        """Return a manifest, not stored yet.

        Raises:
            CorruptTable: the table does not have the spec, or an entry does not fit it.
        """
        spec = self._spec(spec_id)
        try:
            return write_manifest(
                entries,
                schema=schema_with_sources(self._base, spec),
                spec=spec,
                format_version=self._base.format_version,
                content=content,
                snapshot_id=snapshot_id,
            )
        except ValueError as error:
            raise CorruptTable(self._base.location, str(error)) from error

    def packer(
        self, spec_id: SpecId, partitions: Sequence[Partition], content: ManifestContent
    ) -> ManifestPacker:
        """Return what packs existing entries of some partitions.

        Raises:
            CorruptTable: the table does not have the spec, or a partition does not fit it.
        """
        spec = self._spec(spec_id)
        try:
            return ManifestPacker(
                schema=schema_with_sources(self._base, spec),
                spec=spec,
                format_version=self._base.format_version,
                content=content,
                snapshot_id=None,
                partitions=partitions,
            )
        except ValueError as error:
            raise CorruptTable(self._base.location, str(error)) from error

    def _new_uuid(self) -> str:
        return new_content_uuid(self._catalog.server, self._base.uuid, self._folder)

    def _spec(self, spec_id: SpecId) -> PartitionSpec:
        spec = self._base.find_spec(spec_id)
        if spec is None:
            raise CorruptTable(
                self._base.location, f"a manifest has partition spec {spec_id}, which the table has not"
            )
        return spec

    def store(self, written: WrittenManifest) -> ManifestFile:
        """Store a manifest, and return it as a list names it before it has numbers.

        It is stored when the files are settled, as a list is, unless there are too many to remember them.

        Raises:
            FilesUnavailable: the store does not answer, or refuses.
        """
        location = Location(f"{self._folder}/{self._new_uuid()}-m0.avro")
        if self._files.remembers_contents:
            self._files.write_soon(location, written.content)
        else:
            self._files.write(location, written.content)
        return written.at(location)

    def write_manifest(
        self,
        spec_id: SpecId,
        snapshot_id: SnapshotId,
        entries: Sequence[ManifestEntry],
        content: ManifestContent = ManifestContent.DATA,
    ) -> ManifestFile:
        """Write a manifest; raises like `pack` and `store`."""
        return self.store(self.pack(spec_id, snapshot_id, entries, content))

    def write_list(
        self, snapshot_id: SnapshotId, parent_id: SnapshotId | None, manifests: Sequence[ManifestFile]
    ) -> StagedList:
        """Write the manifest list of a snapshot that is the table's next one.

        It is stored when the files are settled, which is before a pointer moves.

        Raises:
            CorruptTable: a manifest has counts that no list can hold.
            CorruptMetadata, FileMissing, FilesUnavailable: a manifest whose files are not counted cannot be read.
        """
        base = self._base
        sequence_number = base.last_sequence + 1 if base.format.has_sequence_numbers else 0
        first_row_id = (base.next_row_id or 0) if base.format.has_row_lineage else None
        try:
            packed = write_manifest_list(
                manifests,
                format_version=base.format_version,
                snapshot_id=snapshot_id,
                parent_snapshot_id=parent_id,
                sequence_number=sequence_number,
                first_row_id=first_row_id,
                complete=lambda manifest: self._completed(manifest, parent_id or snapshot_id),
            )
        except ValueError as error:
            raise CorruptTable(base.location, str(error)) from error
        location = Location(f"{self._folder}/snap-{snapshot_id}-1-{self._new_uuid()}.avro")
        self._files.write_soon(location, packed.content)
        added_rows = None if first_row_id is None else (packed.next_row_id or first_row_id) - first_row_id
        return StagedList(location, packed.lines, sequence_number, first_row_id, added_rows)

    def _completed(self, manifest: ManifestFile, snapshot_id: SnapshotId) -> ManifestFile:
        """Return a manifest with what its line needs, and writers of version 1 could leave out.

        Row ids are given by these counts: without them the rows of two manifests would have the same ones.
        """
        if None not in _COUNTS(manifest):
            return manifest
        if manifest.added_snapshot_id is not None and not self._base.format.requires_manifest_counts:
            return manifest
        files, rows = dict.fromkeys(EntryStatus, 0), dict.fromkeys(EntryStatus, 0)
        written_by = snapshot_id
        for entry in TableManifests(self._catalog, self._base).entries(manifest):
            files[entry.status] += 1
            rows[entry.status] += max(entry.file.record_count, 0)
            if entry.status is not EntryStatus.EXISTING and entry.snapshot_id is not None:
                written_by = entry.snapshot_id
        return replace(
            manifest,
            added_snapshot_id=written_by
            if manifest.added_snapshot_id is None
            else manifest.added_snapshot_id,
            added_files_count=files[EntryStatus.ADDED],
            existing_files_count=files[EntryStatus.EXISTING],
            deleted_files_count=files[EntryStatus.DELETED],
            added_rows_count=rows[EntryStatus.ADDED],
            existing_rows_count=rows[EntryStatus.EXISTING],
            deleted_rows_count=rows[EntryStatus.DELETED],
        )

    def write_snapshot(
        self,
        head: Snapshot | None,
        snapshot_id: SnapshotId,
        manifests: Sequence[ManifestFile],
        summary: dict[str, str],
    ) -> Snapshot:
        """Write the manifest list of a snapshot that follows a head, and return the snapshot.

        Raises:
            CorruptTable, CorruptMetadata, FileMissing, FilesUnavailable: as `write_list`.
        """
        base, parent_id = self._base, head.snapshot_id if head else None
        written = self.write_list(snapshot_id, parent_id, manifests)
        return Snapshot(
            snapshot_id=snapshot_id,
            parent_snapshot_id=parent_id,
            sequence_number=written.sequence_number if base.format.has_sequence_numbers else None,
            # Time in the log must not run backwards, whatever the clocks of other writers said.
            timestamp_ms=max(self._catalog.now_ms(), base.last_updated_ms),
            manifest_list=written.location,
            summary=summary,
            schema_id=base.current_schema_id,
            first_row_id=written.first_row_id,
            added_rows=written.added_rows,
        )
