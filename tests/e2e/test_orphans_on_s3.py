"""Orphans of a PyIceberg table in an S3-compatible store: found, marked and deleted, and nothing else."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import httpx
import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from tests.builders.parquet_files import parquet_rows
from tests.e2e.test_on_s3 import keys
from tests.servers.icetower import icetower_process
from tests.servers.s3 import S3Server

pytestmark = pytest.mark.s3

BUCKET = "orphans"
YOUNG_S = 2.0


@pytest.fixture(scope="module")
def server(s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server to which files are old after seconds: a store's times cannot be changed."""
    s3_server.create_bucket(BUCKET)
    storage = json.dumps(s3_server.storage)
    with icetower_process(
        tmp_path_factory.mktemp("icetower-s3"),
        default_warehouse_location=f"s3://{BUCKET}/warehouse",
        default_warehouse_storage=storage,
        default_warehouse_properties=storage,
        orphan_age_hours=str(YOUNG_S / 3600),
        file_deletion_interval_seconds="0.2",
    ) as url:
        yield url


def orphans(server: str, table: str = "numbers", **wish: object) -> dict[str, object]:
    body = {name.replace("_", "-"): value for name, value in wish.items()}
    answer = httpx.post(f"{server}/v1/namespaces/on_s3/tables/{table}/orphans", json=body, timeout=60)
    assert answer.status_code == 200, answer.text
    found: dict[str, object] = answer.json()
    return found


def test_orphans_are_deleted_and_the_table_reads_on(server: str, s3_server: S3Server) -> None:
    catalog = RestCatalog("tower", uri=server)
    catalog.create_namespace("on_s3")
    table = catalog.create_table(("on_s3", "numbers"), Schema(NestedField(1, "id", LongType())))
    table.append(pa.table({"id": [1, 2, 3]}))
    table.delete("id = 2")
    location = table.location().removeprefix("s3://")
    before = set(keys(s3_server, table.location()))
    left = {
        f"{location}/{name}" for name in ("data/left one.parquet", "data/p=%20/left", "metadata/left.avro")
    }
    for key in left:
        with s3_server.filesystem().open_output_stream(key) as stream:
            stream.write(b"left")
    deadline = time.monotonic() + 60
    found: dict[str, object] = {}
    while found.get("orphan-files") != len(left) and time.monotonic() < deadline:
        time.sleep(0.2)
        found = orphans(server, older_than_ms=int((time.time() - YOUNG_S - 0.5) * 1000))

    assert {file["location"].removeprefix("s3://") for file in found["sample"]} == left  # type: ignore[attr-defined]  # JSON
    assert found["reached-files"] == len(before)
    orphans(server, older_than_ms=found["older-than-ms"], dry_run=False, grace_period_ms=0)

    while set(keys(s3_server, table.location())) != before and time.monotonic() < deadline:
        time.sleep(0.2)
    assert set(keys(s3_server, table.location())) == before
    assert sorted(catalog.load_table(("on_s3", "numbers")).scan().to_arrow()["id"].to_pylist()) == [1, 3]


def test_a_file_that_the_store_lists_under_another_name_is_no_orphan(
    server: str, s3_server: S3Server
) -> None:
    """This store takes a backslash for a slash."""
    catalog = RestCatalog("tower", uri=server)
    catalog.create_namespace_if_not_exists("on_s3")
    table = catalog.create_table(("on_s3", "spelled"), Schema(NestedField(1, "id", LongType())))
    name = table.location() + "/data/part\\1.parquet"
    with s3_server.filesystem().open_output_stream(name.removeprefix("s3://")) as stream:
        stream.write(parquet_rows(id=[1, 2]))
    table.add_files([name])
    listed = set(keys(s3_server, table.location()))
    deadline = time.monotonic() + 60
    found: dict[str, object] = {}
    while found.get("staying-files", {}) != {"reached": len(listed)} and time.monotonic() < deadline:
        time.sleep(0.2)
        found = orphans(server, "spelled", older_than_ms=int((time.time() - YOUNG_S - 0.5) * 1000))

    assert name.removeprefix("s3://") not in listed
    assert found["staying-files"] == {"reached": len(listed)}
    assert found["orphan-files"] == 0
