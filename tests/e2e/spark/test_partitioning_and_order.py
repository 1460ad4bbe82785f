"""Partition specs and sort orders of a live table change; every file keeps the one it was written with."""

from __future__ import annotations

import pytest

from tests.servers.spark import Sql

pytestmark = pytest.mark.spark


def test_partition_fields_are_added_replaced_and_dropped(sql: Sql) -> None:
    sql("CREATE TABLE t (id bigint, at timestamp, kind string) USING iceberg")
    moment = "TIMESTAMP '2024-05-17 08:00:00'"
    sql(f"INSERT INTO t VALUES (1, {moment}, 'a')")
    sql("ALTER TABLE t ADD PARTITION FIELD months(at)")
    sql(f"INSERT INTO t VALUES (2, {moment}, 'a')")
    sql("ALTER TABLE t REPLACE PARTITION FIELD months(at) WITH days(at)")
    sql("ALTER TABLE t ADD PARTITION FIELD bucket(8, id) AS shard")
    sql(f"INSERT INTO t VALUES (3, {moment}, 'a')")
    sql("ALTER TABLE t DROP PARTITION FIELD shard")
    sql(f"INSERT INTO t VALUES (4, {moment}, 'a')")

    assert sql("SELECT spec_id, record_count FROM our.t.files ORDER BY spec_id") == [
        (0, 1),
        (1, 1),
        (2, 1),
        (3, 1),
    ]
    assert sql.column("SELECT id FROM t WHERE at = TIMESTAMP '2024-05-17 08:00:00' ORDER BY id") == [
        1,
        2,
        3,
        4,
    ]
    assert sql.column("SELECT id FROM t WHERE at < TIMESTAMP '2024-05-17 00:00:00'") == []
    # Without the shard it is the spec of days alone again: number 2, not a fifth.
    (newest,) = sql.column("SELECT partition FROM our.t.files WHERE spec_id = 2")
    assert {name: text for name, text in newest.asDict().items() if text is not None} == {
        "at_day": newest["at_day"]
    }
    assert newest["at_day"].isoformat() == "2024-05-17"


def test_a_dropped_field_that_comes_back_is_the_same_field(sql: Sql) -> None:
    sql("CREATE TABLE t (id bigint, kind string) USING iceberg PARTITIONED BY (kind)")
    sql("INSERT INTO t VALUES (1, 'a')")
    sql("ALTER TABLE t DROP PARTITION FIELD kind")
    sql("INSERT INTO t VALUES (2, 'a')")
    sql("ALTER TABLE t ADD PARTITION FIELD kind")
    sql("INSERT INTO t VALUES (3, 'a')")

    assert sql("SELECT spec_id, partition.kind FROM our.t.files ORDER BY partition.kind, spec_id") == [
        (1, None),
        (0, "a"),
        (0, "a"),
    ]


def test_version_1_keeps_dropped_fields_as_void(sql: Sql) -> None:
    sql(
        "CREATE TABLE t (id bigint, kind string) USING iceberg PARTITIONED BY (kind, bucket(2, id))"
        " TBLPROPERTIES ('format-version' = '1')"
    )
    sql("INSERT INTO t VALUES (1, 'a')")
    sql("ALTER TABLE t DROP PARTITION FIELD kind")
    sql("INSERT INTO t VALUES (2, 'b')")

    assert sql("SELECT id FROM t WHERE kind = 'b'") == [(2,)]
    assert sql("SELECT spec_id, partition.kind FROM our.t.files ORDER BY spec_id") == [(0, "a"), (1, None)]


def test_a_source_column_of_a_partition_field_cannot_be_dropped(sql: Sql) -> None:
    sql("CREATE TABLE t (id bigint, kind string) USING iceberg PARTITIONED BY (kind)")

    sql.fails("ALTER TABLE t DROP COLUMN kind")

    sql("ALTER TABLE t RENAME COLUMN kind TO sort")
    sql("INSERT INTO t VALUES (1, 'a')")
    assert sql("SELECT sort FROM t") == [("a",)]


def test_write_ordered_by_sorts_what_is_written_and_keeps_every_order(sql: Sql) -> None:
    sql("CREATE TABLE t (id bigint, word string) USING iceberg")
    sql("INSERT INTO t SELECT id, 'unsorted' FROM range(10)")
    sql("ALTER TABLE t WRITE ORDERED BY word DESC NULLS LAST, bucket(4, id)")
    sql("INSERT INTO t SELECT id, CAST(id % 7 AS string) FROM range(1000)")
    sql("ALTER TABLE t WRITE LOCALLY ORDERED BY id")
    sql("INSERT INTO t SELECT id, 'local' FROM range(10)")

    assert sql("SHOW TBLPROPERTIES t ('sort-order')")[0][1] == "id ASC NULLS FIRST"
    written = sql.column("SELECT word FROM t WHERE word NOT IN ('unsorted', 'local')")
    assert written == sorted(written, reverse=True)

    sql("ALTER TABLE t WRITE UNORDERED")
    metadata = sql.metadata("t")
    assert metadata["default-sort-order-id"] == 0
    assert [
        (order["order-id"], [(field["transform"], field["direction"]) for field in order["fields"]])
        for order in metadata["sort-orders"]
    ] == [(0, []), (1, [("identity", "desc"), ("bucket[4]", "asc")]), (2, [("identity", "asc")])]


def test_write_distributed_by_partition_puts_each_partition_into_one_file(sql: Sql) -> None:
    sql("CREATE TABLE t (id bigint, kind bigint) USING iceberg PARTITIONED BY (kind)")
    sql("ALTER TABLE t WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY id")

    sql("INSERT INTO t SELECT id, id % 3 FROM range(0, 300, 1, 8)")

    assert sql(
        "SELECT partition.kind, count(*), sum(record_count) FROM our.t.files GROUP BY 1 ORDER BY 1"
    ) == [
        (0, 1, 100),
        (1, 1, 100),
        (2, 1, 100),
    ]
