"""The steps that move a pointer inside an open transaction: advance, create, drop, rename.

All lock in one order, so that no two transactions wait for each other: the Idempotency-Key, namespaces by id,
pointers by id, then new names in sorted order.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from sqlalchemy import BigInteger, Connection, Executable, Row, bindparam, delete, select, tuple_, update
from sqlalchemy.exc import IntegrityError

from app.database.connections.driver_calls import run_on_sqlite
from app.database.connections.driver_errors import MAX_ATTEMPTS_AFTER_COLLISION, Undone
from app.database.namespace_keys import IS_NAMESPACE, NAMESPACE_ID, key_of, parameters_of
from app.database.outcomes.receipt import CommitReceipt, LandedChange
from app.database.outcomes.receipts import GivenUpMeanwhile, insert_landed, landing_receipt, values_of
from app.database.pointers.foreign_files import note_foreign
from app.database.pointers.history import (
    Author,
    event_time,
    event_values,
    insert_event,
    insert_events,
    insert_last_event,
    with_event,
)
from app.database.pointers.left_files import QueuedExpiry, TakenIn, are_known, insert_expiry
from app.database.pointers.names_over_time import LAST_FREED, begin_name, end_name
from app.database.pointers.pointer import Pointer, PointerKind
from app.database.schema.rows import namespaces, table_places
from app.database.schema.rows import pointers as rows
from app.database.statements.driver_sql import rows_of, run_with, sqlite_sql
from app.database.statements.inserts import OnEachDatabase
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.ids import Location, TableUuid
from app.errors import IcetowerError, NoSuchNamespace


@dataclass(frozen=True, slots=True)
class Advance:
    """A pointer's move from where it was seen; the pointer may have been renamed since."""

    seen: Pointer
    location: Location
    uuid: TableUuid
    event: str = "committed"
    """Or "replaced", if another table's metadata takes the place of this one's."""
    expiry: QueuedExpiry | None = None
    """Files that go out of reach by this move, to be deleted later."""
    places: frozenset[str] = frozenset()
    """Folders where it keeps files, if a new one may be among them."""
    registration: int = 0
    """A new number if the metadata comes from elsewhere; 0 if it was made from the pointer's."""
    read_since_ms: int | None = None
    """When reading such metadata began, by the database's clock: its files must not have been deleted since."""
    others: tuple[tuple[str, Author], ...] = ()
    """Events, with their authors, of further requests that land by this same move."""
    foreign: frozenset[str] = frozenset()
    """Folders outside its own places in which it names new files, as in `note_foreign`; mostly none."""
    taken_in: TakenIn | None = None
    """Files of any age that it takes in; None if all its files are new."""
    content: bytes = field(default=b"", repr=False)
    """The metadata file as JSON, for a store in which creating the file is the move; empty if it is written."""

    @property
    def registration_after(self) -> int:
        """The pointer's, once it has moved."""
        return self.registration or self.seen.registration


@dataclass(frozen=True, slots=True)
class Unmoved:
    """A pointer that must not have moved: what was checked there must still be true."""

    seen: Pointer


@dataclass(frozen=True, slots=True)
class Creation:
    """A new pointer under a name that nothing has."""

    warehouse_id: int
    kind: PointerKind
    identifier: TableIdentifier
    uuid: TableUuid
    location: Location
    event: str = "created"
    """Or "registered", if the metadata file was there before."""
    places: frozenset[str] = frozenset()
    """Folders where it keeps files."""
    registration: int = 0
    """A new number if the metadata comes from elsewhere."""
    read_since_ms: int | None = None
    """As that of an advance."""
    foreign: frozenset[str] = frozenset()
    """As those of an advance."""
    alone: str | None = None
    """The one of its places where nothing else may be, nor above it or below it; None if none has to be so."""
    content: bytes = field(default=b"", repr=False)
    """As that of an advance."""

    @property
    def registration_after(self) -> int:
        """The pointer's, once it is made."""
        return self.registration


class NameTaken(IcetowerError):
    """A table or a view has this name already."""

    def __init__(self, kind: PointerKind, identifier: TableIdentifier) -> None:
        self.kind = kind
        self.identifier = identifier
        super().__init__(f"A {kind} of this name already exists: {identifier}")


class PointerMovedOn(Exception):
    """A pointer is not where it was seen; the transaction must be undone."""


class PointerAbsent(Exception):
    """No pointer has this name and kind; the transaction must be undone."""


