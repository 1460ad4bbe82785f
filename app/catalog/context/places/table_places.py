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
from app.errors import InvalidLocation, InvalidSetting
from app.fileio.links import real_location, real_locations
from app.fileio.locations import exact_folder_name, folder_name, folder_of_file, folders_of, is_inside

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


def own_places(*states: TableMetadata | ViewMetadata | None) -> frozenset[str]:
    """Return the folders where a table or view writes; others may write there too.

    They are its location and those that its properties name, spelled as `app.fileio.locations.folder_name` spells them.
    """
    return names_of(place for metadata in states if metadata is not None for place in _named_by(metadata))


def own_folders(metadata: TableMetadata) -> frozenset[str]:
    """Return the same as locations that can be listed."""
    return _of_all(exact_folder_name, _named_by(metadata))


def claims_around(catalog: Catalog, locations: Iterable[str]) -> dict[str, list[str]]:
    """Return for each file all names under which something may claim a folder that it lies in.

    Those are its folders, and where symbolic links lead, those in which it really lies. In Azure an account may be
    left out where the storage settings have it, so each has two. What no setting completes, the store of the warehouse
    cannot find and so not delete.

    Raises:
        InvalidLocation: one is not a location.
    """
    found = {location: folders_of(location) for location in locations}
    real_location_of = real_locations()
    for location, folders in found.items():
        real = real_location_of(location)
        if real != location:
            folders.extend(folders_of(real))
        scheme, _, rest = folders[0].partition("://")
        container, _, account = rest.rstrip("/").partition("@")
        if scheme == "abfs" and (other := "" if account else _account_of(catalog)) is not None:
            store = f"abfs://{container}@{other}/" if other else f"abfs://{container}/"
            folders += [store + folder[len(folders[0]) :] for folder in folders]
    return found


def _account_of(catalog: Catalog) -> str | None:
    """Return the account in Azure that a warehouse's settings name."""
    try:
        settings = catalog.rules.storage_environment.read(catalog.warehouse.storage)
    except InvalidSetting:
        return None
    account = settings.find("adls.account-name", "adls.auth.shared-key.account.name")
    return account.lower() if account else None


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


def with_real_folders(places: frozenset[str]) -> frozenset[str]:
    """Return folders, and where local ones really lie: a table at a link claims both."""
    return places | names_of(map(real_location, places))


@lru_cache(maxsize=1024)
def _claimed(homes: frozenset[str], named: frozenset[str]) -> frozenset[str]:
    """Return the folders; most commits to one table ask for the same."""
    folders = homes | names_of(named)
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


def names_of(places: Iterable[str]) -> frozenset[str]:
    """Return the names of folders, as `app.fileio.locations.folder_name` spells them."""
    return _of_all(folder_name, places)


def _of_all(name: Callable[[str], str], places: Iterable[str]) -> frozenset[str]:
    names = set()
    for place in places:
        with contextlib.suppress(InvalidLocation):
            names.add(name(place))
    return frozenset(names)


def spellings_of(place: str) -> list[str]:
    """Return the usual spellings of one place: Spark writes `file:/x`, PyIceberg `file:///x`."""
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
