from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from app.engine.appends.footers import Footer
from app.engine.appends.new_schemas import NewSchema
from app.engine.model.data_types.types import parse_primitive
from app.errors import InvalidDataFile
from app.fileio.tails import Tail
from app.formats.parquet.footers import read_footer
from tests.builders.parquet_files import parquet, with_ids


def footer(schema: pa.Schema) -> Footer:
    content = parquet(schema.empty_table())
    return read_footer(Tail(len(content), content))


def schema_of(*columns: dict[str, pa.DataType], **further: str) -> dict[str, Any]:
    new = NewSchema()
    for number, each in enumerate(columns):
        new.add(f"{number}.parquet", footer(pa.schema(each)))
    made = new.to_schema({name: parse_primitive(text) for name, text in further.items()})
    return {column.name: column.type for column in made.fields}


def test_columns_become_optional_columns_of_their_types() -> None:
    found = schema_of(
        {
            "id": pa.int64(),
            "price": pa.decimal128(10, 2),
            "at": pa.timestamp("us", tz="UTC"),
            "place": pa.struct({"shelf": pa.int32()}),
            "tags": pa.list_(pa.string()),
            "counts": pa.map_(pa.string(), pa.float32()),
        },
        day="date",
    )

    assert {name: str(kind) for name, kind in found.items() if name in {"id", "price", "at", "day"}} == {
        "id": "long",
        "price": "decimal(10, 2)",
        "at": "timestamptz",
        "day": "date",
    }
    assert str(found["place"].fields[0].type) == "int"
    assert str(found["tags"].element) == "string"
    assert (str(found["counts"].key), str(found["counts"].value)) == ("string", "float")


def test_types_are_widened_and_further_columns_added_in_order() -> None:
    found = schema_of(
        {"a": pa.int32(), "s": pa.struct({"x": pa.float32()}), "d": pa.decimal128(5, 2)},
        {"a": pa.int64(), "s": pa.struct({"x": pa.float64(), "y": pa.int32()}), "d": pa.decimal128(4, 2)},
        {"a": pa.int32(), "b": pa.string()},
        b="int",
    )

    assert list(found) == ["a", "s", "d", "b"]
    assert [str(found[name]) for name in "adb"] == ["long", "decimal(5, 2)", "string"]
    assert [str(field.type) for field in found["s"].fields] == ["double", "int"]


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (
            pa.int32(),
            pa.string(),
            "1.parquet: its column a is of type string, in other files it is of type int",
        ),
        (
            pa.list_(pa.int32()),
            pa.int32(),
            "1.parquet: its column a is a single value, in other files it is a list",
        ),
        (pa.list_(pa.int32()), pa.list_(pa.string()), r"column a\.element is of type string"),
        (pa.int32(), pa.uint64(), "its column a is of type .*, which no table has"),
    ],
)
def test_contradiction_names_the_file(first: pa.DataType, second: pa.DataType, message: str) -> None:
    with pytest.raises(InvalidDataFile, match=message):
        schema_of({"a": first}, {"a": second})


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (0, 2, 1)])
def test_what_says_its_width_once_more_is_not_widened(order: tuple[int, ...]) -> None:
    kinds = [pa.int16(), pa.int32(), pa.int64()]

    assert str(schema_of({"a": kinds[0]}, {"a": kinds[1]})["a"]) == "int"
    with pytest.raises(InvalidDataFile, match=r"its column a is of type (int|long), in other files"):
        schema_of(*({"a": kinds[place]} for place in order))


def test_files_that_were_written_for_a_table_are_refused() -> None:
    with pytest.raises(InvalidDataFile, match="have field ids"):
        NewSchema().add("x", footer(with_ids(pa.schema({"a": pa.int32()}), {"a": 7})))


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ([{"ID": pa.int64()}, {"id": pa.int64()}], r"1\.parquet: its column id is called ID, too"),
        ([{"a": pa.int64(), "A": pa.int64()}], r"0\.parquet: its column A is called a, too"),
        (
            [{"s": pa.struct({"x": pa.int64(), "X": pa.int64()})}],
            r"0\.parquet: its column s\.X is called s\.x, too",
        ),
        ([{"": pa.int64()}], r"0\.parquet: it has a column without a name"),
    ],
)
def test_names_that_are_none_or_two_are_refused(columns: list[dict[str, pa.DataType]], said: str) -> None:
    """Rows of one column would be in two, and most engines could read neither."""
    with pytest.raises(InvalidDataFile, match=said):
        schema_of(*columns)


def test_names_that_no_engine_takes_for_one_are_two_columns() -> None:
    """Engines compare them in lower case, in which `ß` is not `ss`."""
    assert list(schema_of({"maße": pa.int64(), "masse": pa.float64()})) == ["maße", "masse"]
