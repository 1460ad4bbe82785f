"""The connections of one process: how many there may be, and which has to go."""

from __future__ import annotations

import asyncio
import resource
from contextlib import suppress
from dataclasses import dataclass, field

from app.cli.server import unread
from app.cli.server.unread import UnreadAnswer

_DESCRIPTORS_FOR_CONNECTIONS = 0.5
"""The other half is for the database, files and object stores."""
_MOST_DESCRIPTORS = (1 << 16, 10_240)
"""As many are asked for, or else as many as macOS always gives."""


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """How long a client may take, in seconds."""

    head: float
    """For the head of a request."""
    body: float
    """For its body, and to take the answer; a minimum rate adds to that."""
    idle: float
    """Until its next request."""


@dataclass(slots=True)
class Connections:
    """Connections that wait for their clients, those that have waited longest first.

    Attributes:
        limits: how long each may wait.
        most: how many connections there may be, with those at work.
        most_unread_bytes: how much of answers may wait in memory for clients to read.
        count: how many there are.
    """

    limits: TimeLimits
    most: int
    most_unread_bytes: int
    count: int = 0
    _idle: dict[asyncio.Transport, None] = field(default_factory=dict)
    _arriving: dict[asyncio.Transport, None] = field(default_factory=dict)
    _unread: dict[asyncio.Transport, UnreadAnswer] = field(default_factory=dict)
    _next_look: asyncio.TimerHandle | None = None

    def add(self) -> bool:
        """Count a new connection, and return whether there is room.

        The longest idle one goes, else the one that has been sending longest, else the first that does not read.
        """
        self.count += 1
        if self.count <= self.most:
            return True
        for waiting in (self._idle, self._arriving):
            for transport in waiting:
                del waiting[transport]
                transport.abort()
                return True
        for transport, answer in self._unread.items():
            if answer.is_stalled:
                del self._unread[transport]
                answer.give_up()
                return True
        return False

    def remove(self, transport: asyncio.Transport) -> None:
        """Forget a connection that has ended."""
        self.count -= 1
        self.note_at_work(transport)

    def note_idle(self, transport: asyncio.Transport) -> None:
        """Note that nothing of a connection's next request has come."""
        self._arriving.pop(transport, None)
        self._idle[transport] = None

    def note_arriving(self, transport: asyncio.Transport) -> None:
        """Note that a part of a connection's request has come."""
        self._idle.pop(transport, None)
        self._arriving.setdefault(transport)

    def note_at_work(self, transport: asyncio.Transport) -> None:
        """Note that a connection's request has come whole."""
        self._idle.pop(transport, None)
        self._arriving.pop(transport, None)
        self._unread.pop(transport, None)

    def note_unread(self, transport: asyncio.Transport, answer: UnreadAnswer) -> None:
        """Note that a connection's client does not take all of what is sent to it."""
        self._idle.pop(transport, None)
        self._arriving.pop(transport, None)
        self._unread.setdefault(transport, answer)
        if self._next_look is None:
            self._keep_to_budget()

    def _keep_to_budget(self) -> None:
        """Give up those that do not read and hold most, as long as all hold too much."""
        self._next_look = None
        surplus = sum(answer.size_bytes for answer in self._unread.values()) - self.most_unread_bytes
        if surplus <= 0:
            return
        stalled = [
            (each.size_bytes, number, transport)
            for number, (transport, each) in enumerate(self._unread.items())
            if each.is_stalled
        ]
        for size_bytes, _, transport in sorted(stalled, reverse=True):
            self._unread.pop(transport).give_up()
            surplus -= size_bytes
            if surplus <= 0:
                return
        # The others have not had their time yet.
        loop = asyncio.get_running_loop()
        self._next_look = loop.call_later(unread.STALLED_SECONDS, self._keep_to_budget)


def raise_descriptor_limit() -> None:
    """Let this process have more file descriptors than a shell allows at first.

    That is 1,024, or 256 on macOS, for the sake of programs that use `select`. Each warehouse in an object store keeps
    several open, so some hundred of them would need more. Processes that are forked from this one have as many.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for most in _MOST_DESCRIPTORS:
        wanted = most if hard == resource.RLIM_INFINITY else min(most, hard)
        if soft == resource.RLIM_INFINITY or soft >= wanted:
            return
        with suppress(ValueError, OSError):  # macOS has a lower limit of its own
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            return


def connections_for(limits: TimeLimits, most: int, most_unread_bytes: int) -> Connections:
    """Return the connections of this process: they get at most half of its descriptors."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY:
        most = min(most, max(1, int(soft * _DESCRIPTORS_FOR_CONNECTIONS)))
    return Connections(limits, most, most_unread_bytes)
