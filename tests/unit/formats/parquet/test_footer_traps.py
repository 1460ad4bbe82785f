"""Footers on which Arrow ends the process: each of these tests ended it."""

from __future__ import annotations

from contextlib import suppress

import pytest

from app.fileio.tails import Tail
from app.formats.parquet.footer_traps import footer_claims
from app.formats.parquet.footers import footer_bytes, read_footer
from app.formats.parquet.not_parquet import NotParquetError
from tests.builders.parquet_files import parquet_rows

CONTENT = parquet_rows(id=[1, 2], s=["a", "b"])


def test_footers_with_any_broken_byte_are_read_or_refused() -> None:
    size_bytes = footer_bytes(Tail(len(CONTENT), CONTENT))
    for place in range(len(CONTENT) - size_bytes, len(CONTENT) - 8):
        for byte in {0, 1, 0x7F, 0xFF, CONTENT[place] ^ 1, CONTENT[place] ^ 16}:
            broken = CONTENT[:place] + bytes([byte]) + CONTENT[place + 1 :]
            with suppress(NotParquetError):
                read_footer(Tail(len(broken), broken))


def test_bounds_that_are_no_values_of_the_column_are_left_out() -> None:
    # The last bound of `id` becomes shorter by a byte, which is the head of a field then that is true.
    bound = b"\x18\x08" + (1).to_bytes(8, "little")
    before, _, after = CONTENT.rpartition(bound)
    broken = before + b"\x18\x07" + bound[2:9] + b"\x11" + after

    footer = read_footer(Tail(len(broken), broken))

    assert [column.facts is not None and column.facts.upper for column in footer.columns] == [None, "b"]
    assert footer.record_count == 2


@pytest.mark.parametrize(
    "flaw",
    [
        pytest.param(b"\x49\x15\x00", id="row groups that are numbers"),
        pytest.param(b"\x49\x0c\x09\x08\x0c", id="row groups twice"),
    ],
)
def test_footers_that_two_readers_take_differently_are_refused(flaw: bytes) -> None:
    with pytest.raises(NotParquetError):
        footer_claims(flaw + b"\x00")
