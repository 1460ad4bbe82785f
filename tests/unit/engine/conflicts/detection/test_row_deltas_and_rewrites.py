from __future__ import annotations

from dataclasses import replace

import pytest

from app.engine.conflicts.operations import (
    RewriteFiles,
    RowDelta,
)
from app.engine.conflicts.report import ConflictKind
from app.engine.expressions.expressions import Operation as Ask
from app.engine.model.ids import SnapshotId
from tests.builders.branches import (
    Branch,
    data_file,
    equality_deletes,
    position_deletes,
    vector,
)
from tests.builders.filters import predicate
from tests.unit.engine.conflicts.detection.questions import (
    HIGH,
    KIND_A,
    OLD,
    OTHER,
    ask,
    kinds,
    overwrite,
    removing,
)


@pytest.mark.parametrize(("operation", "minds_delete"), [("overwrite", True), ("delete", False)])
def test_referenced_file_is_gone(branch: Branch, operation: str, minds_delete: bool) -> None:
    base = branch.head
    branch.commit(operation, removed=[OLD])
    delta = RowDelta(referenced_files=frozenset({OLD.file_path}))

    assert kinds(ask(branch, base, delta)) == (["missing-data-file"] if minds_delete else [])
    assert kinds(ask(branch, base, replace(delta, checks_deleted_files=True))) == ["missing-data-file"]
    assert kinds(ask(branch, base, replace(delta, conflict_filter=HIGH))) == []
    assert kinds(ask(branch, base, RowDelta(referenced_files=frozenset({OTHER.file_path})))) == []


def test_row_delta_minds_new_rows_and_new_deletes(branch: Branch) -> None:
    base = branch.head
    branch.commit("append", [data_file("new", "a")])
    branch.commit("overwrite", [position_deletes("deletes", "a", of="old")])
    delta = RowDelta(KIND_A, removed_files=removing(OLD), checks_new_data=True, checks_new_deletes=True)

    assert kinds(ask(branch, base, delta)) == [
        "added-data-files",
        "new-deletes-for-removed-file",
        "new-delete-files",
    ]
    # A file that it replaces has all its rows copied, whichever it has read.
    elsewhere = replace(delta, conflict_filter=predicate(Ask.EQ, "kind", "b"))
    assert kinds(ask(branch, base, elsewhere)) == ["new-deletes-for-removed-file"]
    assert kinds(ask(branch, base, replace(elsewhere, removed_files=()))) == []


def test_row_delta_that_nobody_knows_the_filter_of(branch: Branch) -> None:
    base = branch.head
    branch.commit("append", [data_file("new", "a")])
    branch.commit("overwrite", [position_deletes("deletes", "b", of="other")])
    delta = RowDelta(None, removed_files=removing(OLD), checks_new_data=True, checks_new_deletes=True)

    assert kinds(ask(branch, base, delta)) == []
    assert kinds(ask(branch, base, replace(delta, removed_files=removing(OTHER)))) == [
        "new-deletes-for-removed-file"
    ]


def test_row_delta_removes_what_is_gone(branch: Branch) -> None:
    deletes = position_deletes("deletes", "a", of="old")
    base = branch.commit("overwrite", [deletes])
    branch.commit("overwrite", [data_file("new", "a")], [OLD, deletes])
    delta = RowDelta(removed_files=removing(OLD), removed_delete_files=removing(deletes))

    assert kinds(ask(branch, base, delta)) == []
    assert kinds(ask(branch, base, replace(delta, checks_deleted_files=True))) == [
        "missing-data-file",
        "missing-delete-file",
    ]


def test_row_delta_removes_what_it_refers_to(branch: Branch) -> None:
    delta = RowDelta(
        referenced_files=frozenset({OLD.file_path}), removed_files=(*removing(OLD), *removing(OTHER))
    )

    (conflict,) = ask(branch, branch.head, delta).conflicts

    assert (conflict.kind, conflict.file_path) == (ConflictKind.REFERENCED_AND_REMOVED, "old")


def test_row_delta_from_no_ancestor(branch: Branch) -> None:
    base = branch.commit("append", [data_file("undone", "a")])
    branch.move(SnapshotId(100))
    blind, seeing = RowDelta(), RowDelta(checks_new_data=True)

    (conflict,) = ask(branch, base, blind).conflicts
    assert conflict.message == f"Snapshot {base} is not an ancestor of 100"
    assert kinds(ask(branch, base, seeing)) == ["history", "history"]


def test_two_vectors_for_one_file() -> None:
    branch = Branch(format_version=3)
    base = branch.commit("append", [OLD, OTHER])
    winner = branch.commit("delete", [vector("v.puffin", "old", "a")])
    delta = RowDelta(vector_targets=frozenset({OLD.file_path}))

    (conflict,) = ask(branch, base, delta).conflicts

    assert (conflict.kind, conflict.snapshot_id) == (ConflictKind.ADDED_VECTOR, winner)
    assert kinds(ask(branch, base, replace(delta, vector_targets=frozenset({OTHER.file_path})))) == []
    assert kinds(ask(branch, base, replace(delta, conflict_filter=predicate(Ask.EQ, "kind", "b")))) == []


def test_position_deletes_are_no_vectors(branch: Branch) -> None:
    base = branch.head
    branch.commit("overwrite", [position_deletes("deletes", "a", of="old"), equality_deletes("eq", "a")])

    assert kinds(ask(branch, base, RowDelta(vector_targets=frozenset({OLD.file_path})))) == []


def test_rewritten_file_got_deletes(branch: Branch) -> None:
    base = branch.head
    branch.commit("overwrite", [equality_deletes("eq", "a")])
    branch.commit("overwrite", [position_deletes("positions", "b", of="other")])

    of_old, of_other = RewriteFiles(removing(OLD)), RewriteFiles(removing(OTHER))

    assert kinds(ask(branch, base, of_old)) == ["new-deletes-for-removed-file"]
    assert kinds(ask(branch, base, replace(of_old, data_sequence_number=1))) == []
    (conflict,) = ask(branch, base, replace(of_other, data_sequence_number=1)).conflicts
    assert conflict.message == "Cannot commit, found new position delete for replaced data file: other"


def test_rewritten_files_are_gone(branch: Branch) -> None:
    deletes = position_deletes("deletes", "a", of="old")
    base = branch.commit("overwrite", [deletes])
    branch.commit("replace", [data_file("compacted", "a")], [OLD, deletes])

    assert kinds(ask(branch, base, RewriteFiles(removing(OLD), removing(deletes)))) == [
        "missing-data-file",
        "missing-delete-file",
    ]


def test_vectors_that_share_a_file_are_told_apart() -> None:
    branch = Branch(format_version=3)
    first, second = vector("v.puffin", "old", "a", 4), vector("v.puffin", "other", "a", 50)
    branch.commit("append", [OLD, OTHER])
    base = branch.commit("delete", [first, second])
    branch.commit("replace", removed=[first])

    assert kinds(ask(branch, base, RewriteFiles((), removing(first)))) == ["missing-delete-file"]
    assert kinds(ask(branch, base, RewriteFiles((), removing(second)))) == []


def test_first_version_has_no_delete_files() -> None:
    branch = Branch(format_version=1)
    base = branch.commit("append", [OLD])
    branch.commit("append", [OTHER])

    assert kinds(ask(branch, base, RewriteFiles(removing(OLD)))) == []
    assert kinds(ask(branch, base, overwrite())) == []