# A registration of the same file anew may say that the table belongs to another catalog now.
_IS_AS_SEEN = (
    rows.c.id == bindparam("seen_id"),
    rows.c.metadata_location == bindparam("seen_location"),
    rows.c.registration == bindparam("seen_registration", type_=BigInteger),
)
_ADVANCE = (
    update(rows)
    .where(*_IS_AS_SEEN)
    .values(
        metadata_location=bindparam("new_location"),
        uuid=bindparam("new_uuid"),
        updated_ms=event_time(rows.c.updated_ms),
        registration=bindparam("new_registration", type_=BigInteger),
    )
)
_ADVANCE_ON_SQLITE = sqlite_sql(_ADVANCE)
_ADVANCE_WITH_EVENT = with_event(_ADVANCE).execution_options(preserve_rowcount=True)
_INSERT_PLACE = OnEachDatabase(table_places, lambda insert: insert.on_conflict_do_nothing())
# Reads first whether the name is taken: this saves waiting for a transaction that moves its owner.
_NAMESPACE_KEPT = (
    select(
        namespaces.c.id,
        select(rows.c.kind)
        .where(rows.c.namespace_id == namespaces.c.id, rows.c.name == bindparam("of_name"))
        .scalar_subquery()
        .label("kind"),
        namespaces.c.created_ms,
        LAST_FREED.scalar_subquery().label("freed_ms"),
    )
    .where(*IS_NAMESPACE)
    .with_for_update(read=True, key_share=True, of=namespaces)
)
_INSERT = OnEachDatabase(
    rows,
    lambda insert: insert.on_conflict_do_nothing(index_elements=[rows.c.namespace_id, rows.c.name]).returning(
        rows.c.id
    ),
)
_POINTER = select(
    rows.c.id,
    rows.c.namespace_id,
    rows.c.name,
    rows.c.kind,
    rows.c.uuid,
    rows.c.metadata_location,
    rows.c.registration,
)
_POINTER_TO_DROP = _POINTER.where(
    rows.c.namespace_id == NAMESPACE_ID,
    rows.c.name == bindparam("of_name"),
    rows.c.kind == bindparam("of_kind"),
).with_for_update()
_TIMES_LOCKED = (
    select(rows.c.updated_ms)
    .where(rows.c.id.in_(bindparam("of_ids", expanding=True)))
    .order_by(rows.c.id)
    .with_for_update(key_share=True)
)
_KEPT = select(rows.c.id).where(*_IS_AS_SEEN).with_for_update(read=True)
_DELETE = delete(rows).where(rows.c.id == bindparam("dropped_id"))
_NAMESPACES_KEPT = (
    select(namespaces.c.key, namespaces.c.id, namespaces.c.created_ms)
    .where(
        namespaces.c.warehouse_id == bindparam("in_warehouse"),
        namespaces.c.key.in_(bindparam("of_keys", expanding=True)),
    )
    .order_by(namespaces.c.id)
    .with_for_update(read=True, key_share=True)
)
_POINTERS_TO_RENAME = (
    _POINTER.where(tuple_(rows.c.namespace_id, rows.c.name).in_(bindparam("of_names", expanding=True)))
    .order_by(rows.c.id)
    .with_for_update()
)
_RENAME = (
    update(rows)
    .where(rows.c.id == bindparam("renamed_id"))
    .values(
        namespace_id=bindparam("new_namespace"),
        name=bindparam("new_name"),
        updated_ms=event_time(rows.c.updated_ms),
    )
)


