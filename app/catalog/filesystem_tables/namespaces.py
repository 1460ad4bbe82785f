"""The namespaces of a file-system warehouse: folders that are no tables."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from app.catalog.filesystem_tables.places import WarehouseTree
from app.catalog.filesystem_tables.rules import refused
from app.database.namespaces import PropertyChanges
from app.database.outcomes.idempotency_keys import IdempotencyClaim
from app.database.outcomes.receipt import LandedChange
from app.database.pointers.history import Author
from app.database.pointers.pointers import Pointers
from app.database.pointers.recoverable import NO_RECOVERY, Recovery
from app.database.warehouses import Warehouse
from app.engine.model.identifiers import Namespace, check_name
from app.engine.model.ids import Location
from app.errors import (
    IcetowerError,
    InvalidLocation,
    InvalidName,
    NamespaceExists,
    NamespaceNotEmpty,
    NoSuchNamespace,
)
from app.fileio.files import FileIO
from app.fileio.trees import FileTree, tree_of
from app.formats.metadata.version_names import version_in

log = logging.getLogger(__name__)

_SET_BY_SPARK: Final = frozenset({"owner"})
"""Spark sets it on every new namespace. Iceberg's own connector leaves it out where the catalog keeps no properties."""
_OF_TABLES: Final = frozenset({"metadata", "data"})


