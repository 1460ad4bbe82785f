"""PyIceberg and DuckDB on a warehouse in an S3-compatible store; the server hands out how to reach it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pyarrow as pa
import pytest
from pyarrow import fs
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import BadRequestError
from pyiceberg.schema import Schema
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import AddSnapshotUpdate
from pyiceberg.types import LongType, NestedField

from examples.flights.comparison import duckdb_with_iceberg
from tests.e2e.guarding import watched
from tests.servers.icetower import icetower_process
from tests.servers.s3 import S3Server

pytestmark = pytest.mark.s3

BUCKET = "lake"


@pytest.fixture(scope="module")
def server(s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    s3_server.create_bucket(BUCKET)
    storage = json.dumps(s3_server.storage)
    with icetower_process(
        tmp_path_factory.mktemp("icetower-s3"),
        default_warehouse_location=f"s3://{BUCKET}/warehouse",
        default_warehouse_storage=storage,
        default_warehouse_properties=storage,
        default_warehouse_overrides='{"icetower.guard": "reject"}',
        file_deletion_interval_seconds="0.2",
    ) as url:
        yield url


def keys(s3_server: S3Server, location: str) -> list[str]:
    selector = fs.FileSelector(location.removeprefix("s3://"), recursive=True, allow_not_found=True)
    return [info.path for info in s3_server.filesystem().get_file_info(selector) if info.is_file]


def test_pyiceberg_writes_reads_and_purges(server: str, s3_server: S3Server) -> None:
    catalog = RestCatalog("tower", uri=server)
    catalog.create_namespace("on_s3")
    table = catalog.create_table(("on_s3", "numbers"), Schema(NestedField(1, "id", LongType())))

    table.append(pa.table({"id": [1, 2, 3]}))
    table.delete("id = 2")

    again = catalog.load_table(("on_s3", "numbers"))
    assert again.metadata_location.startswith(f"s3://{BUCKET}/warehouse/")
    assert sorted(again.scan().to_arrow()["id"].to_pylist()) == [1, 3]
    found = keys(s3_server, again.location())
    assert len([key for key in found if key.endswith(".metadata.json")]) == 3
    assert len([key for key in found if key.endswith(".parquet")]) == 2


def test_a_herd_with_the_default_retries_lands_as_a_whole(server: str) -> None:
    catalog = RestCatalog("tower", uri=server)
    catalog.create_namespace("herd_on_s3")
    catalog.create_table(("herd_on_s3", "numbers"), Schema(NestedField(1, "id", LongType())))
    together = threading.Barrier(8)

    def append(writer: int) -> None:
        mine = RestCatalog("tower", uri=server).load_table(("herd_on_s3", "numbers"))
        together.wait()
        for number in range(2):
            mine.append(pa.table({"id": [writer * 10 + number]}))

    with ThreadPoolExecutor(8) as writers:
        list(writers.map(append, range(8)))

    again = catalog.load_table(("herd_on_s3", "numbers"))
    expected = [writer * 10 + number for writer in range(8) for number in range(2)]
    assert sorted(again.scan().to_arrow()["id"].to_pylist()) == expected


def test_the_guard_reads_there_and_misses_what_is_gone(server: str, s3_server: S3Server) -> None:
    catalog = RestCatalog("tower", uri=server)
    catalog.create_namespace("guarded_on_s3")
    table = catalog.create_table(("guarded_on_s3", "numbers"), Schema(NestedField(1, "id", LongType())))
    location = f"{table.location()}/metadata/never-written.avro"
    told = {"snapshot-id": 1, "sequence-number": 3, "timestamp-ms": 1, "manifest-list": location}
    lost = Snapshot.model_validate(told)

    with watched(server) as seen:
        table.append(pa.table({"id": [1, 2, 3]}))
        table.delete("id = 2")
        with pytest.raises(BadRequestError, match=f"names a file that is not there: {location}"):
            catalog.commit_table(table, (), (AddSnapshotUpdate(snapshot=lost),))

    assert seen.snapshots == {"clean": 2, "found": 1}
    assert seen.findings == {"missing-file": 1}


def test_duckdb_creates_and_pyiceberg_reads(server: str, s3_server: S3Server, tmp_path: Path) -> None:
    catalog = RestCatalog("tower", uri=server)
    catalog.create_namespace("by_duckdb")
    with duckdb_with_iceberg(tmp_path) as connection:
        connection.execute(
            f"CREATE SECRET (TYPE s3, KEY_ID '{s3_server.access_key}', SECRET '{s3_server.secret_key}',"
            f" ENDPOINT '127.0.0.1:{s3_server.port}', REGION '{s3_server.region}', URL_STYLE 'path', USE_SSL false)"
        )
        connection.execute(
            f"ATTACH '' AS tower (TYPE iceberg, ENDPOINT '{server}', AUTHORIZATION_TYPE 'none',"
            " ACCESS_DELEGATION_MODE 'none')"
        )
        connection.execute("CREATE TABLE tower.by_duckdb.numbers AS SELECT i AS id FROM range(10) r(i)")
        connection.execute("INSERT INTO tower.by_duckdb.numbers VALUES (10)")
        assert connection.execute("SELECT sum(id) FROM tower.by_duckdb.numbers").fetchall() == [(55,)]

    read = catalog.load_table(("by_duckdb", "numbers")).scan().to_arrow()
    assert sorted(read["id"].to_pylist()) == list(range(11))


def test_file_system_tables_on_s3(server: str, s3_server: S3Server, tmp_path: Path) -> None:
    """Two servers with databases of their own write one table: the store says who creates a version."""
    storage = s3_server.storage
    settings = {
        "name": "files",
        "root-location": f"s3://{BUCKET}/tables",
        "layout": "hadoop",
        "storage": storage,
        "default-properties": storage,
    }
    with icetower_process(tmp_path, storage_environment="*", log_level="warning") as second:
        for url in (server, second):
            httpx.post(f"{url}/management/v1/warehouses", json=settings).raise_for_status()
        first_files = RestCatalog("one", uri=server, warehouse="files")
        first_files.create_namespace("shop")
        first_files.create_table(
            "shop.numbers",
            Schema(NestedField(1, "id", LongType())),
            properties={"commit.retry.num-retries": "20", "write.metadata.compression-codec": "gzip"},
        )
        together = threading.Barrier(4)

        def append(writer: int) -> None:
            url = (server, second)[writer % 2]
            mine = RestCatalog("mine", uri=url, warehouse="files").load_table("shop.numbers")
            together.wait()
            for number in range(3):
                mine.append(pa.table({"id": [writer * 10 + number]}))

        with ThreadPoolExecutor(4) as writers:
            list(writers.map(append, range(4)))
        there = RestCatalog("two", uri=second, warehouse="files")
        found = sorted(there.load_table("shop.numbers").scan().to_arrow()["id"].to_pylist())

    assert found == sorted(writer * 10 + number for writer in range(4) for number in range(3))
    names = [key.rpartition("/")[2] for key in keys(s3_server, f"s3://{BUCKET}/tables/shop/numbers/metadata")]
    versions = sorted(int(name[1:].partition(".")[0]) for name in names if name.endswith(".gz.metadata.json"))
    assert versions == list(range(2, 14))
    assert not [name for name in names if "probe" in name]
    assert first_files.list_tables("shop") == [("shop", "numbers")]
    first_files.purge_table("shop.numbers")
    first_files.drop_namespace("shop")
    assert keys(s3_server, f"s3://{BUCKET}/tables") == []
    assert first_files.list_namespaces() == []
