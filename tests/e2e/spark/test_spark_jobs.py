"""F24: jobs that move data, carried out by a maintainer through real Spark: rows stay what they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from app.client.catalog import RemoteCatalog
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.jobs import Job, JobState
from app.maintenance.assignments import Assignment, Ending
from app.maintenance.catalog_jobs import CatalogJobs
from app.maintenance.maintainer import Maintainer
from app.maintenance.spark_jobs import SparkJobs
from app.maintenance.verification import Verification
from tests.builders.java_deletes import add_equality_deletes
from tests.servers.spark import Sql, nightly, path_of

pytestmark = pytest.mark.spark

DATA, DELETES, STATISTICS = Job.REWRITE_DATA_FILES, Job.REWRITE_POSITION_DELETES, Job.TABLE_STATISTICS
MERGE_ON_READ = ", ".join(
    f"'write.{change}.mode' = 'merge-on-read'" for change in ("delete", "update", "merge")
)
SMALL_FILES = 300


@pytest.fixture
def catalog(sqlite_server: str) -> Iterator[RemoteCatalog]:
    with RemoteCatalog(sqlite_server) as connected:
        yield connected


@pytest.fixture
def worker(spark: SparkSession, sqlite_server: str) -> SparkJobs:
    return SparkJobs(spark.newSession, sqlite_server, verify=Verification.CHECKSUMS)


def named(sql: Sql, table: str) -> TableIdentifier:
    return TableIdentifier(Namespace((sql.namespace,)), table)


def maintain(catalog: RemoteCatalog, worker: SparkJobs, table: TableIdentifier, job: Job) -> Ending:
    """Have one job done, whatever the policy says; answer how it ended."""
    (report,) = Maintainer(catalog, {job: worker}, [job]).maintain(table).jobs
    return report.ending


def do(worker: SparkJobs, table: TableIdentifier, **options: str) -> Ending:
    """Have data files rewritten with options of one's own, without a maintainer."""
    given = {name.replace("_", "-"): value for name, value in options.items()}
    return worker.carry_out(Assignment(table, DATA, uuid4().hex, given))


def rows_of(sql: Sql, table: str, more: str = "") -> list[tuple[Any, ...]]:
    return sorted(sql(f"SELECT *{more} FROM {table}"))


def files_of(sql: Sql, table: str) -> dict[int, int]:
    """Answer how many files there are of each content: 0 data, 1 position deletes, 2 equality deletes."""
    sql(f"REFRESH TABLE {table}")
    return dict(sql(f"SELECT content, count(*) FROM our.{table}.files GROUP BY content"))


def make_small_files(sql: Sql, table: str, files: int, properties: str = "'format-version' = '2'") -> None:
    """A table with one file for each row, and values that are easily mixed up."""
    sql(
        f"CREATE TABLE {table} (id int, word string, tags map<string, int>, parts array<double>)"
        f" USING iceberg TBLPROPERTIES ({properties}, 'write.distribution-mode' = 'none')"
    )
    sql(
        f"INSERT INTO {table} SELECT /*+ REPARTITION({files}) */ CAST(id AS int), concat('it\\'s ', id),"
        f" map('a', CAST(id AS int)), array(id / 3, double('NaN')) FROM range({files})"
    )


