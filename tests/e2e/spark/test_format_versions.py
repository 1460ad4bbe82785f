"""Tables of format versions 1, 2 and 3, and their upgrades."""

from __future__ import annotations

import pytest

from tests.servers.spark import Sql

pytestmark = pytest.mark.spark


def format_version(sql: Sql, table: str) -> str:
    return str(sql(f"SHOW TBLPROPERTIES {table} ('format-version')")[0][1])


def test_tables_are_version_2_unless_told_otherwise(sql: Sql) -> None:
    sql("CREATE TABLE usual (id int) USING iceberg")
    for version in "123":
        sql(f"CREATE TABLE v{version} (id int) USING iceberg TBLPROPERTIES ('format-version' = '{version}')")

    assert [format_version(sql, table) for table in ("usual", "v1", "v2", "v3")] == ["2", "1", "2", "3"]


def test_upgrade_from_1_to_2_to_3_keeps_rows_and_old_snapshots_readable(sql: Sql) -> None:
    sql("CREATE TABLE t (id bigint, word string) USING iceberg TBLPROPERTIES ('format-version' = '1')")
    sql("INSERT INTO t SELECT id, 'v1' FROM range(10)")
    first = sql.one("SELECT snapshot_id FROM our.t.snapshots")

    sql("ALTER TABLE t SET TBLPROPERTIES ('format-version' = '2', 'write.delete.mode' = 'merge-on-read')")
    sql("INSERT INTO t SELECT id, 'v2' FROM range(10, 20)")
    sql("DELETE FROM t WHERE id IN (3, 13)")
    assert sql.column("SELECT DISTINCT file_format FROM our.t.delete_files") == ["PARQUET"]

    sql("ALTER TABLE t SET TBLPROPERTIES ('format-version' = '3')")
    sql("INSERT INTO t SELECT id, 'v3' FROM range(20, 30)")
    sql("DELETE FROM t WHERE id IN (5, 25)")

    assert format_version(sql, "t") == "3"
    assert sql("SELECT count(*), sum(id) FROM t") == [(26, sum(range(30)) - 3 - 13 - 5 - 25)]
    assert sql.one(f"SELECT count(*) FROM t VERSION AS OF {first}") == 10
    numbers = sql.column(
        "SELECT sequence_number FROM our.t.all_entries WHERE status = 1 AND data_file.content = 0"
    )
    assert sorted(set(numbers)) == [0, 1, 3]


def test_downgrade_is_refused_and_changes_nothing(sql: Sql) -> None:
    sql("CREATE TABLE t (id int) USING iceberg TBLPROPERTIES ('format-version' = '2')")

    message = sql.fails("ALTER TABLE t SET TBLPROPERTIES ('format-version' = '1')")

    assert "Cannot downgrade v2 table to v1" in message
    assert format_version(sql, "t") == "2"


def test_version_3_marks_deleted_rows_with_one_deletion_vector_a_data_file(sql: Sql) -> None:
    sql(
        "CREATE TABLE t (id bigint) USING iceberg TBLPROPERTIES ('format-version' = '3',"
        " 'write.delete.mode' = 'merge-on-read')"
    )
    sql("INSERT INTO t SELECT /*+ COALESCE(1) */ id FROM range(100)")

    for remainder in (1, 2):
        sql(f"DELETE FROM t WHERE id % 10 = {remainder}")

    assert sql("SELECT file_format, record_count FROM our.t.delete_files") == [("PUFFIN", 20)]
    assert sql("SELECT count(*), sum(id) FROM t") == [
        (80, 4950 - sum(number for number in range(100) if number % 10 in (1, 2)))
    ]


def test_version_3_rows_keep_their_ids_through_changes(sql: Sql) -> None:
    sql(
        "CREATE TABLE t (id bigint, word string) USING iceberg TBLPROPERTIES ('format-version' = '3',"
        " 'write.update.mode' = 'copy-on-write')"
    )
    sql("INSERT INTO t SELECT /*+ COALESCE(1) */ id, 'old' FROM range(5)")
    sql("INSERT INTO t SELECT /*+ COALESCE(1) */ id, 'old' FROM range(5, 8)")

    sql("UPDATE t SET word = 'new' WHERE id = 6")

    lineage = sql("SELECT id, _row_id, word, _last_updated_sequence_number FROM t ORDER BY id")
    assert lineage == [
        *((number, number, "old", 1) for number in range(5)),
        (5, 5, "old", 2),
        (6, 6, "new", 3),
        (7, 7, "old", 2),
    ]


def test_version_3_rows_of_an_upgraded_table_get_ids_when_next_written(sql: Sql) -> None:
    sql("CREATE TABLE t (id bigint) USING iceberg TBLPROPERTIES ('format-version' = '2')")
    sql("INSERT INTO t SELECT /*+ COALESCE(1) */ id FROM range(4)")
    sql("ALTER TABLE t SET TBLPROPERTIES ('format-version' = '3')")
    assert sql.column("SELECT _row_id FROM t") == [None] * 4

    sql("INSERT INTO t SELECT /*+ COALESCE(1) */ id FROM range(4, 6)")

    row_ids = sql.column("SELECT _row_id FROM t")
    assert sorted(row_ids) == list(range(6))
