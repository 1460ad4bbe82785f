"""Rows that are asked for no more: old events, finished deletions, unused places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from sqlalchemy import Column, ColumnElement, and_, exists, func, or_, select

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
from app.database.statements.batches import delete_in_batches, delete_in_stretches, never
from app.errors import IcetowerError

KEPT_EVENTS = 10
"""How many of its newest events each table or view keeps, however old they are."""


class OldRows:
    """Deletes old rows in small transactions, oldest first."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def delete(self, older_than_ms: int, is_stopped: Callable[[], bool] = never) -> int:
        """Delete what is older, by the database's clock, and return how many rows went.

        These stay whatever their age: the newest events of each pointer that is there; all events of a pointer that
        ever had no uuid, since its files may belong to others; the event before the time that is kept; what is still
        queued, and records of the same table.

        Args:
            older_than_ms: their age.
            is_stopped: asked between two batches; what is left then waits for the next time.

        Raises:
            DatabaseUnavailable, CommitStateUnknown: some of them could not be deleted now.
        """
        delete = partial(delete_in_batches, self._database, is_stopped=is_stopped)
        # Of these, all that stays is looked through each time.
        delete_among_many = partial(delete_in_stretches, self._database, is_stopped=is_stopped)
        events, deletions = pointer_history.c, file_deletions.c
        is_old_event = events.at_ms < database_now_ms() - older_than_ms
        steps = [
            partial(
                delete_among_many, events.at_ms, *_unneeded_events(older_than_ms), within=(is_old_event,)
            ),
            partial(delete, deletions.finished_ms, *_old_deletions(older_than_ms)),
        ]
        steps.extend(
            partial(delete, ended, ended < database_now_ms() - older_than_ms)
            for ended in (pointer_names.c.until_ms, namespace_versions.c.until_ms)
        )
        for rows in (table_places, foreign_places, metadata_sweeps):
            is_queued = exists().where(deletions.pointer_id == rows.c.pointer_id, deletions.state == "queued")
            is_unused = _is_gone(rows.c.pointer_id), ~is_queued
            steps.append(partial(delete_among_many, rows.c.pointer_id, *is_unused))
        of_entry = exists().where(deletions.id == orphan_batches.c.deletion_id)
        steps.append(partial(delete_among_many, orphan_batches.c.deletion_id, ~of_entry))
        return _all_of(steps)


def _all_of(steps: Sequence[Callable[[], int]]) -> int:
    """Do all steps, also behind one that fails; raise what the first of those has raised."""
    deleted, failure = 0, None
    for step in steps:
        try:
            deleted += step()
        except IcetowerError as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return deleted


def _is_gone(pointer_id: Column[int]) -> ColumnElement[bool]:
    """Return the condition that a pointer neither is there nor can come back."""
    return and_(
        ~exists().where(pointers.c.id == pointer_id), ~exists().where(dropped.c.pointer_id == pointer_id)
    )


def _unneeded_events(older_than_ms: int) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions on which old events go."""
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
        # There are few of these. To look for one among all events of each would take the square of their number.
        rows.c.pointer_id.not_in(select(others.c.pointer_id).where(others.c.uuid == "")),
        or_(_is_gone(rows.c.pointer_id), newer >= KEPT_EVENTS),
        # Where it was when the time that is kept begins.
        or_(
            rows.c.location.is_(None),
            exists().where(
                others.c.pointer_id == rows.c.pointer_id,
                others.c.sequence > rows.c.sequence,
                # Times of one pointer never fall: this is only where the index begins to be read.
                others.c.at_ms >= rows.c.at_ms,
                others.c.at_ms < database_now_ms() - older_than_ms,
            ),
        ),
    )


def _old_deletions(older_than_ms: int) -> tuple[ColumnElement[bool], ...]:
    rows, others = file_deletions, file_deletions.alias("others")
    return (
        rows.c.finished_ms < database_now_ms() - older_than_ms,
        rows.c.state != "queued",
        ~exists().where(others.c.uuid == rows.c.uuid, others.c.state == "queued"),
        # Of a purged table no file is missed as long as this is known: it outlives the table's events.
        or_(rows.c.kind != "purge", ~exists().where(pointer_history.c.pointer_id == rows.c.pointer_id)),
    )
