"""Appending a folder of Parquet files to a table that others change meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.client.catalog import RemoteCatalog
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.fileio.local import LocalFiles
from app.moving.parquet_folders import ParquetFolder, append_new_files, look_at
from app.moving.sources import SourceFailed
from tests.builders.http_catalog import http_catalog

RAW = TableIdentifier(Namespace(("a",)), "raw")


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[RemoteCatalog]:
    with http_catalog(tmp_path) as served, RemoteCatalog(str(served.base_url)) as client:
        yield client


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "warehouse" / "raw"
    found.mkdir(parents=True)
    for name in ("a", "b"):
        pq.write_table(pa.table({"id": [1, 2]}), found / f"{name}.parquet")
    return found


def look(paths: Sequence[str]) -> ParquetFolder:
    return look_at(paths, LocalFiles())


def test_table_that_is_made_anew_meanwhile_gets_no_file(catalog: RemoteCatalog, folder: Path) -> None:
    """Which files are new was found out about the table that has gone."""
    first, second = (f"file://{folder / name}" for name in ("a.parquet", "b.parquet"))
    append_new_files(catalog, RAW, {first: 0}, look)

    def look_while_it_is_made_anew(paths: Sequence[str]) -> ParquetFolder:
        found = look(paths)
        catalog.tables.drop(RAW)
        catalog.tables.create(RAW, found.schema.to_object())
        return found

    with pytest.raises(SourceFailed, match=r"a\.raw is another table since this began"):
        append_new_files(catalog, RAW, {first: 0, second: 0}, look_while_it_is_made_anew)

    assert catalog.tables.load(RAW).metadata.get("snapshots") == []
    assert append_new_files(catalog, RAW, {first: 0, second: 0}, look).appended == 2
