"""Branches and tags, reading the past, and write-audit-publish."""

from __future__ import annotations

import httpx
import pytest

from tests.servers.spark import Sql

pytestmark = pytest.mark.spark


def make_numbers(sql: Sql, inserts: int = 1) -> list[int]:
    """A table with one number an insert, 0 first; answers the snapshot ids in order."""
    sql("CREATE TABLE numbers (number int) USING iceberg")
    for number in range(inserts):
        sql(f"INSERT INTO numbers VALUES ({number})")
    return sql.column("SELECT snapshot_id FROM our.numbers.snapshots ORDER BY committed_at")


def numbers_at(sql: Sql, version: str) -> list[int]:
    return sorted(sql.column(f"SELECT number FROM numbers VERSION AS OF {version}"))


def test_a_branch_is_written_apart_from_main(sql: Sql) -> None:
    make_numbers(sql)

    sql("ALTER TABLE numbers CREATE BRANCH experiment")
    sql("INSERT INTO our.numbers.branch_experiment VALUES (10)")
    sql("UPDATE our.numbers.branch_experiment SET number = 11 WHERE number = 10")
    sql("INSERT INTO numbers VALUES (1)")

    assert numbers_at(sql, "'experiment'") == [0, 11]
    assert numbers_at(sql, "'main'") == [0, 1]
    sql("DELETE FROM our.numbers.branch_experiment WHERE number = 0")
    assert sql.column("SELECT number FROM our.numbers.branch_experiment") == [11]


def test_a_branch_of_an_empty_table_can_be_created_and_written(sql: Sql) -> None:
    make_numbers(sql, inserts=0)

    sql("ALTER TABLE numbers CREATE BRANCH first")
    sql("INSERT INTO our.numbers.branch_first VALUES (1)")

    assert numbers_at(sql, "'first'") == [1]
    assert sql("SELECT * FROM numbers") == []


def test_refs_keep_what_they_were_told(sql: Sql) -> None:
    first, second = make_numbers(sql, inserts=2)

    sql(f"ALTER TABLE numbers CREATE TAG old AS OF VERSION {first} RETAIN 7 DAYS")
    sql("ALTER TABLE numbers CREATE BRANCH kept RETAIN 30 DAYS WITH SNAPSHOT RETENTION 3 SNAPSHOTS 2 DAYS")
    day = 24 * 60 * 60 * 1000
    refs = "SELECT name, type, snapshot_id, max_reference_age_in_ms, min_snapshots_to_keep, max_snapshot_age_in_ms"
    assert sql(f"{refs} FROM our.numbers.refs ORDER BY name") == [
        ("kept", "BRANCH", second, 30 * day, 3, 2 * day),
        ("main", "BRANCH", second, None, None, None),
        ("old", "TAG", first, 7 * day, None, None),
    ]

    sql(f"ALTER TABLE numbers REPLACE TAG old AS OF VERSION {second} RETAIN 1 DAYS")
    sql(f"ALTER TABLE numbers CREATE OR REPLACE BRANCH kept AS OF VERSION {first} RETAIN 2 DAYS")
    sql("ALTER TABLE numbers CREATE BRANCH IF NOT EXISTS kept")
    assert sql(f"{refs} FROM our.numbers.refs WHERE name <> 'main' ORDER BY name") == [
        ("kept", "BRANCH", first, 2 * day, 3, 2 * day),
        ("old", "TAG", second, day, None, None),
    ]

    sql("ALTER TABLE numbers DROP TAG old")
    sql("ALTER TABLE numbers DROP BRANCH kept")
    sql("ALTER TABLE numbers DROP BRANCH IF EXISTS kept")
    assert sql.column("SELECT name FROM our.numbers.refs") == ["main"]


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("CREATE BRANCH taken", "already exists"),
        ("CREATE TAG taken", "already exists"),
        ("DROP BRANCH missing", "does not exist"),
        ("DROP TAG taken", "is a branch not a tag"),
        ("DROP BRANCH main", "Cannot remove main branch"),
        ("CREATE TAG wrong AS OF VERSION 1", "unknown snapshot: 1"),
    ],
)
def test_wrong_ref_changes_are_refused(sql: Sql, statement: str, told: str) -> None:
    make_numbers(sql)
    sql("ALTER TABLE numbers CREATE BRANCH taken")

    assert told in sql.fails(f"ALTER TABLE numbers {statement}")

    assert sql.column("SELECT name FROM our.numbers.refs ORDER BY name") == ["main", "taken"]


