"""Side work: files that are read and written side by side, for stores that take their time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
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
        started = start_in(self._threads, partial(self._run, work))
        if started is None:
            self._free.release()
        return started

    def start(self, work: Callable[[], None]) -> Future[None]:
        """Begin to work; the future says when it is done, or what it raised."""
        return self.start_if_free(work) or _do_here(work)

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        finally:
            self._free.release()


def do_all_in(threads: ThreadPoolExecutor, works: Iterable[Callable[[], None]]) -> None:
    """Do several pieces of work in a pool of threads, and here where none can be started.

    If one fails, those that have not begun are left, and the first error is raised.
    """
    try:
        started = [start_in(threads, work) or _do_here(work) for work in works]
        for each in started:
            each.result()
    except BaseException:
        threads.shutdown(wait=False, cancel_futures=True)
        raise


def _do_here(work: Callable[[], None]) -> Future[None]:
    """Do work in this thread; the future says what it raised, if that was on purpose."""
    done: Future[None] = Future()
    try:
        work()
    except IcetowerError as error:
        done.set_exception(error.with_traceback(None))  # whose frames have the future
    else:
        done.set_result(None)
    return done


def start_in(threads: ThreadPoolExecutor, work: Callable[[], None]) -> Future[None] | None:
    """Begin to work in a pool of threads; return None if no thread can be started.

    The pool puts work aside before it looks for a thread, and would do it whenever one becomes free: not so here.
    """
    done: Future[None] = Future()
    try:
        threads.submit(_do, [(work, done)])
    except RuntimeError:
        return None if done.cancel() else done
    return done


def _do(waiting: list[tuple[Callable[[], None], Future[None]]]) -> None:
    # Taken out: an error leads to this frame and to the pool's, which has what it handed over.
    work, done = waiting.pop()
    try:
        if done.set_running_or_notify_cancel():
            work()
            done.set_result(None)
    except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
        done.set_exception(error)
    finally:
        del work, done
