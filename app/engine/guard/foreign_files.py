"""The files of new snapshots that lie outside their table's own places, by folder."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

_OF_A_STORE: Final = 3
"""Slashes in `s3://bucket/`."""


@dataclass(slots=True)
class ForeignFiles:
    """Where the new snapshots of a commit name files outside the table's own places."""

    is_own: Callable[[str], bool]
    """Whether a location lies in the table's own places."""
    folders: set[str] = field(default_factory=set)
    """Locations without their last segment, as the metadata spells them."""
    is_known: bool = True
    """False if something was not read: it may name files anywhere."""
    is_unseen: bool = False
    """True if nothing was read yet because it may not be needed."""

    def add(self, location: str) -> bool:
        """Note a file that a snapshot reaches; return whether it lies in the table's own places."""
        if self.is_own(location):
            return True
        self.folders.add(folder_of(location))
        return False


def folder_of(location: str) -> str:
    """Return a location without its last segment; all of it if it has only one."""
    folder, slash, _ = location.rpartition("/")
    return folder if slash else location


def few_folders(folders: Iterable[str], at_most: int) -> frozenset[str]:
    """Return few folders that have all the given ones in them.

    The deepest become their parents until they are few.

    Args:
        folders: each with a slash at its end; a folder that has no parent ends with `://` and one segment.
        at_most: how many; more only if they have no common parent.
    """
    every = set(folders)
    depths = range(max((folder.count("/") for folder in every), default=0), _OF_A_STORE, -1)
    # Not level by level: there may be thousands of folders, each thousands of levels deep.
    place = bisect_left(depths, True, key=lambda depth: len(_cut(every, depth)) <= at_most)
    few: list[str] = []
    # What is inside a folder comes right behind it. There may be any number of stores.
    for folder in sorted(_cut(every, depths[place] if place < len(depths) else _OF_A_STORE)):
        if not few or not folder.startswith(few[-1]):
            few.append(folder)
    return frozenset(few)


def _cut(folders: Iterable[str], depth: int) -> set[str]:
    """Return the folders, or what is around those that have more slashes than that."""
    return {
        folder if folder.count("/") <= depth else "/".join(folder.split("/", depth)[:depth]) + "/"
        for folder in folders
    }
