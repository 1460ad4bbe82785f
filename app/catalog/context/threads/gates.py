"""Gates: how many that go side by side may each hold a connection and wait for a lock."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from threading import Lock

from app.catalog.context.threads.shares import Group, TableShares
from app.catalog.context.threads.side_by_side import Start

_Waiting = tuple[Group, Callable[[], None], "Future[None]"]


class Gate:
    """Shares connections among warehouses and their tables, as `Rooms` does with threads.

    A convoy holds one thread, and each in it may wait for a lock of its own: without a gate, one session that holds a
    namespace would stop all writes of the server. May be used in any thread.
    """

    def __init__(self, start: Start, connections: int) -> None:
        """Begin work by `start`, in no more places than there are connections."""
        self._start = start
        self._lock = Lock()
        self._shares = TableShares(connections)
        self._waiting: dict[Group, deque[_Waiting]] = {}

    def start(self, warehouse: str, table: str, work: Callable[[], None]) -> Future[None]:
        """Begin work as soon as there is room; it is not begun if its future is cancelled before."""
        done: Future[None] = Future()
        group = (warehouse, table)
        with self._lock:
            if not self._shares.has_room(group):
                self._waiting.setdefault(group, deque()).append((group, work, done))
                return done
            self._shares.take(group)
        self._start(partial(self._work, [(group, work, done)]))
        return done

    def _work(self, admitted: list[_Waiting]) -> None:
        """Do work, and then what waited for its place. It is taken out of the list, which its thread keeps."""
        while admitted:
            group, work, done = admitted.pop()
            while admitted:
                self._start(partial(self._work, [admitted.pop()]))
            _settle(work, done)
            del work, done  # an error that it has would lead back to this frame
            with self._lock:
                self._shares.give_back(group)
                admitted += self._admit()

    def _admit(self) -> list[_Waiting]:
        """Let those go on that have room by now, each group in its order."""
        admitted: list[_Waiting] = []
        for group in list(self._waiting):
            queue = self._waiting.pop(group)
            while queue and (queue[0][2].cancelled() or self._shares.has_room(group)):
                first = queue.popleft()
                if not first[2].cancelled():
                    self._shares.take(group)
                    admitted.append(first)
            if queue:
                self._waiting[group] = queue  # behind the other groups: each comes first in turn
        return admitted


def _settle(work: Callable[[], None], done: Future[None]) -> None:
    if not done.set_running_or_notify_cancel():
        return
    try:
        work()
    except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
        done.set_exception(error)
        del done  # its error would lead back to this frame
    else:
        done.set_result(None)
