"""The two logs of a table: what is added, what is dropped, what is trimmed."""

from __future__ import annotations

import pytest

from app.engine.change.logs import append_snapshot_log, next_metadata_log, repaired_snapshot_log
from app.engine.model.ids import Location, SnapshotId
from app.engine.model.snapshot import SnapshotLogEntry
from app.errors import InvalidUpdate
from tests.unit.engine.documents import NOW_MS, table


def log(*ids: int) -> list[SnapshotLogEntry]:
    return [
        SnapshotLogEntry(timestamp_ms=NOW_MS + position, snapshot_id=SnapshotId(snapshot_id))
        for position, snapshot_id in enumerate(ids)
    ]


def repaired(
    ids: tuple[int, ...],
    current: int | None,
    *,
    intermediate: set[int] | None = None,
    remaining: set[int] | None = None,
) -> list[int]:
    entries = repaired_snapshot_log(
        log(*ids),
        intermediate={SnapshotId(item) for item in intermediate or ()},
        remaining=None if remaining is None else {SnapshotId(item) for item in remaining},
        current=None if current is None else SnapshotId(current),
    )
    return [entry.snapshot_id for entry in entries]


@pytest.mark.parametrize(
    ("offset", "written"),
    [(5, 5), (-60_000, -60_000), (-60_001, 0), (-10_000_000, 0), (10_000_000, 10_000_000)],
)
def test_entry_is_never_dated_so_early_that_readers_refuse_the_log(offset: int, written: int) -> None:
    entries = log(1)

    append_snapshot_log(entries, SnapshotId(2), NOW_MS + offset)

    assert [(entry.snapshot_id, entry.timestamp_ms - NOW_MS) for entry in entries] == [(1, 0), (2, written)]


def test_first_entry_takes_its_own_time() -> None:
    entries: list[SnapshotLogEntry] = []

    append_snapshot_log(entries, SnapshotId(2), 1)

    assert entries == [SnapshotLogEntry(timestamp_ms=1, snapshot_id=SnapshotId(2))]


def test_log_that_nothing_touched_stays_even_when_it_is_wrong() -> None:
    assert repaired((1, 2), current=7) == [1, 2]


def test_snapshots_that_were_current_only_inside_a_commit_leave_no_entry() -> None:
    assert repaired((1, 2, 3, 4), current=4, intermediate={2, 3}) == [1, 4]
    assert repaired((1, 2), current=None, intermediate={2}) == [1]


@pytest.mark.parametrize(
    ("ids", "remaining", "expected"),
    [
        ((1, 2, 3), {1, 2, 3}, [1, 2, 3]),
        ((1, 2, 3), {2, 3}, [2, 3]),
        ((1, 2, 3), {1, 3}, [3]),
        ((1, 2, 1, 3), {2, 3}, [3]),
        ((3,), {3}, [3]),
        ((1, 2), {3}, []),
        ((), {3}, []),
    ],
)
def test_removed_snapshot_takes_every_entry_before_it_along(
    ids: tuple[int, ...], remaining: set[int], expected: list[int]
) -> None:
    assert repaired(ids, current=3, remaining=remaining) == expected


def test_log_that_does_not_end_with_the_current_snapshot_is_refused() -> None:
    with pytest.raises(InvalidUpdate) as caught:
        repaired((1, 2), current=1, remaining={1, 2})

    assert str(caught.value) == "Cannot set invalid snapshot log: latest entry is not the current snapshot 1"


def test_log_of_a_table_without_current_snapshot_may_end_anywhere() -> None:
    assert repaired((1, 2), current=None, remaining={1, 2}) == [1, 2]


def kept(properties: dict[str, str], count: int = 3) -> list[str]:
    base = table(
        metadata_log=[
            {"timestamp-ms": NOW_MS - 1000 + number, "metadata-file": f"f{number}"} for number in range(count)
        ]
    )
    entries = next_metadata_log(base, Location("base"), properties)
    assert entries[-1].timestamp_ms == base.last_updated_ms
    return [entry.metadata_file for entry in entries]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("100", ["f0", "f1", "f2", "base"]),
        ("4", ["f0", "f1", "f2", "base"]),
        ("2", ["f2", "base"]),
        ("1", ["base"]),
        ("0", ["base"]),
        ("-5", ["base"]),
    ],
)
def test_metadata_log_keeps_the_newest_files_and_at_least_one(value: str, expected: list[str]) -> None:
    assert kept({"write.metadata.previous-versions-max": value}) == expected


def test_metadata_log_keeps_100_files_unless_told() -> None:
    assert len(kept({}, count=98)) == 99
    assert len(kept({}, count=99)) == 100
    assert kept({}, count=100) == [*(f"f{number}" for number in range(1, 100)), "base"]


def test_metadata_log_that_is_told_nonsense_is_refused() -> None:
    with pytest.raises(InvalidUpdate, match=r"must be a whole number"):
        kept({"write.metadata.previous-versions-max": "many"})
