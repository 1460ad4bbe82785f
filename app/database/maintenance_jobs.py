"""Jobs of upkeep as rows: one at a time for each table, held by a lease."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Row, func, or_, select, update

from app.database.connections.clock import database_now_ms, is_held
from app.database.connections.database import Database
from app.database.schema.rows import maintenance_jobs as rows
from app.database.statements.batches import delete_in_batches, never
from app.database.statements.inserts import OnEachDatabase
from app.engine.model.jobs import LONGEST_LEASE_MS, JobState

# The index of running jobs lets a table have one of them.
_START = OnEachDatabase(rows, lambda insert: insert.on_conflict_do_nothing().returning(rows))


@dataclass(frozen=True, slots=True)
class MaintenanceJob:
    """One run of a job on one table."""

    sequence: int
    id: str
    """32 hexadecimal digits; its commits carry it in `X-Icetower-Job`."""
    pointer_id: int
    job: str
    state: JobState
    principal: str
    options: Mapping[str, Any]
    began_ms: int
    leased_until_ms: int
    ended_ms: int | None
    outcome: Mapping[str, Any] = field(default_factory=dict)
    """What the maintainer reported: figures before and after, messages, snapshots."""


class MaintenanceJobs:
    """The jobs of all maintainers on one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(
        self,
        job_id: str,
        pointer_id: int,
        job: str,
        principal: str,
        options: Mapping[str, Any],
        lease_ms: int,
        expected: Mapping[str, Any] | None = None,
    ) -> MaintenanceJob | None:
        """Begin a job and hold the table for it; None if another job holds it.

        A job whose lease has run out is noted as abandoned. What was expected of it stays its outcome.
        """
        now_ms = database_now_ms()
        give_up = (
            update(rows)
            .where(
                rows.c.pointer_id == pointer_id,
                rows.c.state == JobState.RUNNING,
                ~is_held(rows.c.leased_until_ms, LONGEST_LEASE_MS),
            )
            .values(state=JobState.ABANDONED, ended_ms=now_ms)
        )
        values: dict[str, Any] = {
            "id": job_id,
            "pointer_id": pointer_id,
            "job": job,
            "state": JobState.RUNNING,
            "principal": principal,
            "options": json.dumps(dict(options)),
            "outcome": json.dumps(dict(expected or {})),
        }

        def write(connection: Connection) -> MaintenanceJob | None:
            connection.execute(give_up)
            at_ms = connection.execute(select(now_ms)).scalar_one()
            values.update(began_ms=at_ms, leased_until_ms=at_ms + lease_ms)
            row = connection.execute(_START[connection.dialect.name], values).one_or_none()
            return None if row is None else _job(row)

        return self._database.write(write)

    def hold(self, job_id: str, lease_ms: int) -> MaintenanceJob | None:
        """Hold the table for longer, and return the job; None if it does not run any more."""
        return self._change(job_id, leased_until_ms=database_now_ms() + lease_ms)

    def end(self, job_id: str, state: JobState, outcome: Mapping[str, Any]) -> MaintenanceJob | None:
        """Note what became of a job, let its table go, and return it; None if it had ended."""
        return self._change(
            job_id, state=state, outcome=json.dumps(dict(outcome)), ended_ms=database_now_ms()
        )

    def find(self, job_id: str) -> MaintenanceJob | None:
        """Return a job."""
        query = select(rows).where(rows.c.id == job_id)
        row = self._database.read(lambda connection: connection.execute(query).one_or_none())
        return None if row is None else _job(row)

    def list(self, pointer_id: int, limit: int, before: int | None = None) -> list[MaintenanceJob]:
        """Return a table's jobs, newest first, whose sequence is less than `before`."""
        query = select(rows).where(rows.c.pointer_id == pointer_id)
        if before is not None:
            query = query.where(rows.c.sequence < before)
        query = query.order_by(rows.c.sequence.desc()).limit(limit)
        return self._database.read(lambda connection: [_job(row) for row in connection.execute(query)])

    def newest(self, pointer_id: int, of_each: int, since_ms: int) -> Sequence[MaintenanceJob]:
        """Return the newest jobs of each kind on a table, and all that ended since; newest first.

        Args:
            pointer_id: the table's.
            of_each: how many of each kind, so that kinds that are done often do not hide the others.
            since_ms: when, by the database's clock.
        """
        rank = func.row_number().over(partition_by=rows.c.job, order_by=rows.c.sequence.desc())
        ranked = select(rows, rank.label("rank")).where(rows.c.pointer_id == pointer_id).subquery()
        query = (
            select(ranked)
            .where((ranked.c.rank <= of_each) | (ranked.c.ended_ms > since_ms))
            .order_by(ranked.c.sequence.desc())
        )
        return self._database.read(lambda connection: [_job(row) for row in connection.execute(query)])

    def delete(self, older_than_ms: int, is_stopped: Callable[[], bool] = never) -> int:
        """Delete the rows of older jobs that do not run any more, and return how many they were."""
        is_over = or_(
            rows.c.state != JobState.RUNNING,
            # A table that was dropped meanwhile has no next job, which would note that this one was abandoned.
            ~is_held(rows.c.leased_until_ms, LONGEST_LEASE_MS),
        )
        is_old = rows.c.began_ms < database_now_ms() - older_than_ms, is_over
        return delete_in_batches(self._database, rows.c.began_ms, *is_old, is_stopped=is_stopped)

    def _change(self, job_id: str, **values: Any) -> MaintenanceJob | None:
        # Not read afterwards: a database that is gone by then would make a refusal of what was done.
        is_running = rows.c.id == job_id, rows.c.state == JobState.RUNNING
        statement = update(rows).where(*is_running).values(values).returning(rows)
        row = self._database.write(lambda connection: connection.execute(statement).one_or_none())
        return None if row is None else _job(row)


def _job(row: Row[Any]) -> MaintenanceJob:
    return MaintenanceJob(
        sequence=row.sequence,
        id=row.id,
        pointer_id=row.pointer_id,
        job=row.job,
        state=JobState(row.state),
        principal=row.principal,
        options=json.loads(row.options),
        began_ms=row.began_ms,
        leased_until_ms=row.leased_until_ms,
        ended_ms=row.ended_ms,
        outcome=json.loads(row.outcome),
    )
