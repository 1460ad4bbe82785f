"""Scan planning: which files a query has to read."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter
from starlette.responses import Response

from app.api.bodies.json_body import parse_body
from app.api.bodies.table.scans import (
    FetchScanTasksBody,
    PlanTableScanBody,
    plan_json,
    planned_json,
    scan_tasks_json,
)
from app.api.dependencies import Visit, Visited
from app.api.idempotency import run_once
from app.api.responses.answers import json_answer, no_content
from app.catalog.context.catalog import Catalog
from app.catalog.scans import planning
from app.catalog.scans.planning import Submitted

router = APIRouter()

_TABLE = "/v1/namespaces/{namespace}/tables/{table}"


@router.post(_TABLE + "/plan")
def plan_table_scan(visit: Visited) -> Response:
    """Plan a scan, at once or in the background."""
    request = parse_body(PlanTableScanBody, visit.body).request()

    def plan() -> tuple[Response, str]:
        outcome = planning.plan_scan(visit.catalog, visit.table, request, scan_tasks_json)
        remembered = outcome.plan_id if isinstance(outcome, Submitted) else ""
        return json_answer(planned_json(outcome)), remembered

    def replay(plan_id: str) -> Response:
        return json_answer(planned_json(Submitted(plan_id))) if plan_id else plan()[0]

    return _once(visit, plan, replay)


@router.get(_TABLE + "/plan/{plan_id}")
def fetch_planning_result(visit: Visited) -> Response:
    """Return the state or the result of a scan that is planned in the background."""
    return json_answer(plan_json(planning.fetch_plan(visit.catalog, visit.table, visit.text("plan_id"))))


@router.delete(_TABLE + "/plan/{plan_id}")
def cancel_planning(visit: Visited) -> Response:
    """Cancel a plan."""

    def cancel() -> tuple[Response, str]:
        planning.cancel_plan(visit.catalog, visit.table, visit.text("plan_id"))
        return no_content(), ""

    return _once(visit, cancel, lambda _: no_content())


@router.post(_TABLE + "/tasks")
def fetch_scan_tasks(visit: Visited) -> Response:
    """Return the files of a plan task."""
    token = parse_body(FetchScanTasksBody, visit.body).plan_task

    def expand() -> tuple[Response, str]:
        content = planning.expand_task(visit.catalog, visit.table, token, scan_tasks_json)
        return json_answer(content), ""

    return _once(visit, expand, lambda _: expand()[0])


def _once(
    visit: Visit, answer: Callable[[], tuple[Response, str]], replay: Callable[[str], Response]
) -> Response:
    """Answer, and store under an Idempotency-Key how an equal request is answered.

    Nothing is changed that could be changed twice: what is remembered is which plan was begun.
    """

    def run(catalog: Catalog) -> Response:
        response, remembered = answer()
        catalog.remember(response.status_code, remembered)
        return response

    return run_once(visit, run, replay)
