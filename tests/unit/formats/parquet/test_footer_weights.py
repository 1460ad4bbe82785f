from __future__ import annotations

import pytest

from app.formats.parquet.footer_weights import WEIGHT_OF_A_PART, footer_weight
from app.formats.parquet.not_parquet import NotParquetError
from tests.builders.hostile_footers import bare_column, footer_of, leaf, nest, pair, row_group
from tests.builders.parquet_files import parquet_rows

NO_LIMIT = 1 << 40
PARTS = 10_000
ONE = [nest("root", 1), leaf("c")]


def real_footer(columns: int) -> bytes:
    content = parquet_rows(**{f"column_{number}": [1, 2, 3] for number in range(columns)})
    return content[-int.from_bytes(content[-8:-4], "little") - 8 : -8]


@pytest.mark.parametrize("columns", [1, 20, 300])
def test_real_footers_weigh_little_more_than_they_have_bytes(columns: int) -> None:
    footer = real_footer(columns)

    assert len(footer) <= footer_weight(footer, NO_LIMIT) < 2.5 * len(footer)


@pytest.mark.parametrize(
    "footer",
    [
        footer_of(ONE, [row_group([bare_column()] * PARTS)]),
        footer_of(ONE, [row_group([bare_column()])] * PARTS),
        footer_of([nest("root", PARTS), *[leaf("c")] * PARTS]),
        footer_of(ONE, pairs=[pair("k", "v")] * PARTS),
    ],
    ids=["columns of a row group", "row groups", "columns of the schema", "pairs of key and value"],
)
def test_each_part_weighs_something(footer: bytes) -> None:
    assert footer_weight(footer, NO_LIMIT) >= PARTS * WEIGHT_OF_A_PART


def test_columns_weigh_as_much_as_their_paths_are_long() -> None:
    """A reader keeps the whole path of each column: one long name at the top is kept a thousand times."""
    columns = [leaf("c")] * 1_000
    footer = footer_of([nest("root", 1), nest("x" * 20_000, 1_000), *columns])

    assert footer_weight(footer, NO_LIMIT) > 1_000 * 20_000


def test_a_path_ends_where_its_group_ends() -> None:
    footer = footer_of([nest("root", 1_001), nest("x" * 20_000, 1), leaf("c"), *[leaf("c")] * 1_000])

    assert footer_weight(footer, NO_LIMIT) < 1_000 * 1_000


def test_counting_ends_at_the_most() -> None:
    footer = footer_of(ONE, [row_group([bare_column()] * PARTS)])

    assert len(footer) < footer_weight(footer, 100_000) < 200_000


@pytest.mark.parametrize(
    ("footer", "reason"),
    [
        (bytes([0x19, 0xFC]) + b"\xff" * 20_000, "a number in it is too long"),
        (b"\x19" * 20_000, "nested too deeply"),
        (b"\x39\xf3\xff\xff\xff\xff\x7f" + b"x" * 20_000, "ends too early"),
        (b"\x1c" * 20_000, "nested too deeply"),
        (b"\x18\xff\xff\xff\xff\x7f" + b"x" * 20_000, "ends too early"),
        (b"\x1d" * 20_000, "a value of type 13"),
        (b"\x28" + b"\x01" * 20_000, "."),
        (bytes([0x29, 0x15]) + b"\x00" * 20_000, "its schema is no list of columns"),
    ],
)
def test_what_the_protocol_does_not_allow_is_refused(footer: bytes, reason: str) -> None:
    with pytest.raises(NotParquetError, match=reason):
        footer_weight(footer, NO_LIMIT)
