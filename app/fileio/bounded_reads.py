"""Reading a file only if it is small enough, for those who may not spend more than so many bytes."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from app.engine.model.ids import Location
from app.fileio.files import FileIO


@runtime_checkable
class BoundedReads(Protocol):
    """What a `FileIO` may offer besides: a look at a file's size before it is read, in the same request."""

    def read_at_most(self, location: Location, max_bytes: int) -> bytes | None:
        """Return the whole content of a file, or None, having read nothing of it, when it is larger than `max_bytes`.

        Raises:
            FileMissing: no file is there (a directory is no file).
            InvalidLocation: this store cannot have such a location.
            FilesUnavailable: the store does not answer, or refuses.
            Throttled: the store asks to slow down.
        """
        ...


def read_at_most(files: FileIO, location: Location, max_bytes: int) -> bytes | None:
    """Return the whole content of a file, or None when it is larger; a store that cannot look first reads it anyway.

    Raises:
        FileMissing: no file is there.
        InvalidLocation: the store cannot have such a location.
        FilesUnavailable: the store does not answer, or refuses.
    """
    if isinstance(files, BoundedReads):
        return files.read_at_most(location, max_bytes)
    content = files.read(location)
    return content if len(content) <= max_bytes else None
