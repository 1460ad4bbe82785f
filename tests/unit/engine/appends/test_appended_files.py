"""Bounds of described files, of types whose values have no order or more than one."""

from __future__ import annotations

import struct
from uuid import UUID

import pytest

from app.engine.appends.appended_files import ReadyFile
from app.engine.model.files.manifests import DataFile, FileContent
from app.engine.model.ids import SortOrderId, SpecId
from app.engine.model.sort_order import SortOrder
from app.errors import InvalidDataFile
from tests.builders.parquet_files import PATH, column, table_of
from tests.unit.engine.effort import calls_in

LESS, MORE = struct.pack("<d", 0.75), struct.pack("<d", 2.0)


@pytest.mark.parametrize(
    ("kind", "lower", "upper"),
    [
        ("geometry", LESS * 2, MORE * 2),
        ("geography", LESS * 2, MORE * 2),
        ("variant", b"\x01\x00\x00\x0c\x05", b"\x01\x00\x00\x0c\x04"),
        ("uuid", UUID(int=1 << 127).bytes, UUID(int=1).bytes),  # in the order of early Java writers
    ],
)
def test_bounds_that_are_no_bytes_in_order_are_kept(kind: str, lower: bytes, upper: bytes) -> None:
    file = DataFile(
        FileContent.DATA, PATH, "PARQUET", SpecId(0), (), 1, 1,
        null_value_counts={1: 0}, lower_bounds={1: lower}, upper_bounds={1: upper},
    )  # fmt: skip

    made = ReadyFile(PATH, None, (), file).data_file(table_of([column(1, "c", kind)], format_version=3))

    assert (made.lower_bounds, made.upper_bounds) == ({1: lower}, {1: upper})


def test_described_file_may_be_unsorted_in_a_table_that_has_only_a_sort_order() -> None:
    """Its order, 0, is in no list then."""
    field = {"transform": "identity", "source-id": 1, "direction": "asc", "null-order": "nulls-first"}
    order = SortOrder.from_object({"order-id": 1, "fields": [field]})
    table = table_of([column(1, "c", "long")]).replace(
        sort_orders=(order,), default_sort_order_id=order.order_id
    )
    file = DataFile(
        FileContent.DATA, PATH, "PARQUET", SpecId(0), (), 1, 1, sort_order_id=SortOrderId(0)
    )  # fmt: skip

    assert ReadyFile(PATH, None, (), file).data_file(table).sort_order_id == 0


def test_described_file_may_have_a_column_that_the_table_has_no_more() -> None:
    """It may have been written before the column was dropped."""
    before, now = (
        table_of([column(1, "a", "long"), column(2, "b", "long")]),
        table_of([column(1, "a", "long")]),
    )
    table = now.replace(schemas=(before.current_schema.with_id(7), *now.schemas))
    described = {1: 1, 2: 1}
    bounds = dict.fromkeys(described, struct.pack("<q", 5))
    file = DataFile(
        FileContent.DATA, PATH, "PARQUET", SpecId(0), (), 1, 1,
        value_counts=described, null_value_counts={2: 0, 1: 0}, lower_bounds=bounds, upper_bounds=bounds,
    )  # fmt: skip

    made = ReadyFile(PATH, None, (), file).data_file(table)

    assert (made.value_counts, made.lower_bounds) == (described, bounds)
    with pytest.raises(InvalidDataFile, match="have field id 2, which is no column of the table"):
        ReadyFile(PATH, None, (), file).data_file(now)


def test_one_more_file_does_not_look_at_all_columns_again() -> None:
    few, many = (
        table_of([column(number, f"c{number}", "long") for number in range(1, count)]) for count in (9, 900)
    )
    counts = {1: 1}
    file = DataFile(FileContent.DATA, PATH, "PARQUET", SpecId(0), (), 1, 1, value_counts=counts)
    ready = ReadyFile(PATH, None, (), file)
    for table in (few, many):
        ready.data_file(table)

    assert calls_in(lambda: ready.data_file(many)) < 2 * calls_in(lambda: ready.data_file(few))
