"""What every file store promises: the FileIO protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from app.engine.model.ids import Location
from app.fileio.locations import is_instant


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file that a listing found."""

    location: Location
    size_bytes: int
    modified_ms: int


class FileIO(Protocol):
    """Whole files, written once and never changed; safe to use from many threads.

    Raises, from every method:
        InvalidLocation: this store cannot have such a location.
        FilesUnavailable: the store does not answer, refuses, or is full; a file to delete may or may not be there.
        Throttled: the store asks to slow down.
    """

    def read(self, location: Location) -> bytes:
        """Return the whole content of a file.

        A file that `write_new` has returned for is seen by every later read, from any process. Safe to retry.

        Raises:
            FileMissing: no file is there (a directory is no file).
        """
        ...

    def write_new(self, location: Location, content: bytes) -> None:
        """Write a new file durably, with the directories it needs.

        When this returns, the content is durable and visible to all. When it raises, there is no file to use: after a
        crash, or if the store stops answering half-way, there may be a partial one. So use a location only after this
        has returned. Of several writers of one location at most one succeeds on local disk and in memory. Object
        stores do not promise this: there a name must be unique by itself, with a fresh UUID.

        Not safe to retry with the same location: after an error the first call may have left the file, and
        the retry would see `FileExists`. Retry under a new name.

        Raises:
            FileExists: something is already there; it was left as it was.
        """
        ...

    def delete(self, location: Location) -> None:
        """Delete a file; one that is absent is fine.

        The checksum that Hadoop keeps beside a local file goes with it. Never deletes a directory, nor what is in it.
        Not promised to be durable: after a power failure a deleted file may be back. Safe to retry.
        """
        ...

    def delete_empty_folder(self, location: Location) -> bool:
        """Delete a folder if nothing is in it, and say whether that was done.

        False in stores that have no folders. A writer that makes its folder at the same moment succeeds.
        """
        ...

    def exists(self, location: Location) -> bool:
        """Say whether a file is there (a directory is no file).

        Never answers "no" because the store could not be asked. Safe to retry.
        """
        ...

    def find_file(self, location: Location) -> ListedFile | None:
        """Return a file's size and time as a listing has them; None if no file is there.

        Never answers None because the store could not be asked. Safe to retry.
        """
        ...

    def list_files(self, prefix: Location) -> Iterator[ListedFile]:
        """Yield each file below a location, at any depth, in no order.

        `prefix` is compared by whole segments: `…/t` and `…/t/` list `…/t/x`, and neither `…/t2/x` nor `…/t`
        itself. A listed location is the prefix as it was given, a slash, and the rest. Nothing there means
        nothing is yielded. A file that comes or goes meanwhile may or may not be seen. Safe to retry from the
        start.
        """
        ...


def is_near(files: FileIO, location: Location) -> bool:
    """Say whether a look at a file surely waits for no other machine.

    Local files may lie on a network's file system. What a `FileIO` does not say of them, their scheme does.
    """
    if not is_instant(location):
        return False
    # At each load: to check a Protocol would take longer than the look.
    ask: Callable[[Location], bool] | None = getattr(files, "is_near", None)
    return ask is None or ask(location)


def files_in(files: FileIO, folder: Location) -> Iterator[ListedFile]:
    """Yield each file of a folder itself, not of folders in it; raises like `list_files`."""
    begin = len(folder.rstrip("/")) + 1
    return (file for file in files.list_files(folder) if "/" not in file.location[begin:])
