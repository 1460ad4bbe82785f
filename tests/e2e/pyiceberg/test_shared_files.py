"""A PyIceberg table that took in another one's file with `add_files` reads on when that one deletes its files."""

from __future__ import annotations

from pathlib import Path

import httpx
import pyarrow as pa
import pytest
from pyarrow import parquet
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import LongType, NestedField

from tests.builders.folders import files_below
from tests.e2e.patience import wait_until

SCHEMA = Schema(NestedField(1, "id", LongType()))


@pytest.fixture
def tables(catalog: RestCatalog, namespace: str) -> tuple[Table, Table, Path]:
    """Two tables, and a file of the first one that the second one has taken in."""
    # That it names files outside its places is what this is about, so the guard lets it through.
    properties = {"icetower.guard.ignore": "outside-location"}
    first = catalog.create_table((namespace, "first"), SCHEMA)
    second = catalog.create_table((namespace, "second"), SCHEMA, properties=properties)
    path = Path("/" + first.location().removeprefix("file:").lstrip("/")) / "data" / "shared.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table({"id": pa.array([1, 2, 3], pa.int64())}), path)
    for table in (first, second):
        table.add_files([f"file://{path}"])
    first.append(pa.table({"id": pa.array([4], pa.int64())}))
    return first, second, path


def test_after_a_purge(catalog: RestCatalog, tables: tuple[Table, Table, Path]) -> None:
    first, second, path = tables

    catalog.purge_table(first.name())
    folder = path.parent.parent
    wait_until(lambda: files_below(folder) == {path})

    assert sorted(catalog.load_table(second.name()).scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]


def test_after_an_expiry(catalog: RestCatalog, tables: tuple[Table, Table, Path]) -> None:
    first, second, path = tables
    first.overwrite(pa.table({"id": pa.array([5], pa.int64())}))
    lists = {Path(snapshot.manifest_list.removeprefix("file:")) for snapshot in first.snapshots()[:-1]}
    namespace, name = first.name()
    url = f"{catalog.uri}/v1/namespaces/{namespace}/tables/{name}/expire"
    assert all(each.exists() for each in lists)
    answer = httpx.post(
        url, json={"older-than-ms": 4_000_000_000_000, "retain-last": 1, "grace-period-ms": 0}
    )
    assert answer.status_code == 200, answer.text

    wait_until(lambda: not any(each.exists() for each in lists))

    assert path.exists()
    assert sorted(catalog.load_table(second.name()).scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]
    assert catalog.load_table(first.name()).scan().to_arrow()["id"].to_pylist() == [5]
