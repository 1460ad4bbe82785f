"""Plans of upkeep: which jobs are worth doing to a table now, and why the others are left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from app.engine.model.jobs import Job
from app.engine.properties.own_properties import DAY_MS, HOUR_MS, UPKEEP
from app.engine.upkeep.conditions import Condition
from app.engine.upkeep.costs import gb_hours
from app.engine.upkeep.parts import VARYING_OPTIONS, part_of
from app.engine.upkeep.policy import Policy
from app.engine.upkeep.worth import WORTH, Work

LONGEST_WAIT_MS: Final = DAY_MS


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """A job that is worth doing now."""

    job: Job
    reason: str
    """One sentence with the figures."""
    files: int
    """How many files it is expected to take away."""
    rewritten_bytes: int
    """How many bytes it is expected to read and write again."""
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def gb_hours(self) -> float:
        """What it costs: gigabytes of memory, times hours."""
        return gb_hours(self.rewritten_bytes, on_spark=self.job.needs_spark)

    @property
    def gain(self) -> float:
        """Files that go for each GB-hour."""
        return self.files / self.gb_hours


@dataclass(frozen=True, slots=True)
class LeftJob:
    """A job that is not done now, and why."""

    job: Job
    reason: str


@dataclass(frozen=True, slots=True)
class UpkeepPlan:
    """What to do to a table now, in this order, and what not."""

    jobs: tuple[PlannedJob, ...]
    left: tuple[LeftJob, ...]

    @property
    def gain(self) -> float:
        """Files that go for each GB-hour of the whole plan; 0 if there is nothing to do."""
        cost = sum(job.gb_hours for job in self.jobs)
        return sum(job.files for job in self.jobs) / cost if cost else 0.0


def plan_upkeep(policy: Policy, condition: Condition) -> UpkeepPlan:
    """Return which jobs to do to a table now, and why the others are left."""
    budget = policy.number("daily-bytes")
    left_bytes = None if budget is None else max(0, budget - condition.rewritten_bytes)
    jobs: list[PlannedJob] = []
    left: list[LeftJob] = []
    for job in Job:
        found = _obstacle(job, policy, condition) or WORTH[job](policy, condition)
        if isinstance(found, Work):
            found = _within_budget(job, found, policy, condition, left_bytes)
        if isinstance(found, Work):
            found = _refused_before(job, found, policy, condition) or found
        if isinstance(found, str):
            left.append(LeftJob(job, found))
            continue
        jobs.append(PlannedJob(job, found.reason, found.files, found.rewritten_bytes, found.options))
        if left_bytes is not None:
            left_bytes -= found.rewritten_bytes
    return UpkeepPlan(tuple(jobs), tuple(left))


def wanted_now(job: Job, policy: Policy, condition: Condition) -> PlannedJob | LeftJob:
    """Return a job for somebody who asks for it by name.

    There are no thresholds, windows and pauses then. What the table does not allow stays left, and so does what is
    known to fail.
    """
    obstacle = _lasting_obstacle(job, condition)
    found = obstacle or WORTH[job](policy.without_thresholds(), condition)
    if isinstance(found, str):
        return LeftJob(job, found)
    return PlannedJob(job, found.reason, found.files, found.rewritten_bytes, found.options)


def _obstacle(job: Job, policy: Policy, condition: Condition) -> str | None:
    """Return why a job is not even considered."""
    switch = policy.switch(job)
    if not switch.is_on:
        return f"it is off: {switch.said_by} ({switch.origin})"
    if condition.damage is not None:
        return f"the table is damaged: {condition.damage}"
    if condition.running is not None:
        return f"{condition.running} is running"
    flaw = policy.flaw()
    if flaw is not None:
        return f"the policy makes no sense: {flaw}"
    if not policy.allows(condition.now_ms):
        return f"it is not the time: {UPKEEP}.windows is {policy.text('windows')} (UTC)"
    return _lasting_obstacle(job, condition) or _pause(job, policy, condition)


def _lasting_obstacle(job: Job, condition: Condition) -> str | None:
    """Return what about the table itself forbids a job."""
    if condition.facts.unreadable is not None:
        return f"the table is damaged: {condition.facts.unreadable}"
    if condition.is_encrypted:
        return "the table is encrypted, and its keys are not the catalog's"
    if job in (Job.EXPIRE_SNAPSHOTS, Job.REMOVE_ORPHAN_FILES) and not condition.allows_deletes:
        return "the table does not allow it: gc.enabled is false"
    if job is Job.REWRITE_POSITION_DELETES and condition.has_collections:
        return "Iceberg up to 1.10 fails to rewrite position deletes of tables with lists or maps (iceberg #15632)"
    return None


def _pause(job: Job, policy: Policy, condition: Condition) -> str | None:
    history = condition.history_of(job)
    if history.failures and history.last_failure_ms is not None:
        wait_ms = min(
            (policy.number("wait-after-failure-ms") or 0) << min(history.failures - 1, 16), LONGEST_WAIT_MS
        )
        rest_ms = history.last_failure_ms + wait_ms - condition.now_ms
        if rest_ms > 0:
            tries = "once" if history.failures == 1 else f"{history.failures} times"
            return f"it failed {tries}, and is tried again in {_duration(rest_ms)}"
    if history.last_success_ms is not None:
        rest_ms = history.last_success_ms + (policy.number("wait-after-success-ms") or 0) - condition.now_ms
        if rest_ms > 0:
            return f"it was done a while ago, and is looked at again in {_duration(rest_ms)}"
    return None


def _refused_before(job: Job, work: Work, policy: Policy, condition: Condition) -> str | None:
    history = condition.history_of(job)
    if history.refused_options is None or _lasting(history.refused_options) != _lasting(work.options):
        return None
    if not VARYING_OPTIONS & history.refused_options.keys():
        return "it was refused with these options: change the policy"
    # What refused it may be of another table, and the moment is another one each time.
    rest_ms = history.refused_ms + (policy.number("wait-after-failure-ms") or 0) - condition.now_ms
    return f"it was refused, and is tried again in {_duration(rest_ms)}" if rest_ms > 0 else None


def _lasting(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in VARYING_OPTIONS}


def _within_budget(
    job: Job, work: Work, policy: Policy, condition: Condition, left_bytes: int | None
) -> Work | str:
    """Return what the day's budget leaves of a job, or why that is nothing."""
    if left_bytes is None or work.rewritten_bytes <= left_bytes:
        return work
    part = part_of(job, work, policy, condition, left_bytes)
    if part is not None:
        return part
    return f"it would rewrite {work.rewritten_bytes} bytes, and today's budget has {left_bytes} left"


def _duration(milliseconds: int) -> str:
    if milliseconds < HOUR_MS:
        return f"{-(-milliseconds // 60_000)} min"
    return f"{milliseconds / HOUR_MS:.1f} h"
