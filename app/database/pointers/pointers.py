"""The store of pointers, and the check-and-put that moves them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any, Final

from sqlalchemy import BigInteger, ColumnElement, Connection, Select, bindparam, select

from app.database.connections.database import Database
from app.database.connections.shared_lookups import SharedLookups
from app.database.namespace_keys import IS_NAMESPACE, NAMESPACE_ID, parameters_of
from app.database.outcomes.idempotency_keys import IdempotencyClaim, check_free, insert_claim
from app.database.outcomes.receipt import CommitReceipt
from app.database.outcomes.receipts import insert_landed
from app.database.pointers.foreign_files import NotLookedAt, check_foreign
from app.database.pointers.history import Author, PointerEvent, select_events
from app.database.pointers.left_files import check_registration, insert_deletion
from app.database.pointers.lookups import PointerLookups
from app.database.pointers.moves import (
    Advance,
    Creation,
    PointerAbsent,
    PointerMovedOn,
    Unmoved,
    advance,
    create,
    drop,
    keep,
    lock_to_drop,
    rename,
    time_of_all,
)
from app.database.pointers.places import NO_ID, PlaceTaken, check_alone, find_taken, is_free, taken_of
from app.database.pointers.pointer import Pointer, PointerKind
from app.database.pointers.pointer_rows import POINTER_COLUMNS, dropped_as_pointers, pointer_of
from app.database.pointers.recoverable import NO_RECOVERY, Recovery, keep_dropped
from app.database.pointers.shared_advances import PlainAdvance, SharedAdvances, is_plain
from app.database.pointers.shared_changes import are_distinct
from app.database.pointers.shared_creations import PlainCreation, SharedCreations, is_plain_creation
from app.database.pointers.sharing import Claims, claimed_by_others, may_share_files, named_by_pointers
from app.database.schema.rows import dropped, namespaces, pointer_history
from app.database.schema.rows import pointers as rows
from app.database.statements.pages import names_on_page, page_of, page_parameters
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.ids import TableUuid
from app.errors import CommitStateUnknown, IcetowerError, IdempotencyKeyTaken, NoSuchNamespace
from app.waits import has_companions


class PutOutcome(Enum):
    """The outcome of a check-and-put."""

    ADVANCED = "advanced"
    MOVED = "moved"
    """A pointer was not where it was seen, or a place was taken meanwhile; nothing was changed."""
    UNKNOWN = "unknown"
    """The reply to COMMIT was lost: all of it happened, or nothing did."""


class PointerChanged(IcetowerError):
    """A pointer to be dropped or renamed is not the one that was seen; nothing was changed."""

    def __init__(self, identifier: TableIdentifier) -> None:
        super().__init__(f"{identifier} changed in the meantime")


_LOCKED_BY_ID = select(rows.c.id).where(rows.c.id == bindparam("of_id")).with_for_update(key_share=True)
_BY_ID = (
    select(*POINTER_COLUMNS)
    .join_from(rows, namespaces, namespaces.c.id == rows.c.namespace_id)
    .where(rows.c.id == bindparam("of_id"))
)
_DROPPED_BY_ID = (
    dropped_as_pointers()
    .where(dropped.c.pointer_id == bindparam("of_id"))
    .with_for_update(read=True, key_share=True)
)
_LARGE: Final = 20_000
"""Of a warehouse with more pointers SQLite is not to read all for each page of them, only to sort them."""


def _in_warehouse(warehouse: ColumnElement[int]) -> Select[Any]:
    return (
        select(*POINTER_COLUMNS)
        .join_from(rows, namespaces, namespaces.c.id == rows.c.namespace_id)
        .where(
            warehouse == bindparam("in_warehouse", type_=BigInteger),
            rows.c.kind == bindparam("of_kind"),
            rows.c.id > bindparam("after", type_=BigInteger),
        )
        .order_by(rows.c.id)
        .limit(bindparam("at_most", type_=BigInteger))
    )


_IN_WAREHOUSE = _in_warehouse(namespaces.c.warehouse_id)
# A term is found through no index: pointers are read in the order of their ids, those of others, too.
_IN_LARGE_WAREHOUSE = _in_warehouse(namespaces.c.warehouse_id + 0)
_IS_LARGE = (
    select(rows.c.id)
    .join_from(rows, namespaces, namespaces.c.id == rows.c.namespace_id)
    .where(
        namespaces.c.warehouse_id == bindparam("in_warehouse", type_=BigInteger),
        rows.c.kind == bindparam("of_kind"),
    )
    .limit(1)
    .offset(bindparam("more_than", type_=BigInteger))
)
_NAMESPACE_LOCKED = select(namespaces.c.id).where(*IS_NAMESPACE).with_for_update()
_EVENT_OF = select(pointer_history.c.pointer_id).where(
    pointer_history.c.uuid == bindparam("of_uuid"),
    pointer_history.c.location == bindparam("of_location"),
    pointer_history.c.event == bindparam("of_event"),
    pointer_history.c.at_ms >= bindparam("of_at_ms", type_=BigInteger),
    pointer_history.c.request_id == bindparam("of_request_id"),
)
_NAMES = page_of(
    select(rows.c.name).where(rows.c.namespace_id == NAMESPACE_ID, rows.c.kind == bindparam("of_kind")),
    rows.c.name,
)
_NAMESPACE = select(namespaces.c.id).where(*IS_NAMESPACE)


class Pointers:
    """The pointers of every warehouse; the only place where they move.

    Every method that changes something raises `DatabaseUnavailable` if nothing was changed, and all but
    `check_and_put` raise `CommitStateUnknown` if the reply to COMMIT was lost.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._is_postgres = database.dialect_name == "postgresql"
        self._shared_advances = SharedAdvances(database)
        self._shared_creations = SharedCreations(database)
        self._shared_places = SharedLookups(self._find_taken)
        lookups = PointerLookups(database)
        self.find = lookups.find
        self.find_many = lookups.find_many

    def find_locked(self, pointer_id: int) -> Pointer | None:
        """Return the pointer once no open transaction touches it; raises if the row stays locked.

        One that was dropped and can come back is returned as well: its files are a table's all the same.
        """
        parameters = {"of_id": pointer_id}

        def find_locked(connection: Connection) -> Pointer | None:
            # Several statements: the one that waits for a lock sees all other rows as they were before. So one that
            # comes back at this moment is in neither place at first, and is looked for once more.
            for _ in range(2):
                if connection.execute(_LOCKED_BY_ID, parameters).one_or_none() is not None:
                    return pointer_of(connection.execute(_BY_ID, parameters).one())
                dropped_one = connection.execute(_DROPPED_BY_ID, parameters).one_or_none()
                if dropped_one is not None:
                    return pointer_of(dropped_one)
            return None

        return self._database.read_locked(find_locked)

    def has_landed(self, change: Advance | Creation, author: Author) -> bool:
        """Say whether a check-and-put of unknown outcome has happened, whatever happened since.

        Waits for the lost transaction to end (on Postgres it may still run), then reads the history. The author, with
        request and time, distinguishes it from an earlier one of the same file. One change of many is enough to ask.

        Raises:
            DatabaseUnavailable: the database does not answer, or the row stays locked.
        """
        event = {
            "of_uuid": change.uuid,
            "of_location": change.location,
            "of_event": change.event,
            "of_at_ms": author.at_ms,
            "of_request_id": author.request_id,
        }

        def has_landed(connection: Connection) -> bool:
            if isinstance(change, Advance):
                connection.execute(_LOCKED_BY_ID, {"of_id": change.seen.id}).all()
            else:
                # A row that is not visible yet cannot be locked, but its insertion locks its namespace until it ends.
                in_namespace = parameters_of(change.warehouse_id, change.identifier.namespace)
                connection.execute(_NAMESPACE_LOCKED, in_namespace).all()
            landed = connection.scalars(_EVENT_OF, event).all()
            return change.seen.id in landed if isinstance(change, Advance) else bool(landed)

        return self._database.read_locked(has_landed)

    def check_and_put(
        self,
        changes: Sequence[Advance | Unmoved | Creation],
        author: Author,
        *claims: IdempotencyClaim | None,
        receipts: Sequence[CommitReceipt] = (),
    ) -> PutOutcome:
        """Move each pointer from where it was seen, and create the new ones: all or nothing.

        Args:
            changes: the moves, each of another pointer.
            author: who makes them.
            claims: to the Idempotency-Keys of the requests that land with it.
            receipts: of these requests.

        Raises:
            NoSuchNamespace: a new pointer's namespace does not exist.
            NameTaken: a new pointer's name is taken.
            IdempotencyKeyTaken: a claim's request was answered before.
            FilesBeingDeleted: files of what is to be registered, or that a commit takes in, are being deleted.
        """
        if self._is_postgres and len(changes) == 1 and len(claims) <= 1:
            try:
                if self._put_at_once(changes[0], author, receipts, *claims):
                    return PutOutcome.ADVANCED
            except CommitStateUnknown:
                return PutOutcome.UNKNOWN
        creations = sorted(
            (change for change in changes if isinstance(change, Creation)),
            key=lambda change: (change.warehouse_id, change.identifier),
        )
        present = sorted(
            (change for change in changes if not isinstance(change, Creation)),
            key=lambda change: change.seen.id,
        )

        taken = sorted(filter(None, claims), key=lambda claim: claim.principal_and_key)

        first_move = next((change for change in present if isinstance(change, Advance)), None)
        # On Postgres a statement costs a round trip: the first receipt has none of its own.
        along = receipts[0] if receipts and first_move is not None and self._is_postgres else None

        def put(connection: Connection) -> None:
            for claim in taken:
                insert_claim(connection, claim)
            for change in (*present, *creations):
                if not isinstance(change, Unmoved) and change.registration:
                    check_registration(
                        connection, change.uuid, change.location, change.places, change.read_since_ms
                    )
                if not isinstance(change, Unmoved) and change.foreign:
                    seen_id = change.seen.id if isinstance(change, Advance) else None
                    check_foreign(connection, seen_id, change.foreign)
            by = author
            if len(changes) > 1:
                ids = [change.seen.id for change in present]
                by = replace(author, at_ms=time_of_all(connection, ids, creations, author.at_ms))
            for change in present:
                if isinstance(change, Unmoved):
                    keep(connection, change)
                else:
                    advance(connection, change, by, along if change is first_move else None)
            made = [(create(connection, creation, by), creation.alone) for creation in creations]
            insert_landed(connection, [receipt for receipt in receipts if receipt is not along])
            check_alone(connection, [(pointer_id, alone) for pointer_id, alone in made if alone is not None])

        try:
            self._database.write_together(put)
        except (PointerMovedOn, PlaceTaken, NotLookedAt):
            return PutOutcome.MOVED
        except CommitStateUnknown:
            return PutOutcome.UNKNOWN
        return PutOutcome.ADVANCED

    def _put_at_once(
        self,
        change: Advance | Unmoved | Creation,
        author: Author,
        receipts: Sequence[CommitReceipt],
        claim: IdempotencyClaim | None = None,
    ) -> bool:
        """Make a change by one statement, with others of this thread; False if it cannot be."""
        if isinstance(change, Creation) and is_plain_creation(change, receipts):
            return self._shared_creations.put(PlainCreation(change, author, receipts[0], claim))
        # A lone one, too: it neither waits for a lock nor for those that do.
        if isinstance(change, Advance) and is_plain(change, receipts):
            return self._shared_advances.put(PlainAdvance(change, author, receipts[0], claim))
        return False

    def check_claims(self, claims: Sequence[IdempotencyClaim | None]) -> None:
        """Check that no request was answered under these keys, and lock nothing.

        Raises:
            IdempotencyKeyTaken: one was, or two of them are the same.
        """
        taken = list(filter(None, claims))
        if not are_distinct(taken):
            raise IdempotencyKeyTaken("two requests came with the same key")

        def check(connection: Connection) -> None:
            for claim in taken:
                check_free(connection, claim)

        if taken:
            self._database.read(check)

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
        """Remove a pointer and return it as it was; None if there is none.

        Args:
            event: how the history calls it, such as "unregistered".
            expected: remove the pointer only if it is still this one, at this location.
            recovery: for how long it can come back, and whether its files are queued for deletion then, or now.

        Raises:
            PointerChanged: it is not the expected one.
            IdempotencyKeyTaken: the claim's request was answered before.
        """

        def drop_in_transaction(connection: Connection) -> Pointer:
            insert_claim(connection, claim)
            found = lock_to_drop(connection, warehouse_id, identifier, kind)
            if expected is not None and not _are_same(found, expected):
                raise PointerChanged(identifier)
            if recovery.keep_ms:
                keep_dropped(connection, found.id, author, recovery)
            elif recovery.purge:
                insert_deletion(connection, found, author.at_ms)
            drop(connection, found, event, author)
            return found

        try:
            return self._database.write(drop_in_transaction)
        except PointerAbsent:
            return None

    def rename(
        self,
        warehouse_id: int,
        kind: PointerKind,
        source: TableIdentifier,
        destination: TableIdentifier,
        author: Author,
        claim: IdempotencyClaim | None = None,
        *,
        expected: Pointer | None = None,
    ) -> Pointer | None:
        """Give a pointer another name and return it; None if no pointer has the old name.

        Args:
            expected: rename the pointer only if it is still this one, at this location.

        Raises:
            PointerChanged: it is not the expected one.
            NoSuchNamespace: the destination's namespace does not exist.
            NameTaken: the destination's name is taken.
            IdempotencyKeyTaken: the claim's request was answered before.
        """

        def rename_in_transaction(connection: Connection) -> Pointer:
            insert_claim(connection, claim)
            renamed = rename(connection, warehouse_id, kind, source, destination, author)
            if expected is not None and not _are_same(renamed, expected):
                raise PointerChanged(source)
            return renamed

        try:
            return self._database.write(rename_in_transaction)
        except PointerAbsent:
            return None

    def list_names(
        self,
        warehouse_id: int,
        namespace: Namespace,
        kind: PointerKind,
        after: str | None = None,
        limit: int | None = None,
    ) -> tuple[str, ...]:
        """Return up to `limit` names of tables or views that follow the name `after`, in order.

        Raises:
            NoSuchNamespace: the namespace does not exist.
        """
        in_namespace = parameters_of(warehouse_id, namespace)
        parameters = {**in_namespace, "of_kind": kind, **page_parameters(after, limit)}

        def list_names(connection: Connection) -> tuple[str, ...]:
            names = names_on_page(connection, _NAMES, parameters)
            if not names and connection.execute(_NAMESPACE, in_namespace).one_or_none() is None:
                raise NoSuchNamespace(namespace)
            return names

        return self._database.read(list_names)

    def list_pointers(self, warehouse_id: int, kind: PointerKind, after_id: int, limit: int) -> list[Pointer]:
        """Return up to `limit` pointers of a warehouse with ids above `after_id`, in their order."""
        parameters = {"in_warehouse": warehouse_id, "of_kind": kind, "after": after_id, "at_most": limit}
        counted = {"in_warehouse": warehouse_id, "of_kind": kind, "more_than": _LARGE}

        def list_pointers(connection: Connection) -> list[Pointer]:
            # Postgres sees for itself which way is the shorter one.
            is_large = not self._is_postgres and connection.execute(_IS_LARGE, counted).one_or_none()
            page = _IN_LARGE_WAREHOUSE if is_large else _IN_WAREHOUSE
            return [pointer_of(row) for row in connection.execute(page, parameters)]

        return self._database.read(list_pointers)

    def may_share_files(self, uuid: TableUuid, pointer_id: int | None = None) -> bool:
        """Say whether another pointer may have the same files as a table of this uuid."""
        query = select(may_share_files(uuid, pointer_id))
        return self._database.read(lambda connection: bool(connection.scalars(query).one()))

    def claims(
        self, files: Collection[str], folders: Collection[str], pointer_id: int | None = None
    ) -> Claims:
        """Return which files a pointer names, and which folders other pointers claim.

        Args:
            files: locations, in each spelling that a pointer may have.
            folders: as `app.fileio.locations.folder_name` spells them.
        """
        named, claimed = named_by_pointers(files), claimed_by_others(folders, pointer_id)
        return self._database.read(
            lambda connection: Claims(
                frozenset(connection.scalars(named)),
                frozenset(connection.scalars(claimed)) if folders else frozenset(),
            )
        )

    def is_free(self, place: str) -> bool:
        """Say whether no pointer has a place that is this folder, above it or below it.

        What can come back counts, and what is being deleted.
        """
        if self._is_postgres and has_companions():
            return self._shared_places.find(place) is None
        return self._database.read(lambda connection: is_free(connection, place))

    def _find_taken(self, places: Sequence[str]) -> dict[str, bool]:
        claimed = [(NO_ID, place) for place in places]
        return dict.fromkeys(self._database.read(lambda connection: find_taken(connection, claimed)), True)

    def taken_of(self, folders: Collection[str]) -> frozenset[str]:
        """Return those of some folders that are places, as `is_free` counts them."""
        return self._database.read(lambda connection: taken_of(connection, folders))

    def history(
        self, pointer_id: int, before: int | None = None, limit: int | None = None
    ) -> list[PointerEvent]:
        """Return up to `limit` events with a sequence below `before`, newest first."""
        return self._database.read(lambda connection: select_events(connection, pointer_id, before, limit))


def _are_same(found: Pointer, expected: Pointer) -> bool:
    # A registration of the same file anew may say that the table belongs to another catalog now.
    seen = (expected.id, expected.metadata_location, expected.registration)
    return (found.id, found.metadata_location, found.registration) == seen
