"""A store that is away for a while looks empty: nothing that only it could say is believed meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from app.catalog import named
from app.catalog.context.absent_stores import absence_of_store
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.context.places.file_names import new_content_uuid
from app.catalog.deletions.expiry import ExpiryRequest, expire_snapshots
from app.catalog.deletions.orphan_search import OrphanWish, search_orphans
from app.catalog.deletions.runner import MOST_LOOKS
from app.catalog.tables import purge_table
from app.database.warehouses import Warehouse
from app.engine.change.updates import SetProperties
from app.engine.model.ids import Location
from app.engine.model.table_metadata import TableMetadata
from app.engine.retention.expired_snapshots import ExpiryWish
from app.errors import FilesUnavailable, StoreNotOpened
from app.fileio.files import FileIO, ListedFile
from app.fileio.memory import MemoryFiles
from app.fileio.schemes import files_for
from app.formats.manifests.source import ManifestCache
from app.formats.metadata.files import MetadataFiles
from tests.builders.catalogs import START_MS, catalog_on, new_warehouse, with_rules, with_server
from tests.builders.commits import commit_table
from tests.builders.queues import let_queue_age, work_off_one
from tests.builders.table_files import NamingFiles, TableFiles
from tests.builders.tables import DEPARTURES, append, load_table, namespace_in, table_in

ALL_BUT_LAST = ExpiryRequest(ExpiryWish(older_than_ms=START_MS * 2, retain_last=1))
AWAY = "memory://away"
LATER_MS = 7 * 3_600_000
DAY_MS = 24 * 3_600_000


@pytest.fixture
def store() -> MemoryFiles:
    return MemoryFiles()


@pytest.fixture
def here(tmp_path: Path, store: MemoryFiles) -> Catalog:
    """A warehouse with a table, whose file `kept` a table of another warehouse names."""
    catalog = catalog_on(f"sqlite:///{tmp_path}/icetower.db", store)
    table_in(catalog)
    files = NamingFiles(store)
    commit_table(catalog, DEPARTURES, [], append(files.snapshot(metadata(catalog), ["kept", "other"])))
    return catalog


@pytest.fixture
def away(here: Catalog, store: MemoryFiles) -> Catalog:
    """The other warehouse."""
    catalog = new_warehouse(here.server, "away", AWAY)
    namespace_in(catalog)
    table_in(catalog)
    kept = TableFiles.data_path(metadata(here), "kept")
    commit_table(
        catalog, DEPARTURES, [], append(NamingFiles(store).snapshot(metadata(catalog), [f"@{kept}"]))
    )
    return catalog


def metadata(catalog: Catalog) -> TableMetadata:
    return load_table(catalog, DEPARTURES).metadata


@contextmanager
def unmounted(
    store: MemoryFiles, root: str = AWAY, other: str = ".icetower/pointers/1.json"
) -> Iterator[None]:
    """Let a place look empty until the block ends, but for one file."""
    hidden = {where: entry for where, entry in store._files.items() if where.startswith(f"{root}/")}
    for where in hidden:
        del store._files[where]
    # Servers write exports where nobody is.
    export = Location(f"{root}/{other}")
    store._files[export] = b"{}", START_MS
    yield
    del store._files[export]
    store._files.update(hidden)


OTHER_STORE = "flights/another_table/metadata/v1.metadata.json"
"""What is found where the storage settings are those of a store in which other tables are."""
FOUND = pytest.mark.parametrize("other", [".icetower/pointers/1.json", OTHER_STORE], ids=["empty", "another"])


def work(catalog: Catalog) -> dict[str, int]:
    let_queue_age(catalog.server.file_deletions, LATER_MS)
    while work_off_one(catalog.server):
        pass
    return catalog.server.file_deletions.counts()


def cold(catalog: Catalog) -> Catalog:
    """Return the warehouse in a process that has read nothing yet."""
    return with_server(
        catalog, metadata_files=MetadataFiles(0, recheck_ms=0), manifest_cache=ManifestCache(0)
    )


@FOUND
@pytest.mark.parametrize("knows", [True, False], ids=["has read it", "has read nothing"])
def test_a_purge_keeps_what_a_table_names_that_is_away(
    here: Catalog, away: Catalog, store: MemoryFiles, *, other: str, knows: bool
) -> None:
    kept, own = (TableFiles.data_path(metadata(here), name) for name in ("kept", "other"))
    purge_table(here, DEPARTURES)
    worker = here if knows else cold(here)

    with unmounted(store, other=other):
        assert work(worker) == {"queued": 1}
        assert store.exists(kept)
    (waiting,) = here.server.file_deletions.waiting(here.warehouse.id, most=9)
    assert work(worker) == {"done": 1}

    assert "as if its disk were not mounted, its bucket not there, or" in waiting.error
    assert (store.exists(kept), store.exists(own)) == (True, False)


@pytest.mark.parametrize("other", [".icetower/pointers/1.json", ".icetower-ready-1", "tmp/.icetower-1.tmp"])
def test_orphans_wait_for_what_a_dropped_table_names_that_is_away(
    here: Catalog, away: Catalog, store: MemoryFiles, other: str
) -> None:
    """Servers write there whatever is mounted: exports, and what shows that a warehouse is writable."""
    stray = TableFiles.data_path(metadata(here), "stray")
    snapshot = NamingFiles(store).snapshot(metadata(away), [f"@{stray}"])
    commit_table(away, DEPARTURES, [], append(snapshot))
    store._files[stray] = b"named by the other table only", 1
    named.drop(away, TABLES, DEPARTURES)
    found = here.read_now(TABLES, DEPARTURES)

    unknown = "It is not known whether memory://away"
    with unmounted(store, other=other), pytest.raises(FilesUnavailable, match=unknown):
        search_orphans(cold(here), *found, OrphanWish())

    assert search_orphans(cold(here), *found, OrphanWish()).files == {}


@FOUND
@pytest.mark.parametrize("knows", [True, False], ids=["has read it", "has read nothing"])
def test_a_purge_of_a_table_that_is_away_waits(
    away: Catalog, store: MemoryFiles, *, other: str, knows: bool
) -> None:
    purge_table(away, DEPARTURES)
    worker = away if knows else cold(away)

    with unmounted(store, other=other):
        assert work(worker) == {"queued": 1}
    (waiting,) = away.server.file_deletions.waiting(away.warehouse.id, most=9)
    assert waiting.error.endswith(
        "Bring it back; if nothing is found for about seven hours, this ends by itself"
    )

    assert work(worker) == {"done": 1}
    assert list(store.list_files(Location(AWAY))) == []


def test_a_protected_table_that_was_dropped_while_it_was_away_keeps_its_files(
    away: Catalog, store: MemoryFiles
) -> None:
    commit_table(away, DEPARTURES, [], [SetProperties(updates={"icetower.protected": "true"})])
    files = set(store.list_files(Location(AWAY)))

    with unmounted(store):
        purge_table(cold(away), DEPARTURES)

    assert work(away) == {"kept": 1}
    assert set(store.list_files(Location(AWAY))) == files


def test_a_purge_in_a_place_that_stays_empty_ends(away: Catalog, store: MemoryFiles) -> None:
    purge_table(away, DEPARTURES)

    with unmounted(store):
        for _ in range(MOST_LOOKS):
            assert work(away) == {"queued": 1}

        assert work(away) == {"failed": 1}


def unopened(_warehouse: Warehouse) -> FileIO:
    raise StoreNotOpened("Environment variable LAKE_KEY of the server is not set")


def test_a_purge_that_was_put_off_for_other_reasons_waits_as_long_for_its_store(
    away: Catalog, store: MemoryFiles
) -> None:
    purge_table(away, DEPARTURES)
    lacks_a_key = with_server(away, files_of=unopened)
    for _ in range(MOST_LOOKS):
        assert work(lacks_a_key) == {"queued": 1}

    with unmounted(store):
        assert work(away) == {"queued": 1}

    assert work(away) == {"done": 1}


def test_a_store_that_does_not_list_its_files_was_not_found_empty(
    away: Catalog, store: MemoryFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(_prefix: Location) -> Iterator[ListedFile]:
        raise FilesUnavailable("there was no whole answer")

    purge_table(away, DEPARTURES)
    with unmounted(store), monkeypatch.context() as patched:
        patched.setattr(store, "list_files", silent)
        for _ in range(MOST_LOOKS + 1):
            assert work(away) == {"queued": 1}

    assert work(away) == {"done": 1}


def test_a_purge_that_has_found_its_store_counts_anew_when_that_is_away_again(
    away: Catalog, store: MemoryFiles
) -> None:
    purge_table(away, DEPARTURES)
    with unmounted(store):
        for _ in range(MOST_LOOKS):
            assert work(away) == {"queued": 1}
    stopping = with_server(away, is_stopping=threading.Event())
    stopping.server.is_stopping.set()
    let_queue_age(away.server.file_deletions, LATER_MS)
    assert work_off_one(stopping.server)

    with unmounted(store):
        assert work(away) == {"queued": 1}

    assert work(away) == {"done": 1}


class Killed(BaseException):
    """The worker ends here."""


def killed_at(catalog: Catalog, step: str) -> Catalog:
    def end(name: str) -> None:
        if name == step:
            raise Killed

    return with_server(catalog, step=end)


@FOUND
@pytest.mark.parametrize("step", ["purged_content_deleted", "purged_log_deleted"])
def test_a_purge_that_was_broken_off_waits_for_its_store(
    away: Catalog, store: MemoryFiles, *, other: str, step: str
) -> None:
    purge_table(away, DEPARTURES)
    with pytest.raises(Killed):
        work(killed_at(away, step))

    with unmounted(store, other=other):
        assert work(away) == {"queued": 1}

    assert work(away) == {"done": 1}
    assert list(store.list_files(Location(AWAY))) == []


def test_a_purge_that_has_deleted_its_last_file_ends_where_nothing_is_found(
    away: Catalog, store: MemoryFiles
) -> None:
    purge_table(away, DEPARTURES)
    with pytest.raises(Killed):
        work(killed_at(away, "purged_metadata_deleted"))
    assert list(store.list_files(Location(AWAY))) == []

    assert work(away) == {"done": 1}


def test_all_of_the_machine_may_be_a_root(tmp_path: Path) -> None:
    everywhere = with_rules(
        catalog_on(f"sqlite:///{tmp_path}/icetower.db", files_for({})), allowed_locations=("/",)
    )
    assert absence_of_store(everywhere, f"{tmp_path}/t/metadata/1.metadata.json") is None


@FOUND
def test_a_purge_that_was_broken_off_before_its_last_file_waits_for_its_store(
    away: Catalog, store: MemoryFiles, monkeypatch: pytest.MonkeyPatch, *, other: str
) -> None:
    last, delete_file = load_table(away, DEPARTURES).location, store.delete

    def killed_before_the_last(location: Location) -> None:
        if location == last:
            raise Killed
        delete_file(location)

    purge_table(away, DEPARTURES)
    with monkeypatch.context() as patch:
        patch.setattr(store, "delete", killed_before_the_last)
        with pytest.raises(Killed):
            work(away)
    assert [file.location for file in store.list_files(Location(AWAY))] == [last]

    with unmounted(store, other=other):
        assert work(away) == {"queued": 1}

    assert work(away) == {"done": 1}
    assert list(store.list_files(Location(AWAY))) == []


def test_a_purge_of_which_only_the_last_file_may_be_left_ends_after_some_hours(
    away: Catalog, store: MemoryFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    last, delete_file = load_table(away, DEPARTURES).location, store.delete

    def killed_after_the_last(location: Location) -> None:
        delete_file(location)
        if location == last:
            raise Killed

    purge_table(away, DEPARTURES)
    with monkeypatch.context() as patch:
        patch.setattr(store, "delete", killed_after_the_last)
        with pytest.raises(Killed):
            work(away)

    for _ in range(MOST_LOOKS):
        assert work(away) == {"queued": 1}
    assert work(away) == {"done": 1}


def test_what_was_too_young_for_a_purge_is_waited_for_when_its_store_is_away(
    away: Catalog, store: MemoryFiles
) -> None:
    folder = f"{metadata(away).location}/metadata"
    mark = new_content_uuid(away.server, metadata(away).uuid, folder)
    young = Location(f"{folder}/{mark}-m0.avro")
    store.write_new(young, b"of a commit that did not land")
    purge_table(away, DEPARTURES)
    away = with_server(away, rules=replace(away.rules, orphan_age_ms=DAY_MS))
    assert work(away) == {"queued": 1}
    assert [file.location for file in store.list_files(Location(AWAY))] == [young]

    let_queue_age(away.server.file_deletions, DAY_MS)
    with unmounted(store):
        assert work(away) == {"queued": 1}
        assert away.server.file_deletions.waiting(away.warehouse.id, most=9)


@pytest.mark.parametrize("away_first", [True, False])
def test_expired_files_of_a_purged_table_wait_for_their_store(
    away: Catalog, store: MemoryFiles, *, away_first: bool
) -> None:
    files = NamingFiles(store)
    commit_table(away, DEPARTURES, [], append(files.snapshot(metadata(away), ["old"])))
    commit_table(away, DEPARTURES, [], append(files.snapshot(metadata(away), ["new"], ["old"])))
    expire_snapshots(away, DEPARTURES, replace(ALL_BUT_LAST, grace_ms=DAY_MS))
    purge_table(away, DEPARTURES)
    if not away_first:
        assert work(away) == {"queued": 1, "done": 1}
    let_queue_age(away.server.file_deletions, DAY_MS)

    with unmounted(store):
        assert work(away).get("queued") == (2 if away_first else 1)

    assert work(away) == {"done": 2}
    assert list(store.list_files(Location(AWAY))) == []


def test_expired_files_whose_store_was_found_count_looks_anew(away: Catalog, store: MemoryFiles) -> None:
    files = NamingFiles(store)
    commit_table(away, DEPARTURES, [], append(files.snapshot(metadata(away), ["old"])))
    commit_table(away, DEPARTURES, [], append(files.snapshot(metadata(away), ["new"], ["old"])))
    expire_snapshots(away, DEPARTURES, replace(ALL_BUT_LAST, grace_ms=DAY_MS))
    purge_table(away, DEPARTURES)
    work(away)
    let_queue_age(away.server.file_deletions, DAY_MS)
    with unmounted(store):
        for _ in range(MOST_LOOKS):
            assert work(away)["queued"] == 1
    let_queue_age(away.server.file_deletions, LATER_MS)
    with pytest.raises(Killed):
        work_off_one(killed_at(away, "expired_content_deleted").server)

    with unmounted(store):
        assert work(away)["queued"] == 1

    assert work(away) == {"done": 2}
    assert list(store.list_files(Location(AWAY))) == []


@FOUND
@pytest.mark.parametrize("knows", [True, False], ids=["has read it", "has read nothing"])
def test_an_expiry_of_a_table_that_is_away_waits(
    away: Catalog, store: MemoryFiles, *, other: str, knows: bool
) -> None:
    files = NamingFiles(store)
    first = files.snapshot(metadata(away), ["old"])
    commit_table(away, DEPARTURES, [], append(first))
    commit_table(away, DEPARTURES, [], append(files.snapshot(metadata(away), ["new"], ["old"])))
    old, new = (TableFiles.data_path(metadata(away), name) for name in ("old", "new"))
    expire_snapshots(away, DEPARTURES, replace(ALL_BUT_LAST, grace_ms=0))
    worker = away if knows else cold(away)

    with unmounted(store, other=other):
        assert work(worker) == {"queued": 1}
    assert work(worker) == {"done": 1}

    assert (store.exists(old), store.exists(new)) == (False, True)
