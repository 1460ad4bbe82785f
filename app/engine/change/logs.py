"""The snapshot log and the metadata log: what a commit adds, and what it trims."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from app.engine.model.ids import Location, SnapshotId
from app.engine.model.settings.properties import PREVIOUS_VERSIONS_MAX, int_property
from app.engine.model.snapshot import MetadataLogEntry, SnapshotLogEntry
from app.engine.model.table_metadata import CLOCK_TOLERANCE_MS, TableMetadata
from app.errors import InvalidUpdate

DEFAULT_PREVIOUS_VERSIONS = 100


def append_snapshot_log(log: list[SnapshotLogEntry], snapshot_id: SnapshotId, timestamp_ms: int) -> None:
    """Append an entry; one with too early a time, by a slow clock, gets that of the last entry."""
    if log and timestamp_ms < log[-1].timestamp_ms - CLOCK_TOLERANCE_MS:
        timestamp_ms = log[-1].timestamp_ms
    log.append(SnapshotLogEntry(timestamp_ms=timestamp_ms, snapshot_id=snapshot_id))


def repaired_snapshot_log(
    log: Sequence[SnapshotLogEntry],
    *,
    intermediate: Collection[SnapshotId],
    remaining: Collection[SnapshotId] | None,
    current: SnapshotId | None,
) -> tuple[SnapshotLogEntry, ...]:
    """Return the log as finished metadata must have it.

    Args:
        intermediate: snapshots that this commit added and made current, but that did not stay current.
        remaining: the table's snapshots if this commit removed any, else None. Entries up to the last one of a
            removed snapshot are dropped: a log with gaps would show wrong times.
        current: the table's current snapshot; the log must end with it.

    Raises:
        InvalidUpdate: the log does not end with the current snapshot.

    Spec: #table-metadata-fields
    """
    if not intermediate and remaining is None:
        # Even a wrong log of another writer: a commit that does not touch history must not fail because of it.
        return tuple(log)
    entries = [entry for entry in log if entry.snapshot_id not in intermediate]
    if remaining is not None:
        gaps = [position for position, entry in enumerate(entries, 1) if entry.snapshot_id not in remaining]
        entries = entries[max(gaps, default=0) :]
    if current is not None and entries and entries[-1].snapshot_id != current:
        raise InvalidUpdate(
            f"Cannot set invalid snapshot log: latest entry is not the current snapshot {current}"
        )
    return tuple(entries)


def next_metadata_log(
    base: TableMetadata, base_location: Location, properties: Mapping[str, str]
) -> tuple[MetadataLogEntry, ...]:
    """Return the base's log with the base added, trimmed as the new properties say.

    Raises:
        InvalidUpdate: `write.metadata.previous-versions-max` is not a number.
    """
    keep = max(1, int_property(properties, PREVIOUS_VERSIONS_MAX, DEFAULT_PREVIOUS_VERSIONS))
    entry = MetadataLogEntry(timestamp_ms=base.last_updated_ms, metadata_file=base_location)
    return (*base.metadata_log, entry)[-keep:]
