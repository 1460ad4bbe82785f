"""What Iceberg's Java client makes of refusals that say more than it knows: the same as ever."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from tests.servers.spark import Sql

pytestmark = pytest.mark.spark

MOVES = 40
MOST_ROUNDS = 20
COLUMN = {"id": 2, "name": "ours", "type": "int", "required": False}


@pytest.fixture
def curl(sqlite_server: str) -> Any:
    with httpx.Client(base_url=sqlite_server, timeout=60) as client:
        yield client


def java_table(spark: SparkSession, sql: Sql, name: str) -> Any:
    """Return Java's own table, loaded now; it does not look again until it commits."""
    jvm: Any = spark._jvm
    util = jvm.org.apache.iceberg.spark.Spark3Util
    spark.catalog.refreshTable(f"{sql.catalog}.{sql.namespace}.{name}")
    return util.loadIcebergTable(spark._jsparkSession, f"{sql.catalog}.{sql.namespace}.{name}")


def refusals(curl: httpx.Client) -> int:
    """Return how many commits the server has answered with 409."""
    pattern = r'icetower_requests_total\{method="POST",route="[^"]*/tables/\{table\}",status="409"\} (\d+)'
    return sum(int(float(number)) for number in re.findall(pattern, curl.get("/metrics").text))


def add_column(curl: httpx.Client, sql: Sql) -> None:
    """Change the schema behind Java's back."""
    path = f"/v1/namespaces/{sql.namespace}/tables/t"
    schema = curl.get(path).json()["metadata"]["schemas"][0]
    updates = [
        {"action": "add-schema", "schema": {**schema, "fields": [*schema["fields"], COLUMN]}},
        {"action": "set-current-schema", "schema-id": -1},
    ]
    curl.post(path, json={"requirements": [], "updates": updates}).raise_for_status()


def test_refused_schema_change_has_javas_exception_and_our_sentence(
    spark: SparkSession, sql: Sql, curl: httpx.Client
) -> None:
    sql("CREATE TABLE t (id int) USING iceberg")
    stale = java_table(spark, sql, "t")
    change = stale.updateSchema().addColumn(
        "theirs",
        spark._jvm.org.apache.iceberg.types.Types.IntegerType.get(),  # type: ignore[union-attr]  # a gateway is there
    )
    add_column(curl, sql)
    before = refusals(curl)

    with pytest.raises(Py4JJavaError) as caught:
        change.commit()

    error = caught.value.java_exception
    assert error.getClass().getName() == "org.apache.iceberg.exceptions.CommitFailedException"
    assert error.getMessage() == (
        "Commit failed: Requirement failed: last assigned field id changed: expected id 1 != 2"
    )
    assert refusals(curl) > before


def test_refused_appends_are_refreshed_and_sent_again(
    spark: SparkSession, sql: Sql, curl: httpx.Client
) -> None:
    """Java looks at the table right before it commits, so that only a busy neighbour gets it refused."""
    sql("CREATE TABLE t (id int) USING iceberg TBLPROPERTIES ('commit.retry.num-retries' = '50')")
    for number in (1, 2):
        sql(f"INSERT INTO t VALUES ({number})")
    path = f"/v1/namespaces/{sql.namespace}/tables/t"
    both = [item["snapshot-id"] for item in curl.get(path).json()["metadata"]["snapshots"]]
    before = refusals(curl)

    def move_main_about() -> None:
        for number in range(MOVES):
            moved = curl.put(f"{path}/refs/main", json={"snapshot-id": both[number % 2]})
            assert moved.status_code == 200, moved.text

    rounds = 0
    with ThreadPoolExecutor(1) as neighbour:
        while refusals(curl) == before and rounds < MOST_ROUNDS:
            rounds += 1
            moving = neighbour.submit(move_main_about)
            java_table(spark, sql, "t").newFastAppend().set("made-by", "java").commit()
            moving.result()

    made = [item["summary"].get("made-by") for item in curl.get(path).json()["metadata"]["snapshots"]]
    assert refusals(curl) > before
    assert made == [None, None, *["java"] * rounds]
