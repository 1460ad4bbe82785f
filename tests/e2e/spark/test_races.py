"""Two writers at once: two Spark sessions, or Spark and PyIceberg."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyiceberg.catalog.rest import RestCatalog
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.servers.spark import Sql, add_catalog

pytestmark = pytest.mark.spark

ROUNDS = 5
MANY_RETRIES = "'commit.retry.num-retries' = '50', 'commit.retry.min-wait-ms' = '10'"


@pytest.fixture
def sessions(spark: SparkSession, sql: Sql, sqlite_server: str) -> list[Sql]:
    """Two sessions of one Spark, each with a catalog client of its own that keeps nothing it has read."""
    made = []
    for number in (1, 2):
        session = spark.newSession()
        name = f"racer{number}"
        add_catalog(session, name, sqlite_server, cache_enabled="false")
        session.sql(f"USE {name}.{sql.namespace}")
        made.append(Sql(session, name, sql.namespace))
    return made


def race(*writers: Callable[[], int]) -> list[int]:
    """Let all writers go at the same moment; answer what each returned."""
    together = threading.Barrier(len(writers))

    def run(writer: Callable[[], int]) -> int:
        together.wait()
        return writer()

    with ThreadPoolExecutor(len(writers)) as threads:
        return list(threads.map(run, writers))


def test_appends_of_two_sessions_all_land_once(sql: Sql, sessions: list[Sql]) -> None:
    sql(f"CREATE TABLE numbers (number int) USING iceberg TBLPROPERTIES ({MANY_RETRIES})")

    def appends(session: Sql, start: int) -> int:
        for number in range(start, start + ROUNDS):
            session(f"INSERT INTO numbers VALUES ({number})")
        return ROUNDS

    race(lambda: appends(sessions[0], 0), lambda: appends(sessions[1], 100))

    sql("REFRESH TABLE numbers")
    expected = [*range(ROUNDS), *range(100, 100 + ROUNDS)]
    assert sorted(sql.column("SELECT number FROM numbers")) == expected
    assert sorted(sql.column("SELECT sequence_number FROM our.numbers.entries")) == list(
        range(1, 2 * ROUNDS + 1)
    )


def test_a_herd_with_the_default_retries_lands_as_a_whole(
    spark: SparkSession, sql: Sql, sqlite_server: str
) -> None:
    sql("CREATE TABLE herd (number int) USING iceberg")
    sessions = herd_of(8, spark, sql, sqlite_server)

    def appends(session: Sql, start: int) -> int:
        for number in range(start, start + 3):
            session(f"INSERT INTO herd VALUES ({number})")
        return 3

    race(
        *(lambda session=session, start=10 * n: appends(session, start) for n, session in enumerate(sessions))
    )

    sql("REFRESH TABLE herd")
    expected = [10 * session + number for session in range(8) for number in range(3)]
    assert sorted(sql.column("SELECT number FROM herd")) == expected


def test_merges_land_among_fast_appends(spark: SparkSession, sql: Sql, sqlite_server: str) -> None:
    # Not copy-on-write: there Spark itself gives up as soon as the table has changed.
    sql(
        "CREATE TABLE stock (item int, amount int, part int) USING iceberg PARTITIONED BY (part) "
        "TBLPROPERTIES ('write.merge.isolation-level' = 'snapshot', 'write.merge.mode' = 'merge-on-read')"
    )
    sql("INSERT INTO stock SELECT id, 0, 0 FROM range(200)")
    sessions = herd_of(4, spark, sql, sqlite_server)

    def appends(session: Sql, start: int) -> int:
        for number in range(start, start + 6):
            session(f"INSERT INTO stock VALUES ({number}, 0, 1)")
        return 6

    def merges(session: Sql) -> int:
        for _ in range(3):
            session(
                "MERGE INTO stock AS t USING (SELECT explode(sequence(0, 199)) AS item) AS s "
                "ON t.item = s.item AND t.part = 0 WHEN MATCHED THEN UPDATE SET amount = amount + 1"
            )
        return 3

    race(
        lambda: merges(sessions[0]),
        *(
            lambda session=session, start=1000 * n: appends(session, start)
            for n, session in enumerate(sessions[1:], 1)
        ),
    )

    sql("REFRESH TABLE stock")
    assert sql("SELECT DISTINCT amount FROM stock WHERE part = 0") == [(3,)]
    assert sql.one("SELECT count(*) FROM stock") == 200 + 18


def herd_of(count: int, spark: SparkSession, sql: Sql, uri: str) -> list[Sql]:
    """Return so many sessions, each with a catalog client of its own that keeps nothing it has read."""
    sessions = []
    for number in range(count):
        session = spark.newSession()
        name = f"herd{number}"
        add_catalog(session, name, uri, cache_enabled="false")
        session.sql(f"USE {name}.{sql.namespace}")
        sessions.append(Sql(session, name, sql.namespace))
    return sessions


def test_updates_of_two_sessions_never_lose_one(sql: Sql, sessions: list[Sql]) -> None:
    sql("CREATE TABLE counter USING iceberg AS SELECT 0 AS count")

    def increments(session: Sql) -> int:
        """Count up; a lost race is told and counts for nothing."""
        landed = 0
        for _ in range(ROUNDS):
            try:
                session("UPDATE counter SET count = count + 1")
            except (Py4JJavaError, PySparkException) as refused:
                _expect(refused, "conflicting files", "Commit failed")
            else:
                landed += 1
        return landed

    landed = race(lambda: increments(sessions[0]), lambda: increments(sessions[1]))

    sql("REFRESH TABLE counter")
    assert sql.one("SELECT count FROM counter") == sum(landed)
    assert sum(landed) >= ROUNDS
    assert sql.one("SELECT count(*) FROM our.counter.history") == 1 + sum(landed)


def test_creations_of_one_table_have_one_winner(sql: Sql, sessions: list[Sql]) -> None:
    def creates(session: Sql, number: int) -> int:
        try:
            session(f"CREATE TABLE contested USING iceberg AS SELECT {number} AS creator")
        except (Py4JJavaError, PySparkException) as refused:
            _expect(refused, "already exists")
            return 0
        return number

    winners = race(lambda: creates(sessions[0], 1), lambda: creates(sessions[1], 2))

    assert min(winners) == 0
    assert sql.column("SELECT creator FROM contested") == [max(winners)]


def test_appends_of_spark_and_pyiceberg_all_land_once(
    sql: Sql, sessions: list[Sql], sqlite_server: str
) -> None:
    sql(f"CREATE TABLE numbers (number int) USING iceberg TBLPROPERTIES ({MANY_RETRIES})")
    catalog = RestCatalog("racer", uri=sqlite_server)

    def spark_appends() -> int:
        for number in range(ROUNDS):
            sessions[0](f"INSERT INTO numbers VALUES ({number})")
        return ROUNDS

    def pyiceberg_appends() -> int:
        table = catalog.load_table((sql.namespace, "numbers"))
        for number in range(100, 100 + ROUNDS):
            table.append(pa.table({"number": pa.array([number], pa.int32())}))
        return ROUNDS

    race(spark_appends, pyiceberg_appends)

    sql("REFRESH TABLE numbers")
    expected = [*range(ROUNDS), *range(100, 100 + ROUNDS)]
    assert sorted(sql.column("SELECT number FROM numbers")) == expected
    assert (
        sorted(catalog.load_table((sql.namespace, "numbers")).scan().to_arrow()["number"].to_pylist())
        == expected
    )


def _expect(refused: Exception, *reasons: str) -> None:
    """A writer may lose for these reasons only."""
    assert any(reason in str(refused) for reason in reasons), refused
