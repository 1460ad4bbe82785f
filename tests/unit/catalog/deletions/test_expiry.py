from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import pytest

from app.catalog import named
from app.catalog.context.callers import Caller
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES, LoadedTable
from app.catalog.deletions.expiry import (
    ExpiryRequest,
    expire_snapshots,
    preview_expiry,
    recorded_expiry,
)
from app.database.outcomes.idempotency_keys import IdempotencyClaim
from app.database.pointers.moves import Advance
from app.engine.change.apply import apply_updates
from app.engine.change.updates import (
    AddSchema,
    AddSnapshot,
    AddSpec,
    SetCurrentSchema,
    SetDefaultSpec,
    SetProperties,
    SetSnapshotRef,
    Update,
)
from app.engine.model.ids import Location, SchemaId, SnapshotId, SpecId
from app.engine.model.partition_spec import UnboundPartitionSpec
from app.engine.model.schema import Schema
from app.engine.model.snapshot import Snapshot
from app.engine.retention.expired_snapshots import ExpiryWish
from app.engine.retention.reachability import CleanupLevel, FileKind
from app.errors import CommitRefused, ExpiryRefused, NoSuchTable
from app.formats.manifests.source import ManifestCache
from tests.builders.catalogs import START_MS, Clock, with_rules, with_server
from tests.builders.commits import commit_table
from tests.builders.queues import let_queue_age
from tests.builders.table_files import TableFiles
from tests.builders.tables import DEPARTURES, append, load_table, table_in
from tests.unit.catalog.commits.interference import ARRIVALS, files_in, interfering

EVERYTHING_OLD = START_MS * 2
ALL_BUT_LAST = ExpiryRequest(ExpiryWish(older_than_ms=EVERYTHING_OLD, retain_last=1))


@pytest.fixture
def files(catalog: Catalog) -> TableFiles:
    table_in(catalog)
    return TableFiles(catalog.files)


def table(catalog: Catalog) -> LoadedTable:
    return load_table(catalog, DEPARTURES)


def commit(catalog: Catalog, updates: Sequence[Update]) -> LoadedTable:
    return commit_table(catalog, DEPARTURES, [], updates)


def insert(catalog: Catalog, files: TableFiles, *names: str, branch: str = "main") -> Snapshot:
    """Append data files, each commit in a manifest of its own."""
    snapshot = files.snapshot(table(catalog).metadata, names)
    commit(catalog, append(snapshot, branch))
    return snapshot


def remove(catalog: Catalog, files: TableFiles, *names: str) -> Snapshot:
    snapshot = files.snapshot(table(catalog).metadata, [], names)
    commit(catalog, append(snapshot))
    return snapshot


def ids(found: Sequence[Snapshot]) -> list[SnapshotId]:
    return [item.snapshot_id for item in found]


def test_preview_tells_files_by_kind_and_changes_nothing(catalog: Catalog, files: TableFiles) -> None:
    first = insert(catalog, files, "a", "b")
    second = insert(catalog, files, "c")
    third = remove(catalog, files, "a", "b")
    before, there = table(catalog), files_in(catalog)

    preview = preview_expiry(catalog, DEPARTURES, ALL_BUT_LAST)

    assert ids(preview.expiry.snapshots) == ids([first, second])
    assert preview.metadata_location == before.location
    assert preview.unreachable is not None
    assert {item.location for item in preview.unreachable.content} == {
        files.data_path(before.metadata, name) for name in ("a", "b")
    }
    kinds = [item.kind for item in preview.unreachable]
    assert kinds == [
        *[FileKind.DATA] * 2,
        # The first snapshot's, which the third replaced by one that says that its files are gone.
        FileKind.MANIFEST,
        *[FileKind.MANIFEST_LIST] * 2,
    ]
    assert sum(item.size_bytes or 0 for item in preview.unreachable.content) == 18
    assert table(catalog).location == before.location
    assert files_in(catalog) == there
    assert catalog.server.file_deletions.counts() == {}
    assert third.snapshot_id == before.metadata.current_snapshot_id


def test_expiry_is_one_commit_that_queues_its_files(catalog: Catalog, files: TableFiles) -> None:
    first = insert(catalog, files, "a")
    second = insert(catalog, files, "b")

    done = expire_snapshots(catalog, DEPARTURES, ALL_BUT_LAST)

    after = table(catalog)
    assert ids(done.expiry.snapshots) == ids([first])
    assert done.metadata_location == after.location
    assert ids(after.metadata.snapshots) == ids([second])
    assert catalog.server.file_deletions.counts() == {"queued": 1}
    assert done.deleted_after_ms is not None


