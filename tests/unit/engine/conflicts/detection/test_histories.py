from __future__ import annotations

from dataclasses import replace

import pytest

from app.engine.conflicts.concurrent import MAX_KEPT_BYTES
from app.engine.conflicts.detection import detect_conflicts
from app.engine.conflicts.operations import (
    Append,
    Delete,
    Operation,
    Overwrite,
    RemovedFile,
    ReplacePartitions,
    RewriteFiles,
    RowDelta,
)
from app.engine.conflicts.report import ConflictKind
from app.engine.expressions.expressions import Operation as Ask
from app.engine.model.ids import NO_SNAPSHOT, Location, SnapshotId, SpecId
from tests.builders.branches import (
    Branch,
    data_file,
    position_deletes,
)
from tests.builders.filters import predicate
from tests.unit.engine.conflicts.detection.questions import (
    KIND_A,
    OLD,
    OTHER,
    A,
    ask,
    kinds,
    overwrite,
    removing,
)


def test_only_what_concurrent_snapshots_wrote_is_opened(branch: Branch) -> None:
    for number in range(20):
        branch.commit("append", [data_file(f"before-{number}", "a")])
    base = branch.head
    for number in range(5):
        branch.commit("append", [data_file(f"since-{number}", "a")])

    ask(branch, base, overwrite())

    assert len(branch.opened) == 5
    assert len(branch.lists_read) <= 10


def test_without_history_the_head_tells_what_is_missing(branch: Branch) -> None:
    base = branch.commit("append", [data_file("undone", "a")])
    branch.move(SnapshotId(100))
    removed = (
        RemovedFile(Location("undone")),
        RemovedFile.of(data_file("undone too", "a")),
        RemovedFile(OLD.file_path),
        RemovedFile.of(OTHER),
    )

    report = ask(branch, base, Delete(removed_files=removed, checks_existence=True))

    assert [conflict.file_path for conflict in report.conflicts] == ["undone", "undone too"]


def test_branch_that_went_back_is_not_called_unchanged(branch: Branch) -> None:
    base = branch.commit("append", [data_file("undone", "a")])
    branch.move(SnapshotId(100))

    report = ask(branch, base, Append())

    assert (kinds(report), report.safe_to_reapply) == ([], True)
    assert report.reason.startswith("main does not have the base any more. An append conflicts with nothing")


def test_empty_branch_misses_every_file() -> None:
    branch = Branch()

    report = ask(branch, None, overwrite())

    assert kinds(report) == ["missing-data-file"]
    assert report.head_snapshot_id is None


def test_row_delta_on_an_empty_branch() -> None:
    delta = RowDelta(referenced_files=frozenset({OLD.file_path}), checks_deleted_files=True)

    assert kinds(ask(Branch(), None, delta)) == []


@pytest.mark.parametrize(
    "operation",
    [
        overwrite(),
        ReplacePartitions((A,), checks_new_data=True),
        RewriteFiles(removing(OLD)),
    ],
    ids=lambda item: type(item).__name__,
)
def test_base_that_the_branch_has_left(branch: Branch, operation: Operation) -> None:
    base = branch.commit("append", [data_file("undone", "a")])
    branch.move(SnapshotId(100))
    head = branch.commit("append", [data_file("instead", "a")])

    report = ask(branch, base, operation)

    assert kinds(report) == ["history"]
    assert report.conflicts[0].message == (
        f"Cannot determine history between starting snapshot {base} and the last known ancestor 100"
    )
    assert [snapshot.snapshot_id for snapshot in report.since] == [head]
    assert not report.safe_to_reapply


@pytest.mark.parametrize(
    "operation",
    [
        Overwrite(row_filter=KIND_A, checks_new_data=True),
        ReplacePartitions((A,), checks_new_data=True),
        RowDelta(KIND_A, referenced_files=frozenset({OLD.file_path})),
        RowDelta(KIND_A, checks_new_data=True),
    ],
)
def test_branch_that_has_lost_all_its_snapshots(branch: Branch, operation: Operation) -> None:
    base = branch.head
    branch.metadata = branch.metadata.replace(refs={}, current_snapshot_id=None)

    report = ask(branch, base, operation)

    assert set(kinds(report)) == {"history"}
    assert not report.safe_to_reapply


@pytest.mark.parametrize(
    "operation",
    [
        overwrite(),
        RewriteFiles(removing(OLD)),
        RowDelta(KIND_A, referenced_files=frozenset({OLD.file_path}), checks_new_data=True),
    ],
    ids=lambda item: type(item).__name__,
)
def test_nothing_has_happened_on_a_branch_that_its_first_commit_makes(
    branch: Branch, operation: Operation
) -> None:
    report = detect_conflicts(branch.metadata, branch, "audit", branch.head, operation)

    assert (kinds(report), report.since, report.head_snapshot_id) == ([], (), None)
    assert report.safe_to_reapply


