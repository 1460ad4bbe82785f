"""What is held back, with queues in a real database; no test waits for time to pass where an event can do it."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Coroutine, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from app.catalog.context.seen.traffic import Counts, QueueState, TableKey, Traffic
from app.catalog.slots import landing_slots, rushes
from app.catalog.slots.landing_slots import LandingSlots, QueuedTable, read_queue
from app.catalog.slots.queue import LONGEST_WINDOW_MS, LandingQueue, RetryRules
from app.database.connections.database import Database
from app.database.landing_queues import LandingQueues, StoredQueue
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.errors import DatabaseUnavailable
from app.telemetry import request_id
from tests.builders.databases import migrated

TABLE = QueuedTable(7, ("wh", TableIdentifier(Namespace(("ns",)), "t")))
QUICK = RetryRules(min_wait_ms=1)
SLOW = RetryRules(min_wait_ms=60_000, max_wait_ms=60_000)
"""A writer that stays away so long that all others have to wait for what it has reserved."""


@pytest.fixture
def queues(tmp_path: Path) -> Iterator[LandingQueues]:
    database = Database.open(migrated(f"sqlite:///{tmp_path / 'icetower.db'}"))
    yield LandingQueues(database)
    database.close()


@pytest.fixture
def slow_queues(queues: LandingQueues) -> LandingQueues:
    """Queues of which that of the table has slots so long that none ends while a test looks at it."""
    slow_table = orjson.dumps(LandingQueue(window_ms=LONGEST_WINDOW_MS).to_json()).decode()
    assert queues.put(TABLE.pointer_id, queues.load(TABLE.pointer_id), slow_table, is_reserved=False)
    return queues


def slots_on(queues: LandingQueues, hold_s: float = 20, traffic: Traffic | None = None) -> LandingSlots:
    return LandingSlots(queues, hold_s, traffic or Traffic(lambda: 1_000_000))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A queue is over as soon as it is empty."""
    monkeypatch.setattr(rushes, "QUIET_MS", 0)
    monkeypatch.setattr(landing_slots, "IDLE_LOOK_S", 0.01)


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
        await lose(slots_on(queues), "a")

    run(course())
    assert "a" in (queues.load(TABLE.pointer_id).content or "")


def test_commit_may_land_where_nothing_is_reserved(queues: LandingQueues) -> None:
    async def course() -> None:
        await slots_on(queues).ask(TABLE, "b")

    run(course())


def test_commit_waits_until_the_writer_whose_slot_is_open_has_landed_on_another_server(
    slow_queues: LandingQueues,
) -> None:
    async def course() -> None:
        here, there = slots_on(slow_queues), slots_on(slow_queues)
        # Its slot opens at once.
        await lose(here, "a", RetryRules(min_wait_ms=0), times=2)
        waiting = asyncio.ensure_future(there.ask(TABLE, "b"))
        await asyncio.wait([waiting], timeout=0.03)
        assert not waiting.done()

        here.note_landed(TABLE, "a")
        await waiting

    run(course())
    assert '"slots":[]' in (slow_queues.load(TABLE.pointer_id).content or "")


def test_writer_is_held_back_while_another_one_has_the_next_slot(queues: LandingQueues) -> None:
    async def course() -> None:
        slots = slots_on(queues)
        await lose(slots, "a", SLOW, times=2)
        held = asyncio.ensure_future(lose(slots, "b"))
        await asyncio.wait([held], timeout=0.05)
        assert not held.done()

        slots.note_gone(TABLE, "a")
        await held

    run(course())


def test_nothing_is_held_longer_than_the_operator_allows(queues: LandingQueues) -> None:
    async def course() -> None:
        slots = slots_on(queues, 0.05)
        await lose(slots, "a", SLOW, times=2)
        await lose(slots, "b")

    run(course())


def test_no_commit_waits_longer_for_slots_than_the_operator_allows(
    slow_queues: LandingQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landing_slots, "LATE_S", 0)

    async def course() -> None:
        slots = slots_on(slow_queues, 0.05)
        # Its slot opens at once, and stays open.
        await lose(slots, "a", RetryRules(min_wait_ms=0), times=2)
        await slots.ask(TABLE, "newcomer")
        seen = slow_queues.load(TABLE.pointer_id)
        assert read_queue(seen).closed_until_ms("newcomer", seen.now_ms) is not None, "the slot is open still"

    run(course())