def advance(
    connection: Connection, move: Advance, author: Author, receipt: CommitReceipt | None = None
) -> None:
    """Move a pointer if it is where it was seen, else raise `PointerMovedOn`.

    Args:
        move: from where to where.
        author: who makes it.
        receipt: written by the same statement; Postgres only.

    Raises:
        GivenUpMeanwhile: a client has heard that this will not happen.
    """
    if move.taken_in is not None and not are_known(connection, move.seen, move.taken_in):
        raise PointerMovedOn  # to be planned anew, which looks whether its files are there
    values = {
        "seen_id": move.seen.id,
        "seen_location": move.seen.metadata_location,
        "seen_registration": move.seen.registration,
        "new_location": move.location,
        "new_uuid": move.uuid,
        "new_registration": move.registration_after,
    }
    event = event_values(move.seen.id, move.event, author, move.seen.metadata_location)
    if connection.dialect.name == "postgresql":
        # One statement: each costs a round trip. An event that finds no namespace undoes the move with it.
        if receipt is None:
            moved = connection.execute(_ADVANCE_WITH_EVENT, values | event).rowcount == 1
        else:
            written = connection.execute(_advance_with_receipt(), values | event | values_of(receipt))
            receipts = written.scalar_one_or_none()
            if receipts == 0:
                raise GivenUpMeanwhile
            moved = receipts == 1
        if not moved:
            raise PointerMovedOn
    else:
        at_ms = {"event_at_ms": author.at_ms}
        if run_on_sqlite(connection, _ADVANCE_ON_SQLITE, values | at_ms) != 1:
            raise PointerMovedOn
        insert_event(connection, move.seen.id, move.event, author, move.seen.metadata_location)
    claim_places(connection, move.seen.id, move.places)
    note_foreign(connection, move.seen.id, move.foreign)
    # Each finds the pointer where the one before it left it: at the file that has the changes of all.
    insert_events(connection, move.seen.id, move.others, move.location)
    if move.expiry is not None:
        insert_expiry(connection, move.expiry, move.seen, move.location, author.at_ms)


@cache
def _advance_with_receipt() -> Executable:
    # Made when it is needed, for it imports the dialect of Postgres.
    return with_event(_ADVANCE, landing_receipt())


def time_of_all(
    connection: Connection, pointer_ids: Collection[int], creations: Collection[Creation], at_ms: int
) -> int:
    """Return one time for the events of several pointers, and lock those that are there.

    Raises `NoSuchNamespace` or `NameTaken` for a new one.
    """
    free = [free_name(connection, each.warehouse_id, each.identifier).since_ms for each in creations]
    latest: list[int] = list(connection.scalars(_TIMES_LOCKED, {"of_ids": sorted(pointer_ids)}))
    return max([at_ms, *free, *latest])


def keep(connection: Connection, unmoved: Unmoved) -> None:
    """Keep a pointer where it was seen until the transaction ends, else raise `PointerMovedOn`."""
    seen = unmoved.seen
    names = {
        "seen_id": seen.id,
        "seen_location": seen.metadata_location,
        "seen_registration": seen.registration,
    }
    if connection.execute(_KEPT, names).one_or_none() is None:
        raise PointerMovedOn


def create(connection: Connection, creation: Creation, author: Author) -> int:
    """Insert a pointer and return its id, or raise `NoSuchNamespace` or `NameTaken`."""
    identifier = creation.identifier
    while True:
        free = free_name(connection, creation.warehouse_id, identifier)
        at_ms = max(author.at_ms, free.since_ms)
        values = {
            "namespace_id": free.namespace_id,
            "kind": creation.kind,
            "name": identifier.name,
            "uuid": creation.uuid,
            "metadata_location": creation.location,
            "created_ms": at_ms,
            "updated_ms": at_ms,
            "registration": creation.registration,
        }
        inserted = rows_of(connection, _INSERT[connection.dialect.name], values)
        if inserted:
            pointer_id = int(inserted[0][0])
            claim_places(connection, pointer_id, creation.places)
            note_foreign(connection, pointer_id, creation.foreign)
            insert_event(connection, pointer_id, creation.event, author, None)
            begin_name(connection, pointer_id)
            return pointer_id
        # Between the two statements another transaction took the name, and perhaps released it again.


@dataclass(frozen=True, slots=True)
class FreeName:
    """A name that nothing has."""

    namespace_id: int
    since_ms: int
    """When its namespace was made, or the name was taken from what had it, by the clocks of those who did it."""


def free_name(connection: Connection, warehouse_id: int, identifier: TableIdentifier) -> FreeName:
    """Return a free name, whose namespace stays until the transaction ends.

    Raises:
        NoSuchNamespace: the namespace is not there.
        NameTaken: the name is taken.
    """
    names = {**parameters_of(warehouse_id, identifier.namespace), "of_name": identifier.name}
    found = rows_of(connection, _NAMESPACE_KEPT, names)
    if not found:
        raise NoSuchNamespace(identifier.namespace)
    ((namespace_id, kind, created_ms, freed_ms),) = found
    if kind is not None:
        raise NameTaken(PointerKind(kind), identifier)
    return FreeName(namespace_id, max(created_ms, freed_ms or 0))


