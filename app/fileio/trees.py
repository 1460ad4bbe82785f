"""Trees of folders: stores where the name of a file decides who was first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from app.engine.model.ids import Location
from app.fileio.files import FileIO
from app.fileio.locations import scheme_of
from app.tree_errors import TreeRefusal

TREE_SCHEMES = frozenset({"file", "hdfs", "s3", "s3a", "s3n"})
"""The stores that can create a file only if it is absent, and say truly whether they did."""


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """What a folder holds directly."""

    name: str
    is_folder: bool


@runtime_checkable
class FileTree(Protocol):
    """What a `FileIO` may offer: folders, and files that one of many writers creates.

    Raises, from every method:
        InvalidLocation: this store cannot have such a location, or a symbolic link leads out of the warehouse.
        FilesUnavailable, Throttled: nothing was changed.
    """

    def write_once(self, location: Location, content: bytes) -> None:
        """Create a file whole and durably if nothing has its name.

        Of all writers at most one succeeds. A part of it is never seen. No folder is made for it.

        Raises:
            FileExists: something has the name; it was left as it was.
            FileMissing: its folder is not there.
            CommitStateUnknown: the store did not say what it did.
            TreeRefusal: the store cannot promise this.
        """
        ...

    def check_writes_once(self, location: Location) -> None:
        """Check that the store keeps what `write_once` promises, where that has to be tried.

        Args:
            location: of a folder, in which a file may come and go for this.

        Raises:
            TreeRefusal: it does not.
        """
        ...

    def replace(self, location: Location, content: bytes) -> None:
        """Write a file whole, also over one that is there; readers see the one or the other."""
        ...

    def list_folder(self, location: Location) -> list[FolderEntry] | None:
        """Return what a folder holds directly, in order of names; None if there is no such folder.

        A symbolic link to a folder is no entry.
        """
        ...

    def create_folder(self, location: Location) -> None:
        """Create a folder durably, with those above it; one that is there is fine."""
        ...

    def remove_folder(self, location: Location) -> bool:
        """Delete a folder if nothing is in it, and say whether it is gone."""
        ...


def tree_of(files: FileIO, location: str) -> FileTree:
    """Return the files of a warehouse as a tree.

    Raises:
        TreeRefusal: the store of this location cannot promise what a tree has to.
    """
    check_tree_scheme(location)
    if not isinstance(files, FileTree):
        raise TreeRefusal(f"The store of {location} cannot hold file-system tables")
    return files


def check_tree_scheme(location: str) -> None:
    """Check that file-system tables can lie at a location.

    Raises:
        TreeRefusal: its store is another one; says what is missing there.
    """
    scheme = scheme_of(location)
    if scheme not in TREE_SCHEMES:
        raise TreeRefusal(
            f"Cannot keep file-system tables at {location[:500]}: of {scheme} the server does not know how to create "
            f"a file only if it is absent; layout hadoop needs a local folder, HDFS or S3"
        )
