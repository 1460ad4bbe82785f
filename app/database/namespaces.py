"""Namespaces: their levels and properties, and what the constraints between them refuse."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from sqlalchemy import Connection, delete, exists, select, update

from app.database.connection import Database
from app.database.driver_errors import ConstraintBroken
from app.database.idempotency_keys import IdempotencyClaim, complete_claim, insert_claim
from app.database.inserts import insert_into
from app.database.namespace_keys import key_of, namespace_id, namespace_is_there
from app.database.pointer_kinds import PointerKind
from app.database.rows import namespaces as rows
from app.database.rows import pointers
from app.engine.model.identifiers import Namespace
from app.errors import NamespaceExists, NamespaceNotEmpty, NoSuchNamespace


@dataclass(frozen=True, slots=True)
class PropertyChanges:
    """What changing a namespace's properties came to, by property name."""

    updated: list[str]
    removed: list[str]
    missing: list[str]


class Namespaces:
    """The namespaces of every warehouse."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(
        self,
        warehouse_id: int,
        namespace: Namespace,
        properties: Mapping[str, str],
        now_ms: int,
        claim: IdempotencyClaim | None = None,
    ) -> None:
        """Add a namespace, and those of its ancestors that are missing, without properties.

        Raises:
            NamespaceExists: it is there already.
            IdempotencyKeyTaken: the claim's request was answered before.
        """

        def create(connection: Connection) -> None:
            insert_claim(connection, claim)
            parent_id: int | None = None
            for ancestor in _ancestors(namespace):
                parent_id = _find_or_insert(connection, warehouse_id, ancestor, parent_id, now_ms)
            if _insert(connection, warehouse_id, namespace, parent_id, properties, now_ms) is None:
                raise NamespaceExists(namespace)

        self._database.write(create)

    def find(self, warehouse_id: int, namespace: Namespace) -> dict[str, str] | None:
        """Return the namespace's properties, or nothing if it does not exist."""
        query = select(rows.c.properties).where(*namespace_is_there(warehouse_id, namespace))
        text = self._database.read(lambda connection: connection.execute(query).scalar_one_or_none())
        return None if text is None else json.loads(text)

    def list_children(
        self, warehouse_id: int, parent: Namespace | None, after: str | None = None, limit: int | None = None
    ) -> list[str]:
        """Return the last levels of the namespaces directly below `parent`, by name.

        Args:
            parent: nothing for the namespaces of one level.
            after: only names greater than this one.
            limit: at most so many.

        Raises:
            NoSuchNamespace: the parent does not exist.
        """
        # The subquery lets both databases read the names in the order of the index, however many there are.
        is_child = (
            rows.c.parent_id.is_(None)
            if parent is None
            else rows.c.parent_id == namespace_id(warehouse_id, parent)
        )
        query = select(rows.c.name).where(rows.c.warehouse_id == warehouse_id, is_child)
        if after is not None:
            query = query.where(rows.c.name > after)
        query = query.order_by(rows.c.name).limit(limit)

        def list_children(connection: Connection) -> list[str]:
            names = list(connection.scalars(query))
            if not names and parent is not None:
                _check_exists(connection, warehouse_id, parent)
            return names

        return self._database.read(list_children)

    def drop(
        self, warehouse_id: int, namespace: Namespace, claim: IdempotencyClaim | None = None
    ) -> None:
        """Remove an empty namespace; its ancestors stay.

        Raises:
            NoSuchNamespace: it does not exist.
            NamespaceNotEmpty: it holds tables, views or namespaces.
            IdempotencyKeyTaken: the claim's request was answered before.
        """
        statement = (
            delete(rows).where(*namespace_is_there(warehouse_id, namespace)).returning(rows.c.id)
        )

        def drop(connection: Connection) -> None:
            insert_claim(connection, claim)
            if connection.execute(statement).one_or_none() is None:
                raise NoSuchNamespace(namespace)

        try:
            self._database.write(drop)
        except ConstraintBroken as error:
            contents = self._database.read(
                lambda connection: _contents(connection, warehouse_id, namespace)
            )
            raise NamespaceNotEmpty(namespace, contents) from error

    def update_properties(
        self,
        warehouse_id: int,
        namespace: Namespace,
        removals: Iterable[str],
        updates: Mapping[str, str],
        claim: IdempotencyClaim | None = None,
    ) -> PropertyChanges:
        """Set some properties and remove others; the claim's result becomes the answer's JSON.

        Raises:
            NoSuchNamespace: it does not exist.
            IdempotencyKeyTaken: the claim's request was answered before.
        """
        unwanted = list(dict.fromkeys(removals))
        query = (
            select(rows.c.id, rows.c.properties)
            .where(*namespace_is_there(warehouse_id, namespace))
            .with_for_update(key_share=True)
        )

        def update_properties(connection: Connection) -> PropertyChanges:
            insert_claim(connection, claim)
            row = connection.execute(query).one_or_none()
            if row is None:
                raise NoSuchNamespace(namespace)
            properties: dict[str, str] = json.loads(row.properties)
            changes = PropertyChanges(
                updated=list(updates),
                removed=[key for key in unwanted if key in properties],
                missing=[key for key in unwanted if key not in properties],
            )
            properties.update(updates)
            for key in changes.removed:
                del properties[key]
            connection.execute(
                update(rows).where(rows.c.id == row.id).values(properties=json.dumps(properties))
            )
            complete_claim(connection, claim, json.dumps(asdict(changes)))
            return changes

        return self._database.write(update_properties)


