"""What the guard adds to a commit of an append, on SQLite and local disk: the same commits with it and without."""

from __future__ import annotations

import statistics
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from app.catalog.context.catalog import Catalog
from app.engine.change.requirements import AssertRefSnapshotId
from app.engine.change.updates import AddSnapshot, SetSnapshotRef, Update
from app.engine.model.files.manifests import DataFile, EntryStatus, FileContent, ManifestEntry, ManifestFile
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location, SnapshotId, SpecId
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.fileio.local import LocalFiles
from app.formats.manifests.lists import assign_numbers, write_manifest_list
from app.formats.manifests.source import ManifestCache
from app.formats.manifests.writer import WrittenManifest, write_manifest
from benchmarks.report import Row
from tests.builders.catalogs import START_MS, new_warehouse, server_on, with_server
from tests.builders.commits import commit_table
from tests.builders.tables import FLIGHTS, SCHEMA, load_table, table_in

ROUNDS = 60
FIRST_ID = 1_000_001
_COLUMNS = 12


@dataclass(frozen=True, slots=True)
class Shape:
    """A table's manifests, and how many files an append adds to them."""

    what: str
    manifests: int
    files: int
    merges: bool = False
    keeps_in_memory: bool = True


SHAPES = (
    Shape("append 1 file to 10 manifests", 10, 1),
    Shape("append 100 files to 200 manifests", 200, 100),
    Shape("append 100 files to 200 manifests, none of them in memory", 200, 100, keeps_in_memory=False),
    Shape("append 5,000 files to 200 manifests", 200, 5_000),
    Shape("append 1 file to 5,000 manifests", 5_000, 1),
    Shape("append 1 file, merging 100 manifests", 100, 1, merges=True),
)


def measure(folder: Path) -> list[Row]:
    """Measure each shape with the guard off and at `warn`, in turns."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for number, shape in enumerate(SHAPES):
        server = server_on(f"sqlite:///{folder}/guard-{number}.db", LocalFiles())
        catalog = new_warehouse(server, root=f"file://{folder}/guard-{number}")
        if not shape.keeps_in_memory:
            catalog = with_server(catalog, manifest_cache=ManifestCache(0))
        tables = {mode: _Table(catalog, shape, mode) for mode in ("off", "warn")}
        seconds: dict[str, list[float]] = {mode: [] for mode in tables}
        for _ in range(ROUNDS):
            for mode, table in tables.items():
                seconds[mode].append(table.append())
        without, with_it = (statistics.median(seconds[mode]) for mode in ("off", "warn"))
        rows.append(
            Row(
                shape.what,
                f"{with_it * 1000:.2f} ms",
                f"without the guard {without * 1000:.2f} ms",
                f"{with_it / without:.2f}",
                "–",
            )
        )
    return rows


class _Table:
    """A table to which the same append is committed again and again."""

    def __init__(self, catalog: Catalog, shape: Shape, mode: str) -> None:
        self._catalog, self._shape = catalog, shape
        self._files = catalog.files
        self._identifier = TableIdentifier(FLIGHTS, f"guard_{mode}")
        made = table_in(catalog, self._identifier, {"icetower.guard": mode})
        self._location = made.metadata.location
        self._written = 0
        self._append = _manifest(made.metadata, self._location, shape.files, EntryStatus.ADDED)
        self._merged = _manifest(made.metadata, self._location, shape.manifests, EntryStatus.EXISTING)
        one = _manifest(made.metadata, self._location, 1, EntryStatus.ADDED)
        self._kept: list[ManifestFile] = []
        self._commit("append", [self._store(one) for _ in range(shape.manifests)])

    def append(self) -> float:
        """Commit once more; return the seconds that the commit itself took."""
        kept = self._kept
        merged = [self._store(self._merged)] if self._shape.merges else []
        seconds = self._commit("append", [self._store(self._append), *merged], [] if merged else kept)
        # The next round is to find the table as this one did.
        self._commit("overwrite", [], kept)
        return seconds

    def _store(self, written: WrittenManifest) -> ManifestFile:
        self._written += 1
        location = Location(f"{self._location}/metadata/{self._written:06}-m0.avro")
        self._files.write_new(location, written.content)
        return written.at(location)

    def _commit(
        self, operation: str, new: Sequence[ManifestFile], kept: Sequence[ManifestFile] = ()
    ) -> float:
        metadata: TableMetadata = load_table(self._catalog, self._identifier).metadata
        head = metadata.current_snapshot
        parent_id = head.snapshot_id if head else None
        sequence_number = metadata.last_sequence + 1
        snapshot_id = SnapshotId(FIRST_ID - 1 + sequence_number)
        own = [replace(item, added_snapshot_id=snapshot_id) for item in new]
        numbered, _ = assign_numbers([*own, *kept], sequence_number=sequence_number)
        location = Location(f"{self._location}/metadata/snap-{snapshot_id}.avro")
        self._files.write_new(
            location,
            write_manifest_list(
                numbered,
                format_version=2,
                snapshot_id=snapshot_id,
                parent_snapshot_id=parent_id,
                sequence_number=sequence_number,
            ).content,
        )
        self._kept = list(numbered)
        live = sum((item.added_files_count or 0) + (item.existing_files_count or 0) for item in numbered)
        snapshot = Snapshot(
            snapshot_id=snapshot_id,
            parent_snapshot_id=parent_id,
            sequence_number=sequence_number,
            timestamp_ms=metadata.last_updated_ms + 1,
            manifest_list=location,
            summary={
                "operation": operation,
                "total-data-files": str(live),
                "total-records": str(10 * live),
                "total-delete-files": "0",
            },
            schema_id=metadata.current_schema_id,
        )
        requirement = AssertRefSnapshotId(ref="main", snapshot_id=parent_id)
        updates: list[Update] = [
            AddSnapshot(snapshot=snapshot),
            SetSnapshotRef(ref_name="main", snapshot_id=snapshot_id, type="branch"),
        ]
        started = time.perf_counter()
        commit_table(self._catalog, self._identifier, [requirement], updates)
        return time.perf_counter() - started


def _manifest(metadata: TableMetadata, location: str, files: int, status: EntryStatus) -> WrittenManifest:
    """Return a manifest of files with bounds for each of a dozen columns."""
    bounds = {column: struct.pack("<q", START_MS + column) for column in range(1, _COLUMNS + 1)}
    counts = dict.fromkeys(range(1, _COLUMNS + 1), 10)
    number = 1 if status is EntryStatus.EXISTING else None
    entries = [
        ManifestEntry(
            status,
            SnapshotId(FIRST_ID) if number else None,
            number,
            number,
            DataFile(
                FileContent.DATA,
                Location(f"{location}/data/part-{at:05}-5b1ba57a-4d8b-2c0d-7f3e-6a9c0d1e2f30.parquet"),
                "parquet",
                SpecId(0),
                (),
                10,
                1_604_432,
                column_sizes=counts,
                value_counts=counts,
                null_value_counts=counts,
                lower_bounds=bounds,
                upper_bounds=bounds,
            ),
        )
        for at in range(files)
    ]
    return write_manifest(
        entries, schema=SCHEMA, spec=metadata.default_spec, format_version=2, snapshot_id=None
    )