def test_f24_small_files_become_one_and_rows_and_figures_are_right(
    sql: Sql, catalog: RemoteCatalog, worker: SparkJobs
) -> None:
    make_small_files(sql, "small", SMALL_FILES)
    table, before = named(sql, "small"), sorted(sql("SELECT id, word FROM small"))
    ((number, size),) = sql("SELECT count(*), sum(file_size_in_bytes) FROM our.small.files")
    assert number > SMALL_FILES / 2

    ending = maintain(catalog, worker, table, DATA)

    assert (ending.state, ending.message) == (JobState.DONE, "")
    assert ending.figures == {
        "rewritten-data-files-count": number,
        "added-data-files-count": 1,
        "rewritten-bytes": size,
        "failed-data-files-count": 0,
        "removed-delete-files-count": 0,
    }
    assert files_of(sql, "small") == {0: 1}
    assert sorted(sql("SELECT id, word FROM small")) == before
    (job,) = catalog.maintenance.jobs(table)
    (snapshot_id,) = job["outcome"]["snapshot-ids"]
    assert sql.one("SELECT snapshot_id FROM our.small.refs WHERE name = 'main'") == snapshot_id
    (receipt,) = catalog.receipts.find(job=job["id"])
    assert (receipt["outcome"], receipt["changes"][0]["snapshot-ids"]) == ("landed", [snapshot_id])
    event = catalog.history.history(table).events[0]
    assert event["job"] == job["id"]


def test_f24_nothing_to_do_is_no_failure(sql: Sql, worker: SparkJobs) -> None:
    make_small_files(sql, "one", 1)
    sql("CREATE TABLE none (id int) USING iceberg")

    assert do(worker, named(sql, "one"), min_input_files="2").state is JobState.NOTHING
    for job in (DATA, DELETES, STATISTICS):
        ending = worker.carry_out(Assignment(named(sql, "none"), job, uuid4().hex, {}))
        assert ending.state is JobState.NOTHING, job


@pytest.mark.parametrize(
    "name",
    [
        'it\'s "quoted"',
        "${spark.app.name}",
        "数据表",
        *(nightly(name) for name in ("we.ird", "back`tick", "a  b", "back\\slash\\n")),
    ],
)
def test_f24_table_of_any_name_is_rewritten(
    sql: Sql, catalog: RemoteCatalog, worker: SparkJobs, name: str
) -> None:
    namespace = Namespace((sql.namespace, name))
    catalog.namespaces.create(namespace)
    table = TableIdentifier(namespace, name)
    field = {"id": 1, "name": name, "type": "long", "required": False}
    catalog.tables.create(table, {"type": "struct", "schema-id": 0, "fields": [field]})
    sql("SET spark.sql.variable.substitute = false")
    try:
        quoted = ".".join(
            f"`{part.replace('`', '``')}`" for part in (sql.catalog, *namespace.levels, table.name)
        )
        for number in range(3):
            sql(f"INSERT INTO {quoted} VALUES ({number})")
        ending = maintain(catalog, worker, table, DATA)
        sql(f"REFRESH TABLE {quoted}")
        rows = sorted(sql(f"SELECT * FROM {quoted}"))
    finally:
        sql("RESET spark.sql.variable.substitute")

    assert (ending.state, ending.figures["added-data-files-count"]) == (JobState.DONE, 1), ending
    assert rows == [(0,), (1,), (2,)]


def test_f24_v2_with_position_and_equality_deletes_keeps_its_rows(
    sql: Sql, catalog: RemoteCatalog, worker: SparkJobs
) -> None:
    sql(
        "CREATE TABLE mixed (id int, word string) USING iceberg"
        f" TBLPROPERTIES ('format-version' = '2', {MERGE_ON_READ})"
    )
    for start in range(0, 60, 10):
        sql(f"INSERT INTO mixed SELECT CAST(id AS int), 'w' FROM range({start}, {start + 10})")
    sql("DELETE FROM mixed WHERE id % 7 = 0")
    add_equality_deletes(sql, "mixed", [1, 2, 33])
    sql("UPDATE mixed SET word = 'changed' WHERE id IN (4, 44)")
    sql("INSERT INTO mixed VALUES (1, 'again')")
    before = rows_of(sql, "mixed")
    assert files_of(sql, "mixed").keys() == {0, 1, 2}

    ending = maintain(catalog, worker, named(sql, "mixed"), DATA)

    assert ending.state is JobState.DONE, ending
    assert files_of(sql, "mixed")[0] == 1
    assert rows_of(sql, "mixed") == before
    assert (1, "again") in before