def test_snapshot_that_stands_for_none_is_no_base() -> None:
    branch = Branch()
    delta = RowDelta(KIND_A, checks_new_data=True)

    assert kinds(ask(branch, NO_SNAPSHOT, delta)) == []
    branch.commit("append", [OLD])
    (first,) = branch.metadata.snapshots
    branch.metadata = branch.metadata.replace(snapshots=(first.replace(parent_snapshot_id=NO_SNAPSHOT),))
    assert kinds(ask(branch, NO_SNAPSHOT, delta)) == kinds(ask(branch, None, delta)) == ["added-data-files"]


def test_base_that_has_expired_and_is_still_known_as_parent(branch: Branch) -> None:
    base = branch.head
    branch.commit("append", [data_file("new", "b")])
    branch.metadata = branch.metadata.replace(snapshots=branch.metadata.snapshots[1:])

    assert kinds(ask(branch, base, overwrite())) == []


def test_base_that_has_expired_with_its_children(branch: Branch) -> None:
    base = branch.head
    branch.commit("append", [data_file("new", "b")])
    branch.commit("append", [data_file("newer", "b")])
    branch.metadata = branch.metadata.replace(snapshots=branch.metadata.snapshots[2:])

    assert kinds(ask(branch, base, overwrite())) == ["history"]


def test_operation_that_saw_an_empty_branch(branch: Branch) -> None:
    report = ask(branch, None, overwrite(KIND_A, data_file("unknown", "z")))

    assert kinds(report) == ["added-data-files"]
    assert report.reason.startswith("Rows came in")


def test_without_history_whatever_is_there_may_match_partly_or_fill_a_partition(branch: Branch) -> None:
    base = branch.commit("delete", removed=[OLD])
    branch.move(SnapshotId(100))
    matches_some_of_old = Delete(predicate(Ask.GT, "id", 5))
    filling = ReplacePartitions((A,), is_append_only=True)

    (partly,) = ask(branch, base, matches_some_of_old).conflicts
    (filled,) = ask(branch, base, filling).conflicts

    assert (partly.kind, partly.file_path) == (ConflictKind.PARTIAL_MATCH, "old")
    assert (filled.kind, filled.file_path) == (ConflictKind.PARTITION_NOT_EMPTY, "old")


def test_manifests_without_anything_that_matters_are_not_opened(branch: Branch) -> None:
    base = branch.commit("overwrite", [position_deletes("deletes", "a", of="old")])
    branch.commit("overwrite", [data_file("new", "b")], removed=[position_deletes("deletes", "a", of="old")])
    by_partition = ReplacePartitions(((SpecId(1), ("a",)),), checks_new_deletes=True)

    # The only manifest of delete files has nothing but a file that went, or is of another spec.
    assert kinds(ask(branch, base, RewriteFiles(removing(OLD)))) == []
    branch.commit("overwrite", [position_deletes("again", "a", of="old")])
    assert kinds(ask(branch, base, by_partition)) == []


def test_snapshot_that_only_moves_entries(branch: Branch) -> None:
    base = branch.head
    branch.commit("replace", [data_file("compacted", "b")], removed=[OTHER])
    head = branch.commit("replace")
    (manifest, *_) = branch._lists[head]
    moved = replace(
        manifest,
        added_snapshot_id=head,
        added_files_count=0,
        deleted_files_count=0,
        existing_files_count=1,
        manifest_path=Location("memory://moved.avro"),
    )
    branch._lists[head] = (moved, *branch._lists[head])

    assert kinds(ask(branch, base, Delete(removed_files=removing(OLD), checks_existence=True))) == []
    assert moved.manifest_path not in branch.opened


def test_manifests_too_large_to_be_kept_are_opened_by_each_check(branch: Branch) -> None:
    base = branch.head
    made = branch.commit("overwrite", [data_file("new", "a")], [OLD])
    (own, *others) = branch._lists[made]
    branch._lists[made] = (replace(own, manifest_length=MAX_KEPT_BYTES + 1), *others)

    assert kinds(ask(branch, base, overwrite())) == ["added-data-files", "missing-data-file"]
    assert branch.opened == [own.manifest_path] * 2


@pytest.mark.parametrize("changes", ["added", "removed", "deletes"])
def test_snapshot_without_an_operation_may_be_any(branch: Branch, changes: str) -> None:
    base = branch.head
    added = {"added": [data_file("new", "a")], "deletes": [position_deletes("deletes", "a", "old")]}
    branch.commit("append", added.get(changes, ()), [OLD] if changes == "removed" else ())
    last = branch.metadata.snapshots[-1]
    branch.metadata = branch.metadata.replace(
        snapshots=(*branch.metadata.snapshots[:-1], last.replace(summary=None))
    )

    report = ask(branch, base, overwrite())

    expected = {
        "added": "added-data-files",
        "removed": "missing-data-file",
        "deletes": "new-deletes-for-removed-file",
    }
    assert expected[changes] in kinds(report)
