"""What several look up at one time on Postgres goes in one statement."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from app.errors import DatabaseUnavailable
from app.lines import Lines

MOST_TOGETHER: Final = 64
LONGEST_WAIT_S: Final = 60.0
"""Longer than Postgres may take for a statement."""
Key = TypeVar("Key", bound=Hashable)
Found = TypeVar("Found")


@dataclass(slots=True)
class _Wanted(Generic[Key, Found]):
    """What one looks for, and whether it was found."""

    key: Key
    found: Found | None = None


class SharedLookups(Generic[Key, Found]):
    """Finds what those that go side by side in one thread look for, each by its key."""

    def __init__(self, find_all: Callable[[Sequence[Key]], Mapping[Key, Found]]) -> None:
        """Share what `find_all` finds for up to 64 different keys."""
        self._find_all = find_all
        self._lines = Lines[_Wanted[Key, Found]](MOST_TOGETHER, LONGEST_WAIT_S)

    def find(self, key: Key) -> Found | None:
        """Return what is found for a key; None if there is nothing.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        wanted = _Wanted[Key, Found](key)
        if not self._lines.join_companions(wanted, self._find_each):
            raise DatabaseUnavailable("The database does not answer")
        return wanted.found

    def _find_each(self, group: Sequence[_Wanted[Key, Found]]) -> None:
        found = self._find_all(list({wanted.key: None for wanted in group}))
        for wanted in group:
            wanted.found = found.get(wanted.key)
