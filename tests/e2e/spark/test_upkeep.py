"""Upkeep of tables that Spark writes: manifests, retention, properties, expiry, done by a maintainer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.client.catalog import RemoteCatalog
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.jobs import Job, JobState
from app.maintenance.catalog_jobs import CatalogJobs
from app.maintenance.maintainer import Maintainer, TableReport
from tests.servers.spark import Sql, path_of

pytestmark = pytest.mark.spark

IN_CATALOG = [job for job in Job if not job.needs_spark]


def identifier(sql: Sql, table: str) -> TableIdentifier:
    return TableIdentifier(Namespace((sql.namespace,)), table)


def maintain(uri: str, table: TableIdentifier, *wanted: Job) -> TableReport:
    """Do these jobs, or what the policy says."""
    with RemoteCatalog(uri) as catalog:
        worker = CatalogJobs(lambda job_id: RemoteCatalog(uri, job=job_id))
        return Maintainer(catalog, dict.fromkeys(IN_CATALOG, worker), wanted).maintain(table)


def facts(uri: str, table: TableIdentifier) -> dict[str, Any]:
    with RemoteCatalog(uri) as catalog:
        return catalog.health.table(table)


def insert(sql: Sql, table: str, count: int) -> None:
    for number in range(count):
        sql(f"INSERT INTO {table} VALUES ({number}, {number % 3})")


def test_f8_appends_of_either_kind_are_counted_and_merged(sql: Sql, sqlite_server: str) -> None:
    """A fast append adds a manifest and rewrites none, a merge append follows its properties, upkeep joins the rest."""
    for name, properties in (
        ("fast", "'commit.manifest-merge.enabled' = 'false'"),
        ("merged", "'commit.manifest.min-count-to-merge' = '4'"),
    ):
        sql(
            f"CREATE TABLE {name} (id int, p int) USING iceberg PARTITIONED BY (p) TBLPROPERTIES ({properties})"
        )
        insert(sql, name, 12)

    fast, merged = identifier(sql, "fast"), identifier(sql, "merged")
    assert facts(sqlite_server, fast)["manifests"]["data-manifests"] == 12
    assert facts(sqlite_server, merged)["manifests"]["data-manifests"] == sql.one(
        "SELECT count(*) FROM our.merged.manifests"
    )
    assert facts(sqlite_server, merged)["manifests"]["data-manifests"] < 4

    report = maintain(sqlite_server, fast, Job.REWRITE_MANIFESTS)

    assert [job.ending.state for job in report.jobs] == [JobState.DONE]
    sql("REFRESH TABLE fast")
    assert sql.one("SELECT count(*) FROM our.fast.manifests") == 1
    assert sql.one("SELECT sum(id) FROM fast") == 66
    sql("INSERT INTO fast VALUES (100, 1)")
    assert sql.one("SELECT count(*) FROM our.fast.manifests") == 2


def test_f16_retention_of_table_branches_and_tags_is_kept(sql: Sql, sqlite_server: str) -> None:
    """Each branch keeps what its own settings, or the table's, say; refs that are too old go."""
    sql(
        "CREATE TABLE t (id int, p int) USING iceberg TBLPROPERTIES"
        " ('history.expire.max-snapshot-age-ms' = '0', 'history.expire.min-snapshots-to-keep' = '2')"
    )
    insert(sql, "t", 3)
    sql("ALTER TABLE t CREATE TAG old")
    insert(sql, "t", 2)
    sql("ALTER TABLE t CREATE BRANCH own WITH SNAPSHOT RETENTION 3 SNAPSHOTS")
    sql("ALTER TABLE t CREATE TAG kept")
    for number in range(3):
        sql(f"INSERT INTO our.t.branch_own VALUES ({100 + number}, 0)")
    insert(sql, "t", 4)
    table = identifier(sql, "t")
    snapshots = sql.column("SELECT snapshot_id FROM our.t.snapshots ORDER BY committed_at")

    with RemoteCatalog(sqlite_server) as catalog:
        catalog.refs.change(table, "old", {"ref": "old", "max-ref-age-ms": 1})

    report = maintain(sqlite_server, table, Job.EXPIRE_SNAPSHOTS)

    assert [job.ending.state for job in report.jobs] == [JobState.DONE]
    sql("REFRESH TABLE t")
    left = sql.column("SELECT snapshot_id FROM our.t.snapshots ORDER BY committed_at")
    # The tag's, the branch's own three, and the last two of main.
    assert left == [snapshots[4], *snapshots[5:8], *snapshots[-2:]]
    assert set(sql.column("SELECT name FROM our.t.refs")) == {"main", "own", "kept"}
    assert sql.one("SELECT count(*) FROM t VERSION AS OF 'own'") == 8


