"""Summaries of files: what a naive count finds, however the files are spread over manifests."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from statistics import median_low

from hypothesis import given
from hypothesis import strategies as st

from app.engine.health.facts import SIZE_BOUNDS
from app.engine.health.file_facts import file_facts
from app.engine.health.file_summary import FileSummary, histogram, median_size, merged, summarize
from app.engine.health.live_columns import ContentKind, LiveColumns
from app.engine.health.metadata_facts import small_below
from app.engine.model.files.manifests import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestEntry,
    PartitionKey,
    partition_key,
)
from app.engine.model.ids import Location, SnapshotId, SortOrderId, SpecId
from app.engine.model.table_metadata import TableMetadata
from tests.unit.engine.documents import part, spec_json
from tests.unit.engine.documents import table as plain_table

MEBIBYTE = 1 << 20
TARGET = 128 * MEBIBYTE
SMALL = small_below(TARGET)
NAN = float("nan")
SPECS = [
    spec_json(),
    spec_json(part("category", 2, 1000), spec_id=1),
    spec_json(part("category", 2, 1000, "void"), spec_id=2),
]
"""None, one by a column, and one whose only field was dropped."""
KINDS = {
    ContentKind.DATA: (FileContent.DATA, "parquet"),
    ContentKind.POSITION_DELETES: (FileContent.POSITION_DELETES, "parquet"),
    ContentKind.EQUALITY_DELETES: (FileContent.EQUALITY_DELETES, "parquet"),
    ContentKind.DELETION_VECTOR: (FileContent.POSITION_DELETES, "puffin"),
}


@st.composite
def entries(draw: st.DrawFn) -> ManifestEntry:
    """Return an entry of one of three specs, with few partitions, so that they meet in several manifests."""
    kind = draw(st.sampled_from(ContentKind))
    content, file_format = KINDS[kind]
    spec_id = SpecId(draw(st.integers(0, 2)))
    values = st.none() | st.sampled_from([NAN, -0.0, 0.0, 1.5])
    partition = () if spec_id == 0 else (draw(values) if spec_id == 1 else None,)
    size = draw(
        st.integers(0, 300) | st.integers(0, 2 * 1024 * MEBIBYTE) | st.sampled_from([SMALL, *SIZE_BOUNDS])
    )
    file = DataFile(
        content,
        Location("s3://b/f"),
        file_format,
        spec_id,
        partition,
        record_count=draw(st.integers(0, 1000)),
        file_size_in_bytes=size,
        sort_order_id=draw(st.none() | st.integers(0, 2).map(SortOrderId)),
        content_size_in_bytes=draw(st.integers(0, 100)) if kind is ContentKind.DELETION_VECTOR else None,
    )
    status = draw(st.sampled_from(EntryStatus))
    return ManifestEntry(status, SnapshotId(1), draw(st.integers(0, 4)), 1, file)


manifests = st.lists(st.lists(entries(), max_size=8), max_size=5)


def summary_of(manifest: list[ManifestEntry]) -> FileSummary:
    """Return the summary of a manifest's entries of one spec each, as manifests have them."""
    by_spec = [
        [entry for entry in manifest if entry.file.spec_id == spec_id] for spec_id in range(len(SPECS))
    ]
    parts = [
        summarize(LiveColumns.of(SpecId(spec_id), by_spec[spec_id]), SMALL) for spec_id in range(len(SPECS))
    ]
    return merged(parts, SMALL)


def table() -> TableMetadata:
    """Return a table with these specs and sort order 0, whose files aim at 128 MiB."""
    return plain_table(partition_specs=SPECS, properties={"write.target-file-size-bytes": str(TARGET)})


@given(manifests)
def test_latest_partitions_are_those_with_the_newest_files(spread: list[list[ManifestEntry]]) -> None:
    live = [entry for manifest in spread for entry in manifest if entry.is_live]
    newest: dict[PartitionKey, int] = {}
    for entry in live:
        key = entry.file.partition_key
        newest[key] = max(newest.get(key, 0), entry.data_sequence_number or 0)

    latest = file_facts(table(), merged(map(summary_of, spread), SMALL)).latest_partitions

    assert {
        partition_key(facts.spec_id, facts.partition): facts.newest_sequence for facts in latest
    } == newest
    assert [facts.newest_sequence for facts in latest] == sorted(newest.values(), reverse=True)
    assert (
        sum(facts.files_to_save for facts in latest)
        == file_facts(table(), merged(map(summary_of, spread), SMALL)).files_to_save
    )


