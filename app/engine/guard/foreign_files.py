"""The files of new snapshots that lie outside their table's own places, by folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field


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
    few = set(folders)
    while len(few) > at_most:
        depth = max(folder.count("/") for folder in few)
        if depth <= 3:  # `s3://bucket/` has three
            break
        few = {
            folder if folder.count("/") < depth else folder[: folder[:-1].rindex("/") + 1] for folder in few
        }
    return frozenset(
        folder for folder in few if not any(folder != other and folder.startswith(other) for other in few)
    )
