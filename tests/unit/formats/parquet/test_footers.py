from __future__ import annotations

import gc

import pyarrow.parquet as pq

from app.fileio.tails import Tail
from app.formats.parquet.footers import read_footer
from tests.builders.hostile_footers import file_of, footer_of, leaf, nest, pair
from tests.builders.parquet_files import parquet_rows


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


def test_the_schema_that_arrow_keeps_for_itself_is_not_read() -> None:
    """A small one can be made of so many references that it fills the memory."""
    footer = footer_of([nest("root", 1), leaf("c")], pairs=[pair("ARROW:schema", "no schema at all")])
    content = file_of(footer)

    assert [column.name for column in read_footer(Tail(len(content), content)).columns] == ["c"]
