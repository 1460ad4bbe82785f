"""Files on local disk, durable when written."""

# Paths are strings here: pathlib would rewrite `a//b` and costs more than the system calls do.
# ruff: noqa: PTH102, PTH108, PTH110, PTH112, PTH116, PTH120

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from functools import partial
from typing import NamedTuple

from app.engine.model.ids import Location
from app.errors import CommitStateUnknown, FileExists, FileMissing, InvalidLocation
from app.fileio.failures import local_failure
from app.fileio.files import ListedFile
from app.fileio.links import LinksWithin
from app.fileio.locations import LONGEST_LOCAL_PATH, checksum_name, local_path
from app.fileio.mounts import MOUNTS
from app.fileio.syncs import sync
from app.fileio.tails import Tail
from app.fileio.trees import FolderEntry
from app.tree_errors import TreeRefusal
from app.waits import do_meanwhile

# Some file systems have directories that cannot be synced, because they are synced already or by other means.
_NOT_SYNCABLE = frozenset({errno.EINVAL, errno.ENOTSUP})
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})
# What a network file system says when no answer has come: the step may have been done. Only Linux has the last one.
_NO_ANSWER = frozenset({errno.EIO, errno.ETIMEDOUT, errno.EINTR, getattr(errno, "EREMOTEIO", errno.EIO)})
_MOST_REMEMBERED = 10_000
# A count of attempts would end sooner the faster the machine is.
_LONGEST_FIGHT_S = 5.0
_PAUSE_S = 1e-5
_MOST_REFUSALS = 10


class _NewFile(NamedTuple):
    """The descriptors of a file that was not there, and of its folder."""

    folder: int
    file: int

    def close(self) -> None:
        try:
            os.close(self.file)
        finally:
            os.close(self.folder)


