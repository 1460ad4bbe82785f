"""What jobs that call Iceberg's procedures have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.maintenance.assignments import Assignment
from app.maintenance.job_commits import JobCommit
from app.maintenance.spark.mounted_catalogs import MountedTable
from app.maintenance.spark.spark_sql import ProcedureCall

Figures = Mapping[str, Any]
"""Numbers by name, as they are kept with jobs."""


class JobRefused(Exception):
    """The job is not done with these options; the message says why."""


@dataclass(frozen=True, slots=True)
class Procedure:
    """One job, in three steps."""

    plan: Callable[[Assignment], ProcedureCall]
    """Returns the call by the assignment alone; raises `JobRefused`."""
    run: Callable[[MountedTable, ProcedureCall], Figures]
    """Calls it, and returns its figures; raises what Spark raises."""
    landed: Callable[[Sequence[JobCommit]], Figures]
    """Returns the figures by what has landed, for a call that failed."""
    verify: Callable[[ProcedureCall, Sequence[JobCommit]], str | None]
    """Returns in which way the table is no healthier, as a sentence; None if it is, or nothing landed."""


def figures_of(table: MountedTable, call: ProcedureCall) -> Figures:
    """Call a procedure whose answer is numbers, and return them by the names that jobs have.

    `rewritten_bytes_count` is `rewritten-bytes`: what counts for the budget of a day.
    """
    return {
        name.replace("_bytes_count", "_bytes").replace("_", "-"): value
        for row in table.call(call)
        for name, value in row.items()
    }
