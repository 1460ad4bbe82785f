"""Which files of a manifest may matter, by counts, summaries, partitions and metrics, and what is left to be asked."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from app.engine.expressions.expression_json import parse_expression, to_json
from app.engine.model.ids import Location, SnapshotId, SpecId
from app.engine.model.manifests import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestEntry,
    ManifestFile,
    PartitionSummary,
)
from app.engine.model.partition_spec import PartitionSpec
from app.engine.scan.file_selection import FileSelection
from app.engine.scan.scan_scope import ScanRequest, scope_of
from tests.builders.histories import branch, history, line
from tests.unit.engine.documents import column, schema

SCHEMA = schema(column(1, "id", "long"), column(2, "price", "double"))
BY_PRICE = PartitionSpec.from_object(
    {
        "spec-id": 1,
        "fields": [{"name": "p", "transform": "identity", "source-id": 2, "field-id": 1000}],
    }
)
MANIFEST = ManifestFile(Location("m"), 10, SpecId(1))


def selection(filter_: Any) -> FileSelection:
    metadata = history(line(1), {"main": branch(1)}).replace(schemas=(SCHEMA,))
    scope = scope_of(metadata, ScanRequest(filter=parse_expression(filter_)))
    return FileSelection(scope, [BY_PRICE])


def asking(operation: str, term: str, value: float) -> dict[str, Any]:
    return {"type": operation, "term": term, "value": value}


def entry(partition: tuple[Any, ...], status: EntryStatus = EntryStatus.ADDED, **more: Any) -> ManifestEntry:
    file = DataFile(FileContent.DATA, Location(str(partition)), "parquet", SpecId(1), partition, 1, 1)
    return ManifestEntry(status, SnapshotId(1), 1, 1, replace(file, **more))


def chosen(
    filter_: Any, entries: list[ManifestEntry], manifest: ManifestFile = MANIFEST
) -> list[tuple[Any, Any]]:
    found = selection(filter_).data_files(manifest, entries)
    return [(item.file.partition, to_json(residual)) for item, residual in found]


def test_manifest_without_live_files_is_passed_over() -> None:
    empty = replace(MANIFEST, added_files_count=0, existing_files_count=0)

    assert not selection(True).may_match(empty)
    assert selection(True).may_match(replace(empty, existing_files_count=1))
    assert selection(True).may_match(replace(empty, existing_files_count=None))


def test_manifest_is_passed_over_by_its_summaries() -> None:
    low, high = struct.pack("<d", 1.0), struct.pack("<d", 2.0)
    manifest = replace(
        MANIFEST,
        partitions=(
            PartitionSummary(contains_null=False, contains_nan=False, lower_bound=low, upper_bound=high),
        ),
    )

    assert selection(asking("eq", "price", 1.5)).may_match(manifest)
    assert not selection(asking("eq", "price", 5.0)).may_match(manifest)


def test_manifest_of_an_unknown_spec_is_read_and_its_rows_are_asked_everything() -> None:
    unknown = replace(MANIFEST, partition_spec_id=SpecId(9))
    filter_ = asking("eq", "price", 5.0)

    assert selection(filter_).may_match(unknown)
    assert chosen(filter_, [entry((1.0, 2.0))], unknown) == [((1.0, 2.0), filter_)]


def test_partition_that_does_not_fit_its_spec_rules_nothing_out() -> None:
    filter_ = asking("eq", "price", 5.0)

    assert chosen(filter_, [entry((1.0, 2.0)), entry((1.0,)), entry((5.0,))]) == [
        ((5.0,), True),
        ((1.0, 2.0), filter_),
    ]


def test_deleted_entries_are_left_out() -> None:
    assert chosen(True, [entry((1.0,), EntryStatus.DELETED), entry((2.0,), EntryStatus.EXISTING)]) == [
        ((2.0,), True)
    ]


def test_metrics_rule_out_what_partitions_do_not() -> None:
    low, high = {1: struct.pack("<q", 1)}, {1: struct.pack("<q", 5)}
    filter_ = asking("gt", "id", 5)

    assert chosen(filter_, [entry((1.0,), lower_bounds=low, upper_bounds=high), entry((2.0,))]) == [
        ((2.0,), filter_)
    ]


def test_entries_that_come_once_are_gone_through_once_for_each_question() -> None:
    def once() -> Iterator[ManifestEntry]:
        yield entry((5.0,))
        yield entry((7.0,))

    either = {"type": "or", "left": asking("eq", "price", 5.0), "right": asking("gt", "id", 3)}

    found = list(selection(either).data_files(MANIFEST, once()))

    assert [(item.file.partition, to_json(residual)) for item, residual in found] == [
        ((5.0,), True),
        ((7.0,), asking("gt", "id", 3)),
    ]


@pytest.mark.parametrize("first", [0.0, -0.0])
def test_minus_zero_and_zero_are_two_partitions(first: float) -> None:
    chooses = selection({"type": "lt", "term": "price", "value": 0.0})

    residuals = {str(value): to_json(chooses.residual(SpecId(1), (value,))) for value in (first, -first)}

    # Engines do not agree whether -0.0 is below 0.0, so its rows are asked.
    assert residuals == {"0.0": False, "-0.0": {"type": "lt", "term": "price", "value": 0.0}}


def test_residual_of_a_partition_is_one_object_for_all_its_files() -> None:
    by_id = BY_PRICE.replace(fields=(BY_PRICE.fields[0].replace(source_id=1, transform="bucket[4]"),))
    metadata = history(line(1), {"main": branch(1)}).replace(schemas=(SCHEMA,))
    scope = scope_of(metadata, ScanRequest(filter=parse_expression(asking("gt", "id", 3))))
    chooses = FileSelection(scope, [by_id])

    assert chooses.residual(SpecId(1), (2,)) is chooses.residual(SpecId(1), (2,))
