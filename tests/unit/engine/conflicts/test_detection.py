from __future__ import annotations

from dataclasses import replace

import pytest

from app.engine.conflicts.detection import find_conflicts
from app.engine.conflicts.operations import (
    Append,
    CherryPick,
    Delete,
    Operation,
    Overwrite,
    PropertyChange,
    RemovedFile,
    ReplacePartitions,
    RewriteFiles,
    RewriteManifests,
    RowDelta,
    SchemaChange,
    SpecChange,
)
from app.engine.conflicts.report import ConflictKind, ConflictReport
from app.engine.expressions.expressions import Expression, predicate
from app.engine.expressions.expressions import Operation as Ask
from app.engine.model.ids import Location, SchemaId, SnapshotId, SpecId
from app.engine.model.manifests import DataFile
from app.engine.model.refs import SnapshotRef
from app.errors import InvalidFilter, NoSuchSnapshot
from tests.builders.branches import (
    UNPARTITIONED,
    Branch,
    data_file,
    equality_deletes,
    position_deletes,
    vector,
)

OLD = data_file("old", "a", (0, 9))
OTHER = data_file("other", "b", (10, 19))
KIND_A = predicate(Ask.EQ, "kind", "a")
HIGH = predicate(Ask.GT, "id", 50)
A = (SpecId(0), ("a",))


@pytest.fixture
def branch() -> Branch:
    """Two files, of the kinds a and b."""
    made = Branch()
    made.commit("append", [OLD, OTHER])
    return made


def ask(branch: Branch, base: SnapshotId | None, operation: Operation) -> ConflictReport:
    return find_conflicts(branch.metadata, branch, "main", base, operation)


def kinds(report: ConflictReport) -> list[str]:
    return [conflict.kind.value for conflict in report.conflicts]


def removing(*files: DataFile) -> tuple[RemovedFile, ...]:
    return tuple(map(RemovedFile.of, files))


def overwrite(read: Expression | None = KIND_A, *removed: DataFile, new_data: bool = True) -> Overwrite:
    return Overwrite(
        conflict_filter=read,
        removed_files=removing(*(removed or (OLD,))),
        checks_new_data=new_data,
        checks_new_deletes=True,
    )


ALL_KINDS: list[Operation] = [
    Append(),
    Delete(KIND_A, removing(OLD), checks_existence=True),
    overwrite(),
    ReplacePartitions((A,), checks_new_data=True, checks_new_deletes=True, is_append_only=True),
    RowDelta(referenced_files=frozenset({OLD.file_path}), checks_new_data=True, checks_new_deletes=True),
    RewriteFiles(removing(OLD)),
    SchemaChange(SchemaId(0)),
    SpecChange(SpecId(0)),
    PropertyChange(),
]


@pytest.mark.parametrize("operation", ALL_KINDS, ids=lambda item: type(item).__name__)
def test_nothing_has_happened(branch: Branch, operation: Operation) -> None:
    report = ask(branch, branch.head, operation)

    assert (kinds(report), report.since, report.safe_to_reapply) == ([], (), True)
    assert report.reason == "Nothing has happened on main since."
    assert branch.opened == []


@pytest.mark.parametrize("operation", ALL_KINDS, ids=lambda item: type(item).__name__)
def test_what_happens_elsewhere_harms_nobody(branch: Branch, operation: Operation) -> None:
    if isinstance(operation, RowDelta):
        operation = replace(operation, conflict_filter=KIND_A)
    base = branch.head
    branch.commit("append", [data_file("new", "b", (0, 9))])
    branch.commit("delete", removed=[OTHER])

    report = ask(branch, base, operation)

    assert (kinds(report), report.safe_to_reapply) == ([], True)
    assert report.reason.startswith("2 snapshots have come onto main since. ")
    assert [snapshot.snapshot_id for snapshot in report.since] == [101, 102]


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


def test_only_what_concurrent_snapshots_wrote_is_opened(branch: Branch) -> None:
    for number in range(20):
        branch.commit("append", [data_file(f"before-{number}", "a")])
    base = branch.head
    for number in range(5):
        branch.commit("append", [data_file(f"since-{number}", "a")])

    ask(branch, base, overwrite())

    assert len(branch.opened) == 5
    assert len(branch.lists_read) <= 10


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


def test_empty_branch_misses_every_file() -> None:
    branch = Branch()

    report = ask(branch, None, overwrite())

    assert kinds(report) == ["missing-data-file"]
    assert report.head_snapshot_id is None


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
    assert kinds(ask(branch, base, replace(delta, conflict_filter=predicate(Ask.EQ, "kind", "b")))) == []


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


def test_row_delta_on_an_empty_branch() -> None:
    delta = RowDelta(referenced_files=frozenset({OLD.file_path}), checks_deleted_files=True)

    assert kinds(ask(Branch(), None, delta)) == []


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


