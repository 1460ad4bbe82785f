"""Spark reads yesterday's catalog beside today's, and what was dropped comes back with every row."""

from __future__ import annotations

import time
from typing import Any

import httpx
import pytest

from tests.servers.spark import Sql, add_catalog

pytestmark = pytest.mark.spark


@pytest.fixture
def server(sqlite_server: str) -> str:
    return f"{sqlite_server}/v1"


def moment() -> str:
    """Return a time after all that was done, once it has passed."""
    then_ms = time.time_ns() // 1_000_000 + 1
    while time.time_ns() // 1_000_000 <= then_ms:
        pass
    return str(then_ms)


def mounted(sql: Sql, server: str, name: str, at: str) -> str:
    """Mount the warehouse as it was under a name of its own, and return the test's namespace in it."""
    add_catalog(sql.spark, name, server.removesuffix("/v1"), warehouse=f"default@{at}", cache_enabled="false")
    return f"{name}.{sql.namespace}"


def post(server: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = httpx.post(f"{server}/{path}", json=body, timeout=60)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_yesterday_stands_beside_today(sql: Sql, server: str) -> None:
    sql("CREATE TABLE sales (id BIGINT, amount INT) TBLPROPERTIES ('stage' = 'one')")
    sql("INSERT INTO sales VALUES (1, 10), (2, 20)")
    sql("CREATE TABLE gone (id BIGINT)")
    sql("INSERT INTO gone VALUES (7)")
    sql("CREATE VIEW totals AS SELECT sum(amount) AS total FROM sales")
    then = moment()
    sql("ALTER TABLE sales ADD COLUMN region STRING")
    sql("UPDATE sales SET amount = 11, region = 'eu' WHERE id = 1")
    sql("INSERT INTO sales VALUES (3, 30, 'us')")
    sql("DROP TABLE gone")
    sql("DROP VIEW totals")
    sql(f"ALTER TABLE sales RENAME TO {sql.namespace}.orders")

    was = mounted(sql, server, "yesterday", then)

    assert {row[1] for row in sql(f"SHOW TABLES IN {was}")} == {"sales", "gone"}
    assert {name for _, name, is_temporary in sql(f"SHOW VIEWS IN {was}") if not is_temporary} == {"totals"}
    assert sql(f"SELECT * FROM {was}.sales ORDER BY id") == [(1, 10), (2, 20)]
    assert sql(f"SELECT * FROM {was}.gone") == [(7,)]
    joined = f"""
        SELECT now.id, then.amount, now.amount FROM orders now
        LEFT JOIN {was}.sales then ON then.id = now.id ORDER BY now.id
    """
    assert sql(joined) == [(1, 10, 11), (2, 20, 20), (3, None, 30)]
    assert sql(f"SELECT count(*) FROM {was}.sales.snapshots") == [(1,)]


def test_past_takes_no_change(sql: Sql, server: str) -> None:
    sql("CREATE TABLE t (id BIGINT)")
    sql("INSERT INTO t VALUES (1)")
    was = mounted(sql, server, "frozen", moment())
    sql("INSERT INTO t VALUES (2)")

    for statement in (
        f"INSERT INTO {was}.t VALUES (3)",
        f"DELETE FROM {was}.t",
        f"ALTER TABLE {was}.t SET TBLPROPERTIES ('k' = 'v')",
        f"DROP TABLE {was}.t",
        f"DROP TABLE {was}.t PURGE",
        f"CREATE TABLE {was}.u (id BIGINT)",
        f"CREATE NAMESPACE {was}.n",
        f"ALTER TABLE {was}.t RENAME TO {sql.namespace}.u",
    ):
        said = sql.fails(statement)
        assert any(word in said for word in ("read-only", "does not support endpoint", "GC is disabled")), (
            said
        )
    # From there, the files of the second row look like orphans: Spark must not delete them.
    said = sql.fails(
        f"CALL frozen.system.remove_orphan_files(table => '{sql.namespace}.t', "
        "older_than => TIMESTAMP '2000-01-01 00:00:00')"
    )
    assert "GC is disabled" in said

    assert sql("SELECT id FROM t ORDER BY id") == [(1,), (2,)]
    assert sql(f"SELECT id FROM {was}.t") == [(1,)]


def test_files_that_have_gone_are_spoken_of_plainly(sql: Sql, server: str) -> None:
    sql("CREATE TABLE t (id BIGINT)")
    sql("INSERT INTO t VALUES (1)")
    was = mounted(sql, server, "emptied", moment())
    sql("INSERT OVERWRITE t VALUES (2)")
    far = "TIMESTAMP '2999-01-01 00:00:00'"
    sql(f"CALL tower.system.expire_snapshots(table => '{sql.namespace}.t', older_than => {far})")

    said = sql.fails(f"SELECT * FROM {was}.t")

    assert "have been deleted since" in said


def test_dropped_table_comes_back_with_every_row(sql: Sql, server: str) -> None:
    sql("CREATE TABLE t (id BIGINT, note STRING) TBLPROPERTIES ('owner-team' = 'lake')")
    sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    sql("DELETE FROM t WHERE id = 2")
    before = sql("SELECT snapshot_id FROM our.t.snapshots ORDER BY committed_at")
    sql("DROP TABLE t")
    sql("CREATE TABLE t (other STRING)")

    refused = httpx.post(f"{server}/undrop", json={"namespace": [sql.namespace], "name": "t"})
    assert refused.status_code == 409
    assert "Bring it back under another name" in refused.json()["error"]["message"]
    post(server, "undrop", {"namespace": [sql.namespace], "name": "t", "as": {"name": "back"}})

    assert sql("SELECT * FROM back") == [(1, "a")]
    assert sql("SELECT snapshot_id FROM our.back.snapshots ORDER BY committed_at") == before
    sql("INSERT INTO back VALUES (3, 'c')")
    assert sql.one("SELECT count(*) FROM back") == 2
    assert dict(sql("SHOW TBLPROPERTIES back"))["owner-team"] == "lake"


def test_tables_are_restored_together(sql: Sql, server: str) -> None:
    for table in ("orders", "lines"):
        sql(f"CREATE TABLE {table} (id BIGINT, amount INT) PARTITIONED BY (bucket(2, id))")
        sql(f"INSERT INTO {table} VALUES (1, 10), (2, 20)")
    then = moment()
    for table in ("orders", "lines"):
        if table == "lines":
            sql("ALTER TABLE lines DROP COLUMN amount")
        sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('spoiled' = 'yes')")
        sql(f"DELETE FROM {table} WHERE id = 1")
    identifiers = [{"namespace": [sql.namespace], "name": name} for name in ("orders", "lines")]

    post(server, "restore", {"at": then, "tables": identifiers})

    for table in ("orders", "lines"):
        sql(f"REFRESH TABLE {table}")
        assert sql(f"SELECT * FROM {table} ORDER BY id") == [(1, 10), (2, 20)], table
        assert "spoiled" not in dict(sql(f"SHOW TBLPROPERTIES {table}"))
        sql(f"INSERT INTO {table} VALUES (3, 30)")
        assert sql.one(f"SELECT count(*) FROM {table}") == 3
    changed = httpx.get(f"{server}/diff", params={"from": then}).json()["names"]
    ours = [each for each in changed if each["after"]["namespace"] == [sql.namespace]]
    assert [(each["before"]["rows"], each["after"]["rows"]) for each in ours] == [(2, 3), (2, 3)]


def test_spark_purges_by_itself_and_that_is_said_plainly(sql: Sql, server: str) -> None:
    sql("CREATE TABLE t (id BIGINT)")
    sql("INSERT INTO t VALUES (1)")
    sql("DROP TABLE t PURGE")

    refused = httpx.post(f"{server}/undrop", json={"namespace": [sql.namespace], "name": "t"})

    assert refused.status_code == 410
    assert "DROP TABLE … PURGE" in refused.json()["error"]["message"]
