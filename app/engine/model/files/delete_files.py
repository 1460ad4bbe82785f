"""Delete files: which are deletion vectors, and which are about one data file only."""

from __future__ import annotations

from typing import Final

from app.engine.model.files.manifests import DataFile, FileContent
from app.engine.model.ids import Location

DELETE_FILE_PATH_ID: Final = 2147483546
"""Reserved: in position delete files, the column with the paths of data files."""

PUFFIN: Final = "puffin"
"""The format of deletion vectors' files, as entries have it when they are read."""


def is_deletion_vector(file: DataFile) -> bool:
    """Return whether a delete file is a deletion vector: a blob in a Puffin file."""
    return file.content is FileContent.POSITION_DELETES and file.file_format == PUFFIN


def referenced_path(file: DataFile) -> Location | None:
    """Return the one data file that position deletes belong to.

    None if there are several, and for equality deletes.
    """
    if file.content is FileContent.EQUALITY_DELETES:
        return None
    if file.referenced_data_file is not None:
        return file.referenced_data_file
    lower = (file.lower_bounds or {}).get(DELETE_FILE_PATH_ID)
    upper = (file.upper_bounds or {}).get(DELETE_FILE_PATH_ID)
    # Bounds that were shortened differ: the lower one is below all paths, the upper one above.
    if lower is None or lower != upper:
        return None
    return Location(bytes(lower).decode("utf-8", "replace"))
