"""A pointer: the row that names the metadata file of one table or view."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location, TableUuid
from app.engine.model.registrations import is_read_only

PointerKey = tuple[int, TableIdentifier]
"""A warehouse's id, and a name in it."""


class PointerKind(StrEnum):
    """The kind is part of the row, and not of its name: a table and a view cannot share one."""

    TABLE = "table"
    VIEW = "view"


@dataclass(frozen=True, slots=True)
class Pointer:
    """The row that names a table's or view's current metadata file."""

    id: int
    warehouse_id: int
    kind: PointerKind
    identifier: TableIdentifier
    uuid: TableUuid
    metadata_location: Location
    registration: int = 0
    """0 for what was created here, else the number of the registration that brought its metadata from elsewhere.

    See `app.engine.model.registrations`.
    """
    is_reserved: bool = field(default=False, compare=False)
    """Whether slots are reserved for writers that have lost races: commits ask before they land."""

    @property
    def is_read_only(self) -> bool:
        """Whether it belongs to another catalog: here it is neither written nor deleted."""
        return is_read_only(self.registration)
