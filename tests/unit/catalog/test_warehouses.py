"""Stores of file-system warehouses are tried before anything depends on them, and nothing waits for that."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from app.catalog.context.server import Server
from app.catalog.tables import purge_table
from app.catalog.warehouse_changes import MappingChange, WarehouseChange
from app.catalog.warehouses import WarehouseMemo, check_stores_soon, create_warehouse, update_warehouse
from app.database.warehouses import Layout, Warehouse, Warehouses
from app.engine.model.ids import Location
from app.errors import FilesUnavailable, InvalidLocation, InvalidSetting, NoSuchWarehouse, StoreNotOpened
from app.fileio.local import LocalFiles
from app.fileio.trees import FolderEntry
from app.tree_errors import TreeRefusal
from tests.builders.catalogs import CALLER, START_MS, new_warehouse, server_on
from tests.builders.queues import work_off_one
from tests.builders.tables import DEPARTURES, table_in


class TriedTree(LocalFiles):
    """A tree that notes what is tried, and says what a test wants."""

    def __init__(self, answer: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.tried: list[str] = []
        self.is_tried = threading.Event()
        self._answer = answer

    def check_writes_once(self, location: Location) -> None:
        self.tried.append(location)
        try:
            self._answer()
        finally:
            self.is_tried.set()

    def list_folder(self, location: Location) -> list[FolderEntry] | None:
        raise AssertionError(f"only the promise is asked for, not {location}")


def server_with(tmp_path: Path, tree: TriedTree) -> Server:
    return server_on(f"sqlite:///{tmp_path}/icetower.db", tree)


def create(
    server: Server,
    name: str,
    root: str,
    layout: Layout = Layout.HADOOP,
    storage: dict[str, str] | None = None,
) -> None:
    create_warehouse(server, CALLER, name, root, {}, {}, storage or {}, layout)


def checks_are_over() -> None:
    for thread in threading.enumerate():
        if thread.name == "store checks":
            thread.join()


def test_a_store_is_tried_when_the_server_starts(tmp_path: Path) -> None:
    tree = TriedTree()
    server = server_with(tmp_path, tree)
    for name, layout in (("files", Layout.HADOOP), ("rows", Layout.CATALOG)):
        server.warehouses.create(name, f"file://{tmp_path}/{name}", layout=layout, created_ms=START_MS)

    check_stores_soon(server)
    checks_are_over()

    assert tree.tried == [f"file://{tmp_path}/files"]


def test_a_store_is_tried_when_its_warehouse_is_made_and_when_its_store_changes(tmp_path: Path) -> None:
    tree = TriedTree()
    server = server_with(tmp_path, tree)

    create(server, "files", f"file://{tmp_path}/files")
    create(server, "rows", f"file://{tmp_path}/rows", Layout.CATALOG)
    checks_are_over()
    assert tree.tried == [f"file://{tmp_path}/files"]
    change_defaults = WarehouseChange(default_properties=MappingChange(updates={"a": "b"}))
    update_warehouse(server, CALLER, "files", change_defaults)
    checks_are_over()
    assert tree.tried == [f"file://{tmp_path}/files"]
    change_storage = WarehouseChange(storage=MappingChange(updates={"s3.region": "here"}))
    update_warehouse(server, CALLER, "files", change_storage)
    checks_are_over()
    assert tree.tried == [f"file://{tmp_path}/files"] * 2


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            TreeRefusal("its store ignores `If-None-Match: *`"),
            "warehouse files is read-only: its store ignores",
        ),
        (FilesUnavailable("no answer"), "could not try the store of warehouse files"),
    ],
)
def test_a_store_that_fails_is_logged_and_fails_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, error: Exception, said: str
) -> None:
    def fail() -> None:
        raise error

    server = server_with(tmp_path, TriedTree(fail))

    with caplog.at_level(logging.WARNING):
        create(server, "files", f"file://{tmp_path}/files")
        checks_are_over()

    assert server.warehouses.find("files") is not None
    assert said in caplog.text


def test_a_store_for_which_no_thread_can_be_started_fails_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = TriedTree()
    server, start = server_with(tmp_path, tree), threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name == "store checks":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with caplog.at_level(logging.WARNING):
        create(server, "files", f"file://{tmp_path}/files")

    assert server.warehouses.find("files") is not None
    assert "can't start new thread" in caplog.text
    assert not tree.tried


def test_nothing_waits_for_a_store_that_does_not_answer(tmp_path: Path) -> None:
    answer = threading.Event()
    tree = TriedTree(lambda: assert_true(answer.wait()))
    server = server_with(tmp_path, tree)

    create(server, "files", f"file://{tmp_path}/files")
    check_stores_soon(server)

    assert not tree.is_tried.is_set()
    answer.set()
    checks_are_over()
    assert tree.is_tried.is_set()


def assert_true(claim: bool) -> None:
    assert claim


def test_a_store_that_is_not_there_does_not_keep_others_from_being_tried(tmp_path: Path) -> None:
    tree = TriedTree()
    server = server_with(tmp_path, tree)
    for name in ("a", "b"):
        server.warehouses.create(name, f"file://{tmp_path}/{name}", layout=Layout.HADOOP, created_ms=START_MS)

    def files_of(warehouse: object) -> LocalFiles:
        if getattr(warehouse, "name", "") == "a":
            raise StoreNotOpened("Environment variable X is not set")
        return tree

    check_stores_soon(replace(server, files_of=files_of))
    checks_are_over()

    assert tree.tried == [f"file://{tmp_path}/b"]


def test_settings_of_hdfs_are_checked_when_they_are_given(tmp_path: Path) -> None:
    server = server_with(tmp_path, TriedTree())
    good = {"hdfs.endpoint": "http://nn:9870"}

    with pytest.raises(InvalidSetting, match=r"needs storage setting hdfs\.endpoint"):
        create(server, "lake", "hdfs://nn:8020/lake")
    with pytest.raises(InvalidLocation, match="another HDFS"):
        create(server, "lake", "hdfs://other:8020/lake", storage=good)
    create(server, "lake", "hdfs://nn:8020/lake", storage=good)
    wrong = MappingChange({**good, "hdfs.kerberos_ticket": "/tmp/krb5cc"})
    with pytest.raises(InvalidSetting, match="Kerberos"):
        update_warehouse(server, CALLER, "lake", WarehouseChange(storage=wrong))
    with pytest.raises(NoSuchWarehouse):
        update_warehouse(server, CALLER, "nothing", WarehouseChange(storage=MappingChange(good)))
    checks_are_over()

    found = server.warehouses.find("lake")
    assert found is not None
    assert found.storage == good


class ManyWarehouses(Warehouses):
    """Of so many that reading all of them takes too long."""

    def list(self, *layouts: Layout) -> Sequence[Warehouse]:
        assert layouts == (Layout.HADOOP,)
        return super().list(*layouts)

    def roots(self) -> Sequence[tuple[str, str]]:
        raise AssertionError("all of them are read")


def with_many(server: Server) -> Server:
    return replace(server, warehouses=ManyWarehouses(server.warehouses._database))


@pytest.mark.parametrize("name", ["nobody", "no body", "", "nobody@2026-11-20", "s3:"])
def test_no_others_are_read_for_an_unknown_name(tmp_path: Path, name: str) -> None:
    server = server_on(f"sqlite:///{tmp_path}/icetower.db")

    with pytest.raises(NoSuchWarehouse):
        WarehouseMemo(with_many(server)).load(name)


def test_a_purge_reads_no_warehouses_but_its_own_and_those_of_file_system_tables(tmp_path: Path) -> None:
    server = with_many(server_on(f"sqlite:///{tmp_path}/icetower.db", LocalFiles()))
    catalog = new_warehouse(server, root=f"file://{tmp_path}/lake")
    table = table_in(catalog)
    purge_table(catalog, DEPARTURES)

    work_off_one(server)

    assert table.location is not None
    assert not catalog.files.exists(table.location)
