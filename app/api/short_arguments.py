"""Answers that are kept by what clients sent, as long as that is short."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Final, TypeVar

Result = TypeVar("Result")

LONGEST_KEPT: Final = 256
"""All arguments together: longer ones are rare, and thousands of them would fill the memory for good."""


def kept_if_short(maxsize: int) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Keep the last results of a function whose arguments are text or bytes."""

    def decorate(function: Callable[..., Result]) -> Callable[..., Result]:
        kept = lru_cache(maxsize)(function)

        @wraps(function)
        def call(*arguments: str | bytes) -> Result:
            return kept(*arguments) if sum(map(len, arguments)) <= LONGEST_KEPT else function(*arguments)

        return call

    return decorate
