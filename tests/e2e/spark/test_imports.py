"""Catalogs that Spark mounts move in: hadoop catalogs, JdbcCatalog where its driver is, and other REST servers."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from app.client.catalog import RemoteCatalog
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.properties.own_properties import MOVED_TO
from app.fileio.schemes import files_for
from app.moving.folder_source import FolderSource
from app.moving.reports import MoveState
from app.moving.rest_source import RestSource
from app.moving.sources import Entry, SourceFailed
from app.moving.spark_source import SparkSource
from app.moving.terms import Mode, Terms
from tests.builders.moves import Moves
from tests.e2e.spark.conftest import CATALOG
from tests.servers.icetower import icetower_process
from tests.servers.spark import Sql, add_catalog

pytestmark = pytest.mark.spark


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return tmp_path / "lake"


@pytest.fixture
def new_home(lake: Path, tmp_path: Path) -> Iterator[str]:
    with icetower_process(tmp_path, default_warehouse_location=str(lake)) as uri:
        yield uri


@pytest.fixture
def moves(new_home: str, tmp_path: Path) -> Moves:
    return Moves(new_home, tmp_path / "report.ndjson")


def rows_of(spark: SparkSession, table: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in spark.sql(f"SELECT * FROM {table}").collect())


def test_tables_of_a_hadoop_catalog_are_fenced_and_read_and_written_here(
    spark: SparkSession, sql: Sql, lake: Path, moves: Moves
) -> None:
    old = f"old_{sql.namespace}"
    source = SparkSource(spark, old, {"type": "hadoop", "warehouse": f"file://{lake}/hadoop"})
    for statement in (
        f"CREATE NAMESPACE {old}.eu",
        f"CREATE NAMESPACE {old}.eu.sales",
        f"CREATE TABLE {old}.eu.sales.orders (id bigint, region string) PARTITIONED BY (region)",
        f"INSERT INTO {old}.eu.sales.orders VALUES (1, 'eu'), (2, 'us')",
        f"ALTER TABLE {old}.eu.sales.orders CREATE TAG v1",
        f"INSERT INTO {old}.eu.sales.orders VALUES (3, 'us')",
        f"DELETE FROM {old}.eu.sales.orders WHERE id = 2",
    ):
        spark.sql(statement)
    before = rows_of(spark, f"{old}.eu.sales.orders")

    assert moves.run(source) == {"eu.sales.orders": MoveState.REFUSED}
    assert "source-purges" in moves.lines["eu.sales.orders"].codes
    assert moves.run(source, Terms(Mode.FENCE, moved_to=moves.uri)) == {"eu.sales.orders": MoveState.DONE}

    line = moves.lines["eu.sales.orders"]
    assert "file-system-names" in line.codes
    assert {row[0]: row[1] for row in spark.sql(f"SHOW TBLPROPERTIES {old}.eu.sales.orders").collect()}[
        MOVED_TO
    ] == moves.uri
    here = f"new_{sql.namespace}"
    add_catalog(spark, here, moves.uri)
    assert rows_of(spark, f"{here}.eu.sales.orders") == before == [(1, "eu"), (3, "us")]
    assert len(spark.sql(f"SELECT * FROM {here}.eu.sales.orders VERSION AS OF 'v1'").collect()) == 2
    spark.sql(f"INSERT INTO {here}.eu.sales.orders VALUES (9, 'eu')")
    assert rows_of(spark, f"{here}.eu.sales.orders") == [(1, "eu"), (3, "us"), (9, "eu")]


@pytest.mark.parametrize(
    "kind",
    [{"type": "Hadoop"}, {"Type": "hadoop"}, {"catalog-impl": "org.apache.iceberg.hadoop.HadoopCatalog"}],
)
def test_a_hadoop_catalog_keeps_its_files_however_its_type_is_spelled(
    spark: SparkSession, sql: Sql, lake: Path, moves: Moves, kind: dict[str, str]
) -> None:
    """Spark takes names of settings in any case, and Iceberg their values."""
    old = f"old_{sql.namespace}"
    source = SparkSource(spark, old, {**kind, "warehouse": f"file://{lake}/hadoop"})
    spark.sql(f"CREATE NAMESPACE {old}.sales")
    spark.sql(f"CREATE TABLE {old}.sales.orders (id bigint)")
    spark.sql(f"INSERT INTO {old}.sales.orders VALUES (1)")

    assert moves.run(source) == {"sales.orders": MoveState.REFUSED}

    assert "source-purges" in moves.lines["sales.orders"].codes
    assert rows_of(spark, f"{old}.sales.orders") == [(1,)]


def test_the_same_tables_are_found_by_their_folders_and_looked_on(
    spark: SparkSession, sql: Sql, lake: Path, moves: Moves
) -> None:
    old = f"old_{sql.namespace}"
    by_spark = SparkSource(spark, old, {"type": "hadoop", "warehouse": f"file://{lake}/hadoop"})
    spark.sql(f"CREATE NAMESPACE {old}.sales")
    spark.sql(f"CREATE TABLE {old}.sales.orders (id bigint)")
    spark.sql(f"INSERT INTO {old}.sales.orders VALUES (1)")
    orders = Entry(TableIdentifier(Namespace(("sales",)), "orders"))

    source = FolderSource(f"file://{lake}/hadoop", files_for({}))
    assert list(source.namespaces()) == [orders.identifier.namespace]
    found, same = source.find_location(orders), by_spark.find_location(orders)
    assert found is not None
    assert same is not None
    assert found.split("/")[-3:] == same.split("/")[-3:] == ["orders", "metadata", "v2.metadata.json"]
    assert moves.run(source, Terms(Mode.LOOK_ON)) == {"sales.orders": MoveState.DONE}
    here = f"new_{sql.namespace}"
    add_catalog(spark, here, moves.uri)
    assert rows_of(spark, f"{here}.sales.orders") == [(1,)]
    with pytest.raises(Exception, match="read-only here"):
        spark.sql(f"INSERT INTO {here}.sales.orders VALUES (2)")
    with pytest.raises(Exception, match="GC is disabled"):
        spark.sql(f"CALL {here}.system.remove_orphan_files(table => 'sales.orders')")

    spark.sql(f"INSERT INTO {old}.sales.orders VALUES (2)")
    assert moves.run(source, Terms(Mode.LOOK_ON)) == {"sales.orders": MoveState.DONE}
    spark.sql(f"REFRESH TABLE {here}.sales.orders")
    assert rows_of(spark, f"{here}.sales.orders") == [(1,), (2,)]


def test_another_rest_catalog_can_be_taken_through_spark(
    spark: SparkSession, sql: Sql, sqlite_server: str
) -> None:
    sql("CREATE TABLE orders (id bigint)")
    sql("CREATE VIEW big AS SELECT 1 AS one")
    spark.range(1).createOrReplaceTempView("of_this_session")
    through_spark = SparkSource(spark, CATALOG, {})
    namespace = Namespace((sql.namespace,))
    orders = Entry(TableIdentifier(namespace, "orders"))

    assert namespace in set(through_spark.namespaces())
    assert set(through_spark.entries(namespace)) == {orders, Entry(TableIdentifier(namespace, "big"), "view")}
    with RemoteCatalog(sqlite_server) as catalog:
        assert through_spark.find_location(orders) == RestSource(catalog, "x").find_location(orders)
        catalog.tables.commit(orders.identifier, [{"action": "set-properties", "updates": {"a": "b"}}])
        assert through_spark.find_location(orders) == RestSource(catalog, "x").find_location(orders)
    assert through_spark.find_location(Entry(TableIdentifier(namespace, "nothing"))) is None
    with pytest.raises(SourceFailed, match="does not say where"):
        through_spark.find_location(Entry(TableIdentifier(namespace, "big"), "view"))
    sql(
        f"ALTER NAMESPACE {CATALOG}.{sql.namespace} SET PROPERTIES ('steward' = 'anna', 'team' = 'a b (c), d')"
    )
    found = through_spark.properties(namespace)
    assert (found["steward"], found["team"]) == ("anna", "a b (c), d")
    location = through_spark.find_location(orders)
    assert location is not None
    assert through_spark.drop(orders, location) == location
    assert through_spark.find_location(orders) is None
    assert Path(location.removeprefix("file:").replace("//", "/")).exists()


def test_the_newest_file_is_found_though_its_writers_clock_was_behind(
    spark: SparkSession, sql: Sql, sqlite_server: str
) -> None:
    sql("CREATE TABLE late (id bigint)")
    for number in range(10):
        sql(f"ALTER TABLE late SET TBLPROPERTIES ('number' = '{number}')")
    late = Entry(TableIdentifier(Namespace((sql.namespace,)), "late"))
    with RemoteCatalog(sqlite_server) as catalog:
        before = Path(str(catalog.tables.load(late.identifier).metadata_location).removeprefix("file://"))
        metadata = json.loads(before.read_text())
        metadata["metadata-log"].append(
            {"timestamp-ms": metadata["last-updated-ms"], "metadata-file": f"file://{before}"}
        )
        metadata["last-updated-ms"] -= 30_000  # Iceberg takes up to a minute.
        newest = before.with_name(f"00099-{uuid.uuid4()}.metadata.json")
        newest.write_text(json.dumps(metadata))
        catalog.tables.register(late.identifier, f"file://{newest}", overwrite=True)

    assert SparkSource(spark, CATALOG, {}).find_location(late) == f"file://{newest}"
