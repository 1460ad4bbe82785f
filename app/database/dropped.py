"""What was dropped and can come back, until its time is over."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, delete, exists, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from app.database.connections.database import Database
from app.database.connections.driver_errors import MAX_ATTEMPTS_AFTER_COLLISION, Undone
from app.database.namespace_keys import key_of, namespace_of
from app.database.namespaces import PropertiesOf, changes_of_made, insert_namespace, keep_or_insert
from app.database.outcomes.idempotency_keys import IdempotencyClaim, insert_claim
from app.database.outcomes.receipt import LandedChange
from app.database.outcomes.receipts import insert_landed
from app.database.pointers.foreign_files import ANYWHERE, note_foreign
from app.database.pointers.history import Author, insert_event
from app.database.pointers.left_files import check_registration, exclude, insert_deletion
from app.database.pointers.moves import change_of, claim_places, free_name
from app.database.pointers.names_over_time import begin_name
from app.database.pointers.pointer import Pointer, PointerKind
from app.database.pointers.recoverable import NAMESPACE, new_pointer_id
from app.database.schema.rows import dropped as rows
from app.database.schema.rows import namespaces, pointers
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.ids import Location, TableUuid
from app.errors import IcetowerError, NamespaceExists

_ENDED_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class Dropped:
    """Something that was dropped and can come back."""

    id: int
    warehouse_id: int
    kind: str
    """`table`, `view` or `namespace`."""
    namespace: Namespace
    """Of a namespace: itself."""
    name: str | None
    """None for a namespace."""
    pointer: Pointer | None
    """The table's or view's, as it was."""
    properties: Mapping[str, str]
    """Those of a namespace."""
    created_ms: int
    dropped_ms: int
    until_ms: int
    """When its time is over."""
    principal: str
    request_id: str
    purge: bool
    """Whether its files are deleted when its time is over."""

    def __str__(self) -> str:
        """Return its name, as in messages."""
        return str(self.namespace if self.name is None else TableIdentifier(self.namespace, self.name))


class DroppedMeanwhile(IcetowerError):
    """What was to come back cannot: its time is over, or another request took it."""


class FilesInUse(IcetowerError):
    """A table that is there has the same uuid as one that was to come back."""

    def __init__(self, identifier: TableIdentifier) -> None:
        self.identifier = identifier
        super().__init__(f"{identifier} has the same files")


class DroppedThings:
    """The rows of what was dropped. All that ends one deletes its row: of several, one does."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(
        self,
        warehouse_id: int,
        now_ms: int,
        *,
        before: int | None = None,
        limit: int | None = None,
        name: tuple[Namespace, str | None] | None = None,
    ) -> list[Dropped]:
        """Return what can come back, latest drop first.

        Args:
            warehouse_id: where it was.
            now_ms: what ends until then is left out.
            before: only rows with smaller ids.
            limit: how many at most.
            name: only what had this name; for a namespace without a second part.
        """
        wanted: list[ColumnElement[bool]] = [rows.c.warehouse_id == warehouse_id, rows.c.until_ms > now_ms]
        if before is not None:
            wanted.append(rows.c.id < before)
        if name is not None:
            wanted += [rows.c.namespace_key == key_of(name[0]), rows.c.name == (name[1] or "")]
        query = select(rows).where(*wanted).order_by(rows.c.id.desc()).limit(limit)
        return self._database.read(lambda connection: [_dropped(row) for row in connection.execute(query)])

    def find(self, warehouse_id: int, dropped_id: int, now_ms: int) -> Dropped | None:
        """Return what was dropped under this id, while it can come back."""
        return self._find((rows.c.warehouse_id == warehouse_id) & (rows.c.id == dropped_id), now_ms)

    def find_pointer(self, pointer_id: int, now_ms: int) -> Dropped | None:
        """Return the table or view that had a pointer, while it can come back."""
        return self._find(rows.c.pointer_id == pointer_id, now_ms)

    def _find(self, wanted: ColumnElement[bool], now_ms: int) -> Dropped | None:
        query = select(rows).where(wanted, rows.c.until_ms > now_ms)
        found = self._database.read(lambda connection: connection.execute(query).one_or_none())
        return None if found is None else _dropped(found)

    def undrop(
        self,
        entry: Dropped,
        destination: TableIdentifier,
        author: Author,
        claim: IdempotencyClaim | None = None,
        *,
        with_namespaces: bool = False,
    ) -> Pointer:
        """Bring a table or view back, as it was, and return its pointer.

        Args:
            entry: what was dropped.
            destination: the name that it gets.
            author: who does it.
            claim: to the Idempotency-Key of the request.
            with_namespaces: whether to make its namespace, and those above it, if they are missing: as they were.

        Raises:
            DroppedMeanwhile: it cannot come back any more.
            FilesInUse: a table of the same uuid is there.
            NameTaken: the name is taken.
            NoSuchNamespace: the destination's namespace is not there.
            IdempotencyKeyTaken: the claim's request was answered before.
        """
        was = entry.pointer
        assert was is not None

        def undrop(connection: Connection) -> Pointer:
            insert_claim(connection, claim)
            # Its files count as registered: no deletion of files may begin that has not seen this, and nothing with the
            # same files may come back beside it.
            exclude(connection, registrations=True)
            _take(connection, entry, author.at_ms)
            _check_alone(connection, was)
            at_ms = max(author.at_ms, entry.dropped_ms)
            made: list[Namespace] = []
            if with_namespaces:
                levels = destination.namespace.levels
                keep_or_insert(connection, was.warehouse_id, levels, at_ms, made, _as_dropped(author.at_ms))
            free = free_name(connection, was.warehouse_id, destination)
            at_ms = max(at_ms, free.since_ms)
            values = {
                "id": was.id,
                "namespace_id": free.namespace_id,
                "kind": was.kind,
                "name": destination.name,
                "uuid": was.uuid,
                "metadata_location": was.metadata_location,
                "created_ms": entry.created_ms,
                "updated_ms": at_ms,
                "registration": was.registration,
            }
            try:
                connection.execute(insert(pointers).values(values))
            except IntegrityError as error:
                # The name was taken in a transaction that ended only now: the next attempt sees it.
                raise Undone(error, MAX_ATTEMPTS_AFTER_COLLISION) from error
            insert_event(connection, was.id, "undropped", author, was.metadata_location)
            begin_name(connection, was.id)
            back = replace(was, identifier=destination)
            as_back = change_of(back, "undropped", location_after=was.metadata_location)
            insert_landed(connection, author.receipts_of(as_back, *changes_of_made(made)))
            return back

        return self._database.write(undrop)

    def undrop_namespace(
        self,
        entry: Dropped,
        destination: Namespace,
        author: Author,
        claim: IdempotencyClaim | None = None,
    ) -> None:
        """Bring a namespace back, and those above it that are missing, as they were.

        Args:
            entry: what was dropped.
            destination: the name that it gets.
            author: who does it.
            claim: to the Idempotency-Key of the request.

        Raises:
            DroppedMeanwhile: it cannot come back any more.
            NamespaceExists: the name is taken.
            IdempotencyKeyTaken: the claim's request was answered before.
        """

        def undrop(connection: Connection) -> None:
            insert_claim(connection, claim)
            _take(connection, entry, author.at_ms)
            at_ms = max(author.at_ms, entry.dropped_ms)
            made: list[Namespace] = []
            of_missing = _as_dropped(author.at_ms)
            if not insert_namespace(
                connection, entry.warehouse_id, destination, entry.properties, at_ms, made, of_missing
            ):
                raise NamespaceExists(destination)
            back = LandedChange(NAMESPACE, "undropped", destination.levels)
            insert_landed(connection, author.receipts_of(back, *changes_of_made(made)))

        self._database.write(undrop)

    def purge(
        self, entry: Dropped, author: Author, claim: IdempotencyClaim | None = None, *, deletion: bool
    ) -> None:
        """Forget something for good; with `deletion`, queue a table's files for deletion.

        Raises:
            DroppedMeanwhile: it cannot come back any more.
            IdempotencyKeyTaken: the claim's request was answered before.
        """

        def purge(connection: Connection) -> None:
            insert_claim(connection, claim)
            _take(connection, entry, author.at_ms)
            if deletion and entry.pointer is not None:
                insert_deletion(connection, entry.pointer, author.at_ms)
            gone = LandedChange(entry.kind, "purged", entry.namespace.levels, entry.name)
            insert_landed(connection, author.receipts_of(gone))

        self._database.write(purge)

    def remember(
        self, entry: Dropped, places: Collection[str] = (), read_since_ms: int | None = None
    ) -> bool:
        """Note what another database knew to be dropped; False if it is here, or was noted before.

        Args:
            entry: what was dropped; its id and its pointer's count for nothing, and it gets new ones.
            places: folders where a table keeps files.
            read_since_ms: when reading its metadata began, by the database's clock.

        Raises:
            FilesBeingDeleted: its files may be.
        """
        was = entry.pointer
        values = {
            "warehouse_id": entry.warehouse_id,
            "kind": entry.kind,
            "namespace_key": key_of(entry.namespace),
            "name": entry.name or "",
            "created_ms": entry.created_ms,
            "dropped_ms": entry.dropped_ms,
            "until_ms": entry.until_ms,
            "principal": entry.principal,
            "request_id": entry.request_id,
            "purge": int(entry.purge),
        }

        def remember(connection: Connection) -> bool:
            if connection.scalars(select(_is_known(entry))).one():
                return False
            if was is None:
                values["properties"] = json.dumps(dict(entry.properties))
            else:
                check_registration(connection, was.uuid, was.metadata_location, places, read_since_ms)
                pointer_id = new_pointer_id(connection)
                claim_places(connection, pointer_id, places)
                # Where it names files is found out later, as with all that is registered.
                note_foreign(connection, pointer_id, [ANYWHERE] if was.kind is PointerKind.TABLE else [])
                values.update(
                    pointer_id=pointer_id,
                    uuid=was.uuid,
                    metadata_location=was.metadata_location,
                    registration=was.registration,
                )
            connection.execute(insert(rows).values(values))
            return True

        return self._database.write(remember)

    def keep_files(self, warehouse_id: int) -> None:
        """Call off the purges that wait: files stay also after the time to come back."""
        statement = update(rows).where(rows.c.warehouse_id == warehouse_id).values(purge=0)
        self._database.write(lambda connection: connection.execute(statement))

    def end(self, now_ms: int) -> int:
        """Forget what has had its time, and return how many things that were.

        Files are queued for deletion where the drop wanted that.
        """
        over = (
            select(rows.c.id).where(rows.c.until_ms <= now_ms).order_by(rows.c.until_ms).limit(_ENDED_AT_ONCE)
        )
        if not self._database.read(lambda connection: connection.scalars(over).all()):
            return 0

        def end(connection: Connection) -> int:
            ended = connection.execute(delete(rows).where(rows.c.id.in_(over)).returning(rows)).all()
            for entry in map(_dropped, ended):
                if entry.purge and entry.pointer is not None:
                    insert_deletion(connection, entry.pointer, now_ms)
            return len(ended)

        return self._database.write(end)


