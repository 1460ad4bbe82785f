"""`Catalog`: one warehouse for one caller. Every use case is called on one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from app.catalog.context.callers import SERVER_ITSELF, Caller, Question
from app.catalog.context.kinds import Kind, Loaded, M
from app.catalog.context.past.moments import SIGN
from app.catalog.context.past.past_stores import PastNamespaces, PastPointers
from app.catalog.context.seen.landed_commits import LandedCommit
from app.catalog.context.server import Rules, Server
from app.catalog.context.stores import NamespaceStore, PointerStore, ShownNamespaces, ShownPointers
from app.catalog.filesystem_tables.pointers import FolderPointers
from app.catalog.filesystem_tables.rules import as_of_a_time, refusal_of
from app.database.connections.driver_errors import ConstraintBroken
from app.database.pointers.history import Author
from app.database.pointers.pointer import Pointer, PointerKind
from app.database.warehouses import Layout, Warehouse
from app.engine.model.data_types.moments import moment_text
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.ids import Location, TableUuid
from app.errors import CorruptMetadata, InvalidMetadata, MetadataFileMissing, NoSuchNamespace, NoSuchWarehouse
from app.fileio.files import FileIO
from app.recoveries import PastIsGone, PastIsReadOnly

OF_THE_PAST = frozenset(
    {
        "cancel_plan",
        "expand_task",
        "fetch_plan",
        "list_files",
        "list_namespaces",
        "list_refs",
        "list_snapshots",
        "list_tables",
        "list_views",
        "load_configuration",
        "load_diff",
        "load_history",
        "load_namespace",
        "load_profile",
        "load_ref",
        "load_snapshot",
        "load_table",
        "load_view",
        "namespace_exists",
        "plan_scan",
        "report_metrics",
        "table_exists",
        "table_properties",
        "view_exists",
    }
)
"""The operations on a warehouse as it was: all others are about the present, or change it."""
Found = TypeVar("Found")
Read = TypeVar("Read")


def find_and_read(find: Callable[[], Found], read: Callable[[Found], Read]) -> tuple[Found, Read]:
    """Return what is found, and what is read of it; once more if it moved meanwhile.

    Between the two, commits may move a pointer on and delete the metadata file it named. That such a file is missing
    says something about a table only if its pointer still names it.

    Raises:
        MetadataFileMissing: the file of what is found is gone.
    """
    found = find()
    while True:
        try:
            return found, read(found)
        except MetadataFileMissing:
            now = find()
            if now == found:
                raise
            found = now


@dataclass(frozen=True, slots=True)
class Catalog:
    """What one caller sees of one warehouse.

    A use case first asks `permit`: the one place where it is decided what a caller may do. Routes know catalogs and
    use cases only; the stores behind them are reached through `server`, by use cases alone.
    """

    server: Server
    warehouse: Warehouse
    caller: Caller
    as_of_ms: int | None = None
    """The moment at which the warehouse is shown, in epoch milliseconds; None for the present."""

    @property
    def name(self) -> str:
        """The warehouse's name, with the moment at which it is shown."""
        if self.as_of_ms is None:
            return self.warehouse.name
        return f"{self.warehouse.name}{SIGN}{moment_text(self.as_of_ms)}"

    @property
    def page_key(self) -> str:
        """A text that no other warehouse has, nor this one at another time."""
        return f"{self.warehouse.id}" if self.as_of_ms is None else f"{self.warehouse.id}@{self.as_of_ms}"

    def permit(self, operation: str, *names: Namespace | TableIdentifier) -> None:
        """Ask whether the caller may do this to these names.

        Raises:
            NotAllowed: the caller may not.
            PastIsReadOnly: the warehouse is shown as it was, and the operation is not one that reads it so.
            TreeRefusal: the operation is about what rows have kept, and the warehouse is of layout hadoop.
        """
        if self.as_of_ms is not None and operation not in OF_THE_PAST:
            raise PastIsReadOnly(self.name, operation)
        refusal = None if self.has_rows else refusal_of(operation)
        if not self.has_rows and self.as_of_ms is not None:
            refusal = as_of_a_time(self.name)
        if refusal is not None:
            raise refusal
        self.server.ask(Question(self.caller, operation, self.warehouse.name, names))

    @property
    def files(self) -> FileIO:
        """The files of the warehouse."""
        return self.server.files_of(self.warehouse)

    @property
    def has_rows(self) -> bool:
        """Whether the pointers of the warehouse are rows, which are found at once."""
        return self.warehouse.layout is Layout.CATALOG

    @property
    def pointers(self) -> PointerStore:
        """Where the warehouse keeps its pointers; raises `PastIsReadOnly` for the past."""
        self._check_present()
        if not self.has_rows:
            return self._folder_pointers
        return self.server.pointers

    @property
    def namespaces(self) -> NamespaceStore:
        """Where the warehouse keeps its namespaces; raises as `pointers`."""
        self._check_present()
        if not self.has_rows:
            return self._folder_pointers.namespaces
        return self.server.namespaces

    @property
    def _folder_pointers(self) -> FolderPointers:
        server = self.server
        return FolderPointers(
            self.warehouse,
            self.files,
            server.pointers,
            server.metadata_files,
            server.seen_tables,
            server.step,
        )

    @property
    def shown_pointers(self) -> ShownPointers:
        """The pointers for reading, as they are or were."""
        if self.as_of_ms is None:
            return self.pointers
        return PastPointers(self.server.past, self.as_of_ms)

    @property
    def shown_namespaces(self) -> ShownNamespaces:
        """The namespaces for reading, as they are or were."""
        if self.as_of_ms is None:
            return self.namespaces
        return PastNamespaces(self.server.past, self.as_of_ms)

    def _check_present(self) -> None:
        if self.as_of_ms is not None:
            raise PastIsReadOnly(self.name, "change")

    @property
    def rules(self) -> Rules:
        """What the operator has set."""
        return self.server.rules

    def now_ms(self) -> int:
        """Return the time, in epoch milliseconds."""
        return self.server.now_ms()

    def author(self) -> Author:
        """Return what pointer history remembers of a change that the caller makes now."""
        return self.caller.author(self.server.now_ms())

    def count(self, kind: Kind[M], identifier: TableIdentifier, uuid: str = "", /, **numbers: int) -> None:
        """Count what has become of commits to a table, for the tower."""
        if kind.of_pointer is PointerKind.TABLE:
            self.server.traffic.count((self.warehouse.name, identifier), uuid=uuid, **numbers)

    def note_landed(
        self, identifier: TableIdentifier, uuid: TableUuid, location: Location, began_ms: int
    ) -> None:
        """Note that a commit has landed, which the database must have from now on."""
        if self.has_rows:
            self.server.landed_commits.note(LandedCommit(identifier, uuid, location, began_ms))

    def remember(self, status: int, result: str) -> None:
        """Store an answer that came without a change, if the caller brought an Idempotency-Key.

        Raises:
            IdempotencyKeyTaken: another request under this key was answered first.
        """
        if self.caller.claim is not None:
            self.server.idempotency_keys.record(self.caller.claim, status, result)

    def find(self, identifier: TableIdentifier) -> Pointer | None:
        """Return the pointer that has a name, be it a table's or a view's."""
        return self.shown_pointers.find(self.warehouse.id, identifier)

    def load(self, kind: Kind[M], identifier: TableIdentifier) -> Pointer:
        """Return the pointer of a table or view as it is now.

        Raises:
            NoSuchTable, NoSuchView: nothing of this kind has this name, whether or not its namespace exists.
        """
        pointer = self.find(identifier)
        if pointer is None or pointer.kind is not kind.of_pointer:
            raise kind.no_such(identifier)
        return pointer

    def read_now(self, kind: Kind[M], identifier: TableIdentifier) -> tuple[Pointer, M]:
        """Return the pointer of a table or view as it is now, and its metadata.

        Raises:
            NoSuchTable, NoSuchView: nothing of this kind has this name.
            MetadataFileMissing, CorruptMetadata, FilesUnavailable: the metadata file is gone, or cannot be read.
        """
        return find_and_read(lambda: self.load(kind, identifier), lambda pointer: self.read(kind, pointer))

    def load_namespace(self, namespace: Namespace) -> dict[str, str]:
        """Return a namespace's properties.

        Raises:
            NoSuchNamespace: it is not there.
        """
        found = self.find_namespace(namespace)
        if found is None:
            raise NoSuchNamespace(namespace)
        return found

    def find_namespace(self, namespace: Namespace) -> dict[str, str] | None:
        """Return a namespace's properties; None if it is not there."""
        return self.shown_namespaces.find(self.warehouse.id, namespace)

    def read_file(
        self, kind: Kind[M], location: Location, uuid: TableUuid | None = None, registration: int = 0
    ) -> M:
        """Return what a metadata file holds; without its uuid nothing that is kept is believed.

        Raises:
            MetadataFileMissing: no file is there.
            InvalidMetadata: the file is not metadata of this kind.
            FilesUnavailable: the store does not answer.
        """
        return kind.read(self.server.metadata_files, self.files, location, uuid, registration)

    def read(self, kind: Kind[M], pointer: Pointer) -> M:
        """Return the metadata that a pointer names.

        Raises:
            MetadataFileMissing: the file is gone.
            CorruptMetadata: the file is not metadata of this kind.
            PastIsGone: the file is gone, and the warehouse is shown as it was.
            FilesUnavailable: the store does not answer.
        """
        try:
            return self.read_file(kind, pointer.metadata_location, pointer.uuid, pointer.registration)
        except InvalidMetadata as error:
            raise CorruptMetadata(pointer.metadata_location, str(error)) from error
        except MetadataFileMissing as error:
            raise self._gone(kind, pointer, error) from error

    def check_file(self, kind: Kind[M], pointer: Pointer) -> None:
        """Check that the metadata file is there that a pointer names, without reading it.

        Raises:
            MetadataFileMissing: the file is gone.
            PastIsGone: the file is gone, and the warehouse is shown as it was.
            FilesUnavailable: the store does not answer.
        """
        try:
            self.server.metadata_files.check_present(self.files, pointer.metadata_location)
        except MetadataFileMissing as error:
            raise self._gone(kind, pointer, error) from error

    def _gone(
        self, kind: Kind[M], pointer: Pointer, error: MetadataFileMissing
    ) -> MetadataFileMissing | PastIsGone:
        if self.as_of_ms is None:
            return error
        return PastIsGone(
            f"{kind} {pointer.identifier} was there at {moment_text(self.as_of_ms)}, but its metadata file of "
            f"that time has been deleted since: {pointer.metadata_location}"
        )

    def keep(self, location: Location, loaded: Loaded[M]) -> None:
        """Remember what has just been written to a metadata file that is pointed to now."""
        kept, content = self.server.metadata_files, loaded.json
        kept.keep(self.files, location, loaded.metadata, content, loaded.registration)


def own_catalog(server: Server, warehouse_id: int) -> Catalog:
    """Return a warehouse as the server itself sees it, for no caller.

    Raises:
        NoSuchWarehouse: it is gone; without it the server does not know how to reach the files.
    """
    warehouse = server.warehouses.find_by_id(warehouse_id)
    if warehouse is None:
        raise NoSuchWarehouse(f"number {warehouse_id}")
    return Catalog(server, warehouse, SERVER_ITSELF)


@contextmanager
def new_in_warehouse(catalog: Catalog) -> Iterator[None]:
    """Say that the warehouse is gone if that is why nothing can be added to it.

    Raises:
        NoSuchWarehouse: another server has dropped it within the last second.
    """
    here = catalog.warehouse
    try:
        yield
    except ConstraintBroken as error:
        found = catalog.server.warehouses.find(here.name)
        if found is not None and found.id == here.id:
            raise
        raise NoSuchWarehouse(here.name) from error
