"""Deletes that came in for files that an operation removes."""

from __future__ import annotations

from app.engine.conflicts.detection import detect_conflicts
from app.engine.conflicts.operations import RemovedFile, RewriteFiles, RowDelta
from app.engine.expressions.expressions import Operation as Ask
from app.engine.model.ids import Location
from tests.builders.branches import Branch, data_file, equality_deletes, position_deletes, vector
from tests.builders.filters import predicate
from tests.unit.engine.conflicts.detection.questions import OLD, ask, kinds, overwrite, removing

LOW_IDS = predicate(Ask.LT, "id", 5)


def test_files_of_which_only_the_path_is_told_are_looked_up_where_that_matters() -> None:
    branch = Branch()
    other = data_file("other", "b", (10, 19))
    branch.commit("append", [OLD, other])
    base = branch.commit("overwrite", [position_deletes("earlier", "b", of="other")])
    named = RewriteFiles((RemovedFile(OLD.file_path), RemovedFile(Location("nobody's"))))
    branch.commit("overwrite", [position_deletes("p", "b", of="old")])
    branch.opened.clear()

    by_path = detect_conflicts(branch.metadata, branch, "main", base, named)
    opened_for_path = list(branch.opened)
    branch.commit("overwrite", [equality_deletes("e", "b"), position_deletes("q", "b")])
    elsewhere = detect_conflicts(branch.metadata, branch, "main", base, named)
    branch.commit("overwrite", [equality_deletes("f", "a", (5, 5))])
    here = detect_conflicts(branch.metadata, branch, "main", base, RewriteFiles(named.removed_files[:1]))

    first_manifest = branch._lists[base][-1].manifest_path
    assert [item.file_path for item in by_path.conflicts] == ["p"]
    assert first_manifest not in opened_for_path
    assert [item.file_path for item in elsewhere.conflicts] == ["p"]
    assert [item.file_path for item in here.conflicts] == ["f", "p"]


def test_files_of_which_only_the_path_is_told_are_found_though_their_base_has_expired() -> None:
    branch = Branch()
    base = branch.commit("append", [OLD])
    branch.commit("overwrite", [equality_deletes("e", "a", (5, 5))])
    branch.metadata = branch.metadata.replace(snapshots=branch.metadata.snapshots[1:])

    report = ask(branch, base, RewriteFiles((RemovedFile(OLD.file_path),)))

    assert [item.file_path for item in report.conflicts] == ["e"]


def test_vectors_that_the_reference_cannot_index() -> None:
    branch = Branch(format_version=3)
    other = data_file("other", "b")
    base = branch.commit("append", [OLD, other])
    first = vector("v1.puffin", "other", "b")
    branch.commit("delete", [first])
    branch.commit("delete", [vector("v2.puffin", "other", "b")], [first])

    report = detect_conflicts(branch.metadata, branch, "main", base, RewriteFiles((RemovedFile.of(OLD),)))

    assert [item.message for item in report.conflicts] == ["Cannot index multiple deletion vectors for other"]


def test_rows_that_were_not_read_stay_deleted_in_files_that_are_written_anew() -> None:
    """A file that is replaced has other rows, too: copied, a row that was deleted since would be there again."""
    branch = Branch()
    base = branch.commit("append", [OLD])
    branch.commit("overwrite", [equality_deletes("deletes", "a", (7, 7))])

    copied = ask(branch, base, overwrite(LOW_IDS, OLD, new_data=False))
    merged = ask(branch, base, RowDelta(LOW_IDS, removed_files=removing(OLD), checks_new_deletes=True))

    assert kinds(copied) == kinds(merged) == ["new-deletes-for-removed-file"]
    assert not copied.safe_to_reapply


def test_deletes_that_touch_no_row_of_a_replaced_file_are_no_conflict() -> None:
    branch = Branch()
    base = branch.commit("append", [OLD])
    branch.commit("overwrite", [equality_deletes("deletes", "a", (50, 60)), equality_deletes("of b", "b")])

    assert kinds(ask(branch, base, overwrite(LOW_IDS, OLD, new_data=False))) == []
