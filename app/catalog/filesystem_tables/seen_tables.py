"""Which file-system tables this process has seen lately, by the ids of their pointers."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final

from app.engine.model.identifiers import TableIdentifier

MOST_TABLES: Final = 10_000


class SeenTables:
    """Names by id: an id is made of a folder, and does not lead back to it."""

    def __init__(self) -> None:
        self._names: OrderedDict[tuple[int, int], TableIdentifier] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, pointer_id: int, warehouse_id: int, identifier: TableIdentifier) -> None:
        """Remember a table."""
        key = pointer_id, warehouse_id
        with self._lock:
            self._names[key] = identifier
            self._names.move_to_end(key)
            if len(self._names) > MOST_TABLES:
                self._names.popitem(last=False)

    def find(self, pointer_id: int, warehouse_id: int) -> TableIdentifier | None:
        """Return the name of a table; None if it was not seen lately."""
        with self._lock:
            return self._names.get((pointer_id, warehouse_id))