class LocalFiles:
    """A FileIO over the operating system; locations are `/x`, `file:/x` or `file:///x`."""

    def __init__(self, roots: Iterable[str] = ()) -> None:
        """Let no symbolic link lead out of these roots; without any, all are followed."""
        self._links = LinksWithin(roots)
        # Directories (path to device and inode) whose names this process has made durable, up to the root.
        self._anchored: dict[str, tuple[int, int]] = {}
        self._mounts = MOUNTS
        # Directories whose files were looked at, and their devices: kept where some are on other machines.
        self._devices: dict[str, int] = {}

    def read(self, location: Location) -> bytes:
        content = self.read_at_most(location, sys.maxsize)
        assert content is not None
        return content

    def read_at_most(self, location: Location, max_bytes: int) -> bytes | None:
        with self._opened(location) as (descriptor, size_bytes):
            if size_bytes > max_bytes:
                return None
            content = os.read(descriptor, size_bytes + 1)
            if len(content) == size_bytes:
                return content
            # It grows, or has more than it says.
            content += _read_rest(descriptor, max_bytes - len(content))
            return content if len(content) <= max_bytes else None

    def read_tail(self, location: Location, most_bytes: int) -> Tail:
        with self._opened(location) as (descriptor, size_bytes):
            start = max(0, size_bytes - most_bytes)
            content = os.pread(descriptor, size_bytes - start, start)
            while len(content) < size_bytes - start:
                piece = os.pread(descriptor, size_bytes - start - len(content), start + len(content))
                if not piece:
                    raise FileMissing(location)  # being written, or cut off at this moment
                content += piece
            return Tail(size_bytes, content)

    @contextlib.contextmanager
    def _opened(self, location: Location) -> Iterator[tuple[int, int]]:
        """Open a file to be read, and yield its descriptor and its size in bytes."""
        try:
            descriptor = os.open(local_path(location), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            try:
                self._links.check(location, descriptor)
                status = os.fstat(descriptor)
                if not stat.S_ISREG(status.st_mode):  # a directory, or a device without an end
                    raise FileMissing(location)
                yield descriptor, status.st_size
            finally:
                os.close(descriptor)
        except (OSError, ValueError) as error:
            raise local_failure("read", location, error) from error

    def write_new(self, location: Location, content: bytes) -> None:
        path = local_path(location)
        directory, _, name = path.rpartition("/")
        try:
            _check_length(path)
            folder = self._create(directory or "/", name)
        except FileExistsError as error:
            raise FileExists(location) from error
        except (OSError, ValueError) as error:
            raise local_failure("write", location, error) from error
        try:
            try:
                _write_all(folder.file, content)
                do_meanwhile(partial(self._make_durable, folder, directory or "/"))
            finally:
                folder.close()  # may fail too: a network file system reports a full disk here
        except BaseException as error:
            with contextlib.suppress(OSError):
                os.unlink(path)
            if isinstance(error, OSError):
                raise local_failure("write", location, error) from error
            raise

    def write_once(self, location: Location, content: bytes) -> None:
        with self._beside(location, content) as (folder, temporary, name):
            try:
                # The only step that is seen. A name that is taken makes it fail, on every local file system.
                os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
            except FileExistsError as error:
                raise FileExists(location) from error
            except OSError as error:
                if error.errno in _NO_ANSWER:
                    raise CommitStateUnknown(
                        f"Cannot tell whether {location} was written: {error}"
                    ) from error
                if error.errno not in _NO_LINKS:
                    raise
                raise TreeRefusal(
                    f"Cannot create {location}: this file system has no hard links ({os.strerror(error.errno)}), so "
                    "that of two writers both could win"
                ) from error
        try:
            _sync_directory(local_path(location).rpartition("/")[0])
        except OSError as error:
            raise CommitStateUnknown(f"{location} may not outlive a power failure: {error}") from error

    def check_writes_once(self, location: Location) -> None:
        """Do nothing: a file system that cannot link says so at the first commit."""

    def replace(self, location: Location, content: bytes) -> None:
        with self._beside(location, content) as (folder, temporary, name):
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            _sync_directory(local_path(location).rpartition("/")[0])

    @contextlib.contextmanager
    def _beside(self, location: Location, content: bytes) -> Iterator[tuple[int, str, str]]:
        """Write a synced file that no reader knows; yield the folder, its name and the final one."""
        path = local_path(location)
        directory, _, name = path.rpartition("/")
        temporary = f".{name}.{secrets.token_hex(8)}.tmp"
        try:
            _check_length(path)
            with self._links.checked(directory) as folder:
                try:
                    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                    descriptor = os.open(temporary, flags, 0o666, dir_fd=folder)
                    try:
                        _write_all(descriptor, content)
                        sync(descriptor)
                    finally:
                        os.close(descriptor)
                    yield folder, temporary, name
                finally:
                    with contextlib.suppress(OSError):
                        os.unlink(temporary, dir_fd=folder)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise FileMissing(location) from error
        except (OSError, ValueError) as error:
            raise local_failure("write", location, error) from error

    def list_folder(self, location: Location) -> list[FolderEntry] | None:
        try:
            descriptor = self._links.open_checked(local_path(location))
            try:
                found = [
                    FolderEntry(name, stat.S_ISDIR(status.st_mode))
                    for name, status in _entries(descriptor)
                    if stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)
                ]
            finally:
                os.close(descriptor)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as error:
            raise local_failure("list", location, error) from error
        return sorted(found, key=lambda entry: entry.name)

    def create_folder(self, location: Location) -> None:
        directory = local_path(location).rstrip("/")
        try:
            _check_length(directory)
            with self._links.checked(_deepest_present(directory)):
                pass
            _make_folders(directory)
            self._anchor(directory)
        except (OSError, ValueError) as error:
            raise local_failure("write", location, error) from error

    def remove_folder(self, location: Location) -> bool:
        return self.delete_empty_folder(Location(location.rstrip("/"))) or self.list_folder(location) is None

    def delete(self, location: Location) -> None:
        try:
            directory, _, name = local_path(location).rpartition("/")
            with self._links.checked(directory or "/") as descriptor:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=descriptor)
                # Spark, Flink and Presto write these; left alone, they would keep a purged table's folders.
                with contextlib.suppress(OSError):
                    os.unlink(checksum_name(name), dir_fd=descriptor)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            pass
        except (OSError, ValueError) as error:
            raise local_failure("delete", location, error) from error

    def delete_empty_folder(self, location: Location) -> bool:
        path = local_path(location)
        try:
            directory, _, name = path.rstrip("/").rpartition("/")
            with self._links.checked(directory or "/") as descriptor:
                os.rmdir(
                    name, dir_fd=descriptor
                )  # fails if anything is in it, also if that came this very moment
        except (OSError, ValueError, InvalidLocation):
            return False
        self._anchored.pop(path, None)
        return True

    def is_near(self, location: Location) -> bool:
        """Say whether the folder of a file was seen on this machine, or all folders are."""
        distant = self._mounts.distant()
        if not distant:
            return True
        device = self._devices.get(_folder_of(location))
        return device is not None and device not in distant

    def exists(self, location: Location) -> bool:
        try:
            status = os.stat(local_path(location))
            if self._mounts.distant():
                if len(self._devices) > _MOST_REMEMBERED:
                    self._devices.clear()
                self._devices[_folder_of(location)] = status.st_dev
            return stat.S_ISREG(status.st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except (OSError, ValueError) as error:
            raise local_failure("read", location, error) from error

    def find_file(self, location: Location) -> ListedFile | None:
        try:
            # A link is not followed, as in a listing.
            status = os.lstat(local_path(location))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as error:
            raise local_failure("read", location, error) from error
        return _listed(location, status) if stat.S_ISREG(status.st_mode) else None

    def list_files(self, prefix: Location) -> Iterator[ListedFile]:
        start = prefix if prefix.endswith("/") else prefix + "/"
        unread = [""]
        path = local_path(start)
        try:
            while unread:
                folder = unread.pop()
                for name, status in _entries(path + folder):
                    if stat.S_ISDIR(status.st_mode):
                        unread.append(f"{folder}{name}/")
                    elif stat.S_ISREG(status.st_mode):
                        yield _listed(Location(f"{start}{folder}{name}"), status)
        except (OSError, ValueError) as error:
            raise local_failure("list", prefix, error) from error

    def _make_durable(self, new: _NewFile, directory: str) -> None:
        sync(new.file)
        self._anchor(directory, _sync_opened(new.folder))

    def _create(self, directory: str, name: str) -> _NewFile:
        """Open a file that was not there, after making the directories it needs."""
        try:
            return self._open_new(directory, name)
        except FileNotFoundError:
            self._forget(directory)
            # A purge may delete the folder as long as it is empty, and then again.
            end_s = time.monotonic() + _LONGEST_FIGHT_S
            attempt = refusals = 0
            while True:
                try:
                    return self._create_with_folder(directory, name)
                except FileNotFoundError:
                    refusals = refusals + 1 if self._takes_no_folder(directory) else 0
                    if refusals == _MOST_REFUSALS or time.monotonic() >= end_s:
                        raise
                # Pauses of several lengths: two threads that take turns would go on doing so.
                time.sleep(attempt % 8 * _PAUSE_S)
                attempt += 1

    def _create_with_folder(self, directory: str, name: str) -> _NewFile:
        with self._links.checked(_deepest_present(directory)):
            pass
        try:
            _make_folders(directory)
        except FileExistsError as error:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), directory) from error
        return self._open_new(directory, name)

    def _takes_no_folder(self, directory: str) -> bool:
        """Say whether no folder can be made, as in `/proc`, though the one above is there."""
        present = _deepest_present(directory)
        name = directory[len(present) :].strip("/").partition("/")[0]
        if not name:
            return False
        try:
            with self._links.checked(present) as descriptor:
                os.mkdir(name, dir_fd=descriptor)
        except FileExistsError:
            return False
        except FileNotFoundError:
            return os.path.exists(present)  # else it was deleted just now
        return False

    def _open_new(self, directory: str, name: str) -> _NewFile:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        folder = self._links.open_checked(directory)
        try:
            return _NewFile(folder, os.open(name, flags, 0o666, dir_fd=folder))
        except BaseException:
            os.close(folder)
            raise

    def _forget(self, directory: str) -> None:
        """Forget the directories on a path that are gone: new ones may get their inodes."""
        while not os.path.exists(directory):
            self._anchored.pop(directory, None)
            directory = os.path.dirname(directory)

    def _anchor(self, directory: str, synced: tuple[int, int] | None = None) -> None:
        """Make the names in a directory durable, and those of its parents that may be new.

        Another thread or process may have made a parent and not have synced it yet. So the first write to a
        directory syncs the whole way up to a directory known to be durable; later ones sync one directory.

        Args:
            directory: the directory.
            synced: its device and inode, if it is synced already.
        """
        climbed: dict[str, tuple[int, int]] = {}
        while True:
            try:
                identity, synced = synced or _sync_directory(directory), None
            except PermissionError:
                if not climbed:
                    raise
                break  # an ancestor that may be entered but not read: it was there before us
            parent = os.path.dirname(directory)
            if self._anchored.get(directory) == identity or parent == directory:
                break
            climbed[directory] = identity
            directory = parent
        if climbed:
            if len(self._anchored) > _MOST_REMEMBERED:
                self._anchored.clear()
            self._anchored.update(climbed)  # only now: another thread may rely on it at once


