"""The crew: threads that work for the coroutines of one event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, copy_context
from queue import SimpleQueue
from typing import Any, TypeVar

from app.errors import Unavailable

Result = TypeVar("Result")
_Task = tuple["asyncio.Future[Any]", Context, Callable[[], Any]]


class Crew:
    """Threads that start when all others are busy, and stay until the crew is stopped.

    How many work at one time is for those to bound who give them work: see `Rooms`. Belongs to one event loop.

    Starlette's pool takes 60 us for each piece of work and asyncio's own 20, this one 5 (16 at a time, on one CPU).
    And a thread that a store keeps for ever does not hold up the end of the process, as one of asyncio's pool would.
    """

    def __init__(self) -> None:
        self._tasks = SimpleQueue[_Task | None]()
        self._threads = 0
        self._busy = 0

    async def run(self, work: Callable[[], Result]) -> Result:
        """Return what the work returns, or raise what it raises; it runs in a copy of this context.

        It goes on in its thread if the one who waits for it is cancelled.

        Raises:
            Unavailable: no thread can be started; nothing was begun.
        """
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Result] = loop.create_future()
        if self._busy == self._threads:
            thread = threading.Thread(
                target=self._work, args=(loop,), name=f"crew-{self._threads + 1}", daemon=True
            )
            try:
                thread.start()
            except RuntimeError as error:
                raise Unavailable(f"This was not begun: {error}") from error
            self._threads += 1
        self._busy += 1
        self._tasks.put((done, copy_context(), work))
        try:
            return await done
        finally:
            del done  # an error that it has would lead back to this frame

    def stop(self) -> None:
        """Let each thread end when there is no work left, without waiting for it. Ask for nothing after that."""
        for _ in range(self._threads):
            self._tasks.put(None)

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        while (task := self._tasks.get()) is not None:
            done, context, work = task
            result, error = None, None
            try:
                result = context.run(work)
            except BaseException as raised:  # noqa: BLE001 - raised again where it is waited for
                error = raised
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._end, done, result, error)
            # Kept until the next task, they would keep what they hold.
            del task, done, context, work, result, error

    def _end(self, done: asyncio.Future[Any], result: object, error: BaseException | None) -> None:
        self._busy -= 1
        settle(done, result, error)


def settle(done: asyncio.Future[Any], result: object, error: BaseException | None) -> None:
    """Give what came of work to the one who waits for it, if there still is one."""
    if done.done():  # cancelled
        return
    if error is None:
        done.set_result(result)
    elif isinstance(error, StopIteration):  # no future takes this one
        done.set_exception(RuntimeError("the work ended with StopIteration"))
    else:
        done.set_exception(error)
