"""Summaries of live files: small, made of one manifest each, and merged to that of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from app.engine.health.live_columns import ContentKind, LiveColumns
from app.engine.model.files.manifests import Partition, PartitionKey, partition_key
from app.engine.model.ids import SpecId
from app.engine.model.partition_spec import PartitionSpec, unpartitioned_specs
from app.engine.selection.dangling_deletes import may_apply_at_age

_EXACT_BITS: Final = 8
"""So many leading bits of a size are kept for the median: it is right within 1 %."""
_BYTES_A_PARTITION: Final = 600
_BYTES_A_COUNT: Final = 120
_BYTES_A_SUMMARY: Final = 1_500


@dataclass(slots=True)
class PartitionCounts:
    """What is counted of one partition."""

    spec_id: SpecId
    partition: Partition
    data_files: int = 0
    data_bytes: int = 0
    small_files: int = 0
    """Data files with fewer bytes than `FileSummary.small_below_bytes`."""
    small_bytes: int = 0
    oldest_sequence: int | None = None
    """The lowest data sequence number of its data files; None if it has none."""
    newest_sequence: int = 0
    """The highest data sequence number of its files, delete files included."""
    deletes: Counter[tuple[ContentKind, int]] = field(default_factory=Counter)
    """Its delete files, by kind and data sequence number."""

    def add(self, other: PartitionCounts) -> None:
        """Add what was counted elsewhere of the same partition."""
        self.data_files += other.data_files
        self.data_bytes += other.data_bytes
        self.small_files += other.small_files
        self.small_bytes += other.small_bytes
        if self.oldest_sequence is None or (
            other.oldest_sequence is not None and other.oldest_sequence < self.oldest_sequence
        ):
            self.oldest_sequence = other.oldest_sequence
        self.newest_sequence = max(self.newest_sequence, other.newest_sequence)
        self.deletes.update(other.deletes)


@dataclass(slots=True)
class FileSummary:
    """What is counted of live files. Nothing changes it once it is made."""

    small_below_bytes: int
    """Data files with fewer bytes are small."""
    files: Counter[ContentKind] = field(default_factory=Counter)
    file_bytes: Counter[ContentKind] = field(default_factory=Counter)
    rows: Counter[ContentKind] = field(default_factory=Counter)
    sizes: Counter[int] = field(default_factory=Counter)
    """Data files by their size, which is cut to its leading bits: see `rounded_size`."""
    position_delete_sizes: Counter[int] = field(default_factory=Counter)
    """Position delete files by their size, in the same way."""
    sort_orders: Counter[int | None] = field(default_factory=Counter)
    """Data files by the sort order that their writer named."""
    partitions: dict[PartitionKey, PartitionCounts] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        """About how much memory it takes."""
        counts = len(self.sizes) + len(self.position_delete_sizes)
        counts += sum(len(counts.deletes) for counts in self.partitions.values())
        return _BYTES_A_SUMMARY + _BYTES_A_PARTITION * len(self.partitions) + _BYTES_A_COUNT * counts


def rounded_size(size: int) -> int:
    """Return a size with only its leading bits; the difference is below one part in 128."""
    shift = size.bit_length() - _EXACT_BITS
    return size if shift <= 0 else size >> shift << shift


def above_rounded(size: int) -> int:
    """Return the least size, in bytes, above all that become this one when rounded."""
    return size + (1 << max(0, size.bit_length() - _EXACT_BITS))


def summarize(live: LiveColumns, small_below_bytes: int) -> FileSummary:
    """Return what is counted of the live files of one manifest."""
    found = FileSummary(small_below_bytes)
    if len(set(live.kinds)) == 1:
        kind = live.kinds[0]
        found.files[kind] = len(live.kinds)
        found.file_bytes[kind] = sum(live.sizes)
        found.rows[kind] = sum(live.rows)
    else:
        for kind, size, rows in zip(live.kinds, live.sizes, live.rows, strict=True):
            found.files[kind] += 1
            found.file_bytes[kind] += size
            found.rows[kind] += rows
    by_number: dict[int, PartitionCounts] = {
        number: PartitionCounts(live.spec_id, live.partitions[number])
        for number in set(live.partition_numbers)
    }
    if found.files[ContentKind.DATA]:
        _count_data(found, by_number, live)
    if len(live.kinds) > found.files[ContentKind.DATA]:
        _count_deletes(found, by_number, live)
    for counts in by_number.values():
        # Two numbers may have one partition, where writers spell a value in two ways.
        _add_partition(found.partitions, counts)
    return found


def _count_data(found: FileSummary, by_number: dict[int, PartitionCounts], live: LiveColumns) -> None:
    """Count the data files. There may be a million of them, so that every step for each file counts."""
    numbers, sizes, sequences, orders = (
        live.partition_numbers,
        live.sizes,
        live.sequence_numbers,
        live.sort_order_ids,
    )
    if len(live.kinds) > found.files[ContentKind.DATA]:
        at = [place for place, kind in enumerate(live.kinds) if kind is ContentKind.DATA]
        numbers, sizes = [numbers[place] for place in at], [sizes[place] for place in at]
        sequences, orders = [sequences[place] for place in at], [orders[place] for place in at]
    # Rounded before they are counted, and orders one by one: writers can choose numbers of which a dictionary takes
    # minutes to be made, and no other thread would run in that time.
    found.sizes.update(map(rounded_size, sizes))
    found.sort_orders.update(order for order in orders)
    for number, files in Counter(numbers).items():
        by_number[number].data_files = files
    for number, sequence in set(zip(numbers, sequences, strict=True)):
        counts = by_number[number]
        if counts.oldest_sequence is None or sequence < counts.oldest_sequence:
            counts.oldest_sequence = sequence
        counts.newest_sequence = max(counts.newest_sequence, sequence)
    small_below = found.small_below_bytes
    slots = max(by_number) + 1
    all_bytes, small_bytes, small_files = [0] * slots, [0] * slots, [0] * slots
    for number, size in zip(numbers, sizes, strict=True):
        all_bytes[number] += size
        if size < small_below:
            small_bytes[number] += size
            small_files[number] += 1
    for number, counts in by_number.items():
        counts.data_bytes = all_bytes[number]
        counts.small_bytes, counts.small_files = small_bytes[number], small_files[number]


def _count_deletes(found: FileSummary, by_number: dict[int, PartitionCounts], live: LiveColumns) -> None:
    found.position_delete_sizes.update(
        rounded_size(size)
        for kind, size in zip(live.kinds, live.sizes, strict=True)
        if kind is ContentKind.POSITION_DELETES
    )
    grouped = Counter(zip(live.partition_numbers, live.kinds, live.sequence_numbers, strict=True))
    for (number, kind, sequence), files in grouped.items():
        if kind is not ContentKind.DATA:
            counts = by_number[number]
            counts.deletes[kind, sequence] += files
            counts.newest_sequence = max(counts.newest_sequence, sequence)


def _add_partition(partitions: dict[PartitionKey, PartitionCounts], counts: PartitionCounts) -> None:
    key = partition_key(counts.spec_id, counts.partition)
    known = partitions.get(key)
    if known is None:
        known = partitions[key] = PartitionCounts(counts.spec_id, counts.partition)
    known.add(counts)


def merged(summaries: Iterable[FileSummary], small_below_bytes: int) -> FileSummary:
    """Return the summary of all files of several summaries; their order does not matter."""
    total = FileSummary(small_below_bytes)
    for summary in summaries:
        total.files.update(summary.files)
        total.file_bytes.update(summary.file_bytes)
        total.rows.update(summary.rows)
        total.sizes.update(summary.sizes)
        total.position_delete_sizes.update(summary.position_delete_sizes)
        total.sort_orders.update(summary.sort_orders)
        for key, counts in summary.partitions.items():
            known = total.partitions.get(key)
            if known is None:
                known = total.partitions[key] = PartitionCounts(counts.spec_id, counts.partition)
            known.add(counts)
    return total


def dangling_deletes(summary: FileSummary, specs: Iterable[PartitionSpec]) -> int:
    """Return how many delete files surely apply to no data file, by their sequence numbers.

    Position deletes and deletion vectors apply to data files of their partition that are not newer, equality deletes
    to older ones; those of an unpartitioned spec apply to older files of every partition. A delete file of which only
    the data file is gone is not found, because paths are not compared.

    Spec: #scan-planning
    """
    unpartitioned = unpartitioned_specs(specs)
    sequences = (counts.oldest_sequence for counts in summary.partitions.values())
    oldest = min((sequence for sequence in sequences if sequence is not None), default=None)
    return sum(
        files
        for counts in summary.partitions.values()
        for (kind, age), files in counts.deletes.items()
        if not may_apply_at_age(
            kind.content,
            age,
            oldest
            if kind is ContentKind.EQUALITY_DELETES and counts.spec_id in unpartitioned
            else counts.oldest_sequence,
        )
    )


def median_size(sizes: Counter[int]) -> int:
    """Return the size of the file in the middle, rounded as in `rounded_size`; 0 without files."""
    left = (sum(sizes.values()) - 1) // 2
    for size in sorted(sizes):
        left -= sizes[size]
        if left < 0:
            return size
    return 0


def histogram(sizes: Counter[int], bounds: Iterable[int]) -> Iterator[int]:
    """Yield how many files are between each two bounds, and then the rest.

    Args:
        sizes: files by their rounded size.
        bounds: ascending powers of two, in bytes: rounding moves no size over one of them.
    """
    left = sorted(sizes.items())
    at = 0
    for bound in bounds:
        files = 0
        while at < len(left) and left[at][0] < bound:
            files += left[at][1]
            at += 1
        yield files
    yield sum(files for _, files in left[at:])
