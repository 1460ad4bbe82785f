"""File-system tables: Spark's own hadoop catalog and Icetower's clients write the same tables.

The format calls such tables unsafe where two programs write them: Spark's catalog keeps other programs away by a lock
inside its own process only, and on a local disk its rename replaces what is there. So what is proven here is our half:
what Icetower has acknowledged is the next version of what Spark or Icetower wrote before.
"""

from __future__ import annotations

import itertools
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import httpx
import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import StaticTable
from pyspark.sql import SparkSession

from tests.servers.spark import add_catalog

pytestmark = pytest.mark.spark

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Both:
    """One folder that two catalogs serve: Spark's own as `files_N`, Icetower as `tower_N`."""

    spark: SparkSession
    folder: Path
    own: str
    ours: str
    rest: RestCatalog
    url: str

    def sql(self, statement: str) -> list[tuple[object, ...]]:
        """Run a statement in which `own.` and `ours.` are the two catalogs."""
        named = statement.replace("own.", f"{self.own}.").replace("ours.", f"{self.ours}.")
        return [tuple(row) for row in self.spark.sql(named).collect()]

    def ids(self, table: str) -> list[object]:
        """Return the ids in a table, by a reader that has seen nothing before."""
        catalog, _, name = table.partition(".")
        named = f"{self.own if catalog == 'own' else self.ours}.{name}"
        self.spark.sql(f"REFRESH TABLE {named}")
        return [row[0] for row in self.spark.sql(f"SELECT id FROM {named} ORDER BY id").collect()]

    def versions(self, table: str) -> list[str]:
        """Return the names of the metadata files of a table."""
        found = self.metadata(table).glob("v*.metadata.json*")
        return sorted((path.name for path in found), key=lambda name: int(name[1:].split(".")[0]))

    def metadata(self, table: str) -> Path:
        return self.folder.joinpath(*table.split("."), "metadata")

    def newest(self, table: str) -> dict[str, object]:
        document: dict[str, object] = json.loads(
            (self.metadata(table) / self.versions(table)[-1]).read_bytes()
        )
        return document


@pytest.fixture
def both(spark: SparkSession, sqlite_server: str, tmp_path: Path) -> Both:
    number = next(_numbers)
    own, ours = f"files_{number}", f"tower_{number}"
    folder = tmp_path / "tables"
    folder.mkdir()
    settings = {"name": ours, "root-location": f"file://{folder}", "layout": "hadoop"}
    httpx.post(f"{sqlite_server}/management/v1/warehouses", json=settings).raise_for_status()
    session = spark.newSession()
    add_catalog(session, ours, sqlite_server, warehouse=ours, cache_enabled="false")
    session.conf.set(f"spark.sql.catalog.{own}", "org.apache.iceberg.spark.SparkCatalog")
    session.conf.set(f"spark.sql.catalog.{own}.type", "hadoop")
    session.conf.set(f"spark.sql.catalog.{own}.warehouse", f"file:{folder}")
    session.conf.set(f"spark.sql.catalog.{own}.cache-enabled", "false")
    return Both(
        session, folder, own, ours, RestCatalog(ours, uri=sqlite_server, warehouse=ours), sqlite_server
    )


def test_spark_its_own_way_and_our_clients_write_one_table_in_turn(both: Both) -> None:
    both.sql("CREATE NAMESPACE own.shop")
    both.sql("CREATE TABLE own.shop.orders (id bigint) USING iceberg")
    both.sql("INSERT INTO own.shop.orders VALUES (1)")

    both.sql("INSERT INTO ours.shop.orders VALUES (2)")
    both.sql("INSERT INTO own.shop.orders VALUES (3)")
    both.rest.load_table("shop.orders").append(pa.table({"id": [4]}))
    both.sql("INSERT INTO own.shop.orders VALUES (5)")
    both.sql("ALTER TABLE ours.shop.orders ADD COLUMN note string")
    both.sql("INSERT INTO own.shop.orders VALUES (6, 'six')")

    assert both.ids("own.shop.orders") == both.ids("ours.shop.orders") == [1, 2, 3, 4, 5, 6]
    assert both.versions("shop.orders") == [f"v{number}.metadata.json" for number in range(1, 9)]
    assert (both.metadata("shop.orders") / "version-hint.text").read_bytes() == b"8"
    log = [item["metadata-file"].rpartition("/")[2] for item in both.newest("shop.orders")["metadata-log"]]  # type: ignore[attr-defined]  # JSON
    assert log == both.versions("shop.orders")[:-1]


def test_what_we_create_spark_reads_its_own_way(both: Both) -> None:
    both.sql("CREATE NAMESPACE ours.shop")
    both.sql("CREATE TABLE ours.shop.made USING iceberg AS SELECT id FROM range(3)")

    both.sql("INSERT INTO own.shop.made VALUES (10)")
    both.sql("UPDATE ours.shop.made SET id = 11 WHERE id = 10")

    assert both.ids("own.shop.made") == [0, 1, 2, 11]
    assert both.sql("SHOW TABLES IN own.shop") == both.sql("SHOW TABLES IN ours.shop")
    assert StaticTable.from_metadata(str(both.folder / "shop" / "made")).scan().to_arrow().num_rows == 4


