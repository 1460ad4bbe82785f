"""Files that another table names stay when their own table is purged or its snapshots expire."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.deletions.expiry import ExpiryRequest, expire_snapshots, preview_expiry
from app.catalog.deletions.foreign_looks import UnknownReaders
from app.catalog.deletions.queue import LAST_RETRY_MS, MANY_FAILURES
from app.catalog.tables import purge_table
from app.catalog.upkeep.table_health import table_health
from app.catalog.upkeep.warehouse_health import waiting_deletions
from app.database.pointers.foreign_files import ANYWHERE
from app.database.warehouses import Warehouse
from app.engine.change.updates import SetProperties, SetStatistics
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location
from app.engine.model.statistics import StatisticsFile
from app.engine.model.table_metadata import TableMetadata
from app.engine.retention.expired_snapshots import ExpiryWish
from app.errors import FilesBeingDeleted, StoreNotOpened, Throttled
from app.fileio.memory import MemoryFiles
from app.formats.metadata.files import MetadataFiles
from tests.builders.catalogs import START_MS, catalog_on, new_warehouse, with_rules, with_server
from tests.builders.commits import commit_table
from tests.builders.queues import let_queue_age, let_reads_take_long, work_off_one
from tests.builders.table_files import NamingFiles, TableFiles
from tests.builders.tables import DEPARTURES, FLIGHTS, append, load_table, namespace_in, table_in

OTHER = TableIdentifier(FLIGHTS, "other")
TWIN = TableIdentifier(FLIGHTS, "twin")
ALL_BUT_LAST = ExpiryRequest(ExpiryWish(older_than_ms=START_MS * 2, retain_last=1))


@pytest.fixture
def store() -> MemoryFiles:
    return MemoryFiles()


@pytest.fixture
def catalog(tmp_path: Path, store: MemoryFiles) -> Catalog:
    """Two tables; the first has two snapshots: one with `gone`, and one with `kept` in its place."""
    catalog = catalog_on(f"sqlite:///{tmp_path}/icetower.db", store)
    files = NamingFiles(store)
    table_in(catalog)
    table_in(catalog, OTHER)
    commit_table(catalog, DEPARTURES, [], append(files.snapshot(metadata(catalog), ["gone"])))
    commit_table(catalog, DEPARTURES, [], append(files.snapshot(metadata(catalog), ["kept"], ["gone"])))
    return catalog


def metadata(catalog: Catalog, identifier: TableIdentifier = DEPARTURES) -> TableMetadata:
    return load_table(catalog, identifier).metadata


def data_file(catalog: Catalog, name: str) -> Location:
    return TableFiles.data_path(metadata(catalog), name)


def name_file(catalog: Catalog, *locations: str, identifier: TableIdentifier = OTHER) -> None:
    files = NamingFiles(catalog.files)
    snapshot = files.snapshot(metadata(catalog, identifier), [f"@{location}" for location in locations])
    commit_table(catalog, identifier, [], append(snapshot))


def noted(catalog: Catalog, identifier: TableIdentifier = OTHER) -> set[str]:
    return set(catalog.server.foreign_places.of_table(catalog.load(TABLES, identifier).id))


def work_off(catalog: Catalog) -> dict[str, int]:
    while work_off_one(catalog.server):
        pass
    return catalog.server.file_deletions.counts()


def register_twin(
    catalog: Catalog, store: MemoryFiles, of: TableMetadata, location: str = "memory://wh/twin"
) -> None:
    """Register a copy of a table's metadata under another uuid, in a place of its own."""
    document = json.loads(of.to_json())
    document |= {"table-uuid": "11111111-0000-4000-8000-000000000000", "location": location}
    where = Location(f"{location}/metadata/00001-x.metadata.json")
    store.write_new(where, json.dumps(document).encode())
    named.register(catalog, TABLES, TWIN, where)


