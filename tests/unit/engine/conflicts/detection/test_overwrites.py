from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from app.engine.conflicts.detection import detect_conflicts
from app.engine.conflicts.operations import (
    Delete,
    Overwrite,
    RowDelta,
)
from app.engine.conflicts.report import ConflictKind
from app.engine.expressions.expressions import ALWAYS_FALSE
from app.engine.expressions.expressions import Operation as Ask
from app.engine.model.files.manifests import ManifestEntry, ManifestFile
from app.engine.model.snapshot import Snapshot
from tests.builders.branches import (
    Branch,
    data_file,
    equality_deletes,
    position_deletes,
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


def test_row_that_came_in_where_an_overwrite_has_read(branch: Branch) -> None:
    base = branch.head
    branch.commit("append", [data_file("elsewhere", "b")])
    winner = branch.commit("append", [data_file("new", "a")])

    report = ask(branch, base, overwrite())

    (conflict,) = report.conflicts
    assert conflict.kind is ConflictKind.ADDED_DATA
    assert (conflict.snapshot_id, conflict.file_path) == (winner, "new")
    assert (conflict.spec_id, conflict.partition) == (0, ("a",))
    assert conflict.message == (
        "Found conflicting files that can contain records matching {type: eq, term: kind, value: a}: new"
    )
    assert report.would_conflict
    assert not report.safe_to_reapply
    assert "read the table again" in report.reason


def test_snapshot_isolation_does_not_mind_new_rows(branch: Branch) -> None:
    base = branch.head
    branch.commit("append", [data_file("new", "a")])

    report = ask(branch, base, overwrite(new_data=False))

    assert kinds(report) == []
    assert report.reason.endswith("rows that came in were not looked at.")


def test_without_isolation_nothing_is_looked_at(branch: Branch) -> None:
    base = branch.head
    branch.commit("overwrite", [data_file("new", "a")], [OLD])

    report = ask(branch, base, Overwrite(removed_files=removing(OLD)))

    assert kinds(report) == []
    assert not report.safe_to_reapply
    assert branch.opened == []


@pytest.mark.parametrize("how", ["whole file", "rows of a file"])
@pytest.mark.parametrize("operation", [overwrite(), RowDelta(KIND_A, checks_new_data=True)])
def test_rows_that_were_read_and_are_gone_make_it_unsafe(
    branch: Branch, operation: Overwrite | RowDelta, how: str
) -> None:
    """Iceberg's own writers do not look for them where the files to be replaced are named."""
    read = data_file("read", "a")
    base = branch.commit("append", [read])
    if how == "whole file":
        branch.commit("delete", [], [read])
    else:
        branch.commit("delete", [position_deletes("deletes", "a", of="read")])

    report = ask(branch, base, operation)

    assert kinds(report) == []
    assert not report.safe_to_reapply
    assert "rows that it has read are gone" in report.reason
    of_b = replace(operation, conflict_filter=predicate(Ask.EQ, "kind", "b"))
    assert ask(branch, base, of_b).safe_to_reapply


def test_metrics_keep_files_apart(branch: Branch) -> None:
    base = branch.head
    branch.commit("append", [data_file("low", "a", (0, 9)), data_file("high", "a", (40, 60))])

    report = ask(branch, base, overwrite(HIGH))

    assert [conflict.file_path for conflict in report.conflicts] == ["high"]


def test_without_any_filter_every_new_row_matters(branch: Branch) -> None:
    base = branch.head
    branch.commit("append", [data_file("new", "b")])

    assert kinds(ask(branch, base, overwrite(None))) == ["added-data-files"]


def test_row_filter_is_what_was_read_if_nothing_else_is_said(branch: Branch) -> None:
    base = branch.head
    branch.commit("append", [data_file("a", "a"), data_file("b", "b")])
    operation = Overwrite(row_filter=KIND_A, checks_new_data=True)

    assert [conflict.file_path for conflict in ask(branch, base, operation).conflicts] == ["a"]


def test_rewritten_files_are_not_new_rows(branch: Branch) -> None:
    base = branch.head
    branch.commit("replace", [data_file("compacted", "a")], [OTHER])

    assert kinds(ask(branch, base, overwrite())) == []


def test_delete_file_for_a_replaced_file(branch: Branch) -> None:
    base = branch.head
    winner = branch.commit("overwrite", [position_deletes("deletes", "a", of="old")])

    report = ask(branch, base, overwrite(None, new_data=False))

    (conflict,) = report.conflicts
    assert (conflict.kind, conflict.snapshot_id) == (ConflictKind.NEW_DELETES_FOR_FILE, winner)
    assert conflict.message == "Cannot commit, found new delete for replaced data file: old"


def test_delete_files_and_removals_where_rows_are_overwritten(branch: Branch) -> None:
    base = branch.head
    branch.commit("overwrite", [equality_deletes("deletes", "a")])
    branch.commit("delete", removed=[OLD])
    operation = Overwrite(row_filter=KIND_A, checks_new_deletes=True)

    assert kinds(ask(branch, base, operation)) == ["new-delete-files", "removed-data-files"]


def test_conflict_filter_narrows_what_an_overwrite_minds(branch: Branch) -> None:
    base = branch.head
    branch.commit("delete", removed=[OLD])
    operation = Overwrite(row_filter=KIND_A, conflict_filter=HIGH, checks_new_deletes=True)

    assert kinds(ask(branch, base, operation)) == []


def test_added_file_outside_of_what_is_overwritten(branch: Branch) -> None:
    added = (data_file("in", "a"), data_file("out", "b"), data_file("high", "b", (60, 70)))
    operation = Overwrite(row_filter=KIND_A, added_files=added, checks_added_match_filter=True)

    found = ask(branch, branch.head, operation)
    by_metrics = ask(branch, branch.head, replace(operation, row_filter=HIGH, added_files=added[2:]))

    assert [(item.kind.value, item.file_path) for item in found.conflicts] == [
        ("added-file-outside-filter", "out"),
        ("added-file-outside-filter", "high"),
    ]
    assert kinds(by_metrics) == []


def test_file_that_only_came_into_another_manifest_is_not_new(branch: Branch) -> None:
    neighbour = data_file("neighbour", "a")
    base = branch.commit("append", [data_file("kept", "a"), neighbour])
    branch.commit("overwrite", [data_file("new", "b")], [neighbour])

    assert kinds(ask(branch, base, overwrite())) == []


def test_source_whose_entries_can_be_gone_through_once(branch: Branch) -> None:
    class Streamed:
        def manifests(self, snapshot: Snapshot) -> Sequence[ManifestFile]:
            return branch.manifests(snapshot)

        def entries(self, manifest: ManifestFile) -> Iterator[ManifestEntry]:
            return iter(branch.entries(manifest))

    base = branch.head
    branch.commit("overwrite", [data_file("new", "a")], [OLD])

    report = detect_conflicts(branch.metadata, Streamed(), "main", base, overwrite())

    assert kinds(report) == ["added-data-files", "missing-data-file"]


def test_file_of_a_spec_that_the_table_has_forgotten_may_matter(branch: Branch) -> None:
    base = branch.head
    branch.commit("append", [data_file("elsewhere", "b", (0, 9), spec_id=7)])
    half = Delete(predicate(Ask.EQ, "id", 5))

    assert kinds(ask(branch, base, overwrite())) == ["added-data-files"]
    assert kinds(ask(branch, base, half)) == ["partially-matching-file"]


def test_row_filter_that_nothing_matches_is_none(branch: Branch) -> None:
    base = branch.head
    branch.commit("append", [data_file("new", "b")])
    operation = Overwrite(row_filter=ALWAYS_FALSE, checks_new_data=True, checks_new_deletes=True)

    assert kinds(ask(branch, base, operation)) == ["added-data-files"]
