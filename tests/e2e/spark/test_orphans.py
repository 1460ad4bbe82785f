"""F23, orphan files: the server's answer is what Iceberg's own `remove_orphan_files` answers on the same table."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.builders.folders import files_below
from tests.e2e.spark.test_expiry import FAR_AHEAD_MS, folder_of, make_history
from tests.servers.spark import Sql, nightly, path_of

pytestmark = pytest.mark.spark

DAY_S = 24 * 3600.0
JUNK = (
    "data/left.parquet",
    "data/deep/er/left.parquet",
    "metadata/left-m0.avro",
    "metadata/snap-1-1-left.avro",
    "metadata/00009-left.metadata.json",
    "metadata/left.stats",
    "elsewhere/left.txt",
    "data/with%20percent.parquet",
    "data/with space.parquet",
    "data/grüße.parquet",
)
HIDDEN = ("data/_temporary/0/left.parquet", "data/.left.parquet.crc", "metadata/_left.avro")


def write(folder: Path, name: str) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"left")
    return str(path)


def make_old(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            then = path.stat().st_mtime - 10 * DAY_S
            os.utime(path, (then, then))


def found_by_server(sql: Sql, table: str, **wish: Any) -> set[str]:
    lines = orphans(sql, table, {"accept": "application/x-ndjson"}, **wish).text.splitlines()
    return {str(path_of(json.loads(line)["file_path"])) for line in lines}


def orphans(sql: Sql, table: str, headers: dict[str, str] | None = None, **wish: Any) -> httpx.Response:
    body = {name.replace("_", "-"): value for name, value in wish.items()}
    answer = httpx.post(address_of(sql, table, "orphans"), json=body, headers=headers, timeout=120)
    assert answer.status_code == 200, answer.text
    return answer


def address_of(sql: Sql, table: str, what: str) -> str:
    address = sql.spark.conf.get(f"spark.sql.catalog.{sql.catalog}.uri")
    return f"{address}/v1/namespaces/{sql.namespace}/tables/{table}/{what}"


def found_by_spark(sql: Sql, table: str, *more: str) -> set[str]:
    arguments = ", ".join([f"table => 'our.{table}'", "dry_run => true", *more])
    return {str(path_of(row[0])) for row in sql(f"CALL system.remove_orphan_files({arguments})")}


@pytest.mark.parametrize("version", [nightly(1), nightly(2), 3])
def test_f23_the_servers_answer_is_that_of_remove_orphan_files(sql: Sql, version: int) -> None:
    make_history(sql, "t", version)
    folder = folder_of(sql, "t")
    expected = {write(folder, name) for name in JUNK}
    for name in HIDDEN:
        write(folder, name)
    make_old(folder)
    write(folder, "data/young.parquet")

    assert found_by_spark(sql, "t") == expected
    assert found_by_server(sql, "t") == expected


def test_f23_marked_orphans_are_deleted_and_the_table_reads_on(sql: Sql) -> None:
    make_history(sql, "t", 2)
    folder = folder_of(sql, "t")
    left = {write(folder, name) for name in JUNK}
    make_old(folder)
    rows, before = sql("SELECT * FROM t ORDER BY number, word"), files_in(folder)

    report = orphans(sql, "t", dry_run=False, grace_period_ms=0).json()

    assert report["orphan-files"] == len(left)
    wait_until_there_are_only(folder, before - left)
    sql("REFRESH TABLE t")
    assert sql("SELECT * FROM t ORDER BY number, word") == rows
    assert found_by_spark(sql, "t") == set()


def test_f23_a_listing_that_spark_made_is_as_good_as_the_servers_own(sql: Sql) -> None:
    sql("CREATE TABLE t (number int) USING iceberg")
    sql("INSERT INTO t VALUES (1)")
    folder = folder_of(sql, "t")
    expected = {write(folder, name) for name in JUNK}
    make_old(folder)
    (
        sql.spark.read.format("binaryFile")
        .option("recursiveFileLookup", "true")
        .load(str(folder))
        .selectExpr("path AS file_path", "modificationTime AS last_modified")
        .write.parquet(f"{folder}/listing")
    )

    named = found_by_server(sql, "t", file_list=f"{folder}/listing")

    assert named == expected == found_by_server(sql, "t")


def test_f23_what_the_server_found_is_a_file_list_view_for_spark(sql: Sql, tmp_path: Path) -> None:
    sql("CREATE TABLE t (number int) USING iceberg")
    sql("INSERT INTO t VALUES (1)")
    folder = folder_of(sql, "t")
    expected = {write(folder, name) for name in JUNK}
    make_old(folder)
    lines = orphans(sql, "t", {"accept": "application/x-ndjson"}).text
    (tmp_path / "orphans.json").write_text(lines)
    (
        sql.spark.read.schema("file_path string, last_modified timestamp")
        .json(str(tmp_path / "orphans.json"))
        .createOrReplaceTempView("found_orphans")
    )

    assert found_by_spark(sql, "t", "file_list_view => 'found_orphans'") == expected


def test_f23_files_of_another_table_stay_though_remove_orphan_files_would_take_them(sql: Sql) -> None:
    """A table takes in files from another one's folder: the procedure knows only its own table."""
    sql("CREATE TABLE t (number int) USING iceberg")
    sql("INSERT INTO t VALUES (1)")
    sql("CREATE TABLE other (number int) USING iceberg TBLPROPERTIES ('icetower.guard' = 'warn')")
    folder = folder_of(sql, "t")
    sql.spark.range(3).selectExpr("CAST(id AS int) AS number").coalesce(1).write.parquet(f"{folder}/imported")
    sql(f"CALL system.add_files(table => 'our.other', source_table => '`parquet`.`{folder}/imported`')")
    make_old(folder)
    (imported,) = (str(path) for path in (folder / "imported").glob("*.parquet"))

    assert found_by_spark(sql, "t") == {imported}
    assert found_by_server(sql, "t") == set()


def test_f23_what_may_come_back_stays_though_remove_orphan_files_would_take_it(sql: Sql) -> None:
    sql("CREATE TABLE t (number int) USING iceberg")
    sql("INSERT INTO t VALUES (1)")
    sql("INSERT OVERWRITE t VALUES (2)")
    folder = folder_of(sql, "t")
    version = write(folder, "metadata/v3.metadata.json")
    before = files_in(folder)
    expiry = {"older-than-ms": FAR_AHEAD_MS, "retain-last": 1, "grace-period-ms": 3_600_000}
    expired = httpx.post(address_of(sql, "t", "expire"), json=expiry)
    assert expired.json()["files-deleted-after-ms"]
    sql("CREATE TABLE inside (number int) USING iceberg LOCATION " + f"'{folder}/inside'")
    sql("INSERT INTO inside VALUES (1)")
    make_old(folder)
    sql("REFRESH TABLE t")
    inside = files_in(folder / "inside")

    taken = found_by_spark(sql, "t")

    assert version in taken
    assert inside <= taken
    assert any(path.endswith(".parquet") for path in taken - inside)
    assert taken - inside <= before
    assert found_by_server(sql, "t") == set()


def files_in(folder: Path) -> set[str]:
    return {str(path) for path in files_below(folder) if not path.name.startswith(".")}


def wait_until_there_are_only(folder: Path, expected: set[str]) -> None:
    deadline = time.monotonic() + 60
    while files_in(folder) != expected and time.monotonic() < deadline:
        time.sleep(0.05)
    assert files_in(folder) == expected
