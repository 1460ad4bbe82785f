"""Jobs of upkeep: one at a time for each table, and a lease that runs out."""

from __future__ import annotations

from functools import partial

from app.database.maintenance_jobs import MaintenanceJobs
from app.engine.model.jobs import LONGEST_LEASE_MS, JobState
from tests.contract.database.races import run_together
from tests.contract.database.stores import Stores

LEASE_MS = 60_000


def ids(number: int) -> str:
    return f"{number:032x}"


def begin(jobs: MaintenanceJobs, number: int, pointer_id: int = 1, lease_ms: int = LEASE_MS) -> bool:
    begun = jobs.begin(ids(number), pointer_id, "expire-snapshots", "alice", {"a": 1}, lease_ms)
    return begun is not None


def test_one_job_holds_a_table_until_it_ends(stores: Stores) -> None:
    jobs = MaintenanceJobs(stores.database)

    assert begin(jobs, 1)
    assert not begin(jobs, 2)
    assert begin(jobs, 3, pointer_id=2)
    assert jobs.hold(ids(1), LEASE_MS)
    assert jobs.end(ids(1), JobState.DONE, {"files": 3})
    assert not jobs.hold(ids(1), LEASE_MS)
    assert not jobs.end(ids(1), JobState.FAILED, {})
    assert begin(jobs, 4)

    newest, oldest = jobs.list(1, 10)
    assert (newest.id, newest.state, newest.ended_ms) == (ids(4), JobState.RUNNING, None)
    assert (oldest.state, oldest.options, oldest.outcome, oldest.principal) == (
        JobState.DONE,
        {"a": 1},
        {"files": 3},
        "alice",
    )
    assert jobs.list(1, 10, newest.sequence) == [oldest]
    assert jobs.find(ids(9)) is None


def test_job_whose_lease_ran_out_is_abandoned_by_the_next_one(stores: Stores) -> None:
    jobs = MaintenanceJobs(stores.database)
    assert begin(jobs, 1, lease_ms=-1)

    assert begin(jobs, 2)

    first = jobs.find(ids(1))
    assert first is not None
    assert (first.state, first.ended_ms is None) == (JobState.ABANDONED, False)
    assert not jobs.hold(ids(1), LEASE_MS)


def test_job_whose_lease_is_from_before_the_clock_was_set_back_is_abandoned(stores: Stores) -> None:
    jobs = MaintenanceJobs(stores.database)
    assert begin(jobs, 1)
    assert jobs.hold(ids(1), LONGEST_LEASE_MS)
    assert not begin(jobs, 2)

    assert jobs.hold(ids(1), 100 * LONGEST_LEASE_MS)

    assert begin(jobs, 2)
    first = jobs.find(ids(1))
    assert first is not None
    assert first.state is JobState.ABANDONED


def test_jobs_that_are_done_often_do_not_hide_others(stores: Stores) -> None:
    jobs = MaintenanceJobs(stores.database)
    for number in range(6):
        job = "remove-orphan-files" if number == 0 else "expire-snapshots"
        assert jobs.begin(ids(number), 1, job, "alice", {}, LEASE_MS)
        jobs.end(ids(number), JobState.DONE, {})
    assert begin(jobs, 7, pointer_id=2)
    last = jobs.list(1, 1)[0].ended_ms
    assert last is not None

    assert [job.id for job in jobs.newest(1, 2, last)] == [ids(5), ids(4), ids(0)]
    assert [job.id for job in jobs.newest(1, 1, -1)] == [ids(number) for number in (5, 4, 3, 2, 1, 0)]


def test_of_many_that_begin_at_once_one_holds_the_table(stores: Stores) -> None:
    jobs = MaintenanceJobs(stores.database)

    outcomes = run_together([partial(begin, jobs, number) for number in range(8)])

    assert sorted(outcomes) == [False] * 7 + [True]


def test_old_rows_go_but_not_those_that_run(stores: Stores) -> None:
    jobs = MaintenanceJobs(stores.database)
    begin(jobs, 1)
    jobs.end(ids(1), JobState.NOTHING, {})
    begin(jobs, 2)

    assert jobs.delete(LEASE_MS) == 0
    assert jobs.delete(-1000) == 1
    assert [job.id for job in jobs.list(1, 10)] == [ids(2)]


def test_old_rows_of_jobs_go_whose_lease_ran_out(stores: Stores) -> None:
    """Where the table was dropped no other job follows."""
    jobs = MaintenanceJobs(stores.database)
    begin(jobs, 1, lease_ms=-1)

    assert jobs.delete(LEASE_MS) == 0
    assert jobs.delete(-1000) == 1
    assert jobs.list(1, 10) == []
