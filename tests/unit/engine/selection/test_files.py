"""Which files of a manifest may matter, by counts, summaries, partitions and metrics, and what is left to be asked."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from app.engine.expressions.expression_json import parse_expression, to_json
from app.engine.model.files.manifests import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    PartitionSummary,
    partition_key,
)
from app.engine.model.ids import Location, SnapshotId, SpecId
from app.engine.model.partition_spec import PartitionSpec
from app.engine.selection.files import FileSelection, PartitionSelection, RowFilter
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
    return FileSelection(RowFilter.of(parse_expression(filter_), SCHEMA), [BY_PRICE])


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

    assert not selection(True).may_hold_live(empty)
    assert selection(True).may_hold_live(replace(empty, existing_files_count=1))
    assert selection(True).may_hold_live(replace(empty, existing_files_count=None))


def test_manifest_is_passed_over_by_its_summaries() -> None:
    low, high = struct.pack("<d", 1.0), struct.pack("<d", 2.0)
    manifest = replace(
        MANIFEST,
        partitions=(
            PartitionSummary(contains_null=False, contains_nan=False, lower_bound=low, upper_bound=high),
        ),
    )

    assert selection(asking("eq", "price", 1.5)).may_hold_live(manifest)
    assert not selection(asking("eq", "price", 5.0)).may_hold_live(manifest)


def test_manifest_of_an_unknown_spec_is_read_and_its_rows_are_asked_everything() -> None:
    unknown = replace(MANIFEST, partition_spec_id=SpecId(9))
    filter_ = asking("eq", "price", 5.0)

    assert selection(filter_).may_hold_live(unknown)
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
    rows = RowFilter.of(parse_expression(asking("gt", "id", 3)), SCHEMA)
    chooses = FileSelection(rows, [by_id])

    assert chooses.residual(SpecId(1), (2,)) is chooses.residual(SpecId(1), (2,))


LONGS: dict[int, dict[str, Any]] = {
    number: {
        "lower_bounds": {1: struct.pack("<q", number)},
        "upper_bounds": {1: struct.pack("<q", number + 5)},
    }
    | {"value_counts": {1: 2}, "null_value_counts": {1: 0}}
    for number in (0, 10)
}


@pytest.mark.parametrize(("asks", "found"), [(False, ["low", "high"]), (True, ["low"])])
def test_delete_files_are_asked_by_their_metrics_only_if_that_is_wanted(asks: bool, found: list[str]) -> None:
    chooses = FileSelection(
        RowFilter.of(parse_expression(asking("lt", "id", 5)), SCHEMA),
        [BY_PRICE],
        asks_metrics_of_deletes=asks,
    )
    manifest = replace(MANIFEST, content=ManifestContent.DELETES)
    deletes = [
        entry((1.0,), content=FileContent.EQUALITY_DELETES, file_path=name, **LONGS[low])
        for name, low in (("low", 0), ("high", 10))
    ]

    assert [item.file.file_path for item in chooses.live(manifest, deletes)] == found
    assert [item.file.file_path for item in deletes if chooses.may_match(item.file)] == found


def equality_delete(*ids: int, **metrics: Any) -> ManifestEntry:
    return entry((1.0,), content=FileContent.EQUALITY_DELETES, equality_ids=ids, **metrics)


NULLS: dict[str, Any] = {"value_counts": {1: 3}, "null_value_counts": {1: 1}}
NO_NAN: dict[str, Any] = {"nan_value_counts": {2: 0}, "null_value_counts": {2: 0}, "value_counts": {2: 1}}
DOUBLES: dict[str, Any] = {
    "lower_bounds": {2: struct.pack("<d", 2.0)},
    "upper_bounds": {2: struct.pack("<d", 2.0)},
}


@pytest.mark.parametrize(
    ("filter_", "delete", "is_kept"),
    [
        (asking("lt", "id", 5), equality_delete(1, **LONGS[0]), True),
        (asking("lt", "id", 5), equality_delete(1, **LONGS[10]), False),
        ({"type": "in", "term": "id", "values": [9, 17]}, equality_delete(1, **LONGS[10]), False),
        # A column that the deletes are not about may have any value in the rows that they delete.
        (asking("lt", "id", 5), equality_delete(2, **LONGS[10]), True),
        (asking("lt", "id", 5), equality_delete(1, 2, **LONGS[10]), False),
        (asking("lt", "id", 5), entry((1.0,), content=FileContent.EQUALITY_DELETES, **LONGS[10]), True),
        (asking("lt", "id", 5), entry((1.0,), content=FileContent.POSITION_DELETES, **LONGS[10]), True),
        # A null deletes rows with null.
        ({"type": "is-null", "term": "id"}, equality_delete(1, **LONGS[10]), False),
        ({"type": "is-null", "term": "id"}, equality_delete(1, **(LONGS[10] | NULLS)), True),
        (asking("not-eq", "id", 12), equality_delete(1, **(LONGS[10] | NULLS)), True),
        # NaN is in no bound: only a count says that there is none.
        (asking("gt", "price", 5.0), equality_delete(2, **DOUBLES), True),
        (asking("gt", "price", 5.0), equality_delete(2, **(DOUBLES | NO_NAN)), False),
        (True, equality_delete(1, **LONGS[10]), True),
    ],
)
def test_equality_deletes_of_no_row_that_matches_are_left_out(
    filter_: Any, delete: ManifestEntry, is_kept: bool
) -> None:
    chooses = FileSelection(RowFilter.of(parse_expression(filter_), SCHEMA), [])
    manifest = replace(MANIFEST, content=ManifestContent.DELETES)

    assert list(chooses.live(manifest, [delete])) == [delete] * is_kept
    assert chooses.may_match(delete.file) is is_kept


def test_files_are_asked_by_their_partition_and_their_metrics() -> None:
    chooses = selection({"type": "and", "left": asking("lt", "id", 5), "right": asking("eq", "price", 1.0)})
    files = [entry((1.0,), **LONGS[0]), entry((1.0,), **LONGS[10]), entry((2.0,), **LONGS[0]), entry((1.0,))]
    gone = replace(files[0], status=EntryStatus.DELETED)

    assert list(chooses.live(MANIFEST, [*files, gone])) == [files[0], files[3]]
    assert [chooses.may_match(item.file) for item in files] == [True, False, False, True]
    assert all(selection(True).may_match(item.file) for item in files)


def test_how_much_of_a_file_matches() -> None:
    """All of it: by partition or by metrics; in part: where one of them leaves it open."""
    either = {"type": "or", "left": asking("lt", "id", 6), "right": asking("eq", "price", 1.0)}
    chooses = selection(either)
    by_partition, by_metrics = entry((1.0,), **LONGS[10]).file, entry((2.0,), **LONGS[0]).file
    without, neither = entry((2.0,)).file, entry((2.0,), **LONGS[10]).file

    assert [chooses.all_match(file) for file in (by_partition, by_metrics, without, neither)] == [
        True,
        True,
        False,
        False,
    ]
    assert [chooses.matches_in_part(file) for file in (by_partition, by_metrics, without, neither)] == [
        False,
        False,
        True,
        False,
    ]


def test_files_of_some_partitions() -> None:
    chooses = PartitionSelection([partition_key(SpecId(1), (math.nan,))])
    files = [entry((math.inf - math.inf,)), entry((1.0,))]

    assert list(chooses.live(MANIFEST, [*files, entry((math.nan,), EntryStatus.DELETED)])) == files[:1]
    assert [chooses.may_match(item.file) for item in files] == [True, False]
    assert chooses.may_hold(MANIFEST)
    assert not chooses.may_hold(replace(MANIFEST, partition_spec_id=SpecId(0)))


IDS: dict[int | None, bytes] = {0: struct.pack("<q", 0), 1: struct.pack("<q", 1)}
PRICES: dict[float | None, bytes] = {0.5: struct.pack("<d", 0.5), 2.5: struct.pack("<d", 2.5)}
ROWS = list(product([None, *IDS], [None, *PRICES]))
FILTERS: list[tuple[Any, Callable[[Any, Any], bool]]] = [
    (asking("eq", "id", 0), lambda id_, _: id_ == 0),
    (asking("not-eq", "id", 0), lambda id_, _: id_ != 0),
    ({"type": "is-null", "term": "id"}, lambda id_, _: id_ is None),
    ({"type": "not-null", "term": "price"}, lambda _, price: price is not None),
    (asking("gt", "price", 1.0), lambda _, price: price is not None and price > 1),
    ({"type": "not-in", "term": "price", "values": [0.5]}, lambda _, price: price != 0.5),
    (
        {"type": "and", "left": asking("eq", "id", 1), "right": asking("lt", "price", 1.0)},
        lambda id_, price: id_ == 1 and price is not None and price < 1,
    ),
    (
        {"type": "or", "left": asking("eq", "id", 1), "right": asking("lt", "price", 1.0)},
        lambda id_, price: id_ == 1 or (price is not None and price < 1),
    ),
]


def metrics_of(rows: Sequence[tuple[Any, Any]]) -> dict[str, Any]:
    """Return all metrics of a file of rows, also of columns that its deletes are not about."""
    found: dict[str, dict[int, Any]] = {
        "value_counts": {1: len(rows), 2: len(rows)},
        "null_value_counts": {at + 1: sum(row[at] is None for row in rows) for at in (0, 1)},
        "nan_value_counts": {2: 0},
        "lower_bounds": {},
        "upper_bounds": {},
    }
    packings: tuple[dict[Any, bytes], ...] = (IDS, PRICES)
    for at, packed in enumerate(packings):
        if values := sorted(row[at] for row in rows if row[at] is not None):
            found["lower_bounds"][at + 1] = packed[values[0]]
            found["upper_bounds"][at + 1] = packed[values[-1]]
    return found


@pytest.mark.parametrize("ids", [(1,), (2,), (1, 2)])
def test_no_equality_delete_of_a_row_that_matches_is_left_out(ids: tuple[int, ...]) -> None:
    left_out = 0
    for rows in (*((row,) for row in ROWS), *product(ROWS, repeat=2)):
        delete = equality_delete(*ids, record_count=len(rows), **metrics_of(rows)).file
        deleted = [row for row in ROWS if any(all(row[at - 1] == key[at - 1] for at in ids) for key in rows)]
        for filter_, matches in FILTERS:
            chooses = FileSelection(RowFilter.of(parse_expression(filter_), SCHEMA), [])
            if not chooses.may_match(delete):
                left_out += 1
                assert not any(matches(*row) for row in deleted), (filter_, rows)

    assert left_out > 100
