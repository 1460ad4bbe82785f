"""Where manifests come from: read once for all who ask, within the budget, from the local folder if there is one."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from app.engine.model.files.manifests import DataFile, EntryStatus, FileContent, ManifestEntry, ManifestFile
from app.engine.model.ids import Location, SnapshotId, SpecId
from app.engine.model.partition_spec import PartitionSpec
from app.engine.model.schema import Schema
from app.engine.model.snapshot import Snapshot
from app.errors import FileMissing, InvalidMetadata
from app.fileio.memory import MemoryFiles
from app.formats.bounds import MAX_FILE_BYTES
from app.formats.manifests.folder import ManifestFolder
from app.formats.manifests.lists import assign_numbers, write_manifest_list
from app.formats.manifests.source import FileManifestSource, ManifestCache
from app.formats.manifests.writer import write_manifest

LIST, MANIFEST = Location("s3://b/t/snap-1.avro"), Location("s3://b/t/m-1.avro")
SNAPSHOT = Snapshot(
    snapshot_id=SnapshotId(1), sequence_number=1, timestamp_ms=1, manifest_list=LIST, summary={}
)
FILE = DataFile(FileContent.DATA, Location("s3://b/t/1.parquet"), "parquet", SpecId(0), (), 1, 1)
THREADS = 8


class CountedFiles(MemoryFiles):
    """Files that count their readings, and let nobody read before `go`."""

    def __init__(self) -> None:
        super().__init__()
        self.readings: list[str] = []
        self.go = threading.Event()

    def read(self, location: Location) -> bytes:
        self.readings.append(location)
        assert self.go.wait(30)
        return super().read(location)


@pytest.fixture
def files() -> CountedFiles:
    """Return files with a snapshot of one manifest of one data file."""
    files = CountedFiles()
    entry = ManifestEntry(EntryStatus.ADDED, None, None, None, FILE)
    written = write_manifest(
        [entry],
        schema=Schema(type="struct", fields=()),
        spec=PartitionSpec(spec_id=SpecId(0), fields=()),
        format_version=2,
        snapshot_id=SnapshotId(1),
    )
    (numbered,), _ = assign_numbers([written.at(MANIFEST)], sequence_number=1)
    listed = write_manifest_list(
        [numbered], format_version=2, snapshot_id=SnapshotId(1), parent_snapshot_id=None, sequence_number=1
    ).content
    files.write_new(MANIFEST, written.content)
    files.write_new(LIST, listed)
    return files


def paths_in(source: FileManifestSource) -> list[str]:
    return [
        entry.file.file_path for manifest in source.manifests(SNAPSHOT) for entry in source.entries(manifest)
    ]


def test_many_threads_that_want_one_manifest_read_it_once(files: CountedFiles) -> None:
    cache = ManifestCache(1 << 20)

    with ThreadPoolExecutor(THREADS) as pool:
        found = [pool.submit(paths_in, FileManifestSource(files, cache)) for _ in range(THREADS)]
        files.go.set()

    assert [answer.result() for answer in found] == [[FILE.file_path]] * THREADS
    assert files.readings == [LIST, MANIFEST]


def test_without_a_budget_nothing_is_kept(files: CountedFiles) -> None:
    files.go.set()
    source = FileManifestSource(files, ManifestCache(0))

    assert [paths_in(source), paths_in(source)] == [[FILE.file_path]] * 2
    assert files.readings == [LIST, MANIFEST] * 2


@pytest.mark.parametrize(("max_bytes", "are_kept"), [(1 << 20, True), (0, False)])
def test_columns_of_files_are_kept_for_the_next_filter(
    files: CountedFiles, max_bytes: int, *, are_kept: bool
) -> None:
    files.go.set()
    source = FileManifestSource(files, ManifestCache(max_bytes))
    (manifest,) = source.manifests(SNAPSHOT)
    columns = source.columns(manifest)

    found = columns.files_at([0])

    assert found.paths == [FILE.file_path]
    assert (columns.files_at(range(1)) is found) == are_kept
    assert columns.files_at([]).paths == []


def test_the_same_location_in_another_store_is_another_file(files: CountedFiles) -> None:
    files.go.set()
    cache = ManifestCache(1 << 20)
    paths_in(FileManifestSource(files, cache))

    with pytest.raises(FileMissing):
        paths_in(FileManifestSource(MemoryFiles(), cache))


def test_with_a_folder_another_process_need_not_read(files: CountedFiles, tmp_path: Path) -> None:
    files.go.set()

    for _ in range(2):
        read = ManifestFolder(tmp_path, 1 << 20).reader({}, 0, files.read)
        assert paths_in(FileManifestSource(files, ManifestCache(1 << 20), read)) == [FILE.file_path]

    assert files.readings == [LIST, MANIFEST]


def test_a_manifest_that_says_it_is_too_large_is_not_fetched(files: CountedFiles) -> None:
    source = FileManifestSource(files, ManifestCache(0))
    manifest = ManifestFile(MANIFEST, MAX_FILE_BYTES + 1, SpecId(0))

    with pytest.raises(InvalidMetadata, match=f"Cannot read manifest {MANIFEST}: .* larger than"):
        source.entries(manifest)
    assert files.readings == []


def test_a_manifest_larger_than_it_says_is_not_read(files: CountedFiles) -> None:
    files.go.set()
    size = len(files.read(MANIFEST))
    (manifest,) = FileManifestSource(files, ManifestCache(0)).manifests(SNAPSHOT)
    source = FileManifestSource(files, ManifestCache(0, max_file_bytes=size - 1))

    with pytest.raises(InvalidMetadata, match=f"more than {size - 1} bytes.*max_metadata_bytes raises"):
        source.entries(replace(manifest, manifest_length=1))


def test_a_manifest_shorter_than_listed_is_told(files: CountedFiles) -> None:
    files.go.set()
    source = FileManifestSource(files, ManifestCache(0))
    (manifest,) = source.manifests(SNAPSHOT)

    with pytest.raises(InvalidMetadata, match=f"Cannot read manifest {MANIFEST}: it has .* bytes"):
        source.entries(replace(manifest, manifest_length=manifest.manifest_length + 1))


@pytest.mark.parametrize(("max_bytes", "are_shared"), [(1 << 20, True), (0, False)])
def test_list_takes_the_lines_that_it_shares_with_the_one_before(max_bytes: int, *, are_shared: bool) -> None:
    files = MemoryFiles()
    manifests = [
        ManifestFile(
            Location(f"s3://b/t/m-{at}.avro"),
            100,
            SpecId(0),
            added_snapshot_id=SnapshotId(1),
            added_files_count=1,
            existing_files_count=0,
            deleted_files_count=0,
            added_rows_count=1,
            existing_rows_count=0,
            deleted_rows_count=0,
        )
        for at in range(80)
    ]
    snapshots = []
    for number, listed in ((1, manifests[:-1]), (2, manifests[1:])):
        place = Location(f"s3://b/t/list-{number}.avro")
        content = write_manifest_list(
            listed,
            format_version=2,
            snapshot_id=SnapshotId(number),
            parent_snapshot_id=None,
            sequence_number=1,
        ).content
        files.write_new(place, content)
        snapshots.append(SNAPSHOT.replace(snapshot_id=SnapshotId(number), manifest_list=place))

    source = FileManifestSource(files, ManifestCache(max_bytes))
    before, after = map(source.manifests, snapshots)

    assert list(after) == manifests[1:]
    assert all((one is other) is are_shared for one, other in zip(before[1:], after, strict=False))


@pytest.mark.parametrize(
    ("statuses", "writer"),
    [
        ([EntryStatus.ADDED], 7),
        ([EntryStatus.EXISTING, EntryStatus.DELETED], 7),
        ([EntryStatus.EXISTING], None),
        ([], None),
    ],
)
def test_a_manifest_without_a_list_was_written_by_the_snapshot_that_its_entries_name(
    statuses: list[EntryStatus], writer: int | None
) -> None:
    """Snapshots of version 1 may name their manifests themselves; conflicts and scans ask who wrote them."""
    files, first = MemoryFiles(), SnapshotId(3)
    entries = [
        ManifestEntry(status, first if status is EntryStatus.EXISTING else SnapshotId(7), None, None, FILE)
        for status in statuses
    ]
    written = write_manifest(
        entries,
        schema=Schema(type="struct", fields=()),
        spec=PartitionSpec(spec_id=SpecId(0), fields=()),
        format_version=1,
        snapshot_id=SnapshotId(7),
    )
    files.write_new(MANIFEST, written.content)
    snapshot = Snapshot(snapshot_id=SnapshotId(7), timestamp_ms=1, manifests=(MANIFEST,))

    (found,) = FileManifestSource(files, ManifestCache(1 << 20)).manifests(snapshot)

    assert found.added_snapshot_id == writer


def test_what_is_no_manifest_is_listed_all_the_same(files: CountedFiles) -> None:
    """Reading its entries says what is wrong."""
    files.go.set()
    snapshot = Snapshot(snapshot_id=SnapshotId(7), timestamp_ms=1, manifests=(LIST,))
    source = FileManifestSource(files, ManifestCache(0))

    (found,) = source.manifests(snapshot)

    assert found.added_snapshot_id is None
    with pytest.raises(InvalidMetadata, match=f"Cannot read manifest {LIST}"):
        source.entries(found)
