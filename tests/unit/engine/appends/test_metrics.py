from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from app.engine.appends.appended_files import ReadyFile
from app.engine.appends.metrics import cut_down, cut_up
from app.engine.model.files.manifests import DataFile, FileContent
from app.engine.model.ids import SpecId
from tests.builders.parquet_files import PATH, column, parquet, parquet_file, table_of

COLUMNS = [
    column(1, "a", "string"),
    column(2, "s", {"type": "struct", "fields": [column(3, "b", "string"), column(4, "c", "long")]}),
    column(
        5, "l", {"type": "list", "element-id": 6, "element": "string", "element-required": False}
    ),
]  # fmt: skip
BY_A = [{"transform": "identity", "source-id": 1, "direction": "asc", "null-order": "nulls-first"}]
ROWS = pa.table(
    {"a": ["x" * 20, None], "s": [{"b": "y" * 20, "c": 7}, {"b": "y", "c": 8}], "l": [["z"], ["z", "z"]]}
)


def data_file(properties: Mapping[str, str], **more: Any) -> DataFile:
    return parquet_file(parquet(ROWS)).data_file(table_of(COLUMNS, properties=properties, **more))


def metrics(name: str) -> str:
    return f"write.metadata.metrics.{name}"


def test_text_is_cut_to_16_and_elements_have_no_bounds() -> None:
    file = data_file({})

    assert set(file.column_sizes or ()) == {1, 3, 4, 6}
    assert dict(file.value_counts or {}) == {1: 2, 3: 2, 4: 2, 6: 3}
    assert dict(file.null_value_counts or {}) == {1: 1, 3: 0, 4: 0, 6: 0}
    assert dict(file.lower_bounds or {}) == {1: b"x" * 16, 3: b"y", 4: b"\x07" + b"\0" * 7}
    assert dict(file.upper_bounds or {}) == {1: b"x" * 15 + b"y", 3: b"y" * 15 + b"z", 4: b"\x08" + b"\0" * 7}


def test_mode_of_a_column_goes_before_the_default_one() -> None:
    file = data_file(
        {
            metrics("default"): "counts",
            metrics("column.a"): "full",
            metrics("column.s.b"): "truncate(3)",
            metrics("column.s.c"): "none",
            metrics("column.gone"): "full",
        }
    )

    assert dict(file.lower_bounds or {}) == {1: b"x" * 20, 3: b"y"}
    assert dict(file.upper_bounds or {}) == {1: b"x" * 20, 3: b"yyz"}
    assert set(file.value_counts or ()) == {1, 3, 6}
    assert set(file.column_sizes or ()) == {1, 3, 4, 6}


@pytest.mark.parametrize("mode", ["", "all", "truncate(0)", "truncate(x)", "truncate"])
def test_mode_that_cannot_be_read_counts_as_not_set(mode: str) -> None:
    assert data_file({metrics("default"): mode}) == data_file({})


def test_columns_of_the_sort_order_have_bounds_in_any_case() -> None:
    by_bucket = [{**BY_A[0], "transform": "bucket[4]"}]

    assert set(data_file({metrics("default"): "none"}, sort_fields=BY_A).lower_bounds or ()) == {1}
    assert set(data_file({metrics("default"): "none"}, sort_fields=by_bucket).lower_bounds or ()) == set()


def test_wide_tables_have_metrics_of_their_first_columns_unless_a_default_is_set() -> None:
    few = {metrics("max-inferred-column-defaults"): "2"}

    assert set(data_file(few).value_counts or ()) == {1, 3}
    assert set(data_file({**few, metrics("default"): "counts"}).value_counts or ()) == {1, 3, 4, 6}


@pytest.mark.parametrize(
    ("value", "length", "lower", "upper"),
    [
        ("abc", 2, "ab", "ac"),
        ("abc", 3, "abc", "abc"),
        ("abc", 0, "abc", "abc"),
        ("a\U0010ffff\U0010ffffx", 3, "a\U0010ffff\U0010ffff", "b"),
        ("\U0010ffffx", 1, "\U0010ffff", None),
        ("\ud7ffx", 1, "\ud7ff", "\ue000"),
        (b"a\xff\xffb", 3, b"a\xff\xff", b"b"),
        (b"\xffb", 1, b"\xff", None),
        (7, 1, 7, 7),
    ],
)
def test_cut_bounds_enclose_the_value(value: Any, length: int, lower: Any, upper: Any) -> None:
    assert (cut_down(value, length), cut_up(value, length)) == (lower, upper)


@pytest.mark.parametrize("kind", ["float", "double"])
def test_floating_numbers_have_no_bounds_as_some_may_be_nan(kind: str) -> None:
    table = table_of([column(1, "a", kind), column(2, "b", "int")], sort_fields=BY_A)
    rows = pa.table({"a": pa.array([1.0, float("nan")], pa.float32()), "b": pa.array([1, 2], pa.int32())})

    file = parquet_file(parquet(rows)).data_file(table)

    assert (file.value_counts or {})[1] == 2
    assert not file.nan_value_counts
    assert set(file.lower_bounds or {}) == set(file.upper_bounds or {}) == {2}


def test_row_groups_without_statistics_leave_no_bounds() -> None:
    table = table_of([column(1, "a", "long")])
    rows = pa.table({"a": [1, 2]})

    file = parquet_file(parquet(rows, write_statistics=False)).data_file(table)

    assert dict(file.value_counts or {}) == {1: 2}
    assert not file.null_value_counts
    assert not file.lower_bounds


def test_bounds_of_a_footer_that_does_not_count_nulls_are_left_out() -> None:
    """With them and without that count, readers take null for between the bounds."""
    table = table_of([column(1, "a", "long"), column(2, "b", "long")])
    counted = parquet_file(parquet(pa.table({"a": [1, None], "b": [1, 2]})))
    footer = counted.footer
    first, second = footer.columns
    assert first.facts is not None
    uncounted = replace(first, facts=replace(first.facts, null_count=None))

    assert set(counted.data_file(table).lower_bounds or ()) == {1, 2}
    file = replace(counted, footer=replace(footer, columns=(uncounted, second))).data_file(table)

    assert dict(file.null_value_counts or {}) == {2: 0}
    assert set(file.lower_bounds or ()) == set(file.upper_bounds or ()) == {2}


def test_bounds_of_a_described_file_need_counts_of_what_is_not_between_them() -> None:
    kinds = {1: "double", 2: "double", 3: "long", 4: "long", 5: "long"}
    columns = [column(number, f"c{number}", kind, required=number == 5) for number, kind in kinds.items()]
    bounds = dict.fromkeys(kinds, bytes(8))
    described = DataFile(
        FileContent.DATA,
        PATH,
        "PARQUET",
        SpecId(0),
        (),
        1,
        1,
        null_value_counts={1: 0, 2: 0, 3: 0},
        nan_value_counts={1: 0},
        lower_bounds=bounds,
        upper_bounds=bounds,
    )

    file = ReadyFile(PATH, SpecId(0), (), described).data_file(table_of(columns))

    assert set(file.lower_bounds or ()) == set(file.upper_bounds or ()) == {1, 3, 5}