def test_the_past_is_read_by_snapshot_time_and_tag(sql: Sql) -> None:
    first, second, _ = make_numbers(sql, inserts=3)
    sql(f"ALTER TABLE numbers CREATE TAG two AS OF VERSION {second}")
    at_second = sql.one(
        f"SELECT CAST(committed_at AS string) FROM our.numbers.snapshots WHERE snapshot_id = {second}"
    )

    assert numbers_at(sql, str(first)) == [0]
    assert numbers_at(sql, "'two'") == [0, 1]
    assert sorted(sql.column(f"SELECT number FROM numbers TIMESTAMP AS OF '{at_second}'")) == [0, 1]
    assert sorted(sql.column("SELECT number FROM our.numbers.tag_two")) == [0, 1]
    assert "Cannot find" in sql.fails("SELECT * FROM numbers TIMESTAMP AS OF '2001-01-01 00:00:00'")


def test_changes_between_two_snapshots_are_read(sql: Sql) -> None:
    first, _, third = make_numbers(sql, inserts=3)

    between = (
        sql.spark.read.format("iceberg")
        .option("start-snapshot-id", first)
        .option("end-snapshot-id", third)
        .load(f"{sql.catalog}.{sql.namespace}.numbers")
    )

    assert sorted(row.number for row in between.collect()) == [1, 2]


def test_f26_wap_id_stages_a_snapshot_that_is_published_once(sql: Sql) -> None:
    make_numbers(sql)
    sql("ALTER TABLE numbers SET TBLPROPERTIES ('write.wap.enabled' = 'true')")

    sql("SET spark.wap.id = audit-17")
    sql("INSERT INTO numbers VALUES (17)")
    sql("RESET spark.wap.id")

    assert sql.column("SELECT number FROM numbers") == [0]
    staged = sql.one("SELECT snapshot_id FROM our.numbers.snapshots WHERE summary['wap.id'] = 'audit-17'")
    assert numbers_at(sql, str(staged)) == [0, 17]
    assert staged not in sql.column("SELECT snapshot_id FROM our.numbers.history")

    sql("INSERT INTO numbers VALUES (1)")
    published = "CALL system.publish_changes('our.numbers', 'audit-17')"
    ((source, current),) = sql(published)

    assert source == staged != current
    assert sorted(sql.column("SELECT number FROM numbers")) == [0, 1, 17]
    assert (
        sql.one(
            f"SELECT summary['published-wap-id'] FROM our.numbers.snapshots WHERE snapshot_id = {current}"
        )
        == "audit-17"
    )
    assert "Duplicate request to cherry pick wap id that was published already: audit-17" in sql.fails(
        published
    )


def stage(sql: Sql, wap_id: str, number: int) -> int:
    """Write a row that is not published, and return its snapshot."""
    sql(f"SET spark.wap.id = {wap_id}")
    sql(f"INSERT INTO numbers VALUES ({number})")
    sql("RESET spark.wap.id")
    snapshot_id: int = sql.one(
        f"SELECT max_by(snapshot_id, sequence_number) FROM (SELECT s.snapshot_id, e.sequence_number FROM "
        f"our.numbers.snapshots AS s JOIN our.numbers.all_entries AS e USING (snapshot_id) "
        f"WHERE s.summary['wap.id'] = '{wap_id}')"
    )
    return snapshot_id


