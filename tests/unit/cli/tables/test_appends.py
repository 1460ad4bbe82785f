"""`icetower table append` against a real server."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from app.client.catalog import RemoteCatalog
from app.engine.model.identifiers import Namespace, TableIdentifier
from tests.builders.parquet_files import parquet
from tests.unit.cli.conftest import Icetower


@pytest.fixture
def data(catalog: RemoteCatalog, namespace: str) -> str:
    """Where the data files of table `appended` lie: two are there."""
    schema = {
        "type": "struct",
        "fields": [
            {"id": 1, "name": "id", "type": "long", "required": False},
            {"id": 2, "name": "day", "type": "string", "required": False},
        ],
    }
    spec = {"fields": [{"name": "day", "transform": "identity", "source-id": 2, "field-id": 1000}]}
    identifier = TableIdentifier(Namespace((namespace,)), "appended")
    made = catalog.tables.create(identifier, schema, partition_spec=spec)
    location: str = made.metadata["location"]
    folder = Path(location.removeprefix("file://"), "data", "day=x")
    folder.mkdir(parents=True)
    for number in range(2):
        (folder / f"{number}.parquet").write_bytes(parquet(pa.table({"id": [1, 2]})))
    return f"{location}/data/day=x"


def test_files_are_appended_and_refused_the_second_time(
    icetower: Icetower, namespace: str, data: str
) -> None:
    name = f"{namespace}.appended"

    done = icetower("table", "append", name, f"{data}/0.parquet", "--partition", '{"day": "x"}')
    again = icetower("table", "append", name, f"{data}/0.parquet", "--partition", '{"day": "x"}')

    assert done.status == 0
    assert done.out.startswith(f"Appended 1 file with 2 rows to main of table {name} as snapshot ")
    assert again.status == 1
    assert "Cannot append files that branch main has already" in again.err


def test_partition_comes_from_the_folder_and_the_answer_as_json(
    icetower: Icetower, catalog: RemoteCatalog, namespace: str, data: str
) -> None:
    name = f"{namespace}.appended"
    paths = [f"{data}/{number}.parquet" for number in range(2)]

    done = icetower("table", "append", name, *paths, "--partition-from-path", "--json")

    assert done.json["added-data-files"] == 2
    assert done.json["added-records"] == 4
    identifier = TableIdentifier(Namespace((namespace,)), "appended")
    files = list(catalog.history.files(identifier, "main"))
    assert [file["partition"] for file in files] == [{"day": "x"}] * 2
