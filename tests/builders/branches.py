"""Branches without files: commits of data files and delete files, and manifests that remember being opened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from app.engine.change.initial import new_table_metadata
from app.engine.model.data_types.types import parse_primitive
from app.engine.model.data_types.values import to_bytes
from app.engine.model.files.manifests import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from app.engine.model.ids import Location, SnapshotId, SpecId, TableUuid
from app.engine.model.partition_spec import UnboundPartitionSpec
from app.engine.model.refs import SnapshotRef
from app.engine.model.schema import Schema
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from tests.builders.catalogs import START_MS

LONG = parse_primitive("long")
COLUMNS = Schema.from_json(
    b'{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":false,"type":"long"},'
    b'{"id":2,"name":"kind","required":false,"type":"string"}]}'
)
BY_KIND: dict[str, Any] = {
    "spec-id": 0,
    "fields": [{"name": "kind", "transform": "identity", "source-id": 2, "field-id": 1000}],
}
UNPARTITIONED: dict[str, Any] = {"spec-id": 0, "fields": []}


def data_file(
    path: str, kind: str | None = None, ids: tuple[int, int] | None = None, *, spec_id: int = 0
) -> DataFile:
    """Return a data file of a kind, whose ids lie within limits if they are given."""
    return DataFile(
        content=FileContent.DATA,
        file_path=Location(path),
        file_format="parquet",
        spec_id=SpecId(spec_id),
        partition=(kind,),
        record_count=10,
        file_size_in_bytes=100,
        value_counts={1: 10} if ids else None,
        null_value_counts={1: 0} if ids else None,
        lower_bounds={1: to_bytes(LONG, ids[0])} if ids else None,
        upper_bounds={1: to_bytes(LONG, ids[1])} if ids else None,
    )


def position_deletes(path: str, kind: str | None = None, of: str | None = None) -> DataFile:
    """Return position deletes of one data file, or of some in a partition."""
    return replace(
        data_file(path, kind),
        content=FileContent.POSITION_DELETES,
        referenced_data_file=None if of is None else Location(of),
    )


def equality_deletes(path: str, kind: str | None = None, ids: tuple[int, int] | None = None) -> DataFile:
    """Return equality deletes by id."""
    return replace(data_file(path, kind, ids), content=FileContent.EQUALITY_DELETES, equality_ids=(1,))


def vector(path: str, of: str, kind: str | None = None, offset: int = 4) -> DataFile:
    """Return a deletion vector of a data file."""
    return replace(
        position_deletes(path, kind, of),
        file_format="puffin",
        content_offset=offset,
        content_size_in_bytes=40,
    )


class Branch:
    """A table whose main is moved on by commits; also the source of its manifests."""

    def __init__(
        self, spec: Mapping[str, Any] = BY_KIND, format_version: int = 2, schema: Schema = COLUMNS
    ) -> None:
        self.metadata: TableMetadata = new_table_metadata(
            schema=schema,
            spec=UnboundPartitionSpec.from_object(dict(spec)),
            order=None,
            location=Location("memory://wh/t"),
            properties={"format-version": str(format_version)},
            uuid=TableUuid("33333333-3333-3333-3333-333333333333"),
            now_ms=START_MS,
        )
        self.opened: list[Location] = []
        self.lists_read: list[SnapshotId] = []
        self._lists: dict[SnapshotId, tuple[ManifestFile, ...]] = {}
        self._entries: dict[Location, tuple[ManifestEntry, ...]] = {}

    @property
    def head(self) -> SnapshotId | None:
        main = self.metadata.snapshot_refs.get("main")
        return main.snapshot_id if main else None

    def manifests(self, snapshot: Snapshot) -> Sequence[ManifestFile]:
        self.lists_read.append(snapshot.snapshot_id)
        return self._lists[snapshot.snapshot_id]

    def entries(self, manifest: ManifestFile) -> Sequence[ManifestEntry]:
        self.opened.append(manifest.manifest_path)
        return self._entries[manifest.manifest_path]

    def commit(
        self,
        operation: str,
        added: Iterable[DataFile] = (),
        removed: Iterable[DataFile] = (),
        *,
        summary: Mapping[str, str] | None = None,
        parent: SnapshotId | None = None,
        is_staged: bool = False,
        sequence_number: int | None = None,
    ) -> SnapshotId:
        """Put a snapshot on top of main, or of another parent; return its id.

        Args:
            added: data files and delete files.
            removed: of the parent; manifests that have them are written anew.
            parent: instead of the head.
            is_staged: whether no branch gets the snapshot.
            sequence_number: what the added files have instead of the snapshot's own.
        """
        base = self.head if parent is None else parent
        snapshot_id = SnapshotId(100 + len(self.metadata.snapshots))
        sequence = self.metadata.last_sequence + 1 if self.metadata.format_version > 1 else 0
        manifests = self._kept(base, {file.file_path for file in removed})
        kept = [manifest for manifest, entries in manifests if entries is None]
        rewritten = [entry for _, entries in manifests for entry in entries or ()]
        gone = {(file.file_path, file.content_offset) for file in removed}
        own: dict[tuple[ManifestContent, SpecId], list[ManifestEntry]] = {}
        for entry in rewritten:
            file = entry.file
            is_gone = (file.file_path, file.content_offset) in gone
            key = (_content(file), file.spec_id)
            own.setdefault(key, []).append(
                replace(entry, status=EntryStatus.DELETED, snapshot_id=snapshot_id)
                if is_gone
                else replace(entry, status=EntryStatus.EXISTING)
            )
        for file in added:
            number = sequence if sequence_number is None else sequence_number
            new = ManifestEntry(EntryStatus.ADDED, snapshot_id, number, sequence, file)
            own.setdefault((_content(file), file.spec_id), []).append(new)
        written = [
            self._manifest(snapshot_id, sequence, position, key, entries)
            for position, (key, entries) in enumerate(own.items())
        ]
        self._lists[snapshot_id] = (*written, *kept)
        snapshot = Snapshot(
            snapshot_id=snapshot_id,
            parent_snapshot_id=base,
            sequence_number=sequence,
            timestamp_ms=START_MS + snapshot_id,
            manifest_list=Location(f"memory://wh/t/metadata/snap-{snapshot_id}.avro"),
            summary={"operation": operation, **(summary or {})},
            schema_id=self.metadata.current_schema_id,
        )
        self.metadata = self.metadata.replace(
            snapshots=(*self.metadata.snapshots, snapshot),
            last_sequence_number=sequence if self.metadata.format_version > 1 else None,
        )
        if not is_staged:
            self.move(snapshot_id)
        return snapshot_id

    def move(self, snapshot_id: SnapshotId) -> None:
        """Put main at a snapshot."""
        main = SnapshotRef(snapshot_id=snapshot_id, type="branch")
        self.metadata = self.metadata.replace(
            refs={**self.metadata.snapshot_refs, "main": main}, current_snapshot_id=snapshot_id
        )

    def _kept(
        self, base: SnapshotId | None, gone: set[Location]
    ) -> list[tuple[ManifestFile, list[ManifestEntry] | None]]:
        found: list[tuple[ManifestFile, list[ManifestEntry] | None]] = []
        for manifest in self._lists[base] if base is not None else ():
            live = [entry for entry in self._entries[manifest.manifest_path] if entry.is_live]
            is_touched = any(entry.file.file_path in gone for entry in live)
            found.append((manifest, live if is_touched else None))
        return found

    def _manifest(
        self,
        snapshot_id: SnapshotId,
        sequence: int,
        position: int,
        key: tuple[ManifestContent, SpecId],
        entries: list[ManifestEntry],
    ) -> ManifestFile:
        content, spec_id = key
        path = Location(f"memory://wh/t/metadata/{snapshot_id}-m{position}.avro")
        self._entries[path] = tuple(entries)
        counts = {status: sum(entry.status is status for entry in entries) for status in EntryStatus}
        return ManifestFile(
            manifest_path=path,
            manifest_length=1,
            partition_spec_id=spec_id,
            content=content,
            sequence_number=sequence,
            added_snapshot_id=snapshot_id,
            added_files_count=counts[EntryStatus.ADDED],
            existing_files_count=counts[EntryStatus.EXISTING],
            deleted_files_count=counts[EntryStatus.DELETED],
        )


def _content(file: DataFile) -> ManifestContent:
    return ManifestContent.DATA if file.content is FileContent.DATA else ManifestContent.DELETES
