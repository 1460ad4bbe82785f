"""Two tables with one history: what the server leaves of one is what Iceberg's own procedure leaves of the other."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.builders.folders import files_below
from tests.servers.spark import Sql, path_of

pytestmark = pytest.mark.spark

FAR_AHEAD_MS = 4_102_444_800_000
KINDS = (
    "data-files",
    "position-delete-files",
    "equality-delete-files",
    "manifests",
    "manifest-lists",
    "statistics-files",
)


def make_history(sql: Sql, table: str, version: int) -> None:
    """Appends, row-level deletes, a rewrite, an overwrite, a branch, tags, statistics, another spec."""
    mode = "merge-on-read" if version > 1 else "copy-on-write"
    sql(
        f"CREATE TABLE {table} (number int, word string) USING iceberg TBLPROPERTIES"
        f" ('format-version' = '{version}', 'write.delete.mode' = '{mode}',"
        " 'commit.manifest.min-count-to-merge' = '4')"
    )
    for number in (0, 10, 20):
        ten = f"SELECT /*+ COALESCE(1) */ CAST(id AS int), 'w' FROM range({number}, {number + 10})"
        sql(f"INSERT INTO {table} {ten}")
    sql(f"CALL system.compute_table_stats('our.{table}')")
    sql(f"ALTER TABLE {table} CREATE TAG kept")
    sql(f"DELETE FROM {table} WHERE number IN (3, 13)")
    sql(f"ALTER TABLE {table} CREATE BRANCH audit")
    sql(f"INSERT INTO our.{table}.branch_audit VALUES (100, 'audited')")
    sql(f"INSERT INTO our.{table}.branch_audit VALUES (101, 'audited')")
    sql(f"CALL system.rewrite_data_files(table => 'our.{table}', options => map('rewrite-all', 'true'))")
    sql(f"CALL system.compute_table_stats('our.{table}')")
    sql(f"ALTER TABLE {table} ADD PARTITION FIELD bucket(2, number)")
    sql(f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ CAST(id AS int), 'p' FROM range(40, 44)")
    sql(f"CALL system.rewrite_manifests(table => 'our.{table}', use_caching => false)")
    sql(f"DELETE FROM {table} WHERE number >= 20 AND number < 30")
    sql(f"INSERT INTO {table} VALUES (7, 'last')")
    sql(f"INSERT INTO {table} VALUES (8, 'last')")


def folder_of(sql: Sql, table: str) -> Path:
    return path_of(sql.metadata(table)["location"])


def left_over(folder: Path) -> Counter[str]:
    """Count the files of each kind; names of engines' files tell what they are."""
    counts: Counter[str] = Counter()
    for file in files_below(folder):
        if file.name.startswith(".") or file.name.endswith(".metadata.json"):
            continue
        if file.name.startswith("snap-"):
            counts["manifest-lists"] += 1
        elif file.suffix == ".avro":
            counts["manifests"] += 1
        elif file.suffix in (".stats", ".puffin") and file.parent.name == "metadata":
            counts["statistics-files"] += 1
        else:
            counts["deletes" if "deletes" in file.name else "data-files"] += 1
    return counts


def expire_by_spark(sql: Sql, table: str, retain_last: int) -> dict[str, int]:
    row = sql(
        f"CALL system.expire_snapshots(table => 'our.{table}', older_than => TIMESTAMP '2100-01-01 00:00:00',"
        f" retain_last => {retain_last})"
    )[0]
    return dict(zip(KINDS, row, strict=True))


def expire_by_server(url: str, sql: Sql, table: str, retain_last: int) -> dict[str, int]:
    path = f"{url}/v1/namespaces/{sql.namespace}/tables/{table}/expire"
    body: dict[str, Any] = {"older-than-ms": FAR_AHEAD_MS, "retain-last": retain_last, "grace-period-ms": 0}
    told = httpx.post(path, json=body | {"dry-run": True}, timeout=60).json()
    done = httpx.post(path, json=body, timeout=60)
    assert done.status_code == 200, done.text
    assert done.json()["snapshots"] == told["snapshots"]
    return {kind: told["files"][kind]["count"] for kind in KINDS}


def wait_for(folder: Path, expected: Counter[str]) -> None:
    deadline = time.monotonic() + 60
    while left_over(folder) != expected and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left_over(folder) == expected


@pytest.mark.parametrize(("version", "retain_last"), [(1, 1), (2, 3), (3, 1)])
def test_server_leaves_what_sparks_procedure_leaves(
    sql: Sql, sqlite_server: str, version: int, retain_last: int
) -> None:
    for table in ("by_spark", "by_server"):
        make_history(sql, table, version)
    folders = {table: folder_of(sql, table) for table in ("by_spark", "by_server")}
    assert left_over(folders["by_spark"]) == left_over(folders["by_server"])
    rows = {
        name: sorted(sql(f"SELECT * FROM our.by_server{name}")) for name in ("", ".branch_audit", ".tag_kept")
    }

    deleted_by_spark = expire_by_spark(sql, "by_spark", retain_last)
    told_by_server = expire_by_server(sqlite_server, sql, "by_server", retain_last)

    assert told_by_server == deleted_by_spark
    wait_for(folders["by_server"], left_over(folders["by_spark"]))
    sql("REFRESH TABLE by_server")
    for name, expected in rows.items():
        assert sorted(sql(f"SELECT * FROM our.by_server{name}")) == expected
    counts = [sql.one(f"SELECT count(*) FROM our.{table}.snapshots") for table in folders]
    assert counts[0] == counts[1]
    operations = [
        sql.column(f"SELECT operation FROM our.{table}.snapshots ORDER BY committed_at") for table in folders
    ]
    assert operations[0] == operations[1]
