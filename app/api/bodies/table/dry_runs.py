"""JSON of dry runs: the result of each requirement and update, and of the whole commit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from app.api.bodies.json_answer import present
from app.api.bodies.table.conflicts import conflict_report_json
from app.api.bodies.table.history import metadata_diff_object
from app.api.error_responses import conflict_of, error_object, requirement_object, sendable
from app.catalog.commits.dry_runs import CheckedRequirement, CheckedSnapshot, DryRun, TableDryRun, TriedUpdate
from app.engine.guard.findings import Finding
from app.engine.rebase.rebased_snapshots import Rebase
from app.errors import IcetowerError


def table_dry_run_json(found: TableDryRun, prefix: str | None) -> bytes:
    """Return what a commit to one table would do; `prefix` is the warehouse in the path."""
    return orjson.dumps(_table(found, prefix))


def dry_run_json(found: DryRun, prefix: str | None) -> bytes:
    """Return what a commit to several tables would do; `prefix` as for one."""
    tables = [_table(table, prefix) for table in found.tables]
    for answer, table in zip(tables, found.tables, strict=True):
        _number(answer["requirements"], table.requirements)
        _number(answer["updates"], table.updates)
    return orjson.dumps({**_outcome(found.error, prefix), "tables": tables})


def _number(answers: list[dict[str, Any]], items: Sequence[CheckedRequirement | TriedUpdate]) -> None:
    for answer, item in zip(answers, items, strict=True):
        answer["table-change"] = item.change


def _outcome(error: IcetowerError | None, prefix: str | None) -> dict[str, Any]:
    conflict = None if error is None else conflict_of(error, prefix)
    return present({"would-commit": error is None, "error": _error(error), "conflict": conflict})


def _error(error: IcetowerError | None) -> dict[str, Any] | None:
    return None if error is None else error_object(error)


def _table(found: TableDryRun, prefix: str | None) -> dict[str, Any]:
    difference = found.difference
    facts = {
        "identifier": {"namespace": found.identifier.namespace.levels, "name": found.identifier.name},
        **_outcome(found.error, prefix),
        "metadata-location": found.location,
        "already-committed": found.has_landed_already,
        "changes-table": found.changes_table,
        "requirements": [_requirement(item) for item in found.requirements],
        "updates": [_update(item) for item in found.updates],
        "difference": None if difference is None else metadata_diff_object(difference),
        "snapshots": [_snapshot(item) for item in found.snapshots],
        "guard": [_finding(item) for item in found.findings],
        "rebased": [_rebase(item) for item in found.rebases] or None,
    }
    return present(facts)


def _requirement(item: CheckedRequirement) -> dict[str, Any]:
    answer = {
        "requirement": sendable(requirement_object(item.requirement)),
        "result": item.result,
        "expected": item.expected,
        "found": item.found,
    }
    if item.error is not None:
        answer["error"] = error_object(item.error)
    return answer


def _update(item: TriedUpdate) -> dict[str, Any]:
    return present({"action": item.update.action, "result": item.result, "error": _error(item.error)})


def _rebase(item: Rebase) -> dict[str, Any]:
    return {"snapshot-id": item.snapshot.snapshot_id, "onto": item.onto}


def _finding(item: Finding) -> dict[str, Any]:
    answer: dict[str, Any] = {"kind": item.kind.value, "message": sendable(item.message)}
    answer["snapshot-id"] = item.snapshot_id
    if item.file is not None:
        answer["file-path"] = sendable(item.file)
    return answer


def _snapshot(item: CheckedSnapshot) -> dict[str, Any]:
    conflicts = None if item.report is None else conflict_report_json(item.report)
    facts = {
        "snapshot-id": item.snapshot_id,
        "ref": sendable(item.ref),
        "conflicts": conflicts,
        "error": _error(item.error),
    }
    return present(facts)
