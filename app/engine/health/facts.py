"""The facts about a table's health, as plain numbers. Sizes are in bytes, moments in epoch milliseconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from app.engine.model.files.manifests import Partition
from app.engine.model.ids import SnapshotId, SpecId

SIZE_BOUNDS: Final = tuple(mebibytes << 20 for mebibytes in (1, 8, 32, 64, 128, 256, 512, 1024))
"""The upper bounds of the size histogram's groups; what is larger is in one more group."""
WORST_PARTITIONS: Final = 20
"""How many partitions are named; all of them are counted."""
MOST_WAITING: Final = 20
"""How many deletions that wait are looked at."""
LATEST_PARTITIONS: Final = 100
"""How many of those that were written last are kept apart."""


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """The files of one partition, for a plan of compaction."""

    spec_id: SpecId
    partition: Partition
    """The values of the spec's fields, in their order."""
    data_files: int
    data_bytes: int
    small_files: int
    """Data files below `FileFacts.small_below_bytes`."""
    small_bytes: int
    delete_files: int
    files_to_save: int
    """How many fewer data files there would be if the small ones were merged."""
    newest_sequence: int
    """The highest data sequence number of its files; 0 in format version 1."""


@dataclass(frozen=True, slots=True)
class FileFacts:
    """The live files of one snapshot, from its manifests."""

    data_files: int
    data_bytes: int
    rows: int
    """Rows of the data files, before deletes."""
    average_bytes: float
    median_bytes: int
    """Right within 1 %."""
    size_histogram: tuple[int, ...]
    """Data files by size; `SIZE_BOUNDS` has the bounds."""
    small_below_bytes: int
    """Data files with fewer bytes are small: 75 % of `MetadataFacts.target_file_bytes`."""
    small_files: int
    small_bytes: int
    small_share: float
    """Small files of all data files, from 0 to 1."""
    position_delete_files: int
    equality_delete_files: int
    deletion_vectors: int
    delete_bytes: int
    deleted_positions: int
    """Positions in position delete files and deletion vectors."""
    equality_deletes: int
    """Rows in equality delete files; each may delete any number of rows."""
    deletes_per_data_file: float
    dangling_deletes: int
    """Delete files that apply to no data file, by their sequence numbers."""
    partitions: int
    """Partitions with data files."""
    largest_partition_bytes: int
    median_partition_bytes: int
    partition_skew: float
    """The largest partition by the median one; 0 without partitions."""
    partitions_with_small_files: int
    """Partitions with two small files or more, which can be made one."""
    files_to_save: int
    """How many fewer data files there would be if the small ones of each partition were merged."""
    most_small_files: int
    """The small files of the partition that has most of them."""
    old_spec_files: int
    """Data files of a partition spec that is not the default one."""
    old_order_files: int
    """Data files that name a sort order which is neither the default one nor 0, "unsorted"."""
    unnamed_order_files: int
    """Data files that name no sort order, or order 0 where they should have one; they may be sorted all the same."""
    worst_partitions: tuple[PartitionFacts, ...]
    """Those with most small files and delete files, at most `WORST_PARTITIONS`."""
    latest_partitions: tuple[PartitionFacts, ...]
    """Those with the newest files, newest first, at most `LATEST_PARTITIONS`."""
    sizes: Mapping[int, int] = field(default_factory=dict)
    """Data files by their size, which is cut to its leading bits: see `rounded_size`."""
    position_delete_sizes: Mapping[int, int] = field(default_factory=dict)
    """Position delete files by their size, in the same way."""

    @property
    def delete_files(self) -> int:
        """Delete files of every kind."""
        return self.position_delete_files + self.equality_delete_files + self.deletion_vectors

    @property
    def large_bytes(self) -> int:
        """The bytes of data files above 180 % of the target size: compaction takes them apart."""
        bound = self.small_below_bytes * 12 // 5
        return sum(size * files for size, files in self.sizes.items() if size > bound)


