"""Pieces of work that go side by side in one thread."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from types import SimpleNamespace

import pytest

from app import waits
from app.catalog.context.threads import side_by_side
from app.catalog.context.threads.side_by_side import HANGS_S, WAITS_AT_ONCE, SideBySide
from app.lines import Lines

pytestmark = pytest.mark.timeout(30)
POOL = ThreadPoolExecutor(8)


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    # A busy machine may need longer than that to wake up a thread.
    monkeypatch.setattr("app.catalog.context.threads.side_by_side.HANGS_S", 10.0)


def take(seconds: float) -> None:
    """Hold a thread for so long."""
    threading.Event().wait(seconds)


def go(*works: Callable[[], None]) -> list[float]:
    return SideBySide(POOL.submit).go(works, lambda: None)


def test_while_one_waits_the_next_goes_on_in_the_same_thread() -> None:
    said: list[str] = []
    threads = set()

    def work(name: str) -> None:
        said.append(f"{name} begins")
        waits.do_meanwhile(lambda: take(0.01))
        said.append(f"{name} ends")
        threads.add(threading.current_thread())

    go(lambda: work("a"), lambda: work("b"))

    assert said == ["a begins", "b begins", "a ends", "b ends"]
    assert threads == {threading.current_thread()}


def test_those_who_wait_for_the_disk_do_so_at_the_same_time() -> None:
    together = threading.Barrier(WAITS_AT_ONCE)

    def wait() -> None:
        together.wait(10)

    go(*[lambda: waits.do_meanwhile(wait)] * WAITS_AT_ONCE)

    assert not together.broken


def test_more_than_may_wait_at_once_are_all_waited_for() -> None:
    done: list[int] = []
    works = [
        (lambda number=number: waits.do_meanwhile(lambda: done.append(number)))
        for number in range(3 * WAITS_AT_ONCE + 1)
    ]

    go(*works)

    assert sorted(done) == list(range(3 * WAITS_AT_ONCE + 1))


@pytest.mark.parametrize("do", [waits.do_meanwhile, waits.do_elsewhere])
def test_what_a_wait_raises_is_raised_where_it_was_asked_for(
    do: Callable[[Callable[[], None]], None],
) -> None:
    seen: list[str] = []

    def fail() -> None:
        raise OSError("full")

    def work() -> None:
        try:
            do(fail)
        except OSError as error:
            seen.append(str(error))

    go(work, lambda: do(lambda: None))

    assert seen == ["full"]


def test_who_lets_others_come_goes_on_when_they_are_as_far_or_have_ended() -> None:
    said: list[str] = []

    def first() -> None:
        waits.let_companions_come()
        said.append("first")

    def second() -> None:
        waits.do_meanwhile(lambda: said.append("disk"))
        waits.let_companions_come()
        said.append("second")

    go(first, second, lambda: said.append("third"))

    assert said == ["third", "disk", "first", "second"]


def test_one_that_waits_again_and_again_does_not_keep_those_who_have_come() -> None:
    said: list[str] = []

    def restless() -> None:
        for _ in range(50):
            waits.do_meanwhile(lambda: None)
        said.append("restless")

    def come() -> None:
        waits.let_companions_come()
        said.append("come")

    go(restless, come)

    assert said == ["come", "restless"]


def test_one_may_wait_for_what_another_one_does_later() -> None:
    future: Future[None] = Future()
    said: list[str] = []

    def waiting() -> None:
        waits.wait_for(future, 10)
        said.append("waited")

    def working() -> None:
        waits.do_meanwhile(lambda: None)
        said.append("worked")
        future.set_result(None)

    go(waiting, working)

    assert said == ["worked", "waited"]


def test_a_wait_for_another_thread_ends_with_it_or_in_time() -> None:
    future: Future[None] = Future()
    said: list[str] = []

    def late() -> None:
        with pytest.raises(TimeoutError):
            waits.wait_for(Future(), 0.02)
        said.append("late")
        another.start()

    def patient() -> None:
        waits.wait_for(future)
        said.append("patient")

    another = threading.Thread(target=future.set_result, args=[None])
    go(patient, late)
    another.join()

    assert said == ["late", "patient"]


def test_nothing_waits_for_what_is_done_elsewhere_but_the_one_who_asked() -> None:
    said: list[str] = []
    may_end = threading.Event()

    def wait() -> None:
        may_end.wait(10)

    def slow() -> None:
        waits.do_elsewhere(wait)
        said.append("slow")

    def quick() -> None:
        for _ in range(3):
            waits.do_meanwhile(lambda: None)
            waits.do_elsewhere(lambda: None)
        said.append("quick")
        may_end.set()

    go(slow, quick)

    assert said == ["quick", "slow"]


def test_it_says_for_how_long_each_held_the_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 0.0

    def take_a_minute() -> None:
        nonlocal now_s
        now_s += 60

    monkeypatch.setattr(side_by_side, "time", SimpleNamespace(monotonic=lambda: now_s))

    held_s = go(lambda: waits.do_meanwhile(take_a_minute), take_a_minute)

    assert held_s[0] < 60 <= held_s[1]


def test_outside_all_is_done_at_once() -> None:
    future: Future[None] = Future()
    done: list[int] = []

    go(lambda: None)
    waits.do_meanwhile(lambda: done.append(1))
    waits.do_elsewhere(lambda: done.append(2))
    waits.let_companions_come()
    with pytest.raises(TimeoutError):
        waits.wait_for(future, 0)
    future.set_result(None)
    waits.wait_for(future)

    assert done == [1, 2]


def test_a_note_is_given_while_others_go_on() -> None:
    said: list[str] = []

    def slow() -> None:
        waits.do_meanwhile(lambda: None)
        said.append("slow")

    SideBySide(POOL.submit).go([lambda: said.append("quick"), slow], lambda: said.append("note"))

    assert said[:2] == ["quick", "note"]


def test_one_whose_disk_hangs_holds_up_none_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.catalog.context.threads.side_by_side.HANGS_S", HANGS_S)
    said: list[str] = []
    may_go = threading.Event()

    def hang() -> None:
        waits.do_meanwhile(lambda: said.append("went on" if may_go.wait(20) else "hung"))
        said.append("after it")

    def write(name: str) -> None:
        for _ in range(3):
            waits.do_meanwhile(lambda: None)
            waits.let_companions_come()
        said.append(name)
        if len(said) == 2 * WAITS_AT_ONCE:
            may_go.set()

    go(hang, *(partial(write, str(number)) for number in range(2 * WAITS_AT_ONCE)))

    assert sorted(said[:-2]) == sorted(str(number) for number in range(2 * WAITS_AT_ONCE))
    assert said[-2:] == ["went on", "after it"]


def test_an_error_after_a_long_wait_for_the_disk_is_raised_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.catalog.context.threads.side_by_side.HANGS_S", 0.0)

    def fail() -> None:
        raise KeyError("a")

    def write() -> None:
        with pytest.raises(KeyError):
            waits.do_meanwhile(fail)
        said.append("raised")

    said: list[str] = []
    go(write, write)

    assert said == ["raised"] * 2


def test_nothing_of_work_that_failed_is_kept() -> None:
    """It may be a large request, and no garbage collection may come for long."""

    class Body:
        pass

    held: list[weakref.ref[Body]] = []

    def fail() -> None:
        body = Body()
        held.append(weakref.ref(body))
        raise KeyError("a")

    def write() -> None:
        for do in (waits.do_elsewhere, waits.do_meanwhile):
            with suppress(KeyError):
                do(fail)

    gc.disable()
    try:
        with ThreadPoolExecutor(2) as threads:
            SideBySide(threads.submit).go([write, write], lambda: None)
        # Its threads go on for a moment after they have said that they are done.
        end_s = time.monotonic() + 10
        while any(kept() is not None for kept in held) and time.monotonic() < end_s:
            pass
        assert [kept() for kept in held] == [None] * 4
    finally:
        gc.enable()


def test_those_for_whom_others_wait_come_as_far_as_these_before_they_go_on() -> None:
    """The first one of a line goes on before the others of it: what it does next is to be done with them again."""
    lines = Lines[str](8, 10)
    groups: list[list[str]] = []

    def work(group: list[str]) -> None:
        groups.append(list(group))
        waits.do_elsewhere(lambda: take(0.01))

    def look_twice(name: str) -> None:
        assert lines.join_companions(name, work)
        assert lines.join_companions(name, work)

    with ThreadPoolExecutor(4) as threads:
        SideBySide(threads.submit).go([partial(look_twice, name) for name in "abcd"], lambda: None)

    assert [sorted(group) for group in groups] == [list("abcd"), list("abcd")]
