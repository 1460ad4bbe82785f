"""Plans of upkeep: what policy, health and the jobs so far say is to be done now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.context.property_layers import layers_of
from app.catalog.upkeep.jobs import check_jobs
from app.catalog.upkeep.table_health import table_health
from app.database.connections.clock import is_held_at
from app.database.maintenance_jobs import MaintenanceJob
from app.engine.conflicts.concurrent import REMOVING_ROWS
from app.engine.health.facts import HealthFacts
from app.engine.model.ancestry import ancestors
from app.engine.model.data_types.types import ListType, MapType
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.jobs import LONGEST_LEASE_MS, SUCCEEDED, Job, JobState
from app.engine.model.settings.properties import allows_deletes
from app.engine.model.table_metadata import TableMetadata
from app.engine.properties.own_properties import DAY_MS, MOVED_TO
from app.engine.retention.expired_snapshots import ExpiryWish, plan_expiry
from app.engine.upkeep.cold_partitions import latest_partitions
from app.engine.upkeep.conditions import Condition, JobHistory
from app.engine.upkeep.plans import LeftJob, PlannedJob, UpkeepPlan, plan_upkeep, wanted_now
from app.engine.upkeep.policy import Policy
from app.errors import BadRequest

JOBS_LOOKED_AT: Final = 25
"""How many of the newest jobs of each kind a plan knows of, besides those of the last day."""
_STOPS = frozenset({JobState.DAMAGED, JobState.UNSOUND})
"""Nothing more is done after these: expiry would take away what a person needs to go back."""


@dataclass(frozen=True, slots=True)
class TableUpkeep:
    """A table's policy, its condition, and what is to be done now."""

    identifier: TableIdentifier
    policy: Policy
    condition: Condition
    plan: UpkeepPlan
    jobs: Sequence[MaintenanceJob]
    """The newest jobs, newest first."""


def table_upkeep(catalog: Catalog, identifier: TableIdentifier, wanted: Sequence[Job] = ()) -> TableUpkeep:
    """Return what is to be done to a table now.

    Args:
        catalog: the warehouse, for one caller.
        identifier: the table.
        wanted: jobs that somebody asks for by name: only these, whatever the policy says.

    Raises:
        NoSuchTable: no table has this name.
        TreeRefusal: it is a file-system table.
        MetadataFileMissing, CorruptMetadata, InvalidLocation, FileMissing, FilesUnavailable: the metadata, a manifest
            list or a manifest cannot be read.
        DatabaseUnavailable: the database does not answer.
    """
    catalog.permit("table_upkeep", identifier)
    check_jobs(catalog, identifier)
    pointer, metadata = catalog.read_now(TABLES, identifier)
    policy = Policy(layers_of(catalog, identifier.namespace, metadata.properties))
    facts = table_health(catalog, identifier).facts
    now_ms = catalog.now_ms()
    found = catalog.server.maintenance_jobs.newest(pointer.id, JOBS_LOOKED_AT, now_ms - DAY_MS)
    database_ms = catalog.server.file_deletions.now_ms()  # by which jobs were leased
    jobs = [_as_it_is(job, database_ms) for job in found]
    condition = _condition(metadata, facts, jobs, now_ms)
    why = "the table is read-only here: it belongs to another catalog" if pointer.is_read_only else None
    if MOVED_TO in metadata.properties:
        # A commit here would be one that the other catalog does not have.
        why = f"it was moved to {metadata.properties[MOVED_TO][:200]}, which looks after it"
    if why is not None:
        left = tuple(LeftJob(job, why) for job in Job)
        return TableUpkeep(identifier, policy, condition, UpkeepPlan((), left), jobs)
    plan = _wanted_plan(policy, condition, wanted) if wanted else plan_upkeep(policy, condition)
    return TableUpkeep(identifier, policy, condition, plan, jobs)


