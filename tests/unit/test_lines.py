from __future__ import annotations

import asyncio
import threading
from collections.abc import Hashable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager

import pytest

from app.lines import Lines, Turn, line_of_holders


class Held:
    """Work that stops at its first call until it is let go."""

    def __init__(self) -> None:
        self.begun, self.let_go = threading.Event(), threading.Event()
        self.groups: list[list[int]] = []

    def __call__(self, items: list[int]) -> None:
        self.groups.append(items)
        self.begun.set()
        assert self.let_go.wait(10)


def waiting(lines: Lines[int], key: Hashable) -> int:
    return len(lines._waiting[key])


def comes(lines: Lines[int], key: Hashable, count: int) -> None:
    while waiting(lines, key) < count:
        pass


def test_items_that_come_meanwhile_go_together_in_their_order() -> None:
    lines, work = Lines[int](most=3, longest_wait_s=10), Held()
    with ThreadPoolExecutor(6) as threads:
        joined = [threads.submit(lines.join, "t", 0, work)]
        assert work.begun.wait(10)
        for number in range(1, 6):
            joined.append(threads.submit(lines.join, "t", number, work))
            comes(lines, "t", number)
        work.let_go.set()

        assert [each.result(10) for each in joined] == [True] * 6
    assert work.groups == [[0], [1, 2, 3], [4, 5]]
    assert lines._waiting == {}


def test_held_lines_stand_still_and_nobody_works_on_those_who_hold_them() -> None:
    lines, work = Lines[int](most=9, longest_wait_s=10), Held()
    is_held, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        with lines.hold(["t", "u"], 10):
            is_held.set()
            assert let_go.wait(10)

    with ThreadPoolExecutor(6) as threads:
        joined = [threads.submit(lines.join, "t", 0, work)]
        assert work.begun.wait(10)
        joined.append(threads.submit(lines.join, "t", 1, work))
        comes(lines, "t", 1)
        holding = threads.submit(hold)
        comes(lines, "t", 2)
        joined.append(threads.submit(lines.join, "t", 2, work))
        comes(lines, "t", 3)
        work.let_go.set()

        assert is_held.wait(10)
        joined.append(threads.submit(lines.join, "u", 3, work))
        comes(lines, "u", 1)
        assert [each.result(10) for each in joined[:2]] == [True, True]
        assert work.groups == [[0], [1]]
        let_go.set()
        holding.result(10)
        assert [each.result(10) for each in joined] == [True] * 4
    assert sorted(work.groups[2:]) == [[2], [3]]
    assert lines._waiting == {}


def test_those_that_hold_lines_come_one_after_the_other_in_whatever_order_they_name_them() -> None:
    lines, came = Lines[int](most=3, longest_wait_s=10), list[int]()
    together = threading.Lock()

    def hold(number: int) -> None:
        with lines.hold(["t", "u"] if number % 2 else ["u", "t"], 60):
            assert together.acquire(blocking=False)
            came.append(number)
            together.release()

    with ThreadPoolExecutor(6) as threads:
        with lines.hold(["t"], 10):
            holding = []
            for number in range(6):
                holding.append(threads.submit(hold, number))
                comes(lines, line_of_holders("t"), number + 1)
            assert came == []
        for each in holding:
            each.result(60)

    assert came == [0, 1, 2, 3, 4, 5]
    assert lines._waiting == {}


def test_item_comes_between_two_of_many_that_hold_its_line() -> None:
    lines, came = Lines[int](most=3, longest_wait_s=10), list[str]()

    def hold(name: str) -> None:
        with lines.hold(["t", "u"], 60):
            if name == "first":
                joined.append(threads.submit(lines.join, "t", 0, lambda _items: came.append("item")))
                comes(lines, "t", 1)
            came.append(name)

    with ThreadPoolExecutor(6) as threads:
        joined, holding = list[Future[bool]](), list[Future[None]]()
        with lines.hold(["t"], 10):
            for number, name in enumerate(("first", "second", "third"), 1):
                holding.append(threads.submit(hold, name))
                comes(lines, line_of_holders("t"), number)
        for each in holding:
            each.result(60)
        assert joined[0].result(60)

    assert came == ["first", "item", "second", "third"]
    assert lines._waiting == {}


def test_who_holds_a_line_and_waits_in_vain_for_another_one_lets_it_go() -> None:
    lines = Lines[int](most=3, longest_wait_s=10)
    turn = lines.enter("u", 0)
    with lines.hold(["t", "u", "v"], 0.01):
        assert lines.is_busy("t")
        assert not lines.is_busy("v")
    assert not lines.is_busy("t")
    lines.leave(turn)
    assert lines._waiting == {}


def test_who_waits_in_vain_for_others_that_hold_lines_holds_none() -> None:
    lines = Lines[int](most=3, longest_wait_s=10)
    with lines.hold(["u"], 10), lines.hold(["t", "u"], 0.01):
        assert not lines.is_busy("t")
    assert lines._waiting == {}


def test_who_waits_in_vain_to_hold_lines_goes_on_without() -> None:
    lines, work = Lines[int](most=3, longest_wait_s=10), Held()
    with ThreadPoolExecutor(1) as threads:
        joined = threads.submit(lines.join, "t", 0, work)
        assert work.begun.wait(10)
        with lines.hold(["t", "u"], 0.01):
            assert waiting(lines, "t") == 0
            assert not lines.is_busy("u")
        work.let_go.set()
        assert joined.result(10)
    assert lines._waiting == {}


