"""What Arrow's own schema in a footer makes of columns."""

from __future__ import annotations

import base64
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.engine.appends.footers import FileColumn
from app.fileio.tails import Tail
from app.formats.parquet.arrow_schemas import ArrowField, arrow_fields
from app.formats.parquet.footers import read_footer
from app.formats.parquet.not_parquet import NotParquetError
from tests.builders.parquet_files import parquet


def column(kind: Any, **options: Any) -> FileColumn:
    schema = pa.schema([("before", pa.int64()), ("a", kind), ("after", pa.string())])
    content = parquet(pa.Table.from_batches([], schema), **options)
    before, found, after = read_footer(Tail(len(content), content)).columns
    assert (str(before.type), str(after.type)) == ("long", "string")
    return found


def the_leaf(found: FileColumn) -> FileColumn:
    *_, last = found.leaves()
    return last


STRANGE = {
    "duration": pa.duration("us"),
    "timestamp with time zone Europe/Berlin": pa.timestamp("us", tz="Europe/Berlin"),
    "arrow.json": pa.json_(),
    "arrow.bool8": pa.bool8(),
}


@pytest.mark.parametrize("text", STRANGE)
@pytest.mark.parametrize("where", ["plain", "struct", "list", "map", "list of structs"])
def test_what_arrow_takes_for_something_else_is_of_no_type(text: str, where: str) -> None:
    kind = STRANGE[text]
    wrapped = {
        "plain": kind,
        "struct": pa.struct([("x", pa.int64()), ("y", kind)]),
        "list": pa.list_(kind),
        "map": pa.map_(pa.string(), kind),
        "list of structs": pa.list_(pa.struct([("x", pa.int64()), ("y", kind)])),
    }[where]

    leaf = the_leaf(column(wrapped))

    assert leaf.type is None
    assert leaf.type_text.startswith(f"{text}, as Arrow reads it, ")


def test_without_arrow_s_schema_it_is_what_parquet_says() -> None:
    assert str(the_leaf(column(pa.duration("us"), store_schema=False)).type) == "long"
    zoned = pa.timestamp("us", tz="Europe/Berlin")
    assert str(the_leaf(column(zoned, store_schema=False)).type) == "timestamptz"


@pytest.mark.parametrize("zone", ["UTC", "+00:00", "Etc/UTC"])
def test_utc_has_several_names(zone: str) -> None:
    assert str(the_leaf(column(pa.timestamp("us", tz=zone))).type) == "timestamptz"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (pa.uuid(), "uuid"),
        (pa.large_string(), "string"),
        (pa.dictionary(pa.int32(), pa.string()), "string"),
        (pa.timestamp("us"), "timestamp"),
        (pa.date64(), "date"),
    ],
)
def test_other_types_are_read_as_ever(kind: Any, text: str) -> None:
    assert str(the_leaf(column(kind)).type) == text


@pytest.mark.parametrize("kind", [pa.list_view(pa.int32()), pa.large_list_view(pa.int32())])
def test_a_list_of_another_kind_is_refused(kind: Any) -> None:
    with pytest.raises(NotParquetError, match=r"column a is of type .*list_view"):
        column(kind)


@settings(max_examples=200)
@given(st.data())
def test_a_damaged_schema_says_nothing_and_does_no_harm(data: st.DataObject) -> None:
    schema = pa.schema([("a", pa.struct([("b", pa.duration("s"))])), ("c", pa.timestamp("us", tz="X"))])
    content = bytearray(schema.serialize().to_pybytes())
    for _ in range(data.draw(st.integers(0, 8))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    cut = content[: data.draw(st.integers(0, len(content)))]

    def walk(found: ArrowField | None, depth: int) -> None:
        if found is not None and depth:
            found.strange_type()
            for number in range(3):
                walk(found.child(number), depth - 1)

    walk(arrow_fields(base64.b64encode(bytes(cut))), 4)
    assert arrow_fields(b"no base 64") is None
    assert arrow_fields(None) is None
