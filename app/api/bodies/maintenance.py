"""JSON of upkeep: a table's plan, and its jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import orjson
from pydantic import Field

from app.api.bodies.json_answer import as_long, page_json, present
from app.api.bodies.json_body import ExtensionBody
from app.catalog.context.rows import MaintenanceJob
from app.catalog.upkeep.jobs import SHORTEST_LEASE_MS
from app.catalog.upkeep.upkeep_plans import TableUpkeep
from app.engine.model.document import JsonValue, Long
from app.engine.model.jobs import LONGEST_LEASE_MS, Job, JobState
from app.engine.upkeep.plans import LeftJob, PlannedJob
from app.errors import InvalidRequest

DEFAULT_LEASE_MS = 300_000
MOST_BYTES = 65_536
"""Of options or an outcome as JSON: they are kept in the database."""
_SHOWN_JOBS = 10

LeaseMs = Annotated[Long, Field(ge=SHORTEST_LEASE_MS, le=LONGEST_LEASE_MS)]


class BeginJobBody(ExtensionBody):
    job: Job
    id: str | None = None
    options: dict[str, JsonValue] = Field(default_factory=dict)
    rewritten_bytes: Annotated[Long, Field(ge=0)] = 0
    lease_ms: LeaseMs = DEFAULT_LEASE_MS


class HoldJobBody(ExtensionBody):
    lease_ms: LeaseMs = DEFAULT_LEASE_MS


class EndJobBody(ExtensionBody):
    state: JobState
    outcome: dict[str, JsonValue] = Field(default_factory=dict)


def check_size(what: str, value: dict[str, Any]) -> None:
    """Refuse what is too long to be kept; raises `InvalidRequest`."""
    if len(orjson.dumps(value)) > MOST_BYTES:
        raise InvalidRequest(f"Invalid {what}: it must be at most {MOST_BYTES} bytes of JSON")


def upkeep_json(found: TableUpkeep) -> bytes:
    """Return a table's policy, what is to be done now and what is left, and the newest jobs."""
    policy, running = found.policy, found.condition.running
    switches = {job: policy.switch(job) for job in Job}
    return orjson.dumps(
        {
            "namespace": list(found.identifier.namespace.levels),
            "table": found.identifier.name,
            "jobs": [
                {"job": job, "on": switch.is_on, "origin": switch.origin, "said-by": switch.said_by}
                for job, switch in switches.items()
            ],
            "settings": [
                present({"name": item.name, "value": item.value, "origin": item.origin, "flaw": item.flaw})
                for item in policy.settings()
            ],
            "plan": [_planned(job) for job in found.plan.jobs],
            "left": [_left(job) for job in found.plan.left],
            "gain": found.plan.gain,
            **present({"running": running, "damage": found.condition.damage}),
            "last-jobs": [_job(job) for job in found.jobs[:_SHOWN_JOBS]],
        }
    )


def _planned(job: PlannedJob) -> dict[str, Any]:
    return {
        "job": job.job,
        "reason": job.reason,
        "files": job.files,
        "rewritten-bytes": as_long(job.rewritten_bytes),
        "gb-hours": job.gb_hours,
        "gain": job.gain,
        "needs-spark": job.job.needs_spark,
        "options": dict(job.options),
    }


def _left(job: LeftJob) -> dict[str, Any]:
    return {"job": job.job, "reason": job.reason}


def job_json(job: MaintenanceJob) -> bytes:
    """Return one job."""
    return orjson.dumps(_job(job))


def jobs_json(jobs: Sequence[MaintenanceJob], token: str | None) -> bytes:
    """Return one page of jobs."""
    return page_json({"jobs": [_job(job) for job in jobs]}, token)


def _job(job: MaintenanceJob) -> dict[str, Any]:
    return {
        "id": job.id,
        "job": job.job,
        "state": job.state,
        "author": job.principal,
        "began-ms": job.began_ms,
        "leased-until-ms": job.leased_until_ms,
        **present({"ended-ms": job.ended_ms}),
        "options": dict(job.options),
        "outcome": dict(job.outcome),
    }