def test_replaced_manifest_is_gone(branch: Branch) -> None:
    base = branch.head
    (manifest,) = branch.manifests(branch.metadata.snapshots[0])
    operation = RewriteManifests((manifest.manifest_path,))

    assert kinds(ask(branch, base, operation)) == []
    branch.commit("delete", removed=[OLD])
    assert kinds(ask(branch, base, operation)) == ["missing-manifest"]
    assert kinds(ask(Branch(), None, operation)) == ["missing-manifest"]


def test_pick_of_an_append(branch: Branch) -> None:
    base = branch.head
    staged = branch.commit("append", [data_file("staged", "a")], is_staged=True)
    branch.commit("append", [data_file("new", "a")])

    report = ask(branch, base, CherryPick(staged))

    assert (kinds(report), report.safe_to_reapply) == ([], True)


def test_pick_of_an_overwrite(branch: Branch) -> None:
    staged = branch.commit("overwrite", [data_file("staged", "a")], [OLD], is_staged=True)

    assert kinds(ask(branch, branch.head, CherryPick(staged))) == []
    branch.commit("append", [data_file("new", "b")])
    report = ask(branch, branch.head, CherryPick(staged))

    assert kinds(report) == ["cherry-pick"]
    assert "not append, dynamic overwrite, or fast-forward" in report.conflicts[0].message


def test_pick_of_replaced_partitions(branch: Branch) -> None:
    summary = {"replace-partitions": "true"}
    staged = branch.commit("overwrite", [data_file("staged", "a")], [OLD], summary=summary, is_staged=True)
    branch.commit("append", [data_file("elsewhere", "b")])

    assert kinds(ask(branch, branch.head, CherryPick(staged))) == []
    # Compaction, too, changes a partition.
    branch.commit("replace", [data_file("compacted", "a")], [OLD])
    found = ask(branch, branch.head, CherryPick(staged)).conflicts

    assert [(item.kind.value, item.file_path) for item in found] == [
        ("cherry-pick", "compacted"),
        ("missing-data-file", "old"),
    ]
    assert "Cannot cherry-pick replace partitions with changed partition" in found[0].message


def test_pick_of_what_is_not_there(branch: Branch) -> None:
    with pytest.raises(NoSuchSnapshot):
        ask(branch, branch.head, CherryPick(SnapshotId(5)))


def test_columns_have_changed(branch: Branch) -> None:
    base = branch.head
    other = branch.metadata.current_schema.with_id(1)
    branch.metadata = branch.metadata.replace(
        schemas=(*branch.metadata.schemas, other), current_schema_id=SchemaId(1), last_column_id=3
    )

    by_base = ask(branch, base, SchemaChange())
    assert kinds(by_base) == ["schema-changed"]
    assert by_base.conflicts[0].message == "current schema changed: expected id 0 != 1"
    assert kinds(ask(branch, base, SchemaChange(SchemaId(1), 2))) == ["schema-changed"]
    assert kinds(ask(branch, None, SchemaChange())) == []
    assert kinds(ask(branch, SnapshotId(5), SchemaChange())) == []
    assert kinds(ask(branch, base, SchemaChange(SchemaId(1), 3))) == []


def test_partitioning_has_changed(branch: Branch) -> None:
    assert kinds(ask(branch, branch.head, SpecChange(SpecId(1), 1000))) == ["partition-spec-changed"]
    assert kinds(ask(branch, branch.head, SpecChange(SpecId(0), 1001))) == ["partition-spec-changed"]
    assert kinds(ask(branch, branch.head, SpecChange(SpecId(0), 1000))) == []


def test_filter_that_does_not_fit(branch: Branch) -> None:
    with pytest.raises(InvalidFilter):
        ask(branch, branch.head, overwrite(predicate(Ask.EQ, "colour", "red")))
    with pytest.raises(InvalidFilter):
        ask(branch, branch.head, Delete(predicate(Ask.EQ, "KIND", "a")))
    assert kinds(ask(branch, branch.head, Delete(predicate(Ask.EQ, "KIND", "a"), case_sensitive=False))) == []


def test_enough_conflicts_are_enough(branch: Branch) -> None:
    base = branch.head
    branch.commit("append", [data_file(f"new-{number}", "a") for number in range(10)])

    report = find_conflicts(branch.metadata, branch, "main", base, overwrite(), limit=3)

    assert len(report.conflicts) == 3
    assert not report.is_complete
    assert ask(branch, base, overwrite()).is_complete


def test_another_branch_than_main(branch: Branch) -> None:
    base = branch.head
    assert base is not None
    audit = {"audit": SnapshotRef(snapshot_id=base, type="branch")}
    branch.metadata = branch.metadata.replace(refs={**branch.metadata.snapshot_refs, **audit})
    branch.commit("append", [data_file("new", "a")])

    assert not find_conflicts(branch.metadata, branch, "audit", base, overwrite()).would_conflict
    assert ask(branch, base, overwrite()).would_conflict
