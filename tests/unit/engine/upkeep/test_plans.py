"""Plans of upkeep: what is worth doing now, and why the rest is left."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from app.engine.health.facts import PartitionFacts, StatisticsFacts
from app.engine.model.ids import SpecId
from app.engine.model.jobs import Job
from app.engine.properties.known import Origin
from app.engine.upkeep.cold_partitions import WrittenPartition
from app.engine.upkeep.conditions import Condition, JobHistory
from app.engine.upkeep.plans import PlannedJob, plan_upkeep, wanted_now
from app.engine.upkeep.policy import Policy
from tests.builders.catalogs import START_MS
from tests.builders.health_facts import MIB, file_facts, health_facts, manifest_facts

HOUR_MS = 3_600_000
ORPHANS_DONE = {Job.REMOVE_ORPHAN_FILES: JobHistory(last_success_ms=START_MS - 2 * HOUR_MS)}
WELL = Condition(health_facts(), START_MS, expirable_snapshots=0, history=ORPHANS_DONE)


def policy(**settings: str) -> Policy:
    named = {f"icetower.maintenance.{name}": value for name, value in settings.items()}
    return Policy({Origin.TABLE: {"icetower.maintenance": "recommended", **named}})


def jobs(condition: Condition, of: Policy | None = None) -> list[Job]:
    return [job.job for job in plan_upkeep(of or policy(), condition).jobs]


def reason(condition: Condition, job: Job, of: Policy | None = None) -> str:
    return next(left.reason for left in plan_upkeep(of or policy(), condition).left if left.job is job)


def with_files(**changed: Any) -> Condition:
    return replace(WELL, facts=replace(WELL.facts, files=file_facts(**changed)))


SMALL: dict[str, Any] = {
    "data_files": 100,
    "small_files": 100,
    "small_bytes": 400 * MIB,
    "files_to_save": 98,
    "data_bytes": 400 * MIB,
}


def test_nothing_is_done_to_a_table_that_is_well() -> None:
    plan = plan_upkeep(policy(), WELL)

    assert plan.jobs == ()
    assert [left.job for left in plan.left] == list(Job)
    assert plan.gain == 0


def test_nothing_is_done_unless_somebody_wants_it() -> None:
    bad = replace(with_files(**SMALL), expirable_snapshots=500)

    assert jobs(bad, Policy({})) == []
    assert reason(bad, Job.EXPIRE_SNAPSHOTS, Policy({})) == "it is off: icetower.maintenance (default)"


def test_jobs_come_in_the_order_in_which_each_leaves_less_to_the_next() -> None:
    bad = replace(
        WELL,
        facts=health_facts(
            file_facts(**SMALL, position_delete_files=50, deletes_per_data_file=0.5, dangling_deletes=3),
            manifest_facts(data_manifests=100, average_bytes=10_000.0, total_bytes=MIB),
            partition_statistics=StatisticsFacts(None, None),
            statistics=StatisticsFacts(None, None),
        ),
        expirable_snapshots=100,
        history={},
    )

    assert jobs(bad) == [job for job in Job if job is not Job.TABLE_STATISTICS]
    everything = policy(**{"table-statistics": "on"})
    assert jobs(bad, everything) == list(Job)
    plan = plan_upkeep(everything, bad)
    assert plan.gain > 0
    assert all(job.gb_hours > 0 for job in plan.jobs)


def test_small_files_are_rewritten_once_enough_of_them_can_go() -> None:
    few = with_files(**{**SMALL, "files_to_save": 19})

    assert jobs(few) == []
    assert reason(few, Job.REWRITE_DATA_FILES) == "it would save 19 data files; 20 or more are worth it"
    one = with_files(**{**SMALL, "files_to_save": 1})
    assert reason(one, Job.REWRITE_DATA_FILES) == "it would save 1 data file; 20 or more are worth it"
    assert jobs(few, policy(**{"rewrite-data-files.min-files": "19"})) == [Job.REWRITE_DATA_FILES]
    (job,) = plan_upkeep(policy(), with_files(**SMALL)).jobs
    assert (job.files, job.rewritten_bytes) == (98, 400 * MIB)
    assert dict(job.options) == {"min-input-files": "2", "strategy": "binpack"}


def test_files_that_move_to_another_spec_get_a_new_age() -> None:
    """Else equality deletes of the old spec that are written meanwhile would be lost."""
    (job,) = plan_upkeep(policy(), with_files(**SMALL, old_spec_files=1)).jobs

    assert job.options["use-starting-sequence-number"] == "false"


@pytest.mark.parametrize(
    ("strategy", "meant"),
    [({}, "sort"), ({"strategy": "binpack"}, "binpack"), ({"strategy": " SORT"}, "sort")],
)
def test_an_order_alone_asks_for_sorting(strategy: dict[str, str], meant: str) -> None:
    own = policy(
        **{f"rewrite-data-files.{name}": value for name, value in {"sort-order": "a", **strategy}.items()}
    )

    (job,) = plan_upkeep(own, with_files(**SMALL)).jobs

    assert (job.options["sort-order"], job.options["strategy"]) == ("a", meant)


def test_where_rows_are_changed_often_a_rewrite_goes_in_small_steps() -> None:
    hot = replace(with_files(**SMALL), rows_changed_ms=START_MS - HOUR_MS + 1)
    cold = replace(hot, rows_changed_ms=START_MS - HOUR_MS)

    (job,) = plan_upkeep(policy(), hot).jobs
    assert job.options["partial-progress.enabled"] == "true"
    assert job.options["max-file-group-size-bytes"] == str(2 << 30)
    (job,) = plan_upkeep(policy(), cold).jobs
    assert "partial-progress.enabled" not in job.options


def test_where_rows_are_changed_often_only_cold_partitions_are_rewritten() -> None:
    def partition(number: int, age_ms: int) -> WrittenPartition:
        facts = PartitionFacts(SpecId(0), (number,), 30, 30 * MIB, 30, 30 * MIB, 0, 29, number)
        return WrittenPartition(facts, START_MS - age_ms, f"day <> {number}")

    latest = (partition(3, 0), partition(2, HOUR_MS - 1), partition(1, HOUR_MS))
    hot = replace(with_files(**SMALL), rows_changed_ms=START_MS, latest_partitions=latest)

    (job,) = plan_upkeep(policy(), hot).jobs
    assert job.options["where"] == "day <> 2 AND day <> 3"
    assert (job.files, job.rewritten_bytes) == (98 - 58, 340 * MIB)
    assert "2 partitions that were written lately are left out" in job.reason
    few = policy(**{"rewrite-data-files.min-files": "41"})
    assert "it would save 40 data files" in reason(hot, Job.REWRITE_DATA_FILES, few)
    # All of the table: if its rows are not changed, if its policy has a filter, or if somebody asks for it by name.
    for settings in ({"cold-after-ms": "0"}, {"where": "day = 1"}):
        own = policy(**{f"rewrite-data-files.{name}": value for name, value in settings.items()})
        (job,) = plan_upkeep(own, hot).jobs
        assert job.options.get("where") == settings.get("where")
        assert job.files == 98
    (job,) = plan_upkeep(policy(), replace(hot, rows_changed_ms=None)).jobs
    assert "where" not in job.options
    asked = wanted_now(Job.REWRITE_DATA_FILES, policy(), hot)
    assert isinstance(asked, PlannedJob)
    assert "where" not in asked.options


@pytest.mark.parametrize("changed", [{"deletes_per_data_file": 0.5}, {"deleted_positions": 100_000}])
def test_deletes_are_a_reason_to_rewrite_data(changed: dict[str, Any]) -> None:
    (job, *_) = plan_upkeep(policy(), with_files(**changed, deletion_vectors=5)).jobs

    assert job.job is Job.REWRITE_DATA_FILES
    assert job.options["delete-file-threshold"] == "1"


@pytest.mark.parametrize(
    ("settings", "changed", "is_done"),
    [
        ({"delete-files-ratio": "0.6"}, {"deletes_per_data_file": 0.5}, False),
        ({"delete-files-ratio": "0.2"}, {"deletes_per_data_file": 0.2}, True),
        ({"deleted-rows-ratio": "0.2"}, {"deleted_positions": 100_000}, False),
        ({"deleted-rows-ratio": "0.05"}, {"deleted_positions": 50_000}, True),
        ({"deleted-rows-ratio": "0"}, {"deletion_vectors": 0}, False),
    ],
)
def test_policy_says_how_many_deletes_are_a_reason(
    settings: dict[str, str], changed: dict[str, Any], is_done: bool
) -> None:
    own = policy(**{f"rewrite-data-files.{name}": value for name, value in settings.items()})
    condition = with_files(**{"deletion_vectors": 5, **changed})

    assert (Job.REWRITE_DATA_FILES in [job.job for job in plan_upkeep(own, condition).jobs]) is is_done


def test_policy_says_when_and_how_manifests_are_clustered() -> None:
    overlapping = replace(
        WELL, facts=health_facts(manifests=manifest_facts(data_manifests=20, average_overlap=3.0))
    )
    own = {"rewrite-manifests.overlap": "3", "rewrite-manifests.min-manifests": "20"}

    (job,) = plan_upkeep(policy(**own, **{"rewrite-manifests.cluster-by": "day"}), overlapping).jobs

    assert (job.job, job.options) == (Job.REWRITE_MANIFESTS, {"cluster-by": "day"})
    assert plan_upkeep(policy(**own | {"rewrite-manifests.overlap": "4"}), overlapping).jobs == ()


def test_table_says_what_is_not_allowed() -> None:
    forbidden = replace(WELL, allows_deletes=False, expirable_snapshots=100, history={})

    assert jobs(forbidden) == []
    assert "gc.enabled" in reason(forbidden, Job.EXPIRE_SNAPSHOTS)
    assert "gc.enabled" in reason(forbidden, Job.REMOVE_ORPHAN_FILES)
    assert "encrypted" in reason(replace(WELL, is_encrypted=True), Job.REWRITE_MANIFESTS)
    lists = replace(with_files(position_delete_files=50), has_collections=True)
    assert "15632" in reason(lists, Job.REWRITE_POSITION_DELETES)
    assert "15632" in wanted_now(Job.REWRITE_POSITION_DELETES, policy(), lists).reason


def test_plan_says_that_files_of_earlier_snapshots_wait() -> None:
    waiting = replace(WELL, facts=replace(WELL.facts, waiting_deletions=("table a.b cannot be read",)))

    said = "; files of earlier ones wait to be deleted: table a.b cannot be read"
    assert reason(waiting, Job.EXPIRE_SNAPSHOTS).endswith(said)
    assert plan_upkeep(policy(), replace(waiting, expirable_snapshots=99)).jobs[0].reason.endswith(said)


def test_search_for_orphans_that_was_refused_waits_though_its_moment_is_another_one() -> None:
    def after(rest_ms: int, **options: Any) -> Condition:
        refused = {"older-than-ms": 7, **options}
        history = JobHistory(refused_options=refused, refused_ms=START_MS - HOUR_MS + rest_ms)
        return replace(WELL, history={Job.REMOVE_ORPHAN_FILES: history})

    assert "it was refused, and is tried again in 1 min" in reason(after(1), Job.REMOVE_ORPHAN_FILES)
    assert jobs(after(0)) == [Job.REMOVE_ORPHAN_FILES]
    assert jobs(after(1, location="a")) == [Job.REMOVE_ORPHAN_FILES]


def test_jobs_wait_after_success_and_longer_after_each_failure() -> None:
    bad = replace(WELL, expirable_snapshots=100)

    def after(history: JobHistory) -> list[Job]:
        return jobs(replace(bad, history={**ORPHANS_DONE, Job.EXPIRE_SNAPSHOTS: history}))

    assert after(JobHistory(last_success_ms=START_MS - HOUR_MS + 1)) == []
    assert after(JobHistory(last_success_ms=START_MS - HOUR_MS)) == [Job.EXPIRE_SNAPSHOTS]
    assert after(JobHistory(None, START_MS - HOUR_MS, 1)) == [Job.EXPIRE_SNAPSHOTS]
    assert after(JobHistory(None, START_MS - HOUR_MS, 2)) == []
    assert after(JobHistory(None, START_MS - 24 * HOUR_MS, 99)) == [Job.EXPIRE_SNAPSHOTS]


def test_options_that_were_refused_are_not_tried_again() -> None:
    bad = with_files(**SMALL)
    options = plan_upkeep(policy(), bad).jobs[0].options
    refused = replace(
        bad, history={**ORPHANS_DONE, Job.REWRITE_DATA_FILES: JobHistory(refused_options=options)}
    )

    assert jobs(refused) == []
    assert "refused" in reason(refused, Job.REWRITE_DATA_FILES)
    assert jobs(refused, policy(**{"rewrite-data-files.strategy": "sort"})) == [Job.REWRITE_DATA_FILES]


def test_days_budget_is_kept() -> None:
    bad = with_files(**SMALL)
    tight = policy(**{"daily-bytes": str(500 * MIB)})

    assert jobs(bad, tight) == [Job.REWRITE_DATA_FILES]
    assert jobs(replace(bad, rewritten_bytes=101 * MIB), tight) == []


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"damage": "s3://a is not there"}, "damaged"),
        ({"running": Job.REWRITE_MANIFESTS}, "rewrite-manifests is running"),
    ],
)
def test_table_that_is_damaged_or_held_is_left_alone(changed: dict[str, Any], words: str) -> None:
    bad = replace(WELL, expirable_snapshots=100, **changed)

    assert jobs(bad) == []
    assert words in reason(bad, Job.EXPIRE_SNAPSHOTS)


def test_outside_its_windows_nothing_is_begun() -> None:
    bad = replace(WELL, expirable_snapshots=100)  # START_MS is 22:13 in UTC

    assert jobs(bad, policy(windows="22:00-23:00")) == [Job.EXPIRE_SNAPSHOTS]
    assert "windows" in reason(bad, Job.EXPIRE_SNAPSHOTS, policy(windows="23:00-22:00"))


@pytest.mark.parametrize(("limit", "words"), [("windows", "times of day"), ("daily-bytes", "whole number")])
def test_limit_that_makes_no_sense_is_no_leave_to_do_anything(limit: str, words: str) -> None:
    bad = replace(WELL, expirable_snapshots=100)

    assert jobs(bad, policy(**{limit: "nights"})) == []
    assert words in reason(bad, Job.EXPIRE_SNAPSHOTS, policy(**{limit: "nights"}))


def test_somebody_who_asks_by_name_waits_for_nothing() -> None:
    one = replace(WELL, expirable_snapshots=1)

    assert wanted_now(Job.EXPIRE_SNAPSHOTS, Policy({}), one).reason.startswith("1 snapshot is")
    assert "0 snapshots" in wanted_now(Job.EXPIRE_SNAPSHOTS, Policy({}), WELL).reason


def test_manifests_are_rewritten_for_their_number_or_their_clustering_but_not_again_at_once() -> None:
    many = manifest_facts(data_manifests=30, total_bytes=MIB)
    mixed = manifest_facts(data_manifests=10, total_bytes=80 * MIB, average_overlap=9.5)

    for facts in (many, mixed):
        bad = replace(WELL, facts=health_facts(manifests=facts))
        assert jobs(bad) == [Job.REWRITE_MANIFESTS]
        assert jobs(replace(bad, snapshots_since={Job.REWRITE_MANIFESTS: 9})) == []
        assert jobs(replace(bad, snapshots_since={Job.REWRITE_MANIFESTS: 10})) == [Job.REWRITE_MANIFESTS]
