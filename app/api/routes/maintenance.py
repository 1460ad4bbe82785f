"""Upkeep of tables: plans, and the jobs of maintainers. An extension."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from app.api.bodies.maintenance import (
    BeginJobBody,
    EndJobBody,
    HoldJobBody,
    check_size,
    job_json,
    jobs_json,
    upkeep_json,
)
from app.api.dependencies import Visit, Visited
from app.api.responses.answers import json_answer
from app.api.responses.paging import PAGING, next_page_token, numbered_page_in_query
from app.catalog.upkeep import jobs
from app.catalog.upkeep.upkeep_plans import table_upkeep
from app.engine.model.jobs import Job, JobState
from app.errors import InvalidRequest

router = APIRouter()
_TABLE = "/v1/namespaces/{namespace}/tables/{table}/maintenance"
_LISTING = "maintenance jobs"


@router.get(_TABLE)
def load_maintenance(visit: Visited) -> Response:
    """Return a table's policy, and what is to be done now."""
    return json_answer(upkeep_json(table_upkeep(visit.catalog, visit.table, _wanted(visit))))


@router.get(f"{_TABLE}/jobs")
def list_jobs(visit: Visited) -> Response:
    """Return the jobs of a table, newest first."""
    found = jobs.list_jobs(
        visit.catalog, visit.table, numbered_page_in_query(visit.parameters(*PAGING), _LISTING)
    )
    return json_answer(jobs_json(found.items, next_page_token(found.next_after, _LISTING)))


@router.post(f"{_TABLE}/jobs")
def begin_job(visit: Visited) -> Response:
    """Begin a job, and hold the table for it."""
    body = visit.extension_body(BeginJobBody)
    check_size("options", body.options)
    begun = jobs.begin_job(
        visit.catalog, visit.table, body.job, body.options, body.lease_ms, body.id, body.rewritten_bytes
    )
    return json_answer(job_json(begun))


@router.get(f"{_TABLE}/jobs/{{job_id}}")
def load_job(visit: Visited) -> Response:
    """Return one job."""
    visit.parameters()
    return json_answer(job_json(jobs.load_job(visit.catalog, visit.table, visit.text("job_id"))))


@router.post(f"{_TABLE}/jobs/{{job_id}}/hold")
def hold_job(visit: Visited) -> Response:
    """Hold the table of a job for longer."""
    body = visit.extension_body(HoldJobBody)
    held = jobs.hold_job(visit.catalog, visit.table, visit.text("job_id"), body.lease_ms)
    return json_answer(job_json(held))


@router.post(f"{_TABLE}/jobs/{{job_id}}/end")
def end_job(visit: Visited) -> Response:
    """Note what became of a job, and let its table go."""
    body = visit.extension_body(EndJobBody)
    check_size("outcome", body.outcome)
    if body.state is JobState.RUNNING:
        raise InvalidRequest("Invalid state 'running': a job ends as something else")
    ended = jobs.end_job(visit.catalog, visit.table, visit.text("job_id"), body.state, body.outcome)
    return json_answer(job_json(ended))


def _wanted(visit: Visit) -> list[Job]:
    text = visit.parameters("jobs").get("jobs", "")
    names = [name.strip() for name in text.split(",") if name.strip()]
    known = {job.value for job in Job}
    for name in names:
        if name not in known:
            raise InvalidRequest(f"Invalid jobs: {name[:100]!r} is not one of {', '.join(Job)}")
    return [Job(name) for name in names]
