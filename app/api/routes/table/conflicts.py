"""Conflict checks of operations: an extension, which writes nothing."""

from __future__ import annotations

import orjson
from fastapi import APIRouter
from starlette.responses import Response

from app.api.bodies.table.conflicts import CheckConflictsBody, conflict_report_json
from app.api.dependencies import Visited
from app.api.responses.answers import json_answer
from app.catalog.commits import conflict_checks

router = APIRouter()


@router.post("/v1/namespaces/{namespace}/tables/{table}/conflicts")
def check_conflicts(visit: Visited) -> Response:
    """Return what a described operation would conflict with; nothing is changed."""
    body = visit.extension_body(CheckConflictsBody)
    report = conflict_checks.check_conflicts(
        visit.catalog, visit.table, body.ref, body.base_snapshot_id, body.describe
    )
    return json_answer(orjson.dumps(conflict_report_json(report)))
