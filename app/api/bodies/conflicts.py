"""JSON of conflict checks: the operation that is described, and what it collides with."""

from __future__ import annotations

from typing import Any

from app.engine.conflicts.report import Conflict, ConflictReport

MAX_CONFLICTS = 100


def conflict_report_json(report: ConflictReport) -> dict[str, Any]:
    """Return a report as a JSON value."""
    answer: dict[str, Any] = {
        "ref": report.ref,
        "base-snapshot-id": report.base_snapshot_id,
        "head-snapshot-id": report.head_snapshot_id,
        "would-conflict": report.would_conflict,
        "safe-to-reapply": report.safe_to_reapply,
        "reason": report.reason,
        "snapshots-since": [snapshot.snapshot_id for snapshot in report.since],
        "conflicts": [_conflict(conflict) for conflict in report.conflicts[:MAX_CONFLICTS]],
    }
    return {key: value for key, value in answer.items() if value is not None}


def _conflict(conflict: Conflict) -> dict[str, Any]:
    facts = {
        "kind": conflict.kind,
        "message": conflict.message,
        "snapshot-id": conflict.snapshot_id,
        "file-path": conflict.file_path,
        "spec-id": conflict.spec_id,
    }
    return {key: value for key, value in facts.items() if value is not None}
