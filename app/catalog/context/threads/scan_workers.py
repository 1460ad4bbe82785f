"""Threads that plan scans in the background: few work at once, and all can be stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from app.errors import Unavailable
from app.shares import Shares

AT_WORK: Final = 4
"""Of these one warehouse has two; the others are left for the next ones, see `Shares`."""
AT_MOST: Final = 64
"""Those that wait are counted too, and shared in the same way."""
_LOOK_S: Final = 0.25
_LOOKS_A_SIGN: Final = 40
"""How many times a waiting plan looks whether the server stops for each sign of life that it gives."""


class ScanWorkers:
    """Runs plans of one process. A plan that waits is kept alive like one that is being made."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._at_work = Shares(AT_WORK)
        self._all = Shares(AT_MOST)
        self._threads: set[threading.Thread] = set()
        self._stopping = threading.Event()

    def start(self, warehouse: str, work: Callable[[], None], keep_alive: Callable[[], bool]) -> None:
        """Run `work` when its turn comes; it asks `is_stopping` every now and then.

        Args:
            warehouse: whose plan it is: a slow one keeps the others from nothing.
            work: makes the plan.
            keep_alive: called while it waits; False gives it up.

        Raises:
            Unavailable: too many are waiting, or the server is about to stop.
        """

        def run() -> None:
            try:
                if self._has_turn(warehouse, keep_alive):
                    try:
                        work()
                    finally:
                        with self._lock:
                            self._at_work.give_back(warehouse)
                            self._changed.notify_all()
            finally:
                with self._lock:
                    self._all.give_back(warehouse)
                    self._threads.discard(threading.current_thread())

        with self._lock:
            if not self._all.has_room(warehouse) or self._stopping.is_set():
                raise Unavailable("Too many scans are being planned: send the request again a little later")
            thread = threading.Thread(target=run, name="scan planning", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                raise Unavailable(f"No scan can be planned in the background now: {error}") from error
            self._all.take(warehouse)
            self._threads.add(thread)

    def _has_turn(self, warehouse: str, keep_alive: Callable[[], bool]) -> bool:
        """Wait for a turn and take it; False if the plan is not wanted any more."""
        looks = 0
        while not self._stopping.is_set():
            with self._lock:
                if self._at_work.has_room(warehouse):
                    self._at_work.take(warehouse)
                    return True
                self._changed.wait(_LOOK_S)
            looks += 1
            if looks % _LOOKS_A_SIGN == 0 and not keep_alive():
                return False
        return False

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
