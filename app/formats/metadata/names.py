"""Names of metadata files: `<5-digit version>-<uuid>[.gz].metadata.json`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from app.engine.model.ids import Location
from app.engine.model.settings.properties import METADATA_COMPRESSION, METADATA_PATH

_METADATA = (".metadata.json", ".metadata.json.gz")
_FILE_SYSTEM = re.compile(r"v(\d{1,10})(?:\.gz)?\.metadata\.json(?:\.gz)?", re.ASCII)
_VERSION = re.compile(r"(\d{1,9})-[^/]*$", re.ASCII)


def metadata_folder(location: str, properties: Mapping[str, str]) -> str:
    """Return where a table's or view's metadata files go."""
    path = properties.get(METADATA_PATH)
    # Some writers end locations with a slash; a double one is two places to some clients and stores, and one to others.
    return path.rstrip("/") if path else f"{location.rstrip('/')}/metadata"


def next_metadata_location(
    location: str, properties: Mapping[str, str], previous: str | None, file_uuid: str, default_codec: str
) -> Location:
    """Return the location of the metadata file that follows `previous`; None for the first one.

    Args:
        default_codec: `none` or `gzip`, used when the properties do not say.
    """
    before = None if previous is None else version_of(previous)
    version = 0 if before is None else before + 1
    codec = properties.get(METADATA_COMPRESSION, default_codec).strip().lower()
    extension = ".gz" if codec == "gzip" else ""
    return Location(
        f"{metadata_folder(location, properties)}/{version:05d}-{file_uuid}{extension}.metadata.json"
    )


def version_of(location: str) -> int | None:
    """Return the version number in a metadata file's name, if it has one."""
    match = _VERSION.search(location)
    return int(match[1]) if match else None


def is_metadata_file(location: str) -> bool:
    """Return whether a file is a metadata file, by its name."""
    return location.endswith(_METADATA)


def file_system_version_of(location: str) -> int | None:
    """Return N of a name like `vN.metadata.json`, which tables without a catalog have.

    Source: spec.md, file system tables.
    """
    match = _FILE_SYSTEM.fullmatch(location.rpartition("/")[2])
    return int(match[1]) if match else None


def number_of(location: str) -> int | None:
    """Return the number in a metadata file's name, with or without a catalog."""
    number = version_of(location)
    return file_system_version_of(location) if number is None else number


def is_gzipped(location: str) -> bool:
    """Return whether a metadata file is compressed, by its name; both known spellings count."""
    name = location.rsplit("/", 1)[-1]
    return name.endswith((".gz.metadata.json", ".metadata.json.gz"))
