"""What a client leaves unread of an answer, and for how long."""

from __future__ import annotations

import asyncio

from app.cli.server.lingering import LingeringTransport

SLOWEST = 64 * 1024
"""Bytes of a body or an answer for which its client has a second more."""
STALLED_SECONDS = 5.0
"""A client that has taken less than that rate for so long may have to make room for others."""


class UnreadAnswer:
    """Ends a connection whose client does not take what is sent to it, or takes it too slowly.

    A transport waits without end for its client to read, also after it was closed, and keeps in memory what was
    written.
    """

    def __init__(self, transport: LingeringTransport, seconds: float) -> None:
        self._transport = transport
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._began = 0.0
        self._at_first = 0
        self._moved = 0.0
        self._at_last = 0
        # An answer in parts is waited for several times.
        self._waited_before = 0.0
        self._taken_before = 0

    @property
    def is_watched(self) -> bool:
        return self._timer is not None

    @property
    def size_bytes(self) -> int:
        """How much is unread."""
        return self._transport.unread_bytes

    @property
    def is_stalled(self) -> bool:
        """Whether the client has taken next to nothing for a while."""
        waited = self._loop.time() - self._began
        return waited >= STALLED_SECONDS and self._at_first - self.size_bytes < waited * SLOWEST

    def begin(self) -> None:
        """Wait for the client to read, if that has not begun."""
        if self._timer is not None:
            return
        self._began = self._moved = self._loop.time()
        self._at_first = self._at_last = self.size_bytes
        self._timer = self._loop.call_later(self._left(), self._look)

    def end(self, *, is_whole: bool) -> None:
        """Stop to wait; the client has taken a part of the answer, or all."""
        if self._timer is None:
            return
        self._timer.cancel()
        self._timer = None
        if is_whole:
            self._waited_before, self._taken_before = 0.0, 0
        else:
            self._waited_before += self._loop.time() - self._began
            self._taken_before += self._at_first - self.size_bytes

    def _look(self) -> None:
        if self.size_bytes < self._at_last:
            self._moved = self._loop.time()
        self._at_last = self.size_bytes
        left = self._left()
        if left > 0:
            self._timer = self._loop.call_later(left, self._look)
        else:
            self.give_up()

    def _left(self) -> float:
        """Return how many seconds more the client has."""
        taken = self._taken_before + self._at_first - self._at_last
        too_slow_at = self._began - self._waited_before + self._seconds + taken / SLOWEST
        return max(0.0, min(self._moved + self._seconds, too_slow_at) - self._loop.time())

    def give_up(self) -> None:
        """End the connection."""
        self._transport.reset()
