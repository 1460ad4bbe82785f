"""Files in object stores, through pyarrow's file systems."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import fs

from app.engine.model.ids import Location
from app.errors import FileExists, FileMissing, InvalidLocation
from app.fileio.failures import object_store_failure
from app.fileio.files import ListedFile
from app.fileio.tails import Tail
from app.fileio.trees import FolderEntry

UUID_IN_NAME = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}[^/]*\Z", re.IGNORECASE)
_FAILURES = (OSError, ValueError, pa.ArrowException)

# pyarrow writes in threads of its own, 8 for all stores together: as many hanging writes would stop those of every
# other store. They are made when they are needed.
pa.set_io_thread_count(256)


_FEW_FOLDERS = 256
_LEVELS = 2
"""A table's places, and `data` and `metadata` in them; each folder in those is listed at once."""


def _listed(location: Location, entry: Any) -> ListedFile:
    return ListedFile(location, int(entry.size), (entry.mtime_ns or 0) // 1_000_000)


def _ignore(_size_bytes: int) -> None:
    return None


def check_names_file(location: Location) -> None:
    """Refuse the location of a bucket or a folder; raises `InvalidLocation`."""
    if location.endswith("/") or location.count("/") < 3:
        raise InvalidLocation(f"Not a file: {location}")


@dataclass(frozen=True, slots=True)
class Place:
    """A location as pyarrow wants it: a file system and a path in it, both untyped there."""

    filesystem: Any
    path: str


def _opened(place: Place) -> Any:
    """Open a file to read it.

    If it seems to be empty, look again: pyarrow takes the head of an answer for whole that ended before the size.
    """
    stream = place.filesystem.open_input_file(place.path)
    if stream.size():
        return stream
    stream.close()
    return place.filesystem.open_input_file(place.path)


def _info_of(place: Place) -> Any:
    """Return what the store says of a file; likewise."""
    entry = place.filesystem.get_file_info(place.path)
    if entry.type == fs.FileType.File and not (entry.size and entry.mtime_ns):
        entry = place.filesystem.get_file_info(place.path)
    return entry


def _read_whole(stream: Any, offset: int, size_bytes: int) -> bytes:
    """Return bytes of a file, all of which the store has sent.

    If a connection to S3 ends in the head of an answer, pyarrow (26) hands out what happened to be in the memory,
    such as another file. So the last byte has a value before: it was written if it has another one afterwards. If it
    has the same, either may be true, and another value is tried.
    """
    if not size_bytes:
        return b""
    for unwritten in (0, 255, 0, 255):
        content = bytearray(size_bytes)
        content[-1] = unwritten
        stream.seek(offset)
        if stream.readinto(content) == size_bytes and content[-1] != unwritten:
            return bytes(content)
    raise OSError("The answer ended early")


class ObjectStore:
    """A FileIO over pyarrow.

    New files need names that are unique by themselves: pyarrow cannot ask a store to write only if nothing is there
    (no `If-None-Match` for S3, no generation match for GCS; apache/arrow#44281), and a look before the write leaves
    a gap. So a look can only catch mistakes, and costs one more round trip on the way of every commit. A name that
    carries a UUID is unique and written without a look. Any other name is looked up first.

    Args:
        locate: finds the place of a location; raises InvalidLocation, InvalidSetting or what pyarrow raises.
        secrets: never shown in an error.
        lists_folders: a listing of a folder alone names the folders in it.
    """

    def __init__(
        self,
        locate: Callable[[Location], Place],
        *,
        secrets: tuple[str, ...] = (),
        lists_folders: bool = True,
    ) -> None:
        self._locate = locate
        self._secrets = secrets
        self._lists_folders = lists_folders

    def read(self, location: Location, expect: Callable[[int], None] = _ignore) -> bytes:
        content = self.read_at_most(location, sys.maxsize, expect)
        assert content is not None
        return content

    def read_at_most(
        self, location: Location, max_bytes: int, expect: Callable[[int], None] = _ignore
    ) -> bytes | None:
        """Return a file's content, or None if it is larger; `expect` hears its size before."""
        with self._translated("read", location):
            place = self._file_at(location)
            try:
                # Not `open_input_stream`: only a file that knows its size is read in one request.
                with _opened(place) as stream:
                    size_bytes = int(stream.size())
                    if size_bytes > max_bytes:
                        return None
                    expect(size_bytes)
                    return _read_whole(stream, 0, size_bytes)
            except FileNotFoundError as error:
                raise FileMissing(location) from error

    def read_tail(self, location: Location, most_bytes: int, expect: Callable[[int], None] = _ignore) -> Tail:
        """Return the last bytes of a file and its size; `expect` hears how many bytes are read."""
        with self._translated("read", location):
            place = self._file_at(location)
            try:
                with _opened(place) as stream:
                    size_bytes = int(stream.size())
                    wanted = min(size_bytes, most_bytes)
                    expect(wanted)
                    content = _read_whole(stream, size_bytes - wanted, wanted)
            except FileNotFoundError as error:
                raise FileMissing(location) from error
        return Tail(size_bytes, content)

    def write_new(self, location: Location, content: bytes) -> None:
        if not UUID_IN_NAME.search(location) and self.exists(location):
            raise FileExists(location)
        with self._translated("write", location):
            place = self._file_at(location)
            # Without compression=None, pyarrow would compress what is called `….gz` once more.
            with place.filesystem.open_output_stream(place.path, compression=None) as stream:
                stream.write(content)

    def delete(self, location: Location) -> None:
        # On S3 pyarrow looks for the file first, and afterwards puts an empty object in the place of its directory;
        # listings leave those out.
        with self._translated("delete", location), contextlib.suppress(FileNotFoundError):
            place = self._file_at(location)
            place.filesystem.delete_file(place.path)

    def delete_empty_folder(self, location: Location) -> bool:  # noqa: ARG002 - there are no folders
        return False

    def exists(self, location: Location) -> bool:
        with self._translated("read", location):
            place = self._file_at(location)
            try:
                # Not `get_file_info`: on absence it asks once more, whether this is a directory.
                place.filesystem.open_input_file(place.path).close()
            except FileNotFoundError:
                return False
        return True

    def find_file(self, location: Location) -> ListedFile | None:
        with self._translated("read", location):
            entry = _info_of(self._file_at(location))
        return _listed(location, entry) if entry.type == fs.FileType.File else None

    def replace(self, location: Location, content: bytes) -> None:
        """Put an object, in the place of one that may be there; raises like `FileTree.replace`."""
        with self._translated("write", location):
            place = self._file_at(location)
            with place.filesystem.open_output_stream(place.path, compression=None) as stream:
                stream.write(content)

    def list_folder(self, location: Location) -> list[FolderEntry] | None:
        """Return what a folder holds; raises like `FileTree.list_folder`."""
        folder = Location(location.rstrip("/"))
        found = [
            FolderEntry(where.rpartition("/")[2], entry.type == fs.FileType.Directory)
            for where, entry in self._entries(folder, recursive=False)
        ]
        if not found:
            with self._translated("list", folder):
                place = self._locate(folder)
                if place.filesystem.get_file_info(place.path.rstrip("/")).type != fs.FileType.Directory:
                    return None
        return sorted(found, key=lambda entry: entry.name)

    def create_folder(self, location: Location) -> None:
        """Put the empty object that stands for a folder; raises like `FileTree.create_folder`."""
        with self._translated("write", location):
            place = self._locate(Location(location.rstrip("/")))
            place.filesystem.create_dir(place.path, recursive=True)

    def list_files(self, prefix: Location) -> Iterator[ListedFile]:
        return self._listed_below(Location(prefix.rstrip("/")), 0 if self._lists_folders else _LEVELS)

    def _listed_below(self, folder: Location, depth: int) -> Iterator[ListedFile]:
        """Yield the files below a folder.

        pyarrow hands out all of a listing at once. So the upper levels are listed folder by folder, as long as a
        folder has few others in it, and memory holds what is below one of them.
        """
        found = [] if depth == _LEVELS else self._entries(folder, recursive=False)
        folders = [location for location, entry in found if entry.type == fs.FileType.Directory]
        is_together = len(folders) > _FEW_FOLDERS or not all(self._has_place(below) for below in folders)
        if depth == _LEVELS or is_together or folder in folders:
            found, folders = self._entries(folder, recursive=True), []
        for location, entry in found:
            if entry.type == fs.FileType.File:
                yield _listed(location, entry)
        for below in folders:
            yield from self._listed_below(below, depth + 1)

    def _has_place(self, folder: Location) -> bool:
        """Return whether a folder can be asked for.

        Objects may have any name, and so be in any folder.
        """
        try:
            self._locate(folder)
        except InvalidLocation:
            return False
        return True

    def _entries(self, folder: Location, *, recursive: bool) -> list[tuple[Location, Any]]:
        with self._translated("list", folder):
            place = self._locate(folder)
            directory = place.path.rstrip("/")
            selector = fs.FileSelector(directory, recursive=recursive, allow_not_found=True)
            # If there seems to be nothing, look again, as for a file.
            found = place.filesystem.get_file_info(selector) or place.filesystem.get_file_info(selector)
        return [(Location(folder + entry.path.rstrip("/")[len(directory) :]), entry) for entry in found]

    def _file_at(self, location: Location) -> Place:
        check_names_file(location)
        return self._locate(location)

    @contextlib.contextmanager
    def _translated(self, verb: str, location: Location) -> Iterator[None]:
        try:
            yield
        except _FAILURES as error:
            raise object_store_failure(verb, location, error, self._secrets) from error
