"""The plan of a rewrite of manifests: which ones go, and which entry goes to which new one."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from app.engine.manifest_rewrite.wishes import ClusterKey, RewriteRules
from app.engine.model.files.entry_filters import EntryFacts
from app.engine.model.files.manifests import EntryStatus, ManifestContent, ManifestFile, Partition
from app.engine.model.ids import SpecId

_SMALL: Final = 0.5
_LARGE: Final = 1.5
"""Manifests below and above so many times the target size are written again."""
_SCATTERED: Final = 0.25
"""A manifest is written again if more of its files are in partitions that too many manifests share."""


@dataclass(frozen=True, slots=True)
class LiveTally:
    """Live entries, counted so that none can be lost, doubled or changed unseen."""

    files: int = 0
    records: int = 0
    size_bytes: int = 0
    sequence_numbers: int = 0
    """The sum of all data and file sequence numbers."""
    row_ids: int = 0
    """The sum of all first row ids."""
    without_row_id: int = 0

    def __add__(self, other: LiveTally) -> LiveTally:
        return LiveTally(
            self.files + other.files,
            self.records + other.records,
            self.size_bytes + other.size_bytes,
            self.sequence_numbers + other.sequence_numbers,
            self.row_ids + other.row_ids,
            self.without_row_id + other.without_row_id,
        )


@dataclass(frozen=True, slots=True)
class ManifestStock:
    """The live entries of one manifest, in their order."""

    manifest: ManifestFile
    partitions: tuple[Partition, ...]
    """Each distinct one."""
    numbers: array[int]
    """For each live entry the place of its partition among them."""
    tally: LiveTally


def take_stock(manifest: ManifestFile, entries: Iterable[EntryFacts]) -> ManifestStock:
    """Return what is live in a manifest."""
    places: dict[Partition, int] = {}
    numbers = array("I")
    records = size_bytes = sequence_numbers = row_ids = without_row_id = 0
    for entry in entries:
        if entry.status is EntryStatus.DELETED:
            continue
        numbers.append(places.setdefault(entry.partition, len(places)))
        records += entry.record_count
        size_bytes += entry.size_bytes
        sequence_numbers += (entry.data_sequence_number or 0) + (entry.file_sequence_number or 0)
        if entry.first_row_id is None:
            without_row_id += 1
        else:
            row_ids += entry.first_row_id
    tally = LiveTally(len(numbers), records, size_bytes, sequence_numbers, row_ids, without_row_id)
    return ManifestStock(manifest, tuple(places), numbers, tally)


@dataclass(frozen=True, slots=True)
class RewriteGroup:
    """Manifests of one content and spec, and the new ones that take their place.

    The live entries are in the order of their partitions; those of one partition stay in the order they have. The
    new manifests take them from the first to the last, each as many as the others.
    """

    content: ManifestContent
    spec_id: SpecId
    replaced: tuple[ManifestStock, ...]
    partitions: tuple[Partition, ...]
    """All distinct partitions of live entries, in their order."""
    new_count: int
    """How many manifests are to be written; none if nothing is live."""
    tally: LiveTally
    """The live entries of the replaced manifests."""

    def new_manifest_of(self, rank: int) -> int:
        """Return which new manifest takes the entry of a rank."""
        return rank * self.new_count // max(1, self.tally.files)

    def ranks(self) -> Iterator[array[int]]:
        """Yield for each replaced manifest the ranks of its live entries in the order of all."""
        counts: Counter[Partition] = Counter()
        for stock in self.replaced:
            counts.update(_counts(stock))
        next_rank: dict[Partition, int] = {}
        total = 0
        for partition in self.partitions:
            next_rank[partition] = total
            total += counts[partition]
        for stock in self.replaced:
            own = [next_rank[partition] for partition in stock.partitions]
            ranks = array("Q")
            for number in stock.numbers:
                ranks.append(own[number])
                own[number] += 1
            next_rank.update(zip(stock.partitions, own, strict=True))
            yield ranks


def plan_rewrite(stocks: Sequence[ManifestStock], rules: RewriteRules) -> list[RewriteGroup]:
    """Return what is to be rewritten: data and deletes and every spec apart.

    Args:
        stocks: all manifests of a snapshot that may be rewritten, in the order of its list.
        rules: what is wanted.
    """
    by_kind: dict[tuple[ManifestContent, SpecId], list[ManifestStock]] = {}
    for stock in stocks:
        manifest = stock.manifest
        if manifest.partition_spec_id in rules.spec_ids:
            by_kind.setdefault((manifest.content, manifest.partition_spec_id), []).append(stock)
    groups = []
    left_bytes = rules.max_bytes
    for (content, spec_id), found in sorted(by_kind.items(), key=lambda item: item[0]):

        def order(partition: Partition, spec_id: SpecId = spec_id) -> ClusterKey:
            return rules.order_of(spec_id, partition)

        chosen = _chosen(found, rules, order)
        if left_bytes is not None:
            chosen = _within(chosen, left_bytes, rules, order)
            left_bytes -= sum(map(_cost, chosen))
        if chosen:
            partitions = sorted({value for stock in chosen for value in stock.partitions}, key=order)
            count = _new_count(chosen, rules)
            tally = sum((stock.tally for stock in chosen), LiveTally())
            groups.append(RewriteGroup(content, spec_id, tuple(chosen), tuple(partitions), count, tally))
    return groups


def _chosen(
    stocks: Sequence[ManifestStock], rules: RewriteRules, order: Callable[[Partition], ClusterKey]
) -> list[ManifestStock]:
    """Return the manifests of one kind that are rewritten, in their order."""
    if rules.rewrites_all:
        # As in the reference: one that would become one is left alone.
        is_done = len(stocks) == 1 and stocks[0].tally.files and not _is_worth_it(stocks[0], rules)
        return [] if is_done else list(stocks)
    live = [stock for stock in stocks if stock.tally.files]
    small = [stock for stock in live if _live_bytes(stock, rules) < _SMALL * rules.target_bytes]
    if _new_count(small, rules) >= len(small):
        small = []
    merged = set(map(id, small))
    crowded = _crowded(live, merged, rules, order)
    return [
        stock
        for stock in stocks
        if not stock.tally.files
        or id(stock) in merged
        or _is_worth_it(stock, rules)
        or _share_in(stock, crowded, order) > _SCATTERED
    ]


def _within(
    stocks: Sequence[ManifestStock],
    left_bytes: int,
    rules: RewriteRules,
    order: Callable[[Partition], ClusterKey],
) -> list[ManifestStock]:
    """Return those of one kind that may be rewritten for so many bytes, in their order.

    Neighbours in the order of partitions go together: what is rewritten in several parts is clustered in the end.
    Where the rewrite of those would be worth nothing, the smallest go together.
    """

    def place(stock: ManifestStock) -> ClusterKey:
        return min(map(order, stock.partitions), default=((), ()))

    for chosen in (sorted(stocks, key=place), sorted(stocks, key=_cost)):
        taken: set[int] = set()
        rest_bytes = left_bytes
        for stock in chosen:
            if _cost(stock) <= rest_bytes:
                taken.add(id(stock))
                rest_bytes -= _cost(stock)
        found = [stock for stock in stocks if id(stock) in taken]
        live = [stock for stock in found if stock.tally.files]
        if (
            not live
            or any(_is_worth_it(stock, rules) for stock in live)
            or _become_better(live, rules, order)
        ):
            return found
    return [stock for stock in stocks if not stock.tally.files]


def _become_better(
    live: Sequence[ManifestStock], rules: RewriteRules, order: Callable[[Partition], ClusterKey]
) -> bool:
    """Return whether manifests become fewer by a rewrite, or their partitions come into order.

    If not, it would leave them as they are, and be done again and again.
    """
    if len(live) == 1:
        return False
    if rules.rewrites_all or _new_count(live, rules) < len(live):
        return True
    ranges = sorted((min(keys), max(keys)) for keys in (list(map(order, stock.partitions)) for stock in live))
    return any(last > first for (_, last), (first, _) in pairwise(ranges))


def _cost(stock: ManifestStock) -> int:
    """Return how many bytes it costs to rewrite a manifest; one without live files only goes."""
    return stock.manifest.manifest_length if stock.tally.files else 0


def _is_worth_it(stock: ManifestStock, rules: RewriteRules) -> bool:
    """Return whether a manifest with live files is rewritten whatever the others are like."""
    is_large = _live_bytes(stock, rules) > _LARGE * rules.target_bytes and stock.tally.files > 1
    return is_large or (stock.manifest.deleted_files_count or 0) > stock.tally.files


def _crowded(
    stocks: Sequence[ManifestStock],
    merged: set[int],
    rules: RewriteRules,
    order: Callable[[Partition], ClusterKey],
) -> set[object]:
    """Return the cluster values that more manifests share than they would after a rewrite.

    Those that are merged anyway count as one.
    """
    manifests: Counter[object] = Counter()
    size_bytes: Counter[object] = Counter()
    in_merged: set[object] = set()
    for stock in stocks:
        entry_bytes = _live_bytes(stock, rules) / stock.tally.files
        values: Counter[object] = Counter()
        for partition, count in _counts(stock).items():
            values[order(partition)[0]] += count
        for value, count in values.items():
            size_bytes[value] += round(count * entry_bytes)
        if id(stock) in merged:
            in_merged.update(values)
        else:
            manifests.update(values.keys())
    manifests.update(in_merged)
    # New manifests have half the target size at least, and a value may begin and end inside one.
    return {
        value
        for value, count in manifests.items()
        if count > 2 * -(-size_bytes[value] // rules.target_bytes) + 1
    }


def _share_in(stock: ManifestStock, values: set[object], order: Callable[[Partition], ClusterKey]) -> float:
    if not values:
        return 0.0
    found = sum(count for partition, count in _counts(stock).items() if order(partition)[0] in values)
    return found / stock.tally.files


def _counts(stock: ManifestStock) -> dict[Partition, int]:
    counts = Counter(stock.numbers)
    return {partition: counts[place] for place, partition in enumerate(stock.partitions)}


def _live_bytes(stock: ManifestStock, rules: RewriteRules) -> int:
    """Return about how many bytes of a manifest its live files take."""
    live, manifest = stock.tally.files, stock.manifest
    size_bytes = max(0, manifest.manifest_length - rules.header_bytes)
    return size_bytes * live // max(1, live + (manifest.deleted_files_count or 0))


def _new_count(stocks: Sequence[ManifestStock], rules: RewriteRules) -> int:
    """Return how many manifests are made of some; none if nothing is live in them."""
    files = sum(stock.tally.files for stock in stocks)
    size_bytes = sum(_live_bytes(stock, rules) for stock in stocks)
    return min(files, max(1, -(-size_bytes // (rules.target_bytes - rules.header_bytes))))
