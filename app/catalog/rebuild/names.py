"""Names of tables whose metadata files are all that is left: what their locations say."""

from __future__ import annotations

from app.catalog.context.places.locations import uuid_piece
from app.catalog.rebuild.known_pointers import NamedBy
from app.engine.model.identifiers import Namespace, TableIdentifier

_HIVE = ".db"
"""What Hive and Spark add to the name of a database."""


def name_from_location(
    location: str, root: str, uuid: str, namespace: Namespace
) -> tuple[TableIdentifier, NamedBy]:
    """Return the name that a location suggests.

    Args:
        location: of the table or view.
        root: of its warehouse.
        uuid: of the table: one folder of a new location may end with a piece of it.
        namespace: for what lies right below the root.
    """
    segments = [segment for segment in _path(location).split("/") if segment]
    above = [segment for segment in _path(root).split("/") if segment]
    is_inside = segments[: len(above)] == above and len(segments) > len(above)
    levels = segments[len(above) :] if is_inside else segments[-2:]
    name = levels.pop() if levels else "table"
    plain = without_uuid(name, uuid)
    levels = [without_uuid(level, uuid) for level in levels]
    if len(levels) == 1 and levels[0].endswith(_HIVE) and levels[0] != _HIVE:
        levels = [levels[0].removesuffix(_HIVE)]
    named_by = NamedBy.PATH if is_inside and levels else NamedBy.LOCATION
    return TableIdentifier(Namespace(tuple(levels)) if levels else namespace, plain), named_by


def without_uuid(name: str, uuid: str) -> str:
    """Return a folder's name without the piece of its table's uuid that it may end with."""
    piece = uuid_piece(uuid)
    stripped = name.removesuffix(f"-{piece}") if piece else name
    return stripped or name


def with_uuid(identifier: TableIdentifier, uuid: str) -> TableIdentifier:
    """Return a name that no other table has, for one whose own is taken."""
    return TableIdentifier(identifier.namespace, f"{identifier.name}_{uuid_piece(uuid)}")


def _path(location: str) -> str:
    _scheme, colon, rest = location.partition(":")
    return location if location.startswith("/") or not colon else rest
