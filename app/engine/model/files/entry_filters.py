"""Filtering the entries of a manifest, all at once where their source can do that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

from app.engine.model.data_types.types import PrimitiveType
from app.engine.model.files.manifests import EntryStatus, FileContent, ManifestEntry, Partition
from app.engine.model.ids import Location, SnapshotId
from app.engine.model.partition_spec import PartitionSpec

PartitionTest = Callable[[tuple[Any, ...]], bool]


@dataclass(frozen=True, slots=True)
class ValueRange:
    """The values of a column that a reader looks for, limits included; None means no limit.

    Null is outside every range, and NaN is never a limit.
    """

    field_id: int
    kind: PrimitiveType
    lowest: Any = None
    highest: Any = None


@lru_cache(maxsize=256)
def _has(kind: type[Any], method: str) -> bool:
    """Say whether entries of a kind are of the protocol with this method.

    To ask for the protocol itself takes as long as counting a small manifest.
    """
    return hasattr(kind, method)


@runtime_checkable
class FilterableEntries(Protocol):
    """Entries of one manifest that are filtered as columns, before they become objects."""

    def live_in(self, is_wanted: PartitionTest, ranges: Sequence[ValueRange] = ()) -> Iterator[ManifestEntry]:
        """Yield the entries that are not deleted and whose partition is wanted, in their order.

        `is_wanted` is called once for each distinct partition. `ranges` only saves work: an entry whose bounds are
        outside one of them may be left out or not, so the caller still has to check each entry's metrics.

        Raises:
            InvalidMetadata: an entry makes no sense; names the file.
        """
        ...


def live_entries(
    entries: Iterable[ManifestEntry], is_wanted: PartitionTest, ranges: Sequence[ValueRange] = ()
) -> Iterator[ManifestEntry]:
    """Yield the entries that are not deleted and whose partition is wanted.

    Raises:
        InvalidMetadata: an entry makes no sense; names the file.
    """
    if _has(type(entries), "live_in"):
        return cast(FilterableEntries, entries).live_in(is_wanted, ranges)
    return (entry for entry in entries if entry.is_live and is_wanted(entry.file.partition))


@dataclass(frozen=True, slots=True)
class FileColumns:
    """Some files of one manifest as columns: what distinguishes them, and which are alike."""

    paths: Sequence[Location]
    sizes: Sequence[int]
    """In bytes."""
    record_counts: Sequence[int]
    split_offsets: Sequence[tuple[int, ...] | None]
    first_row_ids: Sequence[int | None]
    partitions: Sequence[Partition]
    alike: Sequence[int]
    """Files with one number share partition, content, format, key metadata and sort order."""


class ColumnarEntries(Protocol):
    """Entries of one manifest that are known by their positions until they are made."""

    def live_positions(self, is_wanted: PartitionTest, ranges: Sequence[ValueRange] = ()) -> Sequence[int]:
        """Return where the entries are that `FilterableEntries.live_in` yields.

        Raises:
            InvalidMetadata: an entry makes no sense; names the file.
        """
        ...

    def entries_at(self, positions: Sequence[int]) -> Iterator[ManifestEntry]:
        """Yield the entries at some positions.

        Raises:
            InvalidMetadata: an entry makes no sense; names the file.
        """
        ...

    def files_at(self, positions: Sequence[int]) -> FileColumns:
        """Return the files at some positions as columns; their metrics are not looked at.

        Raises:
            InvalidMetadata: an entry makes no sense; names the file.
        """
        ...


def columnar(entries: Iterable[ManifestEntry]) -> ColumnarEntries | None:
    """Return entries as what is known by position; None if their source does not offer that."""
    return cast(ColumnarEntries, entries) if _has(type(entries), "live_positions") else None


def entries_at(entries: Iterable[ManifestEntry], positions: Sequence[int]) -> Iterator[ManifestEntry]:
    """Yield the entries at some positions.

    Raises:
        InvalidMetadata: an entry makes no sense; names the file.
    """
    columns = columnar(entries)
    if columns is not None:
        return columns.entries_at(positions)
    wanted = set(positions)
    return (entry for at, entry in enumerate(entries) if at in wanted)


class SpecifiedEntries(Protocol):
    """Entries of one manifest that says which partition spec it was written with."""

    @property
    def partition_field_ids(self) -> tuple[int, ...] | None:
        """The ids of the fields of that spec, in their order; None if its writer left the spec out."""
        ...

    @property
    def partition_value_ids(self) -> frozenset[int] | None:
        """The ids of the values in its partitions; None without any, or without ids."""
        ...


def partition_field_ids(entries: Iterable[ManifestEntry]) -> tuple[int, ...] | None:
    """Return the partition fields that a manifest was written with; None if that is not known."""
    if _has(type(entries), "partition_field_ids"):
        return cast(SpecifiedEntries, entries).partition_field_ids
    return None


def is_surely_of_another_spec(entries: Iterable[ManifestEntry], spec: PartitionSpec) -> bool:
    """Say whether a manifest was surely written with another partition spec than this one.

    The manifest's header and the values in its partitions must both speak against the spec: a header alone may be
    wrong, and most readers do not look at it. Void fields may be left out.
    """
    if not _has(type(entries), "partition_value_ids"):
        return False
    specified = cast(SpecifiedEntries, entries)
    written = specified.partition_field_ids, specified.partition_value_ids
    known = {field.field_id for field in spec.fields}
    needed = {field.field_id for field in spec.fields if not field.is_void}
    return all(ids is not None and not needed <= set(ids) <= known for ids in written)


class PathedEntries(Protocol):
    """Entries of one manifest whose paths are found without making objects of them."""

    def live_paths(self) -> Iterator[Location]:
        """Yield the paths of the files that are not deleted, in their order.

        Raises:
            InvalidMetadata: an entry makes no sense; names the file.
        """
        ...


def live_paths(entries: Iterable[ManifestEntry]) -> Iterator[Location]:
    """Yield the paths of the files that are not deleted.

    Raises:
        InvalidMetadata: an entry makes no sense; names the file.
    """
    if _has(type(entries), "live_paths"):
        return cast(PathedEntries, entries).live_paths()
    return (entry.file.file_path for entry in entries if entry.is_live)


class EntryFacts(NamedTuple):
    """What is counted of an entry, with inherited values filled in."""

    status: EntryStatus
    snapshot_id: SnapshotId | None
    data_sequence_number: int | None
    file_sequence_number: int | None
    content: FileContent
    path: Location
    file_format: str
    record_count: int
    size_bytes: int
    first_row_id: int | None
    partition: Partition


class CountableEntries(Protocol):
    """Entries of one manifest that are counted without making objects of their metrics."""

    def facts(self) -> Iterator[EntryFacts]:
        """Yield the facts of all entries, in their order.

        Raises:
            InvalidMetadata: an entry makes no sense; names the file.
        """
        ...


def entry_facts(entries: Iterable[ManifestEntry]) -> Iterator[EntryFacts]:
    """Yield the facts of all entries.

    Raises:
        InvalidMetadata: an entry makes no sense; names the file.
    """
    if _has(type(entries), "facts"):
        return cast(CountableEntries, entries).facts()
    return map(_facts_of, entries)


def _facts_of(entry: ManifestEntry) -> EntryFacts:
    file = entry.file
    return EntryFacts(
        entry.status,
        entry.snapshot_id,
        entry.data_sequence_number,
        entry.file_sequence_number,
        file.content,
        file.file_path,
        file.file_format,
        file.record_count,
        file.file_size_in_bytes,
        file.first_row_id,
        file.partition,
    )
