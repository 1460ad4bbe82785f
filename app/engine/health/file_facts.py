"""From the summary of a snapshot's live files to facts about them."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from operator import attrgetter

from app.engine.health.facts import (
    LATEST_PARTITIONS,
    SIZE_BOUNDS,
    WORST_PARTITIONS,
    FileFacts,
    PartitionFacts,
)
from app.engine.health.file_summary import (
    FileSummary,
    PartitionCounts,
    dangling_deletes,
    histogram,
    median_size,
)
from app.engine.health.live_columns import ContentKind
from app.engine.health.metadata_facts import target_file_bytes
from app.engine.model.sort_order import UNSORTED_ORDER_ID
from app.engine.model.table_metadata import TableMetadata


def file_facts(metadata: TableMetadata, summary: FileSummary) -> FileFacts:
    """Return the facts about the files that a summary has counted, under a table's properties."""
    data_files = summary.files[ContentKind.DATA]
    data_bytes = summary.file_bytes[ContentKind.DATA]
    with_data = [counts for counts in summary.partitions.values() if counts.data_files]
    partition_bytes = sorted(counts.data_bytes for counts in with_data)
    largest = partition_bytes[-1] if partition_bytes else 0
    median = partition_bytes[(len(partition_bytes) - 1) // 2] if partition_bytes else 0
    kinds = [kind for kind in ContentKind if kind is not ContentKind.DATA]
    delete_files = sum(summary.files[kind] for kind in kinds)
    small_files = sum(counts.small_files for counts in with_data)
    target = target_file_bytes(metadata.properties)
    partitions = list(partition_facts(summary, target))
    default_order = metadata.default_sort_order_id
    # Iceberg's own writers up to 1.10 name the unsorted order in every file, also where they have sorted it.
    unnamed = {None, UNSORTED_ORDER_ID} - {default_order}
    named_orders = sum(files for order, files in summary.sort_orders.items() if order not in unnamed)
    return FileFacts(
        data_files=data_files,
        data_bytes=data_bytes,
        rows=summary.rows[ContentKind.DATA],
        average_bytes=_ratio(data_bytes, data_files),
        median_bytes=median_size(summary.sizes),
        size_histogram=tuple(histogram(summary.sizes, SIZE_BOUNDS)),
        small_below_bytes=summary.small_below_bytes,
        small_files=small_files,
        small_bytes=sum(counts.small_bytes for counts in with_data),
        small_share=_ratio(small_files, data_files),
        position_delete_files=summary.files[ContentKind.POSITION_DELETES],
        equality_delete_files=summary.files[ContentKind.EQUALITY_DELETES],
        deletion_vectors=summary.files[ContentKind.DELETION_VECTOR],
        delete_bytes=sum(summary.file_bytes[kind] for kind in kinds),
        deleted_positions=summary.rows[ContentKind.POSITION_DELETES]
        + summary.rows[ContentKind.DELETION_VECTOR],
        equality_deletes=summary.rows[ContentKind.EQUALITY_DELETES],
        deletes_per_data_file=_ratio(delete_files, data_files),
        dangling_deletes=dangling_deletes(summary, metadata.partition_specs),
        partitions=len(with_data),
        largest_partition_bytes=largest,
        median_partition_bytes=median,
        partition_skew=_ratio(largest, median),
        partitions_with_small_files=sum(counts.small_files > 1 for counts in with_data),
        files_to_save=sum(_files_to_save(counts, target) for counts in with_data),
        most_small_files=max((counts.small_files for counts in with_data), default=0),
        old_spec_files=sum(
            counts.data_files for counts in with_data if counts.spec_id != metadata.default_spec_id
        ),
        old_order_files=named_orders - summary.sort_orders[default_order],
        unnamed_order_files=sum(summary.sort_orders[order] for order in unnamed),
        worst_partitions=tuple(heapq.nlargest(WORST_PARTITIONS, partitions, key=_badness)),
        latest_partitions=tuple(
            heapq.nlargest(LATEST_PARTITIONS, partitions, key=attrgetter("newest_sequence"))
        ),
        sizes=summary.sizes,
        position_delete_sizes=summary.position_delete_sizes,
    )


def partition_facts(summary: FileSummary, target_bytes: int) -> Iterator[PartitionFacts]:
    """Yield the facts about each partition that has files, where writers aim at a size."""
    for counts in summary.partitions.values():
        delete_files = sum(counts.deletes.values())
        if counts.data_files or delete_files:
            yield _partition(counts, delete_files, target_bytes)


def _partition(counts: PartitionCounts, delete_files: int, target_bytes: int) -> PartitionFacts:
    return PartitionFacts(
        counts.spec_id,
        counts.partition,
        counts.data_files,
        counts.data_bytes,
        counts.small_files,
        counts.small_bytes,
        delete_files,
        _files_to_save(counts, target_bytes),
        counts.newest_sequence,
    )


def _files_to_save(counts: PartitionCounts, target_bytes: int) -> int:
    return max(0, counts.small_files - max(1, -(-counts.small_bytes // target_bytes)))


def _badness(facts: PartitionFacts) -> tuple[int, int]:
    return facts.small_files + facts.delete_files, facts.small_bytes


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
