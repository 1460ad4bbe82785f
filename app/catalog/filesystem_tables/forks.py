"""Forks: versions that other writers add to a file-system table after it was adopted."""

from __future__ import annotations

from app.catalog.filesystem_tables.versions import TableFolder
from app.engine.model.ids import Location
from app.fileio.files import FileIO
from app.formats.metadata.version_names import version_in

_MOST_SHOWN = 20


def later_versions(files: FileIO, adopted: Location) -> list[Location]:
    """Return the versions that follow an adopted one, in order.

    Nothing can keep writers from adding them.

    Raises:
        FilesUnavailable: the folder cannot be read.
    """
    number = version_in(adopted)
    if number is None or not adopted.rpartition("/")[0].endswith("/metadata"):
        return []
    folder = TableFolder(files, Location(adopted.rpartition("/metadata/")[0]))
    found: list[Location] = []
    while len(found) < _MOST_SHOWN and (version := folder.find_version(number + 1 + len(found))) is not None:
        found.append(version.location)
    return found
