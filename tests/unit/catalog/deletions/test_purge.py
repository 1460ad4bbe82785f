"""A purge that cannot know which files the table had says so, and deletes none."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import update

from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.context.places.file_names import new_file_uuid
from app.catalog.exports.forks import CLOCKS_DIFFER_MS
from app.catalog.tables import purge_table
from app.database.deletions.file_deletions import Deletion, FileDeletions
from app.database.schema.rows import file_deletions
from app.engine.model.ids import Location
from app.errors import CommitStateUnknown
from app.fileio.local import LocalFiles
from app.fileio.locations import checksum_name
from app.fileio.memory import MemoryFiles
from tests.builders.catalogs import START_MS, catalog_on, new_warehouse, server_on
from tests.builders.commits import commit_table
from tests.builders.queues import let_queue_age, work_off_one
from tests.builders.table_files import NamingFiles, TableFiles
from tests.builders.tables import DEPARTURES, append, load_table, namespace_in, table_in
from tests.unit.catalog.commits.interference import ARRIVALS
from tests.unit.catalog.context.test_absent_stores import LATER_MS, Killed, killed_at, unmounted


@pytest.fixture
def store() -> MemoryFiles:
    return MemoryFiles()


@pytest.fixture
def catalog(tmp_path: Path, store: MemoryFiles) -> Catalog:
    catalog = catalog_on(f"sqlite:///{tmp_path}/icetower.db", store)
    table_in(catalog)
    snapshot = NamingFiles(store).snapshot(load_table(catalog).metadata, ["a", "b"])
    commit_table(catalog, DEPARTURES, [], append(snapshot))
    return catalog


@pytest.mark.parametrize("has_begun", [False, True], ids=["not begun", "broken off"])
def test_a_purge_whose_metadata_file_alone_is_gone_fails_and_shows_it(
    catalog: Catalog, store: MemoryFiles, *, has_begun: bool
) -> None:
    last = load_table(catalog).location
    assert last is not None
    purge_table(catalog, DEPARTURES)
    if has_begun:
        with pytest.raises(Killed):
            work_off_one(killed_at(catalog, "purged_content_deleted").server)
        let_queue_age(catalog.server.file_deletions, LATER_MS)
    store.delete(last)
    stay = set(store._files)

    assert work_off_one(catalog.server)

    (shown,) = catalog.server.file_deletions.waiting(catalog.warehouse.id, most=9)
    assert shown.is_given_up
    assert f"metadata file {last} is gone, so it is not known which files the table had" in shown.error
    assert set(store._files) == stay


@pytest.mark.parametrize(
    "strays", [(), ("metadata/of-somebody.avro",)], ids=["nothing is left", "a stray is left"]
)
def test_a_table_with_two_names_that_are_both_purged_is_purged_once(
    catalog: Catalog, store: MemoryFiles, strays: tuple[str, ...]
) -> None:
    table = load_table(catalog)
    assert table.location is not None
    for stray in strays:
        store.write_new(Location(f"{table.metadata.location}/{stray}"), b"of a client")
    named.register(catalog, TABLES, ARRIVALS, table.location)
    purge_table(catalog, DEPARTURES)
    purge_table(catalog, ARRIVALS)

    while work_off_one(catalog.server):
        pass

    assert catalog.server.file_deletions.counts() == {"done": 2}
    assert len(store._files) == len(strays)


def end_purges(catalog: Catalog) -> None:
    """Let purges do all that they can, and once more when all files are old enough."""
    while work_off_one(catalog.server):
        pass
    let_queue_age(catalog.server.file_deletions, catalog.rules.orphan_age_ms + CLOCKS_DIFFER_MS)
    while work_off_one(catalog.server):
        pass


@pytest.mark.parametrize("newer_first", [True, False], ids=["the newer first", "the older first"])
@pytest.mark.parametrize("both_go_on", [False, True], ids=["one goes on", "both go on"])
def test_two_names_of_a_table_that_have_gone_apart_are_both_purged_to_the_end(
    catalog: Catalog, store: MemoryFiles, *, newer_first: bool, both_go_on: bool
) -> None:
    """Each has files that only it names."""
    another = Location(f"{catalog.warehouse.root_location}/another/metadata/of-somebody.avro")
    store.write_new(another, b"of a client")
    table = load_table(catalog)
    assert table.location is not None
    named.register(catalog, TABLES, ARRIVALS, table.location)
    for name in (DEPARTURES, ARRIVALS) if both_go_on else (DEPARTURES,):
        metadata = load_table(catalog, name).metadata
        commit_table(catalog, name, [], append(NamingFiles(store).snapshot(metadata, [f"of {name}"])))
    for name in (DEPARTURES, ARRIVALS) if newer_first else (ARRIVALS, DEPARTURES):
        purge_table(catalog, name)

    end_purges(catalog)

    assert catalog.server.file_deletions.counts() == {"done": 2}
    assert list(store._files) == [another]


@pytest.mark.parametrize("newer_first", [True, False], ids=["the newer first", "the older first"])
def test_purges_of_two_names_that_have_gone_apart_leave_no_folders(
    tmp_path: Path, *, newer_first: bool
) -> None:
    catalog = new_warehouse(
        server_on(f"sqlite:///{tmp_path}/icetower.db", LocalFiles()), root=f"file://{tmp_path}/wh"
    )
    table_in(catalog)
    files = TableFiles(LocalFiles())
    files.files.write_new(Location(f"{catalog.warehouse.root_location}/of-somebody.txt"), b"")
    commit_table(
        catalog, DEPARTURES, [], append(files.snapshot(load_table(catalog).metadata, ["day=1/of both"]))
    )
    location = load_table(catalog).location
    assert location is not None
    named.register(catalog, TABLES, ARRIVALS, location)
    metadata = load_table(catalog).metadata
    commit_table(catalog, DEPARTURES, [], append(files.snapshot(metadata, ["day=2/of one"])))
    for name in (DEPARTURES, ARRIVALS) if newer_first else (ARRIVALS, DEPARTURES):
        purge_table(catalog, name)

    end_purges(catalog)

    assert catalog.server.file_deletions.counts() == {"done": 2}
    assert list((tmp_path / "wh").rglob("*day=*")) == []


def test_a_purge_takes_the_checksums_that_hadoop_kept_beside_the_files(tmp_path: Path) -> None:
    catalog = new_warehouse(
        server_on(f"sqlite:///{tmp_path}/icetower.db", LocalFiles()), root=f"file://{tmp_path}/wh"
    )
    table_in(catalog)
    files = TableFiles(LocalFiles())
    commit_table(catalog, DEPARTURES, [], append(files.snapshot(load_table(catalog).metadata, ["day=1/a"])))
    for file in [file for file in (tmp_path / "wh").rglob("*") if file.is_file()]:
        (file.parent / checksum_name(file.name)).touch()
    purge_table(catalog, DEPARTURES)

    end_purges(catalog)

    assert list((tmp_path / "wh").rglob("*.crc")) == []
    assert list((tmp_path / "wh").rglob("metadata")) == []


def test_an_earlier_purge_says_nothing_of_a_table_that_was_restored_since(
    catalog: Catalog, store: MemoryFiles
) -> None:
    table = load_table(catalog)
    assert table.location is not None
    backup = dict(store._files)
    purge_table(catalog, DEPARTURES)
    assert work_off_one(catalog.server)
    long_ago = update(file_deletions).values(finished_ms=START_MS - 1)
    catalog.server.file_deletions._database.write(lambda connection: connection.execute(long_ago))
    store._files.update(backup)
    named.register(catalog, TABLES, DEPARTURES, table.location)
    purge_table(catalog, DEPARTURES)

    with unmounted(store, root=table.metadata.location):
        assert work_off_one(catalog.server)

    assert catalog.server.file_deletions.counts() == {"done": 1, "queued": 1}


def test_a_purge_whose_coming_back_was_not_confirmed_comes_back_when_files_are_old_enough(
    catalog: Catalog, store: MemoryFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, queue, come_back = load_table(catalog), catalog.server.file_deletions, FileDeletions.come_back
    name = f"00001-{new_file_uuid(catalog.server)}.metadata.json"
    young = Location(f"{table.metadata.location}/metadata/{name}")
    store.write_new(young, b"{}")

    def unconfirmed(queue: FileDeletions, deletion: Deletion, wait_ms: int, facts: str) -> None:
        come_back(queue, deletion, wait_ms, facts)
        raise CommitStateUnknown("The database did not confirm the change")

    purge_table(catalog, DEPARTURES)
    with monkeypatch.context() as patch:
        patch.setattr(FileDeletions, "come_back", unconfirmed)
        assert work_off_one(catalog.server)
    assert list(store._files) == [young]

    let_queue_age(queue, catalog.rules.orphan_age_ms // 2)
    assert not work_off_one(catalog.server)
    let_queue_age(queue, catalog.rules.orphan_age_ms)
    store._files[young] = store._files[young][0], store._files[young][1] - 2 * catalog.rules.orphan_age_ms
    assert work_off_one(catalog.server)

    assert store._files == {}
    assert queue.counts() == {"done": 1}


def test_a_table_of_another_store_with_the_same_paths_does_not_say_that_it_was_purged(
    catalog: Catalog, store: MemoryFiles
) -> None:
    """Both had been restored from one backup."""
    other = new_warehouse(catalog.server, "other", str(catalog.warehouse.root_location))
    namespace_in(other)
    location = load_table(catalog).location
    assert location is not None
    named.register(other, TABLES, ARRIVALS, location)
    purge_table(catalog, DEPARTURES)
    purge_table(other, ARRIVALS)
    assert work_off_one(catalog.server)

    assert work_off_one(catalog.server)

    assert catalog.server.file_deletions.counts() == {"done": 1, "queued": 1}


def test_what_was_too_young_goes_also_where_the_stores_clock_is_ahead(
    catalog: Catalog, store: MemoryFiles
) -> None:
    table, queue, age_ms = load_table(catalog), catalog.server.file_deletions, catalog.rules.orphan_age_ms
    young = Location(
        f"{table.metadata.location}/metadata/00001-{new_file_uuid(catalog.server)}.metadata.json"
    )
    store.write_new(young, b"{}")
    store._files[young] = b"{}", queue.now_ms() + CLOCKS_DIFFER_MS - 60_000

    def let_time_pass(by_ms: int) -> None:
        let_queue_age(queue, by_ms)
        content, modified_ms = store._files[young]
        store._files[young] = content, modified_ms - by_ms

    purge_table(catalog, DEPARTURES)
    assert work_off_one(catalog.server)
    let_time_pass(age_ms + 1)
    work_off_one(catalog.server)
    assert queue.counts() == {"queued": 1}
    let_time_pass(CLOCKS_DIFFER_MS)
    assert work_off_one(catalog.server)

    assert store._files == {}
    assert queue.counts() == {"done": 1}
