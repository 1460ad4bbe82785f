from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from app.catalog.cherry_picks import PickedFiles
from app.catalog.commits import LoadedTable, commit_table
from app.catalog.context import Call, Catalog, Rules
from app.catalog.refs import change_ref, list_refs, load_receipt, load_ref, remove_ref
from app.catalog.table_manifests import TableManifests
from app.catalog.tables import load_table
from app.database.idempotency_keys import IdempotencyClaim
from app.database.pointers import Advance, Author, Creation, Pointers, PutOutcome, Unmoved
from app.database.warehouses import Warehouse
from app.engine.branches.ref_changes import (
    CherryPick,
    PickKind,
    Publish,
    RefChange,
    RollBack,
    ToSnapshot,
    Unchecked,
)
from app.engine.change.updates import AddSnapshot, SetProperties
from app.engine.diff.file_diff import live_entries
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
from tests.builders.catalogs import CALL
from tests.builders.table_files import TableFiles
from tests.builders.tables import DEPARTURES, append, append_to, table_in

UNCHECKED = Unchecked.UNCHECKED


@pytest.fixture
def files(catalog: Catalog, warehouse: Warehouse) -> TableFiles:
    table_in(catalog, warehouse)
    return TableFiles(catalog.files_of(warehouse))


def now(catalog: Catalog, warehouse: Warehouse) -> TableMetadata:
    metadata: TableMetadata = load_table(catalog, warehouse, DEPARTURES).metadata
    return metadata


def committed(
    catalog: Catalog, warehouse: Warehouse, snapshot: Snapshot, branch: str | None = "main"
) -> Snapshot:
    updates = append(snapshot, branch) if branch else [AddSnapshot(snapshot=snapshot)]
    commit_table(catalog, CALL, warehouse, DEPARTURES, [], updates)
    return snapshot


def summarized(snapshot: Snapshot, **summary: str) -> Snapshot:
    return snapshot.replace(summary={key.replace("_", "-"): value for key, value in summary.items()})


def live_paths(catalog: Catalog, warehouse: Warehouse, ref: str = "main") -> list[str]:
    metadata = now(catalog, warehouse)
    source = TableManifests(catalog, warehouse)
    snapshot = metadata.snapshots_by_id[metadata.snapshot_refs[ref].snapshot_id]
    entries = live_entries(source, source.manifests(snapshot))
    return sorted(entry.file.file_path.rsplit("/", 1)[-1].removesuffix(".parquet") for entry in entries)


def avro_files(catalog: Catalog, warehouse: Warehouse) -> set[str]:
    location = now(catalog, warehouse).location
    listed = catalog.files_of(warehouse).list_files(Location(f"{location}/metadata"))
    return {file.location for file in listed if file.location.endswith(".avro")}


def test_receipt_tells_what_was_done_by_whom_and_where(catalog: Catalog, warehouse: Warehouse) -> None:
    table = append_to(catalog, warehouse, append_to(catalog, warehouse, table_in(catalog, warehouse)))
    first, second = (snapshot.snapshot_id for snapshot in table.metadata.snapshots)

    receipt = change_ref(catalog, CALL, warehouse, DEPARTURES, RefChange("main", RollBack(first)))

    assert (receipt.snapshot_before, receipt.snapshot_after, receipt.changed) == (second, first, True)
    assert receipt.location_before == table.location
    assert receipt.location_after == load_table(catalog, warehouse, DEPARTURES).location
    assert (receipt.author, receipt.request_id) == ("tester", "test")
    pointer = catalog.pointers.find(warehouse.id, DEPARTURES)
    assert pointer is not None
    assert receipt.sequence == catalog.pointers.history(pointer.id, limit=1)[0].sequence


def test_wish_that_is_fulfilled_already_commits_nothing(catalog: Catalog, warehouse: Warehouse) -> None:
    table = append_to(catalog, warehouse, table_in(catalog, warehouse))

    receipt = change_ref(catalog, CALL, warehouse, DEPARTURES, RefChange("main"))

    assert (receipt.changed, receipt.sequence) == (False, None)
    assert receipt.location_after == receipt.location_before == table.location
    assert load_table(catalog, warehouse, DEPARTURES).location == table.location


