"""Columns come, go, move, widen and change their names, nested ones too; old files stay readable."""

from __future__ import annotations

import pytest

from tests.servers.spark import Sql

pytestmark = pytest.mark.spark


def columns(sql: Sql, table: str) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in sql.spark.table(table).schema.fields]


def test_added_column_is_null_in_old_rows_and_a_readded_name_is_another_column(sql: Sql) -> None:
    sql("CREATE TABLE t (id int) USING iceberg")
    sql("INSERT INTO t VALUES (1)")
    sql("ALTER TABLE t ADD COLUMN word string")
    sql("INSERT INTO t VALUES (2, 'two')")
    sql("ALTER TABLE t DROP COLUMN word")
    sql("ALTER TABLE t ADD COLUMN word string")

    assert sql("SELECT id, word FROM t ORDER BY id") == [(1, None), (2, None)]


def test_rename_reorder_and_widen_keep_values(sql: Sql) -> None:
    sql("CREATE TABLE t (id int, ratio float, price decimal(5, 2), word string) USING iceberg")
    sql("INSERT INTO t VALUES (1, 0.5, 123.45, 'one')")

    sql("ALTER TABLE t RENAME COLUMN word TO name")
    sql("ALTER TABLE t ALTER COLUMN name FIRST")
    sql("ALTER TABLE t ALTER COLUMN price AFTER id")
    sql("ALTER TABLE t ALTER COLUMN id TYPE bigint")
    sql("ALTER TABLE t ALTER COLUMN ratio TYPE double")
    sql("ALTER TABLE t ALTER COLUMN price TYPE decimal(20, 2)")
    sql("ALTER TABLE t ALTER COLUMN name COMMENT 'what it is called'")

    assert columns(sql, "t") == [
        ("name", "string"),
        ("id", "bigint"),
        ("price", "decimal(20,2)"),
        ("ratio", "double"),
    ]
    assert sql("SELECT name, id, CAST(price AS string), ratio FROM t") == [("one", 1, "123.45", 0.5)]
    assert ("name", "string", "what it is called") in sql("DESCRIBE TABLE t")


@pytest.mark.parametrize(
    "change",
    ["ALTER COLUMN id TYPE int", "ALTER COLUMN word TYPE int", "ADD COLUMN id string", "DROP COLUMN nothing"],
)
def test_changes_that_would_lose_values_are_refused(sql: Sql, change: str) -> None:
    sql("CREATE TABLE t (id bigint, word string) USING iceberg")
    before = columns(sql, "t")

    sql.fails(f"ALTER TABLE t {change}")

    assert columns(sql, "t") == before


def test_nested_fields_evolve_in_structs_lists_and_maps(sql: Sql) -> None:
    sql(
        "CREATE TABLE t (id int, point struct<x: int, y: int>, tags array<struct<name: string>>,"
        " prices map<string, struct<amount: float>>) USING iceberg"
    )
    sql(
        "INSERT INTO t VALUES (1, named_struct('x', 10, 'y', 20), array(named_struct('name', 'a')),"
        " map('eur', named_struct('amount', CAST(1.5 AS float))))"
    )

    sql("ALTER TABLE t ADD COLUMN point.z double AFTER x")
    sql("ALTER TABLE t RENAME COLUMN point.y TO height")
    sql("ALTER TABLE t ALTER COLUMN point.x TYPE bigint")
    sql("ALTER TABLE t ADD COLUMN tags.element.weight int")
    sql("ALTER TABLE t ALTER COLUMN prices.value.amount TYPE double")
    sql("ALTER TABLE t ADD COLUMN prices.value.since date")
    sql("ALTER TABLE t DROP COLUMN tags.element.name")

    assert dict(columns(sql, "t")) == {
        "id": "int",
        "point": "struct<x:bigint,z:double,height:int>",
        "tags": "array<struct<weight:int>>",
        "prices": "map<string,struct<amount:double,since:date>>",
    }
    assert sql("SELECT point.x, point.z, point.height, tags[0].weight, prices['eur'].amount FROM t") == [
        (10, None, 20, None, 1.5)
    ]


def test_map_keys_refuse_changes(sql: Sql) -> None:
    sql("CREATE TABLE t (stock map<struct<shelf: int>, int>) USING iceberg")

    for change in (
        "ADD COLUMN stock.key.row int",
        "DROP COLUMN stock.key.shelf",
        "ALTER COLUMN stock.key.shelf TYPE bigint",
    ):
        assert "map keys" in sql.fails(f"ALTER TABLE t {change}")

    assert columns(sql, "t") == [("stock", "map<struct<shelf:int>,int>")]


def test_required_columns_may_become_optional_but_not_back(sql: Sql) -> None:
    sql("CREATE TABLE t (id int NOT NULL) USING iceberg")
    sql("ALTER TABLE t ALTER COLUMN id DROP NOT NULL")
    sql("INSERT INTO t VALUES (NULL)")

    assert sql("SELECT * FROM t") == [(None,)]
    sql.fails("ALTER TABLE t ALTER COLUMN id SET NOT NULL")


def test_identifier_fields_are_kept(sql: Sql) -> None:
    sql("CREATE TABLE t (id int NOT NULL, code string NOT NULL) USING iceberg")
    sql("ALTER TABLE t SET IDENTIFIER FIELDS id, code")
    assert "Cannot" in sql.fails("ALTER TABLE t DROP COLUMN id")

    sql("ALTER TABLE t DROP IDENTIFIER FIELDS id")
    sql("ALTER TABLE t DROP COLUMN id")

    assert columns(sql, "t") == [("code", "string")]


def test_an_append_that_brings_new_columns_evolves_the_schema(sql: Sql) -> None:
    sql("CREATE TABLE t (id int) USING iceberg")
    sql("INSERT INTO t VALUES (1)")
    sql("ALTER TABLE t SET TBLPROPERTIES ('write.spark.accept-any-schema' = 'true')")

    sql.spark.sql("SELECT 2 AS id, 'two' AS word").writeTo("t").option("mergeSchema", "true").append()

    assert sql("SELECT id, word FROM t ORDER BY id") == [(1, None), (2, "two")]


def test_time_travel_reads_with_the_schema_of_that_time(sql: Sql) -> None:
    sql("CREATE TABLE t (id int, word string) USING iceberg")
    sql("INSERT INTO t VALUES (1, 'one')")
    first = sql.one("SELECT snapshot_id FROM our.t.snapshots")
    sql("ALTER TABLE t DROP COLUMN word")
    sql("INSERT INTO t VALUES (2)")

    assert sql(f"SELECT * FROM t VERSION AS OF {first}") == [(1, "one")]
    assert sql("SELECT * FROM t ORDER BY id") == [(1,), (2,)]
