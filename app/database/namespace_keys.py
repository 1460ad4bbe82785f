"""How a namespace's levels are stored in a row, and the conditions that find the row."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, ScalarSelect, bindparam, select

from app.database.schema.rows import namespaces
from app.engine.model.identifiers import LEVEL_SEPARATOR, Namespace


def key_of(namespace: Namespace) -> str:
    """Return the namespace's levels as one text."""
    return LEVEL_SEPARATOR.join(namespace.levels)


def namespace_of(key: str) -> Namespace:
    """Return the namespace whose key this is."""
    return Namespace(tuple(key.split(LEVEL_SEPARATOR)))


def parameters_of(warehouse_id: int, namespace: Namespace) -> dict[str, Any]:
    """Return the values for `IS_NAMESPACE` and `NAMESPACE_ID`."""
    return {"in_warehouse": warehouse_id, "of_key": key_of(namespace)}


IS_NAMESPACE: tuple[ColumnElement[bool], ...] = (
    namespaces.c.warehouse_id == bindparam("in_warehouse"),
    namespaces.c.key == bindparam("of_key"),
)
"""The conditions that only one namespace's row meets."""

# Under an alias, for subqueries in statements about namespaces.
_found = namespaces.alias("found")

NAMESPACE_ID: ScalarSelect[int] = (
    select(_found.c.id)
    .where(_found.c.warehouse_id == bindparam("in_warehouse"), _found.c.key == bindparam("of_key"))
    .scalar_subquery()
)
"""A namespace's id, or null if it does not exist."""
