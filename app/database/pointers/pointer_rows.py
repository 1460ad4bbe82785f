"""The columns of a pointer, and the pointer that they are put together to."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, Row, Select, select

from app.database.namespace_keys import namespace_of
from app.database.pointers.pointer import Pointer, PointerKind
from app.database.schema.rows import dropped, namespaces, pointers
from app.engine.model.identifiers import TableIdentifier

POINTER_COLUMNS = (
    pointers.c.id,
    namespaces.c.warehouse_id,
    pointers.c.kind,
    namespaces.c.key,
    pointers.c.name,
    pointers.c.uuid,
    pointers.c.metadata_location,
    pointers.c.registration,
)
"""For queries that join pointers with their namespaces."""


def dropped_as_pointers(*more: Column[Any]) -> Select[Any]:
    """Return the query for dropped tables and views, with the columns of a pointer."""
    return select(
        dropped.c.pointer_id.label("id"),
        dropped.c.warehouse_id,
        dropped.c.kind,
        dropped.c.namespace_key.label("key"),
        dropped.c.name,
        dropped.c.uuid,
        dropped.c.metadata_location,
        dropped.c.registration,
        *more,
    ).where(dropped.c.pointer_id.is_not(None))


def pointer_of(row: Row[*tuple[Any, ...]]) -> Pointer:
    """Return the pointer of a row with at least `POINTER_COLUMNS`, by their names."""
    return Pointer(
        row.id,
        row.warehouse_id,
        PointerKind(row.kind),
        TableIdentifier(namespace_of(row.key), row.name),
        row.uuid,
        row.metadata_location,
        row.registration,
    )
