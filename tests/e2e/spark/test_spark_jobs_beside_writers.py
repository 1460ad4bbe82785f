"""F24: a rewrite beside appends, MERGEs and another rewrite: no row is lost, and with rebases neither side fails."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from app.client.catalog import RemoteCatalog
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.jobs import Job, JobState
from app.maintenance.assignments import Assignment, Ending
from app.maintenance.spark_jobs import SparkJobs
from app.maintenance.verification import Verification
from tests.servers.spark import Sql, add_catalog, nightly, path_of

pytestmark = pytest.mark.spark

MERGE_ON_READ = "'write.merge.mode' = 'merge-on-read', 'write.delete.mode' = 'merge-on-read'"
ROUNDS = 4
FINE = (JobState.DONE, JobState.NOTHING)


@pytest.fixture
def sessions(spark: SparkSession, sql: Sql, sqlite_server: str) -> Callable[[str], Sql]:
    """Open a session with a catalog client of its own."""

    def session_of(name: str) -> Sql:
        session = spark.newSession()
        add_catalog(session, name, sqlite_server, cache_enabled="false")
        session.sql(f"USE {name}.{sql.namespace}")
        return Sql(session, name, sql.namespace)

    return session_of


@pytest.fixture
def worker(spark: SparkSession, sqlite_server: str) -> SparkJobs:
    return SparkJobs(spark.newSession, sqlite_server, verify=Verification.CHECKSUMS)


def race(*works: Callable[[], object]) -> None:
    """Let all go at the same moment, and raise what any of them raised."""
    together = threading.Barrier(len(works))

    def run(work: Callable[[], object]) -> object:
        together.wait()
        return work()

    with ThreadPoolExecutor(len(works)) as threads:
        list(threads.map(run, works))


def rewrites(
    worker: SparkJobs, sql: Sql, table: str, endings: list[Ending], **options: str
) -> Callable[[], object]:
    """Rewrite again and again; what a maintainer would do after each conflict."""

    def work() -> None:
        for _ in range(ROUNDS):
            assignment = Assignment(
                TableIdentifier(Namespace((sql.namespace,)), table),
                Job.REWRITE_DATA_FILES,
                uuid4().hex,
                {"min-input-files": "2", **{name.replace("_", "-"): text for name, text in options.items()}},
            )
            endings.append(worker.carry_out(assignment))

    return work


def trying_again(session: Sql, statement: str) -> None:
    """Run a statement until it is not refused for a conflict, as writers do."""
    for _ in range(30):
        try:
            session(statement)
        except (Py4JJavaError, PySparkException) as refused:
            text = str(refused)
            if "ValidationException" not in text and "CommitFailedException" not in text:
                raise
        else:
            return
    pytest.fail(f"never landed: {statement}")


def make_table(sql: Sql, properties: str) -> None:
    sql(
        "CREATE TABLE busy (id int, part string, hits int) USING iceberg PARTITIONED BY (part)"
        f" TBLPROPERTIES ({MERGE_ON_READ}, {properties})"
    )
    for start in range(0, 80, 10):
        sql(
            "INSERT INTO busy SELECT CAST(id AS int), elt(id % 4 + 1, 'hot', 'cold', 'old', 'new'), 0"
            f" FROM range({start}, {start + 10})"
        )


def due_rows(merged: range, appended: int) -> list[tuple[int, int]]:
    """Answer ids and hits after all merges and appends."""
    hits = dict.fromkeys(range(80), 0)
    for number in merged:
        hits[number] = ROUNDS
    return sorted([*hits.items(), *((1000 + number, 0) for number in range(appended))])


@pytest.mark.parametrize("version", [3, nightly(2)])
def test_f24_beside_any_writers_no_row_is_lost(
    sql: Sql, sessions: Callable[[str], Sql], worker: SparkJobs, version: int
) -> None:
    """The merges change rows of the very files that are rewritten: either side may have to try again."""
    make_table(sql, f"'format-version' = '{version}'")
    appending, merging = sessions("appending"), sessions("merging")
    first: list[Ending] = []
    second: list[Ending] = []

    def appends() -> None:
        for number in range(ROUNDS):
            trying_again(appending, f"INSERT INTO busy VALUES ({1000 + number}, 'hot', 0)")

    def merges() -> None:
        for _ in range(ROUNDS):
            trying_again(
                merging,
                "MERGE INTO busy b USING (SELECT explode(sequence(0, 19)) AS id) s ON b.id = s.id"
                " WHEN MATCHED THEN UPDATE SET hits = b.hits + 1",
            )

    race(appends, merges, rewrites(worker, sql, "busy", first), rewrites(worker, sql, "busy", second))

    sql("REFRESH TABLE busy")
    assert sorted(sql("SELECT id, hits FROM busy")) == due_rows(range(20), ROUNDS)
    states = {ending.state for ending in (*first, *second)}
    assert states <= {*FINE, JobState.LOST, JobState.FAILED}, [*first, *second]
    # Afterwards, with no one else at work, the table is put in order.
    last: list[Ending] = []
    rewrites(worker, sql, "busy", last, delete_file_threshold="1")()
    assert [ending.state for ending in last][-1] in FINE, last
    sql("REFRESH TABLE busy")
    assert sorted(sql("SELECT id, hits FROM busy")) == due_rows(range(20), ROUNDS)
    assert sql.one("SELECT count(*) FROM our.busy.data_files") == 4


def test_f24_with_rebases_neither_side_fails(
    sql: Sql, sessions: Callable[[str], Sql], worker: SparkJobs
) -> None:
    """No client tries a commit again; the merges and the rewrites are about different partitions."""
    make_table(sql, "'icetower.rebase' = 'conflict-free', 'commit.retry.num-retries' = '0'")
    appending = sessions("appending_once")
    cold: list[Ending] = []
    old: list[Ending] = []

    def appends() -> None:
        for number in range(ROUNDS):
            appending(f"INSERT INTO busy VALUES ({1000 + number}, 'hot', 0), ({2000 + number}, 'cold', 0)")

    race(
        appends,
        rewrites(worker, sql, "busy", cold, where="part = 'cold'"),
        rewrites(worker, sql, "busy", old, where="part = 'old'", rewrite_all="true"),
    )

    assert {ending.state for ending in (*cold, *old)} <= set(FINE), [*cold, *old]
    assert cold[0].state is JobState.DONE
    assert [ending.state for ending in old] == [JobState.DONE] * ROUNDS
    sql("REFRESH TABLE busy")
    appended = [1000 + number for number in range(ROUNDS)] + [2000 + number for number in range(ROUNDS)]
    assert sorted(sql.column("SELECT id FROM busy")) == sorted([*range(80), *appended])


def test_f24_with_rebases_merges_of_another_partition_do_not_fail_either(
    sql: Sql, sessions: Callable[[str], Sql], worker: SparkJobs
) -> None:
    make_table(
        sql,
        "'icetower.rebase' = 'conflict-free', 'commit.retry.num-retries' = '0',"
        " 'write.merge.isolation-level' = 'snapshot'",
    )
    merging = sessions("merging_once")
    old: list[Ending] = []

    def merges() -> None:
        for _ in range(ROUNDS):
            merging(
                "MERGE INTO busy b USING (SELECT explode(sequence(0, 19)) AS id) s"
                " ON b.id = s.id AND b.part = 'hot' WHEN MATCHED THEN UPDATE SET hits = b.hits + 1"
            )

    race(merges, rewrites(worker, sql, "busy", old, where="part = 'old'", rewrite_all="true"))

    assert [ending.state for ending in old] == [JobState.DONE] * ROUNDS, old
    sql("REFRESH TABLE busy")
    assert sorted(sql("SELECT id, hits FROM busy")) == due_rows(range(0, 20, 4), 0)


@pytest.mark.parametrize("partial", ["true", nightly("false")])
def test_f24_rewrite_that_loses_to_a_delete_says_so(
    sql: Sql, sessions: Callable[[str], Sql], worker: SparkJobs, sqlite_server: str, partial: str
) -> None:
    """With partial progress Spark itself answers as if there had been nothing to do."""
    sql(
        f"CREATE TABLE contested (id int) USING iceberg TBLPROPERTIES ('format-version' = '2', {MERGE_ON_READ})"
    )
    sql("INSERT INTO contested SELECT /*+ REPARTITION(100) */ CAST(id AS int) FROM range(60000)")
    deleting = sessions(f"deleting_{partial}")
    deleting("SELECT count(*) FROM contested")
    table = TableIdentifier(Namespace((sql.namespace,)), "contested")
    with RemoteCatalog(sqlite_server) as catalog:
        data = path_of(catalog.tables.load(table).metadata["location"]) / "data"
    files = set(data.rglob("*.parquet"))
    # One file is one group, and groups are rewritten one after another.
    options = {
        "rewrite-all": "true",
        "max-file-group-size-bytes": "1000",
        "max-concurrent-file-group-rewrites": "1",
        "partial-progress.enabled": partial,
        "partial-progress.max-commits": "1",
    }
    with ThreadPoolExecutor(1) as threads:
        job = threads.submit(
            worker.carry_out, Assignment(table, Job.REWRITE_DATA_FILES, uuid4().hex, options)
        )
        wait_for(lambda: set(data.rglob("*.parquet")) > files)
        deleting("DELETE FROM contested WHERE id % 3 = 0")
        ending = job.result()

    assert ending.state is JobState.LOST, ending
    sql("REFRESH TABLE contested")
    assert sql.column("SELECT id FROM contested ORDER BY id") == [n for n in range(60000) if n % 3]
    assert sql.one("SELECT count(*) FROM our.contested.data_files") == len(files)


def wait_for(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not what():
        assert time.monotonic() < deadline, "it did not come so far"
        time.sleep(0.01)