def claim_places(connection: Connection, pointer_id: int, places: Collection[str]) -> None:
    """Note the folders in which no other table may delete."""
    if places:
        values = ({"pointer_id": pointer_id, "place": place} for place in sorted(places))
        run_with(connection, _INSERT_PLACE[connection.dialect.name], *values)


def lock_to_drop(
    connection: Connection, warehouse_id: int, identifier: TableIdentifier, kind: PointerKind
) -> Pointer:
    """Return the pointer, locked, or raise `PointerAbsent`."""
    row = connection.execute(
        _POINTER_TO_DROP,
        {
            **parameters_of(warehouse_id, identifier.namespace),
            "of_name": identifier.name,
            "of_kind": kind,
        },
    ).one_or_none()
    if row is None:
        raise PointerAbsent
    return _pointer(row, warehouse_id, identifier)


def drop(connection: Connection, found: Pointer, event: str, author: Author) -> None:
    """Delete a pointer that this transaction has locked."""
    insert_last_event(connection, found.id, event, author, found.metadata_location)
    end_name(connection, found.id, author.at_ms)
    gone = change_of(found, event, location_before=found.metadata_location)
    insert_landed(connection, author.receipts_of(gone))
    connection.execute(_DELETE, {"dropped_id": found.id})


def rename(
    connection: Connection,
    warehouse_id: int,
    kind: PointerKind,
    source: TableIdentifier,
    destination: TableIdentifier,
    author: Author,
) -> Pointer:
    """Give a pointer another name, or raise `PointerAbsent`, `NoSuchNamespace` or `NameTaken`."""
    kept = _keep_namespaces(connection, warehouse_id, {source.namespace, destination.namespace})
    ids = [kept.get(key_of(identifier.namespace), (None, 0))[0] for identifier in (source, destination)]
    old_name, new_name = (ids[0], source.name), (ids[1], destination.name)
    found = {
        (row.namespace_id, row.name): row
        for row in connection.execute(
            _POINTERS_TO_RENAME, {"of_names": [name for name in (old_name, new_name) if name[0] is not None]}
        )
    }
    row = found.get(old_name)
    if row is None or row.kind != kind:
        raise PointerAbsent
    if new_name[0] is None:
        raise NoSuchNamespace(destination.namespace)
    renamed = _pointer(row, warehouse_id, destination)
    as_renamed = change_of(renamed, "renamed", location_after=row.metadata_location)
    insert_landed(connection, author.receipts_of(None if source == destination else as_renamed))
    if source == destination:
        return renamed
    if new_name in found:
        raise NameTaken(PointerKind(found[new_name].kind), destination)
    names = {**parameters_of(warehouse_id, destination.namespace), "of_name": destination.name}
    made_ms, freed_ms = kept[names["of_key"]][1], connection.scalars(LAST_FREED, names).one()
    author = replace(author, at_ms=max(author.at_ms, made_ms, freed_ms or 0))
    values = {
        "renamed_id": row.id,
        "new_namespace": new_name[0],
        "new_name": new_name[1],
        "event_at_ms": author.at_ms,
    }
    end_name(connection, row.id, author.at_ms)
    try:
        connection.execute(_RENAME, values)
    except IntegrityError as error:
        # The name was taken in a transaction that ended only now: the next attempt sees it.
        raise Undone(error, MAX_ATTEMPTS_AFTER_COLLISION) from error
    insert_event(connection, row.id, "renamed", author, row.metadata_location)
    begin_name(connection, row.id)
    return renamed


def change_of(pointer: Pointer, event: str, **facts: Any) -> LandedChange:
    """Return what a receipt says of a change of this pointer."""
    identifier = pointer.identifier
    return LandedChange(pointer.kind, event, identifier.namespace.levels, identifier.name, **facts)


def _keep_namespaces(
    connection: Connection, warehouse_id: int, wanted: set[Namespace]
) -> dict[str, tuple[int, int]]:
    """Return ids and creation times of the namespaces that exist, locked against drops."""
    keys = sorted(key_of(namespace) for namespace in wanted)
    found = connection.execute(_NAMESPACES_KEPT, {"in_warehouse": warehouse_id, "of_keys": keys})
    return {row.key: (row.id, row.created_ms) for row in found}


def _pointer(row: Row[*tuple[Any, ...]], warehouse_id: int, identifier: TableIdentifier) -> Pointer:
    return Pointer(
        row.id,
        warehouse_id,
        PointerKind(row.kind),
        identifier,
        row.uuid,
        row.metadata_location,
        row.registration,
    )
