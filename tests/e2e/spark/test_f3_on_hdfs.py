"""Tables in a real HDFS: Spark's own hadoop catalog and Icetower's clients write one of them.

Needs the HDFS that `scripts/hdfs` starts. There both make a version by the name node's rename, which never replaces
a file. So, unlike on a local disk, what either of them has acknowledged stays.
"""

from __future__ import annotations

import itertools
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import httpx
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitFailedException
from pyspark.sql import SparkSession

from app.engine.model.ids import Location
from app.fileio.schemes import SchemedFiles, files_for
from tests.e2e.patience import wait_until
from tests.servers.spark import add_catalog
from tests.servers.webhdfs import REAL, HdfsPlace

pytestmark = [
    pytest.mark.spark,
    pytest.mark.nightly,
    pytest.mark.skipif(REAL not in os.environ, reason=f"needs an HDFS: scripts/hdfs sets {REAL}"),
]

_ROUNDS = 12
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Both:
    """One tree in HDFS that two catalogs serve: Spark's own as `own`, Icetower as `ours`."""

    spark: SparkSession
    number: int
    rest: RestCatalog
    files: SchemedFiles
    root: str

    def sql(self, statement: str) -> list[tuple[object, ...]]:
        named = statement.replace("own.", f"hdfs_{self.number}.").replace("ours.", f"tower_{self.number}.")
        return [tuple(row) for row in self.spark.sql(named).collect()]

    def ids(self, catalog: str, table: str) -> list[object]:
        self.sql(f"REFRESH TABLE {catalog}.{table}")
        return [row[0] for row in self.sql(f"SELECT id FROM {catalog}.{table} ORDER BY id")]

    def versions(self, table: str) -> list[int]:
        folder = Location(f"{self.root}/{table.replace('.', '/')}/metadata")
        entries = self.files.list_folder(folder) or []
        assert not [entry.name for entry in entries if entry.name.endswith(".tmp")]
        return sorted(
            int(entry.name[1:].split(".")[0])
            for entry in entries
            if entry.name.endswith(".metadata.json") and entry.name.startswith("v")
        )


def both_on(spark: SparkSession, server: str, hdfs: HdfsPlace, layout: str) -> Both:
    number, root, files = next(_numbers), hdfs.new_root(), files_for(hdfs.storage)
    assert isinstance(files, SchemedFiles)
    files.create_folder(Location(root))
    name = f"tower_{number}"
    settings = {"name": name, "root-location": root, "layout": layout, "storage": hdfs.storage}
    httpx.post(f"{server}/management/v1/warehouses", json=settings).raise_for_status()
    session = spark.newSession()
    add_catalog(session, name, server, warehouse=name, cache_enabled="false")
    own = f"spark.sql.catalog.hdfs_{number}"
    session.conf.set(own, "org.apache.iceberg.spark.SparkCatalog")
    for key, text in {"type": "hadoop", "warehouse": root, "cache-enabled": "false"}.items():
        session.conf.set(f"{own}.{key}", text)
    return Both(session, number, RestCatalog(name, uri=server, warehouse=name), files, root)


@pytest.fixture
def both(spark: SparkSession, sqlite_server: str, hdfs: HdfsPlace) -> Both:
    return both_on(spark, sqlite_server, hdfs, "hadoop")


def test_both_write_one_table_in_turn(both: Both) -> None:
    both.sql("CREATE NAMESPACE own.shop")
    both.sql("CREATE TABLE own.shop.orders (id bigint) USING iceberg")
    for number in range(0, 6, 2):
        both.sql(f"INSERT INTO own.shop.orders VALUES ({number})")
        both.sql(f"INSERT INTO ours.shop.orders VALUES ({number + 1})")
    with both.rest.load_table("shop.orders").transaction() as change:
        change.set_properties(mark="by pyiceberg")
    both.sql("CREATE TABLE ours.shop.made USING iceberg AS SELECT id FROM range(3)")
    both.sql("INSERT INTO own.shop.made VALUES (10)")

    assert both.ids("own", "shop.orders") == both.ids("ours", "shop.orders") == list(range(6))
    assert both.versions("shop.orders") == list(range(1, 9))
    assert both.ids("own", "shop.made") == both.ids("ours", "shop.made") == [0, 1, 2, 10]
    assert both.rest.load_table("shop.orders").properties["mark"] == "by pyiceberg"
    hint = Location(f"{both.root}/shop/orders/metadata/version-hint.text")
    assert both.files.read(hint) == b"8"


def test_no_acknowledged_commit_of_either_side_is_lost(both: Both) -> None:
    both.sql("CREATE NAMESPACE own.shop")
    both.sql(
        "CREATE TABLE own.shop.busy (id bigint) USING iceberg TBLPROPERTIES ('commit.retry.num-retries' = '60',"
        " 'commit.retry.min-wait-ms' = '10', 'commit.retry.max-wait-ms' = '200')"
    )
    together = threading.Barrier(4)
    rows: list[int] = []
    marks: list[str] = []

    def by_spark(catalog: str, first: int) -> None:
        together.wait()
        for number in range(first, first + _ROUNDS):
            both.sql(f"INSERT INTO {catalog}.shop.busy VALUES ({number})")
            rows.append(number)

    def by_pyiceberg(writer: int) -> None:
        together.wait()
        for number in range(2 * _ROUNDS):
            mark = f"mark-{writer}-{number}"
            while mark not in marks:
                try:
                    with both.rest.load_table("shop.busy").transaction() as change:
                        change.set_properties({mark: "here"})
                except CommitFailedException:
                    continue
                marks.append(mark)

    with ThreadPoolExecutor(4) as pool:
        writers = [
            pool.submit(by_spark, "own", 1_000),
            pool.submit(by_spark, "ours", 2_000),
            pool.submit(by_pyiceberg, 1),
            pool.submit(by_pyiceberg, 2),
        ]
        for writer in writers:
            writer.result()

    assert both.ids("own", "shop.busy") == both.ids("ours", "shop.busy") == sorted(rows)
    assert set(marks) <= both.rest.load_table("shop.busy").properties.keys()
    # Commits to Icetower that come together make one version.
    versions = both.versions("shop.busy")
    assert versions == list(range(1, 1 + len(versions)))
    assert _ROUNDS < len(versions) <= 1 + len(rows) + len(marks)


def test_an_ordinary_warehouse_on_hdfs(spark: SparkSession, sqlite_server: str, hdfs: HdfsPlace) -> None:
    tower = both_on(spark, sqlite_server, hdfs, "catalog")
    tower.sql("CREATE NAMESPACE ours.shop")
    tower.sql("CREATE TABLE ours.shop.orders USING iceberg AS SELECT id FROM range(3)")
    tower.sql("INSERT INTO ours.shop.orders VALUES (10)")
    table = tower.rest.load_table("shop.orders")
    health = httpx.get(f"{sqlite_server}/v1/tower_{tower.number}/namespaces/shop/tables/orders/health").json()

    assert tower.ids("ours", "shop.orders") == [0, 1, 2, 10]
    assert table.location().startswith(tower.root)
    assert health["files"]["data-files"] >= 2
    tower.rest.purge_table("shop.orders")
    wait_until(lambda: not list(tower.files.list_files(Location(table.location()))))
