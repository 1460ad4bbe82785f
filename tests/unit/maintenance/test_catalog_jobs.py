"""Jobs that the server does: what comes of them, and of refusals."""

from __future__ import annotations

import pytest

from app.client.catalog import RemoteCatalog
from app.client.http.failures import AnswerLost, CallFailed, CatalogRefused
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.jobs import Job, JobState
from app.maintenance.assignments import Assignment
from app.maintenance.catalog_jobs import CatalogJobs


@pytest.mark.parametrize(
    ("job", "state"),
    [
        (Job.REWRITE_MANIFESTS, JobState.NOTHING),
        (Job.REMOVE_DANGLING_DELETES, JobState.NOTHING),
        (Job.EXPIRE_SNAPSHOTS, JobState.NOTHING),
        (Job.REMOVE_ORPHAN_FILES, JobState.NOTHING),
        (Job.PARTITION_STATISTICS, JobState.REFUSED),
    ],
)
def test_each_job_is_done_by_the_server(
    server_url: str, table: TableIdentifier, job: Job, state: JobState
) -> None:
    worker = CatalogJobs(lambda job_id: RemoteCatalog(server_url, job=job_id))

    ending = worker.carry_out(Assignment(table, job, "a" * 32))

    assert ending.state is state
    assert bool(ending.message) is (state is JobState.REFUSED)


def test_manifests_are_clustered_by_the_field_of_the_policy(server_url: str, table: TableIdentifier) -> None:
    worker = CatalogJobs(lambda job_id: RemoteCatalog(server_url, job=job_id))

    ending = worker.carry_out(Assignment(table, Job.REWRITE_MANIFESTS, "a" * 32, {"cluster-by": "none"}))

    assert ending.state is JobState.REFUSED
    assert "'none'" in ending.message


@pytest.mark.parametrize(
    ("failure", "state"),
    [
        (CatalogRefused(409, "CommitFailedException", "lost"), JobState.LOST),
        (CatalogRefused(404, "NotFoundException", "no file"), JobState.DAMAGED),
        (CatalogRefused(404, "NoSuchTableException", "no table"), JobState.FAILED),
        (CatalogRefused(400, "BadRequestException", "no"), JobState.REFUSED),
        (CatalogRefused(500, "CommitStateUnknownException", "?"), JobState.UNKNOWN),
        (CatalogRefused(504, "GatewayTimeoutException", "?"), JobState.UNKNOWN),
        (CatalogRefused(500, "InternalServerError", "!"), JobState.FAILED),
        (CatalogRefused(503, "ServiceUnavailableException", "later"), JobState.FAILED),
        (AnswerLost("POST", "http://x", "gone"), JobState.UNKNOWN),
    ],
)
def test_refusals_become_endings(table: TableIdentifier, failure: CallFailed, state: JobState) -> None:
    def refuse(_job_id: str) -> RemoteCatalog:
        raise failure

    ending = CatalogJobs(refuse).carry_out(Assignment(table, Job.EXPIRE_SNAPSHOTS, "a" * 32))

    assert (ending.state, ending.message) == (state, str(failure))
