"""Metadata files that no commit landed are collected in the end, and no others."""

from __future__ import annotations

import json
import threading
import time
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Table, UpdateBase, delete, update

from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.context.deletable import LEASE_MS
from app.catalog.context.kinds import TABLES, VIEWS, Kind
from app.catalog.context.places.file_names import mark_of, new_content_uuid, new_file_uuid
from app.catalog.deletions import runner
from app.catalog.deletions.orphans import orphan_runs
from app.catalog.deletions.other_readers import OtherReaders
from app.catalog.deletions.sweeps import sweep_one
from app.catalog.tables import NewTable, purge_table
from app.catalog.views import NewView
from app.database.deletions.file_deletions import Deletion, FileDeletions
from app.database.schema.rows import dropped, metadata_sweeps, pointer_history, pointers
from app.engine.change.updates import SetProperties
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location
from app.errors import AccessRefused, FileMissing, FilesBeingDeleted, FilesUnavailable
from app.fileio.memory import MemoryFiles
from app.formats.metadata.own_names import own_version
from tests.builders.catalogs import catalog_on, with_rules, with_server
from tests.builders.queues import let_queue_age, work_off_one
from tests.builders.tables import DEPARTURES, SCHEMA, commit_to, load_table, table_in, view_version
from tests.unit.catalog.commits.interference import ARRIVALS
from tests.unit.catalog.deletions.expired_files.test_files_taken_in_again import Place

DAY_MS = 24 * 3_600_000


class AgedFiles(MemoryFiles):
    """Files in memory, some of which look older than they are, and some of which are listed but not found."""

    def __init__(self) -> None:
        super().__init__()
        self.not_found: set[Location] = set()

    def read(self, location: Location) -> bytes:
        if location in self.not_found:
            raise FileMissing(location)
        return super().read(location)

    def age(self, location: str, by_ms: int = 2 * DAY_MS) -> None:
        content, modified_ms = self._files[Location(location)]
        self._files[Location(location)] = content, modified_ms - by_ms

    def age_all(self) -> None:
        for location in self._files:
            self.age(location)


@pytest.fixture
def store() -> AgedFiles:
    return AgedFiles()


@pytest.fixture
def old_table(tmp_path: Path, store: AgedFiles) -> Catalog:
    """A table with four commits, made ten days ago."""
    catalog = catalog_on(f"sqlite:///{tmp_path}/icetower.db", store)
    table_in(catalog, properties={"write.metadata.previous-versions-max": "1"})
    for number in range(4):
        commit_to(catalog, SetProperties(updates={"n": str(number)}))
    let_age(catalog, 10 * DAY_MS)
    for location in list(store._files):
        store.age(location, 3 * DAY_MS)
    return catalog


def let_age(catalog: Catalog, by_ms: int, *tables: Table) -> None:
    """Make rows look as if they were changed so long ago, by the database's clock."""
    then_ms = catalog.server.metadata_sweeps.now_ms() - by_ms
    if not tables:
        execute(catalog, update(pointers).values(created_ms=then_ms))
    columns = {pointers: "updated_ms", pointer_history: "at_ms", metadata_sweeps: "swept_ms"}
    for rows in tables or columns:
        execute(catalog, update(rows).values({columns[rows]: then_ms}))


def execute(catalog: Catalog, statement: UpdateBase) -> None:
    """Change rows behind the catalog's back."""
    catalog.server.file_deletions._database.write(lambda connection: connection.execute(statement))


def orphan(catalog: Catalog, version: int, *, file_uuid: str | None = None, age_ms: int = 2 * DAY_MS) -> str:
    name = f"{version:05d}-{file_uuid or new_file_uuid(catalog.server)}.metadata.json"
    location = Location(f"{load_table(catalog).metadata.location}/metadata/{name}")
    store = catalog.files
    assert isinstance(store, AgedFiles)
    store.write_new(location, b"{}")
    store.age(location, age_ms)
    return location


def test_only_old_files_of_ours_that_nothing_names_go(old_table: Catalog, store: AgedFiles) -> None:
    stay: set[str] = set(store._files)
    stay |= {
        orphan(old_table, 5),  # of a version that may come after a rollback
        orphan(old_table, 3, age_ms=0),
        orphan(
            old_table, 3, age_ms=10 * DAY_MS - 5 * 60_000
        ),  # as old as the table, whose folder another one may have had
        orphan(old_table, 3, file_uuid=str(uuid.uuid4())),  # as other catalogs name theirs
        orphan(old_table, 3, file_uuid="11111111-1111-8111-8111-111111111111"),  # of another database
    }
    gone = {orphan(old_table, version) for version in (0, 3, 4)}

    assert sweep_one(old_table.server)

    assert set(store._files) == stay
    assert gone.isdisjoint(stay)


