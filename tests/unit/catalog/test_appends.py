from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pytest

from app.catalog import appends, named
from app.catalog.appends import AppendRequest, WantedFile, begin_append
from app.catalog.commits.appends import Appended
from app.catalog.context.catalog import Catalog
from app.catalog.context.seen.live_paths import LivePaths
from app.catalog.tables import NewTable
from app.engine.model.ids import Location
from app.engine.model.schema import Schema
from app.errors import CommitRefused, FilesUnavailable, GivenUp, InvalidDataFile
from app.fileio.memory import MemoryFiles
from app.fileio.wanted import ask_if_wanted
from app.formats.manifests.source import ManifestCache
from tests.builders.catalogs import catalog_on, with_server
from tests.builders.counting_files import CountingFiles
from tests.builders.failing_files import FailingFiles
from tests.builders.parquet_files import parquet
from tests.builders.tables import DEPARTURES, load_table, namespace_in, table_in


def put(catalog: Catalog, name: str, rows: pa.Table) -> Location:
    location = Location(f"{load_table(catalog).metadata.location}/data/{name}")
    catalog.files.write_new(location, parquet(rows))
    return location


def append(catalog: Catalog, *paths: Location) -> Appended:
    landing = begin_append(catalog, DEPARTURES, AppendRequest([WantedFile(path) for path in paths]))
    landing.wait()
    detail = landing.finish().detail
    assert detail is not None
    return detail


def rows(count: int) -> pa.Table:
    return pa.table({"id": range(count), "carrier": [f"{number:040}" for number in range(count)]})


def test_of_large_files_only_the_ends_are_read(tmp_path: Path) -> None:
    files = CountingFiles(MemoryFiles())
    catalog = catalog_on(f"sqlite:///{tmp_path}/icetower.db", files)
    table_in(catalog)
    paths = [put(catalog, f"{number}.parquet", rows(100_000)) for number in range(3)]
    files.forget()

    assert append(catalog, *paths).added_records == 300_000

    for path in paths:
        assert len(files.files.read(path)) > 1_000_000
        assert files.read_bytes[path] <= 64 << 10


@pytest.mark.parametrize("kind", [pa.duration("us"), pa.timestamp("us", tz="Europe/Berlin")])
def test_a_column_that_not_all_readers_read_is_refused_by_name(catalog: Catalog, kind: pa.DataType) -> None:
    namespace_in(catalog, DEPARTURES.namespace)
    text = b'{"type":"struct","fields":[{"id":1,"name":"took","required":false,"type":"%s"}]}'
    of_table = b"long" if pa.types.is_duration(kind) else b"timestamptz"
    named.create(catalog, NewTable(DEPARTURES, Schema.from_json(text % of_table), None, None, None, {}))
    strange = put(catalog, "strange.parquet", pa.table({"took": pa.array([1], kind)}))

    with pytest.raises(InvalidDataFile, match=rf"{strange}.*its column took of type (duration|timestamp)"):
        append(catalog, strange)


def test_footer_that_is_larger_than_the_first_look_is_read_whole(catalog: Catalog) -> None:
    table_in(catalog)
    many_groups = parquet(rows(2_000), row_group_size=2)
    location = Location(f"{load_table(catalog).metadata.location}/data/x.parquet")
    catalog.files.write_new(location, many_groups)
    assert int.from_bytes(many_groups[-8:-4], "little") > 64 << 10

    assert append(catalog, location).added_records == 2_000


def test_footers_of_one_request_are_limited_together(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table_in(catalog)
    paths = [put(catalog, f"{number}.parquet", rows(1)) for number in range(3)]
    one_footer = int.from_bytes(catalog.files.read(paths[0])[-8:-4], "little") + 8
    monkeypatch.setattr(appends, "MOST_FOOTER_BYTES", one_footer + 10)

    assert append(catalog, paths[0]).added_data_files == 1
    with pytest.raises(InvalidDataFile, match="the footers of one request may have"):
        append(catalog, *paths[1:])


def test_store_that_does_not_answer_is_no_fault_of_the_file(tmp_path: Path) -> None:
    files = FailingFiles(MemoryFiles())
    catalog = catalog_on(f"sqlite:///{tmp_path}/icetower.db", files)
    table_in(catalog)
    path = put(catalog, "1.parquet", rows(1))
    files.unreadable.add(path)

    with pytest.raises(FilesUnavailable):
        append(catalog, path)

    assert load_table(catalog).metadata.snapshots == ()


def test_nothing_is_read_for_a_client_that_has_gone(catalog: Catalog) -> None:
    table_in(catalog)
    paths = [put(catalog, f"{number}.parquet", rows(1)) for number in range(3)]

    def gone() -> None:
        raise GivenUp("it has gone")

    token = ask_if_wanted.set(gone)
    try:
        with pytest.raises(GivenUp):
            append(catalog, *paths)
    finally:
        ask_if_wanted.reset(token)
    assert load_table(catalog).metadata.snapshots == ()


@pytest.mark.parametrize("started", [0, 1])
def test_where_no_thread_can_be_started_files_are_looked_at_all_the_same(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, started: int
) -> None:
    table_in(catalog)
    paths = [put(catalog, f"{number}.parquet", rows(number)) for number in range(1, 5)]
    start, names = threading.Thread.start, list[str]()

    def refuse(thread: threading.Thread) -> None:
        if thread.name.startswith("data files"):
            names.append(thread.name)
            if len(names) > started:
                raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)

    assert append(catalog, *paths).added_records == 10
    assert len(names) > started
    with pytest.raises(InvalidDataFile, match=r"3.parquet/missing: there is no such file"):
        append(catalog, *(Location(f"{path}/missing") for path in paths[2:]))


@pytest.mark.parametrize("damage", ["gone", "no Avro"])
def test_an_append_beside_a_damaged_manifest_list_certainly_did_not_land(
    catalog: Catalog, damage: str
) -> None:
    table_in(catalog)
    append(catalog, put(catalog, "1.parquet", rows(1)))
    before = load_table(catalog).metadata
    assert before.current_snapshot is not None
    damaged = before.current_snapshot.manifest_list
    assert damaged is not None
    catalog.files.delete(damaged)
    if damage != "gone":
        catalog.files.write_new(damaged, b"something else")
    catalog = with_server(catalog, live_paths=LivePaths(1 << 20), manifest_cache=ManifestCache(1 << 20))

    with pytest.raises(CommitRefused, match=f"{damaged}.*Nothing was changed. Put that file back"):
        append(catalog, put(catalog, "2.parquet", rows(1)))

    assert load_table(catalog).metadata == before
