"""A Spark writer that lost a race: the catalog is asked first, and Iceberg's own commit ends as it was told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from tests.servers.spark import Sql

pytestmark = pytest.mark.spark

KIND_IS_A = {"type": "eq", "term": "kind", "value": "a"}
MEANWHILE = {
    "nothing": "SELECT 1",
    "append elsewhere": "INSERT INTO t VALUES (10, 'b')",
    "append here": "INSERT INTO t VALUES (10, 'a')",
    "delete of a row": "DELETE FROM t WHERE id = 1",
    "delete of a row elsewhere": "DELETE FROM t WHERE id = 3",
    "delete of all": "DELETE FROM t WHERE kind = 'a'",
    "compaction": "CALL {catalog}.system.rewrite_data_files(table => '{table}', options => map('rewrite-all','true'))",
}


@pytest.fixture
def pending(sql: Sql, spark: SparkSession) -> Any:
    """The table, as Iceberg's Java client knows it before anybody else writes."""
    sql(
        "CREATE TABLE t (id int, kind string) USING iceberg PARTITIONED BY (kind) TBLPROPERTIES "
        "('format-version' = '2', 'write.delete.mode' = 'merge-on-read', 'write.distribution-mode' = 'none')"
    )
    sql("INSERT INTO t SELECT /*+ REPARTITION(1) */ * FROM VALUES (1, 'a'), (2, 'a'), (3, 'b'), (4, 'b')")
    jvm: Any = spark._jvm
    return jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
        spark._jsparkSession, f"{sql.catalog}.{sql.namespace}.t"
    )


def expression(spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.apache.iceberg.expressions.Expressions.equal("kind", "a")


def file_of_kind_a(table: Any) -> Any:
    files = table.currentSnapshot().addedDataFiles(table.io()).iterator()
    while files.hasNext():
        file = files.next()
        if "kind=a/" in file.location():
            return file
    raise AssertionError("there is a file of each kind")


def ends(commit: Callable[[], None]) -> bool:
    """Tell whether a commit lands; anything but a conflict fails the test."""
    try:
        commit()
    except Py4JJavaError as error:
        name = error.java_exception.getClass().getSimpleName()
        if name != "ValidationException":
            raise
        return False
    return True


def ask(server: str, sql: Sql, base: int, operation: dict[str, Any]) -> Any:
    response = httpx.post(
        f"{server}/v1/namespaces/{sql.namespace}/tables/t/conflicts",
        json={"base-snapshot-id": base, "operation": operation},
        timeout=60,
    )
    assert response.status_code == 200, response.text
    return response.json()


@pytest.mark.parametrize("meanwhile", MEANWHILE, ids=lambda what: what.replace(" ", "-"))
@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
def test_copy_on_write(
    sql: Sql, spark: SparkSession, sqlite_server: str, pending: Any, isolation: str, meanwhile: str
) -> None:
    base = pending.currentSnapshot().snapshotId()
    file = file_of_kind_a(pending)
    sql(MEANWHILE[meanwhile].format(catalog=sql.catalog, table=f"{sql.namespace}.t"))

    told = ask(
        sqlite_server,
        sql,
        base,
        {
            "kind": "overwrite",
            "isolation": isolation,
            "filter": KIND_IS_A,
            "removed-data-files": [file.location()],
        },
    )
    overwrite = pending.newOverwrite().validateFromSnapshot(base).conflictDetectionFilter(expression(spark))
    if isolation == "serializable":
        overwrite = overwrite.validateNoConflictingData()
    has_landed = ends(overwrite.validateNoConflictingDeletes().deleteFile(file).commit)

    assert told["would-conflict"] is not has_landed, told


@pytest.mark.parametrize("meanwhile", MEANWHILE, ids=lambda what: what.replace(" ", "-"))
def test_compaction(sql: Sql, sqlite_server: str, pending: Any, meanwhile: str) -> None:
    base = pending.currentSnapshot().snapshotId()
    file = file_of_kind_a(pending)
    sql(MEANWHILE[meanwhile].format(catalog=sql.catalog, table=f"{sql.namespace}.t"))

    told = ask(sqlite_server, sql, base, {"kind": "rewrite-files", "removed-data-files": [file.location()]})
    rewrite = pending.newRewrite().validateFromSnapshot(base)
    has_landed = ends(rewrite.deleteFile(file).commit)

    assert told["would-conflict"] is not has_landed, told
