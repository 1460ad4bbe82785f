"""Where tables and views may lie, and where a new one goes by default."""

from __future__ import annotations

import re
from collections.abc import Mapping

from app.catalog.context.catalog import Catalog
from app.catalog.context.places.file_names import has_uuid_for_place, uuid_for_place
from app.catalog.context.places.tables_of_trees import check_no_table_around
from app.catalog.context.server import Rules
from app.catalog.filesystem_tables.places import WarehouseTree
from app.catalog.filesystem_tables.rules import check_metadata
from app.database.warehouses import Warehouse
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.ids import Location, TableUuid
from app.engine.model.settings.properties import LOCATION_PROPERTIES
from app.engine.model.table_metadata import TableMetadata
from app.engine.model.view_metadata import ViewMetadata
from app.engine.properties.own_properties import PLAIN, TABLE_LOCATIONS
from app.errors import CommitFailed, InvalidLocation
from app.fileio.locations import (
    flaw_of,
    flaw_of_new,
    folder_name,
    folders_of,
    is_inside,
    may_be_inside,
    scheme_of,
    store_of,
)
from app.fileio.storage_settings import further_roots

LOCATION = "location"
"""Property of a namespace: where its new tables go."""
_NO_SCHEME = (
    "; without a scheme it means a path in the warehouse's bucket, or a local file: write it as these, or leave it "
    "out, and the catalog chooses one"
)
_MORE_PLACES = "; the storage setting allowed-locations of the warehouse adds others"
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_FOLDER_NAME = 200
"""File systems hold names of 255 bytes; clients may append to one."""


def roots_of(catalog: Catalog) -> tuple[str, ...]:
    """Return the locations below which tables of a warehouse may lie."""
    return roots_of_warehouse(catalog.warehouse, catalog.rules)


def roots_of_warehouse(warehouse: Warehouse, rules: Rules) -> tuple[str, ...]:
    """Return the same for a warehouse without a caller."""
    return (warehouse.root_location, *further_roots(warehouse.storage), *rules.allowed_locations)


def is_allowed(catalog: Catalog, location: str) -> bool:
    """Tell whether the server may read, write or delete at a location for this warehouse."""
    if flaw_of(location) is not None:
        return False
    if catalog.rules.allow_external_locations:
        return True
    return any(is_inside(location, root) for root in roots_of(catalog))


def may_be_of(catalog: Catalog, location: str) -> bool:
    """Tell whether a location may be one that `is_allowed` knows by another spelling."""
    if catalog.rules.allow_external_locations:
        return True
    return any(may_be_inside(location, root) for root in roots_of(catalog))


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
        else _MORE_PLACES
    )
    raise InvalidLocation(
        f"Invalid {what} {location[:500]!r}: it is outside warehouse {catalog.warehouse.name}, whose tables lie below "
        f"{' or '.join(roots_of(catalog))}{hint}"
    )


def check_new_location(catalog: Catalog, location: str, what: str) -> None:
    """Check that something new may be put at a location.

    In a warehouse that was made at a location like those that are refused, others do not matter.

    Raises:
        InvalidLocation: names the location, what it is for, and what is wrong with it.
    """
    check_location(catalog, location, what)
    flaw = flaw_of_new(location)
    if flaw is not None and flaw_of_new(catalog.warehouse.root_location) is None:
        raise InvalidLocation(f"Invalid {what} {location[:500]!r}: {flaw}")


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
    *,
    is_there: bool = False,
) -> None:
    """Check the location of a table or view, and the properties that name places.

    Args:
        catalog: the warehouse.
        identifier: the name of the table or view.
        metadata: what it is to be.
        base: what was there before; places that it has already are not checked again.
        is_there: whether its files are there already, as those of what is registered.

    Raises:
        InvalidLocation: one of them is outside the warehouse, or something new in the folder of a file-system table.
        InvalidUpdate, InvalidName, TreeRefusal: the layout of the warehouse does not allow it.
        FilesUnavailable, DatabaseUnavailable: it cannot be seen whether file-system tables are around it.
    """
    if not catalog.has_rows:
        check_metadata(WarehouseTree(catalog.warehouse.root_location), identifier, metadata, base)
    check = check_location if is_there else check_new_location
    if base is None or metadata.location != base.location:
        check(catalog, metadata.location, "location")
        if catalog.has_rows and not is_there:
            check_no_table_around(catalog.server, metadata.location)
    before = base.properties if base is not None else {}
    for name in LOCATION_PROPERTIES:
        value = metadata.properties.get(name)
        if value is not None and value != before.get(name):
            check(catalog, value, f"location in table property {name}")