def test_lines_do_not_wait_for_each_other() -> None:
    lines, work = Lines[int](most=3, longest_wait_s=10), Held()
    with ThreadPoolExecutor(1) as threads:
        held = threads.submit(lines.join, "t", 0, work)
        assert work.begun.wait(10)

        assert lines.join("u", 1, lambda _items: None)
        assert not held.done()
        work.let_go.set()


def test_item_whose_turn_does_not_come_is_never_worked_on() -> None:
    lines, work = Lines[int](most=3, longest_wait_s=0.01), Held()
    with ThreadPoolExecutor(1) as threads:
        held = threads.submit(lines.join, "t", 0, work)
        assert work.begun.wait(10)

        assert not lines.join("t", 1, work)
        work.let_go.set()
        assert held.result(10)
    assert work.groups == [[0]]


def test_error_of_the_work_reaches_all_and_the_next_go_on() -> None:
    lines, work = Lines[int](most=2, longest_wait_s=10), Held()

    def fail(items: list[int]) -> None:
        work(items)
        if 0 not in items:
            raise RuntimeError(f"cannot do {items}")

    with ThreadPoolExecutor(4) as threads:
        joined = [threads.submit(lines.join, "t", 0, fail)]
        assert work.begun.wait(10)
        for number in range(1, 4):
            joined.append(threads.submit(lines.join, "t", number, fail if number < 3 else work))
            comes(lines, "t", number)
        work.let_go.set()

        assert joined[0].result(10)
        for each in joined[1:3]:
            with pytest.raises(RuntimeError, match=r"cannot do \[1, 2\]"):
                each.result(10)
        assert joined[3].result(10)


def test_those_that_come_before_the_work_begins_go_along() -> None:
    lines, begun, groups = Lines[int](most=3, longest_wait_s=10), list[str](), list[list[int]]()
    with ThreadPoolExecutor(1) as threads:
        first = lines.enter("t", 0)

        @contextmanager
        def begin() -> Iterator[None]:
            begun.append("begun")
            later.append(threads.submit(lines.join, "t", 1, groups.append))
            comes(lines, "t", 1)
            yield
            begun.append("ended")

        later: list[Future[bool]] = []
        lines.work(first, groups.append, begin)
        assert later[0].result(10)

    assert groups == [[0, 1]]
    assert begun == ["begun", "ended"]


def test_line_goes_on_though_the_first_one_could_not_begin() -> None:
    lines, groups = Lines[int](most=3, longest_wait_s=10), list[list[int]]()

    def begin() -> AbstractContextManager[None]:
        raise OSError("no lock")

    first, second = lines.enter("t", 0), lines.enter("t", 1)
    with pytest.raises(OSError, match="no lock"):
        lines.work(first, groups.append, begin)
    assert lines.wait(second)
    lines.work(second, groups.append)

    assert groups == [[1]]
    assert not lines.is_busy("t")


def test_place_that_leaves_is_never_worked_on() -> None:
    lines, work = Lines[int](most=3, longest_wait_s=10), Held()
    first, second, third = (lines.enter("t", number) for number in range(3))
    work.let_go.set()

    lines.leave(second)
    lines.work(first, work)
    lines.work(third, work)
    assert work.groups == [[0, 2]]


def test_next_one_leads_when_the_first_leaves() -> None:
    lines, work = Lines[int](most=3, longest_wait_s=10), Held()
    first, second = lines.enter("t", 0), lines.enter("t", 1)
    work.let_go.set()

    lines.leave(first)

    assert second.leads
    assert lines.wait(second)
    lines.work(second, work)
    assert work.groups == [[1]]
    assert lines._waiting == {}


def test_coroutines_and_threads_stand_in_one_line() -> None:
    lines, work = Lines[int](most=3, longest_wait_s=10), Held()
    first = lines.enter("t", 0)
    places = [lines.enter("t", number) for number in (1, 2)]

    async def wait(place: Turn[int]) -> bool:
        return await lines.wait_here(place)

    with ThreadPoolExecutor(2) as threads:
        waiting_here = threads.submit(asyncio.run, wait(places[0]))
        waiting_there = threads.submit(lines.wait, places[1])
        work.let_go.set()
        lines.work(first, work)

        assert waiting_here.result(10)
        assert waiting_there.result(10)
    assert [number for group in work.groups for number in group] == [0, 1, 2]


def test_coroutine_whose_turn_does_not_come_leaves() -> None:
    lines = Lines[int](most=3, longest_wait_s=0.01)
    first, second = lines.enter("t", 0), lines.enter("t", 1)

    assert not asyncio.run(lines.wait_here(second))
    work = Held()
    work.let_go.set()
    lines.work(first, work)
    assert work.groups == [[0]]


def test_turn_that_leaves_while_it_works_calls_the_next_one_once() -> None:
    lines, work = Lines[int](most=1, longest_wait_s=10), Held()
    first, second, third = (lines.enter("t", number) for number in range(3))
    with ThreadPoolExecutor(1) as threads:
        working = threads.submit(lines.work, first, work)
        assert work.begun.wait(10)

        lines.leave(first)

        assert not second.leads
        work.let_go.set()
        working.result(10)
    assert (second.leads, third.leads) == (True, False)
    lines.work(second, work)
    lines.work(third, work)
    assert (work.groups, lines._waiting) == ([[0], [1], [2]], {})
