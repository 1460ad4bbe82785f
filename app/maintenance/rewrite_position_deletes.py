"""Rewriting position deletes: small files become large, those of files that are gone go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from app.maintenance.assignments import Assignment
from app.maintenance.job_commits import JobCommit
from app.maintenance.spark.procedures import Figures, JobRefused, Procedure, figures_of
from app.maintenance.spark.spark_sql import Argument, ProcedureCall

_LEAST_FILES: Final = {"min-input-files": "2"}


def plan(assignment: Assignment) -> ProcedureCall:
    """Return the call; options are Spark's own, and `where` becomes an argument.

    Raises:
        JobRefused: an option is documented, but fails in Iceberg 1.10.
    """
    options = {name: str(value) for name, value in assignment.options.items()}
    if "max-files-to-rewrite" in options:
        raise JobRefused(
            "Option max-files-to-rewrite is not used: Iceberg 1.10 does not know it for position deletes"
        )
    where = options.pop("where", None)
    arguments: dict[str, Argument] = {"options": _LEAST_FILES | options}
    if where is not None:
        arguments["where"] = where
    return ProcedureCall("rewrite_position_delete_files", arguments)


def landed(commits: Sequence[JobCommit]) -> Figures:
    """Return the figures by what has landed."""
    return {
        "rewritten-delete-files-count": sum(commit.number("removed-delete-files") for commit in commits),
        "added-delete-files-count": sum(commit.number("added-delete-files") for commit in commits),
        "rewritten-bytes": sum(commit.number("removed-files-size") for commit in commits),
        "added-bytes": sum(commit.number("added-files-size") for commit in commits),
    }


def verify(_call: ProcedureCall, commits: Sequence[JobCommit]) -> str | None:
    """Return in which way the table is no healthier: it has as many delete files."""
    figures = landed(commits)
    gone, new = figures["rewritten-delete-files-count"], figures["added-delete-files-count"]
    if not commits or new < gone:
        return None
    return f"The table is no healthier: {gone} delete files became {new}."


REWRITE_POSITION_DELETES: Final = Procedure(plan, figures_of, landed, verify)
"""Iceberg's `rewrite_position_delete_files`."""
