"""The guard finds nothing wrong with what Spark writes, and Spark takes no for an answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from examples.flights.comparison import duckdb_with_iceberg
from tests.builders.java_deletes import add_equality_deletes, java_table
from tests.e2e.guarding import watched
from tests.servers.spark import Sql, path_of

pytestmark = pytest.mark.spark

MERGE = """
    MERGE INTO sales t USING (SELECT id + 140 AS id FROM range(20)) s ON t.id = s.id
    WHEN MATCHED THEN UPDATE SET amount = -1 WHEN NOT MATCHED THEN INSERT (id, region, amount) VALUES (s.id, 'e', 0)
"""
MODES = ("copy-on-write", "merge-on-read")


def create(sql: Sql, version: int, mode: str) -> None:
    """Make a table whose manifests are merged as soon as there are four."""
    sql(
        "CREATE TABLE sales (id bigint, region string, amount bigint) USING iceberg PARTITIONED BY (region)"
        f" TBLPROPERTIES ('format-version'='{version}', 'commit.manifest.min-count-to-merge'='4',"
        f" 'write.delete.mode'='{mode}', 'write.update.mode'='{mode}', 'write.merge.mode'='{mode}',"
        " 'icetower.guard'='reject')"
    )


def changes(version: int, mode: str) -> list[str]:
    """Return statements of which each makes a snapshot."""
    rows = [f"INSERT INTO sales VALUES ({number}, '{'ns'[number % 2]}', {number})" for number in range(9)]
    statements = [
        *rows,
        "INSERT INTO sales SELECT id + 100, 'w', id FROM range(50)",
        "DELETE FROM sales WHERE id = 3",
        "DELETE FROM sales WHERE region = 's'",
        "UPDATE sales SET amount = amount + 1 WHERE id % 10 = 4",
        MERGE,
        "INSERT OVERWRITE sales SELECT * FROM sales WHERE id > 10",
        "INSERT INTO sales VALUES (1, 'n', 1)",
        "CALL system.rewrite_data_files(table => 'our.sales', options => map('rewrite-all', 'true'))",
        "DELETE FROM sales WHERE id BETWEEN 110 AND 112",
        "CALL system.rewrite_manifests('our.sales')",
        "INSERT INTO sales VALUES (2, 'n', 1)",
    ]
    if mode == "merge-on-read" and version > 1:
        statements += [
            "CALL system.rewrite_position_delete_files(table => 'our.sales', options => map('rewrite-all', 'true'))",
            "INSERT INTO sales VALUES (3, 'n', 1)",
        ]
    return statements


@pytest.mark.parametrize(("version", "mode"), [(1, MODES[0]), *((v, m) for v in (2, 3) for m in MODES)])
def test_what_spark_writes_is_sound(sql: Sql, sqlite_server: str, version: int, mode: str) -> None:
    with watched(sqlite_server) as seen:
        create(sql, version, mode)
        for statement in changes(version, mode):
            sql(statement)
        made = sql.one("SELECT count(*) FROM our.sales.snapshots")

    assert seen.findings == {}
    assert seen.snapshots == {"clean": made}
    assert made >= 19


def test_branches_write_audit_publish_rollback_expiry_and_replaced_tables_are_sound(
    spark: SparkSession, sql: Sql, sqlite_server: str
) -> None:
    with watched(sqlite_server) as seen:
        create(sql, 2, MODES[1])
        for number in range(3):
            sql(f"INSERT INTO sales VALUES ({number}, 'n', 1)")
        _, second, third = sql.column("SELECT snapshot_id FROM our.sales.snapshots ORDER BY committed_at")
        sql("ALTER TABLE sales CREATE BRANCH test")
        sql("INSERT INTO our.sales.branch_test VALUES (10, 'n', 1)")
        sql("DELETE FROM our.sales.branch_test WHERE id = 0")
        sql("INSERT INTO sales VALUES (4, 'n', 1)")
        sql(f"CALL system.rollback_to_snapshot('our.sales', {third})")
        sql("INSERT INTO sales VALUES (5, 'n', 1)")
        sql("ALTER TABLE sales SET TBLPROPERTIES ('write.wap.enabled'='true')")
        spark.conf.set("spark.wap.id", "audit-1")
        sql("INSERT INTO sales VALUES (6, 'n', 1)")
        spark.conf.unset("spark.wap.id")
        sql("INSERT INTO sales VALUES (7, 'n', 1)")
        sql("CALL system.publish_changes('our.sales', 'audit-1')")
        sql(f"CALL system.set_current_snapshot('our.sales', {second})")
        sql("INSERT INTO sales VALUES (8, 'n', 1)")
        sql(
            "CALL system.expire_snapshots(table => 'our.sales', older_than => TIMESTAMP '2100-01-01 00:00:00',"
            " retain_last => 1)"
        )
        sql("INSERT INTO sales VALUES (9, 'n', 1)")
        sql("REPLACE TABLE sales USING iceberg AS SELECT id, 'x' AS region FROM range(3)")
        sql("CREATE OR REPLACE TABLE sales USING iceberg AS SELECT * FROM sales")
        sql("INSERT INTO sales VALUES (10, 'n')")

    assert seen.findings == {}
    assert set(seen.snapshots) == {"clean"}
    assert seen.snapshots["clean"] >= 14


def test_fast_appends_and_transactions_of_iceberg_itself_are_sound(
    spark: SparkSession, sql: Sql, sqlite_server: str
) -> None:
    create(sql, 2, MODES[0])
    sql("INSERT INTO sales VALUES (1, 'n', 1), (2, 's', 1)")
    jvm: Any = spark._jvm
    table = java_table(sql, "sales")
    a_file = table.newScan().planFiles().iterator().next().file()
    data = f"{table.location()}/data"

    def append(pending: Any, name: str) -> None:
        builder = jvm.org.apache.iceberg.DataFiles.builder(table.spec()).copy(a_file)
        pending.appendFile(builder.withPath(f"{data}/{name}.parquet").build())
        pending.commit()

    with watched(sqlite_server) as seen:
        for number in range(5):
            append(table.newFastAppend(), f"fast-{number}")
        transaction = table.newTransaction()
        append(transaction.newAppend(), "one")
        append(transaction.newAppend(), "two")
        delete = transaction.newDelete()
        delete.deleteFile(f"{data}/one.parquet")
        delete.commit()
        append(transaction.newFastAppend(), "three")
        transaction.commitTransaction()

    assert seen.findings == {}
    assert seen.snapshots == {"clean": 9}


def test_spark_is_told_once_and_nothing_is_changed(
    spark: SparkSession, sql: Sql, sqlite_server: str, tmp_path: Path
) -> None:
    create(sql, 2, MODES[0])
    sql("INSERT INTO sales VALUES (1, 'n', 1)")
    elsewhere = tmp_path / "elsewhere"
    spark.sql("SELECT 2L AS id, 's' AS region, 5L AS amount").write.partitionBy("region").parquet(
        str(elsewhere)
    )
    add = f"CALL system.add_files(table => 'our.sales', source_table => '`parquet`.`{elsewhere}`')"
    before = sql("SELECT * FROM our.sales.snapshots")

    with watched(sqlite_server) as seen:
        told = sql.fails(add)

    assert "Guard refuses the commit" in told
    assert "adds files outside the places where the table writes" in told
    assert "icetower.guard.ignore" in told
    assert seen.findings == {"outside-location": 1}  # no retry
    assert sql("SELECT * FROM our.sales.snapshots") == before
    sql("ALTER TABLE sales SET TBLPROPERTIES ('icetower.guard.ignore'='outside-location')")
    sql(add)
    assert sorted(sql.column("SELECT id FROM sales")) == [1, 2]


def test_a_rewrite_that_iceberg_lets_pass_and_that_brings_rows_back(
    spark: SparkSession, sql: Sql, sqlite_server: str
) -> None:
    """What `rewrite_data_files` does after a streaming writer deleted by equality, and the spec had changed before."""
    sql(
        "CREATE TABLE moved (id int, kind string) USING iceberg PARTITIONED BY (kind)"
        " TBLPROPERTIES ('format-version' = '2', 'icetower.guard' = 'reject')"
    )
    sql("INSERT INTO moved VALUES (1, 'a'), (2, 'a')")
    sql("ALTER TABLE moved DROP PARTITION FIELD kind")
    jvm: Any = spark._jvm
    table = java_table(sql, "moved")
    read, old = table.currentSnapshot(), table.newScan().planFiles().iterator().next().file()
    path = f"{table.location()}/data/moved.parquet"
    path_of(path).write_bytes(path_of(old.location()).read_bytes())
    new = jvm.org.apache.iceberg.DataFiles.builder(table.spec()).copy(old).withPath(path).build()
    add_equality_deletes(sql, "moved", [2], beside=old)
    assert sql.column("SELECT id FROM moved") == [1]

    def rewrite() -> None:
        pending = java_table(sql, "moved").newRewrite().validateFromSnapshot(read.snapshotId())
        pending.deleteFile(old).addFile(new).dataSequenceNumber(read.sequenceNumber()).commit()

    with watched(sqlite_server) as seen, pytest.raises(Py4JJavaError, match="Guard refuses the commit"):
        rewrite()
    assert seen.findings == {"lost-deletes": 1}
    assert sql.column("SELECT id FROM moved") == [1]

    sql("ALTER TABLE moved SET TBLPROPERTIES ('icetower.guard' = 'warn')")
    rewrite()
    sql("REFRESH TABLE moved")
    assert sorted(sql.column("SELECT id FROM moved")) == [1, 2]  # It is true.


def test_vectors_that_duckdb_loses_with_the_one_it_replaces_are_found(
    sql: Sql, sqlite_server: str, tmp_path: Path
) -> None:
    """Spark puts many deletion vectors into one file; DuckDB removes all of them when it replaces one."""
    create(sql, 3, "merge-on-read")
    sql("ALTER TABLE sales SET TBLPROPERTIES ('icetower.guard.ignore'='summary-totals')")
    for start in (0, 10):
        sql(f"INSERT INTO sales SELECT /*+ COALESCE(1) */ id, 'n', 0 FROM range({start}, {start + 10})")
    sql("DELETE FROM sales WHERE id IN (1, 11)")
    assert sql.one("SELECT count(DISTINCT file_path) FROM our.sales.delete_files") == 1
    with duckdb_with_iceberg(tmp_path) as duck:
        duck.execute(
            f"ATTACH '' AS tower (TYPE iceberg, ENDPOINT '{sqlite_server}', AUTHORIZATION_TYPE 'none')"
        )
        with pytest.raises(
            duckdb.Error, match=r"removes deletion vectors of .*, which stays, and adds no others"
        ):
            duck.execute(f"DELETE FROM tower.{sql.namespace}.sales WHERE id = 2")

    assert sql.one("SELECT count(*) FROM sales") == 18
