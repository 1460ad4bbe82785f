"""Symbolic links in local warehouses: they may lead anywhere inside, and nowhere else."""

# Paths are strings here, as in `local`.
# ruff: noqa: PTH110, PTH115, PTH120

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from app.errors import InvalidLocation
from app.fileio.locations import LONGEST_LOCAL_PATH, is_inside, local_path, place_of, scheme_of

# Needs no right to list a directory; only Linux has it.
_JUST_TO_LOOK = getattr(os, "O_PATH", os.O_RDONLY)
# Asks how the names of an opened file are spelled; only macOS has it, where `A` and `a` are mostly one file.
_GET_PATH: Final[int | None] = getattr(fcntl, "F_GETPATH", None)
_MOST_PATH_BYTES: Final = 1024


def real_location(location: str) -> str:
    """Return where a local file or folder really lies, without symbolic links.

    Other locations stay as they are.
    """
    if not location.startswith("/") and location[:5].lower() != "file:":
        return location
    try:
        path = local_path(location)
        if len(path) > LONGEST_LOCAL_PATH:  # to look at each folder of it would take hours
            return location
        real = _real_path(path)
    except (InvalidLocation, OSError, ValueError):  # no file can be there
        return location
    return location if real == (path.rstrip("/") or "/") else f"file://{real}"


def real_locations() -> Callable[[str], str]:
    """Return what finds where files really lie, and looks at each local folder once.

    A file that is a link itself stays where the link is: that is what a deletion takes away.
    """
    folders: dict[str, str] = {}

    def real_location_of(location: str) -> str:
        folder, _, name = location.rpartition("/")
        real = folders.get(folder)
        if real is None:
            real = folders[folder] = real_location(folder)
        return location if real == folder else f"{real}/{name}"

    return real_location_of


def real_places() -> Callable[[str], Hashable]:
    """Return `place_of` that follows symbolic links, and looks at each local folder once."""
    real_location_of = real_locations()
    return lambda location: place_of(real_location_of(location))


def links_below(location: str, is_missed: Callable[[str], bool]) -> Iterator[str]:
    """Yield the symbolic links that a listing of a local folder passes over.

    Only those to folders, and to files that would be missed. In object stores there are none.

    Args:
        location: of the folder.
        is_missed: whether a file of this location would be missed.
    """
    if scheme_of(location) != "file":
        return
    unread = [location.rstrip("/")]
    while unread:
        folder = unread.pop()
        # What cannot be listed was an error of the listing.
        with suppress(OSError), os.scandir(local_path(folder)) as entries:
            for entry in entries:
                place = f"{folder}/{entry.name}"
                if entry.is_symlink():
                    if entry.is_dir() or (entry.is_file() and is_missed(place)):
                        yield place
                elif entry.is_dir():
                    unread.append(place)


class LinksWithin:
    """Finds links that lead out of the roots of a warehouse. The roots themselves may be links."""

    def __init__(self, roots: Iterable[str]) -> None:
        self._roots = [local_path(root).rstrip("/") for root in roots]

    def check(self, location: str, descriptor: int) -> None:
        """Check where an opened file or directory really is.

        Raises:
            InvalidLocation: a link leads from below a root to a place below none.
        """
        if not self._roots:
            return
        path = local_path(location)
        real = _path_opened(descriptor, path)
        if real == path or not any(is_inside(path, root) for root in self._roots):
            return
        if not any(is_inside(real, _real_path(root)) for root in self._roots):
            raise InvalidLocation(f"Cannot use {location}: a symbolic link leads out of the warehouse")

    def open_checked(self, directory: str) -> int:
        """Open a directory to make a file in it and to sync it; raises like `check`. The caller closes it."""
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self.check(directory, descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    @contextmanager
    def checked(self, directory: str) -> Iterator[int]:
        """Open a directory to make or delete a file in it; raises like `check`.

        What was checked is what is used then, whatever is put in its place meanwhile.
        """
        descriptor = os.open(directory, _JUST_TO_LOOK | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self.check(directory, descriptor)
            yield descriptor
        finally:
            with suppress(OSError):
                os.close(descriptor)


def _real_path(path: str) -> str:
    """Return a path without symbolic links, each name as its folder spells it.

    The last names need not be there.
    """
    real = os.path.realpath(path)
    if _GET_PATH is None:
        return real
    present = real
    while not os.path.exists(present):
        present = os.path.dirname(present)
    with suppress(OSError):
        descriptor = os.open(present, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            return _path_opened(descriptor, present).rstrip("/") + real[len(present.rstrip("/")) :] or "/"
        finally:
            os.close(descriptor)
    return real


def _path_opened(descriptor: int, path: str) -> str:
    """Return the real path of what was opened."""
    try:
        if _GET_PATH is not None:
            return os.fsdecode(fcntl.fcntl(descriptor, _GET_PATH, bytes(_MOST_PATH_BYTES)).rstrip(b"\0"))
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:  # neither Linux nor macOS
        return os.path.realpath(path)
