"""Metadata files of commits that did not land, and that could not be deleted then."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Final

from app.engine.model.ids import Location

MOST_NOTED: Final = 10_000
"""Of more than these the newest are left out; sweeps find them."""


@dataclass(frozen=True, slots=True)
class LeftFile:
    """A metadata file that no pointer has come to, because the database or the store went away."""

    location: Location
    warehouse_id: int
    pointer_id: int
    """Of the table or view that the commit was to."""
    at_ms: int
    """When it was left, by the server's clock."""


class LeftMetadata:
    """The files that wait for the database or the store; safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left: list[LeftFile] = []

    def note(self, *left: LeftFile) -> None:
        """Note files that are to go."""
        with self._lock:
            self._left += left[: MOST_NOTED - len(self._left)]

    def take(self) -> list[LeftFile]:
        """Return all that are noted, which are not noted any more."""
        with self._lock:
            taken, self._left = self._left, []
        return taken
