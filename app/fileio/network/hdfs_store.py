"""Files in HDFS, over WebHDFS: a FileIO and a tree. A rename decides who was first."""

from __future__ import annotations

import contextlib
import secrets as chance
import sys
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any, Final

from app.engine.model.ids import Location
from app.errors import CommitStateUnknown, FileExists, FileMissing, FilesUnavailable, InvalidLocation
from app.fileio.failures import object_store_failure
from app.fileio.files import ListedFile
from app.fileio.locations import is_key
from app.fileio.network.hdfs_calls import HdfsCalls, HdfsRefusal
from app.fileio.network.object_store import UUID_IN_NAME
from app.fileio.tails import Tail
from app.fileio.trees import FolderEntry

_TAKEN: Final = frozenset(
    {"FileAlreadyExistsException", "AlreadyBeingCreatedException", "RecoveryInProgressException"}
)
_BAD_PATH: Final = frozenset({"InvalidPathException", "PathComponentTooLongException"})
_NO_ACCESS: Final = frozenset({"AccessControlException", "SecurityException", "InvalidToken"})


def _ignore(_size_bytes: int) -> None:
    return None


class HdfsStore:
    """A FileIO and a FileTree over WebHDFS.

    Whole files appear under their names by a rename, which the name node does in one step and refuses if something
    has the name. So of many writers one wins, Iceberg in Java among them: it commits in the same way. Only files whose
    names are unique by themselves are written in place. A file is as durable as the cluster makes it: its replicas
    are written, and synced to disk where `dfs.datanode.synconclose` is set. Deleted files do not go to `.Trash`.

    Args:
        calls: requests to the cluster.
        path_of: returns the path in a location, relative to the root; raises InvalidLocation.
        secrets: never shown in an error.
    """

    def __init__(
        self, calls: HdfsCalls, path_of: Callable[[Location], str], *, secrets: tuple[str, ...] = ()
    ) -> None:
        self._calls = calls
        self._path_of = path_of
        self._secrets = secrets

    def read(self, location: Location, expect: Callable[[int], None] = _ignore) -> bytes:
        content = self.read_at_most(location, sys.maxsize, expect)
        assert content is not None
        return content

    def read_at_most(
        self, location: Location, max_bytes: int, expect: Callable[[int], None] = _ignore
    ) -> bytes | None:
        """Return a file's content, or None if it is larger; `expect` hears its size before."""
        path = self._file_at(location)
        with self._translated("read", location), self._missing(location), self._calls.opened(path) as opened:
            size_bytes, pieces = opened
            if size_bytes is None:
                size_bytes = self._size(location, path)
            if size_bytes > max_bytes:
                return None
            expect(size_bytes)
            return _whole(pieces, size_bytes)

    def read_tail(self, location: Location, most_bytes: int, expect: Callable[[int], None] = _ignore) -> Tail:
        """Return the last bytes of a file and its size; `expect` hears how many bytes are read."""
        path = self._file_at(location)
        with self._translated("read", location), self._missing(location):
            size_bytes = self._size(location, path)
            wanted = min(size_bytes, most_bytes)
            if not wanted:
                return Tail(size_bytes, b"")
            expect(wanted)
            span = {"offset": str(size_bytes - wanted), "length": str(wanted)}
            with self._calls.opened(path, **span) as (_, pieces):
                return Tail(size_bytes, _whole(pieces, wanted))

    def write_new(self, location: Location, content: bytes) -> None:
        path = self._file_at(location)
        if not UUID_IN_NAME.search(location):
            try:
                self._create_by_rename(location, path, content, makes_folders=True)
            except (CommitStateUnknown, FileMissing) as error:  # no answer, or its folder was deleted again
                raise FilesUnavailable(f"Cannot write {location}: {error}") from error
            return
        with self._translated("write", location):
            try:
                self._calls.create(path, content, overwrite="false")
            except HdfsRefusal as error:
                if error.kind in _TAKEN:
                    raise FileExists(location) from error
                self._remove_quietly(path)  # the name is ours alone
                raise
            except OSError:
                self._remove_quietly(path)
                raise

    def write_once(self, location: Location, content: bytes) -> None:
        self._create_by_rename(location, self._file_at(location), content, makes_folders=False)

    def check_writes_once(self, location: Location) -> None:
        """Do nothing: the rename of a name node is what HDFS itself relies on."""

    def replace(self, location: Location, content: bytes) -> None:
        path = self._file_at(location)
        with self._translated("write", location):
            temporary = self._write_beside(location, path, content)
            try:
                answer = self._rename(temporary, path, "OVERWRITE")
                if answer.get("boolean") is False:
                    # A gateway that does not know the option. So does Iceberg in Java: for a moment there is none.
                    self._calls.ask("DELETE", path, "DELETE")
                    self._rename(temporary, path, "NONE")
            except OSError:
                self._remove_quietly(temporary)
                raise

    def delete(self, location: Location) -> None:
        path = self._file_at(location)
        with self._translated("delete", location):
            # WebHDFS deletes empty folders in the same way.
            found = self._find_status(path)
            if found is not None and found["type"] != "DIRECTORY":
                self._calls.ask("DELETE", path, "DELETE", recursive="false")

    def delete_empty_folder(self, location: Location) -> bool:
        path = self._folder_at(location)
        with self._translated("delete", location):
            found = self._find_status(path)
            if found is None or found["type"] != "DIRECTORY":
                return False
            try:
                return bool(self._calls.ask("DELETE", path, "DELETE", recursive="false").get("boolean"))
            except HdfsRefusal as error:
                if error.kind != "PathIsNotEmptyDirectoryException":
                    raise
                return False

    def exists(self, location: Location) -> bool:
        return self.find_file(location) is not None

    def find_file(self, location: Location) -> ListedFile | None:
        path = self._file_at(location)
        with self._translated("read", location):
            found = self._find_status(path)
        return _listed(location, found) if found is not None and found["type"] == "FILE" else None

    def list_files(self, prefix: Location) -> Iterator[ListedFile]:
        start = Location(prefix.rstrip("/"))
        unread = [""]
        while unread:
            folder = unread.pop()
            for entry in self._entries(Location(start + folder)) or ():
                name = f"{folder}/{entry['pathSuffix']}"
                if entry["type"] == "DIRECTORY":
                    unread.append(name)
                elif entry["type"] == "FILE":
                    yield _listed(Location(start + name), entry)

    def list_folder(self, location: Location) -> list[FolderEntry] | None:
        found = self._entries(location)
        if found is None:
            return None
        entries = (
            FolderEntry(entry["pathSuffix"], entry["type"] == "DIRECTORY")
            for entry in found
            if entry["type"] in {"FILE", "DIRECTORY"}
        )
        return sorted(entries, key=lambda entry: entry.name)

    def create_folder(self, location: Location) -> None:
        path = self._folder_at(location)
        with self._translated("write", location):
            if not self._calls.ask("PUT", path, "MKDIRS").get("boolean"):
                raise OSError("the folder was not made")

    def remove_folder(self, location: Location) -> bool:
        return self.delete_empty_folder(location) or self.list_folder(location) is None

    def _create_by_rename(
        self, location: Location, path: str, content: bytes, *, makes_folders: bool
    ) -> None:
        """Create a file whole, by the rename of one beside it; raises as `FileTree.write_once`."""
        with self._translated("write", location):
            temporary = self._write_beside(location, path, content, makes_folders=makes_folders)
            try:
                answer = self._rename(temporary, path, "NONE")
                if answer.get("boolean") is False:
                    raise HdfsRefusal("", 200, "it was not renamed")
            except OSError as error:
                self._settle(location, path, temporary, content, error)
                return
            if answer:
                self._check_place(location, path, temporary)

    def _check_place(self, location: Location, path: str, temporary: str) -> None:
        """Check where a gateway that does not know the option has put a file."""
        try:
            found = self._find_status(path) or {}
        except (OSError, LookupError, TypeError) as error:
            raise CommitStateUnknown(f"Cannot tell whether {location} was written: {error}") from error
        if found.get("type") == "DIRECTORY":
            self._remove_quietly(f"{path}/{temporary.rpartition('/')[2]}")
            raise FileExists(location)
        if not found:
            # HttpFS leaves out blanks at the end of a name.
            raise CommitStateUnknown(f"Cannot tell where {location} was written: it is not there")

    def _rename(self, source: str, destination: str, option: str) -> dict[str, Any]:
        # With an option the name node says why not, and never moves a file into a folder that has the name.
        return self._calls.ask(
            "PUT", source, "RENAME", may_repeat=False, destination=destination, renameoptions=option
        )

    def _settle(
        self, location: Location, path: str, temporary: str, content: bytes, failure: OSError
    ) -> None:
        """Return if a rename has happened after all; else raise what has become of it.

        Deleting the temporary file settles it: what was deleted was not renamed, and cannot be any more.
        """
        try:
            is_deleted = self._calls.ask("DELETE", temporary, "DELETE", may_repeat=False).get("boolean")
        except OSError:
            is_deleted = False
        if is_deleted and isinstance(failure, HdfsRefusal) and failure.kind in _TAKEN:
            raise FileExists(location) from failure
        try:
            found = self._content(path, len(content)) if self._find_status(path) else None
            is_folder_gone = found is None and self._find_status(path.rpartition("/")[0] or "/") is None
        except (OSError, LookupError, TypeError) as error:
            if is_deleted:
                raise failure from error
            raise CommitStateUnknown(f"Cannot tell whether {location} was written: {failure}") from error
        if found == content and not is_deleted:
            return
        if found is not None:
            raise FileExists(location) from failure
        if is_deleted:
            raise failure
        if is_folder_gone:
            raise FileMissing(location) from failure
        raise CommitStateUnknown(f"Cannot tell whether {location} was written: {failure}") from failure

    def _content(self, path: str, most_bytes: int) -> bytes:
        """Return the first bytes of a file, one more than asked for if there are more.

        Nothing if it is a folder.
        """
        try:
            with self._calls.opened(path, length=str(most_bytes + 1)) as (_, pieces):
                return _begun(pieces, most_bytes + 1)
        except HdfsRefusal as error:
            if _is_missing(error):  # a folder
                return b""
            raise

    def _write_beside(
        self, location: Location, path: str, content: bytes, *, makes_folders: bool = True
    ) -> str:
        """Write a whole file that no reader knows, and return its path."""
        temporary = f"{path.rpartition('/')[0]}/.icetower-{chance.token_hex(16)}.tmp"
        try:
            self._calls.create(
                temporary, content, overwrite="false", createparent="true" if makes_folders else "false"
            )
        except OSError as error:
            if isinstance(error, HdfsRefusal) and error.kind == "FileNotFoundException":
                raise FileMissing(location) from error
            self._remove_quietly(temporary)
            raise
        return temporary

    def _remove_quietly(self, path: str) -> None:
        with contextlib.suppress(OSError):
            self._calls.ask("DELETE", path, "DELETE", recursive="false")

    def _entries(self, location: Location) -> list[dict[str, Any]] | None:
        """Return what a folder holds; None if there is none."""
        path = self._folder_at(location)
        found: list[dict[str, Any]] = []
        with self._translated("list", location):
            after = ""
            while True:
                try:
                    answer = self._calls.ask("GET", path, "LISTSTATUS_BATCH", startAfter=after)[
                        "DirectoryListing"
                    ]
                except HdfsRefusal as error:
                    if not _is_missing(error):
                        raise
                    return None
                page = answer["partialListing"]["FileStatuses"]["FileStatus"]
                if any(not entry["pathSuffix"] for entry in page):
                    return None  # a file is listed as itself
                found += page
                if not page or not answer["remainingEntries"]:
                    return found
                if page[-1]["pathSuffix"] == after:
                    # A gateway that does not know `startAfter` would send the first names for ever.
                    raise OSError("the listing goes round")
                after = page[-1]["pathSuffix"]

    def _find_status(self, path: str) -> dict[str, Any] | None:
        """Return what a name node says of a path; None if nothing is there."""
        try:
            status: dict[str, Any] = self._calls.ask("GET", path, "GETFILESTATUS")["FileStatus"]
        except HdfsRefusal as error:
            if not _is_missing(error):
                raise
            return None
        return status

    def _size(self, location: Location, path: str) -> int:
        found = self._find_status(path)
        if found is None or found["type"] != "FILE":
            raise FileMissing(location)
        return int(found["length"])

    def _file_at(self, location: Location) -> str:
        if location.endswith("/"):
            raise InvalidLocation(f"Not a file: {location}")
        path = self._folder_at(location)
        if path == "/":
            raise InvalidLocation(f"Not a file: {location}")
        return path

    def _folder_at(self, location: Location) -> str:
        """Return the path of a location, with one slash between its names."""
        key = self._path_of(location)
        names = [name for name in key.split("/") if name]
        if not is_key(key) or any(":" in name for name in names) or names[:1] == [".reserved"]:
            raise InvalidLocation(f"Not a path of HDFS: {key[:500]!r} in {location[:500]!r}")
        if not unicodedata.is_normalized("NFC", key):
            # Data nodes compose such characters, name nodes do not: they would mean two files.
            raise InvalidLocation(
                f"Not a path that WebHDFS can name: {location[:500]!r} has decomposed characters"
            )
        return "/" + "/".join(names)

    @contextlib.contextmanager
    def _missing(self, location: Location) -> Iterator[None]:
        try:
            yield
        except HdfsRefusal as error:
            if not _is_missing(error):
                raise
            raise FileMissing(location) from error

    @contextlib.contextmanager
    def _translated(self, verb: str, location: Location) -> Iterator[None]:
        try:
            yield
        except HdfsRefusal as error:
            if error.kind in _BAD_PATH:
                raise InvalidLocation(f"Cannot {verb} {location[:500]}: {error.reason}") from error
            shown = PermissionError(str(error)) if error.kind in _NO_ACCESS else error
            raise object_store_failure(verb, location, shown, self._secrets) from error
        except (LookupError, TypeError) as error:
            raise FilesUnavailable(f"Cannot {verb} {location}: the answer is not WebHDFS's") from error
        except (OSError, ValueError) as error:
            raise object_store_failure(verb, location, error, self._secrets) from error


def _begun(pieces: Iterator[bytes], most_bytes: int) -> bytes:
    """Return the pieces of a file together, and take no more once there are too many bytes."""
    taken, size_bytes = [], 0
    for piece in pieces:
        taken.append(piece)
        size_bytes += len(piece)
        if size_bytes > most_bytes:
            break
    return b"".join(taken)


def _whole(pieces: Iterator[bytes], size_bytes: int) -> bytes:
    """Return a file of this size; raises `OSError` if that is not what comes."""
    content = _begun(pieces, size_bytes)
    if len(content) != size_bytes:
        raise OSError(f"{len(content)} bytes came of {size_bytes}")
    return content


def _listed(location: Location, status: dict[str, Any]) -> ListedFile:
    return ListedFile(location, int(status["length"]), int(status["modificationTime"]))


def _is_missing(error: HdfsRefusal) -> bool:
    """Say whether an answer means that nothing is there; only WebHDFS's own words do.

    What lies "below" a file is missing too, though HDFS calls that a want of access.
    """
    is_below_file = error.kind in {"AccessControlException", "ParentNotDirectoryException"}
    return error.kind == "FileNotFoundException" or (
        is_below_file and "is not a directory" in error.reason.lower()
    )
