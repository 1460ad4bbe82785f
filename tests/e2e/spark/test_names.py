"""Namespaces, and what happens to names of tables: rename, register, drop, purge."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.builders.folders import files_below
from tests.e2e.patience import wait_until
from tests.servers.spark import Sql, add_catalog, path_of

pytestmark = pytest.mark.spark


def location_of(sql: Sql, table: str) -> Path:
    return path_of(
        next(text for name, text, _ in sql(f"DESCRIBE TABLE EXTENDED {table}") if name == "Location")
    )


def files_in(folder: Path) -> set[Path]:
    return (
        {file for file in folder.rglob("*") if file.is_file() and file.suffix != ".crc"}
        if folder.exists()
        else set()
    )


def test_namespaces_nest_and_carry_properties(sql: Sql) -> None:
    sql(f"CREATE NAMESPACE {sql.namespace}.inner COMMENT 'within' WITH PROPERTIES ('team' = 'ice')")
    sql(f"ALTER NAMESPACE {sql.namespace}.inner SET PROPERTIES ('team' = 'tower', 'floor' = '3')")
    sql(f"CREATE TABLE {sql.namespace}.inner.t (id int) USING iceberg")
    sql(f"INSERT INTO {sql.namespace}.inner.t VALUES (1)")

    described = dict(sql(f"DESCRIBE NAMESPACE EXTENDED {sql.namespace}.inner"))
    assert described["Comment"] == "within"
    assert "(team,tower)" in described["Properties"]
    assert "(floor,3)" in described["Properties"]
    assert sql.column(f"SHOW NAMESPACES IN {sql.namespace}") == [f"{sql.namespace}.inner"]
    assert sql.one(f"SELECT id FROM {sql.namespace}.inner.t") == 1
    assert sql("SHOW TABLES") == []


def test_only_an_empty_namespace_is_dropped(sql: Sql) -> None:
    sql(f"CREATE NAMESPACE {sql.namespace}.inner")
    sql(f"CREATE TABLE {sql.namespace}.inner.t (id int) USING iceberg")

    assert "not empty" in sql.fails(f"DROP NAMESPACE {sql.namespace}.inner")

    sql(f"DROP TABLE {sql.namespace}.inner.t")
    sql(f"DROP NAMESPACE {sql.namespace}.inner")
    assert sql(f"SHOW NAMESPACES IN {sql.namespace}") == []
    sql(f"DROP NAMESPACE IF EXISTS {sql.namespace}.inner")


@pytest.mark.parametrize(
    "name", ["dots.in.it", "a slash/or two", "plus+and%percent", "ice 🧊", "ÄÖÜ", "SELECT"]
)
def test_any_name_survives(sql: Sql, name: str) -> None:
    sql(f"CREATE NAMESPACE {sql.namespace}.`{name}`")
    sql(f"CREATE TABLE {sql.namespace}.`{name}`.`{name}` (id int) USING iceberg")
    sql(f"INSERT INTO {sql.namespace}.`{name}`.`{name}` VALUES (7)")

    assert sql.one(f"SELECT id FROM {sql.namespace}.`{name}`.`{name}`") == 7
    assert [row[1] for row in sql(f"SHOW TABLES IN {sql.namespace}.`{name}`")] == [name]
    assert sql.one(f"SELECT count(*) FROM {sql.namespace}.`{name}`.`{name}`.snapshots") == 1


def test_rename_keeps_files_and_history_across_namespaces(sql: Sql) -> None:
    sql(f"CREATE NAMESPACE {sql.namespace}_other")
    sql("CREATE TABLE t (id int) USING iceberg")
    sql("INSERT INTO t VALUES (1)")
    location, snapshots = location_of(sql, "t"), sql("SELECT * FROM our.t.snapshots")

    sql(f"ALTER TABLE t RENAME TO {sql.namespace}_other.u")
    moved = f"{sql.catalog}.{sql.namespace}_other.u"

    assert location_of(sql, moved) == location
    assert sql(f"SELECT * FROM {moved}.snapshots") == snapshots
    assert sql("SHOW TABLES") == []
    sql(f"INSERT INTO {moved} VALUES (2)")
    assert sql.one(f"SELECT sum(id) FROM {moved}") == 3


def test_rename_to_a_taken_or_homeless_name_is_refused(sql: Sql) -> None:
    sql("CREATE TABLE t USING iceberg AS SELECT 1 AS id")
    sql("CREATE TABLE u USING iceberg AS SELECT 2 AS id")

    assert "already exists" in sql.fails("ALTER TABLE t RENAME TO u").lower()
    sql.fails("ALTER TABLE t RENAME TO nowhere.t")

    assert [sql.one("SELECT id FROM t"), sql.one("SELECT id FROM u")] == [1, 2]


def test_drop_leaves_files_and_register_brings_the_table_back(sql: Sql) -> None:
    sql("CREATE TABLE t USING iceberg AS SELECT id FROM range(10)")
    sql("INSERT INTO t VALUES (10)")
    snapshots = sql("SELECT * FROM our.t.snapshots ORDER BY committed_at")
    newest = sql.one("SELECT file FROM our.t.metadata_log_entries ORDER BY timestamp DESC, file DESC LIMIT 1")
    files = files_in(location_of(sql, "t"))

    sql("DROP TABLE t")
    assert files_in(next(iter(files)).parents[1]) == files
    ((current, records, data_files),) = sql(
        f"CALL system.register_table(table => '{sql.namespace}.again', metadata_file => '{newest}')"
    )

    assert (current, records, data_files) == (
        snapshots[-1][1],
        11,
        sql.one("SELECT count(*) FROM our.again.files"),
    )
    assert sql("SELECT * FROM our.again.snapshots ORDER BY committed_at") == snapshots
    assert sql("SELECT count(*), sum(id) FROM again") == [(11, 55)]
    sql("INSERT INTO again VALUES (11)")
    assert sql.one("SELECT count(*) FROM again") == 12


def test_register_of_a_taken_name_or_a_missing_file_is_refused(sql: Sql) -> None:
    sql("CREATE TABLE t (id int) USING iceberg")
    newest = sql.one("SELECT file FROM our.t.metadata_log_entries")

    taken = f"CALL system.register_table('{sql.namespace}.t', '{newest}')"
    missing = f"CALL system.register_table('{sql.namespace}.u', '{newest.replace('00000', '00009')}')"

    assert "already exists" in sql.fails(taken).lower()
    sql.fails(missing)
    assert [row[1] for row in sql("SHOW TABLES")] == ["t"]


def test_drop_with_purge_deletes_every_file(sql: Sql) -> None:
    sql("CREATE TABLE t (id bigint) USING iceberg TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    sql("INSERT INTO t SELECT id FROM range(100)")
    sql("DELETE FROM t WHERE id = 3")
    sql("CREATE TABLE neighbour USING iceberg AS SELECT 1 AS id")
    folder = location_of(sql, "t")
    assert files_in(folder)

    sql("DROP TABLE t PURGE")

    assert files_in(folder) == set()
    assert sql.one("SELECT id FROM neighbour") == 1
    assert "TABLE_OR_VIEW_NOT_FOUND" in sql.fails("SELECT * FROM t")


def test_drop_with_purge_can_be_left_to_the_server(sql: Sql, sqlite_server: str) -> None:
    session = sql.spark.newSession()
    add_catalog(session, "purging", sqlite_server, rest_catalog_purge="true")
    sql("CREATE TABLE t USING iceberg AS SELECT id FROM range(10)")
    sql("INSERT INTO t VALUES (10)")
    folder = location_of(sql, "t")

    session.sql(f"DROP TABLE purging.{sql.namespace}.t PURGE")

    assert sql("SHOW TABLES") == []
    wait_until(lambda: all(file.suffix == ".crc" for file in files_below(folder)))


def test_drop_with_purge_of_a_table_that_must_not_be_collected_is_refused(sql: Sql) -> None:
    sql("CREATE TABLE t USING iceberg TBLPROPERTIES ('gc.enabled' = 'false') AS SELECT 1 AS id")
    folder = location_of(sql, "t")
    files = files_in(folder)

    sql.fails("DROP TABLE t PURGE")

    assert sql.one("SELECT id FROM t") == 1
    sql("DROP TABLE t")
    assert files_in(folder) == files


def test_two_warehouses_of_one_server_share_no_names(sql: Sql, sqlite_server: str, tmp_path: Path) -> None:
    sales = {"name": f"sales-of-{sql.namespace}", "root-location": f"file://{tmp_path}"}
    httpx.post(f"{sqlite_server}/management/v1/warehouses", json=sales).raise_for_status()
    session = sql.spark.newSession()
    add_catalog(session, "sales", sqlite_server, warehouse=sales["name"])
    session.sql(f"CREATE NAMESPACE sales.{sql.namespace}")
    theirs = Sql(session, "sales", sql.namespace)

    sql("CREATE TABLE t USING iceberg AS SELECT 1 AS id")
    theirs("CREATE TABLE our.t USING iceberg AS SELECT 2 AS id")

    assert [sql.one("SELECT id FROM t"), theirs.one("SELECT id FROM our.t")] == [1, 2]
    assert location_of(theirs, "our.t").is_relative_to(tmp_path)


@pytest.mark.parametrize("location", ["file:///somewhere/else", "/etc", "s3://elsewhere/t"])
def test_a_location_outside_the_warehouse_is_refused(sql: Sql, location: str) -> None:
    message = sql.fails(f"CREATE TABLE t (id int) USING iceberg LOCATION '{location}'")

    assert "outside" in message
    assert sql("SHOW TABLES") == []


def test_a_dropped_name_is_free_for_a_new_table_with_a_history_of_its_own(sql: Sql) -> None:
    for number in (1, 2):
        sql(f"CREATE TABLE t USING iceberg AS SELECT {number} AS id")
        assert sql("SELECT id FROM t") == [(number,)]
        assert sql.one("SELECT count(*) FROM our.t.history") == 1
        sql("DROP TABLE t")
    sql("DROP TABLE IF EXISTS t")


def test_tables_lie_at_the_folder_of_their_name(sql: Sql) -> None:
    """Also what is staged first, and made again when the folder is free."""
    sql("CREATE TABLE t (id bigint) USING iceberg")
    sql("CREATE TABLE u USING iceberg AS SELECT 1 AS id")
    sql("CREATE OR REPLACE TABLE v USING iceberg AS SELECT 1 AS id")
    sql("CREATE OR REPLACE TABLE v USING iceberg AS SELECT 2 AS id")

    found = [str(location_of(sql, name)).rpartition(f"/{sql.namespace}/")[2] for name in "tuv"]

    assert found == ["t", "u", "v"]
    assert sql.one("SELECT id FROM v") == 2