def test_f26_staged_snapshots_are_picked_in_any_order_and_each_once(sql: Sql) -> None:
    make_numbers(sql)
    sql("ALTER TABLE numbers SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
    staged = [stage(sql, f"audit-{number}", number) for number in (1, 2, 3)]
    assert sql.column("SELECT number FROM numbers") == [0]

    for snapshot_id in (staged[2], staged[0]):
        sql(f"CALL system.cherrypick_snapshot('our.numbers', {snapshot_id})")

    assert sorted(sql.column("SELECT number FROM numbers")) == [0, 1, 3]
    for snapshot_id in (staged[2], staged[0]):
        assert "published already" in sql.fails(
            f"CALL system.cherrypick_snapshot('our.numbers', {snapshot_id})"
        )
    assert sorted(sql.column("SELECT number FROM numbers")) == [0, 1, 3]


def test_f26_what_the_server_has_published_spark_does_not_publish_again(sql: Sql, sqlite_server: str) -> None:
    make_numbers(sql)
    sql("ALTER TABLE numbers SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
    staged, other = stage(sql, "audit-1", 1), stage(sql, "audit-1", 2)
    sql("INSERT INTO numbers VALUES (9)")

    main = f"{sqlite_server}/v1/namespaces/{sql.namespace}/tables/numbers/refs/main"
    picked = httpx.put(main, json={"cherry-pick": staged})
    sql("REFRESH TABLE numbers")

    assert picked.status_code == 200, picked.text
    assert sorted(sql.column("SELECT number FROM numbers")) == [0, 1, 9]
    # Two snapshots were staged under one id: with the first of them the id is used up, for Spark and for the server.
    duplicate = "Duplicate request to cherry pick wap id that was published already: audit-1"
    for snapshot_id in (staged, other):
        assert duplicate in sql.fails(f"CALL system.cherrypick_snapshot('our.numbers', {snapshot_id})")
        refused = httpx.put(main, json={"cherry-pick": snapshot_id})
        assert refused.status_code in (400, 409)
    sql("REFRESH TABLE numbers")
    assert sorted(sql.column("SELECT number FROM numbers")) == [0, 1, 9]


def test_f26_wap_branch_takes_all_writes_of_a_session(sql: Sql) -> None:
    make_numbers(sql)
    sql("ALTER TABLE numbers SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
    sql("ALTER TABLE numbers CREATE BRANCH audit")

    sql("SET spark.wap.branch = audit")
    sql("INSERT INTO numbers VALUES (1)")
    sql("DELETE FROM numbers WHERE number = 0")
    seen_by_the_auditor = sql.column("SELECT number FROM numbers")
    sql("RESET spark.wap.branch")

    assert seen_by_the_auditor == [1]
    assert sql.column("SELECT number FROM numbers") == [0]

    sql("CALL system.fast_forward('our.numbers', 'main', 'audit')")
    assert sql.column("SELECT number FROM numbers") == [1]


def test_f26_a_published_overwrite_takes_deletion_vectors_along_as_sparks_own_does(
    sql: Sql, sqlite_server: str
) -> None:
    """A vector that stayed would keep Spark from reading the table once its file is there again."""
    for table in ("ours", "theirs"):
        sql(
            f"CREATE TABLE {table} (id INT, part STRING) USING iceberg PARTITIONED BY (part) TBLPROPERTIES "
            "('format-version' = '3', 'write.delete.mode' = 'merge-on-read', 'write.wap.enabled' = 'true')"
        )
        sql(f"INSERT INTO {table} SELECT CAST(id AS INT), concat('p', id % 2) FROM range(10)")
        sql(f"DELETE FROM {table} WHERE id IN (2, 3)")
        sql("SET spark.wap.id = nightly")
        sql("SET spark.sql.sources.partitionOverwriteMode = dynamic")
        sql(f"INSERT OVERWRITE {table} VALUES (100, 'p0')")
        sql("RESET spark.wap.id")
        sql("RESET spark.sql.sources.partitionOverwriteMode")
        sql(f"INSERT INTO {table} VALUES (50, 'p1')")

    main = f"{sqlite_server}/v1/namespaces/{sql.namespace}/tables/ours/refs/main"
    assert httpx.put(main, json={"publish": "nightly"}).is_success
    sql("CALL system.publish_changes('our.theirs', 'nightly')")

    sql("REFRESH TABLE ours")
    ours, theirs = (
        sql(f"SELECT id, part, _row_id, _last_updated_sequence_number FROM {table} ORDER BY id")
        for table in ("ours", "theirs")
    )
    assert ours == theirs
    counted = [
        {
            key: value
            for key, value in sql.one(
                f"SELECT summary FROM our.{table}.snapshots ORDER BY committed_at DESC LIMIT 1"
            ).items()
            if key.startswith(("added-", "removed-", "deleted-", "total-")) and not key.endswith("-size")
        }
        for table in ("ours", "theirs")
    ]
    assert counted[0] == counted[1]
    assert counted[0]["removed-dvs"] == "1"
    assert sql("SELECT partition.part, record_count FROM our.ours.delete_files") == [("p1", 1)]
