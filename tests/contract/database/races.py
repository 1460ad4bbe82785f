"""Many threads that do something at the same moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from threading import Barrier
from typing import Any


def run_together(deeds: Sequence[Callable[[], Any]]) -> list[Any]:
    """Start all deeds at once, each in a thread, and return what they returned or raised, in their order."""
    barrier = Barrier(len(deeds))

    def run(deed: Callable[[], Any]) -> Any:
        barrier.wait()
        return deed()

    with ThreadPoolExecutor(len(deeds)) as threads:
        futures = [threads.submit(run, deed) for deed in deeds]
        return [future.exception() or future.result() for future in futures]


def kinds(outcomes: Sequence[Any]) -> Counter[str]:
    """Count outcomes: members of enums by their name, all others by their class."""
    return Counter(
        outcome.name if isinstance(outcome, Enum) else type(outcome).__name__ for outcome in outcomes
    )
