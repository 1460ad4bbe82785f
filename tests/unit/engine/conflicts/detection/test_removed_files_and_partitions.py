from __future__ import annotations

from dataclasses import replace

from app.engine.conflicts.operations import (
    Delete,
    Overwrite,
    RemovedFile,
    ReplacePartitions,
    RowDelta,
)
from app.engine.conflicts.report import ConflictKind
from app.engine.model.ids import SpecId
from tests.builders.branches import (
    UNPARTITIONED,
    Branch,
    data_file,
    position_deletes,
)
from tests.unit.engine.conflicts.detection.questions import (
    HIGH,
    KIND_A,
    OLD,
    OTHER,
    A,
    ask,
    kinds,
    overwrite,
    removing,
)


def test_replaced_file_is_gone(branch: Branch) -> None:
    base = branch.head
    winner = branch.commit("overwrite", [data_file("new", "b")], [OLD])

    report = ask(branch, base, overwrite(None, new_data=False))

    (conflict,) = report.conflicts
    assert (conflict.kind, conflict.snapshot_id) == (ConflictKind.MISSING_DATA_FILE, winner)
    assert conflict.message == "Missing required files to delete: old"


def test_file_that_came_back_is_not_missing(branch: Branch) -> None:
    base = branch.head
    branch.commit("delete", removed=[OLD])
    branch.commit("append", [OLD])

    assert kinds(ask(branch, base, Delete(removed_files=removing(OLD), checks_existence=True))) == []


def test_delete_that_does_not_mind_missing_files(branch: Branch) -> None:
    base = branch.head
    branch.commit("delete", removed=[OLD])

    report = ask(branch, base, Delete(removed_files=removing(OLD)))

    assert kinds(report) == []
    assert report.safe_to_reapply


def test_missing_file_of_which_only_the_path_is_told(branch: Branch) -> None:
    base = branch.head
    branch.commit("delete", removed=[OLD])
    operation = Delete(
        removed_files=(RemovedFile(OLD.file_path), RemovedFile(OTHER.file_path)), checks_existence=True
    )

    assert [conflict.file_path for conflict in ask(branch, base, operation).conflicts] == ["old"]


def test_file_that_a_filter_matches_partly(branch: Branch) -> None:
    base = branch.head
    branch.commit("append", [data_file("half", "a", (40, 60)), data_file("whole", "a", (60, 70))])

    for operation in (Delete(HIGH), Overwrite(row_filter=HIGH)):
        (conflict,) = ask(branch, base, operation).conflicts
        assert (conflict.kind, conflict.file_path) == (ConflictKind.PARTIAL_MATCH, "half")


def test_partly_matching_file_that_went_again_or_is_removed_by_name(branch: Branch) -> None:
    base = branch.head
    half, named = data_file("half", "a", (40, 60)), data_file("named", "a", (40, 60))
    branch.commit("append", [half, named])
    branch.commit("delete", removed=[half])

    assert kinds(ask(branch, base, Delete(HIGH, removing(named)))) == []


def test_replaced_partition_got_a_file(branch: Branch) -> None:
    base = branch.head
    branch.commit("append", [data_file("new", "a"), data_file("elsewhere", "b")])
    operation = ReplacePartitions((A,), checks_new_data=True)

    (conflict,) = ask(branch, base, operation).conflicts

    assert (conflict.kind, conflict.file_path) == (ConflictKind.ADDED_DATA, "new")
    assert "partitions [kind=a]" in conflict.message


def test_replaced_partition_lost_files_and_rows(branch: Branch) -> None:
    base = branch.head
    branch.commit("overwrite", [position_deletes("deletes", "a"), position_deletes("others", "b")])
    branch.commit("delete", removed=[OLD, OTHER])
    operation = ReplacePartitions((A,), checks_new_deletes=True)

    found = ask(branch, base, operation).conflicts

    assert [(item.kind.value, item.file_path) for item in found] == [
        ("removed-data-files", "old"),
        ("new-delete-files", "deletes"),
    ]


def test_partition_that_was_to_be_filled_has_a_file(branch: Branch) -> None:
    base = branch.head
    branch.commit("append", [data_file("c", "c")])
    operation = ReplacePartitions(((SpecId(0), ("c",)),), is_append_only=True)

    assert kinds(ask(branch, base, operation)) == ["partition-not-empty"]
    assert kinds(ask(branch, base, replace(operation, partitions=((SpecId(0), ("d",)),)))) == []


def test_unpartitioned_table_is_one_partition() -> None:
    branch = Branch(UNPARTITIONED)
    base = branch.commit("append", [replace(OLD, partition=())])
    branch.commit("append", [replace(OTHER, partition=())])
    operation = ReplacePartitions(((SpecId(0), ()),), checks_new_data=True)

    assert kinds(ask(branch, base, operation)) == ["added-data-files"]


def test_manifests_that_added_or_removed_nothing_are_passed_over(branch: Branch) -> None:
    base = branch.head
    branch.commit("overwrite", removed=[OTHER])
    branch.commit("overwrite", [data_file("new", "b")])
    delta = RowDelta(KIND_A, referenced_files=frozenset({OLD.file_path}), checks_new_data=True)

    assert kinds(ask(branch, base, delta)) == []
    assert len(branch.opened) == 2
