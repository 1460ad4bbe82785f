"""Checks of what requests need: each is answered in time, whatever it waits for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from anyio import to_thread

from app.catalog.health import PunctualChecks

ANSWER_S = 0.05
LATE = "It has not answered within 0.05 s"


class Stuck:
    """A check that waits until it is let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.begun = 0

    def __call__(self) -> str | None:
        self.begun += 1
        self.let_go.wait(30)
        return None


@contextmanager
def stuck_check() -> Iterator[Stuck]:
    check = Stuck()
    try:
        yield check
    finally:
        check.let_go.set()


def test_a_check_that_does_not_answer_is_a_problem_and_the_others_are_answered() -> None:
    with stuck_check() as stuck:
        checks = PunctualChecks({"a": stuck, "b": lambda: None, "c": lambda: "broken"}, answer_s=ANSWER_S)

        async def ask() -> dict[str, str | None]:
            found = await checks.problems()
            while LATE in (found["b"], found["c"]):  # a busy machine has not come so far
                found = await checks.problems()
            stuck.let_go.set()
            return found

        assert asyncio.run(ask()) == {"a": LATE, "b": None, "c": "broken"}


def test_a_check_for_which_no_thread_can_be_started_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = PunctualChecks({"a": lambda: None})
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if "AnyIO" in thread.name:
            raise RuntimeError("can't start new thread")
        start(thread)

    async def ask() -> list[dict[str, str | None]]:
        with monkeypatch.context() as full:
            full.setattr(threading.Thread, "start", refuse)
            before = await checks.problems()
        return [before, await checks.problems()]

    assert asyncio.run(ask()) == [{"a": "It could not be begun: can't start new thread"}, {"a": None}]


def test_a_check_runs_once_however_many_ask_and_anew_when_it_has_ended() -> None:
    with stuck_check() as stuck:
        checks = PunctualChecks({"a": stuck}, answer_s=ANSWER_S)

        async def ask() -> None:
            late = await asyncio.gather(*(checks.problems() for _ in range(50)))
            assert {found["a"] for found in late} == {LATE}
            while not stuck.begun:
                await checks.problems()
            assert stuck.begun == 1
            stuck.let_go.set()
            for begun in (1, 2):
                while (found := await checks.problems())["a"] == LATE:
                    pass
                assert (found, stuck.begun) == ({"a": None}, begun)

        asyncio.run(ask())


def test_checks_need_none_of_the_threads_that_requests_hold() -> None:
    async def ask() -> dict[str, str | None]:
        to_thread.current_default_thread_limiter().total_tokens = 1
        with stuck_check() as request:
            held = asyncio.create_task(to_thread.run_sync(request))
            found = await PunctualChecks({"a": lambda: None}, answer_s=30).problems()
            request.let_go.set()
            await held
        return found

    assert asyncio.run(ask()) == {"a": None}
