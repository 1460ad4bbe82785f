"""What is said of a table, by its facts: each finding just below and just above its limit."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from app.engine.health.facts import (
    ActivityFacts,
    FileFacts,
    HealthFacts,
    ManifestFacts,
    MetadataFacts,
    StatisticsFacts,
    SummaryTotals,
)
from app.engine.health.findings import (
    HealthFinding,
    Severity,
    about_snapshot,
    badness,
    findings,
    unreadable,
)
from app.engine.health.thresholds import HealthThresholds
from app.engine.model.ids import SnapshotId

MEBIBYTE = 1 << 20
DAY_MS = 86_400_000
NOW_MS = 1_000 * DAY_MS
LIMITS = HealthThresholds()
MISSING = StatisticsFacts(None, None)
METADATA = MetadataFacts(
    2, 5, NOW_MS - DAY_MS, NOW_MS - DAY_MS, 1, 0, 1, 1, 1, 9_000, 10, NOW_MS, is_partitioned=True,
    target_file_bytes=512 * MEBIBYTE, target_delete_file_bytes=64 * MEBIBYTE,
    is_encrypted=False, allows_deletes=True, max_snapshot_age_ms=DAY_MS,
    flawed_properties=(), statistics=MISSING, partition_statistics=MISSING,
)  # fmt: skip
MANIFESTS = ManifestFacts(4, 0, 4_000, 1_000.0, 8 * MEBIBYTE, 4, 0, 1.0, {"day": 1.0})
ZEROS: dict[str, Any] = {field.name: 0 for field in fields(FileFacts)}
FILES = replace(
    FileFacts(**ZEROS),
    data_files=200,
    rows=1_000_000,
    average_bytes=500.0 * MEBIBYTE,
    small_below_bytes=384 * MEBIBYTE,
    partitions=4,
    partition_skew=1.0,
    worst_partitions=(),
    sizes={},
    position_delete_sizes={},
)
WELL = HealthFacts(
    NOW_MS,
    SnapshotId(1),
    METADATA,
    MANIFESTS,
    SummaryTotals(200, 0, 200 * 500 * MEBIBYTE),
    FILES,
    ActivityFacts(1.0, 1.0, None),
)


def with_files(**changes: Any) -> HealthFacts:
    return replace(WELL, files=replace(FILES, **changes))


def with_metadata(**changes: Any) -> HealthFacts:
    return replace(WELL, metadata=replace(METADATA, **changes))


def with_manifests(**changes: Any) -> HealthFacts:
    return replace(WELL, manifests=replace(MANIFESTS, **changes))


def codes(facts: HealthFacts, limits: HealthThresholds = LIMITS) -> list[tuple[str, str]]:
    return [(found.code, found.severity.value) for found in findings(facts, limits)]


def test_a_healthy_table_has_no_finding() -> None:
    assert codes(WELL) == []


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (with_files(average_bytes=7.0 * MEBIBYTE), ("small-files", "warning")),
        (with_files(average_bytes=0.9 * MEBIBYTE), ("small-files", "critical")),
        (with_files(most_small_files=101, small_files=101), ("small-files-in-partition", "warning")),
        (with_files(position_delete_files=11), ("delete-files", "info")),
        (with_files(position_delete_files=60, deletion_vectors=40), ("delete-files", "info")),
        (
            with_files(position_delete_files=61, data_files=400, deletion_vectors=40),
            ("delete-files", "warning"),
        ),
        (with_files(equality_delete_files=101), ("delete-files", "critical")),
        (with_files(deleted_positions=200_001), ("deleted-rows", "warning")),
        (with_files(equality_deletes=100_001), ("equality-deletes", "warning")),
        (with_files(dangling_deletes=1, position_delete_files=1), ("dangling-deletes", "info")),
        (with_files(partition_skew=10.1), ("partition-skew", "info")),
        (with_files(old_spec_files=1), ("old-spec-files", "info")),
        (with_files(old_spec_files=1, equality_delete_files=1), ("old-spec-files", "warning")),
        (with_files(old_order_files=1), ("old-order-files", "info")),
        (with_metadata(snapshots=101), ("snapshots", "warning")),
        (with_metadata(snapshots=501), ("snapshots", "critical")),
        (with_metadata(metadata_bytes=8 * MEBIBYTE + 1), ("metadata-size", "warning")),
        (with_metadata(metadata_log_entries=101), ("metadata-log", "info")),
        (with_metadata(schemas=11), ("old-schemas-and-specs", "info")),
        (with_metadata(partition_specs=4), ("old-schemas-and-specs", "info")),
        (with_metadata(format_version=1), ("format-version", "info")),
        (with_metadata(is_partitioned=False), ("unpartitioned", "info")),
        (with_metadata(last_write_ms=NOW_MS - 91 * DAY_MS), ("not-written", "info")),
        (with_metadata(statistics=StatisticsFacts(SnapshotId(1), 2)), ("stale-statistics", "info")),
        (
            with_metadata(partition_statistics=StatisticsFacts(SnapshotId(1), 1)),
            ("stale-partition-statistics", "info"),
        ),
        (with_manifests(small_manifests=101, data_manifests=120), ("small-manifests", "warning")),
        (with_manifests(average_overlap=10.5, data_manifests=20), ("unclustered-manifests", "warning")),
        (replace(WELL, activity=ActivityFacts(1.0, 2.1, None)), ("contention", "info")),
        (with_metadata(is_encrypted=True), ("encrypted", "info")),
        (with_metadata(flawed_properties=("a must be b",)), ("flawed-properties", "warning")),
        (replace(WELL, files=None, unreadable="m.avro is cut off"), ("unreadable-manifest", "critical")),
    ],
)
def test_above_its_limit_there_is_a_finding(facts: HealthFacts, expected: tuple[str, str]) -> None:
    assert codes(facts) == [expected]


@pytest.mark.parametrize(
    "facts",
    [
        with_files(average_bytes=8.0 * MEBIBYTE),
        with_files(average_bytes=10.0, data_files=10),
        with_files(most_small_files=100),
        with_files(position_delete_files=10),
        with_files(deleted_positions=200_000),
        with_files(equality_deletes=100_000),
        with_files(partition_skew=10.0),
        with_metadata(snapshots=100),
        with_metadata(metadata_log_entries=100, schemas=10, partition_specs=3, metadata_bytes=8 * MEBIBYTE),
        with_metadata(last_write_ms=NOW_MS - 90 * DAY_MS),
        with_metadata(statistics=StatisticsFacts(SnapshotId(1), 0)),
        with_manifests(small_manifests=100),
        with_manifests(average_overlap=10.5, data_manifests=21),
        with_manifests(average_overlap=None),
        replace(WELL, activity=ActivityFacts(1.0, 2.0, None)),
        replace(WELL, activity=ActivityFacts(0.0, None, None)),
        replace(with_metadata(is_partitioned=False), files=replace(FILES, data_files=100)),
    ],
)
def test_at_its_limit_there_is_none(facts: HealthFacts) -> None:
    assert codes(facts) == []


def test_files_of_the_size_that_writers_aim_at_are_not_small() -> None:
    facts = with_files(average_bytes=7.0 * MEBIBYTE)

    assert codes(replace(facts, metadata=replace(METADATA, target_file_bytes=9 * MEBIBYTE))) == []


def test_equality_deletes_without_a_partition_apply_to_files_of_old_specs() -> None:
    facts = with_files(old_spec_files=1, equality_delete_files=1)

    assert ("old-spec-files", "info") in codes(
        replace(facts, metadata=replace(METADATA, is_partitioned=False))
    )


def test_without_manifests_the_totals_of_the_summary_are_asked() -> None:
    overview = replace(WELL, files=None, activity=None)

    assert codes(overview) == []
    assert codes(replace(overview, totals=SummaryTotals(20, 0, 20 * MEBIBYTE // 2))) == [
        ("small-files", "critical")
    ]
    assert codes(replace(overview, totals=SummaryTotals(20, 11, None))) == [("delete-files", "critical")]
    assert codes(replace(overview, totals=SummaryTotals(None, None, None))) == []


def test_each_sentence_has_its_figures_and_the_most_urgent_comes_first() -> None:
    facts = replace(
        with_files(average_bytes=1024.0, old_spec_files=3), metadata=replace(METADATA, snapshots=101)
    )

    first, second, third = findings(facts, LIMITS)

    assert first == HealthFinding(
        "small-files",
        Severity.CRITICAL,
        "200 data files have 1.0 KiB on average; writers aim at 512.0 MiB.",
        "icetower maintain {table} --jobs rewrite-data-files --spark 'local[*]'",
    )
    assert (second.message, second.command) == (
        "The table keeps 101 snapshots, the oldest for 1 day.",
        "icetower table expire {table}",
    )
    assert third.message == "3 of 200 data files have an old partition spec."
    assert badness([first, second, third, unreadable("gone")]) == (2, 1, 1)


@pytest.mark.parametrize(
    ("settings", "end", "command"),
    [
        ({}, "the oldest for 1 day", "icetower table expire {table}"),
        (
            {"max_snapshot_age_ms": 5 * DAY_MS},
            "the oldest for 1 day, and its settings keep them for 5 days",
            "icetower table expire {table} --older-than 1h",
        ),
        (
            {
                "max_snapshot_age_ms": 5 * DAY_MS,
                "oldest_snapshot_ms": NOW_MS - 2 * DAY_MS,
                "oldest_expirable_ms": NOW_MS - 2 * DAY_MS,
            },
            "the oldest for 2 days, and its settings keep them for 5 days",
            "icetower table expire {table} --older-than 1d",
        ),
        (
            {"max_snapshot_age_ms": 5 * DAY_MS, "oldest_snapshot_ms": NOW_MS - 99 * DAY_MS},
            "the oldest for 99 days, and its settings keep them for 5 days",
            "icetower table expire {table} --older-than 1h",
        ),
        (
            {"oldest_expirable_ms": None},
            "the oldest for 1 day, and its branches, tags and least numbers keep all of them",
            None,
        ),
        ({"allows_deletes": False}, "the oldest for 1 day, and gc.enabled forbids to expire them", None),
    ],
)
def test_snapshots_that_a_table_keeps_have_a_command_that_lets_them_go(
    settings: dict[str, Any], end: str, command: str | None
) -> None:
    (found,) = findings(with_metadata(snapshots=101, **settings), LIMITS)

    assert (found.message, found.command) == (f"The table keeps 101 snapshots, {end}.", command)


def test_limits_can_be_set_by_their_names() -> None:
    limits = HealthThresholds.of({"snapshots-warning": "3", "partition-skew": "0.5"})

    assert codes(WELL, limits) == [("snapshots", "warning"), ("partition-skew", "info")]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"snapshot-warning": "3"}, "there is no threshold 'snapshot-warning'; known are least-files, "),
        ({"snapshots-warning": "many"}, "snapshots-warning must be a number of 0 or more, found 'many'"),
        ({"snapshots-warning": "-1"}, "snapshots-warning must be a number of 0 or more, found '-1'"),
        ({"snapshots-warning": "nan"}, "snapshots-warning must be a number of 0 or more, found 'nan'"),
        ({"snapshots-warning": "inf"}, "snapshots-warning must be a number of 0 or more, found 'inf'"),
    ],
)
def test_limits_that_make_no_sense_are_refused(changed: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=r"threshold|number") as refused:
        HealthThresholds.of(changed)

    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    ("changes", "is_mended_by_a_job"),
    [
        ({"partitions": 200}, False),
        ({"partitions": 200, "partitions_with_small_files": 1}, True),
        ({"partitions": 200, "old_spec_files": 2}, True),
    ],
)
def test_small_files_that_are_alone_in_their_partitions_are_mended_by_no_job(
    changes: dict[str, int], is_mended_by_a_job: bool
) -> None:
    found, *_ = findings(with_files(average_bytes=1.0, small_files=200, **changes), LIMITS)

    assert found.code == "small-files"
    assert (found.command is not None) == is_mended_by_a_job
    assert ("coarser partition spec" in found.message) != is_mended_by_a_job


def test_commands_about_another_snapshot_leave_main_alone() -> None:
    facts = with_files(average_bytes=1024.0, old_spec_files=3, dangling_deletes=1, position_delete_files=1)
    stale = StatisticsFacts(SnapshotId(5), 2)
    found = findings(
        replace(facts, metadata=replace(METADATA, snapshots=101, partition_statistics=stale)), LIMITS
    )

    about = {each.code: about_snapshot(each, SnapshotId(7), "audit").command for each in found}

    assert about == {
        "small-files": None,
        "snapshots": "icetower table expire {table}",
        "old-spec-files": None,
        "dangling-deletes": "icetower table remove-dangling-deletes {table} --branch audit",
        "stale-partition-statistics": "icetower table partition-statistics {table} --snapshot-id 7",
    }
