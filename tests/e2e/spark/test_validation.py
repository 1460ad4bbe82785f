"""What Iceberg's Java client makes of refusals that say more than it knows: the same as ever."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from tests.servers.spark import Sql

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

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


def test_refused_append_is_refreshed_and_sent_again(
    spark: SparkSession, sql: Sql, curl: httpx.Client
) -> None:
    sql("CREATE TABLE t (id int) USING iceberg")
    for number in (1, 2):
        sql(f"INSERT INTO t VALUES ({number})")
    path = f"/v1/namespaces/{sql.namespace}/tables/t"
    first, second = (item["snapshot-id"] for item in curl.get(path).json()["metadata"]["snapshots"])
    append = java_table(spark, sql, "t").newFastAppend().set("made-by", "java")
    curl.put(f"{path}/refs/main", json={"rollback-to": first}).raise_for_status()
    before = refusals(curl)

    append.commit()

    metadata = curl.get(path).json()["metadata"]
    made = metadata["snapshots"][-1]
    assert refusals(curl) == before + 1
    assert metadata["current-snapshot-id"] == made["snapshot-id"] != second
    assert (made["summary"]["made-by"], made["parent-snapshot-id"]) == ("java", first)
