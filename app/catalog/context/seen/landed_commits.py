"""Commits that landed in this process: what the database must have, unless it was set back."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location

MOST_NOTED: Final = 1_000
"""Between two looks; of more than these the newest are lost first."""


@dataclass(frozen=True, slots=True)
class LandedCommit:
    """A commit whose client has the answer that it landed."""

    identifier: TableIdentifier
    location: Location
    at_ms: int
    """When it began: its event is not older."""


class LandedCommits:
    """The commits since the last look, the newest one that was found then, and what is lost."""

    def __init__(self) -> None:
        self._noted = deque[LandedCommit](maxlen=MOST_NOTED)
        self.found: tuple[int, LandedCommit] | None = None
        """The newest commit that the database had, with the sequence of its event."""
        self.lost: set[str] = set()
        """Places of metadata files of commits that the database had, and has no more."""

    def note(self, commit: LandedCommit) -> None:
        """Note that a commit has landed."""
        self._noted.append(commit)

    def take(self) -> list[LandedCommit]:
        """Return what was noted since the last time, oldest first."""
        return [self._noted.popleft() for _ in range(len(self._noted))]

    def put_back(self, commits: list[LandedCommit]) -> None:
        """Note again what could not be looked for."""
        self._noted.extendleft(reversed(commits))
