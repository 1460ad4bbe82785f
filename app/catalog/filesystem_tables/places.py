"""Where the namespaces and tables of a file-system warehouse lie: each name is a folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from app.engine.model.identifiers import Namespace, TableIdentifier, check_name
from app.engine.model.ids import Location
from app.errors import InvalidName
from app.fileio.locations import exact_folder_name, flaw_of, folders_of

LONGEST_NAME_BYTES: Final = 255
"""What file systems allow."""


@dataclass(frozen=True, slots=True)
class WarehouseTree:
    """The folders below the root of a warehouse."""

    root: str

    def find_folder(self, name: Namespace | TableIdentifier | None) -> Location | None:
        """Return the folder of a name; the root without one, and None if no folder can have it."""
        try:
            return self.folder_of(name)
        except InvalidName:
            return None

    def folder_of(self, name: Namespace | TableIdentifier | None) -> Location:
        """Return the folder of a name, which lies below the root whatever the name is.

        Raises:
            InvalidName: no folder can have it.
        """
        segments = _segments(name)
        for segment in segments:
            check_name(segment, "name")
            if "/" in segment or "\\" in segment or len(segment.encode()) > LONGEST_NAME_BYTES:
                raise InvalidName(
                    f"Invalid name {segment[:300]!r}: in a warehouse of layout hadoop it names a folder"
                )
        root = self.root.rstrip("/")
        folder = Location("/".join([root, *segments]))
        flaw = flaw_of(folder)
        if flaw is not None or len(folders_of(f"{folder}/_")) != len(folders_of(f"{root}/_")) + len(segments):
            raise InvalidName(
                f"Invalid name {name}: in a warehouse of layout hadoop it names a folder; {flaw}"
            )
        return folder


def _segments(name: Namespace | TableIdentifier | None) -> Sequence[str]:
    if name is None:
        return ()
    return name.levels if isinstance(name, Namespace) else (*name.namespace.levels, name.name)


def pointer_id_of(folder: str) -> int:
    """Return the id of the pointer of the table in a folder: below zero, as no row's is."""
    digest = blake2b(exact_folder_name(folder).encode(), digest_size=8).digest()
    return -1 - (int.from_bytes(digest) >> 2)
