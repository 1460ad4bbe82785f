"""Convoys of requests that come at the same time."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from typing import Any

import pytest

from app import waits
from app.catalog.context.threads.convoys import LONG_S, MOST_TOGETHER, SLOW_S, Convoys, Room
from app.catalog.context.threads.crew import Crew
from app.errors import Unavailable

pytestmark = pytest.mark.timeout(30)
POOL = ThreadPoolExecutor(16)
NAME: ContextVar[str] = ContextVar("name", default="")


@asynccontextmanager
async def room() -> AsyncIterator[None]:
    yield


@asynccontextmanager
async def no_room() -> AsyncIterator[None]:
    if NAME.get() != "has room":
        raise Unavailable("busy")
    yield


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    # The tests that hold a convoy up want the others to wait for it.
    monkeypatch.setattr("app.catalog.context.threads.convoys.LONG_S", 10.0)


async def stand_in_line() -> None:
    """Let all that has been sent begin, as far as it needs no thread."""
    for _ in range(3):
        await asyncio.sleep(0)


def take(seconds: float) -> None:
    """Hold a thread for so long."""
    threading.Event().wait(seconds)


async def goes_with_others(asked: asyncio.Task[Any]) -> bool:
    """Return whether a request waits for the convoy that is on its way; one that goes alone is done soon."""
    done, _ = await asyncio.wait([asked], timeout=0.2)
    return not done


def compute(seconds: float) -> None:
    """Use so much processor time."""
    end_s = time.thread_time() + seconds
    while time.thread_time() < end_s:
        pass


class Requests:
    """Requests to one warehouse, whose first convoy is on its way until the others may go."""

    def __init__(self) -> None:
        self.convoys = Convoys(Crew(), POOL.submit)
        self.may_go = threading.Event()

    def ask(
        self,
        work: Callable[[], Any],
        table: str = "t",
        room: Room = room,
        warehouse: str = "lake",
        has_room: Callable[[], bool] = lambda: True,
    ) -> Coroutine[Any, Any, Any]:
        return self.convoys.run(warehouse, table, room, work, has_room)

    async def fill(self) -> list[asyncio.Task[Any]]:
        """Send the first convoy on its way; it waits for `may_go`."""
        begun = threading.Event()

        def work() -> None:
            begun.set()
            self.may_go.wait(10)

        task = asyncio.create_task(self.ask(work, "first"))
        assert await asyncio.to_thread(begun.wait, 10)
        return [task]


def test_one_alone_starts_at_once_with_the_context_of_who_asks() -> None:
    async def ask() -> tuple[str, bool]:
        NAME.set("asked")
        found: tuple[str, bool] = await Requests().ask(
            lambda: (NAME.get(), threading.current_thread() is threading.main_thread())
        )
        return found

    assert asyncio.run(ask()) == ("asked", False)


def test_those_that_come_meanwhile_go_in_one_thread_each_in_its_context() -> None:
    async def ask() -> list[tuple[str, threading.Thread]]:
        requests = Requests()
        full = await requests.fill()

        async def one(name: str) -> tuple[str, threading.Thread]:
            NAME.set(name)

            def work() -> tuple[str, threading.Thread]:
                waits.do_meanwhile(lambda: None)
                return NAME.get(), threading.current_thread()

            found: tuple[str, threading.Thread] = await requests.ask(work)
            return found

        tasks = [asyncio.create_task(one(f"r{n}")) for n in range(4)]
        await stand_in_line()
        requests.may_go.set()
        return [await task for task in (*tasks, *full)][:4]

    found = asyncio.run(ask())

    assert [name for name, _ in found] == ["r0", "r1", "r2", "r3"]
    assert len({thread for _, thread in found}) == 1


def test_each_has_its_own_error() -> None:
    async def ask() -> list[Any]:
        requests = Requests()
        full = await requests.fill()

        def fail() -> None:
            waits.do_meanwhile(lambda: None)
            raise KeyError("a")

        asked = asyncio.gather(
            requests.ask(fail), requests.ask(lambda: 7), requests.ask(fail), return_exceptions=True
        )
        await stand_in_line()
        requests.may_go.set()
        found = await asked
        await asyncio.gather(*full)
        return [repr(each) for each in found]

    assert asyncio.run(ask()) == ["KeyError('a')", "7", "KeyError('a')"]


def test_who_has_ended_is_answered_before_the_others_have() -> None:
    async def ask() -> bool:
        requests = Requests()
        full = await requests.fill()
        go_on = threading.Event()

        def wait() -> None:
            go_on.wait(10)

        quick = asyncio.create_task(requests.ask(lambda: "quick"))
        slow = [asyncio.create_task(requests.ask(lambda: waits.do_meanwhile(wait))) for _ in range(3)]
        await stand_in_line()
        requests.may_go.set()
        assert await quick == "quick"
        is_early = not any(task.done() for task in slow)
        go_on.set()
        await asyncio.gather(*slow, *full)
        return is_early

    assert asyncio.run(ask())


def test_no_more_than_a_limit_go_together() -> None:
    async def ask() -> int:
        requests = Requests()
        full = await requests.fill()
        at_work, most, lock = [0], [0], threading.Lock()

        def work() -> None:
            with lock:
                at_work[0] += 1
                most[0] = max(most[0], at_work[0])
            waits.let_companions_come()
            with lock:
                at_work[0] -= 1

        asked = asyncio.gather(*(requests.ask(work) for _ in range(5 * MOST_TOGETHER)))
        await stand_in_line()
        requests.may_go.set()
        await asyncio.gather(asked, *full)
        return most[0]

    assert asyncio.run(ask()) == MOST_TOGETHER


def test_warehouses_do_not_wait_for_each_other() -> None:
    async def ask() -> str:
        requests = Requests()
        full = await requests.fill()
        found = await requests.ask(lambda: "other", warehouse="pond")
        requests.may_go.set()
        await asyncio.gather(*full)
        return str(found)

    assert asyncio.run(ask()) == "other"


def test_what_was_slow_goes_alone_until_it_is_quick_again() -> None:
    async def ask() -> list[str]:
        requests = Requests()
        said: list[str] = []
        await requests.ask(lambda: compute(2 * SLOW_S), "slow")
        full = await requests.fill()

        # It does not wait for the convoy that is on its way.
        await requests.ask(lambda: said.append("alone"), "slow")
        in_company = asyncio.create_task(requests.ask(lambda: said.append("in company"), "slow"))
        await stand_in_line()
        said.append("set out")
        requests.may_go.set()
        await asyncio.gather(in_company, *full)
        return said

    assert asyncio.run(ask()) == ["alone", "set out", "in company"]


def test_a_table_of_the_same_name_elsewhere_is_not_slow() -> None:
    async def ask() -> bool:
        requests = Requests()
        await requests.ask(lambda: compute(2 * SLOW_S), "t", warehouse="pond")
        full = await requests.fill()
        asked = asyncio.create_task(requests.ask(lambda: None, "t"))
        has_waited = await goes_with_others(asked)
        requests.may_go.set()
        await asyncio.gather(asked, *full)
        return has_waited

    assert asyncio.run(ask())


def test_what_waits_without_saying_so_goes_alone_as_long_as_it_does() -> None:
    """As one whose files are in a store, and which uses next to no processor time."""

    async def ask() -> list[str]:
        requests = Requests()
        said: list[str] = []
        full = await requests.fill()
        company = [asyncio.create_task(requests.ask(lambda: take(2 * SLOW_S), "slow")) for _ in range(2)]
        await stand_in_line()
        requests.may_go.set()
        await asyncio.gather(*company, *full)
        await requests.ask(lambda: take(2 * SLOW_S), "slow")
        requests.may_go.clear()
        full = await requests.fill()

        asked = asyncio.create_task(requests.ask(lambda: said.append("still alone"), "slow"))
        await asyncio.wait([asked], timeout=5)
        said.append("may go")
        requests.may_go.set()
        await asked
        await asyncio.gather(*full)
        return said

    assert asyncio.run(ask()) == ["still alone", "may go"]


def test_a_wait_for_the_disk_is_not_slow() -> None:
    async def ask() -> bool:
        requests = Requests()
        await requests.ask(lambda: waits.do_meanwhile(lambda: take(2 * SLOW_S)), "t")
        full = await requests.fill()
        asked = asyncio.create_task(requests.ask(lambda: None, "t"))
        has_waited = await goes_with_others(asked)
        requests.may_go.set()
        await asyncio.gather(asked, *full)
        return has_waited

    assert asyncio.run(ask())


def test_without_room_nothing_is_begun_and_the_next_ones_go_on() -> None:
    async def ask() -> tuple[list[str], str]:
        requests, begun = Requests(), list[str]()
        with pytest.raises(Unavailable):
            await requests.ask(lambda: begun.append("a"), room=no_room)
        return begun, await requests.ask(lambda: "next")

    assert asyncio.run(ask()) == ([], "next")


def test_a_table_without_room_holds_up_none_of_its_convoy() -> None:
    async def ask() -> list[str]:
        requests = Requests()
        full = await requests.fill()
        asked = asyncio.gather(
            requests.ask(lambda: "no room", "sick", no_room, has_room=lambda: False),
            *(requests.ask(lambda: "well", f"t{number}") for number in range(3)),
        )
        await stand_in_line()
        requests.may_go.set()
        found: list[str] = await asked
        await asyncio.gather(*full)
        return found

    assert asyncio.run(ask()) == ["no room", "well", "well", "well"]


def test_one_that_is_cancelled_before_it_has_begun_is_not_begun() -> None:
    async def ask() -> list[str]:
        requests, begun = Requests(), list[str]()
        full = await requests.fill()
        asked = asyncio.create_task(requests.ask(lambda: begun.append("a")))
        await stand_in_line()
        asked.cancel()
        with suppress(asyncio.CancelledError):
            await asked
        requests.may_go.set()
        await asyncio.gather(*full)
        await requests.ask(lambda: begun.append("b"))
        return begun

    assert asyncio.run(ask()) == ["b"]


def test_one_that_is_cancelled_goes_on_in_its_thread() -> None:
    async def ask() -> bool:
        requests, begun, ended = Requests(), threading.Event(), threading.Event()

        def work() -> None:
            begun.set()
            requests.may_go.wait(10)
            ended.set()

        asked = asyncio.create_task(requests.ask(work))
        assert await asyncio.to_thread(begun.wait, 10)
        asked.cancel()
        with suppress(asyncio.CancelledError):
            await asked
        requests.may_go.set()
        return await asyncio.to_thread(ended.wait, 10)

    assert asyncio.run(ask())


def test_nothing_of_a_request_is_kept_when_it_is_answered() -> None:
    class Body:
        pass

    async def ask() -> bool:
        requests = Requests()
        full = await requests.fill()
        body = Body()
        kept = weakref.ref(body)

        def fail(held: Body) -> None:
            waits.do_meanwhile(lambda: None)
            raise KeyError(held)

        async def one(held: Body) -> None:
            with suppress(KeyError):
                await requests.ask(lambda: fail(held))

        asked = [asyncio.create_task(one(body)), asyncio.create_task(requests.ask(lambda: None))]
        del body
        await stand_in_line()
        requests.may_go.set()
        await asyncio.gather(*asked, *full)
        del asked
        # It is answered a moment before its thread lets go of it.
        for _ in range(10_000):
            if kept() is None:
                return True
            await asyncio.sleep(0.001)
        return False

    gc.disable()  # which would also let go of what leads back to itself
    try:
        assert asyncio.run(ask())
    finally:
        gc.enable()


def test_a_convoy_that_takes_long_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.catalog.context.threads.convoys.LONG_S", LONG_S)

    async def ask() -> list[str]:
        requests = Requests()
        hung = await requests.fill()
        found = [await requests.ask(lambda: "waited"), await requests.ask(lambda: "came later")]
        requests.may_go.set()
        await asyncio.gather(*hung)
        return [*found, await requests.ask(lambda: "last")]

    assert asyncio.run(ask()) == ["waited", "came later", "last"]
