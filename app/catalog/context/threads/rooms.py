"""Room for requests that need a thread: no warehouse and no table takes all there are."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from app.errors import Unavailable
from app.shares import Group, TableShares

LONGEST_WAIT_S: Final = 10.0
"""Less than clients wait for an answer."""


class Rooms:
    """The threads of one process, shared among its warehouses and their tables.

    A warehouse may hold as many threads as are left free, a table as many as are left free of its warehouse's half.
    So a store that hangs or a row that is locked stops its own readers and writers, and all others find a thread at
    once. A request that finds none waits as a coroutine. Belongs to one event loop.
    """

    def __init__(self, threads: int, longest_wait_s: float = LONGEST_WAIT_S) -> None:
        self._longest_wait_s = longest_wait_s
        self._shares = TableShares(threads)
        self._waiting: dict[Group, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def room_for(self, warehouse: str, table: str) -> AsyncIterator[None]:
        """Hold the place of one thread during the block.

        Args:
            warehouse: the name of the warehouse that the work is for; empty for the server itself.
            table: what in it has files or a row of its own to wait for: a table, or else a kind of request.

        Raises:
            Unavailable: none became free in time; nothing was begun.
        """
        group = (warehouse, table)
        if self._shares.has_room(group):
            self._shares.take(group)
        else:
            await self._wait_for_room(group)
        try:
            yield
        finally:
            self._give_back(group)

    def has_room(self, warehouse: str, table: str) -> bool:
        """Return whether there is room now."""
        return self._shares.has_room((warehouse, table))

    async def _wait_for_room(self, group: Group) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(group, deque()).append(turn)
        try:
            async with asyncio.timeout(self._longest_wait_s):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():  # its turn came at the very moment
                self._give_back(group)
            if isinstance(error, TimeoutError):
                raise self._busy(group) from None
            raise

    def _give_back(self, group: Group) -> None:
        self._shares.give_back(group)
        if self._waiting:
            self._admit()

    def _admit(self) -> None:
        """Let those go on that have room by now, each group in its order."""
        for group in list(self._waiting):
            queue = self._waiting.pop(group)
            while queue and (queue[0].done() or self._shares.has_room(group)):
                turn = queue.popleft()
                if not turn.done():  # it was cancelled or its time was over
                    self._shares.take(group)
                    turn.set_result(None)
            if queue:
                self._waiting[group] = queue  # behind the other groups: each comes first in turn

    def _busy(self, group: Group) -> Unavailable:
        warehouse, table = group
        who = f"Warehouse {warehouse}" if warehouse else "The server"
        if self._shares.warehouse_has_room(warehouse):
            who += f", at {table},"
        return Unavailable(
            f"{who} is busy: its requests hold as many threads as they may and wait for files or the database. "
            f"This one waited {self._longest_wait_s:g} s and was not begun; send it again a little later"
        )
