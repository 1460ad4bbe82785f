"""Which name each pointer has had, and when: written as names are given and taken.

However the clocks of servers differ, at no time has a name two owners, or an owner without its namespace.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Connection,
    any_,
    bindparam,
    exists,
    func,
    insert,
    literal,
    select,
    update,
)

from app.database.connections.driver_errors import MAX_ATTEMPTS_AFTER_COLLISION, Undone
from app.database.pointers.history import event_time
from app.database.pointers.pointer import PointerKind
from app.database.schema.rows import namespaces, pointers
from app.database.schema.rows import pointer_names as rows
from app.database.statements.driver_sql import run_with
from app.errors import DatabaseUnavailable

_NAMED = select(
    pointers.c.id,
    namespaces.c.warehouse_id,
    namespaces.c.key,
    pointers.c.kind,
    pointers.c.name,
    pointers.c.updated_ms,
).join_from(pointers, namespaces, namespaces.c.id == pointers.c.namespace_id)
_KINDS = [literal(kind.value) for kind in PointerKind]
_earlier = rows.alias("earlier")


def _had_later(
    warehouse_id: ColumnElement[int],
    key: ColumnElement[str],
    name: ColumnElement[str],
    from_ms: ColumnElement[int],
) -> ColumnElement[bool]:
    """Return the condition that something had a name after some time, and has lost it."""
    return exists().where(
        _earlier.c.warehouse_id == warehouse_id,
        _earlier.c.namespace_key == key,
        _earlier.c.kind.in_(_KINDS),
        _earlier.c.name == name,
        _earlier.c.until_ms > from_ms,
    )


_BEGIN = (
    insert(rows)
    .from_select(
        ["pointer_id", "warehouse_id", "namespace_key", "kind", "name", "from_ms"],
        _NAMED.where(
            pointers.c.id == bindparam("of_pointer", type_=BigInteger),
            # Of NOT EXISTS Postgres makes a join, for which it reads all names that were ever in the namespace.
            _had_later(
                namespaces.c.warehouse_id, namespaces.c.key, pointers.c.name, pointers.c.updated_ms
            ).is_not(True),
        ),
    )
    .execution_options(preserve_rowcount=True)
)
# Among the columns each is looked up by itself, whatever Postgres makes of their number.
_OVERLAPPING = select(
    _had_later(rows.c.warehouse_id, rows.c.namespace_key, rows.c.name, rows.c.from_ms)
).where(rows.c.pointer_id == any_(bindparam("of_pointers", type_=ARRAY(BigInteger))))
_END = (
    update(rows)
    .where(rows.c.pointer_id == bindparam("of_pointer", type_=BigInteger), rows.c.until_ms.is_(None))
    .values(
        until_ms=select(event_time(pointers.c.updated_ms))
        .where(pointers.c.id == bindparam("of_pointer", type_=BigInteger))
        .scalar_subquery()
    )
)

LAST_FREED = select(func.max(rows.c.until_ms)).where(
    rows.c.warehouse_id == bindparam("in_warehouse", type_=BigInteger),
    rows.c.namespace_key == bindparam("of_key"),
    rows.c.kind.in_(_KINDS),
    rows.c.name == bindparam("of_name"),
)
"""When a name was last taken from a table or view; nothing may have it before."""


def begin_name(connection: Connection, pointer_id: int) -> None:
    """Note that a pointer has its name since its last event.

    Raises:
        Undone: by another server's clock something had the name later than that. It lost it only after we had looked,
            so the next attempt sees it.
    """
    if run_with(connection, _BEGIN, {"of_pointer": pointer_id}) != 1:
        raise _undone()


def check_begun(connection: Connection, pointer_ids: Collection[int]) -> None:
    """Check the same of new pointers whose names this transaction has noted; on Postgres."""
    if any(connection.scalars(_OVERLAPPING, {"of_pointers": list(pointer_ids)}).all()):
        raise _undone()


def _undone() -> Undone:
    return Undone(DatabaseUnavailable("A name was taken and freed meanwhile"), MAX_ATTEMPTS_AFTER_COLLISION)


def end_name(connection: Connection, pointer_id: int, at_ms: int) -> None:
    """Note that a pointer loses its name; called before its row changes."""
    connection.execute(_END, {"of_pointer": pointer_id, "event_at_ms": at_ms})