def _as_dropped(now_ms: int) -> PropertiesOf:
    """Return what knows the properties with which a namespace was dropped last."""

    def properties(connection: Connection, warehouse_id: int, namespace: Namespace) -> Mapping[str, str]:
        last = (
            select(rows.c.properties)
            .where(
                rows.c.warehouse_id == warehouse_id,
                rows.c.namespace_key == key_of(namespace),
                rows.c.kind == NAMESPACE,
                rows.c.until_ms > now_ms,
            )
            .order_by(rows.c.id.desc())
            .limit(1)
        )
        found: dict[str, str] = json.loads(connection.scalars(last).one_or_none() or "{}")
        return found

    return properties


def _is_known(entry: Dropped) -> ColumnElement[bool]:
    """Return whether something is there, or was noted as dropped before."""
    noted = exists().where(
        rows.c.warehouse_id == entry.warehouse_id,
        rows.c.kind == entry.kind,
        rows.c.namespace_key == key_of(entry.namespace),
        rows.c.name == (entry.name or ""),
        rows.c.dropped_ms == entry.dropped_ms,
    )
    was = entry.pointer
    if was is None:
        return noted
    # Only tables of version 1 of the format can be without a uuid.
    is_same = (
        pointers.c.uuid == was.uuid if was.uuid else pointers.c.metadata_location == was.metadata_location
    )
    return or_(noted, exists().where(is_same))


