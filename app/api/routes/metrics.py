"""Metrics reports that clients hand in after scans and commits."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from app import telemetry
from app.api.bodies.json_body import parse_body
from app.api.bodies.table.tables import MetricsBody
from app.api.dependencies import Visited
from app.api.responses.answers import no_content

router = APIRouter()

_KNOWN = frozenset({"scan-report", "commit-report"})


@router.post("/v1/namespaces/{namespace}/tables/{table}/metrics")
def report_metrics(visit: Visited) -> Response:
    """Count a report, without a look at its table."""
    kind = parse_body(MetricsBody, visit.body).report_type
    telemetry.CLIENT_REPORTS.labels(type=kind if kind in _KNOWN else "other").inc()
    return no_content()
