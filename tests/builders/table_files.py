"""Snapshots with all their files: data files, manifests and manifest lists, written like an engine writes them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from app.engine.model.files.manifests import DataFile, EntryStatus, FileContent, ManifestEntry, ManifestFile
from app.engine.model.ids import Location, SnapshotId
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.fileio.files import FileIO
from app.formats.manifests.lists import assign_numbers, write_manifest_list
from app.formats.manifests.writer import write_manifest

_numbers = itertools.count(5_000)


@dataclass
class TableFiles:
    """Writes the files of one unpartitioned table."""

    files: FileIO
    manifests: dict[SnapshotId, tuple[ManifestFile, ...]] = field(default_factory=dict)
    entries: dict[Location, tuple[ManifestEntry, ...]] = field(default_factory=dict)

    def snapshot(
        self,
        metadata: TableMetadata,
        added: Sequence[str],
        removed: Sequence[str] = (),
        *,
        parent: Snapshot | None = None,
        timestamp_ms: int | None = None,
    ) -> Snapshot:
        """Write what a commit on top of the current snapshot, or of another parent, writes, and return its snapshot.

        Args:
            metadata: the table before it.
            added: names of new data files.
            removed: names of data files that go; manifests that have them are rewritten.
            parent: instead of the current snapshot.
            timestamp_ms: instead of just after the last update.
        """
        parent = parent or metadata.current_snapshot
        snapshot_id = SnapshotId(next(_numbers))
        sequence_number = metadata.last_sequence + 1
        gone = {self.data_path(metadata, name) for name in removed}
        kept: list[ManifestFile] = []
        for manifest in self.manifests.get(parent.snapshot_id, ()) if parent else ():
            entries = self.entries[manifest.manifest_path]
            if not any(entry.is_live and entry.file.file_path in gone for entry in entries):
                kept.append(manifest)
                continue
            rewritten = [
                replace(entry, status=EntryStatus.DELETED, snapshot_id=snapshot_id)
                if entry.file.file_path in gone
                else replace(entry, status=EntryStatus.EXISTING)
                for entry in entries
                if entry.is_live
            ]
            kept.append(self._manifest(metadata, snapshot_id, rewritten))
        if added:
            new = [
                ManifestEntry(EntryStatus.ADDED, snapshot_id, None, None, self._data_file(metadata, name))
                for name in added
            ]
            kept.append(self._manifest(metadata, snapshot_id, new))
        numbered, _ = assign_numbers(kept, sequence_number=sequence_number)
        for manifest in numbered:
            self.entries[manifest.manifest_path] = tuple(
                entry
                if entry.data_sequence_number is not None
                else replace(
                    entry, data_sequence_number=sequence_number, file_sequence_number=sequence_number
                )
                for entry in self.entries[manifest.manifest_path]
            )
        self.manifests[snapshot_id] = numbered
        location = Location(f"{metadata.location}/metadata/snap-{snapshot_id}.avro")
        self.files.write_new(
            location,
            write_manifest_list(
                numbered,
                format_version=2,
                snapshot_id=snapshot_id,
                parent_snapshot_id=parent.snapshot_id if parent else None,
                sequence_number=sequence_number,
            ).content,
        )
        return Snapshot(
            snapshot_id=snapshot_id,
            parent_snapshot_id=parent.snapshot_id if parent else None,
            sequence_number=sequence_number,
            timestamp_ms=metadata.last_updated_ms + 1 if timestamp_ms is None else timestamp_ms,
            manifest_list=location,
            summary={"operation": "overwrite" if removed else "append"},
            schema_id=metadata.current_schema_id,
        )

    @staticmethod
    def data_path(metadata: TableMetadata, name: str) -> Location:
        """Return where a data file of this name lies."""
        return Location(f"{metadata.location}/data/{name}.parquet")

    def _data_file(self, metadata: TableMetadata, name: str) -> DataFile:
        path = self.data_path(metadata, name)
        self.files.write_new(path, b"rows of " + name.encode())
        return DataFile(
            FileContent.DATA, path, "parquet", metadata.default_spec_id, (), 1, 8 + len(name.encode())
        )

    def _manifest(
        self, metadata: TableMetadata, snapshot_id: SnapshotId, entries: Sequence[ManifestEntry]
    ) -> ManifestFile:
        written = write_manifest(
            entries,
            schema=metadata.current_schema,
            spec=metadata.default_spec,
            format_version=2,
            snapshot_id=snapshot_id,
        )
        location = Location(f"{metadata.location}/metadata/{snapshot_id}-m{next(_numbers)}.avro")
        self.files.write_new(location, written.content)
        self.entries[location] = tuple(entries)
        return written.at(location)


class NamingFiles(TableFiles):
    """Writes tables' files, and names those of others: `@` and a location."""

    @staticmethod
    def data_path(metadata: TableMetadata, name: str) -> Location:
        """Return where a data file lies."""
        return Location(name[1:]) if name.startswith("@") else TableFiles.data_path(metadata, name)

    def _data_file(self, metadata: TableMetadata, name: str) -> DataFile:
        if not name.startswith("@"):
            return super()._data_file(metadata, name)
        return DataFile(FileContent.DATA, Location(name[1:]), "parquet", metadata.default_spec_id, (), 1, 8)
