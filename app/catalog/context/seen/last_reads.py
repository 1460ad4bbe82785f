"""When tables were last read, as far as this process has seen it."""

from __future__ import annotations

import threading
from collections import OrderedDict

MOST_TABLES = 20_000
"""How many tables are kept; the one that was not read for the longest time goes first."""


class LastReads:
    """The last load or scan plan of each table; safe to share between threads."""

    def __init__(self, most_tables: int = MOST_TABLES) -> None:
        self._most_tables = most_tables
        self._lock = threading.Lock()
        self._moments: OrderedDict[int, int] = OrderedDict()

    def note(self, pointer_id: int, now_ms: int) -> None:
        """Note that a table is read now."""
        with self._lock:
            self._moments[pointer_id] = now_ms
            self._moments.move_to_end(pointer_id)
            if len(self._moments) > self._most_tables:
                self._moments.popitem(last=False)

    def find(self, pointer_id: int) -> int | None:
        """Return when a table was last read; None if this process does not know."""
        return self._moments.get(pointer_id)
