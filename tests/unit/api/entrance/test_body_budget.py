"""The budget that large request bodies share."""

from __future__ import annotations

import asyncio

import pytest

from app.api.entrance import body_budget
from app.api.entrance.body_budget import FAIR_PACE, BodyBudget, BodyShare
from app.errors import Unavailable


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_budget, "WAIT_SECONDS", 0.2)
    monkeypatch.setattr(body_budget, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(body_budget, "SLOW_SECONDS", 60.0)


def begun(seconds_ago: float, received: int = 0) -> BodyShare:
    share = BodyShare()
    share.began_s -= seconds_ago
    share.received = received
    return share


def test_the_slowest_makes_way_and_no_more_than_is_needed() -> None:
    async def run() -> None:
        budget = BodyBudget(100)
        slow, slowest, waiting = begun(100, received=2000), begun(100, received=1000), begun(0)
        for share in (slow, slowest):
            await budget.take(share, 50)
        taking = asyncio.ensure_future(budget.take(waiting, 50))
        await slowest.makes_way
        assert not taking.done()
        budget.let_go(slowest)
        await taking

        assert waiting.taken == 50
        assert not slow.makes_way.done()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("seconds", "received", "is_whole"), [(0, 0, False), (100, 200 * FAIR_PACE, False), (100, 0, True)]
)
def test_those_that_begin_that_come_fast_or_have_come_do_not(
    seconds: float, received: int, is_whole: bool
) -> None:
    async def run() -> None:
        budget = BodyBudget(100)
        holding = begun(seconds, received)
        await budget.take(holding, 60)
        if is_whole:
            budget.has_come(holding)

        with pytest.raises(Unavailable, match="Too many large requests"):
            await budget.take(BodyShare(), 50)

        assert not holding.makes_way.done()
        budget.let_go(holding)
        await budget.take(BodyShare(), 100)

    asyncio.run(run())


def test_one_that_had_to_wait_for_its_place_is_not_slow_for_that() -> None:
    async def run() -> None:
        budget, holding, late, newcomer = BodyBudget(100), BodyShare(), begun(100), BodyShare()
        await budget.take(holding, 100)
        waiting = asyncio.ensure_future(budget.take(late, 100))
        await asyncio.wait([waiting], timeout=0)
        budget.let_go(holding)
        await waiting
        taking = asyncio.ensure_future(budget.take(newcomer, 50))
        await asyncio.wait([taking], timeout=0)  # It has looked for bodies that come slowly.

        assert not late.makes_way.done()
        budget.let_go(late)
        await taking

    asyncio.run(run())


def test_one_that_has_to_wait_for_its_next_part_is_not_slow_for_that() -> None:
    async def run() -> None:
        budget, holding, waiting, newcomer = BodyBudget(100), BodyShare(), begun(100), BodyShare()
        await budget.take(holding, 50)
        await budget.take(waiting, 50)
        taking = asyncio.ensure_future(budget.take(waiting, 30))
        await asyncio.wait([taking], timeout=0)
        coming = asyncio.ensure_future(budget.take(newcomer, 20))
        await asyncio.wait([coming], timeout=0)  # It has looked for bodies that come slowly.
        budget.let_go(holding)
        await asyncio.gather(taking, coming)

        assert (waiting.taken, newcomer.taken) == (80, 20)
        assert not waiting.makes_way.done()
        # It comes again, and as slowly as before.
        third = asyncio.ensure_future(budget.take(BodyShare(), 50))
        await waiting.makes_way
        budget.let_go(waiting)
        await third

    asyncio.run(run())


def test_what_is_taken_is_given_back_once() -> None:
    async def run() -> None:
        budget, share = BodyBudget(100), BodyShare()
        await budget.take(share, 40)
        await budget.take(share, 40)
        assert share.taken == 80
        budget.let_go(share)
        budget.let_go(share)
        await budget.take(BodyShare(), 60)

        with pytest.raises(Unavailable):
            await budget.take(BodyShare(), 60)

    asyncio.run(run())


def test_one_that_gives_up_waiting_takes_nothing() -> None:
    async def run() -> None:
        budget, holding = BodyBudget(100), BodyShare()
        await budget.take(holding, 60)
        gone, later = BodyShare(), BodyShare()
        giving_up = asyncio.ensure_future(budget.take(gone, 60))
        taking = asyncio.ensure_future(budget.take(later, 40))
        await asyncio.wait([giving_up, taking], timeout=0)  # they stand in the queue now
        giving_up.cancel()
        await taking

        assert (gone.taken, later.taken) == (0, 40)

    asyncio.run(run())


def test_what_is_given_back_at_the_moment_a_body_gives_up_is_not_lost() -> None:
    async def run() -> None:
        budget, holding, gone = BodyBudget(10), BodyShare(), BodyShare()
        await budget.take(holding, 10)
        giving_up = asyncio.ensure_future(budget.take(gone, 10))
        await asyncio.wait([giving_up], timeout=0)
        giving_up.cancel()
        budget.let_go(holding)
        await asyncio.wait([giving_up])

        await budget.take(holding, 10)
        assert (gone.taken, holding.taken) == (0, 10)

    asyncio.run(run())


def test_a_body_larger_than_all_may_be_together_has_them_to_itself() -> None:
    async def run() -> None:
        budget, share = BodyBudget(100), BodyShare()
        for size in (60, 60, 60):
            await budget.take(share, size)

        assert share.taken == 100

    asyncio.run(run())
