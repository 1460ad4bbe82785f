"""Deleting many rows in small transactions, between which others write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import Column, ColumnElement, Delete, delete, select

from app.database.connections.database import Database

BATCH = 1_000


def never() -> bool:
    """Return false: what is done goes on to its end."""
    return False


def delete_in_batches(
    database: Database,
    key: Column[Any],
    *conditions: ColumnElement[bool],
    is_stopped: Callable[[], bool] = never,
) -> int:
    """Delete rows that meet some conditions, and return how many they were.

    They are found by reading, beside which others write, in the order of a key: what stays is not read twice.

    Args:
        database: where they are.
        key: a column with an index that finds them; rows may have the same.
        conditions: a row goes only if it still meets them then.
        is_stopped: asked between two batches; what is left then waits for the next time.
    """
    deleted, unread = 0, conditions
    while not is_stopped():
        keys = _keys(database, key, unread)
        if not keys:
            break
        deleted += _delete(database, delete(key.table).where(key.in_(keys), *conditions))
        unread = (*conditions, key > keys[-1])
    return deleted


def _keys(database: Database, key: Column[Any], conditions: tuple[ColumnElement[bool], ...]) -> list[Any]:
    query = select(key).where(*conditions).order_by(key).limit(BATCH)
    return database.read(lambda connection: list(connection.scalars(query)))


def _delete(database: Database, statement: Delete) -> int:
    return database.write(lambda connection: int(connection.execute(statement).rowcount))
