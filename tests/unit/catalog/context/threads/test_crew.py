"""The crew of threads that work for coroutines."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import weakref
from collections.abc import Callable
from contextvars import ContextVar

import pytest

from app.catalog.context.threads.crew import Crew
from app.errors import Unavailable

NAME: ContextVar[str] = ContextVar("name", default="")


def test_work_is_done_in_a_thread_with_the_context_of_who_asks() -> None:
    async def ask() -> tuple[str, bool]:
        NAME.set("asked")
        return await Crew().run(lambda: (NAME.get(), threading.current_thread() is threading.main_thread()))

    assert asyncio.run(ask()) == ("asked", False)


@pytest.mark.parametrize(("raised", "seen"), [(KeyError("a"), KeyError), (StopIteration(), RuntimeError)])
def test_an_error_reaches_who_asks(raised: Exception, seen: type[Exception]) -> None:
    def work() -> None:
        raise raised

    with pytest.raises(seen):
        asyncio.run(Crew().run(work))


def test_where_no_thread_can_be_started_nothing_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def ask() -> str:
        crew = Crew()
        with monkeypatch.context() as full:
            full.setattr(threading.Thread, "start", start)
            with pytest.raises(Unavailable, match="can't start new thread"):
                await crew.run(lambda: "begun")
        return await crew.run(lambda: "later")

    assert asyncio.run(ask()) == "later"


def test_as_many_threads_start_as_are_busy_at_one_time() -> None:
    async def ask() -> list[set[str]]:
        crew, together = Crew(), threading.Barrier(3)

        def work(wait: Callable[[], object]) -> str:
            wait()
            return threading.current_thread().name

        first = await asyncio.gather(*(crew.run(lambda: work(together.wait)) for _ in range(3)))
        later = [await crew.run(lambda: work(lambda: None)) for _ in range(9)]
        return [set(first), set(later)]

    first, later = asyncio.run(ask())
    assert len(first) == 3
    assert later <= first


def test_work_goes_on_if_who_asked_is_cancelled_and_the_thread_is_used_again() -> None:
    async def ask() -> tuple[bool, str]:
        crew, begun, may_end, ended = (Crew(), *(threading.Event() for _ in range(3)))

        def work() -> None:
            begun.set()
            may_end.wait(30)
            ended.set()

        asked = asyncio.create_task(crew.run(work))
        await asyncio.to_thread(begun.wait, 30)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        may_end.set()
        was_ended = await asyncio.to_thread(ended.wait, 30)
        return was_ended, await crew.run(lambda: threading.current_thread().name)

    was_ended, name = asyncio.run(ask())
    assert was_ended
    assert name in {"crew-1", "crew-2"}  # the second one if the end of the first was not heard of yet


def test_an_error_is_not_kept_by_the_thread_that_met_it() -> None:
    class LargeError(Exception):
        """Something that must not stay."""

    gone = threading.Event()

    def work() -> None:
        error = LargeError()
        weak.append(weakref.ref(error, lambda _: gone.set()))
        try:
            raise error
        finally:
            del error

    async def ask() -> None:
        with contextlib.suppress(LargeError):
            await Crew().run(work)

    weak: list[weakref.ref[LargeError]] = []
    asyncio.run(ask())
    assert gone.wait(10)


def test_threads_end_when_the_crew_is_stopped_and_those_at_work_after_it() -> None:
    may_end, threads = threading.Event(), list[threading.Thread]()

    def work(wait_s: float) -> bool:
        threads.append(threading.current_thread())
        return may_end.wait(wait_s)

    async def ask() -> bool:
        crew = Crew()
        at_work = asyncio.ensure_future(crew.run(lambda: work(30)))
        await crew.run(lambda: work(0))
        crew.stop()
        may_end.set()
        return await at_work

    assert asyncio.run(ask())
    for thread in threads:
        thread.join(30)
    assert [thread.is_alive() for thread in threads] == [False, False]