def test_f19_every_property_is_known_with_its_effective_value(sql: Sql, sqlite_server: str) -> None:
    """What Spark sets is shown with its origin; nonsense is refused with what is allowed, and changes nothing."""
    sql("CREATE TABLE t (id int) USING iceberg TBLPROPERTIES ('owner.team' = 'lake')")
    sql(
        "ALTER TABLE t SET TBLPROPERTIES ('write.merge.mode' = 'merge-on-read', 'read.split.target-size' = '1048576')"
    )
    for name, value, allowed in (
        ("write.merge.mode", "sometimes", "must be copy-on-write or merge-on-read"),
        ("write.parquet.page-version", "v9", "must be v1, v2, PARQUET_1_0 or PARQUET_2_0"),
        ("icetower.maintenance", "yes", "must be off or recommended"),
    ):
        refused = sql.fails(f"ALTER TABLE t SET TBLPROPERTIES ('{name}' = '{value}')")
        assert f"{name} {allowed}, found '{value}'" in refused

    with RemoteCatalog(sqlite_server) as catalog:
        found = {item["name"]: item for item in catalog.tables.properties(identifier(sql, "t"))}

    def shown(name: str) -> tuple[Any, Any]:
        return found[name].get("value"), found[name]["origin"]

    assert shown("write.merge.mode") == ("merge-on-read", "table")
    assert shown("read.split.target-size") == ("1048576", "table")
    assert shown("write.update.mode") == ("copy-on-write", "default")
    assert shown("owner.team") == ("lake", "table")
    assert not found["owner.team"]["known"]
    of_spark = {name for name, _ in sql("SHOW TBLPROPERTIES t")} - {
        "current-snapshot-id",
        "format",
        "format-version",
    }
    assert of_spark <= set(found)


def test_f22_policy_expires_snapshots_and_everything_else_stays(sql: Sql, sqlite_server: str) -> None:
    """With a policy a maintainer expires what is old; every file that is reached stays, all others go."""
    sql(
        "CREATE TABLE t (id int, p int) USING iceberg TBLPROPERTIES ("
        "'icetower.maintenance.expire-snapshots' = 'on', 'icetower.maintenance.expire-snapshots.min-snapshots' = '3',"
        "'history.expire.max-snapshot-age-ms' = '0')"
    )
    insert(sql, "t", 6)
    sql("INSERT OVERWRITE t SELECT id + 10, p FROM t")
    sql("DELETE FROM t WHERE id = 10")
    table = identifier(sql, "t")
    rows = sql("SELECT * FROM t ORDER BY id")

    report = maintain(sqlite_server, table)
    second = maintain(sqlite_server, table)

    (job,) = report.jobs
    assert (job.job, job.ending.state) == (Job.EXPIRE_SNAPSHOTS, JobState.DONE)
    assert job.ending.figures["snapshots-expired"] == 7
    assert "it was done a while ago" in second.left[Job.EXPIRE_SNAPSHOTS]
    sql("REFRESH TABLE t")
    assert sql("SELECT * FROM t ORDER BY id") == rows
    assert sql.one("SELECT count(*) FROM our.t.snapshots") == 1
    named = {Path(path_of(file)) for file in sql.column("SELECT file_path FROM our.t.all_files")}
    assert all(file.exists() for file in named)


@pytest.mark.parametrize("version", [2, 3])
def test_whole_policy_leaves_the_rows_as_they_are(sql: Sql, sqlite_server: str, version: int) -> None:
    """`recommended` does all that needs no Spark, and the table reads as before, with fewer files to look at."""
    sql(
        "CREATE TABLE t (id int, p int) USING iceberg PARTITIONED BY (p) TBLPROPERTIES ("
        f"'format-version' = '{version}',"
        " 'commit.manifest-merge.enabled' = 'false', 'write.delete.mode' = 'merge-on-read',"
        " 'icetower.maintenance' = 'recommended')"
    )
    insert(sql, "t", 15)
    sql("DELETE FROM t WHERE id IN (3, 4)")
    rows = sql("SELECT * FROM t ORDER BY id")
    before = sql.one("SELECT count(*) FROM our.t.manifests")

    report = maintain(sqlite_server, identifier(sql, "t"))

    assert report.is_fine
    done = {job.job: job.ending.state for job in report.jobs}
    assert done[Job.REWRITE_MANIFESTS] is JobState.DONE
    assert done[Job.PARTITION_STATISTICS] is JobState.DONE
    sql("REFRESH TABLE t")
    assert sql("SELECT * FROM t ORDER BY id") == rows
    assert sql.one("SELECT count(*) FROM our.t.manifests") < before
    metadata = sql.metadata("t")
    assert metadata["partition-statistics"]
    with RemoteCatalog(sqlite_server) as catalog:
        jobs = {job["job"]: job for job in catalog.maintenance.jobs(identifier(sql, "t"))}
    assert jobs["rewrite-manifests"]["outcome"]["snapshot-ids"] == [metadata["current-snapshot-id"]]
