"""Landing slots: holds commits and refusals back, by the queues that all servers share."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from contextvars import Context
from dataclasses import asdict, dataclass, field, replace
from typing import Final, NamedTuple

import orjson
from anyio import to_thread

from app.catalog.context.seen.traffic import QueueState, TableKey, Traffic
from app.catalog.slots.queue import KEPT_MS, Before, LandingQueue, RetryRules
from app.catalog.slots.rushes import Rush
from app.database.landing_queues import LandingQueues, StoredQueue
from app.errors import IcetowerError

log = logging.getLogger(__name__)

GATE_LOOK_S: Final = 0.015
HOLD_LOOK_S: Final = 0.1
"""How often to look at what other servers did to a queue, while commits or answers are held back."""
IDLE_LOOK_S: Final = 1.0
"""How often, while writers are in a queue and nothing is held back here."""
CLIENT_LOOK_S: Final = 1.0
LATE_S: Final = 1.0
"""How long after its time something goes on though the queue has not said so: the database hangs."""
MOST_EXPECTED: Final = 10_000
ATTEMPTS: Final = 50
"""How often to change a queue that other servers change at the same time."""

CLOCK_STEP_MS: Final = 1_000
"""How far the database's clock may go back by a small step, which makes writers wait for as long."""

_Change = Callable[[LandingQueue, int], object]


class QueuedTable(NamedTuple):
    """A table that may have a queue."""

    pointer_id: int
    table: TableKey


