from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from app.engine.diff.file_diff import FileDiff, FileTotals, file_diff
from app.engine.model.files.manifests import EntryStatus, FileContent, ManifestEntry
from app.engine.model.ids import Location, SnapshotId
from tests.builders.histories import ListedManifests, entry, snapshot


def paths(diff: FileDiff) -> tuple[list[str], list[str]]:
    return [item.file.file_path for item in diff.added], [item.file.file_path for item in diff.removed]


def source(**contents: list[ManifestEntry]) -> ListedManifests:
    """Return manifests by their names; `old…` are in snapshot 1, `new…` in snapshot 2, all others in both."""
    lists: dict[SnapshotId, Sequence[str]] = {
        SnapshotId(1): [name for name in contents if not name.startswith("new")],
        SnapshotId(2): [name for name in contents if not name.startswith("old")],
    }
    return ListedManifests(lists, dict(contents))


def test_shared_manifests_are_not_read() -> None:
    manifests = source(both=[entry("a")], new=[entry("b")])

    diff = file_diff(manifests, snapshot(1), snapshot(2))

    assert paths(diff) == (["b"], [])
    assert manifests.reads == 3


def test_file_that_was_moved_to_another_manifest_is_no_difference() -> None:
    manifests = source(
        old=[entry("a"), entry("b")], new=[entry("b", EntryStatus.EXISTING), entry("a", EntryStatus.DELETED)]
    )

    assert paths(file_diff(manifests, snapshot(1), snapshot(2))) == ([], ["a"])
    assert paths(file_diff(manifests, snapshot(2), snapshot(1))) == (["a"], [])


def test_no_snapshot_is_an_empty_table() -> None:
    manifests = source(both=[entry("a"), entry("gone", EntryStatus.DELETED)])

    assert paths(file_diff(manifests, None, snapshot(1))) == (["a"], [])
    assert paths(file_diff(manifests, snapshot(1), None)) == ([], ["a"])
    assert paths(file_diff(manifests, None, None)) == ([], [])


def vector(offset: int, size: int) -> ManifestEntry:
    made = entry("v.puffin", content=FileContent.POSITION_DELETES)
    file = replace(
        made.file,
        content_offset=offset,
        content_size_in_bytes=size,
        referenced_data_file=Location(f"d{offset}"),
    )
    return replace(made, file=file)


def test_deletion_vectors_of_one_file_are_told_apart_and_counted_by_their_own_size() -> None:
    manifests = source(old=[vector(4, 30)], new=[vector(4, 30), vector(34, 12)])

    diff = file_diff(manifests, snapshot(1), snapshot(2))

    assert diff.totals().added == FileTotals(delete_files=1, deletes=1, bytes=12)


def test_counts_are_those_of_each_partition_and_of_the_whole() -> None:
    def of(partition: int, path: str) -> ManifestEntry:
        made = entry(path)
        return replace(made, file=replace(made.file, partition=(partition,)))

    manifests = source(old=[of(1, "a")], new=[of(1, "b"), of(2, "c"), of(2, "d")])

    diff = file_diff(manifests, snapshot(1), snapshot(2))

    assert diff.totals().added == FileTotals(data_files=3, rows=3, bytes=30)
    assert diff.totals().removed == FileTotals(data_files=1, rows=1, bytes=10)
    counts = {
        partition: (totals.added.rows, totals.removed.rows) for _, (partition,), totals in diff.by_partition()
    }
    assert counts == {1: (1, 1), 2: (2, 0)}


def test_nan_is_one_partition_and_minus_zero_is_another_than_zero() -> None:
    def of(partition: float, path: str) -> ManifestEntry:
        made = entry(path)
        return replace(made, file=replace(made.file, partition=(partition,)))

    infinity = math.inf
    manifests = source(
        old=[of(math.nan, "a"), of(0.0, "b")], new=[of(infinity - infinity, "c"), of(-0.0, "d")]
    )

    found = file_diff(manifests, snapshot(1), snapshot(2)).by_partition()

    counts = [(str(value), totals.added.rows, totals.removed.rows) for _, (value,), totals in found]
    assert counts == [("nan", 1, 1), ("-0.0", 1, 0), ("0.0", 0, 1)]


def test_files_are_forgotten_in_pieces() -> None:
    """All at once, a million of them keep every other thread waiting."""
    diff = FileDiff(added=[entry(f"a{number}") for number in range(25_000)], removed=[entry("b")])

    diff.let_go()

    assert paths(diff) == ([], [])
