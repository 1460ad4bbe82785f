"""What a conflict check and a diff cost, beside PyIceberg's own validation and plain reading of the same files."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import fastavro
from pyiceberg.expressions.parser import parse
from pyiceberg.table import StaticTable, Table
from pyiceberg.table.update import validate

from app.engine.change.initial import new_table_metadata
from app.engine.conflicts.detection import detect_conflicts
from app.engine.conflicts.operations import Overwrite
from app.engine.diff.file_diff import file_diff
from app.engine.expressions.expressions import Operation
from app.engine.model.data_types.types import parse_primitive
from app.engine.model.data_types.values import to_bytes
from app.engine.model.files.manifests import DataFile, EntryStatus, FileContent, ManifestEntry, ManifestFile
from app.engine.model.ids import Location, SnapshotId, SpecId, TableUuid
from app.engine.model.refs import SnapshotRef
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.fileio.local import LocalFiles
from app.formats.manifests.lists import assign_numbers, write_manifest_list
from app.formats.manifests.source import FileManifestSource, ManifestCache
from app.formats.manifests.writer import write_manifest
from benchmarks.report import Row
from tests.builders.catalogs import START_MS
from tests.builders.filters import predicate
from tests.builders.tables import SCHEMA

CONCURRENT = 100
APART = 1_000
FILES_A_SNAPSHOT = 50
EXPECTED = CONCURRENT * FILES_A_SNAPSHOT // 5
ROUNDS = 3
LONG = parse_primitive("long")
FILES = LocalFiles()


def measure(folder: Path) -> list[Row]:
    """Measure an overwrite against 100 concurrent snapshots, and a diff of two snapshots 1,000 apart."""
    return [*_conflict_rows(folder / "conflicts"), *_diff_rows(folder / "diff")]


def _conflict_rows(folder: Path) -> list[Row]:
    history = _History.made(folder, CONCURRENT + 1)
    base_id = history.metadata.snapshots[0].snapshot_id
    theirs = StaticTable.from_metadata(str(history.write_metadata()))
    rows = []
    for what, limit in (
        ("finds nothing", 0),
        (f"finds {EXPECTED:,} files", (CONCURRENT + 1) * FILES_A_SNAPSHOT),
    ):
        operation = Overwrite(
            conflict_filter=predicate(Operation.LT, "id", limit),
            checks_new_data=True,
            checks_new_deletes=True,
        )

        def ask(cache: ManifestCache, operation: Overwrite = operation) -> int:
            source = FileManifestSource(FILES, cache)
            report = detect_conflicts(history.metadata, source, "main", base_id, operation)
            return len(report.conflicts)

        warm_cache = ManifestCache(1 << 30)

        def ask_cold(ask: Callable[[ManifestCache], int] = ask) -> int:
            return ask(ManifestCache(0))

        def ask_warm(ask: Callable[[ManifestCache], int] = ask, cache: ManifestCache = warm_cache) -> int:
            return ask(cache)

        def ask_theirs(limit: int = limit) -> int:
            return _validate_with_pyiceberg(theirs, base_id, limit)

        found = ask_warm()
        cold = _best(ask_cold)
        warm = _best(ask_warm)
        beside = _best(ask_theirs)
        text = f"PyIceberg's validation: {beside * 1000:.0f} ms"
        name = f"overwrite against {CONCURRENT} snapshots of {FILES_A_SNAPSHOT} files, {what}"
        assert found == ask_theirs() == (EXPECTED if limit else 0)
        rows += [
            Row(f"{name}, cold", f"{cold * 1000:.0f} ms", text, f"{beside / cold:.1f} ×", "≥ 1 ×"),
            Row(f"{name}, warm", f"{warm * 1000:.1f} ms", text, f"{beside / warm:.1f} ×", "≥ 2 ×"),
        ]
    return rows


def _validate_with_pyiceberg(table: Table, base_id: SnapshotId, limit: int) -> int:
    """Do what a commit of PyIceberg does that overwrites by the same filter; return how many files it finds."""
    head, base, below = table.current_snapshot(), table.snapshot_by_id(base_id), parse(f"id < {limit}")
    assert head is not None
    # The first conflict would end its check: this looks for all of them, as ours does.
    found = sum(1 for _ in validate._added_data_files(table, head, below, None, base))  # noqa: SLF001 - it has no public way
    validate._validate_no_new_delete_files(table, head, below, None, base)  # noqa: SLF001 - it has no public way
    validate._validate_deleted_data_files(table, head, below, base)  # noqa: SLF001 - it has no public way
    return found


def _diff_rows(folder: Path) -> list[Row]:
    history = _History.made(folder, APART + 1)
    first, last = history.metadata.snapshots[0], history.metadata.snapshots[-1]

    def diff(cache: ManifestCache) -> int:
        return len(file_diff(FileManifestSource(FILES, cache), first, last).added)

    warm_cache = ManifestCache(1 << 30)
    assert diff(warm_cache) == len(_plain_diff(first, last)) == APART * FILES_A_SNAPSHOT
    cold = _best(lambda: diff(ManifestCache(0)))
    warm = _best(lambda: diff(warm_cache))
    beside = _best(lambda: _plain_diff(first, last))
    text = f"fastavro reads the same files: {beside:.2f} s"
    name = f"diff of two snapshots {APART:,} apart, {APART * FILES_A_SNAPSHOT:,} files"
    return [
        Row(f"{name}, cold", f"{cold:.2f} s", text, f"{beside / cold:.1f} ×", "≥ 0.5 ×"),
        Row(f"{name}, warm", f"{warm:.2f} s", text, f"{beside / warm:.1f} ×", "≥ 0.5 ×"),
    ]


def _plain_diff(first: Snapshot, last: Snapshot) -> set[str]:
    before, after = (_plain_manifests(snapshot) for snapshot in (first, last))
    paths: list[set[str]] = []
    for manifests in (after - before, before - after):
        found = set()
        for path in manifests:
            found |= {
                entry["data_file"]["file_path"] for entry in _plain_records(path) if entry["status"] != 2
            }
        paths.append(found)
    return paths[0] - paths[1]


def _plain_manifests(snapshot: Snapshot) -> set[str]:
    return {record["manifest_path"] for record in _plain_records(str(snapshot.manifest_list))}


def _plain_records(path: str) -> Iterable[Any]:
    return fastavro.reader(io.BytesIO(Path(path).read_bytes()))


def _best(run: Callable[[], object]) -> float:
    """Return the seconds of the quickest of a few rounds."""
    seconds = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


@dataclass
class _History:
    """A table in which every commit appends a manifest of files with bounds of their own."""

    folder: Path
    metadata: TableMetadata
    listed: tuple[ManifestFile, ...] = ()

    @classmethod
    def made(cls, folder: Path, length: int) -> _History:
        (folder / "metadata").mkdir(parents=True)
        empty = new_table_metadata(
            schema=SCHEMA,
            spec=None,
            order=None,
            location=Location(str(folder)),
            properties={},
            uuid=TableUuid("44444444-4444-4444-4444-444444444444"),
            now_ms=START_MS,
        )
        made = cls(folder, empty)
        snapshots: list[Snapshot] = []
        for number in range(length):
            snapshots.append(made._append(number, snapshots[-1].snapshot_id if snapshots else None))
        head = snapshots[-1].snapshot_id
        made.metadata = empty.replace(
            snapshots=tuple(snapshots),
            refs={"main": SnapshotRef(snapshot_id=head, type="branch")},
            current_snapshot_id=head,
            last_sequence_number=length,
        )
        return made

    def write_metadata(self) -> Path:
        path = self.folder / "metadata" / "v1.metadata.json"
        path.write_bytes(self.metadata.to_json())
        return path

    def _append(self, number: int, parent_id: SnapshotId | None) -> Snapshot:
        snapshot_id, sequence_number = SnapshotId(1000 + number), number + 1
        entries = [
            ManifestEntry(EntryStatus.ADDED, snapshot_id, None, None, _file(number, position))
            for position in range(FILES_A_SNAPSHOT)
        ]
        written = write_manifest(
            entries, schema=SCHEMA, spec=self.metadata.default_spec, format_version=2, snapshot_id=snapshot_id
        )
        location = Location(f"{self.folder}/metadata/{snapshot_id}-m0.avro")
        Path(location).write_bytes(written.content)
        self.listed, _ = assign_numbers((written.at(location), *self.listed), sequence_number=sequence_number)
        listed = Location(f"{self.folder}/metadata/snap-{snapshot_id}.avro")
        Path(listed).write_bytes(
            write_manifest_list(
                self.listed,
                format_version=2,
                snapshot_id=snapshot_id,
                parent_snapshot_id=parent_id,
                sequence_number=sequence_number,
            ).content
        )
        return Snapshot(
            snapshot_id=snapshot_id,
            parent_snapshot_id=parent_id,
            sequence_number=sequence_number,
            timestamp_ms=START_MS + number,
            manifest_list=listed,
            summary={"operation": "append"},
            schema_id=SCHEMA.schema_id,
        )


def _file(number: int, position: int) -> DataFile:
    # Only every fifth file of the concurrent snapshots is below the limit that finds something.
    low = number * FILES_A_SNAPSHOT + position if position % 5 == 0 else CONCURRENT * FILES_A_SNAPSHOT * 9
    count = {1: 100, 2: 100}
    none = {1: 0, 2: 0}
    bounds = {1: to_bytes(LONG, low)}
    upper = {1: to_bytes(LONG, low + 1)}
    file = DataFile(
        content=FileContent.DATA,
        file_path=Location(f"file:/lake/data/{number:05}-{position:03}.parquet"),
        file_format="parquet",
        spec_id=SpecId(0),
        partition=(),
        record_count=100,
        file_size_in_bytes=1_000,
    )
    return replace(file, value_counts=count, null_value_counts=none, lower_bounds=bounds, upper_bounds=upper)
