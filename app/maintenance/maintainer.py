"""The maintainer: asks what tables need, has it done job by job, and reports."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final
from uuid import uuid4

from app.client.catalog import RemoteCatalog
from app.client.http.failures import CallFailed, CatalogRefused
from app.client.request_parts import JsonObject
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.jobs import SUCCEEDED, Job, JobState
from app.maintenance.assignments import Assignment, Ending, Worker
from app.maintenance.leases import LEASE_MS, held
from app.maintenance.patience import patiently

_SPENDS: Final = frozenset({JobState.DONE, JobState.LOST, JobState.UNKNOWN, JobState.UNSOUND})
"""After these, what a job was expected to rewrite counts for the budget, unless it says itself what it did."""
NOT_TRIED: Final = frozenset({JobState.REFUSED})
"""What a table does not allow is an outcome, and no failure."""


class _TableHeld(Exception):
    """Another maintainer is at work on the table."""


@dataclass(frozen=True, slots=True)
class JobReport:
    """One job that was carried out."""

    job: Job
    job_id: str
    reason: str
    ending: Ending
    seconds: float


@dataclass(frozen=True, slots=True)
class TableReport:
    """What was done to one table."""

    table: TableIdentifier
    before: JsonObject
    """The facts about its health, as the server answers them."""
    after: JsonObject
    jobs: Sequence[JobReport]
    undone: Mapping[str, str]
    """Jobs that are worth doing and have no worker here, and what they need."""
    left: Mapping[str, str]
    """Why other jobs are not worth doing now, by job."""
    seconds: float
    stopped: str = ""
    """Why the rest of the plan was left; empty if it was carried out."""
    could_not_begin: bool = False
    """Whether a job was asked for by name while another maintainer held the table."""
    damage: str = ""
    """Why nothing is done to a table that has jobs: what of it is missing or cannot be read."""

    @property
    def is_fine(self) -> bool:
        """Whether the table is whole, and no job has failed.

        A job that was asked for by name and could not begin has failed.
        """
        is_whole = not self.could_not_begin and not self.damage
        return is_whole and all(report.ending.state in SUCCEEDED | NOT_TRIED for report in self.jobs)


@dataclass(slots=True)
class Listener:
    """Is called as work goes on; by default with no effect."""

    job_begins: Callable[[TableIdentifier, Job, str], None] = field(
        default=lambda _table, _job, _reason: None
    )
    job_ended: Callable[[TableIdentifier, JobReport], None] = field(default=lambda _table, _report: None)


class Maintainer:
    """Carries out the plans of one warehouse's tables, one table at a time."""

    def __init__(
        self,
        catalog: RemoteCatalog,
        workers: Mapping[Job, Worker],
        wanted: Sequence[Job] = (),
        listener: Listener | None = None,
        lease_ms: int = LEASE_MS,
        going_on: Collection[Job] = (),
    ) -> None:
        """Make a maintainer.

        Args:
            catalog: the warehouse.
            workers: who carries out each job; jobs that have none are left.
            wanted: only these jobs, whatever the policy says.
            listener: is called as work goes on.
            lease_ms: how long a table stays held if this process dies.
            going_on: jobs that go on elsewhere when this process is stopped: their tables stay held.
        """
        self._catalog = catalog
        self._workers = workers
        self._wanted = wanted
        self.listener = listener or Listener()
        self._lease_ms = lease_ms
        self._going_on = frozenset(going_on)

    def tables(self, namespace: Namespace | None = None) -> Iterator[TableIdentifier]:
        """Yield the tables of a namespace and those below it, or of the warehouse."""
        if namespace is not None:
            yield from self._catalog.tables.list(namespace)
        for child in self._catalog.namespaces.list(namespace):
            try:
                yield from self.tables(child)
            except CatalogRefused as refused:
                # It was dropped since it was listed: while tables are planned, that may be long ago.
                if not refused.is_missing_namespace:
                    raise

    def plan(self, table: TableIdentifier) -> JsonObject:
        """Return what is to be done to a table now; raises `CallFailed`."""
        return self._catalog.maintenance.plan(table, self._wanted)

    def in_order(
        self, tables: Iterator[TableIdentifier]
    ) -> tuple[list[JsonObject], dict[TableIdentifier, str]]:
        """Return the plans of tables, those that save most for their cost first.

        Returns:
            The plans, and why tables could not be planned.
        """
        plans, failures = [], {}
        for table in tables:
            try:
                plans.append(self.plan(table))
            except CallFailed as failure:
                failures[table] = str(failure)
        return sorted(plans, key=lambda found: -found["gain"]), failures

    def has_work(self, plan: JsonObject) -> bool:
        """Say whether a plan has jobs, or damage that keeps them from being done."""
        return bool(plan["plan"]) or bool(self._damage(plan))

    def _damage(self, plan: JsonObject) -> str:
        """Return what is damaged in a table that has jobs."""
        is_kept = bool(self._wanted) or any(job["on"] for job in plan["jobs"])
        damage: str = plan.get("damage", "") if is_kept and not plan["plan"] else ""
        return damage

    def maintain(self, table: TableIdentifier) -> TableReport:
        """Do what a table needs now, job by job: after each one the plan is made anew.

        Raises:
            CallFailed: the server does not answer, or the table is not there.
            KeyboardInterrupt: a person has stopped it; the table is not held any more.
        """
        started = time.monotonic()
        before = self._facts(table)
        reports: list[JobReport] = []
        stopped, is_held = "", False
        while True:
            found = self.plan(table)
            done = {report.job for report in reports}
            todo = [item for item in found["plan"] if Job(item["job"]) not in done]
            mine = next((item for item in todo if Job(item["job"]) in self._workers), None)
            if reports and _ends_all(reports[-1].ending):
                stopped = _why_stopped(reports[-1].ending)
            if mine is None or stopped:
                break
            try:
                reports.append(self._do(table, mine))
            except _TableHeld as held_by_other:
                stopped, is_held = str(held_by_other), True
                break
        left = {item["job"]: item["reason"] for item in found["left"] if Job(item["job"]) not in done}
        able = {item["job"] for item in todo if Job(item["job"]) in self._workers}
        return TableReport(
            table=table,
            before=before,
            after=self._facts(table) if reports else before,
            jobs=reports,
            undone={
                item["job"]: "it needs Spark: --spark says where" for item in todo if item["job"] not in able
            },
            left=left | dict.fromkeys(sorted(able), stopped),
            seconds=time.monotonic() - started,
            stopped=stopped,
            # Under a policy that is no failure: what holds the table does what is worth doing.
            could_not_begin=is_held and bool(self._wanted),
            damage=self._damage(found),
        )

    def _do(self, table: TableIdentifier, planned: JsonObject) -> JobReport:
        job, job_id = Job(planned["job"]), uuid4().hex
        try:
            return self._begun_and_ended(table, planned, job, job_id)
        except KeyboardInterrupt:
            # The next maintainer must not wait until the lease runs out.
            if job not in self._going_on:
                self._let_go(table, planned, job_id)
            raise

    def _let_go(self, table: TableIdentifier, planned: JsonObject, job_id: str) -> None:
        """Note that a job was stopped; where it has not begun, or has ended, that is refused."""
        ending = Ending(
            JobState.UNKNOWN,
            "It was stopped: its last commit may have landed or not.",
            {"rewritten-bytes": planned["rewritten-bytes"]},
        )
        with suppress(CallFailed):
            self._catalog.maintenance.end_job(table, job_id, ending.state, ending.outcome())

    def _begun_and_ended(
        self, table: TableIdentifier, planned: JsonObject, job: Job, job_id: str
    ) -> JobReport:
        started = time.monotonic()
        options: dict[str, Any] = planned["options"]
        calls = self._catalog.maintenance
        try:
            calls.begin_job(table, job, job_id, options, self._lease_ms, planned["rewritten-bytes"])
        except CatalogRefused as refused:
            if refused.status == 409:
                raise _TableHeld(str(refused)) from refused
            ending = Ending(JobState.FAILED, str(refused))
            return self._report(table, JobReport(job, job_id, planned["reason"], ending, 0.0))
        self.listener.job_begins(table, job, planned["reason"])
        with held(calls, table, job_id, self._lease_ms) as lease:
            ending = self._workers[job].carry_out(Assignment(table, job, job_id, options))
            if lease.lost is not None:
                ending = ending.with_remark(f"The table was not held to the end: {lease.lost}")
            seconds = time.monotonic() - started
            spent = {"rewritten-bytes": planned["rewritten-bytes"]} if ending.state in _SPENDS else {}
            outcome = {**spent, **ending.outcome(), "seconds": round(seconds, 3)}
            try:
                if not ending.is_still_at_work:
                    # What is not noted is planned again: after rows have changed, above all an expiry.
                    patiently(partial(calls.end_job, table, job_id, ending.state, outcome))
            except CallFailed as failure:
                ending = ending.with_remark(f"Its end could not be noted: {failure}")
        return self._report(table, JobReport(job, job_id, planned["reason"], ending, seconds))

    def _report(self, table: TableIdentifier, report: JobReport) -> JobReport:
        self.listener.job_ended(table, report)
        return report

    def _facts(self, table: TableIdentifier) -> JsonObject:
        return self._catalog.health.table(table)


def _why_stopped(ending: Ending) -> str:
    if ending.state is JobState.DAMAGED:
        return "a file of the table is missing"
    if ending.state is JobState.UNSOUND:
        return "rows are not what they were"
    return "the last job may still be at work"


def _ends_all(ending: Ending) -> bool:
    """Say whether nothing more may be done to the table.

    Where rows have changed, expiry would take away what a person needs to go back.
    """
    return ending.is_still_at_work or ending.state in (JobState.DAMAGED, JobState.UNSOUND)