def test_nothing_to_expire_writes_nothing(catalog: Catalog, files: TableFiles) -> None:
    insert(catalog, files, "a")
    before, there = table(catalog), files_in(catalog)

    done = expire_snapshots(catalog, DEPARTURES, ALL_BUT_LAST)

    assert (done.expiry.snapshots, done.deleted_after_ms) == ((), None)
    assert done.metadata_location == before.location
    assert files_in(catalog) == there
    assert catalog.server.file_deletions.counts() == {}


def test_table_whose_files_may_belong_to_others_is_refused(catalog: Catalog, files: TableFiles) -> None:
    insert(catalog, files, "a")
    commit(catalog, [SetProperties(updates={"gc.enabled": "false"})])

    with pytest.raises(ExpiryRefused, match=r"^Cannot expire snapshots: GC is disabled"):
        preview_expiry(catalog, DEPARTURES, ALL_BUT_LAST)
    with pytest.raises(ExpiryRefused, match=r"^Cannot expire snapshots: GC is disabled"):
        expire_snapshots(catalog, DEPARTURES, ALL_BUT_LAST)


def test_snapshot_that_refs_name_is_refused_with_their_names(catalog: Catalog, files: TableFiles) -> None:
    first = insert(catalog, files, "a")
    insert(catalog, files, "b")
    tags = [SetSnapshotRef(ref_name=name, snapshot_id=first.snapshot_id, type="tag") for name in ("y", "x")]
    commit(catalog, tags)
    request = ExpiryRequest(ExpiryWish(snapshot_ids=frozenset({first.snapshot_id})))

    with pytest.raises(ExpiryRefused) as refused:
        expire_snapshots(catalog, DEPARTURES, request)

    assert str(refused.value) == f"Cannot expire {first.snapshot_id}. Still referenced by refs: [x, y]"


def test_named_snapshots_go_whatever_their_age_and_unknown_ones_are_passed_over(
    catalog: Catalog, files: TableFiles
) -> None:
    first = insert(catalog, files, "a")
    insert(catalog, files, "b")
    request = ExpiryRequest(ExpiryWish(snapshot_ids=frozenset({first.snapshot_id, SnapshotId(404)})))

    done = expire_snapshots(catalog, DEPARTURES, request)

    assert ids(done.expiry.snapshots) == ids([first])


def test_ref_that_is_too_old_goes_with_its_snapshots(catalog: Catalog, files: TableFiles) -> None:
    first = insert(catalog, files, "a")
    insert(catalog, files, "b")
    old = SetSnapshotRef(ref_name="old", snapshot_id=first.snapshot_id, type="tag", max_ref_age_ms=1)
    commit(catalog, [old])

    done = expire_snapshots(catalog, DEPARTURES, ALL_BUT_LAST)

    assert (done.expiry.ref_names, ids(done.expiry.snapshots)) == (("old",), ids([first]))
    assert set(table(catalog).metadata.snapshot_refs) == {"main"}


def test_staged_snapshot_stays_while_it_is_young(catalog: Catalog, files: TableFiles) -> None:
    insert(catalog, files, "a")
    staged = files.snapshot(table(catalog).metadata, ["staged"])
    commit(catalog, [AddSnapshot(snapshot=staged)])

    young = expire_snapshots(catalog, DEPARTURES, ExpiryRequest())
    old = expire_snapshots(catalog, DEPARTURES, ALL_BUT_LAST)

    assert young.expiry.snapshots == ()
    assert ids(old.expiry.snapshots) == ids([staged])


