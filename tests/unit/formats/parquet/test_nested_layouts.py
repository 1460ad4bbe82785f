from __future__ import annotations

import pyarrow as pa
import pytest

from app.engine.appends.footers import Footer
from app.fileio.tails import Tail
from app.formats.parquet.footers import read_footer
from app.formats.parquet.not_parquet import NotParquetError
from tests.builders.hostile_footers import (
    LIST,
    MAP,
    MAP_KEY_VALUE,
    REPEATED,
    REQUIRED,
    file_of,
    footer_of,
    leaf,
    nest,
)
from tests.builders.parquet_files import parquet


def read(*elements: bytes) -> Footer:
    content = file_of(footer_of([nest("root", 1), *elements]))
    return read_footer(Tail(len(content), content))


def a_list(group: str, element: str, *, ids: bool = False) -> list[bytes]:
    of_list, of_element = (1, 2) if ids else (None, None)
    return [
        nest("v", 1, converted=LIST, field_id=of_list),
        nest(group, 1, repetition=REPEATED),
        leaf(element, field_id=of_element),
    ]


def a_map(group: str, key: str, value: str, *, ids: bool = False) -> list[bytes]:
    of_map, of_key, of_value = (1, 2, 3) if ids else (None, None, None)
    return [
        nest("v", 1, converted=MAP, field_id=of_map),
        nest(group, 2, repetition=REPEATED, converted=MAP_KEY_VALUE),
        leaf(key, repetition=REQUIRED, field_id=of_key),
        leaf(value, field_id=of_value),
    ]


@pytest.mark.parametrize(
    "elements",
    [
        a_list("list", "element"),
        a_list("list", "item"),
        a_list("bag", "array_element", ids=True),
        a_map("key_value", "key", "value"),
        a_map("map", "key", "value", ids=True),
    ],
)
def test_what_all_readers_find_is_taken(elements: list[bytes]) -> None:
    assert [column.name for column in read(*elements).columns] == ["v"]


@pytest.mark.parametrize(
    "elements",
    [
        a_list("bag", "array_element"),
        a_list("bag", "element"),
        [nest("v", 1, converted=LIST), leaf("array", repetition=REPEATED)],
        [nest("v", 1, converted=LIST, field_id=1), leaf("element", repetition=REPEATED, field_id=2)],
        [nest("v", 1, converted=LIST), nest("array", 1, repetition=REPEATED), leaf("a")],
        [leaf("v", repetition=REPEATED)],
        [nest("v", 1, repetition=REPEATED), leaf("a")],
        a_map("map", "key", "value"),
        a_map("key_value", "k", "w"),
        a_map("key_value", "k", "w", ids=True),
        a_map("key_value", "key", "w", ids=True),
    ],
)
def test_what_some_readers_do_not_find_is_refused(elements: list[bytes]) -> None:
    with pytest.raises(NotParquetError, match="lists and maps are laid out in an older way"):
        read(*elements)


@pytest.mark.parametrize("is_compliant", [True, False])
def test_what_arrow_writes_is_taken(*, is_compliant: bool) -> None:
    inner = pa.struct([("x.y", pa.list_(pa.int32())), ("m", pa.map_(pa.string(), pa.list_(pa.int32(), 2)))])
    rows = pa.table({"a.b": pa.array([], pa.list_(pa.map_(pa.struct([("k", pa.int32())]), inner)))})
    content = parquet(rows, use_compliant_nested_type=is_compliant)

    assert len(list(read_footer(Tail(len(content), content)).columns[0].leaves())) == 4


def test_list_of_empty_structs_behind_all_leaves_has_no_values() -> None:
    content = file_of(
        footer_of(
            [
                nest("root", 2),
                leaf("a", field_id=1),
                nest("v", 1, converted=LIST, field_id=2),
                nest("list", 1, repetition=REPEATED),
                nest("element", 0),
            ]
        )
    )

    found = read_footer(Tail(len(content), content))

    assert [len(list(column.leaves())) for column in found.columns] == [1, 0]
