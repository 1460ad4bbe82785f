"""Manifest lists and manifests: what they say about data files and delete files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final, NewType, Protocol, TypeAlias
from uuid import UUID

from app.engine.model.data_types.values import order_key
from app.engine.model.ids import Location, SnapshotId, SortOrderId, SpecId
from app.engine.model.snapshot import Snapshot

Partition: TypeAlias = tuple[Any, ...]
"""The values of a spec's fields, in their order."""
PartitionKey = NewType("PartitionKey", tuple[SpecId, Partition])
"""A partition as a key of a dictionary or set; not to be shown."""
FileKey: TypeAlias = tuple[Location, int | None]
"""A file as a key of a dictionary or set: several deletion vectors share a path and differ in their offset."""
UNASSIGNED_SEQUENCE_NUMBER: Final = -1
"""A new manifest has this until a commit gives it the snapshot's; until then nothing is inherited."""


_KEYED: Final = frozenset({float, UUID})
"""Values that are not equal just where their partitions are."""


def partition_key(spec_id: SpecId, partition: Partition) -> PartitionKey:
    """Return a key that is equal for equal partitions.

    NaN equals NaN, -0.0 is not 0.0, and a uuid equals its bytes.
    """
    for value in partition:
        if type(value) in _KEYED:
            return PartitionKey((spec_id, tuple(map(order_key, partition))))
    return PartitionKey((spec_id, partition))


class ManifestContent(IntEnum):
    """What the files of a manifest hold."""

    DATA = 0
    DELETES = 1


class FileContent(IntEnum):
    """What a file holds."""

    DATA = 0
    POSITION_DELETES = 1
    EQUALITY_DELETES = 2


class EntryStatus(IntEnum):
    """Whether a file was there before, was added, or was deleted."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2


@dataclass(frozen=True, slots=True)
class PartitionSummary:
    """The values of one partition field in a manifest; bounds are in single-value binary form."""

    contains_null: bool
    contains_nan: bool | None
    lower_bound: bytes | None
    upper_bound: bytes | None


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """One manifest, as a manifest list names it. Counts are None if a v1 writer left them out.

    Spec: #manifest-lists
    """

    manifest_path: Location
    manifest_length: int
    partition_spec_id: SpecId
    content: ManifestContent = ManifestContent.DATA
    sequence_number: int = 0
    min_sequence_number: int = 0
    added_snapshot_id: SnapshotId | None = None
    added_files_count: int | None = None
    existing_files_count: int | None = None
    deleted_files_count: int | None = None
    added_rows_count: int | None = None
    existing_rows_count: int | None = None
    deleted_rows_count: int | None = None
    partitions: tuple[PartitionSummary, ...] | None = None
    key_metadata: bytes | None = None
    first_row_id: int | None = None
    packed: Any = field(default=None, init=False, repr=False, compare=False)
    """What a format made of it: made once for all lists that name it, and no part of its value."""

    def keep_packed(self, packed: Any) -> None:
        """Keep what a format made of it."""
        object.__setattr__(self, "packed", packed)

    @property
    def live_files(self) -> int | None:
        """How many live files it names; None where a v1 writer left the counts out."""
        if self.added_files_count is None or self.existing_files_count is None:
            return None
        return self.added_files_count + self.existing_files_count

    @property
    def may_have_live_files(self) -> bool:
        return self.added_files_count != 0 or self.existing_files_count != 0


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file, a delete file or a deletion vector. Metrics are by field id.

    Bounds are in single-value binary form. `partition` has the values of the spec's fields in their order, as Python
    values: int for int, long, date (days), time and timestamp (micro- or nanoseconds) and the time transforms;
    float, bool, str, bytes, `uuid.UUID`, `decimal.Decimal`; None for null.

    Spec: #manifests
    """

    content: FileContent
    file_path: Location
    file_format: str
    spec_id: SpecId
    partition: Partition
    record_count: int
    file_size_in_bytes: int
    column_sizes: Mapping[int, int] | None = None
    value_counts: Mapping[int, int] | None = None
    null_value_counts: Mapping[int, int] | None = None
    nan_value_counts: Mapping[int, int] | None = None
    lower_bounds: Mapping[int, bytes] | None = None
    upper_bounds: Mapping[int, bytes] | None = None
    key_metadata: bytes | None = None
    split_offsets: tuple[int, ...] | None = None
    equality_ids: tuple[int, ...] | None = None
    sort_order_id: SortOrderId | None = None
    first_row_id: int | None = None
    referenced_data_file: Location | None = None
    content_offset: int | None = None
    content_size_in_bytes: int | None = None

    @property
    def key(self) -> FileKey:
        return self.file_path, self.content_offset

    @property
    def partition_key(self) -> PartitionKey:
        return partition_key(self.spec_id, self.partition)


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """One file of a manifest. Reading fills in inherited values; for writing they may be None.

    Spec: #sequence-number-inheritance, #first-row-id-inheritance
    """

    status: EntryStatus
    snapshot_id: SnapshotId | None
    data_sequence_number: int | None
    file_sequence_number: int | None
    file: DataFile

    @property
    def is_live(self) -> bool:
        return self.status is not EntryStatus.DELETED


class ManifestSource(Protocol):
    """Where the engine gets manifests from: files, or lists in a test. Safe for many threads."""

    def manifests(self, snapshot: Snapshot) -> Sequence[ManifestFile]:
        """Return a snapshot's manifests in the order of its list.

        Raises:
            InvalidMetadata: the manifest list is not one; names the file.
            FileMissing: the manifest list is gone.
            FilesUnavailable: the store does not answer; safe to try again.
        """
        ...

    def entries(self, manifest: ManifestFile) -> Iterable[ManifestEntry]:
        """Return all entries of a manifest, in their order, with inherited values filled in.

        Raises:
            InvalidMetadata: the manifest is not one, or contradicts the list; names the file.
            FileMissing: the manifest is gone.
            FilesUnavailable: the store does not answer; safe to try again.
        """
        ...