def _ancestors(namespace: Namespace) -> list[Namespace]:
    return [Namespace(namespace.levels[:length]) for length in range(1, len(namespace.levels))]


def _insert(
    connection: Connection,
    warehouse_id: int,
    namespace: Namespace,
    parent_id: int | None,
    properties: Mapping[str, str],
    now_ms: int,
) -> int | None:
    """Insert one namespace and return its id, or nothing if its name is taken."""
    statement = (
        insert_into(connection, rows)
        .values(
            warehouse_id=warehouse_id,
            parent_id=parent_id,
            key=key_of(namespace),
            name=namespace.levels[-1],
            properties=json.dumps(dict(properties)),
            created_ms=now_ms,
        )
        .on_conflict_do_nothing(index_elements=[rows.c.warehouse_id, rows.c.key])
        .returning(rows.c.id)
    )
    return connection.execute(statement).scalar_one_or_none()


def _find_or_insert(
    connection: Connection, warehouse_id: int, namespace: Namespace, parent_id: int | None, now_ms: int
) -> int:
    """Return the namespace's id, locked against being dropped before the transaction ends."""
    query = (
        select(rows.c.id)
        .where(*namespace_is_there(warehouse_id, namespace))
        .with_for_update(read=True, key_share=True)
    )
    while True:
        found = connection.execute(query).scalar_one_or_none()
        if found is None:
            found = _insert(connection, warehouse_id, namespace, parent_id, {}, now_ms)
        if found is not None:
            return found
        # Somebody else created it in between, or created and dropped it: look again.


def _check_exists(connection: Connection, warehouse_id: int, namespace: Namespace) -> None:
    query = select(rows.c.id).where(*namespace_is_there(warehouse_id, namespace))
    if connection.execute(query).one_or_none() is None:
        raise NoSuchNamespace(namespace)


def _contents(connection: Connection, warehouse_id: int, namespace: Namespace) -> str:
    parent_id = namespace_id(warehouse_id, namespace)
    in_namespace = pointers.c.namespace_id == parent_id
    row = connection.execute(
        select(
            exists().where(in_namespace, pointers.c.kind == PointerKind.TABLE).label("tables"),
            exists().where(in_namespace, pointers.c.kind == PointerKind.VIEW).label("views"),
            exists().where(rows.c.warehouse_id == warehouse_id, rows.c.parent_id == parent_id).label("namespaces"),
        )
    ).one()
    found = [what for what, is_there in row._mapping.items() if is_there]
    # Whatever refused the drop may be gone by now.
    return " and ".join(found) or "tables, views or namespaces a moment ago"
