from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from app.catalog import named
from app.catalog.commits.cherry_picks import CherryPicks
from app.catalog.commits.files.staged_files import StagedFiles
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES, LoadedTable
from app.catalog.context.recorded_places import RecordedPlace
from app.catalog.manifests.table_manifests import TableManifests
from app.catalog.refs import change_ref, list_refs, load_receipt, load_ref, remove_ref
from app.database.outcomes.idempotency_keys import IdempotencyClaim
from app.database.outcomes.receipt import CommitReceipt
from app.database.pointers.history import Author
from app.database.pointers.moves import Advance, Creation, Unmoved
from app.database.pointers.pointers import Pointers, PutOutcome
from app.engine.branches.ref_changes import (
    CherryPick,
    PickKind,
    Publish,
    RefChange,
    RollBack,
    ToSnapshot,
    Unchecked,
)
from app.engine.change.updates import AddSnapshot, RemoveSnapshots, SetProperties
from app.engine.diff.file_diff import live_entries
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location, SnapshotId
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.errors import (
    CommitStateUnknown,
    InvalidName,
    InvalidRefMove,
    NoSuchRef,
    PointerMoved,
    RequirementFailed,
)
from tests.builders.catalogs import with_rules, with_server
from tests.builders.commits import commit_table
from tests.builders.table_files import TableFiles
from tests.builders.tables import DEPARTURES, FLIGHTS, append, append_to, load_table, table_in

UNCHECKED = Unchecked.UNCHECKED


@pytest.fixture
def files(catalog: Catalog) -> TableFiles:
    table_in(catalog)
    return TableFiles(catalog.files)


def now(catalog: Catalog) -> TableMetadata:
    metadata: TableMetadata = load_table(catalog, DEPARTURES).metadata
    return metadata


def committed(catalog: Catalog, snapshot: Snapshot, branch: str | None = "main") -> Snapshot:
    updates = append(snapshot, branch) if branch else [AddSnapshot(snapshot=snapshot)]
    commit_table(catalog, DEPARTURES, [], updates)
    return snapshot


def summarized(snapshot: Snapshot, **summary: str) -> Snapshot:
    return snapshot.replace(summary={key.replace("_", "-"): value for key, value in summary.items()})


def live_paths(catalog: Catalog, ref: str = "main") -> list[str]:
    metadata = now(catalog)
    source = TableManifests(catalog, metadata)
    snapshot = metadata.snapshots_by_id[metadata.snapshot_refs[ref].snapshot_id]
    entries = live_entries(source, source.manifests(snapshot))
    return sorted(entry.file.file_path.rsplit("/", 1)[-1].removesuffix(".parquet") for entry in entries)


def avro_files(catalog: Catalog) -> set[str]:
    location = now(catalog).location
    listed = catalog.files.list_files(Location(f"{location}/metadata"))
    return {file.location for file in listed if file.location.endswith(".avro")}


def test_receipt_tells_what_was_done_by_whom_and_where(catalog: Catalog) -> None:
    table = append_to(catalog, append_to(catalog, table_in(catalog)))
    first, second = (snapshot.snapshot_id for snapshot in table.metadata.snapshots)

    receipt = change_ref(catalog, DEPARTURES, RefChange("main", RollBack(first)))

    assert (receipt.snapshot_before, receipt.snapshot_after, receipt.changed) == (second, first, True)
    assert receipt.location_before == table.location
    assert receipt.location_after == load_table(catalog, DEPARTURES).location
    assert (receipt.author, receipt.request_id) == ("tester", "test")
    pointer = catalog.server.pointers.find(catalog.warehouse.id, DEPARTURES)
    assert pointer is not None
    assert receipt.sequence == catalog.server.pointers.history(pointer.id, limit=1)[0].sequence


def test_wish_that_is_fulfilled_already_commits_nothing(catalog: Catalog) -> None:
    table = append_to(catalog, table_in(catalog))

    receipt = change_ref(catalog, DEPARTURES, RefChange("main"))

    assert (receipt.changed, receipt.sequence) == (False, None)
    assert receipt.location_after == receipt.location_before == table.location
    assert load_table(catalog, DEPARTURES).location == table.location


def test_refs_are_listed_with_main_first(catalog: Catalog) -> None:
    append_to(catalog, table_in(catalog))
    for name in ("zeta", "alpha"):
        change_ref(catalog, DEPARTURES, RefChange(name))

    assert [ref.name for ref in list_refs(catalog, DEPARTURES)] == ["main", "alpha", "zeta"]
    assert load_ref(catalog, DEPARTURES, "zeta").ref.is_branch
    with pytest.raises(NoSuchRef):
        load_ref(catalog, DEPARTURES, "beta")


