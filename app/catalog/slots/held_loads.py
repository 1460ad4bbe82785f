"""Held loads: a writer loads a contended table while no other writer is on its way."""

from __future__ import annotations

import asyncio
import logging
import secrets
from contextvars import Context
from functools import partial
from typing import Final

from anyio import to_thread

from app.catalog.context.seen.traffic import TableKey, Traffic
from app.catalog.slots.beginnings import Beginnings, Client
from app.catalog.slots.landing_slots import GATE_LOOK_S, put_queue, read_queue, wait_at_most
from app.catalog.slots.queue import Before
from app.database.landing_queues import LandingQueues
from app.errors import IcetowerError

log = logging.getLogger(__name__)

MOST_TABLES: Final = 256
ATTEMPTS: Final = 10
"""How often to take a lease while other servers change the queue."""


class HeldLoads:
    """The loads of one process that wait. Belongs to one event loop."""

    def __init__(self, queues: LandingQueues, longest_hold_s: float, traffic: Traffic) -> None:
        """Prepare; with `longest_hold_s` 0 nothing waits."""
        self._queues = queues
        self._longest_hold_s = longest_hold_s
        self._traffic = traffic
        self._holder = secrets.token_hex(8)
        self._tables: dict[TableKey, _Table] = {}

    def is_contended(self, table: TableKey) -> bool:
        """Return whether loads of a table may have to wait."""
        here = self._tables.get(table)
        return (
            here is not None and _now_ms() < here.beginnings.contended_until_ms and self._longest_hold_s > 0
        )

    async def wait(self, table: TableKey, client: Client) -> None:
        """Return once a client may load a table."""
        here = self._tables.get(table)
        if here is not None and self._longest_hold_s and here.has_to_wait(client):
            self._traffic.count(table, loads_held=1)
            await here.wait(client)

    def note_commit(self, table: TableKey, client: Client) -> None:
        """Note that a commit to a table has come."""
        here = self._tables.get(table)
        if here is not None:
            here.beginnings.note_commit(client, _now_ms())

    def note_end(self, table: TableKey, client: Client, *, writer: str | None, has_lost: bool) -> None:
        """Note that a commit has ended.

        Args:
            table: which.
            client: whose.
            writer: the id of the snapshot that the commit adds; its client counts as a writer then.
            has_lost: whether others came first.
        """
        here = self._tables.pop(table, None)
        if here is None:
            if writer is None:
                return
            if len(self._tables) >= MOST_TABLES:
                self._forget_one()
            here = _Table(self._queues, self._holder, self._longest_hold_s)
        self._tables[table] = here  # as the one that was written to last
        here.beginnings.note_end(client, _now_ms(), writer=writer, has_lost=has_lost)
        here.wake()

    def known_of(self, table: TableKey, client: Client) -> Before:
        """Return what is known of a client that has just lost a race, but for that loss."""
        here = self._tables.get(table)
        if here is None or not self._longest_hold_s:
            return Before()
        return here.beginnings.known_of(client, _now_ms())

    def knows_pointer(self, table: TableKey) -> bool:
        """Return whether `note_pointer` was called for a table that is contended."""
        here = self._tables.get(table)
        return here is None or here.pointer_id is not None

    def note_slot(self, table: TableKey) -> None:
        """Note that a writer gets a slot of its own: the next load looks whether it is open."""
        here = self._tables.get(table)
        if here is not None:
            here.end_lease()

    def note_pointer(self, table: TableKey, pointer_id: int) -> None:
        """Note which pointer a table has: all servers share its queue."""
        here = self._tables.get(table)
        if here is not None:
            here.pointer_id = pointer_id

    async def stop(self) -> None:
        """Let all loads go on."""
        tasks = [here.task for here in self._tables.values() if here.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _forget_one(self) -> None:
        """Forget the table that was quiet the longest, of those for which no load waits."""
        idle = next((table for table, here in self._tables.items() if here.task is None), None)
        if idle is not None:
            del self._tables[idle]


class _Table:
    """One table's loads that wait, and the task that lets them go."""

    def __init__(self, queues: LandingQueues, holder: str, longest_hold_s: float) -> None:
        self.beginnings = Beginnings()
        self.pointer_id: int | None = None
        self.task: asyncio.Task[None] | None = None
        self._queues = queues
        self._holder = holder
        self._longest_hold_ms = longest_hold_s * 1000
        self._turns: dict[Client, asyncio.Future[None]] = {}
        self._woken = asyncio.Event()

    def has_to_wait(self, client: Client) -> bool:
        """Return whether a client's load has to wait; `wait` must follow then."""
        # On one connection, requests come one after the other.
        return client not in self._turns and self.beginnings.must_wait(
            client, _now_ms(), may_begin=self._may_begin
        )

    async def wait(self, client: Client) -> None:
        """Return once a client may load the table."""
        turn = self._turns[client] = asyncio.get_running_loop().create_future()
        if self.task is None:
            # Not in the context of the request that came first: the task works for all.
            self.task = asyncio.get_running_loop().create_task(self._run(), context=Context())
        self.wake()
        try:
            await wait_at_most(turn, self._longest_hold_ms / 1000)
        finally:
            del self._turns[client]
            self.beginnings.leave(client)

    def end_lease(self) -> None:
        """Let no load go on before the lease is asked for anew."""
        self.beginnings.lease_until_ms = 0.0

    def wake(self) -> None:
        """Look again who may go."""
        self._woken.set()

    @property
    def _may_begin(self) -> bool:
        return self.pointer_id is None or self.beginnings.may_begin(_now_ms())

    async def _run(self) -> None:
        try:
            while self._turns:
                self._woken.clear()
                look_s = await self._let_go()
                if self._turns:
                    await self._sleep(look_s)
        finally:
            self.task = None
            self._end(list(self._turns))

    async def _let_go(self) -> float:
        """Let those go who may; return in how many seconds to look again."""
        look_s = self._longest_hold_ms / 1000
        beginnings = self.beginnings
        beginnings.forget_late(_now_ms())
        if not self._may_begin and not beginnings.at_work:
            look_s = await self._take_lease()
        self._end(beginnings.release(_now_ms(), self._longest_hold_ms, may_begin=self._may_begin))
        if not beginnings.at_work:
            look_s = min(look_s, GATE_LOOK_S)  # The lease has ended meanwhile.
        next_ms = beginnings.next_ms(self._longest_hold_ms)
        return look_s if next_ms is None else max(0.001, min(look_s, (next_ms - _now_ms()) / 1000))

    async def _take_lease(self) -> float:
        assert self.pointer_id is not None
        beginnings, now_ms = self.beginnings, _now_ms()
        length_ms, lengthens = beginnings.lease_ms(now_ms), beginnings.may_lengthen(now_ms)
        try:
            ask = partial(
                self._ask_for_lease,
                self.pointer_id,
                length_ms,
                beginnings.course_ms,
                lengthens=lengthens,
                has_lost=beginnings.has_lost,
            )
            taken_ms, sharing = await to_thread.run_sync(ask)
        except IcetowerError as error:
            # Without the queue each server goes by what it knows itself.
            log.warning("no lease for table %s for now: %s", self.pointer_id, error)
            taken_ms, sharing = length_ms, {}
        for address, rest_ms in sharing.items():
            beginnings.note_sharing(address, _now_ms() + rest_ms)
        beginnings.note_lease(_now_ms(), taken_ms, lengthens=lengthens)
        return taken_ms / 1000 if self._may_begin else GATE_LOOK_S

    def _ask_for_lease(
        self, pointer_id: int, length_ms: int, shortest_ms: float, *, lengthens: bool, has_lost: bool
    ) -> tuple[int, dict[str, int]]:
        """Return for how many ms it has the table, and which addresses share connections."""
        for _ in range(ATTEMPTS):
            seen = self._queues.load(pointer_id)
            queue = read_queue(seen)
            taken_ms = queue.take_lease(
                self._holder, seen.now_ms, length_ms, shortest_ms, lengthens=lengthens, has_lost=has_lost
            )
            if put_queue(self._queues, pointer_id, seen, queue):
                return taken_ms, queue.sharing_at(seen.now_ms)
        return 0, {}

    def _end(self, clients: list[Client]) -> None:
        for client in clients:
            turn = self._turns.get(client)
            if turn is not None and not turn.done():
                turn.set_result(None)

    async def _sleep(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            return


def _now_ms() -> float:
    return asyncio.get_running_loop().time() * 1000
