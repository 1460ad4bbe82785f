"""The pointer of a table, which one of two commits moves, and what becomes of the metadata files before it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import httpx
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from tests.servers.spark import Sql, add_catalog, path_of

pytestmark = pytest.mark.spark

WRITERS = 4
ROUNDS = 3


def java_table(session: SparkSession, name: str) -> Any:
    """Return Iceberg's own table, as it is now."""
    jvm: Any = session.sparkContext._jvm
    return jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(session._jsparkSession, name)


def loaded(sql: Sql, uri: str, table: str) -> dict[str, Any]:
    answer: dict[str, Any] = httpx.get(f"{uri}/v1/namespaces/{sql.namespace}/tables/{table}").json()
    return answer


@pytest.fixture
def contenders(spark: SparkSession, sql: Sql, sqlite_server: str) -> Callable[[str], list[Any]]:
    """Return the same table as several writers have loaded it: each with a catalog client of its own."""

    def load(table: str) -> list[Any]:
        tables = []
        for number in range(WRITERS):
            add_catalog(spark, f"contender{number}", sqlite_server, cache_enabled="false")
            tables.append(java_table(spark, f"contender{number}.{sql.namespace}.{table}"))
        return tables

    return load


def at_once(deeds: list[Callable[[], None]]) -> list[str]:
    """Run all at the same moment; return why each was refused, or an empty text."""
    together = Barrier(len(deeds))

    def run(deed: Callable[[], None]) -> str:
        together.wait()
        try:
            deed()
        except Py4JJavaError as refused:
            return str(refused.java_exception)
        return ""

    with ThreadPoolExecutor(len(deeds)) as threads:
        return list(threads.map(run, deeds))


@pytest.mark.parametrize("change", ["append", "schema"])
def test_f2_of_commits_on_one_base_exactly_one_wins(
    sql: Sql, sqlite_server: str, contenders: Callable[[str], list[Any]], change: str
) -> None:
    for number in range(ROUNDS):
        # A new table each time: where its writers have collided, the server lets them load it one after the other.
        name = f"t{number}"
        sql(f"CREATE TABLE {name} (id int) USING iceberg TBLPROPERTIES ('commit.retry.num-retries' = '0')")
        first = loaded(sql, sqlite_server, name)["metadata-location"]
        commits = [
            (
                table.newAppend()
                if change == "append"
                else table.updateSchema().addColumn(f"c{number}", long_type(sql))
            )
            for table in contenders(name)
        ]
        # Each has built its commit on the same base before any of them commits.
        refusals = at_once([commit.commit for commit in commits])

        assert refusals.count("") == 1, refusals
        assert all("CommitFailedException" in refusal for refusal in refusals if refusal)
        now = loaded(sql, sqlite_server, name)
        last = now["metadata-location"]
        assert last != first
        # The winner was built on the base that all had seen, and on nothing else.
        assert [entry["metadata-file"] for entry in now["metadata"]["metadata-log"]] == [first]
        events = history(sql, sqlite_server, name)
        committed = [event for event in events if event["event"] == "committed"]
        assert [event["metadata-location-after"] for event in committed] == [last]
        on_disk = {str(path) for path in path_of(first).parent.glob("*.metadata.json")}
        assert on_disk == {str(path_of(location)) for location in (first, last)}


def long_type(sql: Sql) -> Any:
    jvm: Any = sql.spark.sparkContext._jvm
    return jvm.org.apache.iceberg.types.Types.LongType.get()


def history(sql: Sql, uri: str, table: str = "t") -> list[dict[str, Any]]:
    answer = httpx.get(f"{uri}/v1/namespaces/{sql.namespace}/tables/{table}/history")
    assert answer.status_code == 200, answer.text
    events: list[dict[str, Any]] = answer.json()["events"]
    return events


def metadata_files(sql: Sql, table: str) -> set[Path]:
    location = next(text for name, text, _ in sql(f"DESCRIBE TABLE EXTENDED {table}") if name == "Location")
    return set(path_of(location).joinpath("metadata").glob("*.metadata.json"))


def logged(sql: Sql, uri: str, table: str) -> list[Path]:
    """Return the metadata files that a table names, oldest first, its own last."""
    now = loaded(sql, uri, table)
    log = [entry["metadata-file"] for entry in now["metadata"]["metadata-log"]]
    return [path_of(location) for location in (*log, now["metadata-location"])]


def test_f21_old_metadata_files_go_after_each_commit(sql: Sql, sqlite_server: str) -> None:
    sql(
        "CREATE TABLE t (id int) USING iceberg TBLPROPERTIES ("
        "'write.metadata.delete-after-commit.enabled' = 'true', 'write.metadata.previous-versions-max' = '2')"
    )
    for number in range(5):
        sql(f"INSERT INTO t VALUES ({number})")
        named = logged(sql, sqlite_server, "t")
        assert len(named) == min(number + 2, 3)
        assert metadata_files(sql, "t") == set(named)

    # More are kept from the next commit on, and then less again: all that the log lets go goes at once.
    sql("ALTER TABLE t SET TBLPROPERTIES ('write.metadata.previous-versions-max' = '4')")
    for number in range(5, 8):
        sql(f"INSERT INTO t VALUES ({number})")
    assert len(logged(sql, sqlite_server, "t")) == 5
    assert metadata_files(sql, "t") == set(logged(sql, sqlite_server, "t"))
    sql("ALTER TABLE t SET TBLPROPERTIES ('write.metadata.previous-versions-max' = '1')")
    assert metadata_files(sql, "t") == set(logged(sql, sqlite_server, "t"))
    assert len(logged(sql, sqlite_server, "t")) == 2
    assert sorted(sql.column("SELECT id FROM t")) == list(range(8))
    assert len(sql("SELECT * FROM our.t.metadata_log_entries")) == 2


def test_f21_without_the_property_the_log_is_cut_and_the_files_stay(sql: Sql, sqlite_server: str) -> None:
    sql("CREATE TABLE t (id int) USING iceberg TBLPROPERTIES ('write.metadata.previous-versions-max' = '1')")
    for number in range(4):
        sql(f"INSERT INTO t VALUES ({number})")

    assert len(logged(sql, sqlite_server, "t")) == 2
    assert len(metadata_files(sql, "t")) == 5


def test_f21_metadata_files_are_compressed_as_the_table_says(sql: Sql, sqlite_server: str) -> None:
    sql("CREATE TABLE t (id int) USING iceberg TBLPROPERTIES ('write.metadata.compression-codec' = 'gzip')")
    sql("INSERT INTO t VALUES (1)")
    packed = logged(sql, sqlite_server, "t")
    assert all(path.name.endswith(".gz.metadata.json") for path in packed)
    assert all(json.loads(gzip.decompress(path.read_bytes()))["format-version"] for path in packed)

    sql("ALTER TABLE t SET TBLPROPERTIES ('write.metadata.compression-codec' = 'none')")
    sql("INSERT INTO t VALUES (2)")

    plain = logged(sql, sqlite_server, "t")[-2:]
    assert not any(path.name.endswith(".gz.metadata.json") for path in plain)
    assert all(json.loads(path.read_bytes())["format-version"] for path in plain)
    sql("REFRESH TABLE t")
    assert sorted(sql.column("SELECT id FROM t")) == [1, 2]
