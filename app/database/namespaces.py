"""Namespaces: their levels and properties, and what the constraints between them refuse."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from sqlalchemy import Connection, bindparam, delete, exists, select, tuple_, update

from app.database.connections.database import Database
from app.database.connections.driver_errors import ConstraintBroken
from app.database.connections.shared_lookups import SharedLookups
from app.database.namespace_keys import IS_NAMESPACE, NAMESPACE_ID, key_of, namespace_of, parameters_of
from app.database.namespace_versions import begin_version, empty_since, end_version, free_since
from app.database.outcomes.idempotency_keys import IdempotencyClaim, complete_claim, insert_claim
from app.database.outcomes.receipt import LandedChange
from app.database.outcomes.receipts import insert_landed
from app.database.pointers.history import Author
from app.database.pointers.pointer import PointerKind
from app.database.pointers.recoverable import NO_RECOVERY, Recovery, keep_dropped_namespace
from app.database.schema.rows import namespaces as rows
from app.database.schema.rows import pointers
from app.database.statements.driver_sql import rows_of
from app.database.statements.inserts import OnEachDatabase
from app.database.statements.pages import names_on_page, page_of, page_parameters
from app.engine.model.identifiers import Namespace
from app.errors import NamespaceExists, NamespaceNotEmpty, NoSuchNamespace
from app.waits import has_companions


@dataclass(frozen=True, slots=True)
class PropertyChanges:
    """The result of changing a namespace's properties, by property name."""

    updated: list[str]
    removed: list[str]
    missing: list[str]


PropertiesOf = Callable[[Connection, int, Namespace], Mapping[str, str]]
"""Returns the properties that a namespace of a warehouse is to have, asked in the transaction that makes it."""


def _no_properties(_connection: Connection, _warehouse_id: int, _namespace: Namespace) -> Mapping[str, str]:
    return {}


_ID = select(rows.c.id).where(*IS_NAMESPACE)
_ID_KEPT = _ID.with_for_update(read=True, key_share=True)
_PROPERTIES = select(rows.c.properties).where(*IS_NAMESPACE)
_PROPERTIES_OF_MANY = select(rows.c.warehouse_id, rows.c.key, rows.c.properties).where(
    tuple_(rows.c.warehouse_id, rows.c.key).in_(bindparam("of_keys", expanding=True))
)
_PROPERTIES_TO_CHANGE = (
    select(rows.c.id, rows.c.properties).where(*IS_NAMESPACE).with_for_update(key_share=True)
)
# The subquery, rather than a join, lets both databases read the names in the index's order, and stop.
_CHILDREN = page_of(
    select(rows.c.name).where(rows.c.parent_id == NAMESPACE_ID),
    rows.c.name,
)
_OUTERMOST = page_of(
    select(rows.c.name).where(rows.c.warehouse_id == bindparam("in_warehouse"), rows.c.parent_id.is_(None)),
    rows.c.name,
)
_ALL = (
    select(rows.c.key, rows.c.properties)
    .where(rows.c.warehouse_id == bindparam("in_warehouse"), rows.c.key > bindparam("after"))
    .order_by(rows.c.key)
    .limit(bindparam("at_most"))
)
_INSERT = OnEachDatabase(
    rows,
    lambda insert: insert.on_conflict_do_nothing(index_elements=[rows.c.warehouse_id, rows.c.key]).returning(
        rows.c.id
    ),
)
_SET_PROPERTIES = (
    update(rows).where(rows.c.id == bindparam("changed_id")).values(properties=bindparam("changed"))
)
_DELETE = delete(rows).where(*IS_NAMESPACE).returning(rows.c.properties, rows.c.created_ms)
_KINDS = ("tables", "views", "namespaces")
_CONTENTS = select(
    exists().where(pointers.c.namespace_id == NAMESPACE_ID, pointers.c.kind == PointerKind.TABLE),
    exists().where(pointers.c.namespace_id == NAMESPACE_ID, pointers.c.kind == PointerKind.VIEW),
    exists().where(rows.c.parent_id == NAMESPACE_ID),
)


