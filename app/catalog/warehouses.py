"""Warehouses: where tables are stored, and the settings that clients receive."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Collection, Mapping, Sequence

from app.catalog.context.callers import Caller
from app.catalog.context.catalog import Catalog
from app.catalog.context.listings import Listing, Page, page_of
from app.catalog.context.protection import check_warehouse_unprotected, recovery_of
from app.catalog.context.server import Server
from app.catalog.warehouse_changes import WarehouseChange, masked_settings
from app.database.warehouses import Layout, Warehouse
from app.engine.model.ids import Location
from app.engine.properties.known import Origin
from app.engine.properties.lookup import flaw_of_inherited
from app.errors import (
    IcetowerError,
    InvalidLocation,
    InvalidName,
    InvalidRequest,
    InvalidSetting,
    NoSuchWarehouse,
)
from app.fileio.locations import flaw_of_new, is_inside, local_path, scheme_of
from app.fileio.schemes import check_storage, flaw_of_root
from app.fileio.trees import check_tree_scheme, tree_of
from app.tree_errors import TreeRefusal

log = logging.getLogger(__name__)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}", re.ASCII)
_KEPT_S = 1.0
S3_DELETE = "s3.delete-enabled"
"""The property that keeps clients' S3FileIO from deleting files."""
RESERVED_NAMES = frozenset({"config", "oauth", "namespaces", "tables", "views", "transactions"})
"""Words that a path has in the place of a warehouse's prefix."""


def is_warehouse_name(text: str) -> bool:
    """Return whether a warehouse may have this name; a location in one is no name."""
    return _NAME.fullmatch(text) is not None and text.lower() not in RESERVED_NAMES


def check_warehouse_name(name: str) -> None:
    """Check that a name can be one piece of a path.

    Raises:
        InvalidName: it cannot be one.
    """
    if not is_warehouse_name(name):
        raise InvalidName(
            f"Invalid warehouse name {name[:200]!r}: use letters, digits, '_', '.', '-' (at most 128, the first a "
            f"letter or digit), and none of {', '.join(sorted(RESERVED_NAMES))}"
        )


def create_warehouse(  # noqa: PLR0913 - what a warehouse is, and who wants it
    server: Server,
    caller: Caller,
    name: str,
    root_location: str,
    default_properties: Mapping[str, str],
    override_properties: Mapping[str, str],
    storage: Mapping[str, str],
    layout: Layout = Layout.CATALOG,
    *,
    has_tables: bool = False,
) -> Warehouse:
    """Create a warehouse; one that has tables already may lie where no new one may.

    Raises:
        TreeRefusal: the layout is hadoop, and the store cannot promise what file-system tables need.
        InvalidName: the name cannot be a piece of a path.
        InvalidLocation: the root is not a location that files can be written to.
        InvalidSetting: a storage setting, or one of the guard or of scan planning, makes no sense.
        WarehouseExists: the name is taken.
    """
    server.permit(caller, "create_warehouse")
    check_warehouse_name(name)
    root = check_root(root_location)
    flaw = None if has_tables else flaw_of_new(root)
    if flaw is not None:
        raise InvalidLocation(f"Invalid root location {root[:500]!r}: {flaw}")
    masked_settings(storage, {})  # there is nothing yet that one could hide
    check_storage(root, storage, server.rules.storage_environment)
    _check_properties(default_properties, override_properties)
    if layout is Layout.HADOOP:
        check_tree_scheme(root)
    created = server.warehouses.create(
        name,
        root,
        layout=layout,
        default_properties=default_properties,
        override_properties=override_properties,
        storage=storage,
        created_ms=server.now_ms(),
        author=caller.author(server.now_ms()),
    )
    _check_soon(server, [created])
    return created


def check_root(root_location: str) -> str:
    """Return the root location without slashes at its end.

    Raises:
        InvalidLocation: it is no location, or no store is known for its scheme.
    """
    flaw = flaw_of_root(root_location)
    if flaw is not None:
        raise InvalidLocation(f"Invalid root location {root_location[:500]!r}: {flaw}")
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
    change: WarehouseChange,
) -> Warehouse:
    """Change settings of a warehouse; of two changes at once neither undoes the other.

    Raises:
        InvalidRequest: the change contradicts itself.
        InvalidSetting: a storage setting, or one of the guard or of scan planning, makes no sense; or as
            `WarehouseChange.apply`.
        NoSuchWarehouse: no warehouse has this name.
    """
    server.permit(caller, "update_warehouse")

    def changed(present: Warehouse) -> Warehouse:
        wanted = change.apply(present)
        if change.storage:
            check_storage(present.root_location, wanted.storage, server.rules.storage_environment)
        if change.default_properties:
            _check_properties(wanted.default_properties)
        if change.override_properties:
            _check_properties(wanted.override_properties)
        return wanted

    updated = server.warehouses.update(name, changed, caller.author(server.now_ms()))
    if change.storage:
        _check_soon(server, [updated])
    return updated


def check_stores_soon(server: Server) -> None:
    """Begin to try whether the stores of all file-system warehouses let one of two writers win.

    What is found is logged. Nothing waits for it: before a first commit it is tried again, where it is not known.
    """
    try:
        _check_soon(server, server.warehouses.list(Layout.HADOOP))
    except IcetowerError as error:
        log.warning("could not look for stores to be tried: %s", error)