def test_f24_equality_deletes_are_seen_applied_and_removed_when_they_dangle(
    sql: Sql, catalog: RemoteCatalog, worker: SparkJobs, sqlite_server: str
) -> None:
    sql("CREATE TABLE streamed (id int, word string) USING iceberg TBLPROPERTIES ('format-version' = '2')")
    table = named(sql, "streamed")
    sql("INSERT INTO streamed SELECT CAST(id AS int), 'w' FROM range(20)")
    add_equality_deletes(sql, "streamed", list(range(5)))
    before = rows_of(sql, "streamed")
    assert len(before) == 15
    health = catalog.health.table(table)
    assert (health["files"]["equality-delete-files"], health["files"]["dangling-deletes"]) == (1, 0)
    assert "equality-deletes" in {finding["code"] for finding in health["findings"]}

    ending = maintain(catalog, worker, table, DATA)

    assert ending.state is JobState.DONE, ending
    assert rows_of(sql, "streamed") == before
    # Spark leaves the delete file behind, which applies to older data only.
    assert catalog.health.table(table)["files"]["dangling-deletes"] == 1
    dangling = Job.REMOVE_DANGLING_DELETES
    by_server = CatalogJobs(lambda job_id: RemoteCatalog(sqlite_server, job=job_id))
    report = Maintainer(catalog, {dangling: by_server}, [dangling]).maintain(table)
    assert [job.ending.state for job in report.jobs] == [JobState.DONE], report
    assert files_of(sql, "streamed") == {0: 1}
    assert rows_of(sql, "streamed") == before
    assert catalog.health.table(table)["files"]["equality-delete-files"] == 0


def test_f24_v3_keeps_row_ids_and_deletion_vectors_go(
    sql: Sql, catalog: RemoteCatalog, worker: SparkJobs
) -> None:
    sql(
        "CREATE TABLE lined (id int, word string) USING iceberg"
        f" TBLPROPERTIES ('format-version' = '3', {MERGE_ON_READ})"
    )
    for start in range(0, 60, 10):
        sql(f"INSERT INTO lined SELECT CAST(id AS int), 'w' FROM range({start}, {start + 10})")
    sql("DELETE FROM lined WHERE id % 4 = 0")
    sql("UPDATE lined SET word = 'changed' WHERE id IN (5, 45)")
    lineage = ", _row_id, _last_updated_sequence_number"
    before = rows_of(sql, "lined", lineage)
    vectors = files_of(sql, "lined")[1]

    ending = maintain(catalog, worker, named(sql, "lined"), DATA)

    assert ending.state is JobState.DONE, ending
    assert ending.figures["removed-delete-files-count"] == vectors > 0
    assert files_of(sql, "lined") == {0: 1}
    assert rows_of(sql, "lined", lineage) == before
    assert len({row[2] for row in before}) == len(before)


def test_f24_position_deletes_are_rewritten(sql: Sql, catalog: RemoteCatalog, worker: SparkJobs) -> None:
    sql(
        "CREATE TABLE holey (id int) USING iceberg"
        f" TBLPROPERTIES ('format-version' = '2', 'write.delete.granularity' = 'partition', {MERGE_ON_READ})"
    )
    sql("INSERT INTO holey SELECT /*+ REPARTITION(1) */ CAST(id AS int) FROM range(100)")
    for number in range(6):
        sql(f"DELETE FROM holey WHERE id = {number * 11}")
    before = rows_of(sql, "holey")

    ending = maintain(catalog, worker, named(sql, "holey"), DELETES)

    assert (ending.state, ending.message) == (JobState.DONE, "")
    assert ending.figures["rewritten-delete-files-count"] >= 2
    assert ending.figures["rewritten-bytes"] > ending.figures["added-bytes"] > 0
    assert files_of(sql, "holey") == {0: 1, 1: 1}
    assert rows_of(sql, "holey") == before