@dataclass(frozen=True)
class FolderNamespaces:
    """A `NamespaceStore` in which a namespace is a folder without metadata files.

    Namespaces have no properties there.
    """

    warehouse: Warehouse
    files: FileIO
    rows: Pointers

    @property
    def _tree(self) -> FileTree:
        return tree_of(self.files, self.warehouse.root_location)

    def _folder(self, namespace: Namespace | None) -> Location | None:
        """Return the folder of a namespace; None if it, or one above it, is absent or a table."""
        found = WarehouseTree(self.warehouse.root_location).find_folder(namespace)
        if found is None or namespace is None:
            return found
        for length in range(1, len(namespace.levels) + 1):
            above = WarehouseTree(self.warehouse.root_location).folder_of(
                Namespace(namespace.levels[:length])
            )
            if self.holds_metadata(above):
                return None
        return found if self._tree.list_folder(found) is not None else None

    def holds_metadata(self, folder: Location) -> bool:
        """Say whether a folder holds metadata files, of whatever catalog: then it is no namespace."""
        return self.is_table(folder) is not False

    def is_table(self, folder: Location) -> bool | None:
        """Say whether a folder holds a table; None if it holds metadata files of another catalog.

        By one listing: between two of them a table may come or go.
        """
        entries = self._tree.list_folder(Location(f"{folder}/metadata")) or []
        names = [entry.name for entry in entries if not entry.is_folder]
        if any(version_in(name) for name in names):
            return True
        return (
            None if any(name.endswith((".metadata.json", ".metadata.json.gz")) for name in names) else False
        )

    def tables_in(self, namespace: Namespace, after: str | None = None) -> Iterator[str]:
        """Yield the names of tables after one, in order; raises `NoSuchNamespace`."""
        return (name for name, is_table in self._folders_in(namespace, after) if is_table)

    def _folders_in(
        self, namespace: Namespace | None, after: str | None = None
    ) -> Iterator[tuple[str, bool | None]]:
        """Yield the folders with usable names after one, and whether each is a table.

        None: it is neither a table nor a namespace, but holds metadata of another catalog.
        """
        folder = self._folder(namespace)
        entries = None if folder is None else self._tree.list_folder(folder)
        if entries is None and namespace is not None:
            raise NoSuchNamespace(namespace)
        for entry in entries or ():
            if not entry.is_folder or not _is_name(entry.name) or (after is not None and entry.name <= after):
                continue
            try:
                yield entry.name, self.is_table(Location(f"{folder}/{entry.name}"))
            except InvalidLocation:
                # A link leads out of the warehouse. To load the table says so, and its neighbours are not held up.
                yield entry.name, True

    def is_in_use(self, folder: Location) -> bool:
        """Say whether a folder is a namespace with something in it, or made as one.

        Writers may put data files of a table into its folder before they create it: that is no namespace.
        """
        entries = self._tree.list_folder(folder)
        if entries is None:
            return False
        if not entries or any(entry.is_folder and entry.name not in _OF_TABLES for entry in entries):
            return True
        return any(self._has_tables(Location(f"{folder}/{name}")) for name in _OF_TABLES)

    def _has_tables(self, folder: Location) -> bool:
        """Say whether a folder is a table, or has one directly in it that is no partition."""
        if self.holds_metadata(folder):
            return True
        return any(
            self.holds_metadata(Location(f"{folder}/{entry.name}"))
            for entry in self._tree.list_folder(folder) or ()
            if entry.is_folder and "=" not in entry.name
        )

    def create_folder(self, folder: Location) -> None:
        """Create a folder, with those above it."""
        self._tree.create_folder(folder)

    def find(self, warehouse_id: int, namespace: Namespace) -> dict[str, str] | None:  # noqa: ARG002 - as of a protocol
        """Return where a namespace is, as Iceberg's own catalog does; None if it does not exist."""
        folder = self._folder(namespace)
        return None if folder is None else {"location": folder}

    def list_children(
        self,
        warehouse_id: int,  # noqa: ARG002 - a store is one warehouse's
        parent: Namespace | None,
        after: str | None = None,
        limit: int | None = None,
    ) -> tuple[str, ...]:
        """Return the last levels of the namespaces in `parent`; raises `NoSuchNamespace`."""
        found = (name for name, is_table in self._folders_in(parent, after) if is_table is False)
        return tuple(islice(found, limit))

    def create(
        self,
        warehouse_id: int,  # noqa: ARG002 - a store is one warehouse's
        namespace: Namespace,
        properties: Mapping[str, str],
        author: Author,
        claim: IdempotencyClaim | None = None,
    ) -> None:
        """Create a folder, and those above it.

        Raises:
            InvalidName: no folder can have the name.
            NamespaceExists: it is there, or a table has the name of it or of one above it.
            TreeRefusal: it is to have properties.
        """
        wanted = sorted(properties.keys() - _SET_BY_SPARK)
        if wanted:
            raise _no_properties(f"create {namespace} with properties {', '.join(wanted)[:200]}")
        tree = WarehouseTree(self.warehouse.root_location)
        folder = tree.folder_of(namespace)
        self.rows.check_claims([claim])
        outer = [Namespace(namespace.levels[:length]) for length in range(1, len(namespace.levels))]
        for above in (*outer, namespace):
            if self.holds_metadata(tree.folder_of(above)):
                raise NamespaceExists(above)
        if self._tree.list_folder(folder) is not None:
            raise NamespaceExists(namespace)
        made = [above for above in outer if self._tree.list_folder(tree.folder_of(above)) is None]
        self._tree.create_folder(folder)
        self._note(namespace, author, claim, *(_change_of(each, "created") for each in (namespace, *made)))

    def drop(
        self,
        warehouse_id: int,  # noqa: ARG002 - a store is one warehouse's
        namespace: Namespace,
        author: Author,
        claim: IdempotencyClaim | None = None,
        *,
        recovery: Recovery = NO_RECOVERY,  # noqa: ARG002 - an empty folder is as good as a new one
        check: Callable[[Mapping[str, str]], None] = lambda _properties: None,
    ) -> None:
        """Remove an empty folder.

        Raises:
            NoSuchNamespace: it does not exist.
            NamespaceNotEmpty: something is in it, be it only a file.
        """
        folder = self._folder(namespace)
        if folder is None:
            raise NoSuchNamespace(namespace)
        check({})
        self.rows.check_claims([claim])
        if not self._tree.remove_folder(folder):
            kinds = {is_table for _, is_table in self._folders_in(namespace)}
            found = [word for word, kind in (("tables", True), ("namespaces", False)) if kind in kinds]
            raise NamespaceNotEmpty(namespace, " and ".join(found) or "files")
        self._note(namespace, author, claim, _change_of(namespace, "dropped"))

    def update_properties(
        self,
        warehouse_id: int,  # noqa: ARG002 - as of a protocol
        namespace: Namespace,
        removals: Iterable[str],
        updates: Mapping[str, str],
        author: Author,
        claim: IdempotencyClaim | None = None,  # noqa: ARG002 - as of a protocol
    ) -> PropertyChanges:
        """Refuse to set properties; those to be removed are missing.

        Raises:
            NoSuchNamespace: it does not exist.
            TreeRefusal: properties are to be set.
        """
        if self._folder(namespace) is None:
            raise NoSuchNamespace(namespace)
        if updates:
            raise _no_properties(f"set {', '.join(sorted(updates))[:200]} of {namespace}")
        changes = PropertyChanges([], [], list(dict.fromkeys(removals)))
        self._note(namespace, author, None)
        return changes

    def _note(
        self,
        namespace: Namespace,
        author: Author,
        claim: IdempotencyClaim | None,
        change: LandedChange | None = None,
        *before: LandedChange,
    ) -> None:
        receipts = author.receipts_of(change, *before)
        try:
            self.rows.check_and_put([], author, claim, receipts=receipts)
        except IcetowerError as error:
            log.warning("a change of namespace %s has no receipt: %s", namespace, error)


def _change_of(namespace: Namespace, event: str) -> LandedChange:
    return LandedChange("namespace", event, namespace.levels)


def _no_properties(what: str) -> Exception:
    return refused(what, "namespaces are folders and have none", "set them on its tables")


def _is_name(name: str) -> bool:
    try:
        check_name(name, "name")
    except InvalidName:
        return False
    return True
