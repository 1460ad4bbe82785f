"""Files that only expired snapshots reach, appended again just as they are deleted: never is one live and gone."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from app.catalog import named
from app.catalog.appends import AppendRequest, WantedFile, begin_append
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.deletions.expiry import ExpiryRequest, expire_snapshots
from app.catalog.manifests.table_manifests import TableManifests
from app.catalog.named import unregister
from app.database.connections.clock import MAY_BE_OFF_MS
from app.database.deletions.file_deletions import FileDeletions
from app.engine.model.files.manifests import DataFile, FileContent
from app.engine.model.ids import Location, SpecId
from app.engine.retention.expired_snapshots import ExpiryWish
from app.errors import FilesBeingDeleted, InvalidDataFile
from app.fileio.memory import MemoryFiles
from tests.builders.catalogs import START_MS, catalog_on, with_server
from tests.builders.commits import commit_table
from tests.builders.queues import work_off_one
from tests.builders.table_files import TableFiles
from tests.builders.tables import DEPARTURES, append, load_table, table_in

EXPIRY = ExpiryRequest(ExpiryWish(older_than_ms=START_MS * 2, retain_last=1), grace_ms=0)
HOUR_MS = 3_600_000


@dataclass
class Place:
    """A table with an expired file `old`; a deletion of it is due."""

    catalog: Catalog
    store: MemoryFiles
    clock: list[int]

    def path(self, name: str) -> Location:
        return Location(f"{load_table(self.catalog).metadata.location}/data/{name}.parquet")

    def append(self, name: str, catalog: Catalog | None = None) -> None:
        path = self.path(name)
        found = self.store.find_file(path)
        assert found is not None
        file = DataFile(FileContent.DATA, path, "PARQUET", SpecId(0), (), 1, found.size_bytes)
        wanted = WantedFile(path, SpecId(0), described=file)
        landing = begin_append(catalog or self.catalog, DEPARTURES, AppendRequest([wanted]))
        landing.wait()
        landing.finish()

    def write(self, name: str) -> None:
        self.clock[0] = START_MS + HOUR_MS
        self.store.write_new(self.path(name), b"new")

    def missing(self) -> list[str]:
        """Return live files that are not there."""
        metadata = load_table(self.catalog).metadata
        source, head = TableManifests(self.catalog, metadata), metadata.current_snapshot
        assert head is not None
        paths = [
            entry.file.file_path
            for manifest in source.manifests(head)
            for entry in source.entries(manifest)
            if entry.is_live
        ]
        return [path for path in paths if self.store.find_file(path) is None]

    def work(self) -> None:
        while work_off_one(self.catalog.server):
            pass


@pytest.fixture
def place(tmp_path: Path) -> Place:
    clock = [START_MS - HOUR_MS]
    store = MemoryFiles(lambda: clock[0])
    catalog = catalog_on(f"sqlite:///{tmp_path}/icetower.db", store)
    table_in(catalog)
    files = TableFiles(store)
    for come, gone in ((["old"], []), (["other"], []), ([], ["old"])):
        made = files.snapshot(load_table(catalog).metadata, come, gone)
        commit_table(catalog, DEPARTURES, [], append(made))
    expire_snapshots(catalog, DEPARTURES, EXPIRY)
    return Place(catalog, store, clock)


def at(monkeypatch: pytest.MonkeyPatch, step: str, do: Callable[[], object]) -> None:
    """Do something once, just before a deletion takes a step."""
    real: Callable[..., Any] = getattr(FileDeletions, step)
    left = [do]

    def hooked(*args: Any, **more: Any) -> Any:
        if left:
            left.pop()()
        return real(*args, **more)

    monkeypatch.setattr(FileDeletions, step, hooked)


def test_a_deletion_takes_what_it_has(place: Place) -> None:
    place.work()

    assert place.store.find_file(place.path("old")) is None
    assert place.missing() == []


def test_file_that_is_appended_before_the_deletion_begins_stays(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(monkeypatch, "begin", lambda: place.append("old"))

    place.work()

    assert place.store.find_file(place.path("old")) is not None
    assert place.missing() == []


def test_file_of_a_deletion_that_has_begun_is_refused_and_a_new_one_is_not(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = []

    def append_both() -> None:
        with pytest.raises(FilesBeingDeleted, match="are being deleted by the expiry of") as error:
            place.append("old")
        refused.append(error.value)
        place.write("new")
        place.append("new")

    at(monkeypatch, "hold", append_both)

    place.work()

    assert len(refused) == 1
    assert place.store.find_file(place.path("old")) is None
    assert place.store.find_file(place.path("new")) is not None
    assert place.missing() == []


def test_table_that_leaves_while_its_files_are_deleted_can_be_registered_at_once(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = load_table(place.catalog).location or ""
    at(monkeypatch, "hold", lambda: unregister(place.catalog, TABLES, DEPARTURES))

    place.work()

    named.register(place.catalog, TABLES, DEPARTURES, last)
    assert place.missing() == []


@pytest.mark.parametrize(("ends", "refusal"), [(False, FilesBeingDeleted), (True, InvalidDataFile)])
def test_deletion_that_begins_between_the_look_and_the_commit_is_seen(
    place: Place, ends: bool, refusal: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    left = [True]

    def step(name: str) -> None:
        if name == "before_put" and left:
            left.pop()
            if ends:
                place.work()
            else:
                deletions = place.catalog.server.file_deletions
                leased = deletions.lease(HOUR_MS)
                assert leased is not None
                pointer = place.catalog.server.pointers.find_locked(leased.pointer_id or 0)
                assert pointer is not None
                assert deletions.begin(leased, pointer.registration)

    with pytest.raises(refusal):
        place.append("old", with_server(place.catalog, step=step))

    place.work()
    assert place.missing() == []


def test_deletion_that_ends_just_after_the_look_is_seen_by_a_server_whose_clock_is_ahead(
    place: Place,
) -> None:
    """What a server takes for the database's time may be a little ahead of it."""

    def step(name: str) -> None:
        if name == "before_put":
            place.work()

    def ahead() -> int:
        return time.time_ns() // 1_000_000 + MAY_BE_OFF_MS - 1

    with pytest.raises(InvalidDataFile, match="it has been deleted meanwhile"):
        place.append("old", with_server(place.catalog, step=step, now_ms=ahead))

    assert place.missing() == []


def test_file_that_is_there_after_the_deletion_has_ended_is_not_refused(place: Place) -> None:
    """Where servers look by a time that may be too early, the deletion seems to have ended since."""
    place.work()
    place.clock[0] = START_MS
    place.store.write_new(place.path("old"), b"again")

    place.append("old")

    assert place.missing() == []