def test_f24_table_with_lists_is_left_since_spark_would_fail(
    sql: Sql, catalog: RemoteCatalog, worker: SparkJobs
) -> None:
    sql(
        "CREATE TABLE lists (id int, l array<int>) USING iceberg"
        f" TBLPROPERTIES ('format-version' = '2', {MERGE_ON_READ})"
    )
    sql("INSERT INTO lists SELECT CAST(id AS int), array(1) FROM range(100)")
    for number in range(3):
        sql(f"DELETE FROM lists WHERE id = {number}")

    report = Maintainer(catalog, {DELETES: worker}, [DELETES]).maintain(named(sql, "lists"))

    assert not report.jobs
    assert "#15632" in report.left[DELETES]


def test_f24_statistics_are_computed_and_noted_in_the_metadata(
    sql: Sql, catalog: RemoteCatalog, worker: SparkJobs
) -> None:
    make_small_files(sql, "counted", 10)
    table = named(sql, "counted")

    ending = maintain(catalog, worker, table, STATISTICS)

    assert ending.state is JobState.DONE, ending
    (statistics,) = catalog.tables.load(table).metadata["statistics"]
    assert statistics["statistics-path"] == ending.figures["statistics-file"]
    blobs = {blob["fields"][0]: blob["properties"]["ndv"] for blob in statistics["blob-metadata"]}
    assert blobs == {1: "10", 2: "10"}


def lower_bounds(sql: Sql, table: str, column: str) -> list[tuple[Any, Any]]:
    return sorted(
        (row[0], row[1])
        for row in sql(
            f"SELECT readable_metrics.{column}.lower_bound, readable_metrics.{column}.upper_bound"
            f" FROM our.{table}.data_files"
        )
    )


@pytest.mark.parametrize(
    ("options", "is_clustered"),
    [
        nightly({"strategy": "sort", "sort_order": "id DESC NULLS LAST"}, True),
        ({"strategy": "sort", "sort_order": "zorder(id, word)"}, True),
        nightly({"strategy": "sort"}, True),
        ({"strategy": "binpack"}, False),
    ],
)
def test_f24_sorted_and_clustered(
    sql: Sql, worker: SparkJobs, options: Mapping[str, str], *, is_clustered: bool
) -> None:
    sql(
        "CREATE TABLE heap (id int, word string) USING iceberg TBLPROPERTIES ('write.distribution-mode' = 'none')"
    )
    sql("ALTER TABLE heap WRITE LOCALLY ORDERED BY id")
    for start in range(4):
        sql(f"INSERT INTO heap SELECT CAST(id * 4 + {start} AS int), concat('w', id) FROM range(20000)")
    before = sorted(sql("SELECT id, word FROM heap"))
    size = sql.one("SELECT sum(file_size_in_bytes) FROM our.heap.files")

    ending = do(
        worker,
        named(sql, "heap"),
        rewrite_all="true",
        target_file_size_bytes=str(size // 4),
        **options,
    )

    assert ending.state is JobState.DONE, ending
    sql("REFRESH TABLE heap")
    assert sorted(sql("SELECT id, word FROM heap")) == before
    bounds = lower_bounds(sql, "heap", "id")
    if is_clustered:
        assert len(bounds) > 1
        # Each file holds a part of the values; in files that are not clustered each holds all of them.
        assert sum(upper - lower for lower, upper in bounds) / len(bounds) < 60_000, bounds


def test_f24_only_files_that_may_match_are_rewritten(sql: Sql, worker: SparkJobs) -> None:
    sql("CREATE TABLE parts (id int, part string) USING iceberg PARTITIONED BY (part)")
    for number in range(4):
        sql(f"INSERT INTO parts VALUES ({number}, 'it\\'s'), ({number}, 'hot')")

    ending = do(worker, named(sql, "parts"), min_input_files="2", where="part = 'it\\'s'")

    assert (ending.state, ending.figures["rewritten-data-files-count"]) == (JobState.DONE, 4), ending
    sql("REFRESH TABLE parts")
    assert dict(sql("SELECT partition.part, count(*) FROM our.parts.files GROUP BY partition.part")) == {
        "it's": 1,
        "hot": 4,
    }


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"min_input_filez": "2"}, "Cannot use options [min-input-filez]"),
        nightly({"min_input_files": "many"}, "many"),
        nightly({"strategy": "shuffle"}, "shuffle"),
        ({"where": "no_such_column = 1"}, "no_such_column"),
        nightly({"where": "id ==== 1"}, "id ==== 1"),
        nightly({"strategy": "sort", "sort_order": "no_such_column"}, "no_such_column"),
        nightly({"strategy": "sort", "sort_order": "zorder(id), word"}, "sort"),
        ({"strategy": "sort"}, "order"),
    ],
)
def test_f24_options_that_spark_does_not_accept_are_refused(
    sql: Sql, worker: SparkJobs, options: Mapping[str, str], says: str
) -> None:
    make_small_files(sql, "small", 3)

    ending = do(worker, named(sql, "small"), **options)

    assert ending.state is JobState.REFUSED, ending
    assert says in ending.message
    assert files_of(sql, "small") == {0: 3}


