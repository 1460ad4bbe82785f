"""Rows that are asked for no more: old events, finished deletions, unused places."""

from __future__ import annotations

from sqlalchemy import Column, ColumnElement, Delete, Select, Table, and_, delete, exists, func, or_, select

from app.database.connections.clock import database_now_ms
from app.database.connections.database import Database
from app.database.schema.rows import (
    dropped,
    file_deletions,
    foreign_places,
    metadata_sweeps,
    namespace_versions,
    orphan_batches,
    pointer_history,
    pointer_names,
    pointers,
    table_places,
)

KEPT_EVENTS = 10
"""How many of its newest events each table or view keeps, however old they are."""
BATCH = 1_000


class OldRows:
    """Deletes old rows in small transactions, oldest first."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def delete(self, older_than_ms: int) -> int:
        """Delete what is older, by the database's clock, and return how many rows went.

        These stay whatever their age: the newest events of each pointer that is there; all events of a pointer that
        ever had no uuid, since its files may belong to others; the event before the time that is kept; what is still
        queued, and records of the same table.
        """
        deleted = sum(
            map(
                self._delete_in_batches,
                (
                    _old_events(older_than_ms),
                    _old_deletions(older_than_ms),
                    _ended(pointer_names, older_than_ms),
                    _ended(namespace_versions, older_than_ms),
                ),
            )
        )
        for rows in (table_places, foreign_places, metadata_sweeps):
            statement = delete(rows).where(
                _is_gone(rows.c.pointer_id),
                ~exists().where(
                    file_deletions.c.pointer_id == rows.c.pointer_id, file_deletions.c.state == "queued"
                ),
            )
            deleted += self._execute(statement)
        of_entry = exists().where(file_deletions.c.id == orphan_batches.c.deletion_id)
        return deleted + self._execute(delete(orphan_batches).where(~of_entry))

    def _delete_in_batches(self, old: Select[tuple[int]]) -> int:
        deleted = 0
        (key,) = old.selected_columns
        while ids := self._database.read(lambda connection: list(connection.scalars(old.limit(BATCH)))):
            deleted += self._execute(delete(key.table).where(key.in_(ids)))
        return deleted

    def _execute(self, statement: Delete) -> int:
        return self._database.write(lambda connection: int(connection.execute(statement).rowcount))


def _is_gone(pointer_id: Column[int]) -> ColumnElement[bool]:
    """Return the condition that a pointer neither is there nor can come back."""
    return and_(
        ~exists().where(pointers.c.id == pointer_id), ~exists().where(dropped.c.pointer_id == pointer_id)
    )


def _old_events(older_than_ms: int) -> Select[tuple[int]]:
    rows, others = pointer_history, pointer_history.alias("others")
    newer = (
        select(func.count())
        .select_from(
            select(others.c.sequence)
            .where(others.c.pointer_id == rows.c.pointer_id, others.c.sequence > rows.c.sequence)
            .limit(KEPT_EVENTS)
            .correlate(rows)
            .subquery()
        )
        .correlate(rows)
        .scalar_subquery()
    )
    return (
        select(rows.c.sequence)
        .where(
            rows.c.at_ms < database_now_ms() - older_than_ms,
            ~exists().where(others.c.pointer_id == rows.c.pointer_id, others.c.uuid == ""),
            or_(_is_gone(rows.c.pointer_id), newer >= KEPT_EVENTS),
            # Where it was when the time that is kept begins.
            or_(
                rows.c.location.is_(None),
                exists().where(
                    others.c.pointer_id == rows.c.pointer_id,
                    others.c.sequence > rows.c.sequence,
                    others.c.at_ms < database_now_ms() - older_than_ms,
                ),
            ),
        )
        .order_by(rows.c.sequence)
    )


def _ended(rows: Table, older_than_ms: int) -> Select[tuple[int]]:
    return select(rows.c.id).where(rows.c.until_ms < database_now_ms() - older_than_ms)


def _old_deletions(older_than_ms: int) -> Select[tuple[int]]:
    rows, others = file_deletions, file_deletions.alias("others")
    return select(rows.c.id).where(
        rows.c.finished_ms < database_now_ms() - older_than_ms,
        rows.c.state != "queued",
        ~exists().where(others.c.uuid == rows.c.uuid, others.c.state == "queued"),
    )
