"""Spark writes whole tables: CTAS, RTAS, appends and overwrites."""

from __future__ import annotations

import pytest

from tests.servers.spark import Sql

pytestmark = pytest.mark.spark


def test_create_table_as_select_writes_one_snapshot(sql: Sql) -> None:
    sql(
        "CREATE TABLE squares USING iceberg PARTITIONED BY (even)"
        " AS SELECT id, id * id AS square, id % 2 = 0 AS even FROM range(100)"
    )

    assert sql("SELECT count(*), sum(square), count_if(even) FROM squares") == [(100, 328350, 50)]
    assert sql.column("SELECT operation FROM our.squares.snapshots") == ["append"]
    assert sql("SELECT partition.even, record_count FROM our.squares.partitions ORDER BY 1") == [
        (False, 50),
        (True, 50),
    ]


def test_create_table_as_select_of_a_taken_name_leaves_the_table_alone(sql: Sql) -> None:
    sql("CREATE TABLE numbers USING iceberg AS SELECT 1 AS number")

    message = sql.fails("CREATE TABLE numbers USING iceberg AS SELECT 2 AS number")

    assert "already exists" in message.lower()
    assert sql.one("SELECT number FROM numbers") == 1


def test_failing_create_table_as_select_leaves_no_table(sql: Sql) -> None:
    message = sql.fails(
        "CREATE TABLE numbers USING iceberg AS SELECT id, raise_error('not today') = 1 AS number FROM range(3)"
    )

    assert "not today" in message
    assert sql("SHOW TABLES") == []


def test_replace_table_as_select_keeps_history_and_changes_everything_else(sql: Sql) -> None:
    sql(
        "CREATE TABLE numbers USING iceberg PARTITIONED BY (number) TBLPROPERTIES ('kept' = 'yes')"
        " AS SELECT 1 AS number"
    )
    first = sql.one("SELECT snapshot_id FROM our.numbers.snapshots")

    sql(
        "REPLACE TABLE numbers USING iceberg PARTITIONED BY (bucket(2, word)) AS SELECT 'two' AS word, 2 AS number"
    )

    assert sql("SELECT * FROM numbers") == [("two", 2)]
    assert sql(f"SELECT * FROM numbers VERSION AS OF {first}") == [(1,)]
    assert sql.column("SELECT operation FROM our.numbers.snapshots ORDER BY committed_at") == [
        "append",
        "overwrite",
    ]
    assert sql("SHOW TBLPROPERTIES numbers ('kept')") == [("kept", "yes")]


def test_create_or_replace_table_makes_then_replaces(sql: Sql) -> None:
    for number in (1, 2):
        sql(f"CREATE OR REPLACE TABLE numbers USING iceberg AS SELECT {number} AS number")

    assert sql.column("SELECT number FROM numbers") == [2]
    assert sql.one("SELECT count(*) FROM our.numbers.snapshots") == 2


def test_insert_overwrite_static_replaces_the_named_partition_or_everything(sql: Sql) -> None:
    sql("SET spark.sql.sources.partitionOverwriteMode = static")
    sql("CREATE TABLE sales (amount int, day string) USING iceberg PARTITIONED BY (day)")
    sql("INSERT INTO sales VALUES (1, 'mon'), (2, 'tue'), (3, 'wed')")

    sql("INSERT OVERWRITE sales PARTITION (day = 'tue') SELECT 20")
    assert sql("SELECT * FROM sales ORDER BY amount") == [(1, "mon"), (3, "wed"), (20, "tue")]

    sql("INSERT OVERWRITE sales VALUES (9, 'tue')")
    assert sql("SELECT * FROM sales") == [(9, "tue")]
    assert sql.column("SELECT operation FROM our.sales.snapshots ORDER BY committed_at") == [
        "append",
        "overwrite",
        "overwrite",
    ]


