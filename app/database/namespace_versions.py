"""How each namespace was, and when: written as namespaces are made, changed and dropped.

However the clocks of servers differ, none is there before the one above it, or ends before what was in it.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Connection, bindparam, func, insert, select, union_all, update

from app.database.namespace_keys import key_of
from app.database.schema.rows import namespace_versions as rows
from app.database.schema.rows import namespaces, pointer_names
from app.engine.model.identifiers import Namespace

_IS_LAST = (
    rows.c.warehouse_id == bindparam("in_warehouse", type_=BigInteger),
    rows.c.parent_key == bindparam("of_parent"),
    rows.c.name == bindparam("of_name"),
    rows.c.until_ms.is_(None),
)
_LAST = select(rows.c.from_ms).where(*_IS_LAST)
_HAS_NAME = _IS_LAST[:3]
_FREE_SINCE = select(
    func.max(rows.c.until_ms).label("freed_ms"),
    select(namespaces.c.created_ms)
    .where(
        namespaces.c.warehouse_id == bindparam("in_warehouse", type_=BigInteger),
        namespaces.c.key == bindparam("of_parent"),
    )
    .scalar_subquery()
    .label("made_ms"),
).where(*_HAS_NAME)
_EMPTY_SINCE = union_all(
    select(func.max(rows.c.until_ms)).where(
        rows.c.warehouse_id == bindparam("in_warehouse", type_=BigInteger),
        rows.c.parent_key == bindparam("of_key"),
    ),
    select(func.max(pointer_names.c.until_ms)).where(
        pointer_names.c.warehouse_id == bindparam("in_warehouse", type_=BigInteger),
        pointer_names.c.namespace_key == bindparam("of_key"),
    ),
)
_END = update(rows).where(*_IS_LAST).values(until_ms=bindparam("ends_ms", type_=BigInteger))


def free_since(connection: Connection, warehouse_id: int, namespace: Namespace) -> int:
    """Return since when a namespace may have this name; 0 if it always could.

    That is when the last one went, or the one above it came.
    """
    found = connection.execute(_FREE_SINCE, _names_of(warehouse_id, namespace)).one()
    return max(found.freed_ms or 0, found.made_ms or 0)


def empty_since(connection: Connection, warehouse_id: int, namespace: Namespace) -> int:
    """Return since when nothing is in a namespace any more; 0 if nothing ever was."""
    names = {"in_warehouse": warehouse_id, "of_key": key_of(namespace)}
    return max(found or 0 for found in connection.scalars(_EMPTY_SINCE, names))


def begin_version(
    connection: Connection, warehouse_id: int, namespace: Namespace, properties: str, at_ms: int
) -> None:
    """Note that a namespace is there with these properties, given as JSON, from this time on."""
    names = _names_of(warehouse_id, namespace)
    values = {
        "warehouse_id": warehouse_id,
        "parent_key": names["of_parent"],
        "name": names["of_name"],
        "properties": properties,
        "from_ms": at_ms,
    }
    connection.execute(insert(rows).values(values))


def end_version(connection: Connection, warehouse_id: int, namespace: Namespace, at_ms: int) -> int:
    """Note that a namespace is no longer as it was, and return since when."""
    names = _names_of(warehouse_id, namespace)
    ends_ms: int = max([at_ms, *connection.scalars(_LAST, names)])
    connection.execute(_END, {**names, "ends_ms": ends_ms})
    return ends_ms


def _names_of(warehouse_id: int, namespace: Namespace) -> dict[str, object]:
    *above, name = namespace.levels
    return {
        "in_warehouse": warehouse_id,
        "of_parent": key_of(Namespace(tuple(above))),
        "of_name": name,
    }
