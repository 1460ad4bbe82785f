"""What a plan of upkeep knows of the jobs so far."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.upkeep.jobs import begin_job, end_job
from app.catalog.upkeep.upkeep_plans import table_upkeep
from app.engine.change.updates import SetProperties
from app.engine.model.ids import Location
from app.engine.model.jobs import Job, JobState
from app.fileio.memory import MemoryFiles
from tests.builders.catalogs import catalog_on
from tests.builders.tables import DEPARTURES, commit_to, load_table, table_in

RAN_OUT_MS = -(10**12)
SET_BACK_MS = 10**12
"""The lease of a job that was begun before the database's clock was set back by years."""


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = catalog_on(f"sqlite:///{tmp_path}/icetower.db", MemoryFiles())
    table_in(catalog)
    return catalog


def do(catalog: Catalog, number: int, job: Job, state: JobState, message: str = "") -> None:
    begin_job(catalog, DEPARTURES, job, {}, 60_000, f"{number:032x}")
    end_job(catalog, DEPARTURES, f"{number:032x}", state, {"message": message})


def test_jobs_that_are_done_often_hide_none_that_is_done_seldom(catalog: Catalog) -> None:
    do(catalog, 0, Job.TABLE_STATISTICS, JobState.DONE)
    for number in range(1, 30):
        do(catalog, number, Job.EXPIRE_SNAPSHOTS, JobState.DONE)

    condition = table_upkeep(catalog, DEPARTURES).condition

    assert condition.history_of(Job.TABLE_STATISTICS).last_success_ms is not None


@pytest.mark.parametrize("lease_ms", [RAN_OUT_MS, SET_BACK_MS])
def test_job_whose_maintainer_died_has_failed_and_counts_with_what_was_expected(
    catalog: Catalog, lease_ms: int
) -> None:
    begin_job(catalog, DEPARTURES, Job.REWRITE_DATA_FILES, {}, lease_ms, rewritten_bytes=7)

    condition = table_upkeep(catalog, DEPARTURES).condition
    assert condition.running is None
    assert condition.history_of(Job.REWRITE_DATA_FILES).failures == 1
    # The next one notes it, and then it ends at a time that is known.
    begin_job(catalog, DEPARTURES, Job.REWRITE_DATA_FILES, {}, 60_000, "a" * 32, rewritten_bytes=5)
    condition = table_upkeep(catalog, DEPARTURES).condition
    assert (condition.running, condition.rewritten_bytes) == (Job.REWRITE_DATA_FILES, 7)
    end_job(catalog, DEPARTURES, "a" * 32, JobState.DONE, {"rewritten-bytes": 1})
    assert table_upkeep(catalog, DEPARTURES).condition.rewritten_bytes == 8


def test_damage_lasts_until_a_job_succeeds(catalog: Catalog) -> None:
    do(catalog, 1, Job.REWRITE_DATA_FILES, JobState.DAMAGED, "a is gone")
    for number, state in enumerate((JobState.FAILED, JobState.LOST, JobState.REFUSED, JobState.UNKNOWN), 2):
        do(catalog, number, Job.REWRITE_DATA_FILES, state)
    begin_job(catalog, DEPARTURES, Job.REWRITE_DATA_FILES, {}, RAN_OUT_MS)

    assert table_upkeep(catalog, DEPARTURES).condition.damage == "a is gone"
    do(catalog, 9, Job.REWRITE_MANIFESTS, JobState.NOTHING)
    assert table_upkeep(catalog, DEPARTURES).condition.damage is None


def test_what_was_done_in_part_is_known(catalog: Catalog) -> None:
    begin_job(catalog, DEPARTURES, Job.REWRITE_MANIFESTS, {"max-bytes": 9}, 60_000, "b" * 32)
    end_job(catalog, DEPARTURES, "b" * 32, JobState.DONE, {})
    assert table_upkeep(catalog, DEPARTURES).condition.history_of(Job.REWRITE_MANIFESTS).did_a_part

    do(catalog, 3, Job.REWRITE_MANIFESTS, JobState.NOTHING)
    assert not table_upkeep(catalog, DEPARTURES).condition.history_of(Job.REWRITE_MANIFESTS).did_a_part


def test_setting_of_retention_that_makes_no_sense_is_said(catalog: Catalog) -> None:
    metadata = load_table(catalog).metadata
    document = json.loads(metadata.to_json()) | {"table-uuid": "11111111-0000-4000-8000-000000000000"}
    document["properties"] = {
        "history.expire.max-snapshot-age-ms": "soon",
        "icetower.maintenance": "recommended",
    }
    where = Location(f"{metadata.location}/metadata/00009-x.metadata.json")
    catalog.files.write_new(where, json.dumps(document).encode())
    named.drop(catalog, TABLES, DEPARTURES)
    named.register(catalog, TABLES, DEPARTURES, where)

    (why,) = [
        left.reason
        for left in table_upkeep(catalog, DEPARTURES).plan.left
        if left.job is Job.EXPIRE_SNAPSHOTS
    ]

    assert why == "Table property history.expire.max-snapshot-age-ms must be a whole number, found 'soon'"


@pytest.mark.parametrize("wanted", [(), (Job.PARTITION_STATISTICS, Job.REWRITE_MANIFESTS)])
def test_table_that_was_moved_to_another_catalog_is_left_to_that_one(
    catalog: Catalog, wanted: tuple[Job, ...]
) -> None:
    """A commit here would be one that the other catalog does not have."""
    commit_to(catalog, SetProperties(updates={"icetower.moved-to": "http://new", "gc.enabled": "false"}))

    plan = table_upkeep(catalog, DEPARTURES, wanted).plan

    assert plan.jobs == ()
    assert {item.reason for item in plan.left} == {"it was moved to http://new, which looks after it"}
    assert {item.job for item in plan.left} == set(Job)
