"""How much work something is, counted and not timed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import FrameType


def calls_in(work: Callable[[], object]) -> int:
    """Return how many functions are called, and generators continued, until some work is done."""
    count = 0

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


class Chosen(int):
    """A number that was chosen so that sets and dictionaries take it for each of the others first."""

    comparisons = 0

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        Chosen.comparisons += 1
        return int.__eq__(self, other)


def comparisons_of(numbers: Iterable[int], work: Callable[[tuple[int, ...]], object]) -> int:
    """Return how often such numbers are compared with others until some work with them is done."""
    chosen = tuple(map(Chosen, numbers))
    Chosen.comparisons = 0
    work(chosen)
    return Chosen.comparisons
