"""The gate: how many that wait for a lock hold a connection."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial

import pytest

from app import waits
from app.catalog.context.threads import side_by_side
from app.catalog.context.threads.gates import Gate
from app.catalog.context.threads.side_by_side import SideBySide

pytestmark = pytest.mark.timeout(30)
CONNECTIONS = 10
OF_ONE_TABLE = 3


class Crowd:
    """Work at a gate that goes on until it may end."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self.gate = Gate(threads.submit, CONNECTIONS)
        self.may_end = threading.Event()
        self.begun = threading.Semaphore(0)
        self.names: list[str] = []

    def send(self, name: str, table: str = "t", warehouse: str = "lake") -> Future[None]:
        def work() -> None:
            self.names.append(name)
            self.begun.release()
            assert self.may_end.wait(20)

        return self.gate.start(warehouse, table, work)

    def fill(self) -> list[Future[None]]:
        """Send more for one table than may go."""
        sent = [self.send(str(number)) for number in range(OF_ONE_TABLE + 2)]
        for _ in range(OF_ONE_TABLE):
            assert self.begun.acquire(timeout=10)
        return sent


@pytest.fixture
def crowd() -> Iterator[Crowd]:
    with ThreadPoolExecutor(2 * CONNECTIONS) as threads:
        crowd = Crowd(threads)
        yield crowd
        crowd.may_end.set()


def test_one_table_leaves_room_for_others_and_one_warehouse_too(crowd: Crowd) -> None:
    crowd.fill()
    crowd.send("other table", "u")
    assert crowd.begun.acquire(timeout=10)
    for number in range(CONNECTIONS):
        crowd.send(f"{number} of many", f"t{number}")
    crowd.send("other warehouse", warehouse="pond")
    while "other warehouse" not in crowd.names:
        assert crowd.begun.acquire(timeout=10)

    assert len(crowd.names) <= CONNECTIONS // 2 + 1


def test_those_that_wait_go_when_others_end(crowd: Crowd) -> None:
    sent = crowd.fill()
    crowd.may_end.set()
    for each in sent:
        each.result(10)

    assert sorted(crowd.names) == [str(number) for number in range(len(sent))]


def test_one_that_is_cancelled_is_not_begun_and_holds_up_nothing(crowd: Crowd) -> None:
    sent = crowd.fill()
    assert sent[-2].cancel()
    crowd.may_end.set()
    sent[-1].result(10)

    assert str(len(sent) - 2) not in crowd.names


def test_an_error_is_raised_where_it_is_waited_for_and_gives_the_place_back(crowd: Crowd) -> None:
    def fail() -> None:
        raise KeyError("a")

    for _ in range(2 * CONNECTIONS):
        with pytest.raises(KeyError):
            crowd.gate.start("lake", "t", fail).result(10)


def test_nothing_of_work_that_failed_is_kept(crowd: Crowd) -> None:
    """It may be a large request, and no garbage collection may come for long."""

    class Body:
        pass

    held: list[weakref.ref[Body]] = []

    def fail() -> None:
        body = Body()
        held.append(weakref.ref(body))
        raise KeyError("a")

    def write() -> None:
        for do in (waits.do_in_turn, waits.do_elsewhere, waits.do_meanwhile):
            with suppress(KeyError):
                do(fail)

    gc.disable()
    try:
        with ThreadPoolExecutor(2) as threads:
            start = partial(crowd.gate.start, "lake", "t")
            SideBySide(threads.submit).go([write, write], lambda: None, [start, start])
        # Its threads go on for a moment after they have said that they are done.
        end_s = time.monotonic() + 10
        while any(kept() is not None for kept in held) and time.monotonic() < end_s:
            pass
        assert [kept() for kept in held] == [None] * 6
    finally:
        gc.enable()


def test_who_waits_too_long_for_its_turn_is_not_begun(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_by_side, "LONGEST_WAIT_S", 0.05)
    crowd.fill()
    said: list[str] = []

    def write() -> None:
        try:
            waits.do_in_turn(lambda: said.append("begun"))
        except TimeoutError:
            said.append("late")

    start = partial(crowd.gate.start, "lake", "t")
    with ThreadPoolExecutor(2) as threads:
        SideBySide(threads.submit).go([write, lambda: None], lambda: None, [start, start])

    assert said == ["late"]