class LandingSlots:
    """The queues of all tables, for the requests of one process. Belongs to one event loop."""

    def __init__(self, queues: LandingQueues, longest_hold_s: float, traffic: Traffic) -> None:
        """Prepare; with `longest_hold_s` 0 nothing is held back."""
        self._queues = queues
        self._traffic = traffic
        self._longest_hold_s = longest_hold_s
        self._tables: dict[QueuedTable, _Table] = {}
        self._writers: dict[tuple[QueuedTable, str], float] = {}
        """Those whose answers were held back here, and until when to expect them."""

    @property
    def is_on(self) -> bool:
        """Whether anything is held back."""
        return self._longest_hold_s > 0

    async def bound(self, holding: Awaitable[None]) -> None:
        """Wait for what holds a commit or an answer back, but no longer than the operator allows."""
        await wait_at_most(holding, self._longest_hold_s)

    async def ask(self, table: QueuedTable, writer: str) -> None:
        """Return once a commit may land: no other writer's slot is open, or it has waited enough.

        It lands or loses its race then like any other; slots may follow each other for longer than its client waits.
        """
        self._expect(table, writer)
        await self.bound(self._table(table).wait_in(at_gate=True, writer=writer))

    async def hold(
        self,
        table: QueuedTable,
        writer: str,
        retries: RetryRules,
        sequence: int,
        is_wanted: Callable[[], Awaitable[bool]],
        before: Before = Before(),  # noqa: B008 - a constant
    ) -> None:
        """Return when a writer that has lost a race may have its answer, and so begin anew.

        Args:
            table: which.
            writer: what the client keeps from one attempt to the next: its snapshot's id.
            retries: how it tries again.
            sequence: the table's last sequence number.
            is_wanted: says whether the client still waits for the answer.
            before: what was known of it before.
        """
        self._expect(table, writer)
        here = self._table(table)
        here.changes.append(lambda queue, now_ms: queue.lose(writer, retries, sequence, now_ms, before))
        held = asyncio.ensure_future(here.wait_in(at_gate=False, writer=writer))
        try:
            while not held.done():
                await asyncio.wait([held], timeout=CLIENT_LOOK_S)
                if not held.done() and not await is_wanted():
                    self.note_gone(table, writer)
                    return
        finally:
            held.cancel()

    def note_landed(self, table: QueuedTable, writer: str) -> None:
        """Note that a writer has landed; it costs nothing if it never lost a race nor had to ask."""
        if self._writers.pop((table, writer), None) is not None:
            self._table(table).change(lambda queue, now_ms: queue.land(writer, now_ms))

    def note_gone(self, table: QueuedTable, writer: str) -> None:
        """Note that a writer will not come back."""
        self._writers.pop((table, writer), None)
        self._table(table).change(lambda queue, _now_ms: queue.leave([writer]))

    def _expect(self, table: QueuedTable, writer: str) -> None:
        now_s = time.monotonic()
        if len(self._writers) >= MOST_EXPECTED:
            self._writers = {key: end_s for key, end_s in self._writers.items() if end_s > now_s}
        if len(self._writers) < MOST_EXPECTED:
            self._writers[table, writer] = now_s + self._longest_hold_s + KEPT_MS / 1000

    def _table(self, table: QueuedTable) -> _Table:
        here = self._tables.get(table)
        if here is None:
            here = self._tables[table] = _Table(
                table, self._queues, self._longest_hold_s, self._tables, self._traffic
            )
        return here

    async def stop(self) -> None:
        """Let all go on that are held back, and look at no queue any more."""
        tasks = [here.task for here in self._tables.values() if here.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def wait_at_most(holding: Awaitable[None], longest_hold_s: float) -> None:
    """Wait for what is held back; it ends by itself in time unless the database hangs."""
    with suppress(TimeoutError):
        async with asyncio.timeout(longest_hold_s + LATE_S):
            await holding


def put_queue(queues: LandingQueues, pointer_id: int, seen: StoredQueue, queue: LandingQueue) -> bool:
    """Store a table's queue; False if another server has changed it since it was read."""
    is_reserved = queue.is_reserved_at(seen.now_ms)
    content = orjson.dumps({**queue.to_json(), "is-reserved": is_reserved}).decode()
    return content == seen.content or queues.put(pointer_id, seen, content, is_reserved=is_reserved)


def read_queue(stored: StoredQueue) -> LandingQueue:
    """Return the queue that is stored for a table, or a new one.

    After the database's clock was set back the times of a stored one are still to come: who is held back by them
    would wait until then. One that a server of another version has stored may have other fields.
    """
    if stored.content is None or stored.changed_ms - stored.now_ms > CLOCK_STEP_MS:
        return LandingQueue()
    try:
        return LandingQueue.from_json(orjson.loads(stored.content))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return LandingQueue()


@dataclass(frozen=True, slots=True)
class _Verdict:
    """Who may go on, when to look again, and what the queue is like now."""

    may_go: frozenset[str]
    look_in_s: float
    state: QueueState = field(default_factory=QueueState)
    is_over: bool = False
    """Whether there is nothing to look at unless something is held back here."""


@dataclass
class _Table:
    """What one process holds back at one table, and the task that decides about it."""

    which: QueuedTable
    queues: LandingQueues
    longest_hold_s: float
    tables: dict[QueuedTable, _Table]
    traffic: Traffic
    state: QueueState = field(default_factory=QueueState)
    changes: list[_Change] = field(default_factory=list)
    at_gate: dict[asyncio.Future[None], str] = field(default_factory=dict)
    held: dict[asyncio.Future[None], str] = field(default_factory=dict)
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    async def wait_in(self, *, at_gate: bool, writer: str) -> None:
        """Wait until the task lets a writer go on."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = self.at_gate if at_gate else self.held
        waiting[turn] = writer
        self._wake()
        self._show()
        try:
            await turn
        finally:
            waiting.pop(turn, None)
            self._show()

    def change(self, change: _Change) -> None:
        """Change the queue as soon as possible."""
        self.changes.append(change)
        self._wake()

    def _show(self) -> None:
        """Let the tower see what is held back, and the queue as it was seen last."""
        state = replace(self.state, answers_held=len(self.held), commits_at_gate=len(self.at_gate))
        self.traffic.see_queue(self.which.table, state)

    def _wake(self) -> None:
        self.woken.set()
        if self.task is None:
            # Not in the context of the request that came first: the task outlives it, and works for all.
            self.task = asyncio.get_running_loop().create_task(self._run(), context=Context())

    async def _run(self) -> None:
        is_over = False
        try:
            while self.changes or self.at_gate or self.held or not is_over:
                self.woken.clear()
                changes, self.changes = self.changes, []
                at_gate, held = frozenset(self.at_gate.values()), frozenset(self.held.values())
                verdict = await to_thread.run_sync(self._decide, changes, at_gate, held)
                self.state, is_over = verdict.state, verdict.is_over
                for turn, writer in [*self.at_gate.items(), *self.held.items()]:
                    if writer in verdict.may_go and not turn.done():
                        turn.set_result(None)
                self._show()
                if not self.changes and (self.at_gate or self.held or not is_over):
                    await self._sleep(verdict.look_in_s)
        except IcetowerError as error:
            # Without a queue everything is as if there were no slots.
            log.warning("no slots for table %s for now: %s", self.which.pointer_id, error)
            self.state = QueueState()
        finally:
            self.task = None
            # Who waits here may have come when it was taken out already.
            if self.tables.get(self.which) is self:
                del self.tables[self.which]
            for turn in [*self.at_gate, *self.held]:
                if not turn.done():
                    turn.set_result(None)
            self._show()

    async def _sleep(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self.woken.wait()
        except TimeoutError:
            return

    def _decide(
        self, changes: Sequence[_Change], at_gate: Collection[str], held: Collection[str]
    ) -> _Verdict:
        """Change the queue in the database, and return who may go on."""
        for _ in range(ATTEMPTS):
            seen = self.queues.load(self.which.pointer_id)
            now_ms, queue = seen.now_ms, read_queue(seen)
            rush_before = queue.rush
            for change in changes:
                change(queue, now_ms)
            may_go, look_in_s = self._look_at(queue, at_gate, held, now_ms)
            ended, state = queue.settle(now_ms), queue.state_at(now_ms)
            if put_queue(self.queues, self.which.pointer_id, seen, queue):
                # Only now, and only here: no other server has made these changes.
                has_formed = queue.rush is not None and queue.rush is not rush_before
                self._report(queue, ended, has_formed=has_formed)
                return _Verdict(may_go, look_in_s, state, queue.rush is None and not state.queue_length)
        return _Verdict(frozenset([*at_gate, *held]), HOLD_LOOK_S)

    def _look_at(
        self, queue: LandingQueue, at_gate: Collection[str], held: Collection[str], now_ms: int
    ) -> tuple[frozenset[str], float]:
        """Release writers; return who may go on, and in how many seconds to look again."""
        hold_ms = round(self.longest_hold_s * 1000)
        released = queue.release(held, now_ms, hold_ms)
        closed = {writer: queue.closed_until_ms(writer, now_ms) for writer in at_gate}
        times = [until for until in closed.values() if until is not None]
        look_s = GATE_LOOK_S if times else HOLD_LOOK_S if held or at_gate else IDLE_LOOK_S
        next_ms = queue.next_release_ms(now_ms, hold_ms)
        if next_ms is not None and len(released) < len(held):
            times.append(next_ms)
        may_go = frozenset([*released, *(writer for writer, until in closed.items() if until is None)])
        return may_go, max(0.001, min([look_s, *((time - now_ms) / 1000 for time in times)]))

    def _report(self, queue: LandingQueue, ended: Rush | None, *, has_formed: bool) -> None:
        """Count what has happened to a queue, and log its beginning and its end."""
        counts = {name: number for name, number in asdict(queue.counts).items() if number}
        if counts:
            self.traffic.count(self.which.table, **counts)
        warehouse, identifier = self.which.table
        names = {"warehouse": warehouse, "table": str(identifier)}
        if ended is not None and ended.empty_since_ms is not None:
            sums = {
                "seconds": (ended.empty_since_ms - ended.since_ms) / 1000,
                "most_writers": ended.most_writers,
                "longest_wait_ms": ended.longest_wait_ms,
                **asdict(ended.counts),
            }
            log.info("the queue of %s is empty again", identifier, extra={"fields": names | sums})
        if has_formed:
            writers = queue.rush.most_writers if queue.rush else 0
            log.info(
                "a queue has formed at %s", identifier, extra={"fields": names | {"queue_length": writers}}
            )
