"""One table's busy life through a server whose pointers are in Postgres."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from app.client.catalog import RemoteCatalog
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.jobs import Job, JobState
from app.maintenance.maintainer import Maintainer
from app.maintenance.spark_jobs import SparkJobs
from app.maintenance.verification import Verification
from tests.servers.spark import Sql, add_catalog, path_of

pytestmark = [pytest.mark.spark, pytest.mark.postgres]


@pytest.fixture
def sql(spark: SparkSession, postgres_backed_server: str) -> Sql:
    session = spark.newSession()
    add_catalog(session, "on_postgres", postgres_backed_server)
    session.sql("CREATE NAMESPACE IF NOT EXISTS on_postgres.shop")
    session.sql("USE on_postgres.shop")
    return Sql(session, "on_postgres", "shop")


def test_a_busy_life(sql: Sql) -> None:
    sql(
        "CREATE TABLE orders USING iceberg PARTITIONED BY (day) AS SELECT id, id % 5 AS day, 1 AS n FROM range(100)"
    )
    sql(
        "MERGE INTO orders o USING (SELECT id FROM range(90, 110)) c ON o.id = c.id"
        " WHEN MATCHED THEN UPDATE SET o.n = 2"
        " WHEN NOT MATCHED THEN INSERT (id, day, n) VALUES (c.id, 0, 3)"
    )
    assert sql("SELECT count(*), sum(n) FROM orders") == [(110, 90 + 2 * 10 + 3 * 10)]

    sql("ALTER TABLE orders ADD COLUMN note string AFTER id")
    sql("ALTER TABLE orders ADD PARTITION FIELD bucket(2, id)")
    sql("ALTER TABLE orders WRITE ORDERED BY id DESC")
    sql(
        "ALTER TABLE orders SET TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read')"
    )
    sql("ALTER TABLE orders CREATE TAG before")
    sql("ALTER TABLE orders CREATE BRANCH audit")
    sql("DELETE FROM our.orders.branch_audit WHERE id = 7")
    assert sql.one("SELECT count(*) FROM orders") == 110
    sql("CALL system.fast_forward('our.orders', 'main', 'audit')")
    assert sql.one("SELECT count(*) FROM orders") == 109
    assert sql.one("SELECT count(*) FROM orders VERSION AS OF 'before'") == 110

    sql("CREATE VIEW by_day AS SELECT day, count(*) AS orders FROM orders GROUP BY day")
    assert sum(sql.column("SELECT orders FROM by_day")) == 109
    sql("ALTER TABLE orders RENAME TO moved")
    assert "TABLE_OR_VIEW_NOT_FOUND" in sql.fails("SELECT * FROM orders")
    assert "already exists" in sql.fails("CREATE TABLE by_day (id int) USING iceberg").lower()
    assert "not empty" in sql.fails("DROP NAMESPACE on_postgres.shop")

    sql("CALL system.rewrite_data_files(table => 'our.moved', options => map('rewrite-all', 'true'))")
    sql("ALTER TABLE moved DROP TAG before")
    sql("ALTER TABLE moved DROP BRANCH audit")
    sql(
        "CALL system.expire_snapshots(table => 'our.moved', older_than => TIMESTAMP '2100-01-01 00:00:00',"
        " retain_last => 1)"
    )
    assert sql.one("SELECT count(*) FROM our.moved.snapshots") == 1
    files = [path_of(file) for file in sql.column("SELECT file_path FROM our.moved.files")]
    assert all(file.is_file() for file in files)

    sql("DROP TABLE moved PURGE")
    sql("DROP VIEW by_day")
    sql("DROP NAMESPACE on_postgres.shop")
    assert not any(file.exists() for file in files)
    # Other tests of this process may have namespaces of their own on the server.
    assert ("shop",) not in [tuple(row) for row in sql("SHOW NAMESPACES IN on_postgres")]


@pytest.mark.nightly
def test_f24_jobs_on_spark_are_held_noted_and_verified(sql: Sql, postgres_backed_server: str) -> None:
    sql(
        "CREATE TABLE kept (id int) USING iceberg TBLPROPERTIES ('format-version' = '2',"
        " 'write.delete.mode' = 'merge-on-read', 'write.delete.granularity' = 'partition')"
    )
    for start in range(3):
        sql(f"INSERT INTO kept SELECT CAST(id * 3 + {start} AS int) FROM range(100)")
    for start in range(3):
        sql(f"DELETE FROM kept WHERE id = {start * 30}")
    before = sorted(sql("SELECT * FROM kept"))
    table = TableIdentifier(Namespace(("shop",)), "kept")
    worker = SparkJobs(sql.spark.newSession, postgres_backed_server, verify=Verification.CHECKSUMS)
    with RemoteCatalog(postgres_backed_server) as catalog:
        for job in (Job.REWRITE_POSITION_DELETES, Job.REWRITE_DATA_FILES, Job.TABLE_STATISTICS):
            (report,) = Maintainer(catalog, {job: worker}, [job]).maintain(table).jobs
            assert (report.ending.state, report.ending.message) == (JobState.DONE, ""), report
        noted = [(job["job"], job["state"]) for job in catalog.maintenance.jobs(table)]
    assert noted == [
        ("table-statistics", "done"),
        ("rewrite-data-files", "done"),
        ("rewrite-position-deletes", "done"),
    ]
    sql("REFRESH TABLE kept")
    assert sorted(sql("SELECT * FROM kept")) == before
    assert sql.one("SELECT count(*) FROM our.kept.files") == 1
