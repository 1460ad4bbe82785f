"""How a namespace's levels are found in a row, and the conditions that find it."""

from __future__ import annotations

from sqlalchemy import ColumnElement, ScalarSelect, select

from app.database.rows import namespaces
from app.engine.model.identifiers import LEVEL_SEPARATOR, Namespace


def key_of(namespace: Namespace) -> str:
    """Return the namespace's levels as one text."""
    return LEVEL_SEPARATOR.join(namespace.levels)


def namespace_of(key: str) -> Namespace:
    """Return the namespace whose key this is."""
    return Namespace(tuple(key.split(LEVEL_SEPARATOR)))


def namespace_is_there(warehouse_id: int, namespace: Namespace) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions that only this namespace's row meets."""
    return namespaces.c.warehouse_id == warehouse_id, namespaces.c.key == key_of(namespace)


def namespace_id(warehouse_id: int, namespace: Namespace) -> ScalarSelect[int]:
    """Return a subquery for the namespace's id; it is null if the namespace does not exist."""
    # Under an alias, for the subquery of a statement that itself speaks of namespaces.
    found = namespaces.alias("found")
    return (
        select(found.c.id)
        .where(found.c.warehouse_id == warehouse_id, found.c.key == key_of(namespace))
        .scalar_subquery()
    )