class Namespaces:
    """The namespaces of every warehouse. A change of unknown outcome raises `CommitStateUnknown`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        is_postgres = database.dialect_name == "postgresql"
        self._shared = SharedLookups(self._find_many) if is_postgres else None

    def create(
        self,
        warehouse_id: int,
        namespace: Namespace,
        properties: Mapping[str, str],
        author: Author,
        claim: IdempotencyClaim | None = None,
    ) -> None:
        """Add a namespace, and those of its ancestors that are missing, without properties.

        Raises:
            NamespaceExists: it is there already.
            IdempotencyKeyTaken: the claim's request was answered before.
        """

        def create(connection: Connection) -> None:
            insert_claim(connection, claim)
            made: list[Namespace] = []
            if not insert_namespace(connection, warehouse_id, namespace, properties, author.at_ms, made):
                raise NamespaceExists(namespace)
            created = _change_of(namespace, "created")
            insert_landed(connection, author.receipts_of(created, *changes_of_made(made)))

        self._database.write(create)

    def find(self, warehouse_id: int, namespace: Namespace) -> dict[str, str] | None:
        """Return the namespace's properties; None if it does not exist."""
        if self._shared is not None and has_companions():
            shared = self._shared.find((warehouse_id, key_of(namespace)))
            return None if shared is None else json.loads(shared)
        parameters = parameters_of(warehouse_id, namespace)
        found = self._database.read(lambda connection: rows_of(connection, _PROPERTIES, parameters))
        return json.loads(found[0][0]) if found else None

    def _find_many(self, keys: Sequence[tuple[int, str]]) -> dict[tuple[int, str], str]:
        found = self._database.read(
            lambda connection: connection.execute(_PROPERTIES_OF_MANY, {"of_keys": keys}).all()
        )
        return {(row.warehouse_id, row.key): row.properties for row in found}

    def list_children(
        self, warehouse_id: int, parent: Namespace | None, after: str | None = None, limit: int | None = None
    ) -> tuple[str, ...]:
        """Return the last levels of up to `limit` namespaces directly below `parent`, in order.

        Without `parent`, the namespaces of one level; with `after`, those with a greater name.

        Raises:
            NoSuchNamespace: the parent does not exist.
        """
        page = page_parameters(after, limit)
        if parent is None:
            everywhere = {"in_warehouse": warehouse_id, **page}
            return self._database.read(lambda connection: names_on_page(connection, _OUTERMOST, everywhere))
        below = parameters_of(warehouse_id, parent)

        def list_children(connection: Connection) -> tuple[str, ...]:
            names = names_on_page(connection, _CHILDREN, {**below, **page})
            if not names and connection.execute(_ID, below).one_or_none() is None:
                raise NoSuchNamespace(parent)
            return names

        return self._database.read(list_children)

    def list_all(
        self, warehouse_id: int, after: Namespace | None, limit: int
    ) -> list[tuple[Namespace, dict[str, str]]]:
        """Return up to `limit` namespaces of any depth with their properties; parents come first.

        Args:
            after: the last one of the page before.
        """
        page = {
            "in_warehouse": warehouse_id,
            "after": "" if after is None else key_of(after),
            "at_most": limit,
        }
        found = self._database.read(lambda connection: connection.execute(_ALL, page).all())
        return [(namespace_of(row.key), json.loads(row.properties)) for row in found]

    def drop(
        self,
        warehouse_id: int,
        namespace: Namespace,
        author: Author,
        claim: IdempotencyClaim | None = None,
        *,
        recovery: Recovery = NO_RECOVERY,
        check: Callable[[Mapping[str, str]], None] = lambda _properties: None,
    ) -> None:
        """Remove an empty namespace; its ancestors stay.

        Args:
            warehouse_id: where it is.
            namespace: its name.
            author: who drops it.
            claim: to the Idempotency-Key of the request.
            recovery: for how long it can come back.
            check: is given its properties as they are when it goes. What it raises keeps it.

        Raises:
            NoSuchNamespace: it does not exist.
            NamespaceNotEmpty: it holds tables, views or namespaces.
            IdempotencyKeyTaken: the claim's request was answered before.
        """
        parameters = parameters_of(warehouse_id, namespace)

        def drop(connection: Connection) -> None:
            insert_claim(connection, claim)
            there = connection.execute(_PROPERTIES_TO_CHANGE, parameters).one_or_none()
            if there is None:
                raise NoSuchNamespace(namespace)
            check(json.loads(there.properties))
            # The constraint would see it, too, but SQLite counts all that is there, and all other writers wait.
            contents = connection.execute(_CONTENTS, parameters).one()
            if any(contents):
                raise NamespaceNotEmpty(namespace, _in_words(contents))
            row = connection.execute(_DELETE, parameters).one()
            emptied_ms = max(author.at_ms, empty_since(connection, warehouse_id, namespace))
            at_ms = end_version(connection, warehouse_id, namespace, emptied_ms)
            if recovery.keep_ms:
                kept = {"properties": row.properties, "created_ms": row.created_ms}
                by = replace(author, at_ms=at_ms)
                keep_dropped_namespace(connection, parameters, kept, by, recovery.keep_ms)
            insert_landed(connection, author.receipts_of(_change_of(namespace, "dropped")))

        try:
            self._database.write(drop)
        except ConstraintBroken as error:
            contents = self._database.read(lambda connection: connection.execute(_CONTENTS, parameters).one())
            raise NamespaceNotEmpty(namespace, _in_words(contents)) from error

    def update_properties(
        self,
        warehouse_id: int,
        namespace: Namespace,
        removals: Iterable[str],
        updates: Mapping[str, str],
        author: Author,
        claim: IdempotencyClaim | None = None,
    ) -> PropertyChanges:
        """Set some properties, then remove others; the claim's result becomes the answer's JSON.

        Raises:
            NoSuchNamespace: it does not exist.
            IdempotencyKeyTaken: the claim's request was answered before.
        """
        unwanted = list(dict.fromkeys(removals))
        parameters = parameters_of(warehouse_id, namespace)

        def update_properties(connection: Connection) -> PropertyChanges:
            insert_claim(connection, claim)
            row = connection.execute(_PROPERTIES_TO_CHANGE, parameters).one_or_none()
            if row is None:
                raise NoSuchNamespace(namespace)
            properties: dict[str, str] = json.loads(row.properties)
            properties.update(updates)
            changes = PropertyChanges(
                updated=list(updates),
                removed=[key for key in unwanted if key in properties],
                missing=[key for key in unwanted if key not in properties],
            )
            for key in changes.removed:
                del properties[key]
            changed = json.dumps(properties)
            connection.execute(_SET_PROPERTIES, {"changed_id": row.id, "changed": changed})
            change = None if changed == row.properties else _change_of(namespace, "updated")
            if change is not None:
                at_ms = end_version(connection, warehouse_id, namespace, author.at_ms)
                begin_version(connection, warehouse_id, namespace, changed, at_ms)
            complete_claim(connection, claim, json.dumps(asdict(changes)))
            insert_landed(connection, author.receipts_of(change))
            return changes

        return self._database.write(update_properties)


