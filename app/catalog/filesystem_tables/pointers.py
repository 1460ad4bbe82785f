"""The pointers of a file-system warehouse: the newest version of each table."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from app.catalog.filesystem_tables.namespaces import FolderNamespaces
from app.catalog.filesystem_tables.places import WarehouseTree, pointer_id_of
from app.catalog.filesystem_tables.removal import check_no_link, remove_table
from app.catalog.filesystem_tables.rules import refused, several_tables
from app.catalog.filesystem_tables.seen_tables import SeenTables
from app.catalog.filesystem_tables.versions import LogReader, TableFolder, TableVersion
from app.database.outcomes.idempotency_keys import IdempotencyClaim
from app.database.outcomes.receipt import CommitReceipt
from app.database.pointers.history import Author, PointerEvent
from app.database.pointers.moves import Advance, Creation, NameTaken, Unmoved, change_of
from app.database.pointers.pointer import Pointer, PointerKind
from app.database.pointers.pointers import PointerChanged, Pointers, PutOutcome
from app.database.pointers.recoverable import NO_RECOVERY, Recovery
from app.database.warehouses import Warehouse
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.ids import Location, TableUuid
from app.engine.model.table_metadata import TableMetadata, read_table_metadata
from app.errors import (
    CommitStateUnknown,
    FileMissing,
    IcetowerError,
    InvalidLocation,
    MetadataFileMissing,
    NamespaceExists,
    NoSuchNamespace,
)
from app.fileio.files import FileIO
from app.fileio.links import real_location
from app.fileio.locations import folder_name
from app.formats.metadata.files import MetadataFiles
from app.formats.metadata.version_names import HINT, version_in

log = logging.getLogger(__name__)

_LOOKS = 20
"""How often a table that moves while it is looked at is looked at again."""


@dataclass(frozen=True)
class FolderPointers:
    """A `PointerStore` in which the names of metadata files are the pointers.

    Rows have no part in a commit: they keep receipts and Idempotency-Keys, which are written after it.
    """

    warehouse: Warehouse
    files: FileIO
    rows: Pointers
    metadata_files: MetadataFiles
    seen: SeenTables
    step: Callable[[str], None]

    @property
    def tree(self) -> WarehouseTree:
        """The folders of the warehouse."""
        return WarehouseTree(self.warehouse.root_location)

    @property
    def namespaces(self) -> FolderNamespaces:
        """The namespaces of the warehouse."""
        return FolderNamespaces(self.warehouse, self.files, self.rows)

    def find(self, warehouse_id: int, identifier: TableIdentifier) -> Pointer | None:
        """Return the pointer of a table; its registration is a number of the file's content."""
        location = self.tree.find_folder(identifier)
        if location is None:
            return None
        folder = TableFolder(self.files, location)
        for _ in range(_LOOKS):
            version = folder.find_current()
            if version is None:
                return None
            try:
                uuid, number = self.metadata_files.identify(self.files, version.location)
            except MetadataFileMissing:
                continue  # It moved on, and the file was deleted.
            pointer_id = pointer_id_of(location)
            self.seen.note(pointer_id, warehouse_id, identifier)
            kind = PointerKind.TABLE
            return Pointer(pointer_id, warehouse_id, kind, identifier, uuid, version.location, number)
        return None

    def list_names(
        self,
        warehouse_id: int,  # noqa: ARG002 - a store is one warehouse's
        namespace: Namespace,
        kind: PointerKind,
        after: str | None = None,
        limit: int | None = None,
    ) -> tuple[str, ...]:
        """Return up to `limit` names of tables that follow `after`; there are no views."""
        names = tuple(islice(self.namespaces.tables_in(namespace, after), limit))
        return () if kind is PointerKind.VIEW else names

    def list_pointers(self, warehouse_id: int, kind: PointerKind, after_id: int, limit: int) -> list[Pointer]:
        """Return up to `limit` pointers, in the order of their ids without the sign.

        Fewer are the last ones. All folders are listed for it, as no order of names is that of ids.
        """
        if kind is PointerKind.VIEW:
            return []
        named = {pointer_id_of(self.tree.folder_of(name)): name for name in self._identifiers(None)}
        wanted = sorted((number for number in named if -number > abs(after_id)), reverse=True)
        found = (self._find_or_doubt(warehouse_id, named[number]) for number in wanted)
        return list(islice((pointer for pointer in found if pointer is not None), limit))

    def _find_or_doubt(self, warehouse_id: int, identifier: TableIdentifier) -> Pointer | None:
        """Return the pointer of a table that may not be readable; to read it says why."""
        try:
            return self.find(warehouse_id, identifier)
        except InvalidLocation:
            folder = TableFolder(self.files, self.tree.folder_of(identifier))
            number, hint = pointer_id_of(folder.location), Location(f"{folder.metadata}/{HINT}")
            return Pointer(number, warehouse_id, PointerKind.TABLE, identifier, TableUuid(""), hint, 1)

    def _identifiers(self, parent: Namespace | None) -> Iterator[TableIdentifier]:
        for level in self.namespaces.list_children(self.warehouse.id, parent):
            namespace = Namespace((*(parent.levels if parent else ()), level))
            try:
                for name in self.namespaces.tables_in(namespace):
                    yield TableIdentifier(namespace, name)
                yield from self._identifiers(namespace)
            except NoSuchNamespace:
                continue  # It was dropped meanwhile.

    def history(
        self, pointer_id: int, before: int | None = None, limit: int | None = None
    ) -> list[PointerEvent]:
        """Return the versions whose files are there, newest first, each with the time of its file.

        Who made a version, and in which request, no file says.
        """
        identifier = self.seen.find(pointer_id, self.warehouse.id) or next(
            (
                name
                for name in self._identifiers(None)
                if pointer_id_of(self.tree.folder_of(name)) == pointer_id
            ),
            None,
        )
        pointer = None if identifier is None else self.find(self.warehouse.id, identifier)
        if pointer is None or identifier is None:
            return []
        folder = TableFolder(self.files, self.tree.folder_of(identifier))
        current = version_in(pointer.metadata_location) or 0
        numbers = [item for item in folder.listed() if item <= current and (before is None or item < before)]
        wanted = sorted(numbers, reverse=True)[:limit]
        return [event for number in wanted if (event := self._event(folder, pointer, number)) is not None]

    def _event(self, folder: TableFolder, pointer: Pointer, number: int) -> PointerEvent | None:
        version = folder.find_version(number)
        file = None if version is None else self.files.find_file(version.location)
        if version is None or file is None:
            return None
        before = folder.find_version(number - 1) if number > 1 else None
        return PointerEvent(
            sequence=number,
            pointer_id=pointer.id,
            warehouse_id=self.warehouse.id,
            identifier=pointer.identifier,
            kind=PointerKind.TABLE,
            event="created" if number == 1 else "committed",
            previous_location=None if before is None else before.location,
            location=version.location,
            uuid=pointer.uuid,
            at_ms=file.modified_ms,
            author="",
            request_id="",
            job=None,
        )

    def check_and_put(
        self,
        changes: Sequence[Advance | Unmoved | Creation],
        author: Author,
        *claims: IdempotencyClaim | None,
        receipts: Sequence[CommitReceipt] = (),
    ) -> PutOutcome:
        """Create the file of one table's next version; receipts and claims are written after it.

        Raises:
            NoSuchNamespace: a new table's namespace does not exist.
            NameTaken: a new table's name is taken, by a table or a namespace.
            TreeRefusal: it is about several tables or a view, registers a file, deletes files later, or the table was
                adopted; or the store cannot promise that one writer wins.
            FilesUnavailable, DatabaseUnavailable: nothing was changed.
            IdempotencyKeyTaken: a claim's request was answered before.
        """
        if not changes:
            return self.rows.check_and_put([], author, *claims, receipts=receipts)
        if len(changes) > 1:
            raise several_tables()
        (change,) = changes
        assert not isinstance(change, Unmoved)
        self.rows.check_claims(claims)
        folder = self._folder_for(change)
        if folder is None:
            return PutOutcome.MOVED
        content = self.metadata_files.packed(change.location, change.content)
        self.step("before_version")
        try:
            is_created = folder.create(
                change.location, content, self._log_reader(change), self._base_reader(change)
            )
        except FileMissing:
            return PutOutcome.MOVED  # The table was dropped.
        except CommitStateUnknown as error:
            log.warning("%s", error)
            return PutOutcome.UNKNOWN
        if not is_created:
            return PutOutcome.MOVED
        self.step("after_version")
        folder.write_hint(version_in(change.location) or 0)
        self.step("after_hint")
        self._note(author, claims, receipts)
        return PutOutcome.ADVANCED

    def _note(
        self,
        author: Author,
        claims: Sequence[IdempotencyClaim | None],
        receipts: Sequence[CommitReceipt],
    ) -> None:
        """Keep receipts and claims of what has happened: nothing may fail it any more."""
        try:
            self.rows.check_and_put([], author, *claims, receipts=receipts)
        except IcetowerError as error:
            log.warning("a commit to a file-system table has no receipt: %s", error)

    def _folder_for(self, change: Advance | Creation) -> TableFolder | None:
        """Return the folder to commit in; None if the table is not where it was seen."""
        if isinstance(change, Creation):
            return self._new_folder(change)
        if change.expiry is not None and change.expiry.grace_ms is not None:
            raise refused("delete the files of expired snapshots", "no row says what else names them")
        seen = change.seen
        if self.find(self.warehouse.id, seen.identifier) != seen:
            return None
        folder = self.tree.folder_of(seen.identifier)
        if self._is_claimed(folder):
            raise refused(
                f"commit to {seen.identifier}",
                "the table was adopted, and a commit here would be a fork that nothing reads",
                "commit to it in the warehouse that adopted it",
            )
        return TableFolder(self.files, folder)

    def _is_claimed(self, folder: Location) -> bool:
        """Say whether a table of rows has a folder, also where a symbolic link leads to it."""
        return bool(
            self.rows.claims((), sorted({folder_name(folder), folder_name(real_location(folder))})).places
        )

    def _new_folder(self, creation: Creation) -> TableFolder | None:
        identifier = creation.identifier
        if creation.kind is PointerKind.VIEW:
            raise refused("create a view", "the format knows none there")
        if self.namespaces.find(self.warehouse.id, identifier.namespace) is None:
            raise NoSuchNamespace(identifier.namespace)
        folder = TableFolder(self.files, self.tree.folder_of(identifier))
        is_table = self.namespaces.is_table(folder.location)
        if is_table:
            raise NameTaken(PointerKind.TABLE, identifier)
        if self.namespaces.is_in_use(folder.location):
            raise NamespaceExists(Namespace((*identifier.namespace.levels, identifier.name)))
        if is_table is None or self._is_claimed(folder.location):
            raise refused(
                f"create {identifier}",
                "another catalog's table is in its folder",
                "choose another name",
            )
        self.namespaces.create_folder(folder.metadata)
        return folder

    def _log_reader(self, change: Advance | Creation) -> LogReader:
        def log_of(version: TableVersion | None) -> Mapping[int, int] | None:
            own = read_table_metadata(change.content)
            if version is None:
                return {version_in(change.location) or 0: own.last_updated_ms}
            found = self.metadata_files.read_table(self.files, version.location)
            # Without a uuid it may be the same table, before it was given one.
            return None if own.uuid and found.uuid != own.uuid else _moments(found)

        return log_of

    def _base_reader(self, change: Advance | Creation) -> Callable[[], bool]:
        def has_base() -> bool:
            if isinstance(change, Creation):
                return True
            seen = change.seen
            try:
                found = self.metadata_files.identify(self.files, seen.metadata_location)
            except MetadataFileMissing:
                return False
            return found == (seen.uuid, seen.registration)

        return has_base

    def has_landed(self, change: Advance | Creation, author: Author) -> bool:  # noqa: ARG002 - files name no author
        """Say whether a version is the one that was to be created; False if that is not known."""
        identifier = change.seen.identifier if isinstance(change, Advance) else change.identifier
        folder = TableFolder(self.files, self.tree.folder_of(identifier))
        content = self.metadata_files.packed(change.location, change.content)
        return folder.has_created(
            change.location, content, self._log_reader(change), self._base_reader(change)
        )

    def drop(
        self,
        warehouse_id: int,
        identifier: TableIdentifier,
        kind: PointerKind,
        author: Author,
        claim: IdempotencyClaim | None = None,
        *,
        event: str = "dropped",
        expected: Pointer | None = None,
        recovery: Recovery = NO_RECOVERY,
    ) -> Pointer | None:
        """Delete a table's folder with all that is in it; refused unless it is purged at once."""
        found = None if kind is PointerKind.VIEW else self.find(warehouse_id, identifier)
        if found is None:
            return None
        if recovery.purge and recovery.keep_ms:
            raise refused(
                f"drop {identifier} so that it can come back",
                "its folder is deleted at once",
                "set icetower.undrop.purge-waits to false for this warehouse",
            )
        if not recovery.purge:
            raise refused(
                f"{'unregister' if event == 'unregistered' else 'drop'} {identifier} and keep its files",
                "nothing but its files says that the table exists",
                "drop it with purgeRequested=true, which deletes its folder (icetower table drop --purge, PyIceberg's "
                "purge_table; Spark's DROP TABLE … PURGE asks without it), or adopt it first",
            )
        if expected is not None and found != expected:
            raise PointerChanged(identifier)
        self.rows.check_claims([claim])
        folder = TableFolder(self.files, self.tree.folder_of(identifier))
        check_no_link(self.warehouse.root_location, folder, identifier)

        def is_there() -> bool:
            now = self.find(warehouse_id, identifier)
            return now is not None and now.uuid == found.uuid

        remove_table(self.rows, folder, identifier, is_there, self.step)
        gone = change_of(found, event, location_before=found.metadata_location)
        self._note(author, [claim], author.receipts_of(gone))
        return found

    def rename(
        self,
        warehouse_id: int,
        kind: PointerKind,
        source: TableIdentifier,
        destination: TableIdentifier,
        author: Author,  # noqa: ARG002 - nothing is changed
        claim: IdempotencyClaim | None = None,  # noqa: ARG002 - nothing is changed
        *,
        expected: Pointer | None = None,  # noqa: ARG002 - nothing is changed
    ) -> Pointer | None:
        """Refuse: the name is the folder, and every file of the table is named with it."""
        if kind is PointerKind.VIEW or self.find(warehouse_id, source) is None:
            return None
        raise refused(
            f"rename {source} to {destination}", "the name is the folder, and all files are named with it"
        )


def _moments(metadata: TableMetadata) -> Mapping[int, int]:
    """Return when each version in a log was written last, by its number."""
    return {
        number: entry.timestamp_ms
        for entry in metadata.metadata_log
        if (number := version_in(Location(entry.metadata_file))) is not None
    }
