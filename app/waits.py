"""Waits: what has to wait says so here, so that others of its thread can go on meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Protocol


class Companions(Protocol):
    """Those who go side by side in one thread."""

    def do_meanwhile(self, work: Callable[[], None]) -> None:
        """Return once work is done that waits for something; others go on meanwhile. Raises what it raises."""

    def do_elsewhere(self, work: Callable[[], None]) -> None:
        """Do the same for work that may wait for long: nothing else waits for it."""

    def wait_for(self, future: Future[None], timeout_s: float | None) -> None:
        """Return once a future is done; others go on meanwhile. Raises `TimeoutError`."""

    def let_come(self) -> None:
        """Return once all others are as far as this one, or wait for something else, or have ended."""


class _Thread(threading.local):
    companions: Companions | None = None
    waited_s = 0.0


_thread = _Thread()


def set_companions(companions: Companions | None) -> None:
    """Set who goes side by side in this thread from now on."""
    _thread.companions = companions


@contextmanager
def alone() -> Iterator[None]:
    """Hold up those that go side by side with this one, whatever the block waits for."""
    companions = _thread.companions
    _thread.companions = None
    try:
        yield
    finally:
        _thread.companions = companions


def has_companions() -> bool:
    """Return whether others go side by side with this one in its thread."""
    return _thread.companions is not None


def waited_s() -> float:
    """Return for how long this thread has waited, as far as it said so and was alone."""
    return _thread.waited_s


def _wait(work: Callable[[], None]) -> None:
    since_s = time.monotonic()
    try:
        work()
    finally:
        _thread.waited_s += time.monotonic() - since_s


def do_meanwhile(work: Callable[[], None]) -> None:
    """Do work that waits, as for a disk, while others that go side by side with this one go on."""
    if _thread.companions is None:
        _wait(work)
    else:
        _thread.companions.do_meanwhile(work)


def do_elsewhere(work: Callable[[], None]) -> None:
    """Do the same for work that may wait for long, as for a network: nothing else waits for it."""
    if _thread.companions is None:
        _wait(work)
    else:
        _thread.companions.do_elsewhere(work)


def wait_for(future: Future[None], timeout_s: float | None = None) -> None:
    """Wait for a future while others that go side by side with this one go on.

    Raises:
        TimeoutError: it is not done in time.
    """
    try:
        if _thread.companions is None:
            since_s = time.monotonic()
            try:
                future.result(timeout_s)
            finally:
                _thread.waited_s += time.monotonic() - since_s
        else:
            _thread.companions.wait_for(future, timeout_s)
    finally:
        del future  # an error that it has would lead back to this frame


def wait_until_over(future: Future[None]) -> None:
    """Wait for a future, whatever becomes of it, while others go on."""
    with suppress(Exception):
        wait_for(future)


def let_companions_come() -> None:
    """Let those that go side by side with this one come as far.

    What they do next, they can do together.
    """
    if _thread.companions is not None:
        _thread.companions.let_come()
