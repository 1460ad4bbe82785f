"""Reading a file only if it is small enough."""

from __future__ import annotations

from typing import Protocol, cast, runtime_checkable

from app.engine.model.ids import Location
from app.fileio.files import FileIO
from app.fileio.wanted import check_wanted


@runtime_checkable
class BoundedReads(Protocol):
    """What a `FileIO` may offer: to check a file's size in the request that reads it."""

    def read_at_most(self, location: Location, max_bytes: int) -> bytes | None:
        """Return a file's content, or None if it is larger; raises like `FileIO.read`."""
        ...


def read_at_most(files: FileIO, location: Location, max_bytes: int) -> bytes | None:
    """Return a file's content, or None if it is larger; raises like `read`, or `GivenUp`."""
    check_wanted()
    # To ask the object instead of its class takes as long as to read a small file.
    if issubclass(type(files), BoundedReads):
        return cast(BoundedReads, files).read_at_most(location, max_bytes)
    content = files.read(location)
    return content if len(content) <= max_bytes else None
