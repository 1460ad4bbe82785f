"""`icetower table rewrite-manifests`, `remove-dangling-deletes` and `partition-statistics` against a real server."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from app.client.catalog import RemoteCatalog
from app.engine.model.identifiers import Namespace, TableIdentifier
from tests.builders.parquet_files import parquet
from tests.unit.cli.conftest import Icetower


@pytest.fixture
def name(catalog: RemoteCatalog, namespace: str) -> str:
    """A table by day whose two files have a manifest each."""
    schema = {
        "type": "struct",
        "fields": [
            {"id": 1, "name": "id", "type": "long", "required": False},
            {"id": 2, "name": "day", "type": "string", "required": False},
        ],
    }
    spec = {"fields": [{"name": "day", "transform": "identity", "source-id": 2, "field-id": 1000}]}
    identifier = TableIdentifier(Namespace((namespace,)), "kept")
    location: str = catalog.tables.create(identifier, schema, partition_spec=spec).metadata["location"]
    folder = Path(location.removeprefix("file://"), "data")
    folder.mkdir(parents=True)
    for number in range(2):
        (folder / f"{number}.parquet").write_bytes(parquet(pa.table({"id": [number]})))
        file = {"file-path": f"{location}/data/{number}.parquet", "partition": {"day": f"d{number}"}}
        catalog.appends.append(identifier, [file])
    return f"{namespace}.kept"


def test_manifests_are_shown_then_rewritten_then_left_alone(icetower: Icetower, name: str) -> None:
    shown = icetower("table", "rewrite-manifests", name, "--dry-run")
    assert shown.status == 0
    assert "2 manifests" in shown.out
    assert icetower("table", "rewrite-manifests", name, "--dry-run", "--json").json["manifests-replaced"] == 2
    # Without a terminal nobody can be asked.
    assert icetower("table", "rewrite-manifests", name).status != 0

    done = icetower("table", "rewrite-manifests", name, "--yes", "--cluster-by", "day")

    assert (done.status, done.err) == (0, "")
    assert f"Replaced 2 manifests of table {name} by 1 new one, with 2 files, as snapshot " in done.out
    again = icetower("table", "rewrite-manifests", name, "--yes")
    assert "is worth being rewritten" in again.out + again.err
    assert (
        "is worth being rewritten" in (found := icetower("table", "rewrite-manifests", name)).out + found.err
    )
    assert icetower("table", "rewrite-manifests", name, "--yes", "--json").json["manifests-replaced"] == 0


def test_a_refusal_is_shown(icetower: Icetower, name: str) -> None:
    refused = icetower("table", "rewrite-manifests", name, "--cluster-by", "id", "--yes")

    assert refused.status != 0
    assert "Cannot cluster-by 'id'" in refused.err


def test_dangling_deletes_are_counted(icetower: Icetower, name: str) -> None:
    found = icetower("table", "remove-dangling-deletes", name, "--dry-run", "--json").json
    assert found["removed-delete-files"] == 0
    for arguments in ((), ("--yes",), ("--dry-run",)):
        shown = icetower("table", "remove-dangling-deletes", name, *arguments)
        assert "is without a data file" in shown.out + shown.err
    assert icetower("table", "remove-dangling-deletes", name, "--yes", "--json").json["removed-dvs"] == 0


def test_statistics_are_written(icetower: Icetower, name: str) -> None:
    shown = icetower("table", "partition-statistics", name, "--dry-run")
    assert "partitions" in shown.out
    assert icetower("table", "partition-statistics", name, "--dry-run", "--json").json["partitions"] == 2

    done = icetower("table", "partition-statistics", name, "--yes")

    assert f"Wrote statistics of 2 partitions of table {name} to file://" in done.out
    assert icetower("table", "partition-statistics", name, "--yes", "--json").json["partitions"] == 2
