"""Metrics taken apart column by column, beside each map by itself."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.formats.avro import bound_columns, count_columns, count_sums
from app.formats.avro.metric_maps import BoundMap, CountMap
from app.formats.avro.types import write_long
from tests.builders.live_metrics import metrics_of_maps

IDS = st.sampled_from([1, 2, 3, 70, 2_147_483_546])
COUNTS = st.integers(0, 9) | st.integers(-2, 1 << 40) | st.sampled_from([-(1 << 63), (1 << 63) - 1])
TEXTS = st.binary(max_size=6) | st.binary(min_size=60, max_size=70)


def packed(pairs: list[tuple[int, Any]], blocks: int, *, sized: bool) -> bytes:
    """Return pairs as an Avro array; of several blocks, or with the size of each."""
    content = b""
    step = max(1, -(-len(pairs) // blocks))
    for start in range(0, len(pairs), step):
        some = pairs[start : start + step]
        items = b"".join(write_long(key) + _value(value) for key, value in some)
        content += (
            write_long(-len(some)) + write_long(len(items)) if sized else write_long(len(some))
        ) + items
    return content + b"\0"


def _value(value: int | bytes) -> bytes:
    return write_long(value) if isinstance(value, int) else write_long(len(value)) + value


def maps(values: st.SearchStrategy[Any], kind: Any) -> st.SearchStrategy[list[Any]]:
    """Return maps of few layouts and some odd ones, with nothing before them or a byte."""
    layouts = st.lists(st.lists(IDS, unique=True, max_size=4), min_size=1, max_size=3)
    one = layouts.flatmap(
        lambda known: st.lists(
            st.none() | st.sampled_from(known).flatmap(lambda ids: _map(ids, values, kind)), max_size=12
        )
    )
    return one | st.lists(st.lists(IDS, max_size=4).flatmap(lambda ids: _map(ids, values, kind)), max_size=12)


def _map(ids: list[int], values: st.SearchStrategy[Any], kind: Any) -> st.SearchStrategy[Any]:
    return st.builds(
        lambda found, blocks, sized, start: kind(
            b"\2" * start + packed(list(zip(ids, found, strict=True)), blocks, sized=sized), start
        ),
        st.tuples(*(values for _ in ids)),
        st.sampled_from([1, 1, 1, 2]),
        st.sampled_from([False, False, False, True]),
        st.integers(0, 1),
    )


@given(maps(COUNTS, CountMap))
def test_counts_of_columns_are_those_of_the_maps(found: list[CountMap | None]) -> None:
    plain = [None if counts is None else dict(counts) for counts in found]
    expected = metrics_of_maps([], plain, plain, [], [], [], [])

    assert count_columns(found) == expected.value_counts
    assert count_sums(found) == expected.column_sizes


@given(maps(TEXTS, BoundMap))
def test_bounds_of_columns_are_those_of_the_maps(found: list[BoundMap | None]) -> None:
    plain = [None if bounds is None else dict(bounds) for bounds in found]
    expected = metrics_of_maps([], [], [], [], [], plain, []).lower_bounds

    columns = bound_columns(found)

    assert {field_id: sorted(bounds) for field_id, bounds in columns.items()} == {
        field_id: sorted(bounds) for field_id, bounds in expected.items()
    }
