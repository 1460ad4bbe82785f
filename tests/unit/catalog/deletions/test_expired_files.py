from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.deletions.expiry import ExpiryRequest, expire_snapshots, preview_expiry
from app.catalog.named import unregister
from app.catalog.tables import NewTable, purge_table
from app.engine.change.updates import AddSnapshot, AssignUuid, SetProperties, SetStatistics, Update
from app.engine.model.files.manifests import ManifestEntry
from app.engine.model.ids import Location, SnapshotId, TableUuid
from app.engine.model.snapshot import Snapshot
from app.engine.model.statistics import StatisticsFile
from app.engine.model.table_metadata import TableMetadata
from app.engine.retention.expired_snapshots import ExpiryWish
from app.engine.retention.reachability import CleanupLevel
from app.fileio.memory import MemoryFiles
from app.formats.manifests.source import ManifestCache
from tests.builders.catalogs import START_MS, Clock, catalog_on, with_server
from tests.builders.commits import commit_table
from tests.builders.failing_files import FailingFiles
from tests.builders.queues import let_queue_age, work_off_one
from tests.builders.table_files import TableFiles
from tests.builders.tables import DEPARTURES, SCHEMA, append, load_table, table_in
from tests.unit.catalog.commits.interference import ARRIVALS

ALL_BUT_LAST = ExpiryRequest(ExpiryWish(older_than_ms=START_MS * 2, retain_last=1))
LATER_MS = 3_600_000


class Stopped(BaseException):
    """A worker that is killed."""


@dataclass
class Lake:
    """One table with files in a store that can fail."""

    catalog: Catalog
    store: FailingFiles
    files: TableFiles

    @property
    def metadata(self) -> TableMetadata:
        found = load_table(self.catalog, DEPARTURES).metadata
        assert isinstance(found, TableMetadata)
        return found

    def commit(self, *updates: Update) -> None:
        commit_table(self.catalog, DEPARTURES, [], updates)

    def insert(self, *names: str, branch: str = "main") -> Snapshot:
        made = self.files.snapshot(self.metadata, names)
        self.commit(*append(made, branch))
        return made

    def remove(self, *names: str) -> Snapshot:
        made = self.files.snapshot(self.metadata, [], names)
        self.commit(*append(made))
        return made

    def expire(self, request: ExpiryRequest = ALL_BUT_LAST) -> None:
        expire_snapshots(self.catalog, DEPARTURES, request)

    def work(self) -> dict[str, int]:
        """Work off what is due, and return how many entries are in each state."""
        while work_off_one(self.cold.server):
            pass
        return self.catalog.server.file_deletions.counts()

    @property
    def cold(self) -> Catalog:
        """The catalog of a process that has read nothing yet."""
        return with_server(self.catalog, manifest_cache=ManifestCache(0))

    def there(self) -> set[str]:
        """Return all files but metadata files, by the last part of their names."""
        root = Location(self.catalog.warehouse.root_location)
        return {
            item.location.rpartition("/")[2]
            for item in self.store.list_files(root)
            if not item.location.endswith(".json")
        }

    def reached(self) -> set[str]:
        """Return the files that the table reaches, as `there` does."""
        found: set[str] = set()
        for snapshot in self.metadata.snapshots:
            found.add(str(snapshot.manifest_list))
            for manifest in self.files.manifests[snapshot.snapshot_id]:
                found.add(manifest.manifest_path)
                found |= {
                    entry.file.file_path
                    for entry in self.files.entries[manifest.manifest_path]
                    if entry.is_live
                }
        found |= {item.statistics_path for item in self.metadata.statistics}
        return {location.rpartition("/")[2] for location in found}

    def live_entries(self, snapshot: Snapshot) -> list[ManifestEntry]:
        return [
            entry
            for manifest in self.files.manifests[snapshot.snapshot_id]
            for entry in self.files.entries[manifest.manifest_path]
        ]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    store = FailingFiles(MemoryFiles())
    catalog = catalog_on(f"sqlite:///{tmp_path}/icetower.db", store)
    table_in(catalog)
    return Lake(catalog, store, TableFiles(store))


def with_history(lake: Lake) -> None:
    """Two data files come, one goes, one comes."""
    lake.insert("a")
    lake.insert("b")
    lake.remove("a")
    lake.insert("c")