def test_a_copy_that_waits_in_a_folder_beside_the_metadata_stays(
    old_table: Catalog, store: AgedFiles
) -> None:
    """Spark stages copies for another place there, whose files keep their names."""
    metadata = load_table(old_table).metadata
    copies = [
        Location(f"{metadata.location}/metadata/copy-table-staging-1/metadata/{path.rpartition('/')[2]}")
        for path in [entry.metadata_file for entry in metadata.metadata_log]
    ]
    for copy in copies:
        store.write_new(copy, metadata.to_json())
        store.age(copy)

    assert sweep_one(old_table.server)

    assert copies
    assert all(map(store.exists, copies))


def test_files_are_young_by_the_clock_of_their_machine_where_the_databases_is_days_ahead(
    old_table: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    young = orphan(old_table, 3)
    days_ago_ns = time.time_ns() - 2 * DAY_MS * 1_000_000
    monkeypatch.setattr(time, "time_ns", lambda: days_ago_ns)

    assert sweep_one(old_table.server)

    assert old_table.files.exists(Location(young))


def test_each_table_has_one_turn_a_day_and_only_after_changes(old_table: Catalog) -> None:
    assert sweep_one(old_table.server)
    assert not sweep_one(old_table.server)
    left = orphan(old_table, 2)
    let_age(old_table, 10 * DAY_MS)
    let_age(old_table, 8 * DAY_MS, metadata_sweeps)
    let_age(old_table, 0, pointers)

    assert sweep_one(old_table.server)

    assert not old_table.files.exists(Location(left))


def test_turn_from_before_the_clock_was_set_back_keeps_no_table_waiting(old_table: Catalog) -> None:
    assert sweep_one(old_table.server)
    left = orphan(old_table, 2)
    let_age(old_table, -30 * DAY_MS, metadata_sweeps)

    assert sweep_one(old_table.server)

    assert not old_table.files.exists(Location(left))
    assert not sweep_one(old_table.server)


def test_nothing_goes_while_a_twin_is_there_or_sweeps_are_off(old_table: Catalog) -> None:
    left = orphan(old_table, 2)
    assert not sweep_one(with_rules(old_table, orphan_age_ms=0).server)
    assert old_table.files.exists(Location(left))
    location = load_table(old_table).location
    assert location is not None
    named.register(old_table, TABLES, ARRIVALS, location)

    assert sweep_one(old_table.server)

    assert old_table.files.exists(Location(left))


def readable_orphan(catalog: Catalog) -> Location:
    """Write what a killed commit of a real server leaves: it can be registered."""
    location = Location(orphan(catalog, 2))
    store = catalog.files
    assert isinstance(store, AgedFiles)
    store.delete(location)
    store.write_new(location, load_table(catalog).metadata.to_json())
    store.age(location)
    return location


def test_what_goes_just_then_cannot_be_registered(
    old_table: Catalog, store: AgedFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, delete_file = readable_orphan(old_table), store.delete
    refused: list[FilesBeingDeleted] = []

    def register_then_delete(location: Location) -> None:
        with pytest.raises(FilesBeingDeleted, match="orphans") as refusal:
            named.register(old_table, TABLES, DEPARTURES, location, overwrite=True)
        refused.append(refusal.value)
        delete_file(location)

    monkeypatch.setattr(store, "delete", register_then_delete)
    assert sweep_one(old_table.server)

    assert len(refused) == 1
    assert not store.exists(left)
    assert old_table.server.file_deletions.counts() == {"done": 1}
    assert orphan_runs(old_table, DEPARTURES) == []


def test_data_files_are_appended_meanwhile_and_none_that_may_be_swept(
    old_table: Catalog, store: AgedFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, delete_file = Place(old_table, store, []), store.delete
    folder = place.path("a").rpartition("/")[0]
    of_server = new_content_uuid(old_table.server, load_table(old_table).metadata.uuid, folder)
    statistics = f"partition-stats-1-{of_server}"
    for name in ("of-a-job", statistics):
        store.write_new(place.path(name), b"data")
        store.age(place.path(name), 100_000 * DAY_MS)
    gone = Location(orphan(old_table, 2))

    def append_then_delete(location: Location) -> None:
        place.append("of-a-job")
        with pytest.raises(FilesBeingDeleted):
            place.append(statistics)
        delete_file(location)

    monkeypatch.setattr(store, "delete", append_then_delete)
    assert sweep_one(old_table.server)

    assert not store.exists(gone)
    assert load_table(old_table).metadata.current_snapshot is not None


def test_what_was_registered_after_the_look_stays(
    old_table: Catalog, store: AgedFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, begin = readable_orphan(old_table), FileDeletions.begin_sweep

    def register_first(queue: FileDeletions, *wanted: Any) -> Deletion | None:
        named.register(old_table, TABLES, DEPARTURES, left, overwrite=True)
        return begin(queue, *wanted)

    monkeypatch.setattr(FileDeletions, "begin_sweep", register_first)
    stay = set(store._files)
    assert sweep_one(old_table.server)

    assert set(store._files) == stay
    assert old_table.server.file_deletions.counts() == {}


def test_a_sweep_that_is_killed_or_fails_keeps_registrations_away_for_ten_minutes(
    old_table: Catalog, store: AgedFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not known whether what it asked the store to delete is still to go."""
    left, queue = readable_orphan(old_table), old_table.server.file_deletions

    def fail(_location: Location) -> None:
        raise FilesUnavailable("The store does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(store, "delete", fail)
        with pytest.raises(FilesUnavailable):
            sweep_one(old_table.server)
    assert not work_off_one(old_table.server)
    with pytest.raises(FilesBeingDeleted):
        named.register(old_table, TABLES, ARRIVALS, left)

    let_queue_age(queue, LEASE_MS)
    assert work_off_one(old_table.server)
    assert store.exists(left)
    assert queue.counts() == {"done": 1}
    named.register(old_table, TABLES, ARRIVALS, left)


def test_a_sweep_that_the_store_refuses_keeps_no_registration_away(
    old_table: Catalog, store: AgedFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a key that may not delete: nothing is on its way to the file."""
    left, queue = readable_orphan(old_table), old_table.server.file_deletions

    def refuse(location: Location) -> None:
        raise AccessRefused(f"Cannot delete {location}: Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(store, "delete", refuse)
        with pytest.raises(AccessRefused):
            sweep_one(old_table.server)

    assert queue.counts() == {"done": 1}
    assert store.exists(left)
    named.register(old_table, TABLES, ARRIVALS, left)


def test_a_sweep_that_fails_before_it_deletes_anything_keeps_no_registration_away(
    old_table: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, queue = readable_orphan(old_table), old_table.server.file_deletions

    def fail(*_of_others: Any) -> list[Location]:
        raise FilesUnavailable("It is not known which files another table names")

    with monkeypatch.context() as patch:
        patch.setattr(OtherReaders, "unread", fail)
        with pytest.raises(FilesUnavailable):
            sweep_one(old_table.server)

    assert queue.counts() == {"done": 1}
    named.register(old_table, TABLES, ARRIVALS, left)


def test_a_sweep_that_is_to_end_goes_on_another_day(
    old_table: Catalog, store: AgedFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table has as many of these files as its servers were killed in commits."""
    gone, delete_file, is_stopping = [orphan(old_table, 2) for _ in range(3)], store.delete, threading.Event()

    def end_then(location: Location) -> None:
        delete_file(location)
        is_stopping.set()

    monkeypatch.setattr(store, "delete", end_then)
    assert sweep_one(with_server(old_table, is_stopping=is_stopping).server)

    assert sum(store.exists(Location(each)) for each in gone) == 2
    assert old_table.server.file_deletions.counts() == {"done": 1}


def test_a_purge_collects_them_too(old_table: Catalog, store: AgedFiles) -> None:
    orphan(old_table, 2)
    foreign = orphan(old_table, 2, file_uuid=str(uuid.uuid4()))
    young = orphan(old_table, 9, age_ms=0)
    purge_table(old_table, DEPARTURES)

    assert work_off_one(old_table.server)

    assert set(store._files) == {foreign, young}


@pytest.mark.parametrize("looks_again", [False, True], ids=["at once", "when it comes back"])
def test_a_purge_of_them_ends_when_its_process_is_to_end_and_is_gone_on_with(
    old_table: Catalog, store: AgedFiles, monkeypatch: pytest.MonkeyPatch, *, looks_again: bool
) -> None:
    """A table has as many of them as it had commits."""
    gone = [orphan(old_table, 2, age_ms=0 if looks_again else 2 * DAY_MS) for _ in range(3)]
    purge_table(old_table, DEPARTURES)
    if looks_again:
        assert work_off_one(old_table.server)
        store.age_all()
        let_queue_age(old_table.server.file_deletions, 2 * DAY_MS)
    is_stopping, delete_file = threading.Event(), store.delete

    def end_then(location: Location) -> None:
        delete_file(location)
        if location in gone:
            is_stopping.set()

    monkeypatch.setattr(store, "delete", end_then)
    assert work_off_one(with_server(old_table, is_stopping=is_stopping).server)

    assert sum(store.exists(Location(each)) for each in gone) == 2
    assert work_off_one(with_server(old_table, is_stopping=threading.Event()).server)
    assert store._files == {}
    assert old_table.server.file_deletions.counts() == {"done": 1}


@pytest.mark.parametrize("looks_again", [False, True], ids=["at once", "when it comes back"])
def test_a_purge_is_held_while_it_collects_them(
    old_table: Catalog, store: AgedFiles, monkeypatch: pytest.MonkeyPatch, *, looks_again: bool
) -> None:
    gone = [orphan(old_table, 2, age_ms=0 if looks_again else 2 * DAY_MS) for _ in range(3)]
    queue, delete_file, taken = old_table.server.file_deletions, store.delete, list[Deletion | None]()
    purge_table(old_table, DEPARTURES)
    if looks_again:
        assert work_off_one(old_table.server)
        store.age_all()
        let_queue_age(queue, 2 * DAY_MS)

    def slowly(location: Location) -> None:
        delete_file(location)
        if location in gone:
            let_queue_age(queue, LEASE_MS * 2 // 3)
            taken.append(queue.lease(LEASE_MS))

    monkeypatch.setattr(store, "delete", slowly)
    monkeypatch.setattr(runner, "steady_ns", lambda: len(taken) * LEASE_MS * 2 // 3 * 1_000_000)
    assert work_off_one(old_table.server)

    assert taken == [None, None, None]
    assert queue.counts() == {"done": 1}


def test_names_carry_the_mark_of_the_database(old_table: Catalog, tmp_path: Path) -> None:
    location = load_table(old_table).location
    assert location is not None
    mark = mark_of(old_table.server)
    other = catalog_on(f"sqlite:///{tmp_path}/other.db")

    assert own_version(location, mark) == 4
    assert own_version(location, mark_of(other.server)) is None
    again = replace(
        old_table.server,
        signing_keys=type(old_table.server.signing_keys)(old_table.server.file_deletions._database),
    )
    assert mark_of(again) == mark
    assert json.loads(old_table.files.read(location))["properties"]["n"] == "3"


def test_a_file_stays_that_is_listed_and_not_found(old_table: Catalog, store: AgedFiles) -> None:
    """What was dropped in the same folder may have it, if the store answers again."""
    place = load_table(old_table).metadata.location
    drop_for_good(old_table, TABLES, DEPARTURES)
    stay = set(store._files)
    named.create(old_table, NewTable(DEPARTURES, SCHEMA, None, None, place, {}))
    for number in range(5):
        commit_to(old_table, SetProperties(updates={"n": str(number)}))
    store.age_all()
    let_age(old_table, 10 * DAY_MS)
    store.not_found |= stay

    assert sweep_one(old_table.server)

    assert stay <= set(store._files)


@pytest.mark.parametrize("ends", ["sweep", "purge"])
def test_files_of_what_was_dropped_in_the_same_folder_stay(
    old_table: Catalog, store: AgedFiles, ends: str
) -> None:
    """Their owner wanted to keep them, and may register them again."""
    place = load_table(old_table).metadata.location
    drop_for_good(old_table, TABLES, DEPARTURES)
    named.create(old_table, NewView(ARRIVALS, SCHEMA, view_version(), place, {}))
    drop_for_good(old_table, VIEWS, ARRIVALS)
    stay = set(store._files)
    assert len(stay) == 6
    named.create(old_table, NewTable(DEPARTURES, SCHEMA, None, None, place, {}))
    for number in range(5):
        commit_to(old_table, SetProperties(updates={"n": str(number)}))
    store.age_all()
    let_age(old_table, 10 * DAY_MS)
    gone = orphan(old_table, 1)

    if ends == "sweep":
        assert sweep_one(old_table.server)
    else:
        purge_table(old_table, DEPARTURES)
        assert work_off_one(old_table.server)

    assert stay <= set(store._files)
    assert gone not in store._files


def drop_for_good(catalog: Catalog, kind: Kind[Any], identifier: TableIdentifier) -> None:
    named.drop(catalog, kind, identifier)
    execute(catalog, delete(dropped))