def test_removed_ref_is_gone_and_main_is_not_removed(catalog: Catalog) -> None:
    table = append_to(catalog, table_in(catalog))
    change_ref(catalog, DEPARTURES, RefChange("audit"))

    with pytest.raises(RequirementFailed):
        remove_ref(catalog, DEPARTURES, "audit", SnapshotId(1))
    expected = table.metadata.current_snapshot_id
    assert expected is not None
    receipt = remove_ref(catalog, DEPARTURES, "audit", expected)

    assert (receipt.snapshot_after, receipt.ref) == (None, None)
    assert receipt.snapshot_before == table.metadata.current_snapshot_id
    with pytest.raises(NoSuchRef):
        remove_ref(catalog, DEPARTURES, "audit", UNCHECKED)
    with pytest.raises(InvalidRefMove):
        remove_ref(catalog, DEPARTURES, "main", UNCHECKED)


@pytest.mark.parametrize("name", ["", ".", "a\nb", "x" * 256])
def test_name_that_no_ref_can_have_is_refused(catalog: Catalog, name: str) -> None:
    append_to(catalog, table_in(catalog))

    with pytest.raises(InvalidName):
        change_ref(catalog, DEPARTURES, RefChange(name))


def test_ref_of_an_empty_table_has_nowhere_to_be(catalog: Catalog) -> None:
    table_in(catalog)

    with pytest.raises(NoSuchRef, match="main"):
        change_ref(catalog, DEPARTURES, RefChange("audit"))


class RivalPointers(Pointers):
    """Pointers that let somebody else commit before a check-and-put, or lose its reply."""

    def __init__(self, pointers: Pointers) -> None:
        super().__init__(pointers._database)
        self.rivals: list[Callable[[], object]] = []
        self.lose_request = False

    def check_and_put(
        self,
        changes: Sequence[Advance | Unmoved | Creation],
        author: Author,
        *claims: IdempotencyClaim | None,
        receipts: Sequence[CommitReceipt] = (),
    ) -> PutOutcome:
        if self.rivals:
            self.rivals.pop(0)()
        if self.lose_request:
            return PutOutcome.UNKNOWN
        return super().check_and_put(changes, author, *claims, receipts=receipts)


def contested(catalog: Catalog) -> tuple[Catalog, RivalPointers]:
    pointers = RivalPointers(catalog.server.pointers)
    return with_server(catalog, pointers=pointers), pointers


def test_expectation_is_checked_again_after_a_lost_race(catalog: Catalog) -> None:
    table = append_to(catalog, append_to(catalog, table_in(catalog)))
    first, second = (snapshot.snapshot_id for snapshot in table.metadata.snapshots)
    rivalled, pointers = contested(catalog)
    pointers.rivals.append(lambda: append_to(catalog, table))

    with pytest.raises(RequirementFailed, match=f"expected id {second}"):
        change_ref(rivalled, DEPARTURES, RefChange("main", ToSnapshot(first), expected=second))


def test_lost_race_loses_neither_change(catalog: Catalog) -> None:
    table = append_to(catalog, table_in(catalog))
    rivalled, pointers = contested(catalog)
    wish = [SetProperties(updates={"owner": "ada"})]
    pointers.rivals.append(lambda: commit_table(catalog, DEPARTURES, [], wish))

    receipt = change_ref(rivalled, DEPARTURES, RefChange("audit"))

    metadata = now(catalog)
    assert metadata.properties["owner"] == "ada"
    assert metadata.snapshot_refs["audit"].snapshot_id == table.metadata.current_snapshot_id
    assert receipt.location_before != table.location


@pytest.fixture
def picked(catalog: Catalog, files: TableFiles) -> Snapshot:
    """A staged append of `c`, while `a` and then `b` are on main."""
    base = committed(catalog, files.snapshot(now(catalog), ["a"]))
    staged = summarized(
        files.snapshot(now(catalog), ["c"], parent=base),
        **{"operation": "append", "wap.id": "nightly"},
    )
    committed(catalog, staged, branch=None)
    committed(catalog, files.snapshot(now(catalog), ["b"], parent=base))
    return staged


@pytest.mark.parametrize("how", ["cherry-pick", "publish"])
def test_picked_append_brings_its_files_to_the_branch(catalog: Catalog, picked: Snapshot, how: str) -> None:
    pick = CherryPick(picked.snapshot_id) if how == "cherry-pick" else Publish("nightly")

    receipt = change_ref(catalog, DEPARTURES, RefChange("main", pick))

    assert live_paths(catalog) == ["a", "b", "c"]
    made = now(catalog).current_snapshot
    assert made is not None
    assert made.snapshot_id == receipt.snapshot_after != picked.snapshot_id
    assert made.parent_snapshot_id == receipt.snapshot_before
    assert made.sequence == picked.sequence + 2
    assert made.summary is not None
    assert made.summary["source-snapshot-id"] == str(picked.snapshot_id)
    assert made.summary["published-wap-id"] == "nightly"
    # The head's summary has no totals here, so none can be told.
    assert "total-records" not in made.summary
    with pytest.raises(InvalidRefMove):
        change_ref(catalog, DEPARTURES, RefChange("main", pick))


