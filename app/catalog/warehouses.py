"""Warehouses: where tables are, and the settings that clients are given."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Mapping

from app.catalog.context.callers import Caller
from app.catalog.context.catalog import Catalog
from app.catalog.context.server import Server
from app.database.warehouses import Warehouse
from app.engine.model.guard_settings import flaw_of_guard_settings
from app.engine.model.properties import SCAN_PLANNING_MODE, check_planning_mode
from app.errors import InvalidLocation, InvalidName, InvalidSetting, InvalidUpdate, NoSuchWarehouse
from app.fileio.locations import flaw_of, local_path, scheme_of
from app.fileio.schemes import KNOWN_SCHEMES, files_for

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}", re.ASCII)
RESERVED_NAMES = frozenset({"config", "oauth", "namespaces", "tables", "views", "transactions"})
"""Words that stand where a warehouse's prefix would stand in a path."""


def check_warehouse_name(name: str) -> None:
    """Check that a name can stand in a path as one piece.

    Raises:
        InvalidName: it cannot.
    """
    if not _NAME.fullmatch(name) or name.lower() in RESERVED_NAMES:
        raise InvalidName(
            f"Invalid warehouse name {name[:200]!r}: use letters, digits, '_', '.', '-' (at most 128, the first a "
            f"letter or digit), and none of {', '.join(sorted(RESERVED_NAMES))}"
        )


def create_warehouse(
    server: Server,
    caller: Caller,
    name: str,
    root_location: str,
    default_properties: Mapping[str, str],
    override_properties: Mapping[str, str],
    storage: Mapping[str, str],
) -> Warehouse:
    """Create a warehouse.

    Raises:
        InvalidName: the name cannot stand in a path.
        InvalidLocation: the root is not a location that files can be written to.
        InvalidSetting: a storage setting, or one of the guard or of scan planning, makes no sense.
        WarehouseExists: the name is taken.
    """
    server.permit(caller, "create_warehouse")
    check_warehouse_name(name)
    root = check_root(root_location)
    files_for(storage)  # refuses settings that make no sense
    _check_properties(default_properties, override_properties)
    return server.warehouses.create(
        name,
        root,
        default_properties=default_properties,
        override_properties=override_properties,
        storage=storage,
        created_ms=server.now_ms(),
    )


def check_root(root_location: str) -> str:
    """Return the root location without slashes at its end.

    Raises:
        InvalidLocation: it is no location, or no store is known for its scheme.
    """
    flaw = flaw_of(root_location)
    if flaw is not None:
        raise InvalidLocation(f"Invalid root location {root_location[:500]!r}: {flaw}")
    if scheme_of(root_location) not in KNOWN_SCHEMES:
        raise InvalidLocation(
            f"Invalid root location {root_location[:500]!r}: known schemes are {', '.join(sorted(KNOWN_SCHEMES))}"
        )
    if scheme_of(root_location) == "file" and not local_path(root_location).strip("/"):
        raise InvalidLocation(
            f"Invalid root location {root_location[:500]!r}: a warehouse is a folder of its own"
        )
    root = root_location
    while root.endswith("/") and not root.endswith("//"):
        root = root[:-1]
    return root


def update_warehouse(
    server: Server,
    caller: Caller,
    name: str,
    default_properties: Mapping[str, str] | None,
    override_properties: Mapping[str, str] | None,
    storage: Mapping[str, str] | None,
) -> Warehouse:
    """Replace those settings that are given.

    Raises:
        InvalidSetting: a storage setting, or one of the guard or of scan planning, makes no sense.
        NoSuchWarehouse: no warehouse has this name.
    """
    server.permit(caller, "update_warehouse")
    if storage is not None:
        files_for(storage)
    _check_properties(default_properties or {}, override_properties or {})
    return server.warehouses.update(
        name, default_properties=default_properties, override_properties=override_properties, storage=storage
    )


def _check_properties(*properties: Mapping[str, str]) -> None:
    for given in properties:
        flaw = flaw_of_guard_settings(given)
        if flaw is not None:
            raise InvalidSetting(f"Warehouse property {flaw}")
        try:
            check_planning_mode(given.get(SCAN_PLANNING_MODE, "client"))
        except InvalidUpdate as error:
            raise InvalidSetting(str(error)) from error


def list_warehouses(server: Server, caller: Caller) -> list[Warehouse]:
    """Return every warehouse, by name."""
    server.permit(caller, "list_warehouses")
    return list(server.warehouses.list())


def load_warehouse(server: Server, caller: Caller, name: str) -> Warehouse:
    """Return the warehouse of this name, with its storage settings.

    Raises:
        NoSuchWarehouse: there is none.
    """
    server.permit(caller, "load_warehouse")
    found = server.warehouses.find(name)
    if found is None:
        raise NoSuchWarehouse(name)
    return found


def drop_warehouse(server: Server, caller: Caller, name: str) -> None:
    """Drop an empty warehouse.

    Raises:
        NoSuchWarehouse: there is none.
        WarehouseNotEmpty: it has namespaces, or files that are still to be deleted.
    """
    server.permit(caller, "drop_warehouse")
    server.warehouses.drop(name)


def load_configuration(catalog: Catalog) -> Warehouse:
    """Return the warehouse, for what clients are given of it: defaults and overrides."""
    catalog.permit("load_configuration")
    return catalog.warehouse


class WarehouseMemo:
    """Warehouses by name, asked for again after a second: they hardly change, and every request needs one.

    A stale entry cannot harm: rows are found by the warehouse's id, which is never used again.
    """

    def __init__(self, server: Server, max_age_s: float = 1.0) -> None:
        self._server = server
        self._max_age_s = max_age_s
        self._found: dict[str, tuple[float, Warehouse]] = {}
        self._lock = threading.Lock()

    def find_kept(self, name: str) -> Warehouse | None:
        """Return the warehouse if it was asked for within the last second; touches no database."""
        kept = self._found.get(name)
        if kept is not None and time.monotonic() - kept[0] < self._max_age_s:
            return kept[1]
        return None

    def load(self, name: str) -> Warehouse:
        """Return the warehouse of this name; a root location, as clients of other catalogs give it, works too.

        Raises:
            NoSuchWarehouse: there is none.
        """
        kept = self.find_kept(name)
        if kept is not None:
            return kept
        # Text that no warehouse can be called, such as one with NUL, cannot be looked up in every database.
        found = self._server.warehouses.find(name) if _NAME.fullmatch(name) else None
        if found is None:
            wanted = name.rstrip("/")
            at_root = (item for item in self._server.warehouses.list() if item.root_location == wanted)
            found = next(at_root, None)
            if found is None:
                raise NoSuchWarehouse(name)
            # Other spellings have no end, and a memory of them would have none either.
            return found
        with self._lock:
            self._found[name] = (time.monotonic(), found)
        return found

    def forget(self) -> None:
        """Ask again for every warehouse: one was changed by this process."""
        with self._lock:
            self._found.clear()
