"""F24: a rewrite that is larger than a day's budget is done in parts, by real Spark: rows stay what they are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from app.client.catalog import RemoteCatalog
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.jobs import Job, JobState
from app.maintenance.assignments import Ending
from app.maintenance.maintainer import Maintainer
from app.maintenance.spark_jobs import SparkJobs
from app.maintenance.verification import Verification
from tests.servers.spark import Sql

pytestmark = pytest.mark.spark

SMALL_FILES = 100


@pytest.fixture
def catalog(sqlite_server: str) -> Iterator[RemoteCatalog]:
    with RemoteCatalog(sqlite_server) as connected:
        yield connected


@pytest.fixture
def worker(spark: SparkSession, sqlite_server: str) -> SparkJobs:
    return SparkJobs(spark.newSession, sqlite_server, verify=Verification.CHECKSUMS)


def files_of(sql: Sql, table: str) -> int:
    sql(f"REFRESH TABLE {table}")
    number: int = sql.one(f"SELECT count(*) FROM our.{table}.files WHERE content = 0")
    return number


def by_policy(sql: Sql, catalog: RemoteCatalog, worker: SparkJobs, table: str, budget: int) -> list[Ending]:
    """Have done what a policy with so many bytes a day says, without a pause between jobs."""
    settings = {"rewrite-data-files": "on", "wait-after-success-ms": "0", "daily-bytes": str(budget)}
    named_so = ", ".join(f"'icetower.maintenance.{name}' = '{value}'" for name, value in settings.items())
    sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({named_so})")
    identifier = TableIdentifier(Namespace((sql.namespace,)), table)
    found = Maintainer(catalog, {Job.REWRITE_DATA_FILES: worker}).maintain(identifier)
    return [report.ending for report in found.jobs]


def test_f24_rewrite_larger_than_the_budget_is_done_in_parts(
    sql: Sql, catalog: RemoteCatalog, worker: SparkJobs
) -> None:
    sql(
        "CREATE TABLE parts (id int, word string) USING iceberg TBLPROPERTIES ('write.distribution-mode' = 'none')"
    )
    sql(
        f"INSERT INTO parts SELECT /*+ REPARTITION({SMALL_FILES}) */ CAST(id AS int), repeat('w', CAST(id AS int))"
        f" FROM range({SMALL_FILES * 2})"
    )
    before = sorted(sql("SELECT id, word FROM parts"))
    ((number, size),) = sql("SELECT count(*), sum(file_size_in_bytes) FROM our.parts.files")
    budget, spent, left = size * 2 // 5, 0, number

    for day in (1, 2):
        # As if what was spent were of yesterday.
        (ending,) = by_policy(sql, catalog, worker, "parts", day * budget)
        assert ending.state is JobState.DONE
        assert ending.message == ""
        spent += ending.figures["rewritten-bytes"]
        assert 0 < spent <= day * budget
        assert by_policy(sql, catalog, worker, "parts", day * budget) == []
        fewer = files_of(sql, "parts")
        assert fewer <= left - number // 5
        left = fewer
    (ending,) = by_policy(sql, catalog, worker, "parts", 10 * size)

    assert ending.state is JobState.DONE
    assert files_of(sql, "parts") == 1
    assert sorted(sql("SELECT id, word FROM parts")) == before


@pytest.mark.nightly
def test_f24_data_files_with_deletes_are_rewritten_as_far_as_the_budget_goes(
    sql: Sql, catalog: RemoteCatalog, worker: SparkJobs
) -> None:
    sql(
        "CREATE TABLE parts (id int, word string) USING iceberg TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')"
    )
    for start in range(10):
        sql(f"INSERT INTO parts SELECT CAST(id AS int), 'w' FROM range({start * 10}, {start * 10 + 10})")
    sql("DELETE FROM parts WHERE id % 2 = 0")
    before = sorted(sql("SELECT id, word FROM parts"))
    largest = sql.one("SELECT max(file_size_in_bytes) FROM our.parts.files WHERE content = 0")
    was = files_of(sql, "parts")

    (ending,) = by_policy(sql, catalog, worker, "parts", 4 * largest)

    assert ending.state is JobState.DONE
    assert 0 < ending.figures["rewritten-bytes"] <= 4 * largest
    assert files_of(sql, "parts") < was
    (ending,) = by_policy(sql, catalog, worker, "parts", 100 * largest)
    assert ending.state is JobState.DONE
    sql("REFRESH TABLE parts")
    assert sorted(sql("SELECT id, word FROM parts")) == before


@pytest.mark.nightly
def test_f24_position_deletes_below_a_size_are_rewritten(
    sql: Sql, catalog: RemoteCatalog, worker: SparkJobs
) -> None:
    sql(
        "CREATE TABLE parts (id int) USING iceberg TBLPROPERTIES ('format-version' = '2',"
        " 'write.delete.mode' = 'merge-on-read', 'write.delete.granularity' = 'partition',"
        " 'icetower.maintenance.rewrite-position-deletes' = 'on',"
        " 'icetower.maintenance.rewrite-position-deletes.min-files' = '3')"
    )
    sql("INSERT INTO parts SELECT /*+ COALESCE(1) */ CAST(id AS int) FROM range(9000)")
    for number in range(8):
        sql(f"DELETE FROM parts WHERE id BETWEEN {number * 1000} AND {number * 1000 + number * 90 + 10}")
    before = sorted(sql("SELECT id FROM parts"))
    sizes = sorted(sql.column("SELECT file_size_in_bytes FROM our.parts.files WHERE content = 1"))
    budget = sum(sizes) * 3 // 4
    sql(f"ALTER TABLE parts SET TBLPROPERTIES ('icetower.maintenance.daily-bytes' = '{budget}')")
    identifier = TableIdentifier(Namespace((sql.namespace,)), "parts")
    assert len(set(sizes)) > 4

    (report,) = Maintainer(catalog, {Job.REWRITE_POSITION_DELETES: worker}).maintain(identifier).jobs

    assert report.ending.state is JobState.DONE
    assert 0 < report.ending.figures["rewritten-bytes"] <= budget
    sql("REFRESH TABLE parts")
    assert 0 < sql.one("SELECT count(*) FROM our.parts.files WHERE content = 1") < len(sizes)
    assert sorted(sql("SELECT id FROM parts")) == before
