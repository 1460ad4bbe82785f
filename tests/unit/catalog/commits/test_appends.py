"""Appends that arrive together: one snapshot for all, and to each its own answer."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from app.catalog.commits.appends import Appended, AppendedByReference
from app.catalog.commits.door import land_all
from app.catalog.commits.intentions import Reserved
from app.catalog.commits.table_commits import TableCommit
from app.catalog.commits.wishes import Wish
from app.catalog.context.callers import Caller
from app.catalog.context.catalog import Catalog
from app.catalog.context.rows import IdempotencyClaim
from app.catalog.context.seen.live_paths import LivePaths
from app.catalog.manifests.table_manifests import TableManifests
from app.database.pointers.pointers import PutOutcome
from app.engine.appends.appended_files import ReadyFile
from app.engine.change.requirements import AssertCurrentSchemaId, AssertRefSnapshotId, Requirement
from app.engine.change.updates import (
    AddSnapshot,
    SetProperties,
    SetSnapshotRef,
    Update,
    UpgradeFormatVersion,
)
from app.engine.model.files.manifests import DataFile, EntryStatus, FileContent, ManifestEntry
from app.engine.model.ids import Location, SchemaId, SpecId
from app.engine.model.table_metadata import TableMetadata
from app.errors import (
    CommitRefused,
    CommitStateUnknown,
    FilesAlreadyLive,
    FilesUnavailable,
    GivenUp,
    InvalidDataFile,
    PointerMoved,
    RequirementFailed,
    Unavailable,
)
from app.fileio.wanted import ask_if_wanted
from app.formats.manifests.source import ManifestCache
from tests.builders.catalogs import START_MS, with_rules, with_server
from tests.builders.failing_files import FailingFiles
from tests.builders.racing_writers import NUMBERS
from tests.builders.tables import DEPARTURES, commit_to, load_table, table_in
from tests.builders.writing_engine import WritingEngine
from tests.unit.catalog.commits.interference import InterferingPointers, files_in, interfering

PLACE = "memory://wh/flights/departures/data"
AppendWish = Wish[TableMetadata, Appended]
_NUMBERS = itertools.count(1)


def ready(path: str, rows: int = 10) -> ReadyFile:
    """Return a file of an unpartitioned table."""
    file = DataFile(FileContent.DATA, Location(path), "PARQUET", SpecId(0), (), rows, 100)
    return ReadyFile(Location(path), SpecId(0), (), file)


def wish(
    catalog: Catalog,
    *names: str,
    requirements: Sequence[Requirement] = (),
    key: str | None = None,
    **more: Any,
) -> AppendWish:
    """Return a request that appends files of these names."""
    place = f"{load_table(catalog).metadata.location}/data"
    claim = None
    if key is not None:
        claim = IdempotencyClaim("tester", key, key, START_MS, START_MS + 1_000_000)
    caller = Caller("tester", f"request-{next(_NUMBERS)}", claim)
    files = [ready(name if ":" in name else f"{place}/{name}") for name in names]
    intention = AppendedByReference(DEPARTURES, more.pop("branch", "main"), files, requirements, **more)
    return Wish(replace(catalog, caller=caller), [intention])


def landed(found: AppendWish) -> Appended:
    (result,) = found.results()
    assert result.detail is not None
    return result.detail


def entries(catalog: Catalog) -> list[ManifestEntry]:
    """Return all entries of the current snapshot."""
    metadata = load_table(catalog).metadata
    source, head = TableManifests(catalog, metadata), metadata.current_snapshot
    assert head is not None
    return [entry for manifest in source.manifests(head) for entry in source.entries(manifest)]


def names_in(catalog: Catalog) -> list[str]:
    return sorted(entry.file.file_path.rpartition("/")[2] for entry in entries(catalog) if entry.is_live)


def test_requests_share_a_snapshot_and_each_has_its_own_counts(catalog: Catalog) -> None:
    table_in(catalog)
    before = files_in(catalog)
    wishes = [wish(catalog, "a"), wish(catalog, "b", "c"), wish(catalog, "d")]

    land_all(wishes)

    details = [landed(each) for each in wishes]
    metadata = load_table(catalog).metadata
    (snapshot,) = metadata.snapshots
    assert {detail.snapshot_id for detail in details} == {snapshot.snapshot_id}
    assert [detail.added_data_files for detail in details] == [1, 2, 1]
    assert (snapshot.summary or {})["added-data-files"] == "4"
    assert (snapshot.summary or {})["total-records"] == "40"
    assert names_in(catalog) == ["a", "b", "c", "d"]
    # One manifest, one list, one metadata file.
    assert len(files_in(catalog) - before) == 3


def old_table(catalog: Catalog, *, in_snapshot: bool) -> None:
    """Make a v1 table of two files whose writer counted nothing, and upgrade it."""
    table_in(catalog, properties={"format-version": "1"})
    metadata = load_table(catalog).metadata
    engine = WritingEngine(1, counts_in_lists=False, files=catalog.files, numbers=NUMBERS, on=metadata)
    for name in ("a", "b"):
        made = engine.append([name])
        if not in_snapshot:
            commit_to(catalog, *made.updates)
    if in_snapshot:
        head = engine.head()
        assert head is not None
        paths = tuple(item.manifest_path for item in engine.manifests(head))
        alone = head.replace(manifest_list=None, manifests=paths, parent_snapshot_id=None)
        commit_to(
            catalog,
            AddSnapshot(snapshot=alone),
            SetSnapshotRef(ref_name="main", snapshot_id=alone.snapshot_id, type="branch"),
        )
    commit_to(catalog, UpgradeFormatVersion(format_version=3))


@pytest.mark.parametrize("in_snapshot", [True, False], ids=["manifests in the snapshot", "lists"])
def test_manifests_that_a_v1_writer_did_not_count_are_counted(catalog: Catalog, in_snapshot: bool) -> None:
    old_table(catalog, in_snapshot=in_snapshot)

    land_all([wish(catalog, "c")])

    metadata = load_table(catalog).metadata
    head = metadata.current_snapshot
    assert head is not None
    listed = TableManifests(catalog, metadata).manifests(head)
    assert [
        (item.added_files_count, item.existing_files_count, item.deleted_files_count) for item in listed
    ] == [(1, 0, 0)] * 3
    assert {item.added_snapshot_id for item in listed[1:]} <= {
        entry.snapshot_id for entry in entries(catalog) if entry.snapshot_id != head.snapshot_id
    }
    row_ids = [
        row_id
        for entry in entries(catalog)
        if (first := entry.file.first_row_id) is not None
        for row_id in range(first, first + entry.file.record_count)
    ]
    assert sorted(row_ids) == list(range(sum(entry.file.record_count for entry in entries(catalog))))
    assert metadata.next_row_id == len(row_ids)


def test_those_that_have_to_ask_do_not_land_in_slots_of_others(catalog: Catalog) -> None:
    table_in(catalog)
    pointer, queues = catalog.find(DEPARTURES), catalog.server.landing_queues
    assert pointer is not None
    queues.put(pointer.id, queues.load(pointer.id), "1", is_reserved=True)
    asking, another, asked = (
        wish(catalog, "a", asks_as="x"),
        wish(catalog, "b", asks_as="y"),
        wish(catalog, "c"),
    )

    land_all([asking, another, asked])

    for each in (asking, another):
        with pytest.raises(Reserved):
            each.results()
    assert landed(asked).added_data_files == 1
    assert names_in(catalog) == ["c"]


def test_bad_ones_fail_alone_and_leave_nothing(catalog: Catalog) -> None:
    table_in(catalog)
    land_all([wish(catalog, "old")])
    wrong_spec = wish(catalog, "x")
    wrong_spec.intentions[0].files[0] = replace(ready(f"{PLACE}/x"), spec_id=SpecId(9))  # type: ignore[attr-defined] # ours to spoil
    bad = {
        wish(catalog, "b", "old"): FilesAlreadyLive,
        wish(catalog, "a", "c"): FilesAlreadyLive,
        wish(
            catalog, "d", requirements=[AssertCurrentSchemaId(current_schema_id=SchemaId(7))]
        ): RequirementFailed,
        wrong_spec: InvalidDataFile,
    }
    good = [wish(catalog, "a"), wish(catalog, "e")]

    land_all([good[0], *bad, good[1]])

    assert landed(good[0]).snapshot_id == landed(good[1]).snapshot_id
    for each, error in bad.items():
        with pytest.raises(error):
            each.results()
    assert names_in(catalog) == ["a", "e", "old"]


def test_one_that_the_guard_refuses_fails_alone(catalog: Catalog) -> None:
    table_in(catalog)
    commit_to(catalog, SetProperties(updates={"icetower.guard": "reject"}))
    outside = wish(catalog, "memory://wh/elsewhere/x")
    wishes = [wish(catalog, "a"), outside, wish(catalog, "b")]
    before = files_in(catalog)

    land_all(wishes)

    with pytest.raises(CommitRefused):
        outside.results()
    assert names_in(catalog) == ["a", "b"]
    # Alone, each has a snapshot of its own; what was written for all of them is gone.
    assert landed(wishes[0]).snapshot_id != landed(wishes[2]).snapshot_id
    assert len(files_in(catalog) - before) == 5


def test_one_whose_client_has_gone_fails_alone(catalog: Catalog) -> None:
    table_in(catalog)
    land_all([wish(catalog, "0")])
    # Which files there are has to be read from manifests again.
    fresh = with_server(catalog, live_paths=LivePaths(1 << 20), manifest_cache=ManifestCache(1 << 20))

    def gone() -> None:
        raise GivenUp("it has gone")

    token = ask_if_wanted.set(gone)
    left = wish(fresh, "a")
    ask_if_wanted.reset(token)
    stays = wish(fresh, "b")

    land_all([left, stays])

    with pytest.raises(GivenUp):
        left.results()
    assert landed(stays).added_data_files == 1
    assert names_in(catalog) == ["0", "b"]


def test_lost_race_redoes_all_of_them_and_leaves_no_file(catalog: Catalog) -> None:
    table_in(catalog)
    rivals = [wish(catalog, "a")]

    def step(name: str) -> None:
        if name == "before_put" and rivals:
            land_all([rivals.pop()])

    racing = with_server(catalog, step=step)
    wishes = [wish(racing, "a"), wish(racing, "b")]
    before = files_in(catalog)

    land_all(wishes)

    with pytest.raises(FilesAlreadyLive):
        wishes[0].results()
    assert landed(wishes[1]).sequence_number == 2
    assert names_in(catalog) == ["a", "b"]
    # Two metadata files, two lists, two manifests: those of the lost attempt are deleted.
    assert len(files_in(catalog) - before) == 6


def test_those_that_depend_on_the_head_or_differ_in_summary_or_branch_stay_apart(catalog: Catalog) -> None:
    table_in(catalog)
    land_all([wish(catalog, "0")])
    head = load_table(catalog).metadata.current_snapshot_id
    at_head = AssertRefSnapshotId(ref="main", snapshot_id=head)
    wishes = [
        wish(catalog, "a", requirements=[at_head]),
        wish(catalog, "b", requirements=[at_head]),
        wish(catalog, "c"),
        wish(catalog, "d"),
        wish(catalog, "e", summary=(("who", "me"),)),
    ]

    land_all(wishes)

    ids = [landed(each).snapshot_id for each in (wishes[0], *wishes[2:])]
    assert len(set(ids)) == 3
    assert ids[1] == ids[2]
    with pytest.raises(RequirementFailed):
        wishes[1].results()
    assert (load_table(catalog).metadata.current_snapshot.summary or {})["who"] == "me"  # type: ignore[union-attr] # it has one
    assert names_in(catalog) == ["0", "a", "c", "d", "e"]


def test_one_that_meets_files_which_do_not_land_is_not_told_that_they_are_there(catalog: Catalog) -> None:
    table_in(catalog)
    land_all([wish(catalog, "old")])
    before = files_in(catalog)
    full = with_server(catalog, files_of=lambda _warehouse: WithoutMetadata(catalog.files))
    first, again, old = wish(full, "a"), wish(full, "a"), wish(full, "old")

    land_all([first, again, old])

    for each in (first, again):
        with pytest.raises(FilesUnavailable):
            each.results()
    with pytest.raises(FilesAlreadyLive):
        old.results()
    assert files_in(catalog) == before


class WithoutMetadata(FailingFiles):
    """A store that takes no metadata files."""

    def write_new(self, location: Location, content: bytes) -> None:
        if location.endswith(".json"):
            raise FilesUnavailable("the store is full")
        super().write_new(location, content)


@pytest.mark.parametrize("landed_all_the_same", [True, False])
def test_one_that_meets_files_of_which_nothing_is_known_may_be_sent_again(
    catalog: Catalog, landed_all_the_same: bool
) -> None:
    table_in(catalog)
    meddled, pointers = interfering(catalog)
    pointers.lose_request, pointers.lose_reply = not landed_all_the_same, landed_all_the_same
    first, again = wish(meddled, "a"), wish(meddled, "a")

    land_all([first, again])

    if landed_all_the_same:
        assert landed(first).added_data_files == 1
    else:
        with pytest.raises(CommitStateUnknown):
            first.results()
    with pytest.raises(FilesAlreadyLive if landed_all_the_same else Unavailable):
        again.results()


def test_one_that_meets_files_of_another_that_lost_every_race_has_lost_them_too(catalog: Catalog) -> None:
    table_in(catalog)
    pointers = InterferingPointers(catalog.server.pointers)
    pointers.check_and_put = lambda *_args, **_kwargs: PutOutcome.MOVED  # type: ignore[method-assign]  # always lost
    hopeless = with_rules(with_server(catalog, pointers=pointers), commit_attempts=2)
    before = files_in(catalog)
    wishes = [wish(hopeless, "a"), wish(hopeless, "a")]

    land_all(wishes)

    for each in wishes:
        with pytest.raises(PointerMoved):
            each.results()
    assert files_in(catalog) == before


def test_other_commits_land_between_them_in_one_file(catalog: Catalog) -> None:
    table_in(catalog)
    before = load_table(catalog).location
    updates: list[Update] = [SetProperties(updates={"x": "y"})]
    other: Wish[TableMetadata, Any] = Wish(catalog, [TableCommit(DEPARTURES, (), updates)])
    wishes = [wish(catalog, "a"), other, wish(catalog, "b")]

    land_all(wishes)

    metadata = load_table(catalog).metadata
    assert metadata.properties["x"] == "y"
    assert len(metadata.snapshots) == 2
    assert [item.metadata_file for item in metadata.metadata_log] == [before]
    assert {each.results()[0].loaded.location for each in wishes} == {load_table(catalog).location}


def test_key_remembers_the_answer_of_its_own_request(catalog: Catalog) -> None:
    table_in(catalog)
    wishes = [wish(catalog, "a", key="one"), wish(catalog, "b", "c", key="two")]

    land_all(wishes)

    found = catalog.server.idempotency_keys.find("tester", "two", START_MS + 1)
    assert found is not None
    assert '"added-data-files":2' in found.result
    assert str(landed(wishes[1]).snapshot_id) in found.result


def test_store_that_fails_fails_them_all_at_once(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    table_in(catalog)
    wishes = [wish(catalog, "a"), wish(catalog, "b")]
    calls: list[Location] = []

    def fail(location: Location, _content: bytes) -> None:
        calls.append(location)
        raise FilesUnavailable("the store is gone")

    monkeypatch.setattr(catalog.files, "write_new", fail)
    land_all(wishes)

    for each in wishes:
        with pytest.raises(FilesUnavailable):
            each.results()
    # Each file of them all is tried once, at the same time: a manifest, a list, and the metadata.
    assert sorted(name.rpartition(".")[2] for name in calls) == ["avro", "avro", "json"]


def test_small_manifests_are_merged_and_files_keep_their_numbers(catalog: Catalog) -> None:
    table_in(catalog)
    commit_to(catalog, SetProperties(updates={"commit.manifest.min-count-to-merge": "4"}))
    numbers: dict[str, tuple[int | None, int | None]] = {}
    for number in range(11):
        detail_of = wish(catalog, str(number))
        land_all([detail_of])
        detail = landed(detail_of)
        numbers[str(number)] = detail.snapshot_id, detail.sequence_number

    metadata = load_table(catalog).metadata
    source, head = TableManifests(catalog, metadata), metadata.current_snapshot
    assert head is not None
    assert len(source.manifests(head)) < 4
    found = {
        entry.file.file_path.rpartition("/")[2]: (entry.snapshot_id, entry.data_sequence_number)
        for entry in entries(catalog)
    }
    assert found == numbers
    assert {entry.status for entry in entries(catalog)} == {EntryStatus.ADDED, EntryStatus.EXISTING}
    assert (head.summary or {})["total-data-files"] == "11"
