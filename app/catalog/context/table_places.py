"""The places where one table writes its files."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import unquote

from app.catalog.context.catalog import Catalog
from app.catalog.context.locations import roots_of
from app.engine.model.properties import LOCATION_PROPERTIES
from app.engine.model.table_metadata import TableMetadata
from app.fileio.locations import is_inside

LOCATION_PROVIDER = "write.location-provider.impl"
"""A class of the writer's own decides where data files lie: the server cannot say whether they lie right."""


def places_of(catalog: Catalog, base: TableMetadata | None, after: TableMetadata) -> Callable[[str], bool]:
    """Return a test whether a location is one where a table writes, before or after a commit.

    That is below its own location, below those its properties name, and below the roots that the warehouse allows
    beside its own.
    """
    # The first root is the warehouse's own, where the other tables' files are too.
    places: set[str] = set(roots_of(catalog)[1:])
    for metadata in (base, after):
        if metadata is not None:
            if LOCATION_PROVIDER in metadata.properties:
                return lambda _location: True
            places.add(metadata.location)
            places |= {value for name in LOCATION_PROPERTIES if (value := metadata.properties.get(name))}
    starts = tuple(spelling.rstrip("/") + "/" for place in places for spelling in _spellings(place))

    def is_inside_one(location: str) -> bool:
        # Ten times faster than the whole comparison, and right, since new locations contain no `?` and the like.
        if location.startswith(starts) and not _climbs(location):
            return True
        return any(is_inside(location, place) for place in places)

    return is_inside_one


def _spellings(place: str) -> list[str]:
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