def place_for_new(
    catalog: Catalog, identifier: TableIdentifier, namespace_properties: Mapping[str, str]
) -> tuple[Location, TableUuid]:
    """Return where a new table or view goes, and its uuid.

    It goes below its namespace's `location` or the warehouse, to the folder of its name if that is free. Else, where
    the name is not safe for every file system, and where the warehouse wants it, the folder carries a piece of the
    uuid. A table never shares its folder with an earlier or a renamed one, nor lies inside or around another's:
    cleaning up one must not touch the other's files. That holds when the table lands: see `has_place_alone`.

    Raises:
        FilesUnavailable, DatabaseUnavailable: it cannot be seen whether the folder is free.
    """
    uuid = TableUuid(catalog.server.new_uuid())
    if not catalog.has_rows:
        return WarehouseTree(catalog.warehouse.root_location).folder_of(identifier), uuid
    root = namespace_properties.get(LOCATION)
    start = (root or catalog.warehouse.root_location).rstrip("/")
    names = [*([] if root else identifier.namespace.levels), identifier.name]
    safe = list(map(_safe, names))
    plain = Location("/".join([start, *safe]))
    if not is_allowed(catalog, plain):
        return plain, uuid  # to be refused with this location
    if (
        _prefers_plain(catalog.warehouse)
        and safe == names
        and _is_free(catalog, plain)
        and _is_empty(catalog, plain)
    ):
        return plain, uuid_for_place(catalog.server, uuid, plain)
    location, has_room = _beside_others(catalog, start, safe, uuid_piece(uuid))
    return location, uuid_for_place(catalog.server, uuid, location) if has_room else uuid


def uuid_piece(uuid: str) -> str:
    """Return the piece of a table's uuid that a folder or a name gets to be the only one."""
    return _UNSAFE.sub("", uuid)[:8]


def location_of_namespace(catalog: Catalog, namespace: Namespace, properties: Mapping[str, str]) -> Location:
    """Return the folder below which new tables of a namespace go.

    If a part of that path is a table's own folder, they go beside it: see `place_for_new`.
    """
    if not catalog.has_rows:
        return WarehouseTree(catalog.warehouse.root_location).folder_of(namespace)
    root = catalog.warehouse.root_location.rstrip("/")
    return Location(properties.get(LOCATION) or "/".join([root, *map(_safe, namespace.levels)]))


def _beside_others(catalog: Catalog, start: str, names: list[str], piece: str) -> tuple[Location, bool]:
    """Return a folder that is like no other and in no table's, and whether it can be had alone.

    The last name gets a piece of the uuid, or the outermost whose folder is a table's. A table that a client has put
    around all of them leaves no room. Both follow from one look: what lands after it is found out by the
    transaction of the creation.
    """
    around = folders_of("/".join([start, names[0]]))
    folders = [folder_name("/".join([start, *names[: depth + 1]])) for depth in range(len(names))]
    taken = catalog.server.pointers.taken_of([*around, *folders[:-1]])
    changed = next((depth for depth, folder in enumerate(folders) if folder in taken), len(names) - 1)
    location = Location(
        "/".join([start, *names[:changed], f"{names[changed]}-{piece}", *names[changed + 1 :]])
    )
    return location, taken.isdisjoint(around)


def has_place_alone(catalog: Catalog, metadata: TableMetadata | ViewMetadata) -> bool:
    """Say whether the server has given a new table or view its folder for itself alone.

    Then nothing else is there, above it or below it when it is created; the transaction of the creation looks.
    """
    return catalog.has_rows and has_uuid_for_place(catalog.server, metadata.uuid, metadata.location)


def check_place_is_free(
    catalog: Catalog, identifier: TableIdentifier, metadata: TableMetadata | ViewMetadata
) -> None:
    """Check that a folder which was given to a staged table alone is still free.

    Raises:
        CommitFailed: another table has come to lie there, above it or below it.
        DatabaseUnavailable: safe to try again.
    """
    if has_place_alone(catalog, metadata) and not _is_free(catalog, metadata.location):
        raise CommitFailed(
            f"Cannot create {identifier}: its location {metadata.location} was free when it was staged and belongs to "
            "another table by now; create it anew, and it gets another location"
        )


def _prefers_plain(warehouse: Warehouse) -> bool:
    properties = {**warehouse.default_properties, **warehouse.override_properties}
    return properties.get(TABLE_LOCATIONS, PLAIN) == PLAIN


def _is_free(catalog: Catalog, location: Location) -> bool:
    return catalog.server.pointers.is_free(folder_name(location))


def _is_empty(catalog: Catalog, place: str) -> bool:
    return next(iter(catalog.files.list_files(Location(place))), None) is None


def _safe(name: str) -> str:
    return _UNSAFE.sub("_", name)[:_LONGEST_FOLDER_NAME]
