"""The places where one table writes its files."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

from app.catalog.context.catalog import Catalog
from app.catalog.context.places.locations import roots_of
from app.engine.model.settings.properties import LOCATION_PROPERTIES
from app.engine.model.table_metadata import TableMetadata
from app.engine.model.view_metadata import ViewMetadata
from app.errors import InvalidLocation
from app.fileio.locations import folder_name, folder_of_file, is_inside

_LONGEST_KEPT: Final = 2048
"""Characters of all locations of a table whose folders are remembered."""
LOCATION_PROVIDER = "write.location-provider.impl"
"""A class of the writer's own decides where data files lie: the server cannot say whether they lie right."""


def places_of(catalog: Catalog, base: TableMetadata | None, after: TableMetadata) -> Callable[[str], bool]:
    """Return a test whether a location is one where a table writes, before or after a commit.

    That is below its own location, below those its properties name, and below the roots that the warehouse allows
    beside its own.
    """
    states = [metadata for metadata in (base, after) if metadata is not None]
    if any(LOCATION_PROVIDER in metadata.properties for metadata in states):
        return lambda _location: True
    # The first root is the warehouse's own, where the other tables' files are too.
    return is_in_places(roots_of(catalog)[1:], *states)


def is_in_places(further: Iterable[str], *states: TableMetadata) -> Callable[[str], bool]:
    """Return a test whether a location lies in places of a table's states, or further ones."""
    places = set(further).union(*map(_named_by, states))
    starts = tuple(spelling.rstrip("/") + "/" for place in places for spelling in spellings_of(place))

    def is_inside_one(location: str) -> bool:
        # Ten times faster than the whole comparison, and right, since new locations contain no `?` and the like.
        if location.startswith(starts) and not _climbs(location):
            return True
        return any(is_inside(location, place) for place in places)

    return is_inside_one


def own_places(*states: TableMetadata | None) -> frozenset[str]:
    """Return the folders where a table writes; others may write there too.

    They are its location and those that its properties name, spelled as `app.fileio.locations.folder_name` spells them.
    """
    return _names(place for metadata in states if metadata is not None for place in _named_by(metadata))


def claimed_places(
    metadata: TableMetadata | ViewMetadata, location: str, base: TableMetadata | ViewMetadata | None = None
) -> frozenset[str]:
    """Return the folders in which no other table may delete.

    These are its own places, and the folder that its metadata file speaks for; without those inside another of them.

    Args:
        base: what was there before: its files may still be in use.
    """
    named = _named_by(metadata) if base is None else _named_by(metadata) | _named_by(base)
    length = len(location) + sum(map(len, named))
    claimed = _claimed if length <= _LONGEST_KEPT else _claimed.__wrapped__
    return claimed(homes_of(location), frozenset(named))


@lru_cache(maxsize=1024)
def _claimed(homes: frozenset[str], named: frozenset[str]) -> frozenset[str]:
    """Return the folders; most commits to one table ask for the same."""
    folders = homes | _names(named)
    return frozenset(
        folder
        for folder in folders
        if not any(folder != each and folder.startswith(each) for each in folders)
    )


def homes_of(location: str) -> frozenset[str]:
    """Return the folder that a metadata file speaks for: its own, or the one above `metadata/`.

    What is no location to the server, and so never deleted by it, has none.
    """
    try:
        folder = folder_of_file(location)
    except InvalidLocation:
        return frozenset()
    return frozenset([folder.removesuffix("metadata/") if folder.endswith("/metadata/") else folder])


def _named_by(metadata: TableMetadata | ViewMetadata) -> set[str]:
    return {
        metadata.location,
        *(value for name in LOCATION_PROPERTIES if (value := metadata.properties.get(name))),
    }


def _names(places: Iterable[str]) -> frozenset[str]:
    names = set()
    for place in places:
        with contextlib.suppress(InvalidLocation):
            names.add(folder_name(place))
    return frozenset(names)


def spellings_of(place: str) -> list[str]:
    """Return the spellings of one place: Spark writes `file:/x`, PyIceberg `file:///x`."""
    scheme, colon, rest = place.partition(":")
    for family in (("s3", "s3a", "s3n"), ("abfs", "abfss"), ("wasb", "wasbs")):
        if colon and scheme in family:
            return [f"{other}:{rest}" for other in family]
    if place.startswith(("/", "file:/")):
        path = "/" + (place if not colon else rest).lstrip("/")
        return [path, f"file:{path}", f"file://{path}"]
    return [place]


def _climbs(location: str) -> bool:
    if "/." not in location and "%2" not in location:
        return False
    return any(unquote(segment) in (".", "..") for segment in location.split("/"))