@given(manifests)
def test_facts_equal_a_naive_count(spread: list[list[ManifestEntry]]) -> None:
    live = [entry for manifest in spread for entry in manifest if entry.is_live]
    data = [entry.file for entry in live if entry.file.content is FileContent.DATA]
    deletes = [entry for entry in live if entry.file.content is not FileContent.DATA]

    facts = file_facts(table(), merged(map(summary_of, spread), SMALL))

    assert (facts.data_files, facts.rows) == (len(data), sum(file.record_count for file in data))
    assert facts.data_bytes == sum(file.file_size_in_bytes for file in data)
    small = [file for file in data if file.file_size_in_bytes < SMALL]
    assert (facts.small_files, facts.small_bytes) == (
        len(small),
        sum(file.file_size_in_bytes for file in small),
    )
    vectors = sum(entry.file.file_format == "puffin" for entry in deletes)
    assert facts.deletion_vectors == vectors
    assert facts.position_delete_files == -vectors + sum(
        entry.file.content is FileContent.POSITION_DELETES for entry in deletes
    )
    assert facts.delete_files == len(deletes)
    assert facts.delete_bytes == sum(
        entry.file.content_size_in_bytes
        if entry.file.content_size_in_bytes is not None
        else entry.file.file_size_in_bytes
        for entry in deletes
    )
    by_partition: dict[object, list[DataFile]] = {}
    for file in data:
        by_partition.setdefault(file.partition_key, []).append(file)
    assert facts.partitions == len(by_partition)
    assert facts.largest_partition_bytes == max(
        (sum(file.file_size_in_bytes for file in files) for files in by_partition.values()), default=0
    )
    assert facts.old_spec_files == sum(file.spec_id != 0 for file in data)
    assert facts.unnamed_order_files == sum(file.sort_order_id is None for file in data)
    assert facts.old_order_files == sum(file.sort_order_id not in (None, 0) for file in data)
    assert facts.dangling_deletes == sum(not applies_to_some(delete, live) for delete in deletes)
    assert sum(partition.data_files for partition in facts.worst_partitions) == len(data)
    assert sum(partition.delete_files for partition in facts.worst_partitions) == len(deletes)


def applies_to_some(delete: ManifestEntry, live: list[ManifestEntry]) -> bool:
    """Return whether a delete file applies to a data file, as the spec says it of scan planning."""
    number = delete.data_sequence_number or 0
    for entry in live:
        if entry.file.content is not FileContent.DATA:
            continue
        same = entry.file.partition_key == delete.file.partition_key
        older = (entry.data_sequence_number or 0) < number
        if delete.file.content is FileContent.EQUALITY_DELETES:
            if older and (same or delete.file.spec_id != 1):
                return True
        elif same and (entry.data_sequence_number or 0) <= number:
            return True
    return False


@given(manifests, st.data())
def test_merging_is_associative_and_knows_no_order(
    spread: list[list[ManifestEntry]], data: st.DataObject
) -> None:
    parts = [summary_of(manifest) for manifest in spread]
    cut = data.draw(st.integers(0, len(parts)))

    whole = merged(parts, SMALL)

    assert merged([merged(parts[:cut], SMALL), merged(parts[cut:], SMALL)], SMALL) == whole
    assert merged(data.draw(st.permutations(parts)), SMALL) == whole


@given(manifests)
def test_one_manifest_or_several_make_no_difference(spread: list[list[ManifestEntry]]) -> None:
    together = [entry for manifest in spread for entry in manifest]

    assert merged(map(summary_of, spread), SMALL) == summary_of(together)


@given(st.lists(st.integers(0, 1 << 34), min_size=1, max_size=40))
def test_median_and_histogram_are_those_of_the_sizes(sizes: list[int]) -> None:
    files = [
        ManifestEntry(EntryStatus.ADDED, None, 1, 1, replace(FILE, file_size_in_bytes=size)) for size in sizes
    ]
    counted = summary_of(files).sizes

    exact = median_low(sizes)
    assert exact * 0.99 <= median_size(counted) <= exact
    bounds = [0, *SIZE_BOUNDS, 1 << 62]
    assert list(histogram(counted, SIZE_BOUNDS)) == [
        sum(low <= size < high for size in sizes) for low, high in pairwise(bounds)
    ]


FILE = DataFile(FileContent.DATA, Location("s3://b/f"), "parquet", SpecId(0), (), 1, 1)
