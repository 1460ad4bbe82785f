"""How each namespace was, and when: written as namespaces are made, changed and dropped."""

from __future__ import annotations

from sqlalchemy import BigInteger, Connection, bindparam, func, insert, select, update

from app.database.namespace_keys import key_of
from app.database.rows import namespace_versions as rows
from app.engine.model.identifiers import Namespace

_OF_NAME = (
    rows.c.warehouse_id == bindparam("in_warehouse", type_=BigInteger),
    rows.c.parent_key == bindparam("of_parent"),
    rows.c.name == bindparam("of_name"),
)
_IS_LAST = (*_OF_NAME, rows.c.until_ms.is_(None))
_FREE_SINCE = select(func.max(rows.c.until_ms)).where(*_OF_NAME)
_LAST = select(rows.c.from_ms).where(*_IS_LAST)
_END = update(rows).where(*_IS_LAST).values(until_ms=bindparam("ends_ms", type_=BigInteger))


def begin_version(
    connection: Connection, warehouse_id: int, namespace: Namespace, properties: str, at_ms: int
) -> None:
    """Note that a namespace is there with these properties, given as JSON, from this time on."""
    names = _names_of(warehouse_id, namespace)
    # By the clock of another server it may have been dropped later than it is made again here.
    free_ms = connection.scalars(_FREE_SINCE, names).one() or at_ms
    values = {
        "warehouse_id": warehouse_id,
        "parent_key": names["of_parent"],
        "name": names["of_name"],
        "properties": properties,
        "from_ms": max(at_ms, free_ms),
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
