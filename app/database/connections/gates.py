"""Gates: how many connections one warehouse or table may hold."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future
from threading import Lock
from typing import Final

from app.shares import Group, TableShares
from app.waits import wait_for

LONGEST_WAIT_S: Final = 10.0
"""How long one waits for its turn, as for room."""


class Gate:
    """Shares connections among warehouses and their tables, as `Rooms` does with threads.

    Without it, one session that holds a namespace or a few tables would stop all writes of the server.
    """

    def __init__(self, connections: int, longest_wait_s: float = LONGEST_WAIT_S) -> None:
        """Share so many connections; each waits at most so long for its turn."""
        self._longest_wait_s = longest_wait_s
        self._lock = Lock()
        self._shares = TableShares(connections)
        self._waiting: dict[Group, deque[Future[None]]] = {}

    def enter(self, group: Group) -> None:
        """Return once one more connection may be held for a group; `leave` must follow.

        Raises:
            TimeoutError: its turn did not come in time.
        """
        with self._lock:
            if self._shares.has_room(group):
                self._shares.take(group)
                return
            turn: Future[None] = Future()
            self._waiting.setdefault(group, deque()).append(turn)
        try:
            wait_for(turn, self._longest_wait_s)
        except BaseException:
            if not turn.cancel():  # its turn came at the very moment
                self.leave(group)
            raise

    def leave(self, group: Group) -> None:
        """Let the next one go on."""
        with self._lock:
            self._shares.give_back(group)
            admitted = self._admit()
        for turn in admitted:
            turn.set_result(None)

    def _admit(self) -> list[Future[None]]:
        """Let those go on that have room by now, each group in its order."""
        admitted: list[Future[None]] = []
        for group in list(self._waiting):
            queue = self._waiting.pop(group)
            while queue and (queue[0].cancelled() or self._shares.has_room(group)):
                turn = queue.popleft()
                if turn.set_running_or_notify_cancel():
                    self._shares.take(group)
                    admitted.append(turn)
            if queue:
                self._waiting[group] = queue  # behind the other groups: each comes first in turn
        return admitted