def test_what_nothing_reaches_goes_and_everything_else_stays(lake: Lake) -> None:
    with_history(lake)
    lake.expire()

    assert lake.work() == {"done": 1}

    assert lake.there() == lake.reached()
    assert {"b.parquet", "c.parquet"} < lake.there()


def test_files_go_before_what_names_them(lake: Lake) -> None:
    with_history(lake)
    lake.expire()

    lake.work()

    kinds = [
        "data" if "/data/" in location else "list" if "/snap-" in location else "manifest"
        for location in lake.store.deleted
    ]
    assert [kind for kind, _ in itertools.groupby(kinds)] == ["data", "manifest", "list"]


def test_statistics_go_with_their_snapshot(lake: Lake) -> None:
    first = lake.insert("a")
    second = lake.insert("b")
    for snapshot in (first, second):
        location = Location(f"{lake.metadata.location}/metadata/{snapshot.snapshot_id}.stats")
        lake.store.write_new(location, b"numbers")
        lake.commit(
            SetStatistics(
                statistics=StatisticsFile(
                    snapshot_id=snapshot.snapshot_id,
                    statistics_path=location,
                    file_size_in_bytes=7,
                    file_footer_size_in_bytes=1,
                    blob_metadata=(),
                )
            )
        )
    lake.expire()

    lake.work()

    assert f"{first.snapshot_id}.stats" not in lake.there()
    assert lake.there() == lake.reached()


@pytest.mark.parametrize("step", ["content", "manifests", "lists", "statistics"])
def test_worker_that_is_killed_is_followed_by_one_that_ends_it(lake: Lake, step: str) -> None:
    with_history(lake)
    lake.expire()

    def stop(name: str) -> None:
        if name == f"expired_{step}_deleted":
            raise Stopped

    with pytest.raises(Stopped):
        work_off_one(with_server(lake.cold, step=stop).server)
    assert lake.work() == {"queued": 1}
    let_queue_age(lake.catalog.server.file_deletions, LATER_MS)

    assert lake.work() == {"done": 1}

    assert lake.there() == lake.reached()


def test_deletions_that_fail_are_made_up_for_later(lake: Lake) -> None:
    with_history(lake)
    doomed = TableFiles.data_path(lake.metadata, "a")
    lake.store.undeletable = {doomed}
    lake.expire()

    assert lake.work() == {"queued": 1}
    assert lake.store.deleted == []
    lake.store.undeletable = set()
    assert lake.work() == {"queued": 1}
    let_queue_age(lake.catalog.server.file_deletions, LATER_MS)

    assert lake.work() == {"done": 1}
    assert lake.there() == lake.reached()


def test_store_that_does_not_answer_is_asked_again(lake: Lake) -> None:
    with_history(lake)
    current = lake.metadata.current_snapshot
    assert current is not None
    lake.store.unreadable = {str(current.manifest_list)}
    lake.expire()

    assert lake.work() == {"queued": 1}
    lake.store.unreadable = set()
    let_queue_age(lake.catalog.server.file_deletions, LATER_MS)

    assert lake.work() == {"done": 1}
    assert lake.there() == lake.reached()


def _first_manifest(lake: Lake) -> str:
    current = lake.metadata.current_snapshot
    assert current is not None
    return lake.files.manifests[current.snapshot_id][0].manifest_path


def _list(lake: Lake) -> str:
    current = lake.metadata.current_snapshot
    assert current is not None
    return str(current.manifest_list)


@pytest.mark.parametrize("victim", [_first_manifest, _list])
@pytest.mark.parametrize("content", [None, b"not Avro"])
def test_nothing_goes_while_a_remaining_file_cannot_be_read(
    lake: Lake, victim: Callable[[Lake], str], content: bytes | None
) -> None:
    with_history(lake)
    location = Location(victim(lake))
    lake.store.files.delete(location)
    if content is not None:
        lake.store.write_new(location, content)
    lake.expire()
    there = lake.there()

    assert lake.work() == {"failed": 1}

    assert lake.there() == there
    assert lake.store.deleted == []
    (given_up,) = lake.catalog.server.file_deletions.waiting(lake.catalog.warehouse.id, 10)
    assert given_up.is_given_up
    assert str(location) in given_up.error


