from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from app.engine.appends.columns import is_readable_as, map_columns
from app.engine.model.data_types.types import parse_primitive
from app.engine.model.table_metadata import TableMetadata
from app.errors import InvalidDataFile
from tests.builders.parquet_files import (
    PATH,
    column,
    parquet,
    parquet_file,
    partitioned_by,
    table_of,
    with_ids,
)

POINTS = {
    "type": "list",
    "element-id": 3,
    "element-required": False,
    "element": {"type": "struct", "fields": [column(4, "x", "int"), column(5, "y", "long")]},
}
LABELS = {
    "type": "map",
    "key-id": 6,
    "key": "string",
    "value-id": 7,
    "value": "int",
    "value-required": False,
}


def mapped(table: TableMetadata, rows: pa.Table) -> dict[int, str]:
    """Return the type of each column that a file has, by field id."""
    found = map_columns(PATH, parquet_file(parquet(rows)).footer, table)
    return {field_id: str(leaf.type) for field_id, leaf in sorted(found.leaves.items())}


def test_ids_decide_whatever_the_names_are() -> None:
    table = table_of([column(1, "a", "int"), column(2, "b", "string")])
    schema = with_ids(pa.schema([("b", pa.int32()), ("x", pa.string())]), {"b": 1, "x": 2})
    rows = pa.table({"b": [1], "x": ["s"]}, schema=schema)

    assert mapped(table, rows) == {1: "int", 2: "string"}


def test_parts_of_nested_columns_are_found_by_name_whatever_writers_call_elements() -> None:
    table = table_of([column(1, "points", POINTS), column(2, "labels", LABELS)])
    points = pa.list_(pa.field("item", pa.struct([("y", pa.int64()), ("x", pa.int32())])))
    labels = pa.map_(pa.string(), pa.int32())
    rows = pa.table(
        {"points": pa.array([[{"x": 1, "y": 2}]], points), "labels": pa.array([[("k", 1)]], labels)}
    )

    assert mapped(table, rows) == {4: "int", 5: "long", 6: "string", 7: "int"}


def test_nested_column_that_the_table_lacks_is_named() -> None:
    table = table_of([column(1, "points", POINTS)])
    rows = pa.table({"points": pa.array([[{"z": 1}]])})

    with pytest.raises(InvalidDataFile, match=r"no column for its column points\.element\.z"):
        mapped(table, rows)


def test_two_columns_of_a_file_cannot_be_one_of_the_table() -> None:
    mapping = '[{"field-id": 1, "names": ["a", "old_a"]}]'
    table = table_of([column(1, "a", "int")], properties={"schema.name-mapping.default": mapping})
    rows = pa.table({"a": pa.array([1], pa.int32()), "old_a": pa.array([1], pa.int32())})

    with pytest.raises(InvalidDataFile, match="its columns a and old_a are both column a"):
        mapped(table, rows)


def test_column_that_a_name_mapping_does_not_know_yet_is_refused_because_of_it() -> None:
    mapping = '[{"field-id": 1, "names": ["a"]}]'
    columns = [column(1, "a", "long"), column(2, "b", "long")]
    table = table_of(columns, properties={"schema.name-mapping.default": mapping})

    with pytest.raises(InvalidDataFile, match=r"no column for its column b by schema\.name-mapping\.default"):
        mapped(table, pa.table({"a": [1], "b": [2]}))


@pytest.mark.parametrize(
    "mapping",
    [
        "{",
        "7",
        '[{"field-id": 1}]',
        '[["a"]]',
        '[{"field-id": [1], "names": ["a"]}]',
        '[{"field-id": true, "names": ["a"]}]',
        '[{"field-id": 1, "names": "a"}]',
        '[{"field-id": 1, "names": ["a"]}, {"field-id": 2, "names": ["b", "a"]}]',
        '[{"field-id": 1, "names": ["a"]}, {"names": ["s"], "fields": [{"names": ["x"]}, {"names": ["x"]}]}]',
        "[" * 100_000,
    ],
    ids=lambda mapping: mapping[:40],
)
def test_name_mapping_that_cannot_be_read_is_named(mapping: str) -> None:
    table = table_of([column(1, "a", "long")], properties={"schema.name-mapping.default": mapping})

    with pytest.raises(InvalidDataFile, match=r"schema\.name-mapping\.default cannot be read"):
        mapped(table, pa.table({"a": [1]}))


def test_required_column_may_be_optional_in_the_file_if_no_value_is_null() -> None:
    table = table_of([column(1, "a", "long", required=True)])

    assert mapped(table, pa.table({"a": [1, 2]})) == {1: "long"}
    with pytest.raises(InvalidDataFile, match="its column a may have nulls"):
        mapped(table, pa.table({"a": [1, None]}))
    assert mapped(table, pa.table({"a": pa.array([], pa.int64())})) == {1: "long"}


