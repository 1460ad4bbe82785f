"""Histories without files: table metadata with any snapshots and refs, and manifests that are lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from app.engine.change.initial import new_table_metadata
from app.engine.model.files.manifests import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from app.engine.model.ids import NO_SNAPSHOT, Location, SnapshotId, SpecId, TableUuid
from app.engine.model.refs import SnapshotRef
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.errors import FileMissing, InvalidMetadata
from tests.builders.catalogs import START_MS
from tests.builders.tables import SCHEMA

UUID = TableUuid("22222222-2222-2222-2222-222222222222")


def snapshot(number: int, parent: int | None = None, at_ms: int | None = None) -> Snapshot:
    """Return a snapshot whose list lies at `list-<number>`; younger by a second than the number before."""
    return Snapshot(
        snapshot_id=SnapshotId(number),
        parent_snapshot_id=None if parent is None else SnapshotId(parent),
        sequence_number=0,
        timestamp_ms=START_MS + number * 1000 if at_ms is None else at_ms,
        manifest_list=Location(f"memory://wh/t/metadata/list-{number}.avro"),
        summary={"operation": "append"},
        schema_id=SCHEMA.schema_id,
    )


def line(length: int, first: int = 1) -> list[Snapshot]:
    """Return snapshots of which each is the parent of the next."""
    return [
        snapshot(number, number - 1 if number > first else None) for number in range(first, first + length)
    ]


def branch(number: int, **retention: int) -> SnapshotRef:
    return SnapshotRef(snapshot_id=SnapshotId(number), type="branch", **retention)


def tag(number: int, **retention: int) -> SnapshotRef:
    return SnapshotRef(snapshot_id=SnapshotId(number), type="tag", **retention)


def history(
    snapshots: Iterable[Snapshot],
    refs: Mapping[str, SnapshotRef],
    properties: Mapping[str, str] | None = None,
) -> TableMetadata:
    """Return a table that has come to these snapshots and refs."""
    empty = new_table_metadata(
        schema=SCHEMA,
        spec=None,
        order=None,
        location=Location("memory://wh/t"),
        properties=properties or {},
        uuid=UUID,
        now_ms=START_MS,
    )
    main = refs.get("main")
    return empty.replace(
        snapshots=tuple(snapshots),
        refs=dict(refs),
        current_snapshot_id=main.snapshot_id if main else NO_SNAPSHOT,
    )


def content_file(path: str, content: FileContent = FileContent.DATA) -> DataFile:
    return DataFile(content, Location(path), "parquet", SpecId(0), (), 1, 10)


def entry(
    path: str, status: EntryStatus = EntryStatus.ADDED, content: FileContent = FileContent.DATA
) -> ManifestEntry:
    return ManifestEntry(status, SnapshotId(1), 1, 1, content_file(path, content))


@dataclass
class ListedManifests:
    """A `ManifestSource` out of dictionaries, with files that are gone and files that say nothing."""

    lists: dict[SnapshotId, Sequence[str]] = field(default_factory=dict)
    """Each snapshot's manifests."""
    contents: dict[str, Sequence[ManifestEntry]] = field(default_factory=dict)
    """Each manifest's entries."""
    specs: dict[str, int] = field(default_factory=dict)
    deletes: set[str] = field(default_factory=set)
    """The manifests of delete files."""
    gone: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)
    reads: int = 0

    def manifests(self, snapshot: Snapshot) -> Sequence[ManifestFile]:
        assert snapshot.manifest_list is not None
        self._open(snapshot.manifest_list)
        return [
            ManifestFile(
                Location(path),
                100,
                SpecId(self.specs.get(path, 0)),
                ManifestContent.DELETES if path in self.deletes else ManifestContent.DATA,
            )
            for path in self.lists.get(snapshot.snapshot_id, ())
        ]

    def entries(self, manifest: ManifestFile) -> Sequence[ManifestEntry]:
        self._open(manifest.manifest_path)
        return self.contents.get(manifest.manifest_path, ())

    def _open(self, location: Location) -> None:
        self.reads += 1
        if location in self.gone:
            raise FileMissing(location)
        if location in self.broken:
            raise InvalidMetadata(f"Cannot read {location}")
