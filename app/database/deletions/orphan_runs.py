"""Orphans that were marked: which files, and what has become of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from sqlalchemy import Connection, delete, exists, func, insert, or_, select, update

from app.database.connections.database import Database
from app.database.deletions.file_deletions import Deletion, is_held_by
from app.database.outcomes.idempotency_keys import IdempotencyClaim, insert_claim
from app.database.pointers.left_files import exclude, insert_orphans, queue_orphans
from app.database.pointers.pointer import Pointer
from app.database.schema.rows import file_deletions as entries
from app.database.schema.rows import orphan_batches as rows
from app.database.statements.batches import delete_in_batches
from app.engine.model.ids import TableUuid
from app.errors import CommitStateUnknown, DatabaseUnavailable, IdempotencyKeyTaken

TOGETHER = 64
"""How many batches one transaction inserts."""


@dataclass(frozen=True, slots=True)
class OrphanBatch:
    """A few hundred marked files."""

    number: int
    files: str
    """JSON; empty once the batch is done."""
    marked_files: int
    marked_bytes: int


@dataclass(frozen=True, slots=True)
class OrphanRun:
    """What was marked together, and what has become of it so far."""

    id: int
    state: str
    """`queued`, or how it ended."""
    report: str
    """What was found, as JSON."""
    delete_after_ms: int
    created_ms: int
    finished_ms: int | None
    error: str | None
    marked_files: int
    marked_bytes: int
    deleted_files: int
    deleted_bytes: int
    kept_files: int
    """Those of the batches that are done which stayed, or were gone."""


class _NotQueued(Exception):
    """Other orphans of the table are queued, or the warehouse was dropped."""


class OrphanRuns:
    """Marked orphans; each run is an entry in the queue of file deletions."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def mark(
        self,
        seen: Pointer,
        report: str,
        grace_ms: int,
        now_ms: int,
        batches: Iterable[OrphanBatch],
        claim: IdempotencyClaim | None = None,
    ) -> bool:
        """Queue orphans, all or nothing; return False if others of the table are queued.

        They may be a million: then they are written down in several transactions, between which others write. Nothing
        looks at them until the last one queues the run.

        Args:
            seen: the table's pointer.
            report: what was found, as JSON.
            grace_ms: how long the files stay.
            now_ms: epoch milliseconds.
            batches: the files, one at least.
            claim: to the request's Idempotency-Key.

        Raises:
            IdempotencyKeyTaken: the claim's request was answered before.
            DatabaseUnavailable: nothing was marked.
            CommitStateUnknown: all was marked, or nothing.
        """
        run_id: int | None = None
        added_id: int | None = None  # also if that was not confirmed

        def add(together: Sequence[OrphanBatch], connection: Connection) -> int:
            nonlocal added_id
            number = run_id
            if number is None:
                number = insert_orphans(connection, seen, report, now_ms)
            if number is None:
                raise _NotQueued
            added_id = number
            connection.execute(insert(rows), [_row(number, batch) for batch in together])
            return number

        def queue(together: Sequence[OrphanBatch], connection: Connection) -> None:
            insert_claim(connection, claim)
            number = add(together, connection)
            if not queue_orphans(connection, number, seen.uuid, grace_ms):
                raise _NotQueued  # so that the claim goes, too

        rest = iter(batches)
        together = list(islice(rest, TOGETHER))
        try:
            while more := list(islice(rest, TOGETHER)):
                run_id = self._write_part(partial(add, together))
                together = more
            self._database.write(partial(queue, together))
        except _NotQueued:
            self._take_back(added_id, seen.uuid, report)
            return False
        except (IdempotencyKeyTaken, DatabaseUnavailable):
            self._take_back(added_id, seen.uuid, report)
            raise
        except CommitStateUnknown as error:
            if not self._is_queued(added_id, seen.uuid, report, error):
                self._take_back(added_id, seen.uuid, report)
                raise DatabaseUnavailable(
                    "The database did not confirm the change, and has not made it: no orphans are marked"
                ) from error
        return True

    def _write_part(self, add: Callable[[Connection], int]) -> int:
        """Write down a part of what is to be marked; nothing is queued yet, whatever becomes of it."""
        try:
            return self._database.write(add)
        except CommitStateUnknown as error:
            raise DatabaseUnavailable(
                "The database did not confirm a part of what was to be marked: no orphans are marked"
            ) from error

    def _is_queued(
        self, run_id: int | None, uuid: TableUuid, report: str, unconfirmed: CommitStateUnknown
    ) -> bool:
        """Say whether a run is queued, or was; raises `unconfirmed` if that is not known."""

        def is_queued(connection: Connection) -> bool:
            # What was not confirmed has this lock as long as it may still come.
            exclude(connection, registrations=True)
            # SQLite may have given the number to another one by now.
            is_run = entries.c.id == run_id, entries.c.uuid == uuid, entries.c.expired == report
            was_queued = or_(entries.c.state == "queued", entries.c.leases > 0)
            return connection.scalars(select(entries.c.id).where(*is_run, was_queued)).first() is not None

        try:
            return self._database.read_locked(is_queued)
        except DatabaseUnavailable:
            raise unconfirmed from None

    def _take_back(self, run_id: int | None, uuid: TableUuid, report: str) -> None:
        """Delete what was written down of a run that is not queued; None if that is nothing."""
        if run_id is None:
            return
        # The number may be another one's by now, as in `_is_queued`.
        is_run = entries.c.id == run_id, entries.c.uuid == uuid, entries.c.expired == report
        is_left = entries.c.state == "kept", entries.c.leases == 0
        is_gone = ~exists().where(entries.c.id == rows.c.deletion_id)
        # What cannot be deleted now goes with the rows that are old.
        with suppress(DatabaseUnavailable, CommitStateUnknown):
            self._database.write(
                lambda connection: connection.execute(delete(entries).where(*is_run, *is_left))
            )
            delete_in_batches(self._database, rows.c.number, rows.c.deletion_id == run_id, is_gone)

    def waiting(self, run_id: int, after: int = -1, limit: int | None = None) -> list[OrphanBatch]:
        """Return batches that are not done, in order, whose number is above another."""
        query = (
            select(rows.c.number, rows.c.files, rows.c.marked_files, rows.c.marked_bytes)
            .where(rows.c.deletion_id == run_id, rows.c.deleted_files.is_(None), rows.c.number > after)
            .order_by(rows.c.number)
            .limit(limit)
        )
        found = self._database.read(lambda connection: connection.execute(query).all())
        return [OrphanBatch(*row) for row in found]

    def batch_done(self, deletion: Deletion, number: int, deleted_files: int, deleted_bytes: int) -> bool:
        """Note that no file of a batch is looked at any more; False if another worker has the run."""
        is_held = exists().where(is_held_by(deletion))
        statement = (
            update(rows)
            .where(rows.c.deletion_id == deletion.id, rows.c.number == number, is_held)
            .values(files="", deleted_files=deleted_files, deleted_bytes=deleted_bytes)
        )
        return self._database.write(lambda connection: connection.execute(statement).rowcount == 1)

    def of_table(self, uuid: TableUuid, limit: int) -> list[OrphanRun]:
        """Return the newest runs of a table, newest first."""
        done = rows.c.deleted_files.is_not(None)

        query = (
            select(
                entries.c.id,
                entries.c.state,
                entries.c.expired,
                entries.c.not_before_ms,
                entries.c.created_ms,
                entries.c.finished_ms,
                entries.c.last_error,
                func.coalesce(func.sum(rows.c.marked_files), 0),
                func.coalesce(func.sum(rows.c.marked_bytes), 0),
                func.coalesce(func.sum(rows.c.deleted_files), 0),
                func.coalesce(func.sum(rows.c.deleted_bytes), 0),
                func.coalesce(func.sum(rows.c.marked_files).filter(done), 0),
            )
            .join_from(entries, rows, rows.c.deletion_id == entries.c.id)
            .where(entries.c.uuid == uuid, entries.c.kind == "orphans")
            .group_by(entries.c.id)
            .order_by(entries.c.id.desc())
            .limit(limit)
        )
        found = self._database.read(lambda connection: connection.execute(query).all())
        return [_run(row) for row in found]


def _row(run_id: int, batch: OrphanBatch) -> dict[str, Any]:
    return {
        "deletion_id": run_id,
        "number": batch.number,
        "files": batch.files,
        "marked_files": batch.marked_files,
        "marked_bytes": batch.marked_bytes,
    }


def _run(row: Any) -> OrphanRun:
    marked, marked_bytes, deleted, deleted_bytes, done = [int(number) for number in row[7:]]
    return OrphanRun(
        id=row.id,
        state=row.state,
        report=row.expired,
        delete_after_ms=row.not_before_ms,
        created_ms=row.created_ms,
        finished_ms=row.finished_ms,
        error=row.last_error,
        marked_files=marked,
        marked_bytes=marked_bytes,
        deleted_files=deleted,
        deleted_bytes=deleted_bytes,
        kept_files=done - deleted,
    )