def test_pick_that_loses_a_race_is_made_anew_and_leaves_no_files_behind(
    catalog: Catalog, files: TableFiles, picked: Snapshot
) -> None:
    rivalled, pointers = contested(catalog)
    rival = files.snapshot(now(catalog), ["d"])
    pointers.rivals.append(lambda: committed(catalog, rival))
    before = avro_files(catalog)

    change_ref(rivalled, DEPARTURES, RefChange("main", CherryPick(picked.snapshot_id)))

    assert live_paths(catalog) == ["a", "b", "c", "d"]
    # One manifest and one list are new.
    assert len(avro_files(catalog) - before) == 2


def test_pick_that_fails_leaves_no_files_behind(
    catalog: Catalog, files: TableFiles, picked: Snapshot
) -> None:
    rivalled, pointers = contested(with_rules(catalog, commit_attempts=2))

    def rival(name: str) -> Callable[[], object]:
        return lambda: committed(catalog, files.snapshot(now(catalog), [name]))

    pointers.rivals += [rival("d"), rival("e")]

    with pytest.raises(PointerMoved):
        change_ref(rivalled, DEPARTURES, RefChange("main", CherryPick(picked.snapshot_id)))

    named = {snapshot.manifest_list for snapshot in now(catalog).snapshots}
    lists = {file for file in avro_files(catalog) if "/snap-" in file}
    assert lists == named
    assert live_paths(catalog) == ["a", "b", "d", "e"]


def test_pick_of_unknown_outcome_keeps_its_files(catalog: Catalog, picked: Snapshot) -> None:
    rivalled, pointers = contested(catalog)
    pointers.lose_request = True
    before = avro_files(catalog)

    with pytest.raises(CommitStateUnknown):
        change_ref(rivalled, DEPARTURES, RefChange("main", CherryPick(picked.snapshot_id)))

    assert len(avro_files(catalog) - before) == 2


def test_pick_is_refused_once_the_snapshot_that_did_it_before_has_been_expired(
    catalog: Catalog, files: TableFiles, picked: Snapshot
) -> None:
    pick = CherryPick(picked.snapshot_id)
    change_ref(catalog, DEPARTURES, RefChange("audit", ToSnapshot(picked.snapshot_id)))
    done = change_ref(catalog, DEPARTURES, RefChange("main", pick)).snapshot_after
    assert done is not None
    base = now(catalog).snapshots_by_id[SnapshotId(picked.parent_snapshot_id or 0)]
    other = committed(catalog, files.snapshot(now(catalog), ["d"], parent=base), branch=None)
    change_ref(catalog, DEPARTURES, RefChange("main", CherryPick(other.snapshot_id)))
    kept = {ref.snapshot_id for ref in now(catalog).snapshot_refs.values()}
    gone = tuple(item.snapshot_id for item in now(catalog).snapshots if item.snapshot_id not in kept)
    assert done in gone
    commit_table(catalog, DEPARTURES, [], [RemoveSnapshots(snapshot_ids=gone)])
    before = live_paths(catalog)

    with pytest.raises(InvalidRefMove, match="is there already, as if it was picked before"):
        change_ref(catalog, DEPARTURES, RefChange("main", pick))

    assert live_paths(catalog) == before


def test_pick_lands_where_the_snapshots_since_have_been_expired(
    catalog: Catalog, files: TableFiles, picked: Snapshot
) -> None:
    change_ref(catalog, DEPARTURES, RefChange("audit", ToSnapshot(picked.snapshot_id)))
    kept = {ref.snapshot_id for ref in now(catalog).snapshot_refs.values()}
    gone = tuple(item.snapshot_id for item in now(catalog).snapshots if item.snapshot_id not in kept)
    commit_table(catalog, DEPARTURES, [], [RemoveSnapshots(snapshot_ids=gone)])

    change_ref(catalog, DEPARTURES, RefChange("main", CherryPick(picked.snapshot_id)))

    assert live_paths(catalog) == ["a", "b", "c"]


def replacing(catalog: Catalog, files: TableFiles) -> tuple[Snapshot, Snapshot]:
    """Return the base of a staged dynamic overwrite, which has `a` and `k`, and the overwrite: `a` goes, `z` comes."""
    base = committed(catalog, files.snapshot(now(catalog), ["a", "k"]))
    staged = files.snapshot(now(catalog), ["z"], ["a"], parent=base)
    staged = summarized(staged, operation="overwrite", replace_partitions="true")
    return base, committed(catalog, staged, branch=None)