def test_nobody_is_held_until_a_time_that_the_database_had_before_its_clock_was_set_back(
    queues: LandingQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def course() -> None:
        slots = slots_on(queues)
        await lose(slots, "a", SLOW, times=2)
        held = asyncio.ensure_future(lose(slots, "b"))
        await asyncio.wait([held], timeout=0.05)
        assert not held.done()

        load, an_hour_ms = queues.load, 3_600_000
        monkeypatch.setattr(queues, "load", lambda which: earlier(load(which), an_hour_ms))
        await held
        await slots.ask(TABLE, "c")

    run(course())


@pytest.mark.parametrize(
    "content",
    [
        "{}",
        "no JSON",
        '{"window-ms": 1, "spacing-ms": 1, "interval-ms": 1, "head": [], "slots": []}',
        '{"window-ms": 1, "spacing-ms": 1, "interval-ms": 1, "head": [0, 0], "slots": [{"writer": "a", "age": 1}]}',
    ],
)
def test_a_queue_of_another_version_begins_anew(queues: LandingQueues, content: str) -> None:
    assert queues.put(TABLE.pointer_id, queues.load(TABLE.pointer_id), content, is_reserved=True)

    async def course() -> None:
        slots = slots_on(queues)
        await slots.ask(TABLE, "a")
        await lose(slots, "b")
        await idle(slots)

    assert read_queue(queues.load(TABLE.pointer_id)) == LandingQueue()
    run(course())
    assert orjson.loads(queues.load(TABLE.pointer_id).content or "")["window-ms"]


def earlier(seen: StoredQueue, by_ms: int) -> StoredQueue:
    return replace(seen, now_ms=seen.now_ms - by_ms)


def test_writer_whose_client_has_gone_leaves(queues: LandingQueues, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landing_slots, "CLIENT_LOOK_S", 0.01)

    async def course() -> None:
        slots = slots_on(queues)
        await lose(slots, "a", SLOW, times=2)
        await slots.hold(TABLE, "b", QUICK, 1, has_gone)
        slots.note_gone(TABLE, "a")
        await idle(slots)

    run(course())
    assert '"slots":[]' in (queues.load(TABLE.pointer_id).content or "")


def test_without_the_database_all_go_on(queues: LandingQueues, monkeypatch: pytest.MonkeyPatch) -> None:
    async def course() -> None:
        slots = slots_on(queues)
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


def test_who_comes_when_the_database_fails_goes_on_too(
    queues: LandingQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_pointer_id: int) -> StoredQueue:
        raise DatabaseUnavailable("gone")

    async def course() -> None:
        slots = slots_on(queues)
        slots.note_gone(TABLE, "a")
        (former,) = slots._tables.values()
        await idle(slots)
        # As one that has found the table's queue just before it was given up.
        await former.wait_in(at_gate=False, writer="b")

    monkeypatch.setattr(queues, "load", fail)
    run(course())


def test_nothing_is_held_longer_because_the_database_hangs(
    queues: LandingQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = threading.Event()

    def hang(_pointer_id: int) -> StoredQueue:
        answers.wait(60)
        raise DatabaseUnavailable("gone")

    async def course() -> None:
        slots = slots_on(queues, hold_s=0.01)
        try:
            await slots.bound(slots.hold(TABLE, "a", QUICK, 1, stays))
            assert not answers.is_set()
        finally:
            answers.set()
        await idle(slots)

    monkeypatch.setattr(queues, "load", hang)
    monkeypatch.setattr(landing_slots, "LATE_S", 0)
    run(course())


def test_request_that_is_broken_off_is_not_waited_for(queues: LandingQueues) -> None:
    async def course() -> None:
        slots = slots_on(queues)
        await lose(slots, "a", SLOW, times=2)
        held = asyncio.ensure_future(lose(slots, "b"))
        await asyncio.wait([held], timeout=0.05)
        held.cancel()
        with pytest.raises(asyncio.CancelledError):
            await held
        slots.note_gone(TABLE, "a")
        await idle(slots)

    run(course())


class Watched(Traffic):
    """What a tower sees, for those who wait until it sees something."""

    def __init__(self) -> None:
        super().__init__(lambda: 1_000_000)
        self._has_seen = asyncio.Event()

    def see_queue(self, table: TableKey, queue: QueueState) -> None:
        super().see_queue(table, queue)
        self._has_seen.set()

    @property
    def numbers(self) -> tuple[int, int, int]:
        queue = self.of(TABLE.table).queue
        return queue.queue_length, queue.answers_held, queue.commits_at_gate

    async def until(self, numbers: tuple[int, int, int]) -> None:
        while self.numbers != numbers:
            self._has_seen.clear()
            await self._has_seen.wait()


def test_tower_sees_what_is_held_back_and_the_queue(slow_queues: LandingQueues) -> None:
    traffic = Watched()

    async def course() -> None:
        slots = slots_on(slow_queues, traffic=traffic)
        # Its slot opens at once.
        await lose(slots, "a", RetryRules(min_wait_ms=0), times=2)
        at_gate = asyncio.ensure_future(slots.ask(TABLE, "newcomer"))
        held = [asyncio.ensure_future(lose(slots, writer)) for writer in ("b", "c")]
        await traffic.until((3, 2, 1))

        slots.note_landed(TABLE, "a")
        await traffic.until((2, 1, 1))
        for writer in ("b", "c"):
            slots.note_gone(TABLE, writer)
        await asyncio.gather(at_gate, *held)
        await idle(slots)

    run(course())
    assert traffic.numbers == (0, 0, 0)
    assert traffic.of(TABLE.table).queue.window_ms == read_queue(slow_queues.load(TABLE.pointer_id)).window_ms


def test_slots_are_counted_once_by_the_server_that_changed_the_queue(queues: LandingQueues) -> None:
    here, there = Traffic(lambda: 1_000_000), Traffic(lambda: 1_000_000)

    async def course() -> None:
        one, other = slots_on(queues, traffic=here), slots_on(queues, traffic=there)
        await lose(one, "a", SLOW)
        await lose(other, "a", SLOW)
        other.note_landed(TABLE, "a")
        await idle(one)
        await idle(other)

    run(course())
    assert here.of(TABLE.table).counts == Counts(slots_given=1)
    assert there.of(TABLE.table).counts == Counts(
        slots_given=1, slots_lost=1, slots_used=1, landed_after_losses=1
    )


def test_log_has_a_line_when_a_queue_forms_and_one_when_it_is_empty(
    queues: LandingQueues, caplog: pytest.LogCaptureFixture
) -> None:
    async def course() -> None:
        one, other = slots_on(queues), slots_on(queues)
        request_id.set("the first request, which has nothing to do with the queue's lines")
        await lose(one, "a", SLOW)
        await lose(other, "b", SLOW)
        await lose(one, "c", SLOW)
        one.note_landed(TABLE, "a")
        other.note_landed(TABLE, "b")
        one.note_gone(TABLE, "c")
        await idle(one)
        await idle(other)

    ids: list[str] = []

    def note_id(_record: logging.LogRecord) -> bool:
        ids.append(request_id.get())
        return True

    caplog.handler.addFilter(note_id)
    with caplog.at_level(logging.INFO, landing_slots.__name__):
        run(course())

    formed, empty = caplog.records
    assert ids == ["", ""]
    assert formed.getMessage() == "a queue has formed at ns.t"
    assert vars(formed)["fields"] == {"warehouse": "wh", "table": "ns.t", "queue_length": 2}
    assert empty.getMessage() == "the queue of ns.t is empty again"
    fields = vars(empty)["fields"]
    assert fields.pop("seconds") >= 0
    assert fields.pop("longest_wait_ms") >= 0
    assert fields == {
        "warehouse": "wh",
        "table": "ns.t",
        "most_writers": 3,
        # The first one was alone when it got its slot.
        "slots_given": 2,
        "slots_used": 2,
        "slots_lost": 0,
        "slots_passed": 1,
        "landed_after_losses": 0,
        "gave_up": 0,
    }


def test_a_server_that_stops_lets_all_go_on(queues: LandingQueues) -> None:
    traffic = Watched()

    async def course() -> None:
        slots = slots_on(queues, traffic=traffic)
        await lose(slots, "a", SLOW, times=2)
        held = asyncio.ensure_future(lose(slots, "b"))
        await traffic.until((2, 1, 0))

        await slots.stop()
        await held
        assert slots._tables == {}

    run(course())


def test_slots_can_be_turned_off(queues: LandingQueues) -> None:
    assert not slots_on(queues, 0).is_on
    assert slots_on(queues, 1).is_on
