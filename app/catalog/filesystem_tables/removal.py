"""Deleting a file-system table: its folder, as the format's own catalog does."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from app.catalog.filesystem_tables.rules import refused
from app.catalog.filesystem_tables.versions import TableFolder
from app.database.pointers.pointers import Pointers
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location
from app.errors import FilesUnavailable
from app.fileio.files import FileIO
from app.fileio.links import real_location
from app.fileio.locations import folder_name, folders_of
from app.fileio.trees import tree_of
from app.formats.metadata.version_names import version_in

log = logging.getLogger(__name__)

_QUESTION_FOLDERS = 500
_ROUNDS = 20


def remove_table(
    rows: Pointers,
    folder: TableFolder,
    identifier: TableIdentifier,
    is_there: Callable[[], bool],
    step: Callable[[str], None],
) -> None:
    """Delete a table's folder with all that is in it.

    The versions go last, the newest as the very last: a drop that breaks off can be sent again. Whatever a commit puts
    there meanwhile goes too. Once the table is gone, what is in the folder may be the beginning of another one: it
    stays. So do links, and what else is neither file nor folder.

    Args:
        is_there: says whether it is still this table that is in the folder.

    Raises:
        TreeRefusal: a part of it is another table's, or the warehouse is read-only; nothing was deleted.
        FilesUnavailable: something could not be deleted; the table is there, but may lack files.
    """
    files = folder.files
    # Without keys an S3 store would not delete folders once all files are gone.
    tree_of(files, folder.location).check_writes_once(folder.location)
    for _ in range(_ROUNDS):
        found = sorted(file.location for file in files.list_files(folder.location))
        if not is_there():  # asked after the listing: all that was listed is this table's
            break
        _check_alone(rows, folder, identifier, found)
        versions = sorted((version_in(each) or 0, each) for each in found if _is_version(folder, each))
        last = {location for _, location in versions}
        for location in found:
            if location not in last:
                files.delete(location)
        step("dropped_but_versions")
        if not is_there():  # the names of its versions may be another table's by now
            break
        for _, location in versions:
            files.delete(location)
        if _remove_folders(files, folder.location):
            return
    else:
        raise FilesUnavailable(
            f"Cannot drop {identifier}: its folder {folder.location} is filled again and again"
        )
    log.info("%s is dropped; what others have put into %s stays", identifier, folder.location)


def check_no_link(root: str, folder: TableFolder, identifier: TableIdentifier) -> None:
    """Check that no symbolic link leads to a table: its files may be those of another name.

    Raises:
        TreeRefusal: one does.
    """
    root = root.rstrip("/")
    if real_location(folder.metadata) != real_location(root) + folder.metadata[len(root) :]:
        raise refused(
            f"drop {identifier}",
            "a symbolic link leads to its folder, whose files belong to another name",
            "delete the link",
        )


def _is_version(folder: TableFolder, location: Location) -> bool:
    return location.rpartition("/")[0] == folder.metadata and version_in(location) is not None


def _check_alone(
    rows: Pointers, folder: TableFolder, identifier: TableIdentifier, found: Sequence[Location]
) -> None:
    """Check that nothing below the folder is another table's."""
    nested = next((each for each in found if version_in(each) and not _is_version(folder, each)), None)
    if nested is not None:
        raise refused(
            f"drop {identifier}", f"another table is in its folder: {nested}", "drop that one first"
        )
    start = folder_name(folder.location)
    around = {name for each in found for name in folders_of(each) if name.startswith(start)} | {start}
    asked = sorted(around)
    for position in range(0, len(asked), _QUESTION_FOLDERS):
        claimed = rows.claims((), asked[position : position + _QUESTION_FOLDERS]).places
        if claimed:
            raise refused(
                f"drop {identifier}",
                f"a table of another warehouse has its files in {min(claimed)}, perhaps because it was adopted",
                "drop that one",
            )


def _remove_folders(files: FileIO, location: Location) -> bool:
    """Delete empty folders, the innermost first; False if something has come into one."""
    tree = tree_of(files, location)
    for entry in tree.list_folder(location) or ():
        if not entry.is_folder or not _remove_folders(files, Location(f"{location}/{entry.name}")):
            return False
    return tree.remove_folder(location)
