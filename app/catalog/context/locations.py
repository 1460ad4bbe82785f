"""Where tables and views may lie, and where a new one goes by default."""

from __future__ import annotations

import re
from collections.abc import Mapping

from app.catalog.context.catalog import Catalog
from app.catalog.context.server import Rules
from app.catalog.filesystem_tables.places import WarehouseTree
from app.catalog.filesystem_tables.rules import check_metadata
from app.database.warehouses import Warehouse
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location
from app.engine.model.properties import LOCATION_PROPERTIES
from app.engine.model.table_metadata import TableMetadata
from app.engine.model.view_metadata import ViewMetadata
from app.errors import InvalidLocation
from app.fileio.locations import flaw_of, is_inside, scheme_of, store_of

ALLOWED_LOCATIONS = "allowed-locations"
"""Storage setting of a warehouse: further roots, separated by commas."""
TABLE_LOCATIONS, UNIQUE, PLAIN = "icetower.table-locations", "unique", "plain"
"""Property of a warehouse: whether new tables lie at `<name>-<piece of the uuid>` or, where nothing is, at `<name>`."""
_NO_SCHEME = (
    "; without a scheme it means a path in the warehouse's bucket, or a local file: write it as these, or leave it "
    "out, and the catalog chooses one"
)
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_FOLDER_NAME = 200
"""File systems hold names of 255 bytes; clients may append to one."""


def roots_of(catalog: Catalog) -> tuple[str, ...]:
    """Return the locations below which tables of a warehouse may lie."""
    return roots_of_warehouse(catalog.warehouse, catalog.rules)


def roots_of_warehouse(warehouse: Warehouse, rules: Rules) -> tuple[str, ...]:
    """Return the same for a warehouse without a caller."""
    own = [item.strip() for item in warehouse.storage.get(ALLOWED_LOCATIONS, "").split(",") if item.strip()]
    return (warehouse.root_location, *own, *rules.allowed_locations)


def is_allowed(catalog: Catalog, location: str) -> bool:
    """Tell whether the server may read, write or delete at a location for this warehouse."""
    if flaw_of(location) is not None:
        return False
    if catalog.rules.allow_external_locations:
        return True
    return any(is_inside(location, root) for root in roots_of(catalog))


def check_location(catalog: Catalog, location: str, what: str) -> None:
    """Check that a location is one that this warehouse may use.

    Raises:
        InvalidLocation: names the location, what it is for, and where it would have to be.
    """
    if is_allowed(catalog, location):
        return
    flaw = flaw_of(location)
    if flaw is not None:
        raise InvalidLocation(f"Invalid {what} {location[:500]!r}: {flaw}")
    hint = (
        _NO_SCHEME
        if location.startswith("/") and scheme_of(catalog.warehouse.root_location) != "file"
        else ""
    )
    raise InvalidLocation(
        f"Invalid {what} {location[:500]!r}: it is outside warehouse {catalog.warehouse.name}, whose tables lie below "
        f"{' or '.join(roots_of(catalog))}{hint}"
    )


def chosen_location(catalog: Catalog, location: str) -> Location:
    """Return the location that a client chose for something new.

    An absolute path without a scheme is taken as in RFC 3986, section 5.2: in the store of the warehouse's root. So
    ClickHouse writes it, which leaves out scheme and bucket. Only if it then lies inside the warehouse, and may not
    mean a local file that is allowed.
    """
    root = catalog.warehouse.root_location
    if not location.startswith("/") or root.startswith("/") or is_allowed(catalog, location):
        return Location(location)
    resolved = store_of(root) + location
    return Location(resolved if is_inside(resolved, root) else location)


def check_locations(
    catalog: Catalog,
    identifier: TableIdentifier,
    metadata: TableMetadata | ViewMetadata,
    base: TableMetadata | ViewMetadata | None = None,
) -> None:
    """Check the location of a table or view, and the properties that name places.

    Args:
        catalog: the warehouse.
        identifier: the name of the table or view.
        metadata: what it is to be.
        base: what was there before; places that it has already are not checked again.

    Raises:
        InvalidLocation: one of them is outside the warehouse.
        InvalidUpdate, InvalidName, TreeRefusal: the layout of the warehouse does not allow it.
    """
    if not catalog.has_rows:
        check_metadata(WarehouseTree(catalog.warehouse.root_location), identifier, metadata, base)
    if base is None or metadata.location != base.location:
        check_location(catalog, metadata.location, "location")
    before = base.properties if base is not None else {}
    for name in LOCATION_PROPERTIES:
        value = metadata.properties.get(name)
        if value is not None and value != before.get(name):
            check_location(catalog, value, f"location in table property {name}")


def default_location(
    catalog: Catalog, identifier: TableIdentifier, namespace_properties: Mapping[str, str], uuid: str
) -> Location:
    """Return where a new table goes: below its namespace's `location`, or the warehouse.

    The name is made safe for every file system and carries a piece of the table's uuid, so that a table never
    shares its folder with an earlier or a renamed one: cleaning up one must not touch the other's files. A warehouse
    may prefer the plain name; it is used where nothing is.
    """
    if not catalog.has_rows:
        return WarehouseTree(catalog.warehouse.root_location).folder_of(identifier)
    root = namespace_properties.get("location")
    levels = [] if root else list(identifier.namespace.levels)
    start = (root or catalog.warehouse.root_location).rstrip("/")
    if _prefers_plain(catalog.warehouse) and not any(map(_UNSAFE.search, [*levels, identifier.name])):
        parents = ["/".join([start, *levels[: depth + 1]]) for depth in range(len(levels))]
        plain = Location("/".join([start, *levels, identifier.name]))
        # A parent folder that holds metadata is, or was, a table's.
        if _is_empty(catalog, plain) and all(_is_empty(catalog, f"{parent}/metadata") for parent in parents):
            return plain
    folder = f"{_safe(identifier.name)}-{_UNSAFE.sub('', uuid)[:8]}"
    return Location("/".join([start, *map(_safe, levels), folder]))


def flaw_of_table_locations(properties: Mapping[str, str]) -> str | None:
    """Return what is wrong with the property that chooses where new tables go, or None."""
    value = properties.get(TABLE_LOCATIONS, PLAIN)
    return (
        None
        if value in {UNIQUE, PLAIN}
        else f"{TABLE_LOCATIONS} must be unique or plain, found {value[:100]!r}"
    )


def _prefers_plain(warehouse: Warehouse) -> bool:
    properties = {**warehouse.default_properties, **warehouse.override_properties}
    return properties.get(TABLE_LOCATIONS) == PLAIN


def _is_empty(catalog: Catalog, place: str) -> bool:
    return next(iter(catalog.files.list_files(Location(place))), None) is None


def _safe(name: str) -> str:
    return _UNSAFE.sub("_", name)[:_LONGEST_FOLDER_NAME]