def insert_namespace(
    connection: Connection,
    warehouse_id: int,
    namespace: Namespace,
    properties: Mapping[str, str],
    now_ms: int,
    made: list[Namespace],
    of_missing: PropertiesOf = _no_properties,
) -> bool:
    """Insert a namespace and its missing ancestors; False if it is there already.

    The ancestors are added to `made`.
    """
    above = namespace.levels[:-1]
    parent_id = keep_or_insert(connection, warehouse_id, above, now_ms, made, of_missing)
    return _insert(connection, warehouse_id, namespace, parent_id, properties, now_ms) is not None


def keep_or_insert(
    connection: Connection,
    warehouse_id: int,
    levels: Sequence[str],
    now_ms: int,
    made: list[Namespace],
    of_missing: PropertiesOf = _no_properties,
) -> int | None:
    """Make the namespaces down to these levels that are missing, and keep all of them.

    They stay until the transaction ends.

    Args:
        connection: of the transaction.
        warehouse_id: where they are.
        levels: those of the innermost one.
        now_ms: the time.
        made: those that were missing are added to it.
        of_missing: returns the properties of one that is made.

    Returns:
        The id of the innermost one; None without levels.
    """
    found: int | None = None
    for length in range(1, len(levels) + 1):
        namespace = Namespace(tuple(levels[:length]))
        found, is_new = _find_or_insert(connection, warehouse_id, namespace, found, of_missing, now_ms)
        if is_new:
            made.append(namespace)
    return found


def changes_of_made(made: Iterable[Namespace]) -> list[LandedChange]:
    """Return what a receipt says of namespaces that were missing."""
    return [_change_of(namespace, "created") for namespace in made]


def _change_of(namespace: Namespace, event: str) -> LandedChange:
    return LandedChange("namespace", event, namespace.levels)


def _insert(
    connection: Connection,
    warehouse_id: int,
    namespace: Namespace,
    parent_id: int | None,
    properties: Mapping[str, str],
    now_ms: int,
) -> int | None:
    """Insert one namespace and return its id; None if its name is taken."""
    values = {
        "warehouse_id": warehouse_id,
        "parent_id": parent_id,
        "key": key_of(namespace),
        "name": namespace.levels[-1],
        "properties": json.dumps(dict(properties)),
        "created_ms": now_ms,
    }
    inserted: int | None = connection.execute(_INSERT[connection.dialect.name], values).scalar_one_or_none()
    if inserted is not None:
        # Only now: the insertion may have waited for the one that dropped the last namespace of this name.
        at_ms = max(now_ms, free_since(connection, warehouse_id, namespace))
        if at_ms > now_ms:
            connection.execute(update(rows).where(rows.c.id == inserted).values(created_ms=at_ms))
        begin_version(connection, warehouse_id, namespace, str(values["properties"]), at_ms)
    return inserted


def _find_or_insert(
    connection: Connection,
    warehouse_id: int,
    namespace: Namespace,
    parent_id: int | None,
    of_missing: PropertiesOf,
    now_ms: int,
) -> tuple[int, bool]:
    """Return the namespace's id and whether it is new.

    It is kept from being dropped until the transaction ends.
    """
    while True:
        found: int | None = connection.execute(
            _ID_KEPT, parameters_of(warehouse_id, namespace)
        ).scalar_one_or_none()
        if found is None:
            properties = of_missing(connection, warehouse_id, namespace)
            inserted = _insert(connection, warehouse_id, namespace, parent_id, properties, now_ms)
            if inserted is not None:
                return inserted, True
        else:
            return found, False
        # Between the two statements another transaction created it, and perhaps dropped it again.


def _in_words(contents: Iterable[bool]) -> str:
    found = [kind for kind, is_there in zip(_KINDS, contents, strict=True) if is_there]
    # What prevented the drop may be gone by now.
    return " and ".join(found) or "what was dropped only just now"
