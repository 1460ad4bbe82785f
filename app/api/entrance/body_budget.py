"""How many bytes of large request bodies one process holds at a time."""

from __future__ import annotations

import asyncio
from collections import deque

from app.errors import Unavailable

WAIT_SECONDS = 5.0
"""How long a body may wait for others to be done with before its request is refused."""
LOOK_SECONDS = 0.5
"""How often those that wait look for bodies that come slowly."""
SLOW_SECONDS = 2.0
"""How long a body may come slowly while others wait."""
FAIR_PACE = 1024 * 1024
"""Bytes a second: slower bodies make way for those that wait."""


class BodyShare:
    """What one body has of the budget, and how fast it comes."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.taken = self.received = 0
        self.began_s = loop.time()
        self.makes_way: asyncio.Future[None] = loop.create_future()
        """Done when the body is to be refused for the sake of others."""

    def is_slow(self, now_s: float) -> bool:
        """Say whether it has been coming slowly for long enough."""
        seconds = now_s - self.began_s
        return seconds >= SLOW_SECONDS and self.received < seconds * FAIR_PACE


class BodyBudget:
    """Bytes that request bodies share, taken in the order of asking."""

    def __init__(self, total_bytes: int) -> None:
        self._total = total_bytes
        self._free = total_bytes
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._coming: set[BodyShare] = set()

    async def take(self, share: BodyShare, size: int) -> None:
        """Take so many bytes for a body that is coming, once they are free.

        A body that is larger than all bodies may be together has them to itself.

        Raises:
            Unavailable: that took too long.
        """
        size = min(size, self._total - share.taken)
        if not size:
            return
        if self._waiting or self._free < size:
            loop = asyncio.get_running_loop()
            coming_s = loop.time() - share.began_s if share.taken else 0.0
            turn: asyncio.Future[None] = loop.create_future()
            self._waiting.append((size, turn))
            self._coming.discard(share)  # While it waits it cannot come: that is not its client's fault.
            try:
                await self._wait_for(turn)
            except BaseException:
                if turn.done() and not turn.cancelled():
                    self._give_back(size)
                else:
                    self._waiting.remove((size, turn))
                    self._let_in()
                raise
            share.began_s = loop.time() - coming_s
        else:
            self._free -= size
        share.taken += size
        self._coming.add(share)

    def has_come(self, share: BodyShare) -> None:
        """Note that a body is whole: it makes way for no other."""
        self._coming.discard(share)

    def let_go(self, share: BodyShare) -> None:
        """Give back what a body has taken."""
        self._coming.discard(share)
        taken, share.taken = share.taken, 0
        self._give_back(taken)

    async def _wait_for(self, turn: asyncio.Future[None]) -> None:
        loop = asyncio.get_running_loop()
        end_s = loop.time() + WAIT_SECONDS
        while not turn.done():
            left_s = end_s - loop.time()
            if left_s <= 0:
                raise Unavailable("Too many large requests come at once: send this one again")
            self._make_room(loop.time())
            await asyncio.wait([turn], timeout=min(left_s, LOOK_SECONDS))

    def _make_room(self, now_s: float) -> None:
        """Let slow bodies make way, the slowest first, until there is room for who waits longest."""
        needed = self._waiting[0][0] - self._free
        slow = sorted(
            (share for share in self._coming if share.is_slow(now_s)),
            key=lambda share: share.received / (now_s - share.began_s),
        )
        for share in slow:
            if needed <= 0:
                return
            needed -= share.taken
            if not share.makes_way.done():
                share.makes_way.set_result(None)

    def _give_back(self, size: int) -> None:
        self._free += size
        self._let_in()

    def _let_in(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._free:
            size, turn = self._waiting.popleft()
            self._free -= size
            turn.set_result(None)
