"""The ends of files, and their sizes: enough to know a data file without reading its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from app.engine.model.ids import Location
from app.fileio.files import FileIO
from app.fileio.wanted import check_wanted


@dataclass(frozen=True, slots=True)
class Tail:
    """The last bytes of a file, and how many bytes the whole file has."""

    size_bytes: int
    content: bytes


@runtime_checkable
class TailReads(Protocol):
    """What a `FileIO` may offer: to read the end of a large file without the rest."""

    def read_tail(self, location: Location, most_bytes: int) -> Tail:
        """Return the last bytes of a file, at most so many; with 0 only its size. Raises like `FileIO.read`."""
        ...


def read_tail(files: FileIO, location: Location, most_bytes: int) -> Tail:
    """Return the last bytes of a file and its size; raises like `read`, or `GivenUp`."""
    check_wanted()
    if isinstance(files, TailReads):
        return files.read_tail(location, most_bytes)
    content = files.read(location)
    return Tail(len(content), content[max(0, len(content) - most_bytes) :])