def test_required_struct_is_proven_by_one_of_its_leaves() -> None:
    kind = {"type": "struct", "fields": [column(2, "x", "long"), column(3, "y", "long")]}
    table = table_of([column(1, "s", kind, required=True)])
    pair = pa.struct([("x", pa.int64()), ("y", pa.int64())])

    assert mapped(table, pa.table({"s": pa.array([{"x": 1, "y": None}], pair)})) == {2: "long", 3: "long"}
    with pytest.raises(InvalidDataFile, match="its column s may have nulls"):
        mapped(table, pa.table({"s": pa.array([{"x": None, "y": None}], pair)}))


def test_required_column_may_be_missing_if_it_has_an_initial_default() -> None:
    columns: list[dict[str, Any]] = [column(1, "a", "long"), column(2, "b", "int", required=True)]
    columns[1] |= {"initial-default": 3, "write-default": 3}

    found = map_columns(
        PATH, parquet_file(parquet(pa.table({"a": [1]}))).footer, table_of(columns, format_version=3)
    )

    assert found.missing == {}


def test_column_of_an_identity_partition_may_be_missing() -> None:
    table = table_of(
        [column(1, "region", "string", required=True), column(2, "a", "long")], [partitioned_by("identity")]
    )
    content = parquet(pa.table({"a": [1]}))

    assert parquet_file(content, {"part": "eu"}).data_file(table).partition == ("eu",)
    with pytest.raises(InvalidDataFile, match="it has no column region, which the table requires"):
        parquet_file(content).data_file(table)


@pytest.mark.parametrize(
    ("found", "wanted", "is_readable"),
    [
        ("int", "int", True),
        ("int", "long", True),
        ("long", "int", False),
        ("float", "double", True),
        ("double", "float", False),
        ("decimal(5, 2)", "decimal(9, 2)", True),
        ("decimal(9, 2)", "decimal(5, 2)", False),
        ("decimal(5, 2)", "decimal(9, 3)", False),
        ("date", "timestamp", False),
        ("timestamp", "timestamptz", False),
        ("timestamp_ns", "timestamp", False),
        ("string", "binary", False),
        ("fixed[16]", "uuid", False),
        ("int", "float", False),
    ],
)
def test_only_promotions_that_all_readers_know_are_taken(
    found: str, wanted: str, *, is_readable: bool
) -> None:
    assert is_readable_as(parse_primitive(found), parse_primitive(wanted)) is is_readable


@pytest.mark.parametrize(
    ("kind", "wanted", "is_taken"),
    [
        (pa.uint8(), "int", False),
        (pa.uint16(), "long", False),
        (pa.uint32(), "long", False),
        (pa.uint64(), "long", False),
        (pa.int8(), "int", True),
        (pa.int16(), "long", False),
        (pa.int32(), "long", True),
        (pa.timestamp("ms"), "timestamp", False),
        (pa.timestamp("ms", "UTC"), "timestamptz", False),
        (pa.timestamp("s"), "timestamp", False),
        (pa.timestamp("ns"), "timestamp", False),
        (pa.timestamp("ns"), "timestamp_ns", True),
        (pa.timestamp("ns", "UTC"), "timestamptz_ns", True),
        (pa.timestamp("us", "UTC"), "timestamp", False),
        (pa.time32("ms"), "time", False),
        (pa.float16(), "float", False),
        (pa.large_string(), "string", True),
        (pa.dictionary(pa.int32(), pa.string()), "string", True),
        (pa.uuid(), "uuid", True),
        (pa.null(), "string", False),
        (pa.binary(), "variant", False),
        (pa.binary(), "geometry", False),
    ],
)
def test_types_of_arrow_are_taken_where_they_mean_the_same(kind: Any, wanted: str, *, is_taken: bool) -> None:
    table = table_of([column(1, "a", wanted)], format_version=3)
    values = pa.nulls(2, kind)

    if is_taken:
        assert mapped(table, pa.table({"a": values})) == {1: wanted}
    else:
        with pytest.raises(InvalidDataFile, match=f"cannot be read as {wanted}"):
            mapped(table, pa.table({"a": values}))


def test_int96_is_a_timestamptz_without_bounds() -> None:
    table = table_of([column(1, "a", "timestamptz")])
    rows = pa.table({"a": pa.array([1, 2], pa.timestamp("us", "UTC"))})

    file = parquet_file(parquet(rows, use_deprecated_int96_timestamps=True)).data_file(table)

    assert (file.record_count, dict(file.lower_bounds or {})) == (2, {})
