"""How much work something is, counted and not timed."""

from __future__ import annotations

import sys
from collections.abc import Callable
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
