"""Pointers: which metadata file each table and view is at, and the check-and-put that moves them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from sqlalchemy import Connection, delete, exists, select, tuple_, update

from app.database.connection import Database
from app.database.driver_errors import ConstraintBroken
from app.database.file_deletions import insert_deletion
from app.database.idempotency_keys import IdempotencyClaim, insert_claim
from app.database.inserts import insert_into
from app.database.namespace_keys import key_of, namespace_id, namespace_is_there, namespace_of
from app.database.pointer_history import Author, PointerEvent, insert_event, select_events
from app.database.pointer_kinds import PointerKind
from app.database.pointer_lookups import Pointer, PointerKey, PointerLookups
from app.database.rows import namespaces, pointer_history
from app.database.rows import pointers as rows
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.ids import Location, TableUuid
from app.errors import CommitStateUnknown, IcetowerError, NoSuchNamespace

__all__ = [
    "Advance",
    "Author",
    "Creation",
    "NameTaken",
    "Pointer",
    "PointerChanged",
    "PointerEvent",
    "PointerKey",
    "PointerKind",
    "Pointers",
    "PutOutcome",
]


class PutOutcome(Enum):
    """What came of a check-and-put."""

    ADVANCED = "advanced"
    MOVED = "moved"
    """A pointer was not where it was seen; nothing was changed."""
    UNKNOWN = "unknown"
    """The reply to COMMIT was lost: all of it happened, or nothing did."""


@dataclass(frozen=True, slots=True)
class Advance:
    """A pointer's wish to move from where it was seen; its name, by now, may be another."""

    seen: Pointer
    location: Location
    uuid: TableUuid
    event: str = "committed"
    """Or "replaced", if another table's metadata takes the place of this one's."""


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


class NameTaken(IcetowerError):
    """A table or a view has this name already."""

    def __init__(self, kind: PointerKind, identifier: TableIdentifier) -> None:
        self.kind = kind
        self.identifier = identifier
        super().__init__(f"A {kind} of this name already exists: {identifier}")


class PointerChanged(IcetowerError):
    """A pointer to be dropped is not the one that was seen; nothing was changed."""

    def __init__(self, identifier: TableIdentifier) -> None:
        super().__init__(f"{identifier} changed in the meantime")


class _Moved(Exception):
    """Undoes the transaction of a check-and-put that came too late."""


class _Absent(Exception):
    """Undoes a transaction that found nothing to change."""


