"""A warehouse that gets other storage settings while its files are deleted."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from app.catalog.context.callers import SERVER_ITSELF
from app.catalog.context.catalog import Catalog
from app.catalog.context.deletable import LEASE_MS
from app.catalog.deletions import runner
from app.catalog.deletions.expiry import ExpiryRequest, expire_snapshots
from app.catalog.deletions.queue import work_off
from app.catalog.tables import purge_table
from app.database.deletions.file_deletions import Deletion
from app.engine.model.ids import Location
from app.engine.model.table_metadata import TableMetadata
from app.engine.retention.expired_snapshots import ExpiryWish
from app.fileio.memory import MemoryFiles
from tests.builders.catalogs import START_MS, catalog_on, with_server
from tests.builders.commits import commit_table
from tests.builders.queues import let_queue_age, let_reads_take_long, work_off_one
from tests.builders.table_files import TableFiles
from tests.builders.tables import DEPARTURES, append, load_table, table_in


def files_of(store: MemoryFiles) -> set[str]:
    return {file.location for file in store.list_files(Location("memory://"))}


def with_files_to_delete(tmp_path: Path, store: MemoryFiles, kind: str) -> Catalog:
    """Return a catalog in whose queue the files of a table are, or of one of its snapshots."""
    catalog = catalog_on(f"sqlite:///{tmp_path}/icetower.db", store)
    files = TableFiles(store)
    table_in(catalog)
    for added, removed in ((("gone",), ()), (("kept",), ("gone",))):
        metadata = load_table(catalog, DEPARTURES).metadata
        assert isinstance(metadata, TableMetadata)
        commit_table(catalog, DEPARTURES, [], append(files.snapshot(metadata, added, removed)))
    if kind == "purge":
        purge_table(catalog, DEPARTURES)
    else:
        wish = ExpiryWish(older_than_ms=START_MS * 2, retain_last=1)
        expire_snapshots(catalog, DEPARTURES, ExpiryRequest(wish))
    return catalog


@pytest.mark.parametrize("kind", ["purge", "expire"])
def test_what_was_judged_in_one_store_is_not_deleted_once_there_is_another(tmp_path: Path, kind: str) -> None:
    store = MemoryFiles()
    catalog = with_files_to_delete(tmp_path, store, kind)
    at_the_change: set[str] = set()

    def move(step: str) -> None:
        if step.endswith("_content_deleted"):
            server.warehouses.update(
                catalog.warehouse.name,
                lambda present: replace(present, storage={"s3.region": "elsewhere"}),
                SERVER_ITSELF.author(START_MS),
            )
            at_the_change.update(files_of(store))

    server = with_server(catalog, step=move).server
    assert work_off_one(server)
    assert files_of(store) == at_the_change

    with_the_new_settings = with_server(catalog, step=lambda _step: None).server
    assert work_off_one(with_the_new_settings)
    assert files_of(store) < at_the_change
    assert with_the_new_settings.file_deletions.counts() == {"done": 1}


@pytest.mark.parametrize("kind", ["purge", "expire"])
def test_a_process_that_is_to_end_lets_another_go_on_with_its_deletion(tmp_path: Path, kind: str) -> None:
    store = MemoryFiles()
    catalog = with_files_to_delete(tmp_path, store, kind)
    when_asked: set[str] = set()

    def ask_to_end(step: str) -> None:
        if step.endswith("_content_deleted"):
            server.is_stopping.set()
            when_asked.update(files_of(store))

    server = with_server(catalog, step=ask_to_end).server
    assert work_off_one(server)
    assert files_of(store) == when_asked

    another = with_server(catalog, step=lambda _step: None, is_stopping=threading.Event()).server
    assert work_off_one(another)
    assert files_of(store) < when_asked
    assert another.file_deletions.counts() == {"done": 1}


class EndingFiles(MemoryFiles):
    """A store that is slow: the process is asked to end while it deletes a first file."""

    def __init__(self) -> None:
        super().__init__()
        self.is_stopping = threading.Event()
        self.deleted: list[Location] = []

    def delete(self, location: Location) -> None:
        super().delete(location)
        self.deleted.append(location)
        self.is_stopping.set()


def test_a_process_that_is_to_end_does_not_delete_the_rest_of_a_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = EndingFiles()
    catalog = with_files_to_delete(tmp_path, store, "purge")
    store.is_stopping.clear()
    monkeypatch.setattr(runner, "WORKERS", 1)

    assert work_off_one(with_server(catalog, is_stopping=store.is_stopping).server)

    assert len(store.deleted) == 1
    assert catalog.server.file_deletions.counts() == {"queued": 1}
    assert work_off_one(with_server(catalog, is_stopping=threading.Event()).server)
    assert files_of(store) == set()
    assert catalog.server.file_deletions.counts() == {"done": 1}


def test_an_entry_is_held_while_the_files_of_a_group_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commits may take in files of others that no worker has: also those that would go a moment later."""
    store = MemoryFiles()
    catalog = with_files_to_delete(tmp_path, store, "purge")
    queue, delete, taken = catalog.server.file_deletions, store.delete, list[Deletion | None]()

    def slowly(location: Location) -> None:
        let_queue_age(queue, LEASE_MS * 2 // 3)
        taken.append(queue.lease(LEASE_MS))
        delete(location)

    monkeypatch.setattr(store, "delete", slowly)
    monkeypatch.setattr(runner, "steady_ns", lambda: len(taken) * LEASE_MS * 2 // 3 * 1_000_000)
    monkeypatch.setattr(runner, "WORKERS", 1)

    assert work_off_one(catalog.server)

    assert len(taken) > 2
    assert set(taken) == {None}
    assert queue.counts() == {"done": 1}


def test_what_may_go_is_looked_at_anew_after_a_lease_has_run_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that was stopped meanwhile does not know what commits have taken in since."""
    store = MemoryFiles()
    catalog = with_files_to_delete(tmp_path, store, "purge")
    queue, delete, deleted = catalog.server.file_deletions, store.delete, list[Location]()

    def be_stopped(location: Location) -> None:
        delete(location)
        deleted.append(location)
        let_queue_age(queue, LEASE_MS)

    monkeypatch.setattr(runner, "steady_ns", lambda: len(deleted) * LEASE_MS * 1_000_000)
    monkeypatch.setattr(runner, "WORKERS", 1)
    with monkeypatch.context() as slow:
        slow.setattr(store, "delete", be_stopped)
        assert work_off_one(catalog.server)

    assert len(deleted) == 1
    assert queue.counts() == {"queued": 1}
    assert work_off_one(catalog.server)
    assert queue.counts() == {"done": 1}
    assert files_of(store) == set()


@pytest.mark.parametrize("kind", ["purge", "expire"])
def test_a_worker_whose_entry_another_one_has_by_now_leaves_it_to_that_one(tmp_path: Path, kind: str) -> None:
    store = MemoryFiles()
    catalog = with_files_to_delete(tmp_path, store, kind)
    queue, others, when_taken = catalog.server.file_deletions, list[Deletion](), set[str]()

    def overtake(step: str) -> None:
        if step.endswith("_content_deleted"):
            let_queue_age(queue, LEASE_MS)
            taken = queue.lease(LEASE_MS)
            assert taken is not None
            others.append(taken)
            when_taken.update(files_of(store))

    assert work_off_one(with_server(catalog, step=overtake).server)

    assert files_of(store) == when_taken
    assert queue.lease(LEASE_MS) is None, "the other one still has it"
    work_off(with_server(catalog, step=lambda _step: None).server, *others)
    assert files_of(store) < when_taken
    assert queue.counts() == {"done": 1}


@pytest.mark.parametrize("kind", ["purge", "expire"])
def test_an_entry_is_held_while_its_manifests_are_read(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else every server would begin to read a large table, each when the lease of the one before has run out."""
    store = MemoryFiles()
    catalog = with_files_to_delete(tmp_path, store, kind)
    queue = catalog.server.file_deletions
    taken = let_reads_take_long(monkeypatch, queue)

    assert work_off_one(catalog.server)

    assert len(taken) > 1
    assert set(taken) == {None}
    assert queue.counts() == {"done": 1}