def test_an_ordinary_commit_notes_nothing(catalog: Catalog, store: MemoryFiles) -> None:
    statements: list[str] = []
    (writer,) = catalog.server.pointers._database._kept_writers.values()
    driver_connection: Any = writer.connection.dbapi_connection
    driver_connection.set_trace_callback(statements.append)
    files = TableFiles(store)

    commit_table(catalog, OTHER, [], append(files.snapshot(metadata(catalog, OTHER), ["own"])))

    assert [each for each in statements if "pointer_history" in each] != []
    assert [each for each in statements if "foreign_places" in each] == []
    assert catalog.server.foreign_places.readers([], None) == []


def test_a_commit_notes_the_folders_of_foreign_files(catalog: Catalog) -> None:
    gone = data_file(catalog, "gone")

    name_file(catalog, gone)

    assert noted(catalog) == {f"{metadata(catalog).location}/data/"}


def test_a_purge_leaves_what_another_table_names(catalog: Catalog, store: MemoryFiles) -> None:
    gone, kept = data_file(catalog, "gone"), data_file(catalog, "kept")
    name_file(catalog, gone)

    purge_table(catalog, DEPARTURES)

    assert work_off(catalog) == {"done": 1}
    assert store.exists(gone)
    assert not store.exists(kept)


@pytest.mark.parametrize("kind", ["purge", "expire"])
def test_an_entry_is_held_while_other_tables_are_read(
    catalog: Catalog, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("gone", "kept"):
        name_file(catalog, data_file(catalog, name))
    if kind == "purge":
        purge_table(catalog, DEPARTURES)
    else:
        expire_snapshots(catalog, DEPARTURES, ALL_BUT_LAST)
    taken = let_reads_take_long(monkeypatch, catalog.server.file_deletions)

    assert work_off_one(catalog.server)

    assert len(taken) > 2
    assert set(taken) == {None}
    assert catalog.server.file_deletions.counts() == {"done": 1}


def test_an_expiry_leaves_what_another_table_names(catalog: Catalog, store: MemoryFiles) -> None:
    gone = data_file(catalog, "gone")
    before = {item.location for item in preview_expiry(catalog, DEPARTURES, ALL_BUT_LAST).unreachable or ()}
    name_file(catalog, gone)

    preview = preview_expiry(catalog, DEPARTURES, ALL_BUT_LAST).unreachable
    expire_snapshots(catalog, DEPARTURES, ALL_BUT_LAST)

    assert preview is not None
    assert before - {item.location for item in preview} == {gone}
    assert work_off(catalog) == {"done": 1}
    assert store.exists(gone)
    assert not any(store.exists(item.location) for item in preview)


def test_a_file_that_the_other_table_let_go_is_deleted(catalog: Catalog, store: MemoryFiles) -> None:
    gone = data_file(catalog, "gone")
    name_file(catalog, gone)
    purge_table(catalog, OTHER)
    work_off(catalog)

    purge_table(catalog, DEPARTURES)
    work_off(catalog)

    assert not store.exists(gone)


def test_statistics_of_another_table_stay(catalog: Catalog, store: MemoryFiles) -> None:
    gone = data_file(catalog, "gone")
    name_file(catalog)
    snapshot = metadata(catalog, OTHER).snapshots[0]
    file = StatisticsFile(
        snapshot_id=snapshot.snapshot_id,
        statistics_path=gone,
        file_size_in_bytes=1,
        file_footer_size_in_bytes=1,
        blob_metadata=(),
    )
    commit_table(catalog, OTHER, [], [SetStatistics(statistics=file)])

    purge_table(catalog, DEPARTURES)
    work_off(catalog)

    assert store.exists(gone)


@pytest.mark.parametrize("why", ["guard off", "budget used up"])
def test_what_the_guard_has_not_seen_counts_as_anywhere(
    catalog: Catalog, store: MemoryFiles, why: str
) -> None:
    gone = data_file(catalog, "gone")
    writer = catalog
    if why == "guard off":
        commit_table(catalog, OTHER, [], [SetProperties(updates={"icetower.guard": "off"})])
    else:
        writer = with_rules(catalog, guard_read_bytes=1)
    name_file(writer, gone)
    assert noted(catalog) == {ANYWHERE}

    purge_table(catalog, DEPARTURES)
    work_off(catalog)

    assert store.exists(gone)
    assert noted(catalog) == {gone.rpartition("/")[0] + "/"}, "the deletion has looked for everybody"


def test_a_registered_table_is_looked_at_once(catalog: Catalog, store: MemoryFiles) -> None:
    where = load_table(catalog, DEPARTURES).location
    assert where is not None
    named.drop(catalog, TABLES, DEPARTURES)
    named.register(catalog, TABLES, DEPARTURES, where)
    assert noted(catalog, DEPARTURES) == {ANYWHERE}

    UnknownReaders(catalog.server).look_for(60)

    assert noted(catalog, DEPARTURES) == set()


def test_a_purge_leaves_what_a_registered_copy_reaches(catalog: Catalog, store: MemoryFiles) -> None:
    manifest_lists = [str(snapshot.manifest_list) for snapshot in metadata(catalog).snapshots]
    files = [data_file(catalog, "gone"), data_file(catalog, "kept"), *map(Location, manifest_lists)]
    register_twin(catalog, store, metadata(catalog))

    purge_table(catalog, DEPARTURES)

    assert work_off(catalog) == {"done": 1}
    assert all(store.exists(location) for location in files)


def test_a_table_that_cannot_be_read_keeps_the_files_and_the_entry_waits(
    catalog: Catalog, store: MemoryFiles
) -> None:
    gone, kept = data_file(catalog, "gone"), data_file(catalog, "kept")
    name_file(catalog, gone)
    other_list = Location(str(metadata(catalog, OTHER).snapshots[-1].manifest_list))
    good = store._files[other_list]
    store._files[other_list] = b"no Avro", 0
    purge_table(catalog, DEPARTURES)

    assert work_off(catalog) == {"queued": 1}
    assert store.exists(kept), "it is not known what the other table reaches"
    (waiting,) = waiting_deletions(catalog)
    assert (waiting.kind, waiting.identifier, waiting.attempts) == ("purge", "flights.departures", 1)
    assert waiting.error.startswith("It is not known which files table flights.other reaches in memory://wh/")
    assert waiting.error.count(str(other_list)) == 1, "the file is named once"
    assert "`icetower table unregister --unread flights.other --warehouse wh`" in waiting.error
    assert catalog.server.file_deletions.count_waiting() == 1

    store._files[other_list] = good
    let_queue_age(catalog.server.file_deletions, 3_600_000)
    assert work_off(catalog) == {"done": 1}
    assert (store.exists(gone), store.exists(kept)) == (True, False)


def test_an_expiry_that_waits_is_a_finding_and_is_never_given_up(
    catalog: Catalog, store: MemoryFiles
) -> None:
    name_file(catalog, data_file(catalog, "gone"))
    other_list = Location(str(metadata(catalog, OTHER).snapshots[-1].manifest_list))
    good = store._files[other_list]
    store._files[other_list] = b"no Avro", 0
    expire_snapshots(catalog, DEPARTURES, ALL_BUT_LAST)
    for _ in range(MANY_FAILURES + 2):
        work_off(catalog)
        let_queue_age(catalog.server.file_deletions, LAST_RETRY_MS)

    (finding,) = [
        item for item in table_health(catalog, DEPARTURES).findings if item.code == "waiting-deletions"
    ]
    assert finding.message.startswith(
        "Files of 1 expiry or orphan run wait to be deleted: It is not known which"
    )
    assert "flights.other" in finding.message
    assert [item for item in table_health(catalog, OTHER).findings if item.code == "waiting-deletions"] == []
    store._files[other_list] = good
    assert work_off(catalog) == {"done": 1}
    assert waiting_deletions(catalog) == []


def test_an_unreadable_table_keeps_only_what_lies_in_the_folders_that_it_names(
    catalog: Catalog, store: MemoryFiles
) -> None:
    third = TableIdentifier(FLIGHTS, "third")
    table_in(catalog, third)
    commit_table(catalog, third, [], append(NamingFiles(store).snapshot(metadata(catalog, third), ["own"])))
    own = TableFiles.data_path(metadata(catalog, third), "own")
    name_file(catalog, data_file(catalog, "gone"))
    store._files[Location(str(metadata(catalog, OTHER).snapshots[-1].manifest_list))] = b"no Avro", 0
    purge_table(catalog, DEPARTURES)
    before = noted(catalog)
    assert work_off(catalog) == {"queued": 1}

    purge_table(catalog, third)

    assert work_off(catalog) == {"queued": 1, "done": 1}
    assert not store.exists(own)
    assert noted(catalog) == before


def test_an_unreadable_table_of_another_place_keeps_nothing(catalog: Catalog, store: MemoryFiles) -> None:
    elsewhere = new_warehouse(catalog.server, "elsewhere", "memory://elsewhere")
    namespace_in(elsewhere)
    document = json.loads(metadata(catalog).to_json())
    document |= {"table-uuid": "22222222-0000-4000-8000-000000000000", "location": "memory://elsewhere/t"}
    for number, snapshot in enumerate(document["snapshots"]):
        snapshot["manifest-list"] = f"memory://elsewhere/t/metadata/{number}.avro"
        store.write_new(Location(snapshot["manifest-list"]), b"no Avro")
    where = Location("memory://elsewhere/t/metadata/00001-x.metadata.json")
    store.write_new(where, json.dumps(document).encode())
    named.register(elsewhere, TABLES, TWIN, where)
    gone = data_file(catalog, "gone")

    purge_table(catalog, DEPARTURES)

    assert work_off(catalog) == {"done": 1}
    assert not store.exists(gone)


def test_lists_that_a_table_of_another_place_names_stay(catalog: Catalog, store: MemoryFiles) -> None:
    """Its warehouse may not read them, but its clients do."""
    elsewhere = new_warehouse(catalog.server, "elsewhere", "memory://elsewhere")
    namespace_in(elsewhere)
    register_twin(elsewhere, store, metadata(catalog), "memory://elsewhere/t")
    files = {file.location for file in store.list_files(Location(metadata(catalog).location))}

    purge_table(catalog, DEPARTURES)

    assert work_off(catalog) == {"queued": 1}
    assert {file.location for file in store.list_files(Location("memory://wh"))} >= files
    assert str(TWIN) in waiting_deletions(catalog)[0].error


def test_housekeeping_leaves_a_table_alone_that_it_could_not_read(
    catalog: Catalog, store: MemoryFiles, caplog: pytest.LogCaptureFixture
) -> None:
    commit_table(catalog, OTHER, [], [SetProperties(updates={"icetower.guard": "off"})])
    name_file(catalog, data_file(catalog, "gone"))
    store._files[Location(str(metadata(catalog, OTHER).snapshots[-1].manifest_list))] = b"no Avro", 0
    unknown = UnknownReaders(catalog.server)

    with caplog.at_level(logging.WARNING):
        unknown.look_for(60)
        unknown.look_for(60)

    assert len([record for record in caplog.records if "not known which files" in record.message]) == 1
    assert ANYWHERE in noted(catalog)


class Throttling(MemoryFiles):
    """Another store, which asks to slow down where one file is read."""

    def __init__(self, store: MemoryFiles, location: Location) -> None:
        super().__init__()
        self._files, self._location = store._files, location

    def read(self, location: Location) -> bytes:
        if location == self._location:
            raise Throttled(f"Cannot read {location}: the store asks to slow down")
        return super().read(location)


def test_housekeeping_goes_on_behind_a_table_whose_store_asks_to_slow_down(
    catalog: Catalog, store: MemoryFiles
) -> None:
    commit_table(catalog, OTHER, [], [SetProperties(updates={"icetower.guard": "off"})])
    name_file(catalog, data_file(catalog, "gone"))
    register_twin(catalog, store, metadata(catalog))
    busy = Throttling(store, Location(str(metadata(catalog, OTHER).snapshots[-1].manifest_list)))

    UnknownReaders(with_server(catalog, files_of=lambda _: busy).server).look_for(60)

    assert ANYWHERE in noted(catalog, OTHER)
    assert ANYWHERE not in noted(catalog, TWIN)


def test_what_is_gone_names_nothing(catalog: Catalog, store: MemoryFiles) -> None:
    commit_table(catalog, OTHER, [], [SetProperties(updates={"icetower.guard": "off"})])
    name_file(catalog, data_file(catalog, "gone"))
    store.delete(Location(str(metadata(catalog, OTHER).snapshots[-1].manifest_list)))

    purge_table(catalog, DEPARTURES)

    assert work_off(catalog) == {"done": 1}


def test_a_commit_cannot_take_in_files_that_are_being_deleted(catalog: Catalog, store: MemoryFiles) -> None:
    kept = data_file(catalog, "kept")
    refused: list[str] = []

    def step(name: str) -> None:
        if name == "purged_content_deleted":
            with pytest.raises(FilesBeingDeleted, match=r"the purge of flights\.departures, which has begun"):
                name_file(catalog, kept)
            refused.append(name)

    purge_table(catalog, DEPARTURES)
    work_off(with_server(catalog, step=step))

    assert refused == ["purged_content_deleted"]
    name_file(catalog, kept)  # what is not there any more is the guard's to find


def test_a_commit_without_foreign_files_lands_while_files_are_deleted(catalog: Catalog) -> None:
    landed: list[str] = []

    def step(name: str) -> None:
        if name == "purged_content_deleted":
            files = TableFiles(catalog.files)
            commit_table(catalog, OTHER, [], append(files.snapshot(metadata(catalog, OTHER), ["own"])))
            landed.append(name)

    purge_table(catalog, DEPARTURES)
    work_off(with_server(catalog, step=step))

    assert landed == ["purged_content_deleted"]


def test_a_copy_whose_lists_are_being_deleted_is_not_registered(catalog: Catalog, store: MemoryFiles) -> None:
    before = metadata(catalog)
    refused: list[str] = []

    def step(name: str) -> None:
        if name == "purged_manifests_deleted":
            with pytest.raises(FilesBeingDeleted, match=r"the purge of flights\.departures, which has begun"):
                register_twin(catalog, store, before)
            refused.append(name)

    purge_table(catalog, DEPARTURES)
    work_off(with_server(catalog, step=step))

    assert refused == ["purged_manifests_deleted"]


def test_a_copy_that_is_registered_between_two_batches_keeps_what_is_left(
    catalog: Catalog, store: MemoryFiles
) -> None:
    """Only its manifests say that it has the files; its lists are its own."""
    (*_, named_so) = (Location(str(snapshot.manifest_list)) for snapshot in metadata(catalog).snapshots)
    name_file(catalog, named_so)
    before = metadata(catalog, OTHER)
    named.drop(catalog, TABLES, OTHER)
    catalog.server.dropped.end(catalog.now_ms() + 8 * 24 * 3_600_000)
    registered: list[str] = []

    def step(name: str) -> None:
        if name == "purged_content_deleted":
            register_twin(catalog, store, before, before.location)
            registered.append(name)

    purge_table(catalog, DEPARTURES)
    work_off(with_server(catalog, step=step))

    assert registered == ["purged_content_deleted"]
    assert store.exists(named_so)


def test_a_preview_says_which_table_cannot_be_read(catalog: Catalog, store: MemoryFiles) -> None:
    name_file(catalog, data_file(catalog, "gone"))
    store._files[Location(str(metadata(catalog, OTHER).snapshots[-1].manifest_list))] = b"no Avro", 0

    preview = preview_expiry(catalog, DEPARTURES, ALL_BUT_LAST).unreachable

    assert preview is not None
    assert preview.obstacle is not None
    assert "which files table flights.other reaches" in preview.obstacle


def test_a_store_that_cannot_be_opened_keeps_files_that_its_warehouse_may_read(
    catalog: Catalog, store: MemoryFiles
) -> None:
    beside = new_warehouse(catalog.server, "beside", "memory://wh")
    namespace_in(beside)
    register_twin(beside, store, metadata(catalog))

    def files_of(warehouse: Warehouse) -> MemoryFiles:
        if warehouse.id == beside.warehouse.id:
            raise StoreNotOpened("s3.secret-access-key is not set")
        return store

    broken = with_server(catalog, files_of=files_of, metadata_files=MetadataFiles(0, 0))
    UnknownReaders(broken.server).look_for(60)
    purge_table(catalog, DEPARTURES)

    assert work_off(broken) == {"queued": 1}
