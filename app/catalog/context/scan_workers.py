"""Threads that plan scans in the background: few work at once, and all can be stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from app.errors import Unavailable

AT_WORK: Final = 2
AT_MOST: Final = 32
_LOOK_S: Final = 0.25
_LOOKS_A_SIGN: Final = 40
"""How many times a waiting plan looks whether the server stops for each sign of life that it gives."""


class ScanWorkers:
    """Runs plans of one process. A plan that waits is kept alive like one that is being made."""

    def __init__(self) -> None:
        self._turn = threading.Semaphore(AT_WORK)
        self._lock = threading.Lock()
        self._threads: set[threading.Thread] = set()
        self._stopping = threading.Event()

    def start(self, work: Callable[[], None], keep_alive: Callable[[], bool]) -> None:
        """Run `work` when its turn comes; it asks `is_stopping` every now and then.

        Args:
            work: makes the plan.
            keep_alive: called while it waits; False gives it up.

        Raises:
            Unavailable: too many are waiting, or the server is about to stop.
        """

        def run() -> None:
            try:
                looks = 0
                while not self._turn.acquire(timeout=_LOOK_S):
                    looks += 1
                    is_wanted = looks % _LOOKS_A_SIGN or keep_alive()
                    if self._stopping.is_set() or not is_wanted:
                        return
                try:
                    work()
                finally:
                    self._turn.release()
            finally:
                with self._lock:
                    self._threads.discard(threading.current_thread())

        with self._lock:
            if len(self._threads) >= AT_MOST or self._stopping.is_set():
                raise Unavailable("Too many scans are being planned: send the request again a little later")
            thread = threading.Thread(target=run, name="scan planning", daemon=True)
            self._threads.add(thread)
            thread.start()

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    def stop(self, timeout_s: float | None = None) -> None:
        """Let no new plan begin, and wait for those at work to notice."""
        self._stopping.set()
        with self._lock:
            threads = list(self._threads)
        for thread in threads:
            thread.join(timeout_s)