class Pointers:
    """The pointers of every warehouse; the only place where they move."""

    def __init__(self, database: Database) -> None:
        self._database = database
        lookups = PointerLookups(database)
        self.find = lookups.find
        self.find_many = lookups.find_many

    def find_locked(self, pointer_id: int) -> Pointer | None:
        """Return the pointer as it is once no transaction that touched it is open any more.

        This is how to read back after an unknown outcome: on Postgres the lost transaction may still be running.

        Raises:
            DatabaseUnavailable: the database does not answer, or the row stays locked; nothing is known.
        """

        def find_locked(connection: Connection) -> Pointer | None:
            # Two statements: one that waits for a lock reads all other rows as they were before it waited.
            lock = select(rows.c.id).where(rows.c.id == pointer_id).with_for_update(key_share=True)
            if connection.execute(lock).one_or_none() is None:
                return None
            return _find_by_id(connection, pointer_id)

        return self._database.read_locked(find_locked)

    def has_landed(self, change: Advance | Creation) -> bool:
        """Say whether a check-and-put of unknown outcome happened, even if more has happened since.

        It waits for a lost transaction to end, and reads the history, which no later event rewrites.

        Raises:
            DatabaseUnavailable: the database does not answer, or the row stays locked; nothing is known.
        """
        if isinstance(change, Advance):
            lock = select(rows.c.id).where(rows.c.id == change.seen.id).with_for_update(key_share=True)
        else:
            # A new row cannot be waited for; but its insertion holds the namespace's row until it ends.
            lock = (
                select(namespaces.c.id)
                .where(*namespace_is_there(change.warehouse_id, change.identifier.namespace))
                .with_for_update()
            )
        landed = exists().where(
            pointer_history.c.uuid == change.uuid,
            pointer_history.c.location == change.location,
            pointer_history.c.event == change.event,
        )
        if isinstance(change, Advance):
            landed = landed.where(pointer_history.c.pointer_id == change.seen.id)

        def has_landed(connection: Connection) -> bool:
            connection.execute(lock).all()
            return bool(connection.execute(select(landed)).scalar_one())

        return self._database.read_locked(has_landed)

    def check_and_put(
        self,
        changes: Sequence[Advance | Creation],
        author: Author,
        claim: IdempotencyClaim | None = None,
    ) -> PutOutcome:
        """Move each pointer that is where it was seen, and create the new ones: all of it or nothing.

        Raises:
            NoSuchNamespace: a new pointer's namespace does not exist; nothing was changed.
            NameTaken: a new pointer's name is taken; nothing was changed.
            IdempotencyKeyTaken: the claim's request was answered before; nothing was changed.
            DatabaseUnavailable: nothing was changed.
        """
        # Rows are locked by id and names are taken in order: two transactions cannot wait for each other.
        advances = sorted(
            (change for change in changes if isinstance(change, Advance)), key=lambda change: change.seen.id
        )
        creations = sorted(
            (change for change in changes if isinstance(change, Creation)),
            key=lambda change: (change.warehouse_id, change.identifier),
        )

        def put(connection: Connection) -> None:
            insert_claim(connection, claim)
            for advance in advances:
                _advance(connection, advance, author)
            for creation in creations:
                _create(connection, creation, author)

        try:
            self._database.write(put)
        except _Moved:
            return PutOutcome.MOVED
        except CommitStateUnknown:
            return PutOutcome.UNKNOWN
        return PutOutcome.ADVANCED

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
        deletion: bool = False,
    ) -> Pointer | None:
        """Remove a pointer and return it as it was, or nothing if there is none.

        Args:
            expected: remove the pointer only if it is still this one, at this location.
            deletion: queue its files for deletion as well.

        Raises:
            PointerChanged: it is not the expected one; nothing was changed.
            IdempotencyKeyTaken: the claim's request was answered before; nothing was changed.
            CommitStateUnknown: the reply to COMMIT was lost.
        """
        lock = (
            select(rows.c.id, rows.c.uuid, rows.c.metadata_location)
            .where(
                rows.c.namespace_id == namespace_id(warehouse_id, identifier.namespace),
                rows.c.name == identifier.name,
                rows.c.kind == kind,
            )
            .with_for_update()
        )

        def drop(connection: Connection) -> Pointer | None:
            insert_claim(connection, claim)
            row = connection.execute(lock).one_or_none()
            if row is None:
                raise _Absent
            found = Pointer(row.id, warehouse_id, kind, identifier, row.uuid, row.metadata_location)
            if expected is not None and (found.id, found.metadata_location) != (
                expected.id,
                expected.metadata_location,
            ):
                raise PointerChanged(identifier)
            insert_event(
                connection, found.id, event, author, previous_location=found.metadata_location, is_gone=True
            )
            connection.execute(delete(rows).where(rows.c.id == found.id))
            if deletion:
                insert_deletion(
                    connection,
                    warehouse_id=warehouse_id,
                    uuid=found.uuid,
                    metadata_location=found.metadata_location,
                    identifier=str(identifier),
                    now_ms=author.at_ms,
                )
            return found

        try:
            return self._database.write(drop)
        except _Absent:
            return None

    def rename(
        self,
        warehouse_id: int,
        kind: PointerKind,
        source: TableIdentifier,
        destination: TableIdentifier,
        author: Author,
        claim: IdempotencyClaim | None = None,
    ) -> Pointer | None:
        """Give a pointer another name and return it, or nothing if there is none of the first name.

        Raises:
            NoSuchNamespace: the destination's namespace does not exist; nothing was changed.
            NameTaken: the destination's name is taken; nothing was changed.
            IdempotencyKeyTaken: the claim's request was answered before; nothing was changed.
            CommitStateUnknown: the reply to COMMIT was lost.
        """

        def rename(connection: Connection) -> Pointer:
            insert_claim(connection, claim)
            return _rename(connection, warehouse_id, kind, source, destination, author)

        while True:
            try:
                return self._database.write(rename)
            except _Absent:
                return None
            except ConstraintBroken as error:
                taken = self.find(warehouse_id, destination)
                if taken is not None:
                    raise NameTaken(taken.kind, destination) from error
                # The name's owner is gone again: it is free.

    def list_names(
        self,
        warehouse_id: int,
        namespace: Namespace,
        kind: PointerKind,
        after: str | None = None,
        limit: int | None = None,
    ) -> list[str]:
        """Return the names of a namespace's tables or views, in order.

        Args:
            after: only names greater than this one.
            limit: at most so many.

        Raises:
            NoSuchNamespace: the namespace does not exist.
        """
        query = select(rows.c.name).where(
            rows.c.namespace_id == namespace_id(warehouse_id, namespace), rows.c.kind == kind
        )
        if after is not None:
            query = query.where(rows.c.name > after)
        query = query.order_by(rows.c.name).limit(limit)
        is_there = select(namespaces.c.id).where(*namespace_is_there(warehouse_id, namespace))

        def list_names(connection: Connection) -> list[str]:
            names = list(connection.scalars(query))
            if not names and connection.execute(is_there).one_or_none() is None:
                raise NoSuchNamespace(namespace)
            return names

        return self._database.read(list_names)

    def others_with_uuid(self, uuid: TableUuid, pointer_id: int | None = None) -> bool:
        """Say whether a pointer, other than the one given, has this uuid: it may share files."""
        query = exists().where(rows.c.uuid == uuid)
        if pointer_id is not None:
            query = query.where(rows.c.id != pointer_id)
        return self._database.read(lambda connection: bool(connection.execute(select(query)).scalar_one()))

    def history(
        self, pointer_id: int, before: int | None = None, limit: int | None = None
    ) -> list[PointerEvent]:
        """Return what happened to a pointer, newest first; it may have been dropped since.

        Args:
            before: only events of which the sequence is less than this.
            limit: at most so many.
        """
        return self._database.read(lambda connection: select_events(connection, pointer_id, before, limit))