def _folder_of(location: Location) -> str:
    return local_path(location).rpartition("/")[0]


def _make_folders(directory: str) -> None:
    """Make a directory and those above it that are not there.

    Like `os.makedirs`, which calls itself for each of them: Python gives up at a thousand.
    """
    missing = []
    place = directory
    while not os.path.exists(place):
        missing.append(place)
        place = os.path.dirname(place)
    for folder in reversed(missing or [directory]):
        try:
            os.mkdir(folder)
        except FileExistsError:
            if not os.path.isdir(folder):
                raise


def _check_length(path: str) -> None:
    """Raise an error for a path that opens nothing, though its folder could hold the name."""
    if len(os.fsencode(path)) > LONGEST_LOCAL_PATH:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), path)


def _deepest_present(directory: str) -> str:
    while not os.path.exists(directory):
        directory = os.path.dirname(directory)
    return directory


def _write_all(descriptor: int, content: bytes) -> None:
    written = os.write(descriptor, content)
    while written < len(content):
        written += os.write(descriptor, memoryview(content)[written:])


def _read_rest(descriptor: int, most_bytes: int) -> bytes:
    """Return what is left of a file; no more than a piece beyond so many bytes."""
    pieces = []
    left = most_bytes
    while left >= 0 and (piece := os.read(descriptor, 1 << 20)):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def _sync_directory(directory: str) -> tuple[int, int]:
    """Make the names in a directory durable; return its device and inode."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return _sync_opened(descriptor)
    finally:
        os.close(descriptor)


def _sync_opened(descriptor: int) -> tuple[int, int]:
    try:
        sync(descriptor)
    except OSError as error:
        if error.errno not in _NOT_SYNCABLE:
            raise
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def _listed(location: Location, status: os.stat_result) -> ListedFile:
    return ListedFile(location, status.st_size, status.st_mtime_ns // 1_000_000)


def _entries(directory: str | int) -> Iterator[tuple[str, os.stat_result]]:
    """Yield what a directory, opened or not, holds; nothing if it is gone.

    Links stay links: no walk goes in circles.
    """
    try:
        entries = os.scandir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return
    with entries:
        for entry in entries:
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            yield entry.name, status