def _check_soon(server: Server, warehouses: Sequence[Warehouse]) -> None:
    wanted = [warehouse for warehouse in warehouses if warehouse.layout is Layout.HADOOP]

    def check() -> None:
        for warehouse in wanted:
            _check_store(server, warehouse)

    if wanted:
        # A daemon: a store that does not answer must not keep the process from ending.
        thread = threading.Thread(target=check, name="store checks", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            log.warning("stores are not tried now, but before their first commits: %s", error)


def _check_store(server: Server, warehouse: Warehouse) -> None:
    root = Location(warehouse.root_location)
    try:
        tree_of(server.files_of(warehouse), root).check_writes_once(root)
    except TreeRefusal as error:
        log.warning("warehouse %s is read-only: %s", warehouse.name, error)
    except IcetowerError as error:
        log.warning(
            "could not try the store of warehouse %s, which is done again before its first commit: %s",
            warehouse.name,
            error,
        )


def _check_properties(*properties: Mapping[str, str]) -> None:
    for given in properties:
        flaw = flaw_of_inherited(given, Origin.WAREHOUSE)
        if flaw is not None:
            raise InvalidSetting(f"Warehouse property {flaw}")


def list_warehouses(server: Server, caller: Caller, page: Page) -> Listing[Warehouse]:
    """Return the warehouses of this server, by name."""
    server.permit(caller, "list_warehouses")
    found = server.warehouses.list_after(page.after, page.read_limit)
    cut = page_of(tuple(warehouse.name for warehouse in found), page)
    return Listing(found[: len(cut.items)], cut.next_after)


def load_warehouse(server: Server, caller: Caller, name: str) -> Warehouse:
    """Return the warehouse of this name, with its storage settings.

    Raises:
        NoSuchWarehouse: no warehouse has this name.
    """
    server.permit(caller, "load_warehouse")
    found = server.warehouses.find(name)
    if found is None:
        raise NoSuchWarehouse(name)
    return found


def drop_warehouse(server: Server, caller: Caller, name: str) -> None:
    """Drop an empty warehouse.

    Raises:
        NoSuchWarehouse: no warehouse has this name.
        Protected: it is protected.
        WarehouseNotEmpty: it has namespaces, or files that are still to be deleted.
    """
    server.permit(caller, "drop_warehouse")
    server.warehouses.drop(name, caller.author(server.now_ms()), check_warehouse_unprotected)


def load_configuration(catalog: Catalog) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return the defaults and the overrides that clients receive.

    Where a purge waits, or the past is shown, clients must not delete files themselves: Spark's DROP TABLE PURGE
    deletes them after the drop.
    """
    catalog.permit("load_configuration")
    warehouse = catalog.warehouse
    keeps_files = catalog.as_of_ms is not None or recovery_of(warehouse, purge=True).keep_ms
    added = {S3_DELETE: "false"} if keeps_files else {}
    return warehouse.default_properties, {**warehouse.override_properties, **added}


class WarehouseMemo:
    """Warehouses by name, read again after a second: every request needs one.

    A stale entry finds the right rows, by the warehouse's id, which is never used again. Its storage settings may be
    those of a second ago: docs/configuration.md says what that means for who changes them.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._found: dict[str, tuple[float, Warehouse]] = {}
        self._lock = threading.Lock()

    def find_kept(self, name: str) -> Warehouse | None:
        """Return the warehouse if it was read within the last second; touches no database."""
        kept = self._found.get(name)
        if kept is not None and time.monotonic() - kept[0] < _KEPT_S:
            return kept[1]
        return None

    def load(self, name: str) -> Warehouse:
        """Return the warehouse of this name, or the one that holds this location.

        Raises:
            NoSuchWarehouse: no warehouse has this name, or holds this location.
            InvalidRequest: several have it as their root.
        """
        kept = self.find_kept(name)
        if kept is not None:
            return kept
        # Not every database can look up text that no warehouse name has, such as NUL.
        found = self._server.warehouses.find(name) if _NAME.fullmatch(name) else None
        if found is None:
            # Only names are kept: the number of other spellings has no limit.
            return _holding(self._server, name)
        with self._lock:
            self._found[name] = (time.monotonic(), found)
        return found

    def forget(self) -> None:
        """Read every warehouse again: this process has changed one."""
        with self._lock:
            self._found.clear()


def _holding(server: Server, location: str) -> Warehouse:
    """Return the warehouse with the innermost root around a location."""
    if "/" not in location:
        raise NoSuchWarehouse(location)  # A name: not all warehouses are read for it.
    pieces = set(location.lower().split("/"))
    holding = [
        (name, root)
        for name, root in server.warehouses.roots()
        if _may_hold(root, pieces) and is_inside(location, root)
    ]
    _, innermost = max(holding, key=lambda item: len(item[1]), default=("", ""))
    same = sorted(name for name, root in holding if is_inside(root, innermost))
    if len(same) > 1:
        raise InvalidRequest(
            f"Location {location[:500]} belongs to several warehouses: ask for one by its name: {', '.join(same)}"
        )
    found = server.warehouses.find(same[0]) if same else None
    if found is None:
        raise NoSuchWarehouse(location)
    return found


def _may_hold(root: str, pieces: Collection[str]) -> bool:
    """Say whether a root can hold a location with these pieces: all of its own are among them.

    To look at the last one alone spares thousands of others to be taken apart.
    """
    last = root.lower().rstrip("/").rpartition("/")[2]
    return last in pieces or last.endswith(":")