def test_insert_overwrite_dynamic_replaces_the_partitions_it_writes(sql: Sql) -> None:
    sql("CREATE TABLE sales (amount int, day string) USING iceberg PARTITIONED BY (day)")
    sql("INSERT INTO sales VALUES (1, 'mon'), (2, 'tue'), (3, 'wed')")

    sql("SET spark.sql.sources.partitionOverwriteMode = dynamic")
    sql("INSERT OVERWRITE sales VALUES (10, 'mon'), (4, 'thu')")
    sql("SET spark.sql.sources.partitionOverwriteMode = static")

    assert sql("SELECT * FROM sales ORDER BY amount") == [(2, "tue"), (3, "wed"), (4, "thu"), (10, "mon")]
    summary = sql.one("SELECT summary FROM our.sales.snapshots ORDER BY committed_at DESC LIMIT 1")
    assert summary["replace-partitions"] == "true"
    assert (summary["deleted-records"], summary["added-records"], summary["total-records"]) == ("1", "2", "4")


def test_every_transform_partitions_and_prunes(sql: Sql) -> None:
    transforms = "years(at), months(made), days(seen), hours(heard), bucket(4, id), truncate(2, word), kind"
    sql(
        "CREATE TABLE events (id bigint, word string, kind string, at timestamp, made timestamp, seen timestamp,"
        f" heard timestamp) USING iceberg PARTITIONED BY ({transforms})"
    )
    moment = "TIMESTAMP '2024-02-29 13:30:00'"
    sql(f"INSERT INTO events VALUES (34, 'iceberg', 'mammoth', {moment}, {moment}, {moment}, {moment})")

    (partition,) = sql.column("SELECT partition FROM our.events.files")
    by_field = partition.asDict()
    assert by_field.pop("seen_day").isoformat() == "2024-02-29"
    assert by_field == {
        "at_year": 54,
        "made_month": 54 * 12 + 1,
        "heard_hour": (54 * 365 + 13 + 31 + 28) * 24 + 13,
        "id_bucket": 3,
        "word_trunc": "ic",
        "kind": "mammoth",
    }
    assert (
        sql.one(f"SELECT count(*) FROM events WHERE heard = {moment} AND id = 34 AND word LIKE 'ice%'") == 1
    )
    assert sql.one("SELECT count(*) FROM events WHERE seen >= TIMESTAMP '2024-03-01 00:00:00'") == 0


def test_every_type_comes_back_as_written(sql: Sql) -> None:
    sql(
        "CREATE TABLE every_type (flag boolean, small int, large bigint, single float, double double,"
        " price decimal(38, 10), day date, moment timestamp, local timestamp_ntz, word string, raw binary,"
        " list array<struct<x: int, y: string>>, dictionary map<string, array<int>>, nested struct<a: struct<b: int>>)"
        " USING iceberg"
    )
    sql(
        "INSERT INTO every_type SELECT true, -1, 9223372036854775807L, CAST(1.5 AS float), 2.5D,"
        " 1234567890123456789012345678.0123456789BD, DATE '1969-12-31', TIMESTAMP '1969-12-31 23:59:59.999999Z',"
        " TIMESTAMP_NTZ '2024-02-29 00:00:00.000001', 'ice 🧊', X'00FF',"
        " array(named_struct('x', 1, 'y', 'one')), map('k', array(1, 2)), named_struct('a', named_struct('b', 7))"
    )

    (row,) = sql(
        "SELECT flag, small, large, single, double, CAST(price AS string), CAST(day AS string),"
        " CAST(moment AS string), CAST(local AS string), word, raw, list[0].y, dictionary['k'][1], nested.a.b"
        " FROM every_type"
    )

    assert row == (
        True, -1, 2**63 - 1, 1.5, 2.5, "1234567890123456789012345678.0123456789", "1969-12-31",
        "1969-12-31 23:59:59.999999", "2024-02-29 00:00:00.000001", "ice 🧊", bytearray(b"\x00\xff"), "one", 2, 7,
    )  # fmt: skip
