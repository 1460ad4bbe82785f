"""Orphans over many files on local disk: finding, marking and deleting them, beside a plain walk of the folder.

`ORPHAN_OBJECTS=50000` measures fewer files than 1,000,000.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from pathlib import Path

from app.catalog.context.catalog import Catalog
from app.catalog.deletions.orphan_search import OrphanWish
from app.catalog.deletions.orphans import mark_orphans, preview_orphans
from app.engine.model.files.manifests import DataFile, EntryStatus, FileContent, ManifestEntry, ManifestFile
from app.engine.model.ids import Location, SnapshotId
from app.engine.model.table_metadata import TableMetadata
from app.fileio.local import LocalFiles
from app.formats.manifests.lists import assign_numbers, write_manifest_list
from app.formats.manifests.writer import write_manifest
from benchmarks.report import Row
from tests.builders.catalogs import new_warehouse, server_on
from tests.builders.queues import work_off_one
from tests.builders.tables import DEPARTURES, append, commit_to, snapshot_on, table_in

OBJECTS = int(os.environ.get("ORPHAN_OBJECTS", "1000000"))
FILES_A_MANIFEST = 5_000
FILES_A_FOLDER = 1_000
ORPHAN_SHARE = 100
"""One file of so many is an orphan."""
THEN_S = time.time() - 10 * 24 * 3600


def measure(folder: Path) -> list[Row]:
    """Measure one table: a dry run, marking, and the deletion of what is marked."""
    catalog = new_warehouse(
        server_on(f"sqlite:///{folder}/orphans.db", LocalFiles()), root=f"file://{folder}/orphans"
    )
    location = _make_table(catalog)
    walked_s = _seconds(lambda: _walk(location.removeprefix("file://")))
    before_mb = _peak_mb()
    found_s = _seconds(lambda: preview_orphans(catalog, DEPARTURES, OrphanWish()))
    memory = f"{found_s:.1f} s, {_peak_mb() - before_mb:.0f} MB more memory"
    marked_s = _seconds(lambda: mark_orphans(catalog, DEPARTURES, OrphanWish(grace_ms=0)))
    deleted_s = _seconds(lambda: work_off_one(catalog.server))
    orphans = OBJECTS // ORPHAN_SHARE
    what = f"{OBJECTS:,} files, {orphans:,} orphans"
    plain = "walking the folder"
    return [
        Row(f"dry run, {what}", memory, plain, f"{found_s / walked_s:.1f}", "–"),
        Row(f"mark, {what}", f"{marked_s:.1f} s", plain, f"{marked_s / walked_s:.1f}", "–"),
        Row(
            f"look again and delete, {what}", f"{deleted_s:.1f} s", plain, f"{deleted_s / walked_s:.1f}", "–"
        ),
    ]


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _walk(folder: str) -> int:
    number = 0
    for directory, _, names in os.walk(folder):
        for name in names:
            os.stat(f"{directory}/{name}")  # noqa: PTH116 - as cheap as a listing can be
            number += 1
    return number


def _make_table(catalog: Catalog) -> str:
    metadata = table_in(catalog).metadata
    live = OBJECTS - OBJECTS // ORPHAN_SHARE
    manifests = [
        _manifest(catalog, metadata, range(start, min(live, start + FILES_A_MANIFEST)))
        for start in range(0, live, FILES_A_MANIFEST)
    ]
    numbered, _ = assign_numbers(manifests, sequence_number=1)
    snapshot = snapshot_on(metadata)
    content = write_manifest_list(
        numbered,
        format_version=2,
        snapshot_id=snapshot.snapshot_id,
        parent_snapshot_id=None,
        sequence_number=1,
    ).content
    assert snapshot.manifest_list is not None
    catalog.files.write_new(snapshot.manifest_list, content)
    commit_to(catalog, *append(snapshot))
    for number in range(live, OBJECTS):
        _write(_data_file(metadata, number))
    return metadata.location


def _data_file(metadata: TableMetadata, number: int) -> Location:
    return Location(f"{metadata.location}/data/p={number // FILES_A_FOLDER}/{number:032x}.parquet")


def _write(location: Location) -> None:
    path = Path(location.removeprefix("file://"))
    try:
        path.touch()
    except FileNotFoundError:
        path.parent.mkdir(parents=True)
        path.touch()
    os.utime(path, (THEN_S, THEN_S))


def _manifest(catalog: Catalog, metadata: TableMetadata, numbers: range) -> ManifestFile:
    entries = []
    for number in numbers:
        where = _data_file(metadata, number)
        _write(where)
        file = DataFile(FileContent.DATA, where, "parquet", metadata.default_spec_id, (), 1, 4)
        entries.append(ManifestEntry(EntryStatus.ADDED, SnapshotId(1), None, None, file))
    written = write_manifest(
        entries,
        schema=metadata.current_schema,
        spec=metadata.default_spec,
        format_version=2,
        snapshot_id=SnapshotId(1),
    )
    location = Location(f"{metadata.location}/metadata/m-{numbers.start}.avro")
    catalog.files.write_new(location, written.content)
    return written.at(location)