@dataclass(frozen=True, slots=True)
class ManifestFacts:
    """The manifests of one snapshot, from its manifest list."""

    data_manifests: int
    delete_manifests: int
    total_bytes: int
    average_bytes: float
    target_bytes: int
    """What writers aim at: `commit.manifest.target-size-bytes`."""
    small_manifests: int
    """Data and delete manifests with less than half of the target."""
    old_spec_manifests: int
    average_overlap: float | None
    """How many data manifests on average have to be read for a value of the partition field by which they are
    clustered best; 1 at best. None if no partition field has bounds."""
    overlap_by_field: Mapping[str, float]
    """The same for each partition field of the default spec."""


@dataclass(frozen=True, slots=True)
class StatisticsFacts:
    """Statistics files of a table, or of its partitions, beside one snapshot."""

    snapshot_id: SnapshotId | None
    """The newest snapshot on the way to the one looked at that has statistics; None if none has."""
    snapshots_behind: int | None
    """How many snapshots came since then; 0 if they are current."""

    @property
    def state(self) -> str:
        """Return `missing`, `stale` or `current`."""
        if self.snapshots_behind is None:
            return "missing"
        return "stale" if self.snapshots_behind else "current"


@dataclass(frozen=True, slots=True)
class MetadataFacts:
    """A table's metadata file."""

    format_version: int
    snapshots: int
    oldest_snapshot_ms: int | None
    oldest_expirable_ms: int | None
    """When the oldest snapshot was made that no branch, tag or least number keeps whatever its age."""
    branches: int
    tags: int
    schemas: int
    partition_specs: int
    sort_orders: int
    metadata_bytes: int
    """The metadata as JSON, unpacked: what each client reads when it loads the table."""
    metadata_log_entries: int
    last_write_ms: int
    """When the metadata was last changed."""
    is_partitioned: bool
    target_file_bytes: int
    """What writers aim at: `write.target-file-size-bytes`."""
    target_delete_file_bytes: int
    """The same for delete files: `write.delete.target-file-size-bytes`."""
    is_encrypted: bool
    allows_deletes: bool
    """`gc.enabled`: whether snapshots may expire."""
    max_snapshot_age_ms: int
    """How long the table's own settings keep snapshots: `history.expire.max-snapshot-age-ms`."""
    flawed_properties: tuple[str, ...]
    """Properties whose values make no sense, and what is expected; they were set before that was checked."""
    statistics: StatisticsFacts
    partition_statistics: StatisticsFacts


@dataclass(frozen=True, slots=True)
class ActivityFacts:
    """Commits and reads, as far as the pointer's history and this server process know them."""

    commits_a_day: float
    """Moves of the pointer in the last seven days, or since a younger table was made; the last 1,000 at most."""
    attempts_a_commit: float | None
    """Attempts for each commit that landed, of this process, since it counts the table; None if none landed."""
    last_read_ms: int | None
    """The last load or scan plan that this process has seen; None if it has seen none."""
    last_upkeep_ms: int | None = None
    """When a job of upkeep has last changed something; None if none has."""
    attempts_since_ms: int | None = None
    """Since when this process counts attempts; None if none landed."""


@dataclass(frozen=True, slots=True)
class SummaryTotals:
    """Files as the snapshot's summary counts them; None where its writer left a total out."""

    data_files: int | None
    delete_files: int | None
    all_bytes: int | None
    """Bytes of data and delete files: summaries have one total for both."""

    @property
    def average_bytes(self) -> float | None:
        """The average size of data and delete files."""
        files = (self.data_files or 0) + (self.delete_files or 0)
        return None if self.all_bytes is None or not files else self.all_bytes / files


@dataclass(frozen=True, slots=True)
class HealthFacts:
    """Everything known of a table's health at one moment."""

    looked_at_ms: int
    snapshot_id: SnapshotId | None
    """The snapshot that was looked at; None for a table without one."""
    metadata: MetadataFacts
    manifests: ManifestFacts
    totals: SummaryTotals
    files: FileFacts | None
    """None where manifests were not read, as in a list of many tables, or could not be read."""
    activity: ActivityFacts | None
    """None where it was not asked: in a list of many tables."""
    unreadable: str | None = None
    """Why files could not be counted: which manifest cannot be read, and what is wrong with it."""
    forks: tuple[str, ...] = ()
    """Metadata files of commits that it does not have: of other catalogs, or in the old folder since it was adopted."""
    waiting_deletions: tuple[str, ...] = ()
    """Why files of the table that expired, or that are orphans, are not deleted yet; at most `MOST_WAITING`."""