def test_writers_of_both_kinds_at_the_same_time(both: Both) -> None:
    """What we have acknowledged stays, unless Spark's rename replaced the very file, as the format warns of."""
    both.sql("CREATE NAMESPACE own.shop")
    both.sql(
        "CREATE TABLE own.shop.busy (id bigint) USING iceberg TBLPROPERTIES ('commit.retry.num-retries' = '40',"
        " 'commit.retry.min-wait-ms' = '10', 'commit.retry.max-wait-ms' = '200')"
    )
    acknowledged: dict[int, tuple[str, int]] = {}
    together = threading.Barrier(4)

    def by_pyiceberg(writer: int) -> None:
        together.wait()
        for number in range(6):
            mark = 1_000 * writer + number
            table = RestCatalog("mine", uri=both.url, warehouse=both.ours).load_table("shop.busy")
            table.append(pa.table({"id": [mark]}))
            snapshot = table.current_snapshot()
            assert snapshot is not None
            acknowledged[mark] = table.metadata_location, snapshot.snapshot_id

    def by_spark(catalog: str, first: int) -> None:
        together.wait()
        for number in range(4):
            both.sql(f"INSERT INTO {catalog}.shop.busy VALUES ({first + number})")

    with ThreadPoolExecutor(4) as pool:
        writers = [
            pool.submit(by_pyiceberg, 1),
            pool.submit(by_pyiceberg, 2),
            pool.submit(by_spark, "ours", 10),
            pool.submit(by_spark, "own", 20),
        ]
        for writer in writers:
            writer.result()

    found = both.ids("own.shop.busy")
    assert found == both.ids("ours.shop.busy")
    assert len(acknowledged) == 12
    for mark, (location, snapshot_id) in acknowledged.items():
        content = Path(location.removeprefix("file://")).read_text()
        was_replaced = str(snapshot_id) not in content
        assert mark in found or was_replaced, f"{mark} was acknowledged as {location}, and is lost"
    assert set(found) >= set(range(10, 14)) | set(range(20, 24))
    numbers = [int(name[1:].split(".")[0]) for name in both.versions("shop.busy")]
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_table_is_adopted_and_a_fork_is_reported(both: Both) -> None:
    both.sql("CREATE NAMESPACE own.shop")
    both.sql("CREATE TABLE own.shop.moved (id bigint) USING iceberg")
    both.sql("INSERT INTO own.shop.moved VALUES (1)")
    name = f"catalog_{both.ours}"
    settings = {"name": name, "root-location": f"file://{both.folder}"}
    httpx.post(f"{both.url}/management/v1/warehouses", json=settings).raise_for_status()
    catalog = RestCatalog(name, uri=both.url, warehouse=name)
    catalog.create_namespace("shop")
    body = {"name": "moved", "location": f"file:{both.folder}/shop/moved"}

    adopted = httpx.post(f"{both.url}/v1/{name}/namespaces/shop/adopt", json=body).raise_for_status().json()
    catalog.load_table("shop.moved").append(pa.table({"id": [2]}))

    assert (adopted["version"], adopted["later-versions"]) == (2, [])
    assert sorted(catalog.load_table("shop.moved").scan().to_arrow()["id"].to_pylist()) == [1, 2]
    health = f"{both.url}/v1/{name}/namespaces/shop/tables/moved/health"
    assert "forked" not in [finding["code"] for finding in httpx.get(health).json()["findings"]]
    both.sql("INSERT INTO own.shop.moved VALUES (3)")
    (fork,) = [item for item in httpx.get(health).json()["findings"] if item["code"] == "forked"]
    assert "v3.metadata.json" in fork["message"]
    refused = httpx.delete(
        f"{both.url}/v1/{both.ours}/namespaces/shop/tables/moved", params={"purgeRequested": "true"}
    )
    assert refused.status_code == 400
    assert "adopted" in refused.json()["error"]["message"]


def test_a_drop_deletes_the_folder_or_is_refused(both: Both) -> None:
    """Spark asks for a drop without purge in both cases, and would delete the files itself."""
    both.sql("CREATE NAMESPACE ours.shop")
    both.sql("CREATE TABLE ours.shop.gone USING iceberg AS SELECT id FROM range(3)")
    for purge in ("", " PURGE"):
        with pytest.raises(Exception, match="purgeRequested=true"):
            both.sql(f"DROP TABLE ours.shop.gone{purge}")
    assert both.ids("own.shop.gone") == [0, 1, 2]

    both.rest.purge_table("shop.gone")

    assert not (both.folder / "shop" / "gone").exists()
    both.sql("DROP NAMESPACE ours.shop")
    assert not (both.folder / "shop").exists()


def test_spark_does_its_work_through_us(both: Both) -> None:
    both.sql("CREATE NAMESPACE ours.shop")
    both.sql(
        "CREATE TABLE ours.shop.work (id bigint, day int) USING iceberg PARTITIONED BY (day)"
        " TBLPROPERTIES ('write.metadata.compression-codec' = 'gzip', 'write.delete.mode' = 'merge-on-read')"
    )
    for day in range(3):
        both.sql(f"INSERT INTO ours.shop.work SELECT id, {day} FROM range(10)")
    both.sql("DELETE FROM own.shop.work WHERE id = 4")
    both.sql("ALTER TABLE ours.shop.work CREATE BRANCH audit")
    both.sql(
        f"CALL {both.ours}.system.rewrite_data_files(table => 'shop.work', options => map('rewrite-all', 'true'))"
    )
    both.sql(
        f"CALL {both.ours}.system.expire_snapshots(table => 'shop.work', older_than => TIMESTAMP '2100-01-01 00:00:00')"
    )
    both.sql("INSERT INTO own.shop.work VALUES (100, 1)")

    assert len(both.ids("own.shop.work")) == len(both.ids("ours.shop.work")) == 28
    names = both.versions("shop.work")
    assert names[0] == "v1.metadata.json"
    assert all(name.endswith(".gz.metadata.json") for name in names[1:])
