"""Statistics of a table: how many distinct values each column has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from app.maintenance.assignments import Assignment
from app.maintenance.job_commits import JobCommit
from app.maintenance.spark.mounted_catalogs import MountedTable
from app.maintenance.spark.procedures import Figures, JobRefused, Procedure
from app.maintenance.spark.spark_sql import ProcedureCall


def plan(assignment: Assignment) -> ProcedureCall:
    """Return the call.

    Raises:
        JobRefused: it has options; none are known for it.
    """
    if assignment.options:
        raise JobRefused(f"Statistics have no options, and {', '.join(assignment.options)} was given")
    return ProcedureCall("compute_table_stats")


def run(table: MountedTable, call: ProcedureCall) -> Figures:
    """Call it, and return where the statistics are; nothing if the table has no rows."""
    files = [row["statistics_file"] for row in table.call(call)]
    return {"statistics-file": files[0]} if files and files[0] else {}


def landed(_commits: Sequence[JobCommit]) -> Figures:
    """Return no figures: statistics add no snapshot that could say any."""
    return {}


def verify(_call: ProcedureCall, _commits: Sequence[JobCommit]) -> str | None:
    """Return None: the table is as healthy as it was."""
    return None


TABLE_STATISTICS: Final = Procedure(plan, run, landed, verify)
"""Iceberg's `compute_table_stats`: it reads all rows."""
