"""Deleting many rows in small transactions, between which others write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import Column, ColumnElement, Delete, delete, select

from app.database.connections.database import Database

BATCH = 1_000
STRETCH = 10_000
"""How many rows one statement looks through, where most of them stay."""


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


def delete_in_stretches(
    database: Database,
    key: Column[Any],
    *conditions: ColumnElement[bool],
    within: tuple[ColumnElement[bool], ...] = (),
    is_stopped: Callable[[], bool] = never,
) -> int:
    """Do the same where most rows stay: however many they are, each statement ends soon.

    Args:
        database: where they are.
        key: as for `delete_in_batches`.
        conditions: a row goes only if it meets them.
        within: conditions on the key: which rows are looked through.
        is_stopped: asked between two batches.
    """
    deleted, ahead = 0, within
    while True:
        end = _end_of_stretch(database, key, ahead)
        stretch = ahead if end is None else (*ahead, key <= end)
        deleted += delete_in_batches(database, key, *stretch, *conditions, is_stopped=is_stopped)
        if end is None or is_stopped():
            return deleted
        ahead = (*within, key > end)


def _end_of_stretch(database: Database, key: Column[Any], ahead: tuple[ColumnElement[bool], ...]) -> Any:
    """Return the key of the last row of a stretch; None if fewer rows are ahead."""
    query = select(key).where(*ahead).order_by(key).offset(STRETCH - 1).limit(1)
    return database.read(lambda connection: connection.scalars(query).one_or_none())


def _keys(database: Database, key: Column[Any], conditions: tuple[ColumnElement[bool], ...]) -> list[Any]:
    query = select(key).where(*conditions).order_by(key).limit(BATCH)
    return database.read(lambda connection: list(connection.scalars(query)))


def _delete(database: Database, statement: Delete) -> int:
    return database.write(lambda connection: int(connection.execute(statement).rowcount))
