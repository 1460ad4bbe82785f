"""How well manifests are clustered, beside a count of every pair."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.engine.health.manifest_facts import average_overlap

ranges = st.tuples(st.integers(-5, 5), st.integers(-5, 5)).map(lambda pair: (min(pair), max(pair)))


@given(st.lists(ranges, min_size=1, max_size=20))
def test_average_overlap_equals_a_count_of_every_pair(found: list[tuple[int, int]]) -> None:
    pairs = sum(
        low <= other_high and other_low <= high for low, high in found for other_low, other_high in found
    )

    assert average_overlap(found) == pairs / len(found)
