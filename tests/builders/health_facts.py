"""Facts about the health of a table that is well, to be made worse."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

from app.engine.health.facts import (
    FileFacts,
    HealthFacts,
    ManifestFacts,
    MetadataFacts,
    StatisticsFacts,
    SummaryTotals,
)
from app.engine.model.ids import SnapshotId
from tests.builders.catalogs import START_MS

MIB = 1 << 20
F = TypeVar("F", FileFacts, ManifestFacts, MetadataFacts)


def file_facts(**changed: Any) -> FileFacts:
    """Return the facts about ten files of 500 MiB in two partitions."""
    facts: dict[str, Any] = {
        "data_files": 10,
        "data_bytes": 5000 * MIB,
        "rows": 1_000_000,
        "small_below_bytes": 384 * MIB,
        "median_bytes": 500 * MIB,
        "average_bytes": 500.0 * MIB,
        "partitions": 2,
    }
    return _filled(FileFacts, facts | changed)


def manifest_facts(**changed: Any) -> ManifestFacts:
    """Return the facts about two manifests."""
    facts: dict[str, Any] = {
        "data_manifests": 2,
        "total_bytes": 12 * MIB,
        "target_bytes": 8 * MIB,
        "average_bytes": 6.0 * MIB,
        "average_overlap": 1.0,
        "overlap_by_field": {"day": 1.0},
    }
    return _filled(ManifestFacts, facts | changed)


def health_facts(
    files: FileFacts | None = None, manifests: ManifestFacts | None = None, **of_metadata: Any
) -> HealthFacts:
    """Return the facts about a partitioned table with one snapshot."""
    metadata: dict[str, Any] = {
        "format_version": 2,
        "snapshots": 1,
        "branches": 1,
        "schemas": 1,
        "partition_specs": 1,
        "last_write_ms": START_MS,
        "is_partitioned": True,
        "oldest_snapshot_ms": START_MS,
        "allows_deletes": True,
        "max_snapshot_age_ms": 5 * 86_400_000,
        "flawed_properties": (),
        "statistics": StatisticsFacts(SnapshotId(1), 0),
        "partition_statistics": StatisticsFacts(SnapshotId(1), 0),
    }
    return HealthFacts(
        looked_at_ms=START_MS,
        snapshot_id=SnapshotId(1),
        metadata=_filled(MetadataFacts, metadata | of_metadata),
        manifests=manifests or manifest_facts(),
        totals=SummaryTotals(10, 0, 5000 * MIB),
        files=files or file_facts(),
        activity=None,
    )


def _filled(kind: type[F], facts: dict[str, Any]) -> F:
    """Return facts of a kind; numbers that are not given are 0."""
    empty: dict[str, Any] = {
        "size_histogram": (),
        "worst_partitions": (),
        "latest_partitions": (),
        "sizes": {},
        "position_delete_sizes": {},
        "overlap_by_field": {},
    }
    return kind(
        **{name: facts.get(name, empty.get(name, 0)) for name in (field.name for field in fields(kind))}
    )