def _advance(connection: Connection, advance: Advance, author: Author) -> None:
    statement = (
        update(rows)
        .where(rows.c.id == advance.seen.id, rows.c.metadata_location == advance.seen.metadata_location)
        .values(metadata_location=advance.location, uuid=advance.uuid, updated_ms=author.at_ms)
    )
    if connection.execute(statement).rowcount != 1:
        raise _Moved
    insert_event(
        connection, advance.seen.id, advance.event, author, previous_location=advance.seen.metadata_location
    )


def _create(connection: Connection, creation: Creation, author: Author) -> None:
    found = select(namespaces.c.id).where(
        *namespace_is_there(creation.warehouse_id, creation.identifier.namespace)
    )
    while True:
        # The lock keeps the namespace from being dropped before the new row, which would refuse it, is seen.
        in_namespace = connection.execute(
            found.with_for_update(read=True, key_share=True)
        ).scalar_one_or_none()
        if in_namespace is None:
            raise NoSuchNamespace(creation.identifier.namespace)
        pointer_id = connection.execute(
            insert_into(connection, rows)
            .values(
                namespace_id=in_namespace,
                kind=creation.kind,
                name=creation.identifier.name,
                uuid=creation.uuid,
                metadata_location=creation.location,
                created_ms=author.at_ms,
                updated_ms=author.at_ms,
            )
            .on_conflict_do_nothing(index_elements=[rows.c.namespace_id, rows.c.name])
            .returning(rows.c.id)
        ).scalar_one_or_none()
        if pointer_id is not None:
            insert_event(connection, pointer_id, creation.event, author, previous_location=None)
            return
        kind = connection.execute(
            select(rows.c.kind).where(
                rows.c.namespace_id == in_namespace, rows.c.name == creation.identifier.name
            )
        ).scalar_one_or_none()
        if kind is not None:
            raise NameTaken(PointerKind(kind), creation.identifier)
        # The name's owner was dropped between the two statements: the name is free.


def _rename(
    connection: Connection,
    warehouse_id: int,
    kind: PointerKind,
    source: TableIdentifier,
    destination: TableIdentifier,
    author: Author,
) -> Pointer:
    # Namespaces before pointers, each in the order of ids, as everywhere: nobody waits in a circle.
    keys = {key_of(source.namespace), key_of(destination.namespace)}
    ids = {
        row.key: row.id
        for row in connection.execute(
            select(namespaces.c.key, namespaces.c.id)
            .where(namespaces.c.warehouse_id == warehouse_id, namespaces.c.key.in_(sorted(keys)))
            .order_by(namespaces.c.id)
            .with_for_update(read=True, key_share=True)
        )
    }
    old_namespace_id = ids.get(key_of(source.namespace))
    new_namespace_id = ids.get(key_of(destination.namespace))
    if old_namespace_id is None:
        raise _Absent
    names = [(old_namespace_id, source.name)]
    if new_namespace_id is not None:
        names.append((new_namespace_id, destination.name))
    found = {
        (row.namespace_id, row.name): row
        for row in connection.execute(
            select(rows.c.id, rows.c.namespace_id, rows.c.name, rows.c.kind, rows.c.uuid, rows.c.metadata_location)
            .where(tuple_(rows.c.namespace_id, rows.c.name).in_(names))
            .order_by(rows.c.id)
            .with_for_update()
        )
    }
    row = found.get((old_namespace_id, source.name))
    if row is None or row.kind != kind:
        raise _Absent
    if new_namespace_id is None:
        raise NoSuchNamespace(destination.namespace)
    renamed = Pointer(row.id, warehouse_id, kind, destination, row.uuid, row.metadata_location)
    if source == destination:
        return renamed
    taken = found.get((new_namespace_id, destination.name))
    if taken is not None:
        raise NameTaken(PointerKind(taken.kind), destination)
    connection.execute(
        update(rows)
        .where(rows.c.id == row.id)
        .values(namespace_id=new_namespace_id, name=destination.name, updated_ms=author.at_ms)
    )
    insert_event(connection, row.id, "renamed", author, previous_location=row.metadata_location)
    return renamed


def _find_by_id(connection: Connection, pointer_id: int) -> Pointer | None:
    row = connection.execute(
        select(
            rows.c.id,
            namespaces.c.warehouse_id,
            rows.c.kind,
            namespaces.c.key,
            rows.c.name,
            rows.c.uuid,
            rows.c.metadata_location,
        )
        .join_from(rows, namespaces, namespaces.c.id == rows.c.namespace_id)
        .where(rows.c.id == pointer_id)
    ).one_or_none()
    if row is None:
        return None
    identifier = TableIdentifier(namespace_of(row.key), row.name)
    return Pointer(
        row.id, row.warehouse_id, PointerKind(row.kind), identifier, row.uuid, row.metadata_location
    )
