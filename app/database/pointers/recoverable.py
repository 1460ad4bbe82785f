"""Keeping what is dropped, so that it can come back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Connection,
    Integer,
    Text,
    bindparam,
    func,
    insert,
    select,
    text,
)

from app.database.pointers.history import Author, event_time
from app.database.schema.rows import dropped, namespaces, pointers


@dataclass(frozen=True, slots=True)
class Recovery:
    """For how long something that is dropped can come back, and what happens then."""

    keep_ms: int
    """0 if it cannot."""
    purge: bool = False
    """Whether its files are queued for deletion when the time is over."""


NAMESPACE: Final = "namespace"
"""The kind of a dropped namespace; other kinds are those of pointers."""
NO_RECOVERY = Recovery(0)
PURGE_NOW = Recovery(0, purge=True)
_AT_MS = event_time(pointers.c.updated_ms)
_KEPT = {
    "warehouse_id": namespaces.c.warehouse_id,
    "kind": pointers.c.kind,
    "namespace_key": namespaces.c.key,
    "name": pointers.c.name,
    "pointer_id": pointers.c.id,
    "uuid": pointers.c.uuid,
    "metadata_location": pointers.c.metadata_location,
    "registration": pointers.c.registration,
    "created_ms": pointers.c.created_ms,
    "dropped_ms": _AT_MS,
    "until_ms": _AT_MS + bindparam("keep_ms", type_=BigInteger),
    "principal": bindparam("principal", type_=Text),
    "request_id": bindparam("request_id", type_=Text),
    "purge": bindparam("purge", type_=Integer),
}
_KEEP = insert(dropped).from_select(
    list(_KEPT),
    select(*_KEPT.values())
    .join_from(pointers, namespaces, namespaces.c.id == pointers.c.namespace_id)
    .where(pointers.c.id == bindparam("of_pointer", type_=BigInteger)),
)


def keep_dropped(connection: Connection, pointer_id: int, author: Author, recovery: Recovery) -> None:
    """Keep a pointer that this transaction has locked and is about to delete."""
    values = {
        "of_pointer": pointer_id,
        "event_at_ms": author.at_ms,
        "keep_ms": recovery.keep_ms,
        "principal": author.principal,
        "request_id": author.request_id,
        "purge": int(recovery.purge),
    }
    connection.execute(_KEEP, values)


def keep_dropped_namespace(
    connection: Connection,
    name: Mapping[str, Any],
    kept: Mapping[str, Any],
    author: Author,
    keep_ms: int,
) -> None:
    """Keep a namespace that this transaction has deleted.

    Args:
        connection: of the transaction.
        name: as `parameters_of` returns it.
        kept: the columns of its row that are needed again.
        author: who drops it; the time is that of the drop.
        keep_ms: for how long it can come back.
    """
    values = {
        "warehouse_id": name["in_warehouse"],
        "kind": NAMESPACE,
        "namespace_key": name["of_key"],
        "name": "",
        "dropped_ms": author.at_ms,
        "until_ms": author.at_ms + keep_ms,
        "principal": author.principal,
        "request_id": author.request_id,
        "purge": 0,
        **kept,
    }
    connection.execute(insert(dropped).values(values))


def new_pointer_id(connection: Connection) -> int:
    """Return an id that no pointer has or will get, for one that was never here."""
    if connection.dialect.name == "postgresql":
        sequence = func.pg_get_serial_sequence(pointers.name, pointers.c.id.name)
        return int(connection.scalars(select(func.nextval(sequence))).one())
    # SQLite keeps the last id of each table with AUTOINCREMENT here, from the first one on.
    next_id = text("UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = :of_table RETURNING seq")
    first_id = text("INSERT INTO sqlite_sequence (name, seq) VALUES (:of_table, 1) RETURNING seq")
    of_table = {"of_table": pointers.name}
    found = connection.execute(next_id, of_table).scalar_one_or_none()
    return int(connection.execute(first_id, of_table).scalar_one() if found is None else found)
