"""What expiring costs as a history grows: deciding, committing, finding and deleting files; ratios show the growth."""

from __future__ import annotations

import time
from pathlib import Path

from app.catalog.context.catalog import Catalog
from app.catalog.deletions.expiry import ExpiryRequest, expire_snapshots, preview_expiry
from app.engine.change.updates import AddSnapshot, SetSnapshotRef, Update
from app.engine.model.files.manifests import DataFile, EntryStatus, FileContent, ManifestEntry, ManifestFile
from app.engine.model.ids import Location, SnapshotId
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.engine.retention.expired_snapshots import ExpiryWish
from app.formats.manifests.lists import assign_numbers, write_manifest_list
from app.formats.manifests.source import ManifestCache
from app.formats.manifests.writer import write_manifest
from app.formats.metadata.files import MetadataFiles
from app.settings import Settings
from benchmarks.report import Row
from tests.builders.catalogs import START_MS, catalog_on, with_server
from tests.builders.commits import commit_table
from tests.builders.queues import work_off_one
from tests.builders.tables import DEPARTURES, table_in

SIZES = (1_000, 10_000)
LIVE_MANIFESTS = 10
EVERYTHING_OLD = ExpiryRequest(ExpiryWish(older_than_ms=START_MS * 2, retain_last=1))


def measure(folder: Path) -> list[Row]:
    """Measure histories in which each commit adds a manifest and drops the eleventh before it."""
    rows: list[Row] = []
    before: tuple[float, ...] | None = None
    for size in SIZES:
        catalog = catalog_on(f"sqlite:///{folder}/expiry-{size}.db")
        _make_history(catalog, size)
        # As in a server that has read no manifest yet; the memory for metadata is that of the settings.
        files = MetadataFiles(Settings().metadata_cache_bytes, 0)
        cold = with_server(catalog, manifest_cache=ManifestCache(0), metadata_files=files)
        seconds = _measure_one(cold)
        growth = size / SIZES[0]
        for place, what in enumerate(("dry run", "decide and commit", "find and delete the files")):
            ratio = "–" if before is None else f"{seconds[place] / before[place]:.1f}"
            target = "–" if before is None else f"≤ {2 * growth:.0f} (linear is {growth:.0f})"
            rows.append(
                Row(
                    f"{what}, {size:,} snapshots",
                    f"{seconds[place]:.2f} s",
                    "the smaller history",
                    ratio,
                    target,
                )
            )
        before = before or seconds
    return rows


def _measure_one(catalog: Catalog) -> tuple[float, float, float]:
    started = time.perf_counter()
    preview_expiry(catalog, DEPARTURES, EVERYTHING_OLD)
    looked = time.perf_counter()
    expire_snapshots(catalog, DEPARTURES, EVERYTHING_OLD)
    landed = time.perf_counter()
    work_off_one(catalog.server)
    return looked - started, landed - looked, time.perf_counter() - landed


def _make_history(catalog: Catalog, size: int) -> None:
    metadata = table_in(catalog).metadata
    files = catalog.files
    live: list[ManifestFile] = []
    updates: list[Update] = []
    for number in range(1, size + 1):
        snapshot_id = SnapshotId(number)
        live = [*live[1 - LIVE_MANIFESTS :], _manifest(catalog, metadata, number)]
        numbered, _ = assign_numbers(live, sequence_number=number)
        live = list(numbered)
        parent = SnapshotId(number - 1) if number > 1 else None
        location = Location(f"{metadata.location}/metadata/snap-{number}.avro")
        content = write_manifest_list(
            live, format_version=2, snapshot_id=snapshot_id, parent_snapshot_id=parent, sequence_number=number
        ).content
        files.write_new(location, content)
        snapshot = Snapshot(
            snapshot_id=snapshot_id,
            parent_snapshot_id=parent,
            sequence_number=number,
            timestamp_ms=metadata.last_updated_ms + number,
            manifest_list=location,
            summary={"operation": "overwrite"},
            schema_id=metadata.current_schema_id,
        )
        updates.append(AddSnapshot(snapshot=snapshot))
    updates.append(SetSnapshotRef(ref_name="main", snapshot_id=SnapshotId(size), type="branch"))
    commit_table(catalog, DEPARTURES, [], updates)


def _manifest(catalog: Catalog, metadata: TableMetadata, number: int) -> ManifestFile:
    files = catalog.files
    path = Location(f"{metadata.location}/data/{number}.parquet")
    files.write_new(path, b"rows")
    entry = ManifestEntry(
        EntryStatus.ADDED,
        SnapshotId(number),
        None,
        None,
        DataFile(FileContent.DATA, path, "parquet", metadata.default_spec_id, (), 1, 4),
    )
    written = write_manifest(
        [entry],
        schema=metadata.current_schema,
        spec=metadata.default_spec,
        format_version=2,
        snapshot_id=SnapshotId(number),
    )
    location = Location(f"{metadata.location}/metadata/m-{number}.avro")
    files.write_new(location, written.content)
    return written.at(location)