def test_dynamic_overwrite_is_picked_if_its_partitions_are_as_they_were(
    catalog: Catalog, files: TableFiles
) -> None:
    base, staged = replacing(catalog, files)
    committed(catalog, files.snapshot(now(catalog), [], ["k"], parent=base))

    change_ref(catalog, DEPARTURES, RefChange("main", CherryPick(staged.snapshot_id)))

    assert live_paths(catalog) == ["z"]
    made = now(catalog).current_snapshot
    assert made is not None
    assert made.summary is not None
    assert made.summary["operation"] == "overwrite"
    assert (made.summary["added-data-files"], made.summary["deleted-data-files"]) == ("1", "1")


@pytest.mark.parametrize(
    ("added", "removed", "words"), [(["n"], [], "changed partition"), ([], ["a"], "Missing")]
)
def test_dynamic_overwrite_is_refused_if_its_partitions_have_changed(
    catalog: Catalog,
    files: TableFiles,
    added: list[str],
    removed: list[str],
    words: str,
) -> None:
    base, staged = replacing(catalog, files)
    committed(catalog, files.snapshot(now(catalog), added, removed, parent=base))
    before = avro_files(catalog)

    with pytest.raises(InvalidRefMove, match=words):
        change_ref(catalog, DEPARTURES, RefChange("main", CherryPick(staged.snapshot_id)))

    assert avro_files(catalog) == before


def test_rows_that_are_picked_in_v3_get_row_ids_of_their_own(
    catalog: Catalog, files: TableFiles, picked: Snapshot
) -> None:
    base = now(catalog).replace(format_version=3, next_row_id=40)

    staged = StagedFiles(catalog)

    made = CherryPicks(catalog, staged).reapply(base, "main", picked, PickKind.APPEND)
    staged.settle()

    assert (made.first_row_id, made.added_rows) == (40, 3)
    source = TableManifests(catalog, base)
    new = [manifest for manifest in source.manifests(made) if manifest.added_snapshot_id == made.snapshot_id]
    assert [entry.file.first_row_id for entry in live_entries(source, new)] == [40]


def claimed(catalog: Catalog, key: str) -> Catalog:
    claim = IdempotencyClaim("tester", key, "hash", now_ms=1, expires_ms=2**50)
    return replace(catalog, caller=replace(catalog.caller, claim=claim))


def recorded(catalog: Catalog, key: str) -> str:
    outcome = catalog.server.idempotency_keys.find("tester", key, 1)
    assert outcome is not None
    return outcome.result


def test_receipt_can_be_written_again_whatever_happened_since(catalog: Catalog) -> None:
    table: LoadedTable = append_to(catalog, table_in(catalog))
    made = change_ref(claimed(catalog, "a"), DEPARTURES, RefChange("audit"))
    idle = change_ref(claimed(catalog, "b"), DEPARTURES, RefChange("audit"))
    append_to(catalog, load_table(catalog, DEPARTURES))
    remove_ref(catalog, DEPARTURES, "audit", UNCHECKED)

    assert load_receipt(catalog, DEPARTURES, "audit", recorded(catalog, "a")) == made
    assert load_receipt(catalog, DEPARTURES, "audit", recorded(catalog, "b")) == idle
    assert table.location is not None
    catalog.files.delete(table.location)
    again = load_receipt(catalog, DEPARTURES, "audit", recorded(catalog, "a"))
    assert (again.snapshot_after, again.sequence) == (made.snapshot_after, made.sequence)
    named.rename(catalog, TABLES, DEPARTURES, TableIdentifier(FLIGHTS, "elsewhere"))
    again = load_receipt(catalog, DEPARTURES, "audit", recorded(catalog, "a"))
    assert (again.snapshot_after, again.location_after) == (made.snapshot_after, made.location_after)


def test_receipts_that_an_older_build_has_recorded_are_given_again(catalog: Catalog) -> None:
    append_to(catalog, table_in(catalog))
    made = change_ref(catalog, DEPARTURES, RefChange("audit"))
    idle = change_ref(catalog, DEPARTURES, RefChange("audit"))
    pointer = catalog.load(TABLES, DEPARTURES)
    place = RecordedPlace(pointer.metadata_location, pointer.uuid).to_text()

    assert load_receipt(catalog, DEPARTURES, "audit", place) == made
    assert load_receipt(catalog, DEPARTURES, "audit", f"unchanged {place}") == idle
    assert made.location_before is not None
    catalog.files.delete(made.location_before)
    assert load_receipt(catalog, DEPARTURES, "audit", place).snapshot_after == made.snapshot_after
