"""Orphans of a table: which are found, marked and deleted, and what stays."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.catalog import named, namespaces
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.deletions.expiry import ExpiryRequest, expire_snapshots
from app.catalog.deletions.orphan_search import OrphanWish
from app.catalog.deletions.orphans import mark_orphans, orphan_runs, preview_orphans
from app.engine.change.updates import RemoveSnapshots, SetLocation, SetProperties
from app.engine.model.files.manifests import DataFile, FileContent
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location
from app.engine.model.table_metadata import TableMetadata
from app.engine.retention.expired_snapshots import ExpiryWish
from app.engine.retention.reachability import CleanupLevel
from app.errors import (
    FilesBeingDeleted,
    FilesUnavailable,
    InvalidLocation,
    InvalidRequest,
    NoSuchTable,
    NoSuchWarehouse,
    OrphansRefused,
)
from app.fileio.local import LocalFiles
from app.recoveries import OrphansWait
from tests.builders.catalogs import new_warehouse, server_on, with_server
from tests.builders.commits import commit_table
from tests.builders.failing_files import FailingFiles
from tests.builders.queues import let_reads_take_long, work_off_one
from tests.builders.table_files import TableFiles
from tests.builders.tables import DEPARTURES, FLIGHTS, append, commit_to, load_table, table_in

OTHER = TableIdentifier(FLIGHTS, "other")
DAY_S = 24 * 3600.0


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    server = server_on(f"sqlite:///{tmp_path}/icetower.db", LocalFiles())
    return new_warehouse(server, root=f"file://{tmp_path}/wh")


def write_old(location: str, *, days: float = 10) -> str:
    """Write a file that is some days old."""
    LocalFiles().write_new(Location(location), b"junk")
    make_old(location, days)
    return location


def make_old(location: str, days: float = 10) -> None:
    path = Path(location.removeprefix("file://"))
    then = path.stat().st_mtime - days * DAY_S
    os.utime(path, (then, then))


def table_with_history(catalog: Catalog) -> str:
    """Make a table of three snapshots whose files are ten days old, and return its location."""
    table_in(catalog)
    files = TableFiles(LocalFiles())
    for name in ("a", "b", "c"):
        made = files.snapshot(load_table(catalog).metadata, [name])
        commit_to(catalog, *append(made))
    location = load_table(catalog).metadata.location
    for file in LocalFiles().list_files(location):
        make_old(file.location)
    return location


def found(catalog: Catalog, **wish: Any) -> set[str]:
    preview = preview_orphans(catalog, DEPARTURES, OrphanWish(**wish))
    return {file.location for file in preview.files.values()}


def there(location: str) -> set[str]:
    return {file.location for file in LocalFiles().list_files(Location(location))}


class NamingFiles(TableFiles):
    """Names a file that is there already, whosever it is."""

    named: Location

    def _data_file(self, metadata: TableMetadata, name: str) -> DataFile:
        return DataFile(FileContent.DATA, self.named, "parquet", metadata.default_spec_id, (), 1, 4)


def name_file(catalog: Catalog, identifier: TableIdentifier, location: str) -> None:
    """Let a table name a file as its own."""
    files = NamingFiles(LocalFiles())
    files.named = Location(location)
    made = files.snapshot(load_table(catalog, identifier).metadata, ["it"])
    commit_table(catalog, identifier, [], append(made))


def work_off(catalog: Catalog) -> None:
    while work_off_one(catalog.server):
        pass


def test_what_nothing_reaches_is_found(catalog: Catalog) -> None:
    location = table_with_history(catalog)
    orphan = write_old(f"{location}/data/junk.parquet")
    write_old(f"{location}/data/young.parquet", days=2)

    preview = preview_orphans(catalog, DEPARTURES, OrphanWish())

    assert {file.location for file in preview.files.values()} == {orphan}
    assert preview.places == [f"{location}/"]
    assert preview.stays == {"reached": preview.listed_files - 2, "young": 1}
    assert there(location) >= {orphan}


def test_marked_orphans_are_deleted_and_nothing_else(catalog: Catalog) -> None:
    location = table_with_history(catalog)
    before = there(location)
    write_old(f"{location}/data/junk.parquet")
    write_old(f"{location}/metadata/junk-m0.avro")

    report = mark_orphans(catalog, DEPARTURES, OrphanWish())
    work_off(catalog)

    assert report.orphan_files == 2
    assert there(location) == before
    (run,) = orphan_runs(catalog, DEPARTURES)
    assert (run.state, run.deleted_files, run.deleted_bytes, run.kept_files) == ("done", 2, 8, 0)


def test_marked_orphans_stay_for_the_grace_period(catalog: Catalog) -> None:
    location = table_with_history(catalog)
    orphan = write_old(f"{location}/data/junk.parquet")

    mark_orphans(catalog, DEPARTURES, OrphanWish(grace_ms=3_600_000))
    work_off(catalog)

    assert orphan in there(location)
    assert [run.state for run in orphan_runs(catalog, DEPARTURES)] == ["queued"]
    with pytest.raises(OrphansWait, match="others are marked and wait"):
        mark_orphans(catalog, DEPARTURES, OrphanWish())


@pytest.mark.parametrize("drops_warehouse", [False, True])
def test_where_the_table_was_dropped_while_its_orphans_were_looked_for_that_is_said(
    catalog: Catalog, *, drops_warehouse: bool
) -> None:
    write_old(f"{table_with_history(catalog)}/data/junk.parquet")
    if not drops_warehouse:
        mark_orphans(catalog, DEPARTURES, OrphanWish(grace_ms=3_600_000))

    def drop_it(step: str) -> None:
        if step == "orphans_found":
            named.drop(catalog, TABLES, DEPARTURES)
            if drops_warehouse:
                namespaces.drop_namespace(catalog, DEPARTURES.namespace)
                catalog.server.warehouses.drop(catalog.warehouse.name)

    with pytest.raises(NoSuchWarehouse if drops_warehouse else NoSuchTable):
        mark_orphans(with_server(catalog, step=drop_it), DEPARTURES, OrphanWish())


def test_nothing_to_mark_leaves_no_run(catalog: Catalog) -> None:
    table_with_history(catalog)

    assert mark_orphans(catalog, DEPARTURES, OrphanWish()).files_deleted_after_ms is None
    assert orphan_runs(catalog, DEPARTURES) == []


def test_a_marked_file_that_the_table_took_in_stays(catalog: Catalog) -> None:
    location = table_with_history(catalog)
    orphan = write_old(f"{location}/data/junk.parquet")
    mark_orphans(catalog, DEPARTURES, OrphanWish())

    name_file(catalog, DEPARTURES, orphan)
    work_off(catalog)

    assert orphan in there(location)
    (run,) = orphan_runs(catalog, DEPARTURES)
    assert (run.state, run.deleted_files, run.kept_files) == ("done", 0, 1)


def test_a_marked_file_that_another_table_names_stays(catalog: Catalog) -> None:
    location = table_with_history(catalog)
    orphan = write_old(f"{location}/data/junk.parquet")
    table_in(catalog, OTHER)
    mark_orphans(catalog, DEPARTURES, OrphanWish())

    name_file(catalog, OTHER, orphan)
    work_off(catalog)

    assert orphan in there(location)
    assert found(catalog) == set()


def test_marked_orphans_are_held_while_it_is_read_what_reaches_them(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = table_with_history(catalog)
    orphan = write_old(f"{location}/data/junk.parquet")
    mark_orphans(catalog, DEPARTURES, OrphanWish(grace_ms=0))
    taken = let_reads_take_long(monkeypatch, catalog.server.file_deletions)

    assert work_off_one(catalog.server)

    assert len(taken) > 1
    assert set(taken) == {None}
    assert orphan not in there(location)


def test_a_table_of_another_warehouse_that_was_dropped_may_come_back(catalog: Catalog) -> None:
    location = table_with_history(catalog)
    orphan = write_old(f"{location}/data/junk.parquet")
    root = f"{catalog.warehouse.root_location}/inside"
    elsewhere = new_warehouse(catalog.server, "elsewhere", root)
    table_in(elsewhere, OTHER)
    name_file(elsewhere, OTHER, orphan)

    named.drop(elsewhere, TABLES, OTHER)

    assert found(catalog) == set()


def test_a_table_that_changes_while_marked_files_are_deleted_keeps_what_it_took_in(catalog: Catalog) -> None:
    location = table_with_history(catalog)
    orphan = write_old(f"{location}/data/junk.parquet")
    mark_orphans(catalog, DEPARTURES, OrphanWish())

    def step(name: str) -> None:
        if name == "orphans_checked":
            name_file(catalog, DEPARTURES, orphan)

    work_off(with_server(catalog, step=step))

    assert orphan in there(location)


def test_a_file_that_was_written_again_stays(catalog: Catalog) -> None:
    location = table_with_history(catalog)
    orphan = write_old(f"{location}/data/junk.parquet")
    mark_orphans(catalog, DEPARTURES, OrphanWish())

    make_old(orphan, days=1)
    work_off(catalog)

    assert orphan in there(location)


def test_files_are_young_by_the_clock_of_their_machine_where_the_databases_is_days_ahead(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = table_with_history(catalog)
    write_old(f"{location}/data/being-written.parquet", days=5)
    days_ago_ms = catalog.server.file_deletions.now_ms() - 5 * 24 * 3_600_000
    monkeypatch.setattr(time, "time_ns", lambda: days_ago_ms * 1_000_000)

    assert found(catalog) == set()
    with pytest.raises(OrphansRefused, match="by the earlier of the clocks"):
        found(catalog, older_than_ms=days_ago_ms)


def test_what_the_history_can_bring_back_stays(catalog: Catalog) -> None:
    location = table_with_history(catalog)
    before = there(location)
    metadata = load_table(catalog).metadata
    first = metadata.snapshots[0].snapshot_id

    commit_to(catalog, RemoveSnapshots(snapshot_ids=(first,)))

    assert found(catalog, older_than_ms=catalog.server.metadata_sweeps.now_ms() - 2 * 24 * 3_600_000) == set()
    assert before <= there(location)


@pytest.mark.parametrize("cleanup", [CleanupLevel.ALL, CleanupLevel.METADATA_ONLY])
def test_files_of_expired_snapshots_are_left_to_their_queue(catalog: Catalog, cleanup: CleanupLevel) -> None:
    table_with_history(catalog)
    wish = ExpiryWish(older_than_ms=2**60, retain_last=1)

    expire_snapshots(catalog, DEPARTURES, ExpiryRequest(wish, cleanup, grace_ms=3_600_000))

    assert found(catalog) == set()


def test_files_in_a_folder_of_another_table_stay(catalog: Catalog) -> None:
    location = table_with_history(catalog)
    write_old(f"{location}/inside/data/junk.parquet")
    table_in(catalog, OTHER)

    commit_to(catalog, SetLocation(location=Location(f"{location}/inside")), identifier=OTHER)

    preview = preview_orphans(catalog, DEPARTURES, OrphanWish())
    assert preview.files == {}
    assert preview.stays["of-others"] == 1  # type: ignore[index]  # compares as text


def test_a_table_that_has_a_twin_is_refused(catalog: Catalog) -> None:
    table_with_history(catalog)
    where = load_table(catalog).location
    assert where is not None
    named.register(catalog, TABLES, OTHER, where)

    with pytest.raises(OrphansRefused, match="another table may share its files"):
        found(catalog)


def test_without_garbage_collection_orphans_are_refused_and_marked_ones_stay(catalog: Catalog) -> None:
    location = table_with_history(catalog)
    orphan = write_old(f"{location}/data/junk.parquet")
    mark_orphans(catalog, DEPARTURES, OrphanWish())

    commit_to(catalog, SetProperties(updates={"gc.enabled": "false"}))
    work_off(catalog)

    assert orphan in there(location)
    (run,) = orphan_runs(catalog, DEPARTURES)
    assert run.state == "failed"
    assert "gc.enabled is false" in str(run.error)
    with pytest.raises(OrphansRefused, match=r"gc\.enabled is false"):
        found(catalog)


def test_marked_orphans_of_a_dropped_table_stay(catalog: Catalog) -> None:
    location = table_with_history(catalog)
    orphan = write_old(f"{location}/data/junk.parquet")
    mark_orphans(catalog, DEPARTURES, OrphanWish())

    named.drop(catalog, TABLES, DEPARTURES)
    work_off(catalog)

    assert orphan in there(location)


def test_while_orphans_are_deleted_their_table_cannot_be_registered_anew(catalog: Catalog) -> None:
    location = table_with_history(catalog)
    write_old(f"{location}/data/junk.parquet")
    mark_orphans(catalog, DEPARTURES, OrphanWish())
    where = load_table(catalog).location
    assert where is not None
    refused: list[str] = []

    def step(name: str) -> None:
        if name == "orphans_batch_checked":
            with pytest.raises(FilesBeingDeleted):
                named.register(catalog, TABLES, OTHER, where)
            refused.append(name)

    work_off(with_server(catalog, step=step))

    assert refused == ["orphans_batch_checked"]


@pytest.mark.parametrize("what", ["-m", "snap-"])
@pytest.mark.parametrize("whose", [DEPARTURES, OTHER])
def test_a_file_that_cannot_be_read_refuses_the_whole_run(
    catalog: Catalog, whose: TableIdentifier, what: str
) -> None:
    location = table_with_history(catalog)
    write_old(f"{location}/data/junk.parquet")
    table_in(catalog, OTHER)
    name_file(catalog, OTHER, f"{location}/data/a.parquet")
    of_table = there(load_table(catalog, whose).metadata.location)
    broken = min(where for where in of_table if what in where and where.endswith(".avro"))

    Path(broken.removeprefix("file://")).write_bytes(b"no Avro")
    with pytest.raises(OrphansRefused, match=f"not known what table {whose} reaches"):
        mark_orphans(catalog, DEPARTURES, OrphanWish())
    LocalFiles().delete(Location(broken))
    with pytest.raises(OrphansRefused, match=f"not known what table {whose} reaches"):
        mark_orphans(catalog, DEPARTURES, OrphanWish())

    assert orphan_runs(catalog, DEPARTURES) == []


def test_a_store_that_does_not_delete_is_asked_again_later(catalog: Catalog) -> None:
    location = table_with_history(catalog)
    orphan = write_old(f"{location}/data/junk.parquet")
    mark_orphans(catalog, DEPARTURES, OrphanWish())
    files = FailingFiles(LocalFiles(), undeletable={orphan})

    work_off(with_server(catalog, files_of=lambda _warehouse: files))

    (run,) = orphan_runs(catalog, DEPARTURES)
    assert run.state == "queued"
    assert "could not be deleted" in str(run.error)


def test_a_listing_that_fails_half_way_marks_nothing(catalog: Catalog) -> None:
    location = table_with_history(catalog)
    write_old(f"{location}/data/junk.parquet")
    files = FailingFiles(LocalFiles(), unreadable={str(load_table(catalog).location)})

    with pytest.raises(FilesUnavailable):
        mark_orphans(with_server(catalog, files_of=lambda _warehouse: files), DEPARTURES, OrphanWish())

    assert orphan_runs(catalog, DEPARTURES) == []


def test_young_files_are_never_asked_for(catalog: Catalog) -> None:
    table_with_history(catalog)
    an_hour_ago = catalog.server.metadata_sweeps.now_ms() - 3_600_000

    with pytest.raises(OrphansRefused, match="less than 24 hours ago"):
        found(catalog, older_than_ms=an_hour_ago)

    eager = with_server(catalog, rules=replace(catalog.rules, orphan_age_ms=1_000))
    assert found(eager, older_than_ms=an_hour_ago) == set()


def test_a_folder_in_the_tables_places_is_searched_alone(catalog: Catalog) -> None:
    location = table_with_history(catalog)
    inside = write_old(f"{location}/data/p=1/junk.parquet")
    write_old(f"{location}/data/junk.parquet")

    assert found(catalog, location=f"{location}/data/p=1") == {inside}
    for outside in (catalog.warehouse.root_location, f"{location}2", f"{location}/../x", "nonsense"):
        with pytest.raises(InvalidLocation):
            found(catalog, location=outside)


def test_a_path_under_another_scheme_refuses_the_run(catalog: Catalog) -> None:
    location = table_with_history(catalog)
    orphan = write_old(f"{location}/data/junk.parquet")

    name_file(catalog, DEPARTURES, orphan.replace("file://", "hdfs://node"))

    with pytest.raises(OrphansRefused, match="differs only in its scheme or authority"):
        found(catalog)


def test_all_places_of_a_table_are_searched(catalog: Catalog) -> None:
    table_with_history(catalog)
    elsewhere = f"{catalog.warehouse.root_location}/elsewhere"
    orphan = write_old(f"{elsewhere}/junk.parquet")

    assert found(catalog) == set()
    commit_to(catalog, SetProperties(updates={"write.data.path": elsewhere}))

    assert found(catalog) == {orphan}


@pytest.mark.parametrize("name", ["list.csv", "list.json"])
def test_a_clients_listing_is_looked_at_like_the_servers_own(
    catalog: Catalog, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = table_with_history(catalog)
    orphan = write_old(f"{location}/data/junk.parquet")
    young = write_old(f"{location}/data/young.parquet", days=0)
    listed = [*there(location), f"{location}/data/gone.parquet", "file:///elsewhere/x.parquet"]
    where = Location(f"{catalog.warehouse.root_location}/{name}")
    if name.endswith("csv"):
        rows = ["file_path,last_modified", *(f"{path},2020-01-01 00:00:00" for path in listed)]
    else:
        rows = [f'{{"file_path":"{path}","last_modified":"2020-01-01T00:00:00Z"}}' for path in listed]
    LocalFiles().write_new(where, "\n".join(rows).encode())

    assert found(catalog, file_list=where) == {orphan}
    assert young in there(location)

    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name.startswith("orphan-looks"):
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert found(catalog, file_list=where) == {orphan}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("list.csv", b"path\nx\n"),
        ("list.json", b"{}"),
        ("list.json", b'{"file_path":1,"last_modified":1}'),
        ("list.json", b"nonsense"),
        ("list.parquet", b"PAR1nonsense"),
        ("list.orc", b""),
    ],
)
def test_a_listing_that_cannot_be_understood_is_refused(catalog: Catalog, name: str, content: bytes) -> None:
    table_with_history(catalog)
    where = Location(f"{catalog.warehouse.root_location}/{name}")
    LocalFiles().write_new(where, content)

    with pytest.raises(InvalidRequest, match="Invalid file-list"):
        found(catalog, file_list=where)
    with pytest.raises(InvalidLocation, match="outside warehouse"):
        found(catalog, file_list=Location("file:///etc/list.csv"))
