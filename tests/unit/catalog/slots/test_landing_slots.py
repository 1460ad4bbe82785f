"""What is held back, with queues in a real database; no test waits for time to pass where an event can do it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.catalog.slots import landing_slots
from app.catalog.slots.landing_slots import LandingSlots
from app.catalog.slots.queue import RetryRules
from app.database.connections.database import Database
from app.database.landing_queues import LandingQueues, StoredQueue
from app.database.migrations import migrate
from app.errors import DatabaseUnavailable

TABLE = 7
QUICK = RetryRules(min_wait_ms=1)
SLOW = RetryRules(min_wait_ms=60_000, max_wait_ms=60_000)
"""A writer that stays away so long that all others have to wait for what it has reserved."""


@pytest.fixture
def queues(tmp_path: Path) -> Iterator[LandingQueues]:
    database = Database.open(f"sqlite:///{tmp_path / 'icetower.db'}")
    migrate(database)
    yield LandingQueues(database)
    database.close()


async def stays() -> bool:
    return True


async def has_gone() -> bool:
    return False


def run(course: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(30):
            await course

    asyncio.run(bounded())


async def lose(slots: LandingSlots, writer: str, retries: RetryRules = QUICK, times: int = 1) -> None:
    for _ in range(times):
        await slots.hold(TABLE, writer, retries, 1, stays)


async def idle(slots: LandingSlots) -> None:
    await asyncio.gather(*(table.task for table in slots._tables.values() if table.task is not None))


def test_lonely_loser_gets_its_answer_at_once(queues: LandingQueues) -> None:
    async def course() -> None:
        await lose(LandingSlots(queues, 20), "a")

    run(course())
    assert "a" in (queues.load(TABLE).content or "")


def test_commit_may_land_where_nothing_is_reserved(queues: LandingQueues) -> None:
    async def course() -> None:
        await LandingSlots(queues, 20).ask(TABLE, "b")

    run(course())


def test_commit_waits_until_the_writer_whose_slot_is_open_has_landed_on_another_server(
    queues: LandingQueues,
) -> None:
    async def course() -> None:
        here, there = LandingSlots(queues, 20), LandingSlots(queues, 20)
        # Its slot opens at once, and stays open for a while.
        await lose(here, "a", RetryRules(min_wait_ms=0), times=2)
        waiting = asyncio.ensure_future(there.ask(TABLE, "b"))
        await asyncio.wait([waiting], timeout=0.03)
        assert not waiting.done()

        here.note_landed(TABLE, "a")
        await waiting

    run(course())
    assert '"slots":[]' in (queues.load(TABLE).content or "")


def test_writer_is_held_back_while_another_one_has_the_next_slot(queues: LandingQueues) -> None:
    async def course() -> None:
        slots = LandingSlots(queues, 20)
        await lose(slots, "a", SLOW, times=2)
        held = asyncio.ensure_future(lose(slots, "b"))
        await asyncio.wait([held], timeout=0.05)
        assert not held.done()

        slots.note_gone(TABLE, "a")
        await held

    run(course())


def test_nothing_is_held_longer_than_the_operator_allows(queues: LandingQueues) -> None:
    async def course() -> None:
        slots = LandingSlots(queues, 0.05)
        await lose(slots, "a", SLOW, times=2)
        await lose(slots, "b")

    run(course())


def test_writer_whose_client_has_gone_leaves(queues: LandingQueues, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landing_slots, "CLIENT_LOOK_S", 0.01)

    async def course() -> None:
        slots = LandingSlots(queues, 20)
        await lose(slots, "a", SLOW, times=2)
        await slots.hold(TABLE, "b", QUICK, 1, has_gone)
        slots.note_gone(TABLE, "a")
        await idle(slots)

    run(course())
    assert '"slots":[]' in (queues.load(TABLE).content or "")


def test_without_the_database_all_go_on(queues: LandingQueues, monkeypatch: pytest.MonkeyPatch) -> None:
    async def course() -> None:
        slots = LandingSlots(queues, 20)
        await lose(slots, "a", SLOW, times=2)
        held = asyncio.ensure_future(lose(slots, "b"))
        await asyncio.wait([held], timeout=0.05)
        assert not held.done()

        def fail(_pointer_id: int) -> StoredQueue:
            raise DatabaseUnavailable("gone")

        monkeypatch.setattr(queues, "load", fail)
        await held
        await slots.ask(TABLE, "c")
        assert slots._tables == {}

    run(course())


def test_request_that_is_broken_off_is_not_waited_for(queues: LandingQueues) -> None:
    async def course() -> None:
        slots = LandingSlots(queues, 20)
        await lose(slots, "a", SLOW, times=2)
        held = asyncio.ensure_future(lose(slots, "b"))
        await asyncio.wait([held], timeout=0.05)
        held.cancel()
        with pytest.raises(asyncio.CancelledError):
            await held
        slots.note_gone(TABLE, "a")
        await idle(slots)

    run(course())


def test_slots_can_be_turned_off(queues: LandingQueues) -> None:
    assert not LandingSlots(queues, 0).is_on
    assert LandingSlots(queues, 1).is_on
