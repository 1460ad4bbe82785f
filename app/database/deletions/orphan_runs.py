"""Orphans that were marked: which files, and what has become of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from sqlalchemy import Connection, func, insert, select, update

from app.database.connections.database import Database
from app.database.outcomes.idempotency_keys import IdempotencyClaim, insert_claim
from app.database.pointers.left_files import insert_orphans, queue_orphans
from app.database.pointers.pointer import Pointer
from app.database.schema.rows import file_deletions as entries
from app.database.schema.rows import orphan_batches as rows
from app.engine.model.ids import TableUuid

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

        def add(together: Sequence[OrphanBatch], connection: Connection) -> int:
            number = run_id
            if number is None:
                number = insert_orphans(connection, seen, report, now_ms)
            if number is None:
                raise _NotQueued
            connection.execute(insert(rows), [_row(number, batch) for batch in together])
            return number

        def queue(together: Sequence[OrphanBatch], connection: Connection) -> None:
            insert_claim(connection, claim)
            if not queue_orphans(connection, add(together, connection), seen.uuid, grace_ms):
                raise _NotQueued  # so that the claim goes, too

        rest = iter(batches)
        together = list(islice(rest, TOGETHER))
        try:
            while more := list(islice(rest, TOGETHER)):
                run_id = self._database.write(partial(add, together))
                together = more
            self._database.write(partial(queue, together))
        except _NotQueued:
            return False
        return True

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

    def batch_done(self, run_id: int, number: int, deleted_files: int, deleted_bytes: int) -> None:
        """Note that no file of a batch is looked at any more."""
        statement = (
            update(rows)
            .where(rows.c.deletion_id == run_id, rows.c.number == number)
            .values(files="", deleted_files=deleted_files, deleted_bytes=deleted_bytes)
        )
        self._database.write(lambda connection: connection.execute(statement))

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
