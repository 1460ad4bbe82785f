"""Facts about a table's metadata: snapshots, refs, logs, statistics, totals of summaries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from app.engine.health.facts import MetadataFacts, StatisticsFacts, SummaryTotals
from app.engine.model.ancestry import ancestors
from app.engine.model.document import MAX_LONG, find_count
from app.engine.model.ids import SnapshotId
from app.engine.model.settings.properties import allows_deletes
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.engine.properties.known import Origin
from app.engine.properties.lookup import flaws_of, text_in_force
from app.engine.retention.expired_snapshots import MAX_SNAPSHOT_AGE, ExpiryWish, plan_expiry
from app.errors import BadRequest

_TARGET_FILE_SIZE: Final = "write.target-file-size-bytes"
_TARGET_DELETE_FILE_SIZE: Final = "write.delete.target-file-size-bytes"
_SMALL_SHARE: Final = 0.75
"""What compaction takes for too small: `min-file-size-bytes` of Spark's rewrite_data_files."""


def target_file_bytes(properties: Mapping[str, str]) -> int:
    """Return the size of data files that a table's writers aim at."""
    return _bytes(properties, _TARGET_FILE_SIZE)


def _bytes(properties: Mapping[str, str], name: str) -> int:
    return int(text_in_force({Origin.TABLE: properties}, name) or 0)


def _oldest_expirable_ms(metadata: TableMetadata) -> int | None:
    """Return when the oldest snapshot that can expire was made, at the last write."""
    try:
        gone = plan_expiry(metadata, ExpiryWish(older_than_ms=MAX_LONG), metadata.last_updated_ms).snapshots
    except BadRequest:  # It does not allow it, or a setting makes no sense: other findings say so.
        gone = metadata.snapshots
    return min((snapshot.timestamp_ms for snapshot in gone), default=None)


def small_below(target_bytes: int) -> int:
    """Return the size below which data files are small, for the size that writers aim at."""
    return int(target_bytes * _SMALL_SHARE)


def metadata_facts(metadata: TableMetadata, snapshot: Snapshot | None, metadata_bytes: int) -> MetadataFacts:
    """Return the facts about a table's metadata.

    Args:
        metadata: the table's.
        snapshot: the one that is looked at, beside which statistics are held.
        metadata_bytes: the size of the metadata as JSON.
    """
    refs = list(metadata.snapshot_refs.values())
    moments = (item.timestamp_ms for item in metadata.snapshots)
    return MetadataFacts(
        format_version=metadata.format_version,
        snapshots=len(metadata.snapshots),
        oldest_snapshot_ms=min(moments, default=None),
        oldest_expirable_ms=_oldest_expirable_ms(metadata),
        branches=sum(ref.is_branch for ref in refs),
        tags=sum(not ref.is_branch for ref in refs),
        schemas=len(metadata.schemas),
        partition_specs=len(metadata.partition_specs),
        sort_orders=len(metadata.sort_orders),
        metadata_bytes=metadata_bytes,
        metadata_log_entries=len(metadata.metadata_log),
        last_write_ms=metadata.last_updated_ms,
        is_partitioned=not metadata.default_spec.is_unpartitioned,
        target_file_bytes=target_file_bytes(metadata.properties),
        target_delete_file_bytes=_bytes(metadata.properties, _TARGET_DELETE_FILE_SIZE),
        is_encrypted=metadata.is_encrypted,
        allows_deletes=allows_deletes(metadata.properties),
        max_snapshot_age_ms=int(text_in_force({Origin.TABLE: metadata.properties}, MAX_SNAPSHOT_AGE) or 0),
        flawed_properties=tuple(flaws_of(metadata.properties)),
        statistics=_statistics(metadata, snapshot, (item.snapshot_id for item in metadata.statistics)),
        partition_statistics=_statistics(
            metadata, snapshot, (item.snapshot_id for item in metadata.partition_statistics)
        ),
    )


def _statistics(
    metadata: TableMetadata, snapshot: Snapshot | None, with_statistics: Iterable[SnapshotId]
) -> StatisticsFacts:
    known = set(with_statistics)
    if snapshot is not None and known:
        for behind, item in enumerate(ancestors(metadata, snapshot.snapshot_id)):
            if item.snapshot_id in known:
                return StatisticsFacts(item.snapshot_id, behind)
    return StatisticsFacts(None, None)


def summary_totals(snapshot: Snapshot | None) -> SummaryTotals:
    """Return the totals in a snapshot's summary; zeros for a table without a snapshot.

    Spec: #optional-snapshot-summary-fields
    """
    if snapshot is None:
        return SummaryTotals(0, 0, 0)
    return SummaryTotals(
        *(_total(snapshot, name) for name in ("total-data-files", "total-delete-files", "total-files-size"))
    )


def _total(snapshot: Snapshot, name: str) -> int | None:
    return find_count((snapshot.summary or {}).get(name))
