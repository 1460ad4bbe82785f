"""Facts about metadata: statistics beside the snapshot, totals of summaries, the size that writers aim at."""

from __future__ import annotations

import pytest

from app.engine.health.facts import StatisticsFacts, SummaryTotals
from app.engine.health.metadata_facts import metadata_facts, summary_totals, target_file_bytes
from app.engine.model.snapshot import Snapshot
from tests.unit.engine.documents import NOW_MS, snapshot_json, table, table_with_snapshots

STATISTICS = {"statistics-path": "s3://b/s", "file-size-in-bytes": 1}


def test_statistics_are_missing_stale_or_current() -> None:
    base = table_with_snapshots(3)
    first, second, head = base.snapshots
    with_statistics = table_with_snapshots(
        3,
        statistics=[
            {
                **STATISTICS,
                "snapshot-id": first.snapshot_id,
                "file-footer-size-in-bytes": 1,
                "blob-metadata": [],
            }
        ],
        partition_statistics=[{**STATISTICS, "snapshot-id": head.snapshot_id}],
    )

    facts = metadata_facts(with_statistics, head, 77)

    assert facts.statistics == StatisticsFacts(first.snapshot_id, 2)
    assert (facts.statistics.state, facts.partition_statistics.state) == ("stale", "current")
    # Seen from an older snapshot, those of a newer one are no help.
    assert metadata_facts(with_statistics, second, 77).partition_statistics.state == "missing"
    assert metadata_facts(table(), None, 77).statistics.state == "missing"


def test_snapshots_refs_and_sizes_are_counted() -> None:
    found = table_with_snapshots(3)

    facts = metadata_facts(found, found.current_snapshot, 77)

    assert (facts.snapshots, facts.branches, facts.tags, facts.metadata_bytes) == (3, 1, 0, 77)
    assert facts.oldest_snapshot_ms == min(snapshot.timestamp_ms for snapshot in found.snapshots)
    assert facts.oldest_expirable_ms == facts.oldest_snapshot_ms
    assert (facts.is_partitioned, facts.format_version) == (True, 2)
    assert metadata_facts(table(), None, 1).oldest_snapshot_ms is None


def test_what_branches_tags_and_least_numbers_keep_cannot_expire() -> None:
    head = table_with_snapshots(3).current_snapshot_id
    kept = table_with_snapshots(
        3, refs={"main": {"snapshot-id": head, "type": "branch", "min-snapshots-to-keep": 3}}
    )

    assert metadata_facts(kept, kept.current_snapshot, 77).oldest_expirable_ms is None
    assert metadata_facts(table_with_snapshots(1), None, 77).oldest_expirable_ms is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [(None, 512 << 20), ("1048576", 1 << 20), ("0", 512 << 20), ("-1", 512 << 20), ("large", 512 << 20)],
)
def test_size_that_writers_aim_at(text: str | None, expected: int) -> None:
    assert target_file_bytes({} if text is None else {"write.target-file-size-bytes": text}) == expected


def test_totals_that_a_writer_left_out_are_not_known() -> None:
    summary = {
        "operation": "append",
        "total-data-files": "3",
        "total-files-size": "x",
        "total-delete-files": "1",
    }
    snapshot = Snapshot.from_object({**snapshot_json(1, NOW_MS), "summary": summary})

    totals = summary_totals(snapshot)

    assert (totals, totals.average_bytes) == (SummaryTotals(3, 1, None), None)
    assert SummaryTotals(3, 1, 40).average_bytes == 10
    assert summary_totals(None) == SummaryTotals(0, 0, 0)
