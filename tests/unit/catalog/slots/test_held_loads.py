"""Loads that wait, with leases in a real database; no test waits for time to pass where an event can do it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.catalog.context.seen.traffic import TableKey, Traffic
from app.catalog.slots import beginnings, landing_slots
from app.catalog.slots.beginnings import FIRST_WINDOW_MS, Client
from app.catalog.slots.held_loads import MOST_TABLES, HeldLoads
from app.catalog.slots.landing_slots import put_queue, read_queue
from app.catalog.slots.queue import HANDOVER_MS, Before, LandingQueue, LoadLease, RetryRules
from app.database.connections.database import Database
from app.database.landing_queues import LandingQueues, StoredQueue
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.errors import DatabaseUnavailable
from tests.builders.databases import migrated

TABLE: TableKey = ("wh", TableIdentifier(Namespace(("ns",)), "t"))
POINTER_ID = 7
A, B = ("10.0.0.1", 1), ("10.0.0.1", 2)


@pytest.fixture
def queues(tmp_path: Path) -> Iterator[LandingQueues]:
    database = Database.open(migrated(f"sqlite:///{tmp_path / 'icetower.db'}"))
    yield LandingQueues(database)
    database.close()


def contended(
    queues: LandingQueues, *writers: Client, traffic: Traffic | None = None, hold_s: float = 20
) -> HeldLoads:
    """Return the loads of a server to which these writers have committed, after a lost race."""
    loads = HeldLoads(queues, hold_s, traffic or Traffic(lambda: 1_000_000))
    for writer in writers:
        loads.note_end(TABLE, writer, writer=str(writer), has_lost=False)
    loads.note_end(TABLE, ("elsewhere", 1), writer=str(("elsewhere", 1)), has_lost=True)
    loads.note_pointer(TABLE, POINTER_ID)
    return loads


def run(course: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(30):
            await course

    asyncio.run(bounded())


def land(loads: HeldLoads, client: Client) -> None:
    loads.note_commit(TABLE, client)
    loads.note_end(TABLE, client, writer=str(client), has_lost=False)


async def waiting(loads: HeldLoads, client: Client) -> asyncio.Task[None]:
    """Begin a load, and see that it waits."""
    task = asyncio.create_task(loads.wait(TABLE, client))
    await asyncio.wait([task], timeout=0.03)
    assert not task.done()
    return task


def end_lease(queues: LandingQueues) -> LoadLease:
    """Let the lease of the table be over, and return it; a server may change it meanwhile."""
    while True:
        seen = queues.load(POINTER_ID)
        queue = read_queue(seen)
        assert queue.lease is not None
        queue.lease = replace(queue.lease, until_ms=seen.now_ms)
        if put_queue(queues, POINTER_ID, seen, queue):
            return queue.lease


def test_a_load_waits_until_the_writer_before_it_has_landed(queues: LandingQueues) -> None:
    traffic = Traffic(lambda: 1_000_000)

    async def course() -> None:
        loads = contended(queues, A, B, traffic=traffic)
        await loads.wait(TABLE, A)
        loads.note_commit(TABLE, A)
        second = await waiting(loads, B)
        loads.note_end(TABLE, A, writer=str(A), has_lost=False)
        await second

    run(course())
    assert traffic.of(TABLE).counts.loads_held == 2


def test_with_slots_off_no_load_waits(queues: LandingQueues) -> None:
    async def course() -> None:
        loads = HeldLoads(queues, 0, Traffic(lambda: 1_000_000))
        loads.note_end(TABLE, A, writer=str(A), has_lost=True)
        loads.note_commit(TABLE, B)
        await loads.wait(TABLE, A)

    run(course())


def test_writers_of_two_servers_take_turns(queues: LandingQueues, monkeypatch: pytest.MonkeyPatch) -> None:
    # It ends when the test says so, and the other server has asked by then.
    monkeypatch.setattr(beginnings, "TURN_MS", 60_000.0)

    async def course() -> None:
        here, there = contended(queues, A), contended(queues, B)
        await here.wait(TABLE, A)
        here.note_commit(TABLE, A)
        other = await waiting(there, B)
        here.note_end(TABLE, A, writer=str(A), has_lost=False)
        assert not other.done()
        first = end_lease(queues)
        await other
        assert first != read_queue(queues.load(POINTER_ID)).lease

    run(course())


def test_no_load_is_held_longer_because_the_database_hangs(
    queues: LandingQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = threading.Event()

    def hang(_pointer_id: int) -> StoredQueue:
        answers.wait(60)
        raise DatabaseUnavailable("gone")

    async def course() -> None:
        loads = contended(queues, A, hold_s=0.01)
        try:
            await loads.wait(TABLE, A)
            assert not answers.is_set()
        finally:
            answers.set()

    monkeypatch.setattr(queues, "load", hang)
    monkeypatch.setattr(landing_slots, "LATE_S", 0)
    run(course())


def test_without_the_database_a_server_goes_by_what_it_knows(queues: LandingQueues) -> None:
    class Broken(LandingQueues):
        def load(self, pointer_id: int) -> StoredQueue:
            raise DatabaseUnavailable("gone")

    async def course() -> None:
        loads = contended(Broken(queues._database), A, B)
        await loads.wait(TABLE, A)
        loads.note_commit(TABLE, A)
        second = await waiting(loads, B)
        loads.note_end(TABLE, A, writer=str(A), has_lost=False)
        await second

    run(course())


def test_a_load_that_is_broken_off_is_not_waited_for(queues: LandingQueues) -> None:
    async def course() -> None:
        loads = contended(queues, A, B)
        await loads.wait(TABLE, A)
        loads.note_commit(TABLE, A)
        gone = await waiting(loads, B)
        gone.cancel()
        await asyncio.wait([gone])
        land(loads, A)
        await loads.wait(TABLE, A)

    run(course())


def test_a_server_that_stops_lets_all_go_on(queues: LandingQueues) -> None:
    async def course() -> None:
        loads = contended(queues, A, B)
        await loads.wait(TABLE, A)
        loads.note_commit(TABLE, A)
        second = await waiting(loads, B)
        await loads.stop()
        await second

    run(course())


def test_a_load_goes_on_when_the_lease_and_the_time_of_the_writer_before_it_have_ended(
    queues: LandingQueues,
) -> None:
    async def course() -> None:
        loads = HeldLoads(queues, 600, Traffic(lambda: 1_000_000))
        for writer in (A, B):
            loads.note_end(TABLE, writer, writer=str(writer), has_lost=False)
        loads.note_end(TABLE, ("elsewhere", 1), writer=str(("elsewhere", 1)), has_lost=True)
        loads.note_pointer(TABLE, POINTER_ID)
        await loads.wait(TABLE, A)
        loads.note_slot(TABLE)
        await loads.wait(TABLE, B)  # A never commits

    run(course())


def test_only_so_many_tables_are_remembered(queues: LandingQueues) -> None:
    async def course() -> None:
        loads = contended(queues, A, B)
        await loads.wait(TABLE, A)
        loads.note_commit(TABLE, A)
        second = await waiting(loads, B)
        for number in range(MOST_TABLES + 5):
            table = "wh", TableIdentifier(Namespace(("ns",)), f"t{number}")
            loads.note_end(table, A, writer=str(A), has_lost=False)
        assert len(loads._tables) == MOST_TABLES
        assert TABLE in loads._tables, "somebody waits for it"
        land(loads, A)
        await second

    run(course())


def test_commits_without_snapshots_are_not_remembered(queues: LandingQueues) -> None:
    async def course() -> None:
        loads = HeldLoads(queues, 20, Traffic(lambda: 1_000_000))
        loads.note_end(TABLE, A, writer=None, has_lost=False)
        assert loads._tables == {}

    run(course())


def test_a_writer_waits_with_its_load_after_its_first_loss_and_in_the_queue_after_the_next(
    queues: LandingQueues,
) -> None:
    async def course() -> None:
        loads = contended(queues)
        loads.note_end(TABLE, A, writer="1", has_lost=True)
        assert loads.known_of(TABLE, A) == Before(FIRST_WINDOW_MS, waits_with_load=True)
        loads.note_end(TABLE, A, writer="1", has_lost=True)
        assert loads.known_of(TABLE, A) == Before(FIRST_WINDOW_MS)
        loads.note_end(TABLE, A, writer="2", has_lost=True)
        assert loads.known_of(TABLE, A) == Before(FIRST_WINDOW_MS, waits_with_load=True), "another snapshot"

    run(course())


def test_nothing_is_known_of_clients_where_nothing_is_held(queues: LandingQueues) -> None:
    async def course() -> None:
        assert contended(queues).known_of(("another", TABLE[1]), A) == Before()

    run(course())


def test_a_server_learns_from_another_one_whose_writers_share_connections(queues: LandingQueues) -> None:
    async def course() -> None:
        here, there = contended(queues, A, B), contended(queues)
        for client in (B, A):
            there.note_end(TABLE, client, writer="1", has_lost=True)
        known = there.known_of(TABLE, A)
        assert known == Before(sharing=A[0])
        seen = queues.load(POINTER_ID)
        queue = read_queue(seen)
        queue.lose("1", RetryRules(), 1, seen.now_ms, known)
        assert put_queue(queues, POINTER_ID, seen, queue)

        await here.wait(TABLE, A)
        assert here.known_of(TABLE, A) == known
        await here.wait(TABLE, B)

    run(course())


def test_a_lease_ends_when_a_writer_gets_a_slot_of_its_own(queues: LandingQueues) -> None:
    async def course() -> None:
        loads = contended(queues, A, B)
        await loads.wait(TABLE, A)
        land(loads, A)
        queue = LandingQueue()
        lose_twice(queue, RetryRules(min_wait_ms=0), queues.load(POINTER_ID).now_ms, took_ms=1_000_000)
        queue.release(["w"], queues.load(POINTER_ID).now_ms, 20_000)
        assert put_queue(queues, POINTER_ID, queues.load(POINTER_ID), queue)
        loads.note_slot(TABLE)

        waits = await waiting(loads, B)

        queue.leave(["w"])
        assert put_queue(queues, POINTER_ID, queues.load(POINTER_ID), queue)
        await waits

    run(course())


def lose_twice(queue: LandingQueue, retries: RetryRules, now_ms: int, took_ms: float = 0.0) -> None:
    queue.lose("w", retries, 1, now_ms, Before(waits_with_load=True))
    queue.lose("w", retries, 1, now_ms, Before(took_ms))


def test_a_lease_is_one_servers_until_it_ends() -> None:
    queue = LandingQueue()

    assert queue.take_lease("here", 1_000, 200) == 200
    assert queue.take_lease("there", 1_100, 200) == 0
    assert queue.take_lease("there", 1_200, 200) == 200
    assert LandingQueue.from_json(queue.to_json()) == queue


def test_a_server_leaves_a_lease_that_another_one_waits_for() -> None:
    queue = LandingQueue()
    queue.take_lease("here", 1_000, 200)
    assert queue.take_lease("here", 1_200, 200) == 200, "no other server wants it"
    queue.take_lease("there", 1_300, 200)

    assert queue.take_lease("here", 1_400, 200) == 0
    assert queue.take_lease("here", 1_400 + HANDOVER_MS, 200) == 200, "the other one has not come"


def test_a_lease_that_a_slot_makes_too_short_is_not_taken_and_nothing_changes() -> None:
    queue = LandingQueue()
    lose_twice(queue, RetryRules(min_wait_ms=250), 1_000)
    queue.release(["w"], 1_000, 20_000)
    before = queue.to_json()
    opens_ms = queue.slots["w"].opens_ms
    assert opens_ms is not None

    assert queue.take_lease("here", 1_000, 10_000, opens_ms - 1_000) == 0
    assert queue.to_json() == before
    assert queue.take_lease("here", 1_000, 10_000, opens_ms - 1_100) > 0


def test_a_server_lengthens_its_lease_in_its_turn_though_another_one_waits() -> None:
    queue = LandingQueue()
    queue.take_lease("here", 1_000, 200)
    queue.take_lease("there", 1_010, 200)

    assert queue.take_lease("here", 1_150, 200, lengthens=True) == 200
    assert queue.take_lease("there", 1_300, 200) == 0
    assert queue.take_lease("here", 1_340, 200) == 0, "its turn is over"
    assert queue.take_lease("there", 1_341, 200) == 200


def test_a_turn_ends_when_another_server_has_a_writer_that_has_lost_and_this_one_has_not() -> None:
    queue = LandingQueue()
    queue.take_lease("here", 1_000, 200)
    queue.take_lease("there", 1_010, 200, has_lost=True)
    queue.take_lease("there", 1_020, 200)

    assert queue.take_lease("here", 1_150, 200, lengthens=True, has_lost=True) == 200, "its own come first"
    assert LandingQueue.from_json(queue.to_json()) == queue
    assert queue.take_lease("here", 1_300, 200, lengthens=True) == 0
    assert queue.take_lease("there", 1_301, 200) == 200
    assert queue.take_lease("there", 1_400, 200, lengthens=True) == 200, "a new lease owes nothing"


def test_a_lease_that_has_ended_cannot_be_lengthened() -> None:
    queue = LandingQueue()
    queue.take_lease("here", 1_000, 200)
    queue.take_lease("there", 1_010, 200)

    assert queue.take_lease("here", 1_210, 200, lengthens=True) == 0


def test_a_server_hands_a_lease_over_whose_rest_is_too_short_for_its_next_writer() -> None:
    queue = LandingQueue()
    queue.take_lease("here", 1_000, 200)
    queue.take_lease("there", 1_010, 200)
    assert queue.take_lease("here", 1_150, 200) == 0

    assert queue.take_lease("there", 1_155, 200) == 200
    assert queue.take_lease("here", 1_160, 200) == 0


def test_a_lease_ends_before_a_slot_that_is_somebodys_own_and_none_is_given_while_it_is_open() -> None:
    queue = LandingQueue()
    lose_twice(queue, RetryRules(min_wait_ms=250), 1_000)
    queue.release(["w"], 1_000, 20_000)
    slot = queue.slots["w"]
    assert slot.opens_ms is not None

    assert 0 < queue.take_lease("here", 1_000, 10_000) < slot.opens_ms - 1_000
    assert queue.take_lease("here", slot.opens_ms, 200) == 0
    assert queue.take_lease("here", slot.closes_ms, 200) == 0, "its commit may be landing"
    assert queue.take_lease("here", slot.closes_ms + slot.landing_ms, 200) == 200


def test_a_lease_is_given_as_soon_as_the_writer_in_its_own_slot_has_landed() -> None:
    queue = LandingQueue()
    lose_twice(queue, RetryRules(min_wait_ms=250), 1_000, took_ms=100)
    queue.release(["w"], 1_000, 20_000)
    opens_ms = queue.slots["w"].opens_ms
    assert opens_ms is not None
    assert queue.take_lease("here", opens_ms - 150, 200) == 0
    queue.land("w", opens_ms + 90)

    assert queue.take_lease("here", opens_ms + 90, 200) == 200
