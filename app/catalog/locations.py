"""Where tables and views may lie, and where a new one goes when nobody says."""

from __future__ import annotations

import re
from collections.abc import Mapping

from app.catalog.context import Catalog
from app.database.warehouses import Warehouse
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location
from app.engine.model.properties import LOCATION_PROPERTIES
from app.errors import InvalidLocation
from app.fileio.locations import flaw_of, is_inside

ALLOWED_LOCATIONS = "allowed-locations"
"""Storage setting of a warehouse: further roots, separated by commas."""
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_FOLDER_NAME = 200
"""File systems hold names of 255 bytes; clients may append to one."""


def roots_of(catalog: Catalog, warehouse: Warehouse) -> tuple[str, ...]:
    """Return the locations below which tables of a warehouse may lie."""
    own = [item.strip() for item in warehouse.storage.get(ALLOWED_LOCATIONS, "").split(",") if item.strip()]
    return (warehouse.root_location, *own, *catalog.rules.allowed_locations)


def is_allowed(catalog: Catalog, warehouse: Warehouse, location: str) -> bool:
    """Tell whether the server may read, write or delete at a location for this warehouse."""
    if flaw_of(location) is not None:
        return False
    if catalog.rules.allow_external_locations:
        return True
    return any(is_inside(location, root) for root in roots_of(catalog, warehouse))


def check_location(catalog: Catalog, warehouse: Warehouse, location: str, what: str) -> None:
    """Check that a location is one that this warehouse may use.

    Raises:
        InvalidLocation: names the location, what it is for, and where it would have to be.
    """
    if is_allowed(catalog, warehouse, location):
        return
    flaw = flaw_of(location)
    if flaw is not None:
        raise InvalidLocation(f"Invalid {what} {location[:500]!r}: {flaw}")
    raise InvalidLocation(
        f"Invalid {what} {location[:500]!r}: it is outside warehouse {warehouse.name}, whose tables lie below "
        f"{' or '.join(roots_of(catalog, warehouse))}"
    )


def check_locations(
    catalog: Catalog,
    warehouse: Warehouse,
    location: str,
    properties: Mapping[str, str],
    *,
    old_location: str | None = None,
    old_properties: Mapping[str, str] | None = None,
) -> None:
    """Check a table's location and the properties that name places; what was there before is not asked again.

    Raises:
        InvalidLocation: one of them is outside the warehouse.
    """
    if location != old_location:
        check_location(catalog, warehouse, location, "location")
    before = old_properties or {}
    for name in LOCATION_PROPERTIES:
        value = properties.get(name)
        if value is not None and value != before.get(name):
            check_location(catalog, warehouse, value, f"location in table property {name}")


def default_location(
    warehouse: Warehouse, identifier: TableIdentifier, namespace_properties: Mapping[str, str], uuid: str
) -> Location:
    """Return where a new table goes: below its namespace's `location`, else below the warehouse.

    The name is made safe for every file system and carries a piece of the table's uuid, so that a table never
    shares its folder with an earlier or a renamed one: cleaning up one must not touch the other's files.
    """
    root = namespace_properties.get("location")
    levels = [] if root else [_safe(level) for level in identifier.namespace.levels]
    folder = f"{_safe(identifier.name)}-{_UNSAFE.sub('', uuid)[:8]}"
    return Location("/".join([(root or warehouse.root_location).rstrip("/"), *levels, folder]))


def _safe(name: str) -> str:
    return _UNSAFE.sub("_", name)[:_LONGEST_FOLDER_NAME]