def test_snapshots_are_young_by_the_clock_of_the_server_where_the_databases_is_days_ahead(
    catalog: Catalog, files: TableFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged = files.snapshot(table(catalog).metadata, ["staged"])
    commit(catalog, [AddSnapshot(snapshot=staged)])
    monkeypatch.setattr(time, "time_ns", lambda: staged.timestamp_ms * 1_000_000)
    assert isinstance(catalog.server.now_ms, Clock)
    catalog.server.now_ms.now_ms += 30 * 86_400_000

    found = expire_snapshots(catalog, DEPARTURES, ExpiryRequest())

    assert found.expiry.snapshots == ()


def test_what_has_become_old_enough_since_the_preview_stays_as_of_then(
    catalog: Catalog, files: TableFiles
) -> None:
    first = insert(catalog, files, "a")
    insert(catalog, files, "b")
    commit(catalog, [SetProperties(updates={"history.expire.max-snapshot-age-ms": "10000"})])
    shown = preview_expiry(catalog, DEPARTURES, ExpiryRequest())
    assert isinstance(catalog.server.now_ms, Clock)
    catalog.server.now_ms.now_ms += 60_000

    as_shown = expire_snapshots(catalog, DEPARTURES, ExpiryRequest(as_of_ms=shown.as_of_ms))
    as_of_now = preview_expiry(catalog, DEPARTURES, ExpiryRequest())

    assert (ids(shown.expiry.snapshots), ids(as_shown.expiry.snapshots)) == ([], [])
    assert ids(as_of_now.expiry.snapshots) == ids([first])


def test_ages_are_not_counted_at_a_moment_that_is_still_to_come(catalog: Catalog, files: TableFiles) -> None:
    insert(catalog, files, "a")
    insert(catalog, files, "b")

    found = expire_snapshots(catalog, DEPARTURES, ExpiryRequest(as_of_ms=EVERYTHING_OLD))

    assert found.expiry.snapshots == ()


def test_tag_made_while_the_expiry_runs_keeps_its_snapshot(catalog: Catalog, files: TableFiles) -> None:
    first = insert(catalog, files, "a")
    second = insert(catalog, files, "b")
    insert(catalog, files, "c")
    meddled, pointers = interfering(catalog)
    pointers.rivals = [[_rival(catalog, _tag(first))]]

    done = expire_snapshots(meddled, DEPARTURES, ALL_BUT_LAST)

    assert ids(done.expiry.snapshots) == ids([second])
    assert table(catalog).metadata.snapshot_refs["kept"].snapshot_id == first.snapshot_id


def test_tag_made_while_its_snapshot_is_asked_to_go_makes_the_expiry_fail(
    catalog: Catalog, files: TableFiles
) -> None:
    first = insert(catalog, files, "a")
    insert(catalog, files, "b")
    meddled, pointers = interfering(catalog)
    pointers.rivals = [[_rival(catalog, _tag(first))]]
    request = ExpiryRequest(ExpiryWish(snapshot_ids=frozenset({first.snapshot_id})))

    with pytest.raises(ExpiryRefused, match=r"Still referenced by refs: \[kept\]"):
        expire_snapshots(meddled, DEPARTURES, request)

    assert first.snapshot_id in table(catalog).metadata.snapshots_by_id


def _tag(snapshot: Snapshot) -> Update:
    return SetSnapshotRef(ref_name="kept", snapshot_id=snapshot.snapshot_id, type="tag")


def _rival(catalog: Catalog, update: Update) -> Advance:
    """Return the move of another client that commits an update at the same moment."""
    seen = catalog.server.pointers.find(catalog.warehouse.id, DEPARTURES)
    assert seen is not None
    base = table(catalog).metadata
    made = apply_updates(base, [update], catalog.now_ms()).finish(seen.metadata_location)
    location = Location(f"{base.location}/metadata/00099-rival.metadata.json")
    catalog.files.write_new(location, made.to_json())
    return Advance(seen, location, seen.uuid)


def test_unused_specs_and_schemas_go_when_asked_for(catalog: Catalog, files: TableFiles) -> None:
    insert(catalog, files, "a")
    wider = Schema.from_json(
        b'{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":true,"type":"long"}]}'
    )
    by_id = UnboundPartitionSpec.from_object(
        {"fields": [{"source-id": 1, "transform": "identity", "name": "id"}]}
    )
    commit(
        catalog,
        [
            AddSchema(schema_=wider),
            SetCurrentSchema(schema_id=SchemaId(-1)),
            AddSpec(spec=by_id),
            SetDefaultSpec(spec_id=SpecId(-1)),
        ],
    )
    bare = table(catalog).metadata
    nothing_inside = files.snapshot(
        bare, [], parent=Snapshot(snapshot_id=SnapshotId(1), timestamp_ms=0, manifests=())
    )
    commit(catalog, append(nothing_inside))
    thorough = ExpiryRequest(replace(ALL_BUT_LAST.wish, clean_expired_metadata=True))

    done = expire_snapshots(catalog, DEPARTURES, thorough)

    assert (done.expiry.spec_ids, done.expiry.schema_ids) == ((0,), (0,))
    after = table(catalog).metadata
    assert [spec.spec_id for spec in after.partition_specs] == [1]
    assert [schema.schema_id for schema in after.schemas] == [1]


def test_specs_cannot_be_cleaned_while_a_remaining_list_is_gone(catalog: Catalog, files: TableFiles) -> None:
    insert(catalog, files, "a")
    by_id = UnboundPartitionSpec.from_object(
        {"fields": [{"source-id": 1, "transform": "identity", "name": "id"}]}
    )
    commit(catalog, [AddSpec(spec=by_id), SetDefaultSpec(spec_id=SpecId(-1))])
    current = table(catalog).metadata.current_snapshot
    assert current is not None
    assert current.manifest_list is not None
    catalog.files.delete(current.manifest_list)
    elsewhere = with_server(
        catalog, manifest_cache=ManifestCache(0)
    )  # in a process that has not read the list

    with pytest.raises(CommitRefused, match="it is gone"):
        expire_snapshots(elsewhere, DEPARTURES, ExpiryRequest(ExpiryWish(clean_expired_metadata=True)))


def test_preview_says_that_a_second_name_shares_the_files(catalog: Catalog, files: TableFiles) -> None:
    insert(catalog, files, "a")
    insert(catalog, files, "b")
    location = table(catalog).location
    assert location is not None
    named.register(catalog, TABLES, ARRIVALS, location, overwrite=False)

    preview = preview_expiry(catalog, DEPARTURES, ALL_BUT_LAST)

    assert preview.unreachable is not None
    assert list(preview.unreachable) == []
    assert "same uuid" in (preview.unreachable.obstacle or "")


def test_cleanup_none_deletes_nothing(catalog: Catalog, files: TableFiles) -> None:
    insert(catalog, files, "a")
    insert(catalog, files, "b")

    done = expire_snapshots(catalog, DEPARTURES, replace(ALL_BUT_LAST, cleanup=CleanupLevel.NONE))

    assert len(done.expiry.snapshots) == 1
    assert done.deleted_after_ms is None
    assert catalog.server.file_deletions.counts() == {"done": 1}


@pytest.mark.parametrize(("asked_ms", "waited_ms"), [(None, 60_000), (0, 0), (5_000, 5_000)])
def test_files_wait_as_long_as_the_server_or_the_request_says(
    catalog: Catalog, files: TableFiles, asked_ms: int | None, waited_ms: int
) -> None:
    insert(catalog, files, "a")
    insert(catalog, files, "b")
    patient = with_rules(catalog, expired_file_grace_ms=60_000)
    begun_ms = catalog.now_ms()

    done = expire_snapshots(patient, DEPARTURES, replace(ALL_BUT_LAST, grace_ms=asked_ms))

    assert done.deleted_after_ms is not None
    assert begun_ms <= done.deleted_after_ms - waited_ms <= catalog.now_ms()
    queue = catalog.server.file_deletions
    assert (queue.lease(1_000) is None) == (waited_ms > 0)
    let_queue_age(queue, waited_ms + 1_000)
    assert queue.lease(1_000) is not None


def test_repeated_expiry_is_told_what_the_first_one_did(catalog: Catalog, files: TableFiles) -> None:
    insert(catalog, files, "a")
    insert(catalog, files, "b")
    done = expire_snapshots(_calling(catalog, "key-1"), DEPARTURES, ALL_BUT_LAST)
    nothing = expire_snapshots(_calling(catalog, "key-2"), DEPARTURES, ALL_BUT_LAST)
    assert nothing.expiry.snapshots == ()

    again = [recorded_expiry(catalog, DEPARTURES, _result(catalog, key), key) for key in ("key-1", "key-2")]

    assert [ids(item.expiry.snapshots) for item in again] == [ids(done.expiry.snapshots), []]
    assert again[0].deleted_after_ms == done.deleted_after_ms
    assert [item.metadata_location for item in again] == [done.metadata_location] * 2
    named.drop(catalog, TABLES, DEPARTURES)
    # Whether nothing has the name by now, or another table.
    assert recorded_expiry(catalog, DEPARTURES, _result(catalog, "key-1"), "key-1") == again[0]
    table_in(catalog)
    assert recorded_expiry(catalog, DEPARTURES, _result(catalog, "key-1"), "key-1") == again[0]
    named.drop(catalog, TABLES, DEPARTURES)
    catalog.files.delete(done.metadata_location)
    assert recorded_expiry(catalog, DEPARTURES, _result(catalog, "key-1"), "key-1") == again[0]
    with pytest.raises(NoSuchTable):  # an older build has recorded the location alone
        recorded_expiry(catalog, DEPARTURES, done.metadata_location, "key-1")


def _calling(catalog: Catalog, key: str) -> Catalog:
    claim = IdempotencyClaim("tester", key, "hash", START_MS, START_MS + 10**9)
    return replace(catalog, caller=Caller("tester", "r", claim))


def _result(catalog: Catalog, key: str) -> str:
    outcome = catalog.server.idempotency_keys.find("tester", key, START_MS)
    assert outcome is not None
    return outcome.result


def test_expiry_of_nothing_finds_no_table(catalog: Catalog) -> None:
    with pytest.raises(NoSuchTable):
        expire_snapshots(catalog, DEPARTURES, ALL_BUT_LAST)
    with pytest.raises(NoSuchTable):
        preview_expiry(catalog, DEPARTURES, ALL_BUT_LAST)