def test_unreadable_manifest_of_an_expired_snapshot_stays_with_what_it_names(lake: Lake) -> None:
    first = lake.insert("a")
    lake.insert("b")
    lake.remove("a", "b")
    (manifest,) = lake.files.manifests[first.snapshot_id]
    lake.store.files.delete(manifest.manifest_path)
    lake.store.write_new(manifest.manifest_path, b"not Avro")
    lake.expire()

    assert lake.work() == {"done": 1}

    left = {manifest.manifest_path.rpartition("/")[2], "a.parquet"}
    assert lake.there() == lake.reached() | left


def test_rollback_by_registering_the_old_metadata_saves_the_files(lake: Lake) -> None:
    with_history(lake)
    before = load_table(lake.catalog, DEPARTURES).location
    assert before is not None
    lake.expire()
    named.register(lake.catalog, TABLES, DEPARTURES, before, overwrite=True)
    there = lake.there()

    assert lake.work() == {"done": 1}

    assert lake.there() == there == lake.reached()


def test_snapshots_committed_after_the_expiry_keep_their_files(lake: Lake) -> None:
    first = lake.insert("a")
    lake.insert("b")
    lake.remove("a")
    lake.expire()
    # Somebody brings an expired file back, in a manifest that was thought to be gone.
    again = lake.files.snapshot(lake.metadata, [], parent=first)
    lake.commit(AddSnapshot(snapshot=again))

    assert lake.work() == {"done": 1}

    assert lake.there() == lake.reached()
    assert "a.parquet" in lake.there()


def test_nothing_goes_while_another_name_has_the_same_table(lake: Lake) -> None:
    with_history(lake)
    location = load_table(lake.catalog, DEPARTURES).location
    assert location is not None
    lake.expire()
    named.register(lake.catalog, TABLES, ARRIVALS, location, overwrite=False)

    assert lake.work() == {"kept": 1}
    assert lake.store.deleted == []


def test_nothing_goes_once_garbage_collection_is_off(lake: Lake) -> None:
    with_history(lake)
    lake.expire()
    lake.commit(SetProperties(updates={"gc.enabled": "false"}))

    assert lake.work() == {"kept": 1}
    assert lake.store.deleted == []


def test_renamed_table_is_still_the_same(lake: Lake) -> None:
    with_history(lake)
    lake.expire()
    expected = lake.reached()
    named.rename(lake.catalog, TABLES, DEPARTURES, ARRIVALS)

    assert lake.work() == {"done": 1}
    assert lake.there() == expected


def test_nothing_goes_once_the_table_has_left_the_catalog(lake: Lake) -> None:
    with_history(lake)
    lake.expire()
    unregister(lake.catalog, TABLES, DEPARTURES)

    assert lake.work() == {"kept": 1}
    assert lake.store.deleted == []


def test_table_purged_meanwhile_loses_its_expired_files_too(lake: Lake) -> None:
    with_history(lake)
    lake.expire()
    purge_table(lake.catalog, DEPARTURES)

    assert lake.work() == {"done": 2}

    assert lake.there() == set()


def test_metadata_only_leaves_data_files(lake: Lake) -> None:
    with_history(lake)
    lake.expire(replace(ALL_BUT_LAST, cleanup=CleanupLevel.METADATA_ONLY))

    assert lake.work() == {"done": 1}

    assert lake.there() == lake.reached() | {"a.parquet"}


def test_files_outside_the_warehouse_are_left_alone(lake: Lake) -> None:
    outside = Location("memory://elsewhere/precious.parquet")
    lake.store.write_new(outside, b"somebody else's")
    metadata = lake.metadata
    made = lake.files.snapshot(metadata, ["a"])
    (manifest,) = lake.files.manifests[made.snapshot_id]
    (entry,) = lake.files.entries[manifest.manifest_path]
    foreign = replace(entry, file=replace(entry.file, file_path=outside))
    lake.store.files.delete(manifest.manifest_path)
    rewritten = lake.files._manifest(metadata, made.snapshot_id, [foreign])
    lake.store.write_new(manifest.manifest_path, lake.store.read(rewritten.manifest_path))
    lake.store.files.delete(rewritten.manifest_path)
    lake.commit(*append(made))
    empty = lake.files.snapshot(
        lake.metadata, ["b"], parent=Snapshot(snapshot_id=SnapshotId(1), timestamp_ms=0, manifests=())
    )
    lake.commit(*append(empty))
    lake.expire()

    assert lake.work() == {"done": 1}

    assert lake.store.exists(outside)
    assert made.manifest_list not in {
        item.location for item in lake.store.list_files(Location("memory://wh"))
    }


