"""Parts of jobs: what a day's budget leaves of a rewrite."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine.health.file_summary import above_rounded, rounded_size
from app.engine.model.jobs import Job
from app.engine.properties.known import Origin
from app.engine.upkeep.conditions import Condition, JobHistory
from app.engine.upkeep.parts import best_part
from app.engine.upkeep.plans import PlannedJob, UpkeepPlan, plan_upkeep
from app.engine.upkeep.policy import Policy
from tests.builders.catalogs import START_MS
from tests.builders.health_facts import MIB, file_facts, health_facts, manifest_facts

TARGET = 512 * MIB


def policy(daily_bytes: int, **settings: str) -> Policy:
    named = {f"icetower.maintenance.{name}": value for name, value in settings.items()}
    return Policy(
        {
            Origin.TABLE: {
                "icetower.maintenance": "recommended",
                "icetower.maintenance.remove-orphan-files": "off",
                "icetower.maintenance.daily-bytes": str(daily_bytes),
                **named,
            }
        }
    )


def condition(sizes: dict[int, int], **changed: Any) -> Condition:
    small = {size: files for size, files in sizes.items() if size < 384 * MIB}
    facts: dict[str, Any] = {
        "data_files": sum(sizes.values()),
        "data_bytes": sum(size * files for size, files in sizes.items()),
        "small_files": sum(small.values()),
        "small_bytes": sum(size * files for size, files in small.items()),
        "files_to_save": sum(small.values()) - 2,
        "partitions_with_small_files": 2,
        "sizes": sizes,
        **changed,
    }
    found = health_facts(file_facts(**facts), target_file_bytes=TARGET, target_delete_file_bytes=64 * MIB)
    return Condition(found, START_MS, expirable_snapshots=0)


def one(plan: UpkeepPlan) -> PlannedJob:
    (job,) = plan.jobs
    return job


def test_smallest_files_go_first_where_all_of_them_are_too_much() -> None:
    found = condition({MIB: 100, 200 * MIB: 100})

    job = one(plan_upkeep(policy(1000 * MIB), found))

    assert job.options["min-file-size-bytes"] == str(above_rounded(MIB))
    assert "max-files-to-rewrite" not in job.options
    assert (job.files, job.rewritten_bytes) == (98, 100 * (above_rounded(MIB) - 1))
    assert "which is what today's budget leaves" in job.reason


def test_files_of_one_size_are_taken_by_their_number() -> None:
    found = condition({200 * MIB: 1000})

    job = one(plan_upkeep(policy(10_000 * MIB), found))

    assert job.options["min-file-size-bytes"] == str(above_rounded(200 * MIB))
    assert job.options["max-files-to-rewrite"] == "49"
    assert job.files == 49 - 20
    assert job.rewritten_bytes <= 10_000 * MIB
    assert plan_upkeep(policy(10_000 * MIB, **{"rewrite-data-files.strategy": "sort"}), found).jobs == ()


def test_large_files_are_left_out_of_a_part_and_counted_in_the_whole() -> None:
    found = condition({MIB: 100, 2000 * MIB: 5})

    job = one(plan_upkeep(policy(1000 * MIB), found))
    assert int(job.options["max-file-size-bytes"]) > 2000 * MIB
    assert one(plan_upkeep(policy(100_000 * MIB), found)).rewritten_bytes == 10_100 * MIB


def test_data_files_with_deletes_are_taken_by_their_number() -> None:
    found = condition({400 * MIB: 100}, deletion_vectors=50, deletes_per_data_file=0.5)

    job = one(plan_upkeep(policy(1000 * MIB), found))

    assert job.options["delete-file-threshold"] == "1"
    assert job.options["max-files-to-rewrite"] == "2"
    assert job.rewritten_bytes <= 1000 * MIB
    assert plan_upkeep(policy(400 * MIB), found).jobs == ()


def test_position_deletes_below_a_size_go_first() -> None:
    found = condition(
        {400 * MIB: 100},
        position_delete_files=60,
        delete_bytes=30 * 10_000 + 30 * 10 * MIB,
        position_delete_sizes={10_000: 30, 10 * MIB: 30},
        partitions=2,
    )

    job = one(plan_upkeep(policy(MIB), found))

    assert job.job is Job.REWRITE_POSITION_DELETES
    assert job.options == {"min-file-size-bytes": str(above_rounded(10_000))}
    assert job.files == 28


def test_manifests_are_rewritten_as_far_as_the_budget_goes_and_then_again() -> None:
    facts = manifest_facts(
        data_manifests=100, total_bytes=100_000, average_bytes=1000.0, target_bytes=8 * MIB
    )
    found = Condition(health_facts(manifests=facts), START_MS, expirable_snapshots=0)

    job = one(plan_upkeep(policy(20_000), found))
    assert job.options == {"max-bytes": 20_000}
    assert (job.files, job.rewritten_bytes) == (19, 20_000)
    # Few manifests are waited for, unless no day's budget is enough for more.
    assert plan_upkeep(policy(20_000), replace(found, rewritten_bytes=15_000)).jobs == ()
    assert one(plan_upkeep(policy(5_000), found)).options == {"max-bytes": 5_000}
    assert plan_upkeep(policy(1_999), found).jobs == ()
    # After a part no snapshots are waited for.
    done = replace(
        found,
        history={Job.REWRITE_MANIFESTS: JobHistory(last_success_ms=0, did_a_part=True)},
        snapshots_since={Job.REWRITE_MANIFESTS: 0},
    )
    assert one(plan_upkeep(policy(20_000), done)).job is Job.REWRITE_MANIFESTS


def test_little_that_is_left_waits_for_a_new_day_unless_no_day_has_more() -> None:
    found = condition({100 * MIB: 1000})

    assert plan_upkeep(policy(10_000 * MIB), replace(found, rewritten_bytes=9_500 * MIB)).jobs == ()
    assert one(plan_upkeep(policy(1_000 * MIB), found)).files < 20


def test_part_that_was_refused_waits_though_its_sizes_are_others() -> None:
    found = condition({MIB: 100, 200 * MIB: 100})
    options = dict(one(plan_upkeep(policy(1000 * MIB), found)).options) | {"min-file-size-bytes": "7"}
    refused = JobHistory(refused_options=options, refused_ms=START_MS - 1)

    assert (
        plan_upkeep(policy(1000 * MIB), replace(found, history={Job.REWRITE_DATA_FILES: refused})).jobs == ()
    )
    long_ago = replace(refused, refused_ms=START_MS - 3_600_000)
    one(plan_upkeep(policy(1000 * MIB), replace(found, history={Job.REWRITE_DATA_FILES: long_ago})))


@pytest.mark.parametrize("job", [Job.PARTITION_STATISTICS, Job.TABLE_STATISTICS])
def test_statistics_have_no_parts(job: Job) -> None:
    found = condition({MIB: 10}, files_to_save=0)
    metadata = replace(
        found.facts.metadata,
        statistics=replace(found.facts.metadata.statistics, snapshots_behind=None),
        partition_statistics=replace(found.facts.metadata.statistics, snapshots_behind=None),
    )
    bad = replace(found, facts=replace(found.facts, metadata=metadata))

    plan = plan_upkeep(policy(1, **{"table-statistics": "on"}), bad)

    assert "today's budget has 1 left" in next(left.reason for left in plan.left if left.job is job)


@given(
    st.dictionaries(st.integers(0, 2**40).map(rounded_size), st.integers(1, 10**6), max_size=12),
    st.integers(1, 1000),
    st.integers(0, 2**44),
    st.booleans(),
)
def test_no_part_is_more_than_is_left(
    sizes: dict[int, int], groups: int, left_bytes: int, limits_files: bool
) -> None:
    part = best_part(sizes, groups, TARGET, left_bytes, limits_files=limits_files)

    if part is not None:
        # The largest files that become these when rounded, all of them or as many as are taken.
        found = sorted(
            (above_rounded(size) - 1, files) for size, files in sizes.items() if size < part.below_bytes
        )
        number = sum(files for _, files in found)
        taken = number if part.most_files is None else min(number, part.most_files)
        most, left = 0, taken
        for size, files in reversed(found):
            most += size * min(left, files)
            left -= min(left, files)
        assert most <= part.most_bytes <= left_bytes
        assert 0 < part.files_to_save < taken
        assert limits_files or part.most_files is None


@given(st.integers(0, 2**62))
def test_sizes_that_are_rounded_to_one_are_below_its_bound(size: int) -> None:
    assert rounded_size(size) <= size < above_rounded(rounded_size(size))
    assert rounded_size(above_rounded(rounded_size(size)) - 1) == rounded_size(size)
