"""DELETE, UPDATE and MERGE, rewriting files (copy-on-write) and marking rows (merge-on-read)."""

from __future__ import annotations

import pytest

from tests.servers.spark import Sql

pytestmark = pytest.mark.spark

MODES = pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])


def make_accounts(sql: Sql, mode: str) -> None:
    """A hundred accounts over two regions in two files; account n holds 10 n."""
    sql(
        "CREATE TABLE accounts (id bigint, region string, balance bigint) USING iceberg PARTITIONED BY (region)"
        f" TBLPROPERTIES ('write.delete.mode'='{mode}', 'write.update.mode'='{mode}', 'write.merge.mode'='{mode}')"
    )
    sql("INSERT INTO accounts SELECT id, if(id < 50, 'north', 'south'), id * 10 FROM range(100)")


def files(sql: Sql) -> tuple[int, int]:
    """Count data files and delete files of the current snapshot."""
    return sql.one("SELECT count(*) FROM our.accounts.data_files"), sql.one(
        "SELECT count(*) FROM our.accounts.delete_files"
    )


@MODES
def test_delete_of_some_rows(sql: Sql, mode: str) -> None:
    make_accounts(sql, mode)

    sql("DELETE FROM accounts WHERE id % 10 = 3")

    assert sql("SELECT count(*), sum(balance) FROM accounts") == [(90, 49500 - 4800)]
    assert files(sql) == ((2, 0) if mode == "copy-on-write" else (2, 2))
    operation = sql.one("SELECT operation FROM our.accounts.snapshots ORDER BY committed_at DESC LIMIT 1")
    assert operation == ("overwrite" if mode == "copy-on-write" else "delete")


@MODES
def test_delete_of_a_whole_partition_touches_no_file_in_either_mode(sql: Sql, mode: str) -> None:
    make_accounts(sql, mode)

    sql("DELETE FROM accounts WHERE region = 'north'")

    assert sql("SELECT count(*), min(id) FROM accounts") == [(50, 50)]
    assert files(sql) == (1, 0)
    assert sql.column("SELECT operation FROM our.accounts.snapshots ORDER BY committed_at") == [
        "append",
        "delete",
    ]


@MODES
def test_update_of_some_rows(sql: Sql, mode: str) -> None:
    make_accounts(sql, mode)

    sql("UPDATE accounts SET balance = balance + 1, region = 'south' WHERE region = 'north' AND id >= 40")

    assert sql("SELECT region, count(*), sum(balance) FROM accounts GROUP BY region ORDER BY region") == [
        ("north", 40, sum(range(40)) * 10),
        ("south", 60, sum(range(40, 100)) * 10 + 10),
    ]
    data_files, delete_files = files(sql)
    assert (data_files, delete_files) == ((3, 0) if mode == "copy-on-write" else (3, 1))


@MODES
def test_merge_updates_deletes_and_inserts(sql: Sql, mode: str) -> None:
    make_accounts(sql, mode)
    sql(
        "CREATE OR REPLACE TEMPORARY VIEW changes AS SELECT id, id % 3 = 0 AS closed, 1000L AS balance"
        " FROM range(90, 110)"
    )

    sql(
        "MERGE INTO accounts a USING changes c ON a.id = c.id"
        " WHEN MATCHED AND c.closed THEN DELETE"
        " WHEN MATCHED THEN UPDATE SET a.balance = c.balance"
        " WHEN NOT MATCHED AND NOT c.closed THEN INSERT (id, region, balance) VALUES (c.id, 'west', c.balance)"
        " WHEN NOT MATCHED BY SOURCE AND a.id = 0 THEN UPDATE SET a.region = 'zero'"
    )

    open_changes = [number for number in range(90, 110) if number % 3]
    untouched = range(90)
    assert sql("SELECT count(*), sum(balance) FROM accounts") == [
        (len(untouched) + len(open_changes), sum(untouched) * 10 + len(open_changes) * 1000)
    ]
    assert sql.one("SELECT count(*) FROM accounts WHERE region = 'west'") == len(
        [n for n in open_changes if n > 99]
    )
    assert sql("SELECT id FROM accounts WHERE region = 'zero'") == [(0,)]
    assert (files(sql)[1] == 0) == (mode == "copy-on-write")


def test_merge_with_two_matches_for_one_row_changes_nothing(sql: Sql) -> None:
    make_accounts(sql, "merge-on-read")

    message = sql.fails(
        "MERGE INTO accounts a USING (SELECT 7 AS id FROM range(2)) c ON a.id = c.id"
        " WHEN MATCHED THEN UPDATE SET a.balance = 0"
    )

    assert "MERGE statement" in message or "cardinality" in message.lower()
    assert sql.one("SELECT balance FROM accounts WHERE id = 7") == 70
    assert sql.one("SELECT count(*) FROM our.accounts.snapshots") == 1


def test_summary_adds_up_over_every_kind_of_change(sql: Sql) -> None:
    make_accounts(sql, "merge-on-read")
    sql("DELETE FROM accounts WHERE id = 1")
    sql("UPDATE accounts SET balance = 0 WHERE id IN (2, 52)")
    sql("INSERT INTO accounts VALUES (100, 'north', 1)")

    summaries = sql.column("SELECT summary FROM our.accounts.snapshots ORDER BY committed_at")

    told = [
        (
            summary["total-records"],
            summary["total-position-deletes"],
            summary["total-data-files"],
            summary["total-delete-files"],
        )
        for summary in summaries
    ]
    assert told == [
        ("100", "0", "2", "0"),
        ("100", "1", "2", "1"),
        ("102", "3", "4", "2"),
        ("103", "3", "5", "2"),
    ]
    assert sql.one("SELECT count(*) FROM accounts") == 100