def _take(connection: Connection, entry: Dropped, now_ms: int) -> None:
    """Delete the row, or raise `DroppedMeanwhile`: of all that want to end it one does."""
    statement = delete(rows).where(rows.c.id == entry.id, rows.c.until_ms > now_ms)
    if connection.execute(statement).rowcount != 1:
        raise DroppedMeanwhile(f"{entry} cannot come back any more")


def _check_alone(connection: Connection, was: Pointer) -> None:
    if not was.uuid:
        return
    twin = (
        select(namespaces.c.key, pointers.c.name)
        .join_from(pointers, namespaces, namespaces.c.id == pointers.c.namespace_id)
        .where(pointers.c.uuid == was.uuid)
        .limit(1)
    )
    found = connection.execute(twin).one_or_none()
    if found is not None:
        raise FilesInUse(TableIdentifier(namespace_of(found.key), found.name))


def _dropped(row: Row[Any]) -> Dropped:
    namespace, pointer = namespace_of(row.namespace_key), None
    if row.pointer_id is not None:
        pointer = Pointer(
            row.pointer_id,
            row.warehouse_id,
            PointerKind(row.kind),
            TableIdentifier(namespace, row.name),
            TableUuid(row.uuid),
            Location(row.metadata_location),
            row.registration,
        )
    return Dropped(
        id=row.id,
        warehouse_id=row.warehouse_id,
        kind=row.kind,
        namespace=namespace,
        name=row.name or None,
        pointer=pointer,
        properties=json.loads(row.properties or "{}"),
        created_ms=row.created_ms,
        dropped_ms=row.dropped_ms,
        until_ms=row.until_ms,
        principal=row.principal,
        request_id=row.request_id,
        purge=bool(row.purge),
    )
