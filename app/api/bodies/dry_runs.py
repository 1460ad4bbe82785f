"""JSON of dry runs: how each requirement and update of a commit fares, and what it would come to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from app.api.bodies.conflicts import conflict_report_json
from app.api.bodies.history import metadata_diff_object
from app.api.error_responses import conflict_of, error_object, requirement_object, sendable
from app.catalog.commits.dry_runs import CheckedRequirement, CheckedSnapshot, DryRun, TableDryRun, TriedUpdate
from app.engine.guard.findings import Finding
from app.errors import IcetowerError


def table_dry_run_json(found: TableDryRun, prefix: str | None) -> bytes:
    """Return what a commit to one table would do.

    Args:
        found: what would come of it.
        prefix: the warehouse that the request's path named, if it did.
    """
    return orjson.dumps(_table(found, prefix, is_one_of_many=False))


def dry_run_json(found: DryRun, prefix: str | None) -> bytes:
    """Return what a commit to several tables would do; `prefix` as for one."""
    tables = [_table(table, prefix, is_one_of_many=True) for table in found.tables]
    return orjson.dumps({**_outcome(found.error, prefix), "tables": tables})


def _outcome(error: IcetowerError | None, prefix: str | None) -> dict[str, Any]:
    answer: dict[str, Any] = {"would-commit": error is None}
    if error is not None:
        answer["error"] = error_object(error)
        conflict = conflict_of(error, prefix)
        if conflict is not None:
            answer["conflict"] = conflict
    return answer


def _table(found: TableDryRun, prefix: str | None, *, is_one_of_many: bool) -> dict[str, Any]:
    identifier = {"namespace": found.identifier.namespace.levels, "name": found.identifier.name}
    answer = {"identifier": identifier, **_outcome(found.error, prefix)}
    if found.location is not None:
        answer["metadata-location"] = found.location
    answer["already-committed"] = found.has_landed_already
    answer["changes-table"] = found.changes_table
    answer["requirements"] = [_requirement(item) for item in found.requirements]
    answer["updates"] = [_update(item) for item in found.updates]
    if is_one_of_many:
        _number(answer["requirements"], found.requirements)
        _number(answer["updates"], found.updates)
    if found.difference is not None:
        answer["difference"] = metadata_diff_object(found.difference)
    answer["snapshots"] = [_snapshot(item) for item in found.snapshots]
    answer["guard"] = [_finding(item) for item in found.findings]
    return answer


def _number(answers: list[dict[str, Any]], items: Sequence[CheckedRequirement | TriedUpdate]) -> None:
    for answer, item in zip(answers, items, strict=True):
        answer["table-change"] = item.change


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
    answer: dict[str, Any] = {"action": item.update.action, "result": item.result}
    if item.error is not None:
        answer["error"] = error_object(item.error)
    return answer


def _finding(item: Finding) -> dict[str, Any]:
    answer: dict[str, Any] = {"kind": item.kind.value, "message": sendable(item.message)}
    answer["snapshot-id"] = item.snapshot_id
    if item.file is not None:
        answer["file-path"] = sendable(item.file)
    return answer


def _snapshot(item: CheckedSnapshot) -> dict[str, Any]:
    answer: dict[str, Any] = {"snapshot-id": item.snapshot_id}
    if item.ref is not None:
        answer["ref"] = sendable(item.ref)
    if item.report is not None:
        answer["conflicts"] = conflict_report_json(item.report)
    if item.error is not None:
        answer["error"] = error_object(item.error)
    return answer
