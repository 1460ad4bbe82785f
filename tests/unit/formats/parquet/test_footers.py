from __future__ import annotations

import gc
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.engine.appends.footers import LeafFacts
from app.fileio.tails import Tail
from app.formats.parquet.footers import read_footer
from app.formats.parquet.not_parquet import NotParquetError
from tests.builders.hostile_footers import (
    BSON,
    BYTE_ARRAY,
    END,
    ENUM,
    JSON,
    UTF8,
    column_of,
    file_of,
    footer_of,
    leaf,
    nest,
    pair,
    row_group,
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


def counted(*chunks: bytes, rows: int = 1, group_rows: int = 1) -> bytes:
    """Return a file with a column of integers, and a row group for each chunk of it."""
    groups = [row_group([chunk], group_rows) for chunk in chunks]
    return file_of(footer_of([nest("root", 1), leaf("c")], groups, rows=rows))


def test_counts_that_fit_each_other_are_taken() -> None:
    content = counted(column_of("c", start=4), column_of("c", start=12, lower=2, upper=5), rows=2)

    footer = read_footer(Tail(len(content), content))

    assert footer.columns[0].facts == LeafFacts(16, 2, 0, 1, 5)
    assert (footer.record_count, footer.split_offsets) == (2, (4, 12))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (counted(column_of("c"), rows=5), "it is said to have 5 rows, and its row groups 1"),
        (counted(rows=5), "it is said to have 5 rows, and its row groups 0"),
        (
            counted(column_of("c"), column_of("c"), rows=-2, group_rows=-1),
            "a row group is said to have -1 rows",
        ),
        (counted(column_of("c", values=2)), "its column c is said to have 2 values, and the file 1 rows"),
        (counted(column_of("c", values=2**63 - 1)), f"its column c is said to have {2**63 - 1} values"),
        (counted(column_of("c", values=-1)), "its column c is said to have -1 values"),
        (counted(column_of("c", size_bytes=10**6)), "its column c is said to take 1000000 bytes"),
        (counted(column_of("c", size_bytes=-8)), "its column c is said to take -8 bytes"),
        (counted(*[column_of("c", size_bytes=2**63 - 1)] * 2, rows=2), f"to take {2**64 - 2} bytes"),
    ],
    ids=lambda each: each if isinstance(each, str) else "file",
)
def test_counts_that_contradict_each_other_are_refused(content: bytes, reason: str) -> None:
    """Nothing could be appended any more to a table with a manifest whose counts together are no long."""
    with pytest.raises(NotParquetError, match=reason):
        read_footer(Tail(len(content), content))


@pytest.mark.parametrize("nulls", [-1, 2, -(2**63), 2**63 - 1])
def test_nulls_that_cannot_be_are_not_known(nulls: int) -> None:
    content = counted(column_of("c", nulls=nulls))

    facts = read_footer(Tail(len(content), content)).columns[0].facts

    assert facts is not None
    assert facts.null_count is None


def test_bounds_that_are_no_range_are_none() -> None:
    content = counted(column_of("c", lower=3, upper=2), column_of("c", lower=1, upper=9), rows=2)

    assert read_footer(Tail(len(content), content)).columns[0].facts == LeafFacts(16, 2, 0, None, None)


@pytest.mark.parametrize("start", [-4, 10**6, 2**63 - 1])
def test_row_groups_that_begin_outside_the_file_are_no_places_to_split_it(start: int) -> None:
    content = counted(column_of("c", start=4), column_of("c", start=start), rows=2)

    assert read_footer(Tail(len(content), content)).split_offsets == ()
