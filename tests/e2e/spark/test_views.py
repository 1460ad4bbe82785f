"""Views in the catalog."""

from __future__ import annotations

import pytest

from tests.servers.spark import Sql

pytestmark = pytest.mark.spark


def make_table(sql: Sql) -> None:
    sql("CREATE TABLE numbers USING iceberg AS SELECT id AS number FROM range(10)")


def views(sql: Sql) -> list[str]:
    """List the namespace's views; Spark adds its temporary ones."""
    return [name for _, name, is_temporary in sql("SHOW VIEWS") if not is_temporary]


def test_a_view_is_created_read_replaced_and_dropped(sql: Sql) -> None:
    make_table(sql)

    sql("CREATE VIEW even COMMENT 'every other' AS SELECT number FROM numbers WHERE number % 2 = 0")
    assert sorted(sql.column("SELECT * FROM even")) == [0, 2, 4, 6, 8]

    sql("CREATE OR REPLACE VIEW even (half) AS SELECT number / 2 FROM numbers WHERE number % 2 = 0")
    assert sorted(sql.column("SELECT half FROM even")) == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert views(sql) == ["even"]
    assert "number / 2" in sql.one("SHOW CREATE TABLE even")

    sql("DROP VIEW even")
    assert views(sql) == []


def test_a_view_reads_the_table_as_it_is_now_and_from_any_namespace(sql: Sql) -> None:
    make_table(sql)
    sql("CREATE VIEW total AS SELECT sum(number) AS total FROM numbers")
    sql(f"CREATE VIEW twice AS SELECT total * 2 AS twice FROM {sql.catalog}.{sql.namespace}.total")

    sql("INSERT INTO numbers VALUES (100)")
    sql(f"CREATE NAMESPACE {sql.namespace}_other")
    sql(f"USE {sql.catalog}.{sql.namespace}_other")

    assert sql.one(f"SELECT * FROM {sql.namespace}.total") == 145
    assert sql.one(f"SELECT * FROM {sql.namespace}.twice") == 290


def test_views_and_tables_share_their_names(sql: Sql) -> None:
    make_table(sql)
    sql("CREATE VIEW v AS SELECT 1 AS one")

    assert "already exists" in sql.fails("CREATE VIEW numbers AS SELECT 1 AS one").lower()
    assert "already exists" in sql.fails("CREATE TABLE v (id int) USING iceberg").lower()
    assert "already exists" in sql.fails("ALTER VIEW v RENAME TO numbers").lower()
    assert "already exists" in sql.fails("CREATE VIEW v AS SELECT 2 AS two").lower()
    sql("CREATE VIEW IF NOT EXISTS v AS SELECT 2 AS two")

    assert sql.one("SELECT * FROM v") == 1
    assert [row[1] for row in sql("SHOW TABLES")] == ["numbers"]


def test_a_view_is_renamed_and_its_properties_change(sql: Sql) -> None:
    sql("CREATE VIEW v TBLPROPERTIES ('team' = 'ice', 'gone' = 'soon') AS SELECT 1 AS one")

    sql("ALTER VIEW v RENAME TO w")
    sql("ALTER VIEW w SET TBLPROPERTIES ('team' = 'tower')")
    sql("ALTER VIEW w UNSET TBLPROPERTIES ('gone')")

    properties = dict(sql("SHOW TBLPROPERTIES w"))
    assert properties["team"] == "tower"
    assert "gone" not in properties
    assert views(sql) == ["w"]
    assert "TABLE_OR_VIEW_NOT_FOUND" in sql.fails("SELECT * FROM v")
