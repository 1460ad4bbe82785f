"""How many bytes of large request bodies one process holds at a time."""

from __future__ import annotations

import asyncio
from collections import deque

from app.errors import Unavailable

WAIT_SECONDS = 5.0
"""How long a body may wait for others to be done with before its request is refused."""


class BodyBudget:
    """Bytes that request bodies share, taken in the order of asking."""

    def __init__(self, total_bytes: int) -> None:
        self._total = total_bytes
        self._free = total_bytes
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def take(self, size: int) -> int:
        """Wait until so many bytes are free, or all if that is less, and take them.

        Raises:
            Unavailable: that took too long.
        """
        size = min(size, self._total)
        if self._waiting or self._free < size:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((size, turn))
            try:
                await asyncio.wait_for(turn, WAIT_SECONDS)
            except BaseException as error:
                if turn.done() and not turn.cancelled():
                    self.give_back(size)
                else:
                    self._waiting.remove((size, turn))
                    self._let_in()
                if isinstance(error, TimeoutError):
                    raise Unavailable("Too many large requests come at once: send this one again") from error
                raise
        else:
            self._free -= size
        return size

    def give_back(self, size: int) -> None:
        """Give back what was taken."""
        self._free += size
        self._let_in()

    def _let_in(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._free:
            size, turn = self._waiting.popleft()
            self._free -= size
            turn.set_result(None)
