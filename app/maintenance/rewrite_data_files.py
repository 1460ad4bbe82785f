"""Rewriting data files: small ones become large ones, and rows that are deleted go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from app.maintenance.assignments import Assignment
from app.maintenance.job_commits import JobCommit
from app.maintenance.spark.procedures import Figures, JobRefused, Procedure, figures_of
from app.maintenance.spark.spark_sql import Argument, ProcedureCall

_ARGUMENTS: Final = {"strategy": "strategy", "sort-order": "sort_order", "where": "where"}
_BROKEN: Final = {
    "remove-dangling-deletes": "Spark misses dangling deletes: the job remove-dangling-deletes finds them without it",
    "branch": "Iceberg up to 1.10 rewrites the main branch only (iceberg #14964)",
}


def plan(assignment: Assignment) -> ProcedureCall:
    """Return the call.

    Options are Spark's own, by its names; `strategy`, `sort-order` and `where` become arguments.

    Raises:
        JobRefused: an option is known to do harm in Iceberg 1.10, or to fail.
    """
    options = {name: str(value) for name, value in assignment.options.items()}
    for name, reason in _BROKEN.items():
        if options.get(name, "false") != "false":
            raise JobRefused(f"Option {name} is not used: {reason}")
    has_order = "sort-order" in options or options.get("strategy") == "sort"
    if has_order and "max-files-to-rewrite" in options:
        raise JobRefused(
            "Option max-files-to-rewrite is not used with a sort order: "
            "Iceberg up to 1.10 writes too many files then (iceberg #15576)"
        )
    if options.get("strategy") == "binpack" and "sort-order" in options:
        raise JobRefused("Strategy binpack has no sort order: choose strategy sort, or leave out the order")
    arguments: dict[str, Argument] = {
        _ARGUMENTS[name]: options[name] for name in _ARGUMENTS if name in options
    }
    own = {name: value for name, value in options.items() if name not in (*_ARGUMENTS, *_BROKEN)}
    if own:
        arguments["options"] = own
    return ProcedureCall("rewrite_data_files", arguments)


def landed(commits: Sequence[JobCommit]) -> Figures:
    """Return the figures by what has landed."""
    return {
        "rewritten-data-files-count": sum(commit.number("deleted-data-files") for commit in commits),
        "added-data-files-count": sum(commit.number("added-data-files") for commit in commits),
        "rewritten-bytes": sum(commit.number("removed-files-size") for commit in commits),
        "removed-delete-files-count": sum(commit.number("removed-delete-files") for commit in commits),
    }


def verify(call: ProcedureCall, commits: Sequence[JobCommit]) -> str | None:
    """Return in which way the table is no healthier: it has as many files, in no better order."""
    figures = landed(commits)
    gone, new = figures["rewritten-data-files-count"], figures["added-data-files-count"]
    has_order = "sort_order" in call.arguments or call.arguments.get("strategy") == "sort"
    # Rows that delete files took away are not written again.
    has_applied = any(item.number("added-records") < item.number("deleted-records") for item in commits)
    if not commits or new < gone or figures["removed-delete-files-count"] or has_order or has_applied:
        return None
    return f"The table is no healthier: {gone} data files became {new}."


REWRITE_DATA_FILES: Final = Procedure(plan, figures_of, landed, verify)
"""Iceberg's `rewrite_data_files`."""
