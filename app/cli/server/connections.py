"""The connections of one process: how many there may be, and which has to go."""

from __future__ import annotations

import asyncio
import resource
from dataclasses import dataclass, field

_DESCRIPTORS_FOR_CONNECTIONS = 0.5
"""The other half is for the database, files and object stores."""


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """How long a client may take, in seconds."""

    head: float
    """For the head of a request."""
    body: float
    """For its body; a minimum rate adds to that."""
    idle: float
    """Until its next request."""


@dataclass(slots=True)
class Connections:
    """Connections that wait for their clients, those that have waited longest first.

    Attributes:
        limits: how long each may wait.
        most: how many connections there may be, with those at work.
        count: how many there are.
    """

    limits: TimeLimits
    most: int
    count: int = 0
    _idle: dict[asyncio.Transport, None] = field(default_factory=dict)
    _arriving: dict[asyncio.Transport, None] = field(default_factory=dict)

    def add(self) -> bool:
        """Count a new connection, and return whether there is room; the longest idle one goes."""
        self.count += 1
        if self.count <= self.most:
            return True
        for waiting in (self._idle, self._arriving):
            for transport in waiting:
                del waiting[transport]
                transport.abort()
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


def connections_for(limits: TimeLimits, most: int) -> Connections:
    """Return the connections of this process: they get at most half of its descriptors."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY:
        most = min(most, max(1, int(soft * _DESCRIPTORS_FOR_CONNECTIONS)))
    return Connections(limits, most)