def test_two_expiries_in_turn_delete_everything_in_the_end(lake: Lake) -> None:
    lake.insert("a")
    lake.insert("b")
    lake.remove("a")
    two = ExpiryRequest(ExpiryWish(older_than_ms=START_MS * 2, retain_last=2))
    lake.expire(two)
    lake.insert("c")
    lake.expire(replace(ALL_BUT_LAST, grace_ms=60_000))

    assert lake.work() == {"done": 1, "queued": 1}
    # What the second expiry took out still has its files, also those that it shares with the first.
    assert lake.there() > lake.reached()
    let_queue_age(lake.catalog.server.file_deletions, LATER_MS)

    assert lake.work() == {"done": 2}
    assert lake.there() == lake.reached()


def test_old_metadata_files_are_not_needed(lake: Lake) -> None:
    with_history(lake)
    lake.commit(
        SetProperties(
            updates={
                "write.metadata.delete-after-commit.enabled": "true",
                "write.metadata.previous-versions-max": "1",
            }
        )
    )
    lake.expire()
    for number in range(3):
        lake.commit(SetProperties(updates={"number": str(number)}))

    assert lake.work() == {"done": 1}
    assert lake.there() == lake.reached()


@pytest.mark.parametrize("hours", [-7, 7])
def test_grace_ends_at_the_same_moment_for_servers_whose_clocks_differ(lake: Lake, hours: int) -> None:
    with_history(lake)
    there = lake.there()
    lake.expire(replace(ALL_BUT_LAST, grace_ms=LATER_MS))
    other = with_server(lake.cold, now_ms=Clock(START_MS + hours * 3_600_000)).server

    assert not work_off_one(other)
    assert lake.there() == there
    let_queue_age(lake.catalog.server.file_deletions, LATER_MS)

    assert work_off_one(other)
    assert lake.there() == lake.reached()


def test_crashes_do_not_use_up_the_attempts(lake: Lake) -> None:
    with_history(lake)
    lake.store.undeletable = {TableFiles.data_path(lake.metadata, "a")}
    lake.expire()
    queue = lake.catalog.server.file_deletions
    for _ in range(60):
        assert queue.lease(1_000) is not None
        let_queue_age(queue, LATER_MS)

    assert lake.work() == {"queued": 1}, "one failure of the store comes after as many killed workers"

    lake.store.undeletable = set()
    let_queue_age(queue, LATER_MS)
    assert lake.work() == {"done": 1}


@pytest.mark.parametrize("end", ["purge", "expire"])
def test_table_that_once_had_no_uuid_keeps_its_files(lake: Lake, end: str) -> None:
    """Another name may have the same files, and nothing says so once one of them is given a uuid."""
    with_history(lake)
    metadata = lake.metadata
    snapshots = tuple(item.replace(sequence_number=None) for item in metadata.snapshots)
    nameless = metadata.replace(
        format_version=1, table_uuid=None, last_sequence_number=None, snapshots=snapshots
    )
    location = Location(f"{metadata.location}/metadata/nameless.metadata.json")
    lake.store.write_new(location, nameless.to_json())
    named.drop(lake.catalog, TABLES, DEPARTURES)
    for identifier in (DEPARTURES, ARRIVALS):
        named.register(lake.catalog, TABLES, identifier, location)
    lake.commit(AssignUuid(uuid=TableUuid("11111111-1111-1111-1111-111111111111")))
    there = lake.there()

    if end == "purge":
        purge_table(lake.catalog, DEPARTURES)
    else:
        lake.expire()

    assert lake.work() == {"kept": 1}
    assert lake.there() == there


def test_preview_shows_what_then_goes_and_no_file_of_another_table(lake: Lake) -> None:
    with_history(lake)
    inside = NewTable(ARRIVALS, SCHEMA, None, None, f"{lake.metadata.location}/data", {})
    named.create(lake.catalog, inside)
    there = lake.there()

    found = preview_expiry(lake.catalog, DEPARTURES, ALL_BUT_LAST).unreachable
    lake.expire()
    lake.work()

    assert found is not None
    assert found.content == ()
    assert {item.location.rpartition("/")[2] for item in found} == there - lake.there() != set()