def test_refs_are_listed_with_main_first(catalog: Catalog, warehouse: Warehouse) -> None:
    append_to(catalog, warehouse, table_in(catalog, warehouse))
    for name in ("zeta", "alpha"):
        change_ref(catalog, CALL, warehouse, DEPARTURES, RefChange(name))

    assert [ref.name for ref in list_refs(catalog, warehouse, DEPARTURES)] == ["main", "alpha", "zeta"]
    assert load_ref(catalog, warehouse, DEPARTURES, "zeta").ref.is_branch
    with pytest.raises(NoSuchRef):
        load_ref(catalog, warehouse, DEPARTURES, "beta")


def test_removed_ref_is_gone_and_main_is_not_removed(catalog: Catalog, warehouse: Warehouse) -> None:
    table = append_to(catalog, warehouse, table_in(catalog, warehouse))
    change_ref(catalog, CALL, warehouse, DEPARTURES, RefChange("audit"))

    with pytest.raises(RequirementFailed):
        remove_ref(catalog, CALL, warehouse, DEPARTURES, "audit", SnapshotId(1))
    receipt = remove_ref(catalog, CALL, warehouse, DEPARTURES, "audit", table.metadata.current_snapshot_id)

    assert (receipt.snapshot_after, receipt.ref) == (None, None)
    assert receipt.snapshot_before == table.metadata.current_snapshot_id
    with pytest.raises(NoSuchRef):
        remove_ref(catalog, CALL, warehouse, DEPARTURES, "audit", UNCHECKED)
    with pytest.raises(InvalidRefMove):
        remove_ref(catalog, CALL, warehouse, DEPARTURES, "main", UNCHECKED)


@pytest.mark.parametrize("name", ["", ".", "a\nb", "x" * 256])
def test_name_that_no_ref_can_have_is_refused(catalog: Catalog, warehouse: Warehouse, name: str) -> None:
    append_to(catalog, warehouse, table_in(catalog, warehouse))

    with pytest.raises(InvalidName):
        change_ref(catalog, CALL, warehouse, DEPARTURES, RefChange(name))


def test_ref_of_an_empty_table_has_nowhere_to_be(catalog: Catalog, warehouse: Warehouse) -> None:
    table_in(catalog, warehouse)

    with pytest.raises(NoSuchRef, match="main"):
        change_ref(catalog, CALL, warehouse, DEPARTURES, RefChange("audit"))


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
        claim: IdempotencyClaim | None = None,
    ) -> PutOutcome:
        if self.rivals:
            self.rivals.pop(0)()
        if self.lose_request:
            return PutOutcome.UNKNOWN
        return super().check_and_put(changes, author, claim)


def contested(catalog: Catalog) -> tuple[Catalog, RivalPointers]:
    pointers = RivalPointers(catalog.pointers)
    return replace(catalog, pointers=pointers), pointers


def test_expectation_is_checked_again_after_a_lost_race(catalog: Catalog, warehouse: Warehouse) -> None:
    table = append_to(catalog, warehouse, append_to(catalog, warehouse, table_in(catalog, warehouse)))
    first, second = (snapshot.snapshot_id for snapshot in table.metadata.snapshots)
    rivalled, pointers = contested(catalog)
    pointers.rivals.append(lambda: append_to(catalog, warehouse, table))

    with pytest.raises(RequirementFailed, match=f"expected id {second}"):
        change_ref(
            rivalled, CALL, warehouse, DEPARTURES, RefChange("main", ToSnapshot(first), expected=second)
        )


def test_lost_race_loses_neither_change(catalog: Catalog, warehouse: Warehouse) -> None:
    table = append_to(catalog, warehouse, table_in(catalog, warehouse))
    rivalled, pointers = contested(catalog)
    wish = [SetProperties(updates={"owner": "ada"})]
    pointers.rivals.append(lambda: commit_table(catalog, CALL, warehouse, DEPARTURES, [], wish))

    receipt = change_ref(rivalled, CALL, warehouse, DEPARTURES, RefChange("audit"))

    metadata = now(catalog, warehouse)
    assert metadata.properties["owner"] == "ada"
    assert metadata.snapshot_refs["audit"].snapshot_id == table.metadata.current_snapshot_id
    assert receipt.location_before != table.location


