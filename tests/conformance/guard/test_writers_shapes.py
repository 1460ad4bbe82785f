"""The guard finds nothing in what writers commit that do not run here: Flink's shapes, and ClickHouse's."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from app.catalog.context.catalog import Catalog
from app.engine.change.requirements import AssertRefSnapshotId
from app.engine.model.files.manifests import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from app.engine.model.ids import NO_SNAPSHOT, Location, SnapshotId, SpecId
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.formats.manifests.lists import assign_numbers, write_manifest_list
from app.formats.manifests.source import FileManifestSource, ManifestCache
from app.formats.manifests.writer import write_manifest
from tests.builders.catalogs import catalog_on
from tests.builders.commits import commit_table
from tests.builders.tables import DEPARTURES, SCHEMA, append, load_table, table_in


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return catalog_on(f"sqlite:///{tmp_path}/icetower.db")


def looked(outcome: str) -> float:
    return REGISTRY.get_sample_value("icetower_guarded_snapshots_total", {"outcome": outcome}) or 0


@dataclass
class Writer:
    """Writes and commits files of a table that rejects whatever the guard finds."""

    catalog: Catalog
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self.files = self.catalog.files

    def create(self, format_version: int) -> None:
        properties = {"icetower.guard": "reject", "format-version": str(format_version)}
        table_in(self.catalog, DEPARTURES, properties)

    @property
    def metadata(self) -> TableMetadata:
        loaded: TableMetadata = load_table(self.catalog, DEPARTURES).metadata
        return loaded

    def listed(self, snapshot: Snapshot | None) -> list[ManifestFile]:
        source = FileManifestSource(self.files, ManifestCache(0))
        return list(source.manifests(snapshot)) if snapshot else []

    def entries(self, manifest: ManifestFile) -> Sequence[ManifestEntry]:
        return FileManifestSource(self.files, ManifestCache(0)).entries(manifest)

    def file(self, rows: int = 10, content: FileContent = FileContent.DATA) -> DataFile:
        path = Location(f"{self.metadata.location}/data/{next(self.numbers):05}.parquet")
        ids = (1,) if content is FileContent.EQUALITY_DELETES else None
        return DataFile(content, path, "parquet", SpecId(0), (), rows, 1000, equality_ids=ids)

    def manifest(self, snapshot_id: SnapshotId, entries: Sequence[ManifestEntry]) -> ManifestFile:
        metadata = self.metadata
        is_data = entries[0].file.content is FileContent.DATA
        written = write_manifest(
            entries,
            schema=SCHEMA,
            spec=metadata.default_spec,
            format_version=metadata.format_version,
            content=ManifestContent.DATA if is_data else ManifestContent.DELETES,
            snapshot_id=snapshot_id,
        )
        location = Location(f"{metadata.location}/metadata/{next(self.numbers):05}-m0.avro")
        self.files.write_new(location, written.content)
        return written.at(location)

    def commit(
        self,
        snapshot_id: SnapshotId,
        manifests: Sequence[ManifestFile],
        summary: dict[str, str],
        parent_id: SnapshotId | None,
    ) -> Snapshot:
        """Write the list, commit, and answer the snapshot as the table has it."""
        metadata = self.metadata
        number = metadata.last_sequence + 1 if metadata.format_version > 1 else 0
        location = Location(f"{metadata.location}/metadata/snap-{snapshot_id}-1.avro")
        self.files.write_new(
            location,
            write_manifest_list(
                manifests,
                format_version=metadata.format_version,
                snapshot_id=snapshot_id,
                parent_snapshot_id=parent_id,
                sequence_number=number,
            ).content,
        )
        snapshot = Snapshot(
            snapshot_id=snapshot_id,
            parent_snapshot_id=parent_id,
            sequence_number=number or None,
            timestamp_ms=metadata.last_updated_ms + 1,
            manifest_list=location,
            summary=summary,
            schema_id=metadata.current_schema_id,
        )
        head = metadata.current_snapshot
        asserted = AssertRefSnapshotId(ref="main", snapshot_id=head.snapshot_id if head else None)
        commit_table(self.catalog, DEPARTURES, [asserted], append(snapshot))
        return snapshot


def added(file: DataFile) -> ManifestEntry:
    return ManifestEntry(EntryStatus.ADDED, None, None, None, file)


@dataclass
class Flink(Writer):
    """One committer of a streaming job: a commit a checkpoint, totals carried on, empty ones now and then."""

    checkpoint: int = 0

    def append_checkpoint(self, *files: DataFile, merge: bool = False, operation: str = "append") -> Snapshot:
        self.checkpoint += 1
        head = self.metadata.current_snapshot
        snapshot_id = SnapshotId(7_000_000_000_000 + self.checkpoint)
        by_content = [
            [file for file in files if (file.content is FileContent.DATA) is is_data]
            for is_data in (True, False)
        ]
        before = self.listed(head)
        carried: list[ManifestEntry] = []
        if merge:
            data = [item for item in before if item.content is ManifestContent.DATA]
            before = [item for item in before if item not in data]
            carried = [
                replace(entry, status=EntryStatus.EXISTING)
                for manifest in data
                for entry in self.entries(manifest)
                if entry.is_live
            ]
        new = [
            self.manifest(snapshot_id, [*map(added, group), *(carried if number == 0 else [])])
            for number, group in enumerate(by_content)
            if group or (carried and number == 0)
        ]
        return self.commit(
            snapshot_id,
            [*new, *before],
            self._summary(head, operation, *by_content),
            head.snapshot_id if head else None,
        )

    def _summary(
        self,
        head: Snapshot | None,
        operation: str,
        data: Sequence[DataFile],
        deletes: Sequence[DataFile],
    ) -> dict[str, str]:
        before = (head.summary if head else None) or {}
        moves = {
            "total-data-files": len(data),
            "total-delete-files": len(deletes),
            "total-records": sum(file.record_count for file in data),
            "total-equality-deletes": sum(file.record_count for file in deletes),
            "total-position-deletes": 0,
            "total-files-size": 1000 * (len(data) + len(deletes)),
        }
        return {
            "operation": operation,
            "flink.job-id": "5b1ba57a4d8b2c0d7f3e6a9c0d1e2f30",
            "flink.operator-id": "cbc357ccb763df2852fee8c4fc7d55f2",
            "flink.max-committed-checkpoint-id": str(self.checkpoint),
            "changed-partition-count": "1" if data or deletes else "0",
            **{key: str(int(before.get(key, "0")) + move) for key, move in moves.items()},
        }


@pytest.mark.parametrize("format_version", [1, 2])
def test_flink_many_small_appends_without_merging(catalog: Catalog, format_version: int) -> None:
    flink = Flink(catalog)
    flink.create(format_version)
    clean = looked("clean")

    for checkpoint in range(40):
        flink.append_checkpoint(*(flink.file() for _ in range(checkpoint % 4)))

    assert looked("clean") == clean + 40
    assert len(flink.listed(flink.metadata.current_snapshot)) == 30


def test_flink_appends_that_merge_manifests_now_and_then(catalog: Catalog) -> None:
    flink = Flink(catalog)
    flink.create(2)
    clean = looked("clean")

    for checkpoint in range(30):
        flink.append_checkpoint(flink.file(), merge=checkpoint % 7 == 6)

    assert looked("clean") == clean + 30
    assert len(flink.listed(flink.metadata.current_snapshot)) == 3


def test_flink_upserts(catalog: Catalog) -> None:
    """Rows and the equality deletes of what they replace, in one commit."""
    flink = Flink(catalog)
    flink.create(2)
    clean = looked("clean")

    flink.append_checkpoint(flink.file())
    for checkpoint in range(10):
        deletes = flink.file(3, FileContent.EQUALITY_DELETES)
        flink.append_checkpoint(flink.file(), deletes, operation="overwrite", merge=checkpoint % 4 == 3)
        flink.append_checkpoint(flink.file())

    assert looked("clean") == clean + 21


@dataclass
class ClickHouse(Writer):
    """A manifest for each partition, its numbers written out, and counts that are those of the whole insert."""

    def insert(self, files: Sequence[Sequence[DataFile]], parent_id: SnapshotId | None = None) -> Snapshot:
        """Insert files, given for each partition."""
        metadata = self.metadata
        head = metadata.current_snapshot
        if parent_id is None:
            parent_id = head.snapshot_id if head else NO_SNAPSHOT
        snapshot_id = SnapshotId(5_000_000_000_000 + next(self.numbers))
        number = metadata.last_sequence + 1 if metadata.format_version > 1 else 0
        before = (head.summary if head else None) or {}
        every = [file for group in files for file in group]
        data = [file for file in every if file.content is FileContent.DATA]
        deletes = [file for file in every if file.content is not FileContent.DATA]
        rows, deleted = sum(file.record_count for file in data), sum(file.record_count for file in deletes)
        summary = {
            "operation": "overwrite" if deletes else "append",
            "added-data-files": str(len(data)),
            "added-records": str(rows),
            "changed-partition-count": str(len(files)),
            "total-records": str(int(before.get("total-records", "0")) + rows),
            "total-data-files": str(int(before.get("total-data-files", "0")) + len(data)),
            "total-delete-files": str(int(before.get("total-delete-files", "0")) + len(deletes)),
        }
        if deletes:
            summary |= {"added-delete-files": str(len(deletes)), "added-position-deletes": str(deleted)}
        new = [
            self._counted(self._written(snapshot_id, number, group), summary, rows or deleted)
            for group in files
        ]
        if number:
            numbered, _ = assign_numbers(new, sequence_number=number)
            new = list(numbered)
        return self.commit(snapshot_id, [*new, *self.listed(head)], summary, parent_id)

    def _written(self, snapshot_id: SnapshotId, number: int, group: Sequence[DataFile]) -> ManifestFile:
        at = number or None
        return self.manifest(
            snapshot_id,
            [ManifestEntry(EntryStatus.ADDED, snapshot_id, at, at, file) for file in group],
        )

    def _counted(self, manifest: ManifestFile, summary: dict[str, str], rows: int) -> ManifestFile:
        is_v1 = self.metadata.format_version == 1
        return replace(
            manifest,
            added_files_count=1,
            existing_files_count=int(summary["total-data-files"]) if is_v1 else 0,
            deleted_files_count=0,
            added_rows_count=rows,
            existing_rows_count=0,
            deleted_rows_count=0,
            partitions=None,
        )


def test_clickhouse_inserts(catalog: Catalog) -> None:
    """Several files in a manifest that counts one, several manifests of which each counts all rows."""
    clickhouse = ClickHouse(catalog)
    clickhouse.create(2)
    clean = looked("clean")

    for groups in ((1,), (3,), (1, 1), (2, 3, 1)):
        clickhouse.insert([[clickhouse.file() for _ in range(size)] for size in groups])

    assert looked("clean") == clean + 4
    first = clickhouse.metadata.snapshots[0]
    assert first.parent_snapshot_id == NO_SNAPSHOT


def test_clickhouse_deletes(catalog: Catalog) -> None:
    clickhouse = ClickHouse(catalog)
    clickhouse.create(2)
    clean = looked("clean")

    clickhouse.insert([[clickhouse.file()], [clickhouse.file()]])
    clickhouse.insert([[clickhouse.file(2, FileContent.POSITION_DELETES)] for _ in range(2)])
    clickhouse.insert([[clickhouse.file()]])

    assert looked("clean") == clean + 3


def test_clickhouse_updates_are_built_on_a_snapshot_that_nobody_saw(catalog: Catalog) -> None:
    """Its UPDATE makes two snapshots, the deletes and then the rows, and commits only the second."""
    clickhouse = ClickHouse(catalog)
    clickhouse.create(2)
    clickhouse.insert([[clickhouse.file()]])
    clean = looked("clean")

    clickhouse.insert([[clickhouse.file()]], parent_id=SnapshotId(99))

    assert looked("clean") == clean + 1


def test_clickhouse_in_version_1_counts_files_that_are_not_there(catalog: Catalog) -> None:
    """Its manifests contradict their list, so they are not looked into, and nothing is held against them."""
    clickhouse = ClickHouse(catalog)
    clickhouse.create(1)
    found, looked_at = looked("found"), looked("unchecked")

    for _ in range(3):
        clickhouse.insert([[clickhouse.file()]])

    assert looked("found") == found
    assert looked("unchecked") == looked_at + 3
