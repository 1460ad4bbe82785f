"""Extension: whether the process is alive, whether it can work, and what it counts."""

from __future__ import annotations

import orjson
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from app.api.bodies.tower import traffic_metrics
from app.api.dependencies import Visit, Visited
from app.api.responses.answers import json_answer, text_answer
from app.catalog.tower import all_traffic
from app.telemetry import render_metrics

router = APIRouter()


async def health(_request: Request) -> Response:
    """Say that the process is alive; on the event loop, so that a blocked loop shows as well."""
    return json_answer(b'{"status":"ok"}')


@router.get("/ready")
async def ready(request: Request) -> Response:
    """Say whether everything that requests need works; in time, whatever does not answer."""
    problems = await Visit(request.scope, b"").parts.readiness.problems()
    is_ready = not any(problems.values())
    parts = {
        name: {"ok": True} if problem is None else {"ok": False, "why": problem}
        for name, problem in problems.items()
    }
    body = orjson.dumps({"status": "ok" if is_ready else "unavailable", "parts": parts})
    return json_answer(body, 200 if is_ready else 503)


@router.get("/metrics")
def metrics(visit: Visited) -> Response:
    """Return counters and timings for Prometheus."""
    busiest = traffic_metrics(all_traffic(visit.parts.server))
    return text_answer(render_metrics(busiest), b"text/plain; version=0.0.4; charset=utf-8")