@pytest.fixture
def picked(catalog: Catalog, warehouse: Warehouse, files: TableFiles) -> Snapshot:
    """A staged append of `c`, while `a` and then `b` are on main."""
    base = committed(catalog, warehouse, files.snapshot(now(catalog, warehouse), ["a"]))
    staged = summarized(
        files.snapshot(now(catalog, warehouse), ["c"], parent=base),
        **{"operation": "append", "wap.id": "nightly"},
    )
    committed(catalog, warehouse, staged, branch=None)
    committed(catalog, warehouse, files.snapshot(now(catalog, warehouse), ["b"], parent=base))
    return staged


@pytest.mark.parametrize("how", ["cherry-pick", "publish"])
def test_picked_append_brings_its_files_to_the_branch(
    catalog: Catalog, warehouse: Warehouse, picked: Snapshot, how: str
) -> None:
    pick = CherryPick(picked.snapshot_id) if how == "cherry-pick" else Publish("nightly")

    receipt = change_ref(catalog, CALL, warehouse, DEPARTURES, RefChange("main", pick))

    assert live_paths(catalog, warehouse) == ["a", "b", "c"]
    made = now(catalog, warehouse).current_snapshot
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
        change_ref(catalog, CALL, warehouse, DEPARTURES, RefChange("main", pick))


def test_pick_that_loses_a_race_is_made_anew_and_leaves_no_files_behind(
    catalog: Catalog, warehouse: Warehouse, files: TableFiles, picked: Snapshot
) -> None:
    rivalled, pointers = contested(catalog)
    rival = files.snapshot(now(catalog, warehouse), ["d"])
    pointers.rivals.append(lambda: committed(catalog, warehouse, rival))
    before = avro_files(catalog, warehouse)

    change_ref(rivalled, CALL, warehouse, DEPARTURES, RefChange("main", CherryPick(picked.snapshot_id)))

    assert live_paths(catalog, warehouse) == ["a", "b", "c", "d"]
    # One manifest and one list are new.
    assert len(avro_files(catalog, warehouse) - before) == 2


def test_pick_that_fails_leaves_no_files_behind(
    catalog: Catalog, warehouse: Warehouse, files: TableFiles, picked: Snapshot
) -> None:
    rivalled, pointers = contested(replace(catalog, rules=Rules(commit_attempts=2)))

    def rival(name: str) -> Callable[[], object]:
        return lambda: committed(catalog, warehouse, files.snapshot(now(catalog, warehouse), [name]))

    pointers.rivals += [rival("d"), rival("e")]

    with pytest.raises(PointerMoved):
        change_ref(rivalled, CALL, warehouse, DEPARTURES, RefChange("main", CherryPick(picked.snapshot_id)))

    named = {snapshot.manifest_list for snapshot in now(catalog, warehouse).snapshots}
    lists = {file for file in avro_files(catalog, warehouse) if "/snap-" in file}
    assert lists == named
    assert live_paths(catalog, warehouse) == ["a", "b", "d", "e"]


def test_pick_of_unknown_outcome_keeps_its_files(
    catalog: Catalog, warehouse: Warehouse, picked: Snapshot
) -> None:
    rivalled, pointers = contested(catalog)
    pointers.lose_request = True
    before = avro_files(catalog, warehouse)

    with pytest.raises(CommitStateUnknown):
        change_ref(rivalled, CALL, warehouse, DEPARTURES, RefChange("main", CherryPick(picked.snapshot_id)))

    assert len(avro_files(catalog, warehouse) - before) == 2


def replacing(catalog: Catalog, warehouse: Warehouse, files: TableFiles) -> tuple[Snapshot, Snapshot]:
    """Return the base of a staged dynamic overwrite, which has `a` and `k`, and the overwrite: `a` goes, `z` comes."""
    base = committed(catalog, warehouse, files.snapshot(now(catalog, warehouse), ["a", "k"]))
    staged = files.snapshot(now(catalog, warehouse), ["z"], ["a"], parent=base)
    staged = summarized(staged, operation="overwrite", replace_partitions="true")
    return base, committed(catalog, warehouse, staged, branch=None)


