"""Landing slots: holds commits and refusals back, by the queues that all servers share."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

import orjson
from anyio import to_thread

from app.catalog.slots.queue import KEPT_MS, LandingQueue, RetryRules
from app.database.landing_queues import LandingQueues
from app.errors import IcetowerError

log = logging.getLogger(__name__)

GATE_LOOK_S: Final = 0.015
HOLD_LOOK_S: Final = 0.1
"""How often to look at what other servers did to a queue, while commits or answers are held back."""
CLIENT_LOOK_S: Final = 1.0
MOST_EXPECTED: Final = 10_000
ATTEMPTS: Final = 50
"""How often to change a queue that other servers change at the same time."""

_Change = Callable[[LandingQueue, int], object]


class LandingSlots:
    """The queues of all tables, for the requests of one process. Belongs to one event loop."""

    def __init__(self, queues: LandingQueues, longest_hold_s: float) -> None:
        """Prepare; with `longest_hold_s` 0 nothing is held back."""
        self._queues = queues
        self._longest_hold_s = longest_hold_s
        self._tables: dict[int, _Table] = {}
        self._writers: dict[tuple[int, str], float] = {}
        """Those whose answers were held back here, and until when to expect them."""

    @property
    def is_on(self) -> bool:
        """Whether anything is held back."""
        return self._longest_hold_s > 0

    async def ask(self, pointer_id: int, writer: str) -> None:
        """Return once a commit may land: no other writer's slot is open."""
        self._expect(pointer_id, writer)
        await self._table(pointer_id).wait_in(at_gate=True, writer=writer)

    async def hold(
        self,
        pointer_id: int,
        writer: str,
        retries: RetryRules,
        sequence: int,
        is_wanted: Callable[[], Awaitable[bool]],
    ) -> None:
        """Return when a writer that has lost a race may have its answer, and so begin anew.

        Args:
            pointer_id: the table.
            writer: what the client keeps from one attempt to the next: its snapshot's id.
            retries: how it tries again.
            sequence: the table's last sequence number.
            is_wanted: says whether the client still waits for the answer.
        """
        self._expect(pointer_id, writer)
        table = self._table(pointer_id)
        table.changes.append(lambda queue, now_ms: queue.lose(writer, retries, sequence, now_ms))
        held = asyncio.ensure_future(table.wait_in(at_gate=False, writer=writer))
        try:
            while not held.done():
                await asyncio.wait([held], timeout=CLIENT_LOOK_S)
                if not held.done() and not await is_wanted():
                    self.note_gone(pointer_id, writer)
                    return
        finally:
            held.cancel()

    def note_landed(self, pointer_id: int, writer: str) -> None:
        """Note that a writer has landed; it costs nothing if it never lost a race nor had to ask."""
        if self._writers.pop((pointer_id, writer), None) is not None:
            self._table(pointer_id).change(lambda queue, now_ms: queue.land(writer, now_ms))

    def note_gone(self, pointer_id: int, writer: str) -> None:
        """Note that a writer will not come back."""
        self._writers.pop((pointer_id, writer), None)
        self._table(pointer_id).change(lambda queue, _now_ms: queue.leave([writer]))

    def _expect(self, pointer_id: int, writer: str) -> None:
        now_s = time.monotonic()
        if len(self._writers) >= MOST_EXPECTED:
            self._writers = {key: end_s for key, end_s in self._writers.items() if end_s > now_s}
        if len(self._writers) < MOST_EXPECTED:
            self._writers[pointer_id, writer] = now_s + self._longest_hold_s + KEPT_MS / 1000

    def _table(self, pointer_id: int) -> _Table:
        table = self._tables.get(pointer_id)
        if table is None:
            table = self._tables[pointer_id] = _Table(
                pointer_id, self._queues, self._longest_hold_s, self._tables
            )
        return table


@dataclass(frozen=True, slots=True)
class _Verdict:
    """Who may go on, and when to look again."""

    may_go: frozenset[str]
    look_in_s: float


@dataclass
class _Table:
    """What one process holds back at one table, and the task that decides about it."""

    pointer_id: int
    queues: LandingQueues
    longest_hold_s: float
    tables: dict[int, _Table]
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
        try:
            await turn
        finally:
            waiting.pop(turn, None)

    def change(self, change: _Change) -> None:
        """Change the queue as soon as possible."""
        self.changes.append(change)
        self._wake()

    def _wake(self) -> None:
        self.woken.set()
        if self.task is None:
            self.task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        try:
            while self.changes or self.at_gate or self.held:
                self.woken.clear()
                changes, self.changes = self.changes, []
                at_gate, held = frozenset(self.at_gate.values()), frozenset(self.held.values())
                verdict = await to_thread.run_sync(self._decide, changes, at_gate, held)
                for turn, writer in [*self.at_gate.items(), *self.held.items()]:
                    if writer in verdict.may_go and not turn.done():
                        turn.set_result(None)
                if not self.changes and (self.at_gate or self.held):
                    await self._sleep(verdict.look_in_s)
        except IcetowerError as error:
            # Without a queue everything is as if there were no slots.
            log.warning("no slots for table %s for now: %s", self.pointer_id, error)
        finally:
            self.task = None
            del self.tables[self.pointer_id]
            for turn in [*self.at_gate, *self.held]:
                if not turn.done():
                    turn.set_result(None)

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
            seen = self.queues.load(self.pointer_id)
            now_ms, hold_ms = seen.now_ms, round(self.longest_hold_s * 1000)
            queue = (
                LandingQueue() if seen.content is None else LandingQueue.from_json(orjson.loads(seen.content))
            )
            for change in changes:
                change(queue, now_ms)
            released = queue.release(held, now_ms, hold_ms)
            closed = {writer: queue.closed_until_ms(writer, now_ms) for writer in at_gate}
            may_go = frozenset([*released, *(writer for writer, until in closed.items() if until is None)])
            times = [until for until in closed.values() if until is not None]
            next_ms = queue.next_release_ms(now_ms, hold_ms)
            if next_ms is not None and len(released) < len(held):
                times.append(next_ms)
            look_s = GATE_LOOK_S if any(until is not None for until in closed.values()) else HOLD_LOOK_S
            look_in_s = max(0.001, min([look_s, *((time - now_ms) / 1000 for time in times)]))
            is_reserved = queue.is_reserved_at(now_ms)
            content = orjson.dumps({**queue.to_json(), "is-reserved": is_reserved}).decode()
            if content == seen.content or self.queues.put(
                self.pointer_id, seen, content, is_reserved=is_reserved
            ):
                return _Verdict(may_go, look_in_s)
        return _Verdict(frozenset([*at_gate, *held]), HOLD_LOOK_S)
