"""Side work: files that are read and written side by side, for stores that take their time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from threading import BoundedSemaphore

from app.errors import IcetowerError


class SideWork:
    """A few threads for files; while all of them are busy, who asks works itself.

    So a store that does not answer holds up its own readers and writers only.
    """

    def __init__(self, most: int) -> None:
        """Allow so many at a time; the threads start when they are needed."""
        self._free = BoundedSemaphore(most)
        self._threads = ThreadPoolExecutor(most, "side-work")

    def start_if_free(self, work: Callable[[], None]) -> Future[None] | None:
        """Begin to work if a thread is free, or can be started; else do nothing and return None."""
        if not self._free.acquire(blocking=False):
            return None
        done: Future[None] = Future()
        waiting = [work]
        try:
            self._threads.submit(self._run, waiting, done)
        except RuntimeError:
            # No thread can be started. It stays in the queue of those that there are: who takes it out does it.
            with suppress(IndexError):
                waiting.pop()
                self._free.release()
                return None
        return done

    def start(self, work: Callable[[], None]) -> Future[None]:
        """Begin to work; the future says when it is done, or what it raised."""
        started = self.start_if_free(work)
        if started is not None:
            return started
        done: Future[None] = Future()
        try:
            work()
        except IcetowerError as error:
            done.set_exception(error.with_traceback(None))  # whose frames have the future
        else:
            done.set_result(None)
        return done

    def _run(self, waiting: list[Callable[[], None]], done: Future[None]) -> None:
        try:
            work = waiting.pop()
        except IndexError:
            return
        error: BaseException | None = None
        try:
            work()
        except BaseException as raised:  # noqa: BLE001 - raised again where it is waited for
            error = raised
        self._free.release()
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)
        del work, error, done  # they would lead to each other
