from __future__ import annotations

import gc
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.fileio.tails import Tail
from app.formats.parquet.footers import read_footer
from tests.builders.hostile_footers import (
    BSON,
    BYTE_ARRAY,
    END,
    ENUM,
    JSON,
    UTF8,
    file_of,
    footer_of,
    leaf,
    nest,
    pair,
    text,
)
from tests.builders.parquet_files import parquet, parquet_rows


def test_what_arrow_has_read_goes_with_the_footer() -> None:
    """Without the garbage collector, which comes late: a footer of a few megabytes takes hundreds."""
    content = parquet_rows(id=[1, 2, 3])
    gc.collect()
    gc.disable()
    try:
        read_footer(Tail(len(content), content))
        kept = [each for each in gc.get_objects() if isinstance(each, pq.FileMetaData)]
    finally:
        gc.enable()

    assert kept == []


WRITTEN = text("no schema at all")


@pytest.mark.parametrize(
    "written",
    [
        pytest.param(pair("ARROW:schema", "no schema at all"), id="as writers do"),
        pytest.param(b"\x18\x8c\x00ARROW:schema\x18" + WRITTEN + END, id="a length of two bytes"),
        pytest.param(b"\x08\x02\x0cARROW:schema\x18" + WRITTEN + END, id="the id of the key as a whole"),
        pytest.param(b"\x18\x0cARROW:schema\x08\x04" + WRITTEN + END, id="the id of the value as a whole"),
        pytest.param(b"\x28" + WRITTEN + b"\x08\x02\x0cARROW:schema" + END, id="the value first"),
        pytest.param(b"\x18\x0cARROW:schema\x28\x00\x08\x04" + WRITTEN + END, id="an unknown field between"),
    ],
)
def test_the_schema_that_arrow_keeps_for_itself_is_not_read(written: bytes) -> None:
    """A small one can be made of so many references that it fills the memory."""
    content = file_of(footer_of([nest("root", 1), leaf("c")], pairs=[written]))

    assert [column.name for column in read_footer(Tail(len(content), content)).columns] == ["c"]


def test_bound_with_more_digits_than_its_decimal_is_none() -> None:
    rows = pa.table({"c": pa.array([Decimal("99.99")], pa.decimal128(4, 2))})
    content = parquet(rows, store_decimal_as_integer=True)
    lying = content.replace((9999).to_bytes(4, "little"), (10_000).to_bytes(4, "little"))

    def bounds(written: bytes) -> tuple[Any, Any]:
        facts = read_footer(Tail(len(written), written)).columns[0].facts
        assert facts is not None
        return facts.lower, facts.upper

    assert bounds(content) == (Decimal("99.99"), Decimal("99.99"))
    assert bounds(lying) == (None, None)


@pytest.mark.parametrize(
    ("converted", "kind"), [(None, "binary"), (UTF8, "string"), (ENUM, None), (JSON, None), (BSON, None)]
)
def test_texts_by_other_names_have_no_type_that_all_readers_filter(
    converted: int | None, kind: str | None
) -> None:
    content = file_of(footer_of([nest("root", 1), leaf("c", physical=BYTE_ARRAY, converted=converted)]))
    (column,) = read_footer(Tail(len(content), content)).columns

    assert (column.type and str(column.type)) == kind
