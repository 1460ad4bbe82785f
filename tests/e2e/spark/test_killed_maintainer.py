"""F24: a maintainer that is killed at any point of a rewrite leaves nothing wrong, and the next one works."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from app.client.catalog import RemoteCatalog
from app.client.http.failures import CatalogRefused
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.jobs import Job, JobState
from app.maintenance.catalog_jobs import CatalogJobs
from app.maintenance.maintainer import Maintainer
from app.maintenance.spark_jobs import SparkJobs
from app.maintenance.verification import Verification
from tests.builders.folders import files_below
from tests.servers.maintainer import maintainer_process
from tests.servers.spark import Sql, nightly, path_of

pytestmark = [pytest.mark.spark, pytest.mark.slow]

JOB = Job.REWRITE_DATA_FILES
FILES = 8


def wait_for(what: Callable[[], bool], seconds: float = 200) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not come so far"
        time.sleep(0.01)


def last_job(catalog: RemoteCatalog, table: TableIdentifier) -> dict[str, object]:
    found = catalog.maintenance.jobs(table)
    return found[0] if found else {}


@pytest.mark.parametrize("point", ["files written", nightly("job begun"), nightly("commit landed")])
def test_f24_killed_maintainer_leaves_nothing_wrong(
    spark: SparkSession, sql: Sql, sqlite_server: str, tmp_path: Path, point: str
) -> None:
    sql("CREATE TABLE shaken (id int, word string) USING iceberg PARTITIONED BY (bucket(4, id))")
    for start in range(FILES):
        sql(f"INSERT INTO shaken SELECT CAST(id * {FILES} + {start} AS int), 'w' FROM range(200)")
    before = sorted(sql("SELECT * FROM shaken"))
    table = TableIdentifier(Namespace((sql.namespace,)), "shaken")
    with RemoteCatalog(sqlite_server) as catalog:
        data = path_of(catalog.tables.load(table).metadata["location"]) / "data"
        files = set(data.rglob("*.parquet"))
        points: dict[str, Callable[[], bool]] = {
            "job begun": lambda: last_job(catalog, table).get("state") == "running",
            "files written": lambda: set(data.rglob("*.parquet")) > files,
            "commit landed": lambda: len(catalog.tables.load(table).metadata["snapshots"]) > FILES,
        }

        with maintainer_process(sqlite_server, table, tmp_path / "maintainer.log"):
            wait_for(points[point])
        killed = last_job(catalog, table)

        sql("REFRESH TABLE shaken")
        assert sorted(sql("SELECT * FROM shaken")) == before
        # On a busy machine its lease may have run out by the time that we ask.
        assert killed["state"] in ("running", "abandoned", "done")
        again = Maintainer(
            catalog, {JOB: SparkJobs(spark.newSession, sqlite_server, verify=Verification.CHECKSUMS)}, [JOB]
        )
        wait_for(lambda: not _is_held(catalog, table))
        reports = again.maintain(table).jobs
        assert all(report.ending.state in (JobState.DONE, JobState.NOTHING) for report in reports), reports
        (noted,) = [job for job in catalog.maintenance.jobs(table) if job["id"] == killed["id"]]
        assert noted["state"] in ("abandoned", "running", "done")
        sql("REFRESH TABLE shaken")
        assert sorted(sql("SELECT * FROM shaken")) == before
        assert (
            sql.one("SELECT max(c) FROM (SELECT count(*) AS c FROM our.shaken.files GROUP BY partition)") == 1
        )


def _is_held(catalog: RemoteCatalog, table: TableIdentifier, job: Job = JOB) -> bool:
    return "running" in catalog.maintenance.plan(table, [job])


@pytest.mark.parametrize("job", [nightly(job) for job in Job if job is not JOB])
@pytest.mark.parametrize("point", ["job begun", "files written", "job ended"])
def test_f24_killed_maintainer_of_any_job_leaves_nothing_wrong(
    spark: SparkSession, sql: Sql, sqlite_server: str, tmp_path: Path, point: str, job: Job
) -> None:
    """Files are written by Spark or by the server; a job may end before the kill, which is fine, too."""
    sql(
        "CREATE TABLE shaken (id int, word string) USING iceberg PARTITIONED BY (bucket(2, id)) TBLPROPERTIES"
        " ('format-version' = '2', 'write.delete.mode' = 'merge-on-read', 'write.delete.granularity' = 'partition',"
        " 'history.expire.max-snapshot-age-ms' = '1')"
    )
    for start in range(FILES):
        sql(f"INSERT INTO shaken SELECT CAST(id * {FILES} + {start} AS int), 'w' FROM range(200)")
    for start in range(3):
        sql(f"DELETE FROM shaken WHERE id % 500 = {start}")
    before = sorted(sql("SELECT * FROM shaken"))
    table = TableIdentifier(Namespace((sql.namespace,)), "shaken")
    with RemoteCatalog(sqlite_server) as catalog:
        place = path_of(catalog.tables.load(table).metadata["location"])
        files = files_below(place)
        points: dict[str, Callable[[], bool]] = {
            "job begun": lambda: bool(last_job(catalog, table)),
            "files written": lambda: files_below(place) > files or _is_over(catalog, table),
            "job ended": lambda: _is_over(catalog, table),
        }

        with maintainer_process(sqlite_server, table, tmp_path / "maintainer.log", job) as process:
            wait_for(lambda: points[point]() or process.poll() is not None)

        sql("REFRESH TABLE shaken")
        assert sorted(sql("SELECT * FROM shaken")) == before
        wait_for(lambda: not _is_held(catalog, table, job))
        in_catalog = CatalogJobs(lambda job_id: RemoteCatalog(sqlite_server, job=job_id))
        on_spark = SparkJobs(spark.newSession, sqlite_server, verify=Verification.CHECKSUMS)
        again = Maintainer(catalog, {job: on_spark if job.needs_spark else in_catalog}, [job])
        reports = again.maintain(table).jobs
        assert all(report.ending.state in (JobState.DONE, JobState.NOTHING) for report in reports), reports
        sql("REFRESH TABLE shaken")
        assert sorted(sql("SELECT * FROM shaken")) == before


def _is_over(catalog: RemoteCatalog, table: TableIdentifier) -> bool:
    return last_job(catalog, table).get("state", "running") != "running"


def test_f24_table_of_a_maintainer_at_work_is_held(sql: Sql, sqlite_server: str) -> None:
    """What the killed one's lease keeps away for a while: a second maintainer."""
    sql("CREATE TABLE held (id int) USING iceberg")
    table = TableIdentifier(Namespace((sql.namespace,)), "held")
    with RemoteCatalog(sqlite_server) as catalog:
        catalog.maintenance.begin_job(table, JOB, "0" * 31 + "1", {}, 60_000)
        with pytest.raises(CatalogRefused, match=r"rewrite-data-files .* is running"):
            catalog.maintenance.begin_job(table, JOB, "0" * 31 + "2", {}, 60_000)
