"""Jobs of upkeep: begun, held and ended by maintainers, one at a time for each table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.context.listings import Listing, Page
from app.catalog.filesystem_tables.rules import refused
from app.database.maintenance_jobs import MaintenanceJob
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.jobs import JOB_ID, Job, JobState
from app.errors import InvalidRequest, JobConflict, NoSuchJob, NoSuchTable

SHORTEST_LEASE_MS: Final = 1_000


def check_jobs(catalog: Catalog, identifier: TableIdentifier) -> None:
    """Check that the warehouse's tables have jobs of upkeep.

    Raises:
        TreeRefusal: they are file-system tables, which no lease keeps others from.
    """
    if not catalog.has_rows:
        raise refused(
            f"do upkeep of {identifier} in jobs",
            "a lease does not keep other writers of its folder away",
            "call what only writes by itself (icetower table rewrite-manifests, partition-statistics, expire --cleanup "
            "none), or adopt the table first (icetower table adopt)",
        )


def begin_job(
    catalog: Catalog,
    identifier: TableIdentifier,
    job: Job,
    options: Mapping[str, Any],
    lease_ms: int,
    job_id: str | None = None,
    rewritten_bytes: int = 0,
) -> MaintenanceJob:
    """Begin a job on a table, and hold the table for it.

    Args:
        catalog: the warehouse, for one caller.
        identifier: the table.
        job: what is to be done.
        options: how; kept with the job.
        lease_ms: how long the table is held, unless it is held for longer later.
        job_id: an id that the maintainer has chosen: sent again, the same job is answered.
        rewritten_bytes: how many are expected; they count for the day's budget if the job never says what it did.

    Raises:
        InvalidRequest: the id is none.
        NoSuchTable: no table has this name.
        TreeRefusal: it is a file-system table.
        JobConflict: another job holds the table; or the job with this id has ended, is of another kind, or another
            table's.
        CommitStateUnknown: the database did not answer; if the job began, its lease runs out.
    """
    catalog.permit("begin_job", identifier)
    if job_id is not None and not JOB_ID.fullmatch(job_id):
        raise InvalidRequest(f"Invalid id {job_id[:100]!r}: it must be 32 lower-case hexadecimal digits")
    check_jobs(catalog, identifier)
    pointer = catalog.load(TABLES, identifier)
    jobs, own_id = catalog.server.maintenance_jobs, job_id or catalog.server.new_uuid().replace("-", "")
    expected = {"expected-bytes": rewritten_bytes} if rewritten_bytes else {}
    begun = jobs.begin(own_id, pointer.id, job, catalog.caller.principal, options, lease_ms, expected)
    if begun is not None:
        return begun
    same = jobs.find(own_id)
    if same is not None and same.pointer_id != pointer.id:
        raise JobConflict(f"Job {own_id} is another table's")
    if same is not None and same.state is not JobState.RUNNING:
        raise _not_running(same)
    if same is not None and same.job != job:
        raise JobConflict(f"Job {own_id} is {same.job}, not {job}: each job needs an id of its own")
    if same is not None:
        return same
    holder = next((found for found in jobs.list(pointer.id, 1) if found.state is JobState.RUNNING), None)
    name = "another job" if holder is None else f"{holder.job} ({holder.id})"
    raise JobConflict(f"Cannot begin a job on {identifier}: {name} is running")


def hold_job(catalog: Catalog, identifier: TableIdentifier, job_id: str, lease_ms: int) -> MaintenanceJob:
    """Hold the table of a job for longer.

    Raises:
        NoSuchTable, NoSuchJob: there is no such table, or no such job of it.
        JobConflict: it does not run any more: its lease ran out, and another one began.
        CommitStateUnknown: the database did not answer.
    """
    catalog.permit("hold_job", identifier)
    job = _load_also_renamed(catalog, "hold_job", identifier, job_id)
    held = catalog.server.maintenance_jobs.hold(job_id, lease_ms)
    if held is None:
        raise _not_running(catalog.server.maintenance_jobs.find(job_id) or job)
    return held


def end_job(
    catalog: Catalog, identifier: TableIdentifier, job_id: str, state: JobState, outcome: Mapping[str, Any]
) -> MaintenanceJob:
    """Note what became of a job, with the snapshots that it made, and let its table go.

    Ending it once more in the same way changes nothing.

    Raises:
        NoSuchTable, NoSuchJob: there is no such table, or no such job of it.
        JobConflict: it does not run any more.
        CommitStateUnknown: the database did not answer.
    """
    catalog.permit("end_job", identifier)
    job = _load_also_renamed(catalog, "end_job", identifier, job_id)
    snapshots = job_snapshots(catalog, job_id)
    known = {**outcome, "snapshot-ids": snapshots} if snapshots else dict(outcome)
    ended = catalog.server.maintenance_jobs.end(job_id, state, known)
    if ended is None:
        ended = catalog.server.maintenance_jobs.find(job_id) or job
        if ended.state is not state:
            raise _not_running(ended)
    return ended


def job_snapshots(catalog: Catalog, job_id: str) -> list[int]:
    """Return the snapshots that the commits of a job have added, oldest first."""
    receipts = catalog.server.receipts.stored.find_by_job(job_id)
    return [
        snapshot_id
        for receipt in reversed(receipts)
        for change in receipt.changes
        for snapshot_id in change.snapshot_ids
    ]


def load_job(catalog: Catalog, identifier: TableIdentifier, job_id: str) -> MaintenanceJob:
    """Return one job of a table.

    Raises:
        NoSuchTable, NoSuchJob: there is no such table, or no such job of it.
        DatabaseUnavailable: the database does not answer.
    """
    catalog.permit("load_job", identifier)
    return _load(catalog, identifier, job_id)


def list_jobs(catalog: Catalog, identifier: TableIdentifier, page: Page) -> Listing[MaintenanceJob]:
    """Return the jobs of a table, newest first.

    Raises:
        NoSuchTable: no table has this name.
        DatabaseUnavailable: the database does not answer.
    """
    catalog.permit("list_jobs", identifier)
    pointer = catalog.load(TABLES, identifier)
    before = None if page.after is None else int(page.after)
    limit = page.limit or 100
    found = catalog.server.maintenance_jobs.list(pointer.id, limit + 1, before)
    next_after = str(found[limit - 1].sequence) if len(found) > limit else None
    return Listing(found[:limit], next_after)


def _load(catalog: Catalog, identifier: TableIdentifier, job_id: str) -> MaintenanceJob:
    pointer = catalog.load(TABLES, identifier)
    found = _find(catalog, job_id)
    if found is None or found.pointer_id != pointer.id:
        raise NoSuchJob(job_id)
    return found


def _find(catalog: Catalog, job_id: str) -> MaintenanceJob | None:
    # Not every text can be asked for: Postgres holds no NUL.
    return catalog.server.maintenance_jobs.find(job_id) if JOB_ID.fullmatch(job_id) else None


def _load_also_renamed(
    catalog: Catalog, operation: str, identifier: TableIdentifier, job_id: str
) -> MaintenanceJob:
    """Return a job of a table, also where the table has lost the name since the job began.

    Its maintainer knows no other name, and what became of the job must not be lost.
    """
    try:
        return _load(catalog, identifier, job_id)
    except (NoSuchTable, NoSuchJob):
        job = _find(catalog, job_id)
        was = (
            None if job is None else catalog.server.past.find(catalog.warehouse.id, identifier, job.began_ms)
        )
        if job is None or was is None or was.pointer_id != job.pointer_id:
            raise
        now = catalog.server.pointers.find_locked(job.pointer_id)
        if now is None:
            raise
        catalog.permit(operation, now.identifier)
        return job


def _not_running(job: MaintenanceJob) -> JobConflict:
    return JobConflict(f"Job {job.id} does not run any more: it is {job.state}")