def _wanted_plan(policy: Policy, condition: Condition, wanted: Sequence[Job]) -> UpkeepPlan:
    found = [wanted_now(job, policy, condition) for job in Job if job in wanted]
    return UpkeepPlan(
        tuple(item for item in found if isinstance(item, PlannedJob)),
        tuple(item for item in found if isinstance(item, LeftJob)),
    )


def _condition(
    metadata: TableMetadata, facts: HealthFacts, jobs: Sequence[MaintenanceJob], now_ms: int
) -> Condition:
    history = {job: _history_of(job, jobs) for job in Job}
    ended = [job for job in jobs if job.state is not JobState.RUNNING]
    head = metadata.current_snapshot
    expirable, refused = _expirable(metadata, now_ms)
    line = [] if head is None else list(ancestors(metadata, head.snapshot_id))
    return Condition(
        facts=facts,
        now_ms=now_ms,
        expirable_snapshots=expirable,
        expiry_refused=refused,
        snapshots_since={
            job: sum(snapshot.timestamp_ms > found.last_success_ms for snapshot in line)
            for job, found in history.items()
            if found.last_success_ms is not None
        },
        rows_changed_ms=next(
            (item.timestamp_ms for item in line if (item.summary or {}).get("operation") in REMOVING_ROWS),
            None,
        ),
        latest_partitions=latest_partitions(metadata, facts.files),
        allows_deletes=allows_deletes(metadata.properties),
        is_encrypted=metadata.is_encrypted,
        has_collections=any(
            isinstance(column.field.type, ListType | MapType)
            for column in metadata.current_schema.columns.values()
        ),
        history=history,
        rewritten_bytes=sum(
            _rewritten_bytes(job.outcome) for job in ended if (job.ended_ms or 0) > now_ms - DAY_MS
        ),
        running=next((Job(job.job) for job in jobs if job.state is JobState.RUNNING), None),
        damage=facts.unreadable or _damage_found(ended),
    )


def _as_it_is(job: MaintenanceJob, now_ms: int) -> MaintenanceJob:
    """Return a job, as abandoned if its lease has run out: only the next one notes that."""
    if job.state is not JobState.RUNNING or is_held_at(job.leased_until_ms, now_ms, LONGEST_LEASE_MS):
        return job
    return replace(job, state=JobState.ABANDONED, ended_ms=min(job.leased_until_ms, now_ms))


def _damage_found(ended: Sequence[MaintenanceJob]) -> str | None:
    """Return what a job has found missing, if none has succeeded since."""
    last = next((job for job in ended if job.state in _STOPS | SUCCEEDED), None)
    if last is None or last.state not in _STOPS:
        return None
    return str(last.outcome.get("message", "a file is missing"))


def _history_of(job: Job, jobs: Sequence[MaintenanceJob]) -> JobHistory:
    runs = [run for run in jobs if run.job == job and run.state is not JobState.RUNNING]
    succeeded = next((run for run in runs if run.state in SUCCEEDED), None)
    failed: list[MaintenanceJob] = []
    for run in runs:
        if run.state in SUCCEEDED or run.state is JobState.REFUSED:
            break
        failed.append(run)
    history = JobHistory(
        None if succeeded is None else succeeded.ended_ms,
        failed[0].ended_ms if failed else None,
        len(failed),
        did_a_part=succeeded is not None
        and succeeded.state is JobState.DONE
        and "max-bytes" in succeeded.options,
    )
    if runs and runs[0].state is JobState.REFUSED:
        return replace(history, refused_options=runs[0].options, refused_ms=runs[0].ended_ms or 0)
    return history


def _expirable(metadata: TableMetadata, now_ms: int) -> tuple[int, str | None]:
    try:
        return len(plan_expiry(metadata, ExpiryWish(), now_ms).snapshots), None
    except BadRequest as error:
        return 0, str(error)  # The table does not allow it, or its settings make no sense.


def _rewritten_bytes(outcome: Mapping[str, Any]) -> int:
    """Return what a job has rewritten, or was expected to: one that died says nothing."""
    value = outcome.get("rewritten-bytes", outcome.get("expected-bytes", 0))
    return value if isinstance(value, int) else 0
