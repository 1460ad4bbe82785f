"""Which files in a table's places are orphans: old enough, and reached by nothing. What is in doubt stays."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from enum import StrEnum

from app.engine.model.table_metadata import TableMetadata
from app.errors import OrphansRefused

_HIDDEN = ("_", ".")
_ALWAYS_VALID = re.compile(r"version-hint\.text|v[0-9]+(\.gz)?\.metadata\.json(\.gz)?")
"""Files of tables without a catalog: readers find these by their names, and nothing names them."""


class Stays(StrEnum):
    """Why a listed file is no orphan."""

    REACHED = "reached"
    YOUNG = "young"
    """It may belong to a commit that has not landed yet."""
    UNKNOWN_AGE = "unknown-age"
    HIDDEN = "hidden"
    """Its name, or a folder's on its way, begins with `_` or `.`: files of writers at work."""
    BY_NAME = "by-name"
    """`version-hint.text` and `v1.metadata.json` are found by their names."""
    OF_OTHERS = "of-others"
    """It may belong to another table, or lies where the server may not delete."""


class ReachedFiles:
    """What a table reaches, as hashes of places: two sets of integers, about 100 bytes a file.

    Two files may have one hash, by a chance of one in 10¹⁸: then one of them stays though nothing reaches it.
    """

    def __init__(self, split: Callable[[str], tuple[str, str]], places: Iterable[str]) -> None:
        """Start without files.

        Args:
            split: returns store and path of a location, equal for all spellings.
            places: where files will be listed: only these stores are expected.
        """
        self._split = split
        stores = {split(place)[0] for place in places}
        self._store = stores.pop() if len(stores) == 1 else None
        self._files: set[int] = set()
        self._elsewhere: dict[int, str] = {}

    def add(self, location: str) -> None:
        """Note a file that is reached."""
        store, path = self._split(location)
        self._files.add(hash((store, path)))
        if store != self._store:
            self._elsewhere[hash(path)] = store
        for mark in "?#":
            if mark in path:  # some clients take it for the end of the path
                self._files.add(hash((store, path.partition(mark)[0])))

    def __len__(self) -> int:
        """Return how many files are reached."""
        return len(self._files)

    def __contains__(self, location: str) -> bool:
        """Say whether a listed file is reached.

        Raises:
            OrphansRefused: a file of the same path but another scheme or authority is, and it is not known whether that
                is the same file.
        """
        store, path = self._split(location)
        if hash((store, path)) in self._files:
            return True
        other = self._elsewhere.get(hash(path))
        if other is None:
            return False
        raise OrphansRefused(
            f"Cannot look for orphans: {location} is not reached, but {other}/{path} is, which differs only in its "
            "scheme or authority and may be the same file; nothing is marked"
        )


class NameRules:
    """Which names in a table's places are never orphans."""

    def __init__(self, metadata: TableMetadata) -> None:
        """Take the partition fields whose folders may begin with `_` or `.`."""
        fields = (field.name for spec in metadata.partition_specs for field in spec.fields)
        self._folders = tuple(f"{name}=" for name in fields if name.startswith(_HIDDEN))

    def stays(self, relative: str) -> Stays | None:
        """Say why a file stays for its name; None if its name says nothing.

        Args:
            relative: its path below the place that was listed.

        Source: HiddenPathFilter and PartitionAwareHiddenPathFilter of Iceberg's Java.
        """
        if ("/_" in relative or "/." in relative or relative.startswith(_HIDDEN)) and any(
            segment.startswith(_HIDDEN) and not (self._folders and segment.startswith(self._folders))
            for segment in relative.split("/")
        ):
            return Stays.HIDDEN
        name = relative.rpartition("/")[2]
        return Stays.BY_NAME if name[:1] == "v" and _ALWAYS_VALID.fullmatch(name) else None


def stays_by_age(modified_ms: int, older_than_ms: int) -> Stays | None:
    """Say whether a file's age keeps it; a store that gives no time gives 0."""
    if modified_ms <= 0:
        return Stays.UNKNOWN_AGE
    return Stays.YOUNG if modified_ms >= older_than_ms else None
