"""A disaster drill with Spark: the database is gone, and every row, branch and view is read as before."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.servers.commands import icetower_command
from tests.servers.icetower import icetower_process
from tests.servers.spark import Sql, add_catalog

pytestmark = pytest.mark.spark

_numbers = itertools.count(1)
QUESTIONS = (
    "SELECT * FROM our.sales ORDER BY id",
    "SELECT * FROM our.sales VERSION AS OF 'audit' ORDER BY id",
    "SELECT * FROM our.sales VERSION AS OF 'first' ORDER BY id",
    "SELECT snapshot_id, operation FROM our.sales.snapshots ORDER BY committed_at",
    "SELECT * FROM our.short ORDER BY id",
    "SELECT * FROM our.big ORDER BY id",
    "SHOW TBLPROPERTIES our.sales",
    "DESCRIBE our.sales",
)


def connected(spark: SparkSession, url: str) -> Sql:
    """Return a catalog that no test before has used: what Spark has kept of another is of no use here."""
    name = f"drill{next(_numbers)}"
    add_catalog(spark, name, url, cache_enabled="false")
    return Sql(spark, name, "lake")


def live_a_while(sql: Sql) -> None:
    sql(f"CREATE NAMESPACE {sql.catalog}.lake")
    sql(
        "CREATE TABLE our.sales (id int, day string) USING iceberg PARTITIONED BY (day) "
        "TBLPROPERTIES ('write.delete.mode' = 'merge-on-read', 'team' = 'lake')"
    )
    sql("INSERT INTO our.sales VALUES (1, 'mon'), (2, 'tue'), (3, 'tue')")
    sql("ALTER TABLE our.sales CREATE TAG first")
    sql("DELETE FROM our.sales WHERE id = 2")
    sql("ALTER TABLE our.sales CREATE BRANCH audit")
    sql("INSERT INTO our.sales.branch_audit VALUES (9, 'wed')")
    sql("ALTER TABLE our.sales ADD COLUMN word string")
    sql("INSERT INTO our.sales VALUES (4, 'thu', 'four')")
    sql(
        "CREATE TABLE our.short (id int) USING iceberg TBLPROPERTIES ("
        "'write.metadata.delete-after-commit.enabled' = 'true', 'write.metadata.previous-versions-max' = '1')"
    )
    for number in range(4):
        sql(f"INSERT INTO our.short VALUES ({number})")
    sql(
        "CREATE VIEW our.big AS SELECT id FROM our.sales WHERE id > 1".replace(
            "our.sales", f"{sql.catalog}.lake.sales"
        )
    )
    sql("CREATE TABLE our.gone (id int) USING iceberg")
    sql("DROP TABLE our.gone")


def answers(sql: Sql) -> list[Any]:
    return [sql(question) for question in QUESTIONS]


def test_a_lost_database_is_rebuilt_and_spark_reads_and_writes_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    with icetower_process(tmp_path) as url:
        sql = connected(spark, url)
        live_a_while(sql)
        before = answers(sql)
    for file in tmp_path.glob("icetower.db*"):
        file.unlink()

    done = icetower_command(tmp_path, "rebuild", "--yes", "--json")
    assert done.status == 0, done.err
    # Dropped without purge, and no export to say so.
    assert {line["name"] for line in done.lines if line.get("done")} == {"sales", "short", "big", "gone"}

    with icetower_process(tmp_path) as url:
        # The view's query names the catalog that it was made in, so only its presence is asked for.
        add_catalog(spark, f"{sql.catalog}_again", url, cache_enabled="false")
        again = Sql(spark, f"{sql.catalog}_again", "lake")
        tables = [question for question in QUESTIONS if "our.big" not in question]
        assert [again(question) for question in tables] == [
            answer for question, answer in zip(QUESTIONS, before, strict=True) if "our.big" not in question
        ]
        views = again(f"SHOW VIEWS IN {again.catalog}.lake")
        # Spark lists the temporary views of the session, too.
        assert [view for view in views if not view[2]] == [("lake", "big", False)]
        again("INSERT INTO our.sales VALUES (5, 'fri', 'five')")
        again("INSERT INTO our.short VALUES (5)")
        assert again.column("SELECT id FROM our.sales ORDER BY id") == [1, 3, 4, 5]
        assert again.column("SELECT id FROM our.short ORDER BY id") == [0, 1, 2, 3, 5]
