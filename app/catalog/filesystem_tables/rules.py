"""What file-system tables cannot have, in words that say why and what to do instead."""

from __future__ import annotations

from app.catalog.filesystem_tables.places import WarehouseTree
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location
from app.engine.model.settings.properties import METADATA_COMPRESSION, METADATA_PATH
from app.engine.model.table_metadata import TableMetadata
from app.engine.model.view_metadata import ViewMetadata
from app.errors import InvalidUpdate
from app.fileio.locations import place_of
from app.formats.metadata.version_names import LARGEST_VERSION, version_in, version_name
from app.tree_errors import TreeRefusal

ADOPT = "adopt the table into a warehouse of layout catalog first (icetower table adopt)"
_NO_UNDROP = "a drop deletes the table's folder at once, and no row remembers it"
_PROTECT = (
    "protect what must stay (icetower.protected=true on the table or the warehouse), or adopt the table into a "
    "warehouse of layout catalog (icetower table adopt), where drops can be undone"
)
_NO_TIMES = "nothing says which tables and versions there were at a time"
_CREATE = "if the warehouse itself is missing, create it again (icetower warehouse create NAME ROOT --layout hadoop)"
_OF_ROWS = {
    "list_dropped": ("list what was dropped", _NO_UNDROP, _PROTECT),
    "undrop": ("bring back what was dropped", _NO_UNDROP, _PROTECT),
    "purge_dropped": ("purge what was dropped", _NO_UNDROP, _PROTECT),
    "load_catalog_diff": (
        "compare two times",
        _NO_TIMES,
        "compare snapshots of one table (icetower table diff)",
    ),
    "restore_tables": (
        "restore tables to a time",
        _NO_TIMES,
        "set a table back to one of its snapshots (icetower table rollback)",
    ),
    "rebuild_catalog": (
        "rebuild anything",
        "its tables are its files, and nothing of them was in the database",
        _CREATE,
    ),
}
"""Operations on what only rows keep: what cannot be done, why, and what to do instead."""


def refused(what: str, why: str, instead: str = ADOPT) -> TreeRefusal:
    """Return the error for what a warehouse of layout hadoop cannot do."""
    return TreeRefusal(f"Cannot {what} in a warehouse of layout hadoop: {why}; {instead}")


def refusal_of(operation: str) -> TreeRefusal | None:
    """Return the error for an operation on what only rows keep; None for others."""
    found = _OF_ROWS.get(operation)
    return None if found is None else refused(*found)


def as_of_a_time(name: str) -> TreeRefusal:
    """Return the error for a warehouse that is to be shown as it was."""
    return refused(
        f"show {name}",
        _NO_TIMES,
        "read old snapshots of a table (VERSION AS OF, TIMESTAMP AS OF), or adopt its tables into a warehouse of "
        "layout catalog (icetower table adopt)",
    )


def several_tables() -> TreeRefusal:
    """Return the error for a transaction over several file-system tables."""
    return refused(
        "commit to several tables together",
        "their versions are files, and no step creates two of them",
        "commit to each alone, or adopt the tables into a warehouse of layout catalog (icetower table adopt)",
    )


def check_metadata(
    tree: WarehouseTree,
    identifier: TableIdentifier,
    metadata: TableMetadata | ViewMetadata,
    base: TableMetadata | ViewMetadata | None,
) -> None:
    """Check that a table can be stored where its name says.

    Raises:
        InvalidName: no folder can have the name.
        InvalidUpdate: the location moves or is another one, or its metadata files are to lie elsewhere.
        TreeRefusal: it is a view.
    """
    if isinstance(metadata, ViewMetadata):
        raise refused(
            "create a view", "the format knows none there", "create it in a warehouse of layout catalog"
        )
    folder = tree.folder_of(identifier)
    if base is None and place_of(metadata.location) != place_of(folder):
        raise InvalidUpdate(
            f"Cannot create {identifier} at {metadata.location[:500]}: in a warehouse of layout hadoop a table lies "
            f"where its name says, at {folder}"
        )
    if base is not None and metadata.location != base.location:
        raise InvalidUpdate(
            f"Cannot move {identifier} to {metadata.location[:500]}: a file-system table stays in the folder of "
            "its name"
        )
    if METADATA_PATH in metadata.properties and (base is None or METADATA_PATH not in base.properties):
        raise InvalidUpdate(
            f"Cannot set {METADATA_PATH} of {identifier}: the metadata files of a file-system table lie in its folder, "
            "where readers look for them"
        )


def next_version_location(
    folder: Location, seen: Location | None, base: TableMetadata | ViewMetadata | None
) -> Location:
    """Return the file of a table's next version.

    All servers that build on one version choose the same name for the next: the codec is that of the version before,
    and the first version is never compressed. If a commit could choose the name, two writers could both create
    version N, under two names. So a changed codec is used from the next but one version on.

    Raises:
        TreeRefusal: there is no further version.
    """
    before = 0 if seen is None else version_in(seen)
    assert before is not None
    if before >= LARGEST_VERSION:
        raise refused("commit", f"version {before} is the last one that there can be")
    codec = "none" if base is None else base.properties.get(METADATA_COMPRESSION, "none")
    name = version_name(before + 1, is_gzipped=codec.strip().lower() == "gzip")
    return Location(f"{folder}/metadata/{name}")
