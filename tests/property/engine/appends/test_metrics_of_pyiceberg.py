"""What an append keeps of a Parquet file is what PyIceberg's `add_files` keeps of it, but for NaN."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.io.pyarrow import PyArrowFileIO, parquet_file_to_data_file
from pyiceberg.table.metadata import TableMetadataUtil

from tests.builders.parquet_files import column, parquet, parquet_file, table_of

LONGS = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(width=32, allow_nan=True)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
DECIMALS = st.integers(-(10**9) + 1, 10**9 - 1).map(lambda number: Decimal(number).scaleb(-2))
KINDS: dict[str, tuple[Any, pa.DataType, st.SearchStrategy[Any]]] = {
    "bool": ("boolean", pa.bool_(), st.booleans()),
    "int": ("int", pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "long": ("long", pa.int64(), LONGS),
    "promoted": ("long", pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "float": ("float", pa.float32(), FLOATS),
    "double": ("double", pa.float64(), st.floats(allow_nan=True)),
    "widened": ("double", pa.float32(), FLOATS),
    "decimal": ("decimal(9, 2)", pa.decimal128(9, 2), DECIMALS),
    "large_decimal": ("decimal(38, 2)", pa.decimal128(38, 2), DECIMALS),
    "date": ("date", pa.date32(), st.integers(-700_000, 2_000_000)),
    "time": ("time", pa.time64("us"), st.integers(0, 86_399_999_999)),
    "timestamp": ("timestamp", pa.timestamp("us"), st.integers(-(10**15), 10**17)),
    "timestamptz": ("timestamptz", pa.timestamp("us", "UTC"), st.integers(-(10**15), 10**17)),
    "string": ("string", pa.string(), TEXTS),
    "binary": ("binary", pa.binary(), st.binary(max_size=40)),
    "fixed": ("fixed[5]", pa.binary(5), st.binary(min_size=5, max_size=5)),
    "list": (
        {"type": "list", "element-id": 100, "element": "long", "element-required": False},
        pa.list_(pa.int64()),
        st.lists(st.none() | LONGS, max_size=3),
    ),
    "map": (
        {
            "type": "map",
            "key-id": 101,
            "key": "string",
            "value-id": 102,
            "value": "int",
            "value-required": False,
        },
        pa.map_(pa.string(), pa.int32()),
        st.lists(st.tuples(st.text("ab", max_size=3), st.none() | st.just(7)), max_size=3),
    ),
}
COLUMNS = [column(number, name, kind) for number, (name, (kind, _, _)) in enumerate(KINDS.items(), start=1)]


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Return a table with some of the columns and some rows, nulls among them."""
    names = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=5, unique=True))
    rows = draw(st.integers(0, 6))
    arrays = {}
    for name in names:
        _, kind, values = KINDS[name]
        drawn = draw(st.lists(st.none() | values, min_size=rows, max_size=rows))
        is_moment = pa.types.is_temporal(kind)
        plain = pa.int32() if pa.types.is_date32(kind) else pa.int64()
        arrays[name] = pa.array(drawn, plain).cast(kind) if is_moment else pa.array(drawn, kind)
    return pa.table(arrays)


@given(tables(), st.integers(1, 4), st.sampled_from(["", "full", "counts", "none", "truncate(3)"]))
def test_metrics_are_those_of_add_files(table: pa.Table, group_rows: int, mode: str) -> None:
    properties = {"write.metadata.metrics.default": mode} if mode else {}
    metadata = table_of(COLUMNS, properties=properties)
    content = parquet(table, row_group_size=group_rows, store_decimal_as_integer=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "1.parquet")
        path.write_bytes(content)
        theirs = parquet_file_to_data_file(
            PyArrowFileIO(), TableMetadataUtil.parse_raw(metadata.to_json().decode()), str(path)
        )

    ours = parquet_file(content).data_file(metadata)

    assert ours.record_count == theirs.record_count
    assert ours.file_size_in_bytes == theirs.file_size_in_bytes == len(content)
    assert list(ours.split_offsets or ()) == theirs.split_offsets
    assert ours.column_sizes == theirs.column_sizes
    assert ours.value_counts == theirs.value_counts
    assert ours.null_value_counts == theirs.null_value_counts
    for name in ("lower_bounds", "upper_bounds"):
        bounds, their_bounds = getattr(ours, name), kept(getattr(theirs, name))
        assert bounds.keys() == their_bounds.keys(), name
        assert kept(bounds) == their_bounds, name


def kept(bounds: Mapping[int, bytes]) -> dict[int, bytes]:
    """Return bounds without those of elements, keys and values, and of numbers of which some may be NaN.

    Where the last byte of an upper bound cannot grow, PyIceberg lets one before grow, and leaves the rest behind.
    """
    kinds = {item["id"]: item["type"] for item in COLUMNS}
    return {
        field_id: bound.rstrip(b"\xff") if kinds[field_id] == "binary" else bound
        for field_id, bound in bounds.items()
        if kinds.get(field_id, "float") not in ("float", "double")
    }
