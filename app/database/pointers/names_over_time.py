"""Which name each pointer has had, and when: written as names are given and taken."""

from __future__ import annotations

from sqlalchemy import BigInteger, Connection, bindparam, case, func, insert, select, update

from app.database.pointers.history import event_time
from app.database.pointers.pointer import PointerKind
from app.database.rows import namespaces, pointers
from app.database.rows import pointer_names as rows

# By the clocks of two servers, a name may have been given before it was free. It has one bearer at a time all the same.
_FREE_SINCE = (
    select(func.max(rows.c.until_ms))
    .where(
        rows.c.warehouse_id == namespaces.c.warehouse_id,
        rows.c.namespace_key == namespaces.c.key,
        rows.c.kind.in_([kind.value for kind in PointerKind]),
        rows.c.name == pointers.c.name,
    )
    .scalar_subquery()
)
_NAMED = select(
    pointers.c.id,
    namespaces.c.warehouse_id,
    namespaces.c.key,
    pointers.c.kind,
    pointers.c.name,
    case((pointers.c.updated_ms < _FREE_SINCE, _FREE_SINCE), else_=pointers.c.updated_ms),
).join_from(pointers, namespaces, namespaces.c.id == pointers.c.namespace_id)
_BEGIN = insert(rows).from_select(
    ["pointer_id", "warehouse_id", "namespace_key", "kind", "name", "from_ms"],
    _NAMED.where(pointers.c.id == bindparam("of_pointer", type_=BigInteger)),
)
_END = (
    update(rows)
    .where(rows.c.pointer_id == bindparam("of_pointer", type_=BigInteger), rows.c.until_ms.is_(None))
    .values(
        until_ms=select(event_time(pointers.c.updated_ms))
        .where(pointers.c.id == bindparam("of_pointer", type_=BigInteger))
        .scalar_subquery()
    )
)


def begin_name(connection: Connection, pointer_id: int) -> None:
    """Note that a pointer has its name since its last event, or since the name has been free."""
    connection.execute(_BEGIN, {"of_pointer": pointer_id})


def end_name(connection: Connection, pointer_id: int, at_ms: int) -> None:
    """Note that a pointer loses its name; called before its row changes."""
    connection.execute(_END, {"of_pointer": pointer_id, "event_at_ms": at_ms})
