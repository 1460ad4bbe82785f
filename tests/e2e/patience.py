"""Waiting for what happens in the background, soon."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

_LONGEST_SECONDS = 60


def wait_until(claim: Callable[[], bool]) -> None:
    """Return as soon as a claim holds; fail if it does not within a minute."""
    pause = threading.Event()
    deadline = time.monotonic() + _LONGEST_SECONDS
    while not claim() and time.monotonic() < deadline:
        pause.wait(0.05)
    assert claim()
