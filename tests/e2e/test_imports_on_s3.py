"""Tables and Parquet files in an S3-compatible store move in, also under another spelling of their paths."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import fs
from pyarrow import parquet as pq
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog

from app.client.catalog import RemoteCatalog
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.fileio.schemes import files_for
from app.moving.choices import PathMap
from app.moving.folder_source import FolderSource
from app.moving.parquet_folders import append_new_files, listed_files, look_at
from app.moving.reports import MoveState
from app.moving.sql_source import SqlSource
from app.moving.terms import Mode, Terms
from tests.builders.moves import Moves
from tests.servers.icetower import icetower_process
from tests.servers.s3 import S3Server

pytestmark = pytest.mark.s3

BUCKET = "imports"
ROWS = pa.table({"id": [1, 2, 3]})


@pytest.fixture(scope="module")
def server(s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    s3_server.create_bucket(BUCKET)
    storage = json.dumps(s3_server.storage)
    with icetower_process(
        tmp_path_factory.mktemp("icetower-s3"),
        default_warehouse_location=f"s3://{BUCKET}/lake",
        default_warehouse_storage=storage,
        default_warehouse_properties=storage,
    ) as url:
        yield url


def test_table_with_paths_of_hadoop_is_adopted_by_a_map_of_paths(
    server: str, s3_server: S3Server, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'old.db'}"
    theirs = SqlCatalog("old", uri=url, warehouse=f"s3a://{BUCKET}/lake/old", **s3_server.storage)
    theirs.create_namespace("sales")
    theirs.create_table("sales.orders", ROWS.schema).append(ROWS)
    theirs.engine.dispose()
    moves = Moves(server, tmp_path / "report.ndjson")

    with closing(SqlSource(url)) as source:
        terms = Terms(Mode.ADOPT, paths=PathMap([("s3a://", "s3://")]))
        assert moves.run(source, terms) == {"sales.orders": MoveState.DONE}

    line = moves.lines["sales.orders"]
    assert "other-scheme" in line.codes
    assert (line.source_location or "").startswith("s3a://")
    assert (line.location or "").startswith("s3://")
    here = RestCatalog("new", uri=server).load_table("sales.orders")
    here.append(ROWS)
    assert sorted(here.scan().to_arrow()["id"].to_pylist()) == [1, 1, 2, 2, 3, 3]


def test_folders_in_a_bucket_are_found(server: str, s3_server: S3Server, tmp_path: Path) -> None:
    here = RestCatalog("new", uri=server)
    here.create_namespace("lost")
    table = here.create_table("lost.orders", ROWS.schema)
    table.append(ROWS)
    place = table.location()
    here.drop_table("lost.orders")
    files = files_for(dict(s3_server.storage))
    moves = Moves(server, tmp_path / "report.ndjson")

    source = FolderSource(place, files, Namespace(("lost",)))
    name = f"lost.{place.rsplit('/', 1)[1]}"
    assert moves.run(source) == {name: MoveState.DONE}
    assert here.load_table(name).scan().to_arrow().num_rows == 3

    s3 = s3_server.filesystem()
    assert isinstance(s3, fs.FileSystem)
    for day in (1, 2):
        pq.write_table(ROWS, f"{BUCKET}/lake/raw/day={day}/a.parquet", filesystem=s3)
    root = f"s3://{BUCKET}/lake/raw"
    found = listed_files(root, files)
    with RemoteCatalog(server) as catalog:
        raw = TableIdentifier(Namespace(("lost",)), "raw")
        done = append_new_files(catalog, raw, found, lambda paths: look_at(paths, files, root=root))
        assert done.appended == 2
    assert here.load_table("lost.raw").scan(row_filter="day = 2").to_arrow().num_rows == 3