def test_f24_missing_file_stops_all_upkeep_of_the_table(
    sql: Sql, catalog: RemoteCatalog, worker: SparkJobs
) -> None:
    make_small_files(sql, "hurt", 30)
    path = sql.one("SELECT min(file_path) FROM our.hurt.files")
    path_of(path).unlink()

    ending = maintain(catalog, worker, named(sql, "hurt"), DATA)

    assert ending.state is JobState.DAMAGED, ending
    assert path.rsplit("/", 1)[-1] in ending.message
    assert "damage" in catalog.maintenance.plan(named(sql, "hurt"))


def test_f24_changed_rows_are_said_loudly(sql: Sql, worker: SparkJobs, sqlite_server: str) -> None:
    """A delete that carries the job's header stands for a rewrite that loses rows."""
    make_small_files(sql, "lossy", 5)
    table = named(sql, "lossy")

    class Lossy:
        """A session whose rewrite deletes a row first."""

        def __init__(self, session: SparkSession) -> None:
            self._session = session
            self.conf = session.conf

        def sql(self, statement: str, /) -> Any:
            if statement.startswith("CALL"):
                name = statement.split("`")[1]
                self._session.sql(f"DELETE FROM {name}.{sql.namespace}.lossy WHERE id = 3")
            return self._session.sql(statement)

    for verification in (Verification.COUNTS, Verification.CHECKSUMS):
        lossy = SparkJobs(lambda: Lossy(sql.spark.newSession()), sqlite_server, verify=verification)
        sql("INSERT INTO lossy SELECT 3, 'new', NULL, NULL")
        ending = do(lossy, table, min_input_files="1", rewrite_all="true")
        assert ending.state is JobState.UNSOUND, ending
        assert "ROWS ARE NOT WHAT THEY WERE" in ending.message


def test_f24_commit_whose_answer_spark_did_not_hear_is_found_by_its_receipt(
    sql: Sql, catalog: RemoteCatalog, sqlite_server: str
) -> None:
    make_small_files(sql, "unheard", 5)

    class Deaf:
        """A session whose rewrite lands, and says that it does not know."""

        def __init__(self, session: SparkSession) -> None:
            self._session = session
            self.conf = session.conf

        def sql(self, statement: str, /) -> Any:
            answer = self._session.sql(statement)
            if statement.startswith("CALL"):
                raise RuntimeError("org.apache.iceberg.exceptions.CommitStateUnknownException: no answer")
            return answer

    worker = SparkJobs(lambda: Deaf(sql.spark.newSession()), sqlite_server)

    ending = maintain(catalog, worker, named(sql, "unheard"), DATA)

    assert (ending.state, ending.message) == (JobState.DONE, "Spark did not hear that its commit had landed.")
    assert ending.figures["added-data-files-count"] == 1
    assert ending.figures["rewritten-bytes"] > 0
