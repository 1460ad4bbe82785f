"""Side writes: files that are written side by side, for stores that take their time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import BoundedSemaphore

from app.errors import IcetowerError


class SideWrites:
    """A few threads that write; while all of them are busy, who asks writes itself.

    So a store that does not answer holds up its own writers only.
    """

    def __init__(self, most: int) -> None:
        """Allow so many at a time; the threads start when they are needed."""
        self._free = BoundedSemaphore(most)
        self._threads = ThreadPoolExecutor(most, "side-write")

    def start(self, write: Callable[[], None]) -> Future[None]:
        """Begin to write; the future says when it is done, or what it raised."""
        if self._free.acquire(blocking=False):
            return self._threads.submit(self._run, write)
        done: Future[None] = Future()
        try:
            write()
        except IcetowerError as error:
            done.set_exception(error)
        else:
            done.set_result(None)
        return done

    def _run(self, write: Callable[[], None]) -> None:
        try:
            write()
        finally:
            self._free.release()
