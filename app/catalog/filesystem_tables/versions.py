"""The versions of one file-system table: which is the newest, and who creates the next."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from app.engine.model.ids import Location
from app.errors import CommitStateUnknown, FileExists, FileMissing, FilesUnavailable, IcetowerError
from app.fileio.bounded_reads import read_at_most
from app.fileio.files import FileIO
from app.fileio.locations import checksum_name, scheme_of
from app.fileio.trees import tree_of
from app.formats.metadata.version_names import HINT, version_in, version_in_hint, version_names
from app.tree_errors import TreeRefusal

log = logging.getLogger(__name__)

_HINT_BYTES = 1_000

LogReader = Callable[["TableVersion | None"], Mapping[int, int] | None]
"""Returns when each earlier version was current last, in epoch milliseconds, by a version's log.

None for a version of another table.
"""


@dataclass(frozen=True, slots=True)
class TableVersion:
    """One version of a table's metadata."""

    number: int
    location: Location


@dataclass(frozen=True, slots=True)
class TableFolder:
    """The folder of one file-system table.

    The writer that creates the file of version N + 1 has made that commit: nothing else decides.
    """

    files: FileIO
    location: Location

    @property
    def metadata(self) -> Location:
        """The folder of its metadata files."""
        return Location(f"{self.location}/metadata")

    def find_version(self, number: int) -> TableVersion | None:
        """Return a version, by the first of its three names that a file has."""
        for name in version_names(number):
            location = Location(f"{self.metadata}/{name}")
            if self.files.exists(location):
                return TableVersion(number, location)
        return None

    def find_current(self) -> TableVersion | None:
        """Return the newest version; None if there is no table.

        Begins at the hint and goes on until a version is absent, as Iceberg in Java does. A hint that cannot be read,
        or whose version is absent, is no hint: then the folder is listed. Java gives up if the version is absent.

        Raises:
            FilesUnavailable, InvalidLocation: the folder cannot be read.
        """
        hinted = self._hinted()
        found = None if hinted is None else self.find_version(hinted)
        if found is None:
            highest = max(self.listed(), default=None)
            found = None if highest is None else self.find_version(highest)
        while found is not None and (following := self.find_version(found.number + 1)) is not None:
            found = following
        return found

    def listed(self) -> list[int]:
        """Return the versions whose files are there, in order."""
        entries = tree_of(self.files, self.metadata).list_folder(self.metadata) or []
        numbers = {number for entry in entries if (number := version_in(entry.name)) and not entry.is_folder}
        return sorted(numbers)

    def is_there(self) -> bool:
        """Say whether the folder holds a table."""
        return bool(self.listed())

    def _hinted(self, tries: int = 2) -> int | None:
        try:
            content = read_at_most(self.files, Location(f"{self.metadata}/{HINT}"), _HINT_BYTES)
        except FileMissing:
            return None
        except FilesUnavailable:
            # The one file that is written over: S3 may answer a read with less or more than it has said.
            if tries == 1:
                raise
            return self._hinted(tries - 1)
        return None if content is None else version_in_hint(content)

    def create(
        self, location: Location, content: bytes, log_of: LogReader, has_base: Callable[[], bool]
    ) -> bool:
        """Create the file of a version; False if another writer was first. At most one writer succeeds.

        That a name was free does not say it all, so the folder is looked at again afterwards:

        - A version has three names, and a writer of another codec may have created it under another one. The file that
          readers ask for first is the version.
        - A slow writer may come when its version has been, and was deleted with the old ones. Then a later version is
          there, whose log has another moment for this one.
        - A slow writer may come when the table was dropped, and perhaps another one made in its folder. Then what it
          builds on is not there, and no later version has taken that away.

        What turns out not to be the version is deleted again.

        Args:
            location: of the version, under one of its names.
            content: of the file, packed if its name says so.
            log_of: returns the metadata log of a version, and `None` for what is being written.
            has_base: says whether what the version builds on is there as it was.

        Raises:
            CommitStateUnknown: it is not known whether it was created, or whether it counts.
            FileMissing: the folder is gone.
            TreeRefusal: the store cannot promise that at most one writer succeeds; or a version is missing.
            FilesUnavailable: nothing was created.
        """
        number = version_in(location)
        assert number is not None
        if max(self.listed(), default=0) >= number:
            current = self.find_current()
            if current is None or current.number != number - 1:
                return False  # Others have gone on meanwhile, and perhaps deleted old versions.
            raise TreeRefusal(
                f"Cannot commit: {self.metadata} has no version {number}, but a later one; put back what is missing, "
                "or take away what does not belong there"
            )
        self._forget_checksum(location)
        try:
            tree_of(self.files, location).write_once(location, content)
        except FileExists:
            # A proxy, or a network file system, may have sent our own request twice.
            if not self._is_ours(location, content):
                return False
        except CommitStateUnknown:
            if not self._holds(location, content):
                raise
        return self._counts(TableVersion(number, location), content, log_of, has_base)

    def has_created(
        self, location: Location, content: bytes, log_of: LogReader, has_base: Callable[[], bool]
    ) -> bool:
        """Say whether a version is there with this content, and counts; False if that is not known.

        That the file is there is not enough: it may have come too late.
        """
        number = version_in(location)
        assert number is not None
        if not self._holds(location, content):
            return False
        try:
            return self._counts(TableVersion(number, location), content, log_of, has_base)
        except CommitStateUnknown:
            return False

    def _counts(
        self, created: TableVersion, content: bytes, log_of: LogReader, has_base: Callable[[], bool]
    ) -> bool:
        """Say whether readers find a version that was just created, or later ones build on it."""
        try:
            is_it = self._is_version(created, log_of, has_base)
            if not is_it:
                log.warning("%s was created too late, or beside one that readers prefer", created.location)
                if self._holds(created.location, content):
                    self.files.delete(created.location)
        except CommitStateUnknown:
            raise
        except IcetowerError as error:
            # It may well count: a client that hears of a failure deletes the files that it names.
            raise CommitStateUnknown(f"Cannot tell whether {created.location} counts: {error}") from error
        return is_it

    def _is_version(self, created: TableVersion, log_of: LogReader, has_base: Callable[[], bool]) -> bool:
        first, later = self.find_version(created.number), self._later(created.number)
        if later is None:
            if first is not None and first.location != created.location:
                return False
            if has_base():
                return True
            # It may have come just now, and what we built on was deleted.
            later = self._later(created.number)
            if later is None:
                return False
        moments = log_of(later)
        if moments is None:
            return False
        moment = moments.get(created.number)
        if moment is None:
            raise CommitStateUnknown(
                f"Cannot tell whether {created.location} counts: there are later versions, whose log does not go "
                "back so far. Nothing was deleted"
            )
        return moment == (log_of(None) or {}).get(created.number)

    def _later(self, number: int) -> TableVersion | None:
        """Return the newest version if it is a later one."""
        current = self.find_current() if max(self.listed(), default=0) > number else None
        return current if current is not None and current.number > number else None

    def _holds(self, location: Location, content: bytes) -> bool:
        try:
            return read_at_most(self.files, location, len(content)) == content
        except IcetowerError:
            return False

    def _is_ours(self, location: Location, content: bytes) -> bool:
        """Say whether a version is what was to be written; raises `CommitStateUnknown`."""
        try:
            return read_at_most(self.files, location, len(content)) == content
        except FileMissing:
            return False
        except IcetowerError as error:
            raise CommitStateUnknown(f"Cannot tell who has created {location}: {error}") from error

    def write_hint(self, number: int) -> None:
        """Let readers begin at a version. Exact digits: PyIceberg and DuckDB put the text into a name."""
        location = Location(f"{self.metadata}/{HINT}")
        try:
            hinted = self._hinted()
            if hinted is not None and hinted > number and self.find_version(hinted) is not None:
                return
            self._forget_checksum(location)
            tree_of(self.files, location).replace(location, str(number).encode())
        except IcetowerError as error:
            # Readers go on from an older hint; the next commit writes it again.
            log.warning("could not write %s: %s", location, error)

    def _forget_checksum(self, location: Location) -> None:
        """Delete the checksum that Hadoop keeps beside a local file: it is of an earlier one."""
        if scheme_of(location) == "file":
            folder, _, name = location.rpartition("/")
            self.files.delete(Location(f"{folder}/{checksum_name(name)}"))
