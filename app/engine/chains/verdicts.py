"""What is known of metadata files in storage, and the verdict which is the newest."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from app.engine.model.ids import Location, TableUuid

F = TypeVar("F")


class Evidence(StrEnum):
    """What says that a file is the newest one."""

    CHAIN = "chain"
    """Every other file is named by a later one, or was passed by one."""
    LISTS = "manifest-lists"
    """The manifest lists of all other candidates are gone, as those of commits that failed are."""
    FILE_SYSTEM = "file-system-version"
    """It has the highest version of a table without a catalog, where the name is the pointer."""
    SEQUENCE = "last-sequence-number"
    UPDATED = "last-updated-ms"
    VERSION_LOG = "version-log"
    NUMBER = "file-number"
    """Only the number in its name: that of views whose logs do not say it."""


@dataclass(frozen=True, slots=True)
class FoundTable:
    """What one metadata file of a table says of its place in the table's history."""

    place: str
    """Its location in the one spelling that logs are compared in."""
    location: Location
    uuid: TableUuid
    """Empty for version 1 of the format without a uuid."""
    counters: tuple[int, ...]
    """What never goes down from commit to commit: last-sequence-number, last-column-id and so on."""
    last_updated_ms: int
    log: tuple[str, ...]
    """The places of the files before it, oldest first; as many as the table keeps."""
    manifest_list: Location | None = None
    """That of the current snapshot; None if it has none."""
    file_system_version: int | None = None
    """N of a name like `vN.metadata.json`."""

    @property
    def parent(self) -> str | None:
        """The file that it was built on; None for a first one."""
        return self.log[-1] if self.log else None


@dataclass(frozen=True, slots=True)
class FoundView:
    """What one metadata file of a view says of its place in the view's history."""

    place: str
    location: Location
    uuid: TableUuid
    version_log: tuple[tuple[int, int], ...]
    """Time in epoch milliseconds and version id of each entry, oldest first."""
    number: int | None
    """The number in the file's name."""

    @property
    def last_updated_ms(self) -> int:
        """When it got its newest query; changes without a version leave no time."""
        return self.version_log[-1][0] if self.version_log else 0


@dataclass(frozen=True, slots=True)
class Verdict(Generic[F]):
    """Which file is the newest one.

    Without `newest` it cannot be said: `reason` says why. With a `reason` beside it the file is likely, not certain.
    """

    newest: F | None
    evidence: Evidence | None = None
    reason: str | None = None
    others: tuple[Location, ...] = ()
    """The files that may be the newest instead."""
    beside: tuple[Location, ...] = ()
    """The last files of commits that landed and that it was not built on."""

    @property
    def is_certain(self) -> bool:
        """Whether no other file can be the newest, if all commits built on the one before them."""
        return self.newest is not None and self.reason is None
