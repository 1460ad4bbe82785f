"""Folders of Parquet files become tables that PyIceberg reads, filters and writes on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from time import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.rest import RestCatalog

from app.client.catalog import RemoteCatalog
from app.engine.model.data_types.types import parse_primitive
from app.engine.model.document import MAX_LONG
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.errors import InvalidDataFile
from app.fileio.schemes import files_for
from app.moving.parquet_folders import (
    AppendedFolder,
    ParquetFolder,
    append_new_files,
    listed_files,
    look_at,
)
from app.moving.sources import SourceFailed
from tests.builders.aged_tables import let_be_a_day_old
from tests.servers.icetower import icetower_process

EVENTS = TableIdentifier(Namespace(("raw",)), "events")
FILES = files_for({})


def make_table(catalog: RemoteCatalog, folder: ParquetFolder, location: str | None = None) -> None:
    append_new_files(
        catalog, EVENTS, dict.fromkeys(folder.files, 0), lambda _paths: folder, location=location
    )


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    folder = tmp_path / "lake"
    folder.mkdir()
    return folder


@pytest.fixture
def uri(lake: Path, tmp_path: Path) -> Iterator[str]:
    with icetower_process(tmp_path, default_warehouse_location=str(lake)) as address:
        with RemoteCatalog(address) as catalog:
            catalog.namespaces.create(Namespace(("raw",)))
        yield address


def write(folder: Path, name: str, **columns: object) -> None:
    place = folder / name
    place.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), place)


def again(catalog: RemoteCatalog, root: str) -> AppendedFolder:
    """Append what is new in a folder."""
    found = listed_files(root, FILES)
    return append_new_files(catalog, EVENTS, found, lambda paths: look_at(paths, FILES, root=root))


def test_folders_like_hive_become_a_partitioned_table_and_grow(lake: Path, uri: str) -> None:
    raw = lake / "raw-events"
    for day in ("2025-10-08", "2025-10-09"):
        for hour in (7, 11):
            write(raw, f"day={day}/hour={hour}/part-0.parquet", id=[hour], note=["x"])
    write(
        raw,
        "day=2025-10-09/hour=__HIVE_DEFAULT_PARTITION__/part-0.parquet",
        id=[99],
        note=pa.array([None], pa.string()),
    )
    write(raw, "_temporary/broken.parquet", id=[0])
    root = f"file://{raw}"

    with RemoteCatalog(uri) as catalog:
        found = look_at([*listed_files(root, FILES)], FILES, root=root)
        assert {name: str(kind) for name, kind in found.partitions.items()} == {"day": "date", "hour": "int"}
        assert again(catalog, root).appended == 5

        table = RestCatalog("here", uri=uri).load_table("raw.events")
        rows = {(row["id"], row["day"], row["hour"]) for row in table.scan().to_arrow().to_pylist()}
        early, late = date(2025, 10, 8), date(2025, 10, 9)
        assert rows == {(7, early, 7), (11, early, 11), (7, late, 7), (11, late, 11), (99, late, None)}
        assert len(list(table.scan(row_filter="day = '2025-10-08' and hour = 7").plan_files())) == 1
        assert table.name_mapping() is not None

        write(raw, "day=2025-10-10/hour=1/part-0.parquet", id=[5], note=["new"])
        assert again(catalog, root).appended == 1
    table.refresh()
    assert table.scan().to_arrow().num_rows == 6
    table.append(table.scan(row_filter="id = 5").to_arrow())
    assert table.scan(row_filter="id = 5").to_arrow().num_rows == 2


def test_files_with_different_columns_share_the_widest_types(lake: Path, uri: str) -> None:
    write(lake, "raw/a.parquet", id=pa.array([1], pa.int32()), tags=[["x"]])
    write(lake, "raw/b.parquet", id=pa.array([1 << 40], pa.int64()), place=[{"shelf": 3}])
    found = look_at([*listed_files(f"file://{lake}/raw", FILES)], FILES)

    with RemoteCatalog(uri) as catalog:
        make_table(catalog, found)

    rows = RestCatalog("here", uri=uri).load_table("raw.events").scan().to_arrow().to_pylist()
    assert sorted(rows, key=lambda row: row["id"]) == [
        {"id": 1, "tags": ["x"], "place": None},
        {"id": 1 << 40, "tags": None, "place": {"shelf": 3}},
    ]


def test_partition_types_are_chosen_or_concluded(lake: Path) -> None:
    write(lake, "raw/month=07/code=1/a.parquet", id=[1])
    root = f"file://{lake}/raw"
    paths = [*listed_files(root, FILES)]

    assert str(look_at(paths, FILES, root=root).partitions["month"]) == "string"
    chosen = look_at(paths, FILES, {"code": parse_primitive("string")}, root)
    assert str(chosen.partitions["code"]) == "string"


def test_file_that_does_not_fit_is_named_and_nothing_is_made(lake: Path, uri: str) -> None:
    write(lake, "raw/a.parquet", id=[1])
    write(lake, "raw/b.parquet", id=["one"])
    root = f"file://{lake}/raw"
    with pytest.raises(InvalidDataFile, match=r"raw/b\.parquet: its column id is of type string"):
        look_at([*listed_files(root, FILES)], FILES)

    (lake / "raw" / "b.parquet").write_bytes(b"no Parquet at all")
    with pytest.raises(InvalidDataFile, match=r"raw/b\.parquet: it is not a Parquet file"):
        look_at([*listed_files(root, FILES)], FILES)
    with pytest.raises(SourceFailed, match="There are no files"):
        listed_files(f"file://{lake}/nothing", FILES)

    (lake / "raw" / "b.parquet").unlink()
    write(lake, "raw/day=1/c.parquet", id=[1])
    with pytest.raises(InvalidDataFile, match="name the columns day, those of others none"):
        look_at([*listed_files(root, FILES)], FILES, root=root)


def test_files_outside_the_warehouse_are_refused(tmp_path: Path, uri: str) -> None:
    write(tmp_path, "elsewhere/a.parquet", id=[1])
    found = look_at([*listed_files(f"file://{tmp_path}/elsewhere", FILES)], FILES)

    with (
        RemoteCatalog(uri) as catalog,
        pytest.raises(SourceFailed, match=r"outside warehouse.*has been made and is empty"),
    ):
        make_table(catalog, found)


def test_folder_of_nanoseconds_becomes_a_table_of_version_3(lake: Path, uri: str) -> None:
    write(lake, "raw/a.parquet", at=pa.array([1_000_000_001], pa.timestamp("ns")))
    found = look_at([*listed_files(f"file://{lake}/raw", FILES)], FILES)
    assert found.properties == {"format-version": "3"}

    with RemoteCatalog(uri) as catalog:
        make_table(catalog, found)
        (file,) = catalog.history.files(EVENTS)
    assert file["record-count"] == 1


def test_files_that_the_table_has_let_go_are_not_appended_again(lake: Path, uri: str) -> None:
    for name in "abcd":
        write(lake, f"new/{name}.parquet", id=[f"{name}1", f"{name}2"])
    root = f"file://{lake}/new"
    table_of = RestCatalog("here", uri=uri).load_table
    with RemoteCatalog(uri) as catalog:
        again(catalog, root)
        table_of("raw.events").delete("id = 'a1'")
        table_of("raw.events").overwrite(table_of("raw.events").scan().to_arrow())
        write(lake, "new/e.parquet", id=["e1"])

        done = again(catalog, root)

    assert (done.appended, done.let_go) == (1, [f"{root}/{name}.parquet" for name in "abcd"])
    rows = table_of("raw.events").scan().to_arrow()["id"].to_pylist()
    assert sorted(rows) == ["a2", "b1", "b2", "c1", "c2", "d1", "d2", "e1"]


def test_files_of_snapshots_that_were_rolled_back_are_left_out(lake: Path, uri: str) -> None:
    root = f"file://{lake}/new"
    with RemoteCatalog(uri) as catalog:
        for name in "ab":
            write(lake, f"new/{name}.parquet", id=[name])
            again(catalog, root)
        _, first = catalog.history.snapshots(EVENTS)
        catalog.refs.change(EVENTS, "main", {"rollback-to": first["snapshot-id"]})

        done = again(catalog, root)

    assert (done.appended, done.let_go) == (0, [f"{root}/b.parquet"])


def test_files_as_old_as_expired_snapshots_are_left_out(lake: Path, uri: str) -> None:
    root = f"file://{lake}/new"
    table_of = RestCatalog("here", uri=uri).load_table
    with RemoteCatalog(uri) as catalog:
        write(lake, "new/a.parquet", id=["a"])
        again(catalog, root)
        table_of("raw.events").overwrite(table_of("raw.events").scan().to_arrow())
        catalog.tables.expire(EVENTS, older_than_ms=MAX_LONG, retain_last=1)
        write(lake, "new/b.parquet", id=["b"])
        tomorrow = time() + 24 * 3_600
        os.utime(lake / "new" / "b.parquet", (tomorrow, tomorrow))

        done = again(catalog, root)

    assert (done.appended, done.unsure) == (1, [f"{root}/a.parquet"])
    assert sorted(table_of("raw.events").scan().to_arrow()["id"].to_pylist()) == ["a", "b"]


def test_files_that_were_rewritten_do_not_come_back_where_a_tag_keeps_an_old_snapshot(
    lake: Path, uri: str
) -> None:
    """The snapshots between the tag and now have expired: nothing says any more which files they had."""
    root = f"file://{lake}/new"
    table_of = RestCatalog("here", uri=uri).load_table
    with RemoteCatalog(uri) as catalog:
        write(lake, "new/a.parquet", id=["a"])
        again(catalog, root)
        let_be_a_day_old(catalog, EVENTS)
        catalog.refs.change(EVENTS, "month", {"type": "tag"})
        write(lake, "new/b.parquet", id=["b"])
        again(catalog, root)
        table_of("raw.events").overwrite(table_of("raw.events").scan().to_arrow())
        catalog.tables.expire(EVENTS, older_than_ms=MAX_LONG, retain_last=1)

        done = again(catalog, root)

    assert (done.appended, done.let_go, done.unsure) == (0, [f"{root}/a.parquet"], [f"{root}/b.parquet"])
    assert sorted(table_of("raw.events").scan().to_arrow()["id"].to_pylist()) == ["a", "b"]


def test_files_of_the_table_itself_may_lie_in_the_folder(lake: Path, uri: str) -> None:
    root = f"file://{lake}/new"
    write(lake, "new/a.parquet", id=["a"])
    table_of = RestCatalog("here", uri=uri).load_table
    with RemoteCatalog(uri) as catalog:
        make_table(catalog, look_at([f"{root}/a.parquet"], FILES), location=root)
        table_of("raw.events").append(table_of("raw.events").scan().to_arrow())
        write(lake, "new/b.parquet", id=["b"])

        assert again(catalog, root).appended == 1

    assert sorted(table_of("raw.events").scan().to_arrow()["id"].to_pylist()) == ["a", "a", "b"]
