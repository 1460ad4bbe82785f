"""Commits that landed in this process: what the database must have, unless it was set back."""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Final

from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location, TableUuid

MOST_NOTED: Final = 10_000
"""Between two looks; of more than these the newest are left out: the others are from before a failover."""
_MOST_TABLES: Final = 10_000


@dataclass(frozen=True, slots=True)
class LandedCommit:
    """A commit whose client has the answer that it landed."""

    identifier: TableIdentifier
    uuid: TableUuid
    location: Location
    at_ms: int
    """When it began: its event is not older."""

    @property
    def table(self) -> str:
        """Its uuid, which stays if it is renamed; without one, the folder of its metadata files."""
        return self.uuid or self.location.rpartition("/")[0]


class LandedCommits:
    """The commits since the last look, the newest ones that were found then, and what is lost."""

    def __init__(self) -> None:
        self._noted = deque[LandedCommit](maxlen=MOST_NOTED)
        self.found = OrderedDict[str, tuple[int, LandedCommit]]()
        """The newest commit to each table that the database had, with the sequence of its event."""
        self.lost: set[str] = set()
        """Places of metadata files of commits that the database had, and has no more."""

    def note(self, commit: LandedCommit) -> None:
        """Note that a commit has landed."""
        if len(self._noted) < MOST_NOTED:
            self._noted.append(commit)

    def take(self) -> list[LandedCommit]:
        """Return what was noted since the last time, oldest first."""
        return [self._noted.popleft() for _ in range(len(self._noted))]

    def keep(self, commit: LandedCommit, sequence: int) -> None:
        """Note that the database has a commit; the one that was found longest ago makes room."""
        self.found[commit.table] = sequence, commit
        self.found.move_to_end(commit.table)
        if len(self.found) > _MOST_TABLES:
            self.found.popitem(last=False)

    def put_back(self, commits: list[LandedCommit]) -> None:
        """Note again what could not be looked for."""
        self._noted.extendleft(reversed(commits))
