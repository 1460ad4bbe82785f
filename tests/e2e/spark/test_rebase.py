"""Spark's sessions write to tables that ask for rebases: with no retries of their own, a refusal would fail them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote, urlparse

import httpx
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.servers.spark import Sql, add_catalog

pytestmark = pytest.mark.spark

WRITERS, ROUNDS = 3, 4
NO_RETRIES = "'commit.retry.num-retries' = '0', 'icetower.guard' = 'reject'"


@pytest.fixture
def sessions(spark: SparkSession, sql: Sql, sqlite_server: str) -> list[Sql]:
    """Sessions of one Spark, each with a catalog client of its own."""
    made = []
    for number in range(WRITERS):
        session = spark.newSession()
        name = f"rebaser{number}"
        add_catalog(session, name, sqlite_server, cache_enabled="false")
        session.sql(f"USE {name}.{sql.namespace}")
        made.append(Sql(session, name, sql.namespace))
    return made


def race(*writers: Callable[[], object]) -> None:
    """Let all writers go at the same moment, and raise what any of them raised."""
    together = threading.Barrier(len(writers))

    def run(writer: Callable[[], object]) -> object:
        together.wait()
        return writer()

    with ThreadPoolExecutor(len(writers)) as threads:
        list(threads.map(run, writers))


def appends(session: Sql, start: int) -> Callable[[], object]:
    def work() -> None:
        for number in range(start, start + ROUNDS):
            session(f"INSERT INTO numbers VALUES ({number}, {number % 2})")

    return work


def rebased_count(url: str) -> float:
    lines = httpx.get(f"{url}/metrics").text.splitlines()
    return sum(
        float(line.rsplit(" ", 1)[1])
        for line in lines
        if line.startswith("icetower_rebases_total") and 'outcome="landed"' in line
    )


def check_all_files_are_there(sql: Sql, table: str) -> None:
    """Check that no writer deleted a manifest list or manifest that the table uses."""
    for column in (
        sql.column(f"SELECT manifest_list FROM our.{table}.snapshots"),
        sql.column(f"SELECT path FROM our.{table}.all_manifests"),
        sql.column(f"SELECT file_path FROM our.{table}.files"),
    ):
        assert all(Path(unquote(urlparse(str(path)).path)).exists() for path in column)


@pytest.mark.parametrize("version", [2, 3])
def test_appends_of_many_sessions_all_land_though_they_never_try_again(
    sql: Sql, sessions: list[Sql], sqlite_server: str, version: int
) -> None:
    sql(
        "CREATE TABLE numbers (number int, part int) USING iceberg PARTITIONED BY (part) "
        f"TBLPROPERTIES ({NO_RETRIES}, 'icetower.rebase' = 'appends', 'format-version' = '{version}')"
    )
    before = rebased_count(sqlite_server)

    race(*(appends(session, 100 * at) for at, session in enumerate(sessions)))

    sql("REFRESH TABLE numbers")
    expected = [100 * at + number for at in range(WRITERS) for number in range(ROUNDS)]
    assert sorted(sql.column("SELECT number FROM numbers")) == expected
    assert sql.one("SELECT count(*) FROM our.numbers.snapshots") == len(expected)
    assert rebased_count(sqlite_server) > before
    check_all_files_are_there(sql, "numbers")


def test_compactions_and_appends_do_not_make_each_other_fail(
    sql: Sql, sessions: list[Sql], sqlite_server: str
) -> None:
    sql(
        "CREATE TABLE numbers (number int, part int) USING iceberg PARTITIONED BY (part) "
        f"TBLPROPERTIES ({NO_RETRIES}, 'icetower.rebase' = 'conflict-free')"
    )
    for number in range(900, 908):
        sql(f"INSERT INTO numbers VALUES ({number}, {number % 2})")

    def compacts(session: Sql, part: int) -> Callable[[], object]:
        def work() -> None:
            for _ in range(ROUNDS):
                session(
                    f"CALL {session.catalog}.system.rewrite_data_files(table => '{session.namespace}.numbers', "
                    f"where => 'part = {part}', options => map('rewrite-all', 'true', 'min-input-files', '1'))"
                )

        return work

    before = rebased_count(sqlite_server)
    race(appends(sessions[0], 0), compacts(sessions[1], 0), compacts(sessions[2], 1))

    sql("REFRESH TABLE numbers")
    assert sorted(sql.column("SELECT number FROM numbers")) == [*range(ROUNDS), *range(900, 908)]
    assert rebased_count(sqlite_server) > before
    check_all_files_are_there(sql, "numbers")


def test_update_beside_an_append_is_still_refused(sql: Sql, sessions: list[Sql]) -> None:
    """What Spark reads for an update it does not say: every new row may matter, and no count may be lost."""
    sql(
        "CREATE TABLE counter TBLPROPERTIES ('icetower.rebase' = 'conflict-free', 'commit.retry.num-retries' = '20') "
        "AS SELECT 0 AS count"
    )

    def increments(session: Sql) -> Callable[[], object]:
        def work() -> None:
            landed = 0
            while landed < 2:
                try:
                    session("UPDATE counter SET count = count + 1")
                except (Py4JJavaError, PySparkException) as refused:
                    if "conflicting" not in str(refused) and "Commit failed" not in str(refused):
                        raise
                else:
                    landed += 1

        return work

    race(increments(sessions[0]), increments(sessions[1]))

    sql("REFRESH TABLE counter")
    assert sql.one("SELECT count FROM counter") == 4
