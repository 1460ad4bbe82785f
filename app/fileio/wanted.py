"""Whether an answer is still wanted: long work asks between two files."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

ask_if_wanted: ContextVar[Callable[[], None] | None] = ContextVar("icetower_ask_if_wanted", default=None)
"""Raises `GivenUp` when nothing waits for the answer any more; None where something always does."""


def check_wanted() -> None:
    """Raise `GivenUp` if the answer of the work at hand is not wanted any more."""
    ask = ask_if_wanted.get()
    if ask is not None:
        ask()