def test_dynamic_overwrite_is_picked_if_its_partitions_are_as_they_were(
    catalog: Catalog, warehouse: Warehouse, files: TableFiles
) -> None:
    base, staged = replacing(catalog, warehouse, files)
    committed(catalog, warehouse, files.snapshot(now(catalog, warehouse), [], ["k"], parent=base))

    change_ref(catalog, CALL, warehouse, DEPARTURES, RefChange("main", CherryPick(staged.snapshot_id)))

    assert live_paths(catalog, warehouse) == ["z"]
    made = now(catalog, warehouse).current_snapshot
    assert made is not None
    assert made.summary is not None
    assert made.summary["operation"] == "overwrite"
    assert (made.summary["added-data-files"], made.summary["deleted-data-files"]) == ("1", "1")


@pytest.mark.parametrize(
    ("added", "removed", "words"), [(["n"], [], "changed partition"), ([], ["a"], "Missing")]
)
def test_dynamic_overwrite_is_refused_if_its_partitions_have_changed(
    catalog: Catalog,
    warehouse: Warehouse,
    files: TableFiles,
    added: list[str],
    removed: list[str],
    words: str,
) -> None:
    base, staged = replacing(catalog, warehouse, files)
    committed(catalog, warehouse, files.snapshot(now(catalog, warehouse), added, removed, parent=base))
    before = avro_files(catalog, warehouse)

    with pytest.raises(InvalidRefMove, match=words):
        change_ref(catalog, CALL, warehouse, DEPARTURES, RefChange("main", CherryPick(staged.snapshot_id)))

    assert avro_files(catalog, warehouse) == before


def test_rows_that_are_picked_in_v3_get_row_ids_of_their_own(
    catalog: Catalog, warehouse: Warehouse, files: TableFiles, picked: Snapshot
) -> None:
    base = now(catalog, warehouse).replace(format_version=3, next_row_id=40)

    made = PickedFiles(catalog, warehouse).reapply(base, "main", picked, PickKind.APPEND)

    assert (made.first_row_id, made.added_rows) == (40, 3)
    source = TableManifests(catalog, warehouse)
    new = [manifest for manifest in source.manifests(made) if manifest.added_snapshot_id == made.snapshot_id]
    assert [entry.file.first_row_id for entry in live_entries(source, new)] == [40]


def claimed(key: str) -> Call:
    claim = IdempotencyClaim("tester", key, "hash", now_ms=1, expires_ms=2**50)
    return replace(CALL, claim=claim)


def recorded(catalog: Catalog, key: str) -> str:
    outcome = catalog.idempotency_keys.find("tester", key, 1)
    assert outcome is not None
    return outcome.result


def test_receipt_can_be_written_again_whatever_happened_since(catalog: Catalog, warehouse: Warehouse) -> None:
    table: LoadedTable = append_to(catalog, warehouse, table_in(catalog, warehouse))
    made = change_ref(catalog, claimed("a"), warehouse, DEPARTURES, RefChange("audit"))
    idle = change_ref(catalog, claimed("b"), warehouse, DEPARTURES, RefChange("audit"))
    append_to(catalog, warehouse, load_table(catalog, warehouse, DEPARTURES))
    remove_ref(catalog, CALL, warehouse, DEPARTURES, "audit", UNCHECKED)

    assert load_receipt(catalog, warehouse, DEPARTURES, "audit", recorded(catalog, "a")) == made
    assert load_receipt(catalog, warehouse, DEPARTURES, "audit", recorded(catalog, "b")) == idle
    assert table.location is not None
    catalog.files_of(warehouse).delete(table.location)
    again = load_receipt(catalog, warehouse, DEPARTURES, "audit", recorded(catalog, "a"))
    assert (again.snapshot_after, again.sequence) == (made.snapshot_after, made.sequence)
