"""A catalog in an S3-compatible store, found again by its files and by its export."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from tests.e2e.patience import wait_until
from tests.e2e.test_on_s3 import keys
from tests.servers.commands import icetower_command
from tests.servers.icetower import icetower_process
from tests.servers.s3 import S3Server

pytestmark = pytest.mark.s3

BUCKET = "recovery"
ROOT = f"s3://{BUCKET}/warehouse"


def test_a_catalog_on_s3_comes_back(s3_server: S3Server, tmp_path: Path) -> None:
    s3_server.create_bucket(BUCKET)
    storage = json.dumps(s3_server.storage)
    settings = {
        "default_warehouse_location": ROOT,
        "default_warehouse_storage": storage,
        "default_warehouse_properties": storage,
    }
    often = {"pointer_export_hours": "0.0001", "file_deletion_interval_seconds": "0.05"}
    with icetower_process(tmp_path, **settings, **often) as url:
        catalog = RestCatalog("tower", uri=url)
        catalog.create_namespace("on_s3", {"owner": "anna"})
        for name in ("kept", "before"):
            table = catalog.create_table(("on_s3", name), Schema(NestedField(1, "id", LongType())))
            table.append(pa.table({"id": [1, 2, 3]}))
        catalog.rename_table(("on_s3", "before"), ("on_s3", "after"))
        wait_for_export(s3_server, "after")
    with icetower_process(tmp_path, **settings) as url:
        RestCatalog("tower", uri=url).load_table("on_s3.kept").append(pa.table({"id": [4]}))
    for file in tmp_path.glob("icetower.db*"):
        file.unlink()

    done = icetower_command(tmp_path, "rebuild", "--yes", "--json", **settings)

    assert done.status == 0, done.err
    assert done.lines[-1]["summary"]["export"].startswith(f"{ROOT}/.icetower/pointers/default/")
    with icetower_process(tmp_path, **settings) as url:
        catalog = RestCatalog("tower", uri=url)
        assert sorted(catalog.list_tables("on_s3")) == [("on_s3", "after"), ("on_s3", "kept")]
        assert catalog.load_namespace_properties("on_s3")["owner"] == "anna"
        found = catalog.load_table("on_s3.kept").scan().to_arrow()["id"].to_pylist()
        assert sorted(found) == [1, 2, 3, 4]


def wait_for_export(s3_server: S3Server, name: str) -> None:
    """Wait until an export has a name, and all that was done before it was given."""

    def is_in_the_newest() -> bool:
        newest = max(keys(s3_server, f"{ROOT}/.icetower"), default=None)
        if newest is None:
            return False
        with s3_server.filesystem().open_input_file(newest) as export:
            return json.dumps(name).encode() in gzip.decompress(export.read())

    wait_until(is_in_the_newest)
