from __future__ import annotations

import math
from dataclasses import replace

import pytest

from app.engine.branches.picked_changes import check_replaced_partitions, file_changes
from app.engine.conflicts.detection import detect_conflicts
from app.engine.conflicts.operations import (
    Append,
    CherryPickOperation,
    Delete,
    Operation,
    Overwrite,
    PropertyChange,
    ReplacePartitions,
    RewriteFiles,
    RewriteManifests,
    RowDelta,
    SchemaChange,
    SpecChange,
)
from app.engine.expressions.expressions import Operation as Ask
from app.engine.model.files.manifests import DataFile
from app.engine.model.ids import SchemaId, SnapshotId, SpecId
from app.engine.model.refs import SnapshotRef
from app.errors import InvalidFilter, InvalidRefMove, NoSuchSnapshot
from tests.builders.branches import (
    Branch,
    data_file,
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

NONSENSE = predicate(Ask.EQ, "colour", "red")
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

    report = ask(branch, base, CherryPickOperation(staged))

    assert (kinds(report), report.safe_to_reapply) == ([], True)


def test_pick_of_an_overwrite(branch: Branch) -> None:
    staged = branch.commit("overwrite", [data_file("staged", "a")], [OLD], is_staged=True)

    assert kinds(ask(branch, branch.head, CherryPickOperation(staged))) == []
    branch.commit("append", [data_file("new", "b")])
    report = ask(branch, branch.head, CherryPickOperation(staged))

    assert kinds(report) == ["cherry-pick"]
    assert "not append, dynamic overwrite, or fast-forward" in report.conflicts[0].message


def test_pick_of_replaced_partitions(branch: Branch) -> None:
    summary = {"replace-partitions": "true"}
    staged = branch.commit("overwrite", [data_file("staged", "a")], [OLD], summary=summary, is_staged=True)
    branch.commit("append", [data_file("elsewhere", "b")])

    assert kinds(ask(branch, branch.head, CherryPickOperation(staged))) == []
    # Compaction, too, changes a partition.
    branch.commit("replace", [data_file("compacted", "a")], [OLD])
    found = ask(branch, branch.head, CherryPickOperation(staged)).conflicts

    assert [(item.kind.value, item.file_path) for item in found] == [
        ("cherry-pick", "compacted"),
        ("missing-data-file", "old"),
    ]
    assert "Cannot cherry-pick replace partitions with changed partition" in found[0].message


def test_pick_of_what_is_not_there(branch: Branch) -> None:
    with pytest.raises(NoSuchSnapshot):
        ask(branch, branch.head, CherryPickOperation(SnapshotId(5)))


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


@pytest.mark.parametrize(
    "operation",
    [
        Overwrite(conflict_filter=NONSENSE),
        Overwrite(row_filter=NONSENSE),
        Delete(NONSENSE),
        RowDelta(NONSENSE),
    ],
)
@pytest.mark.parametrize("ref", ["main", "not-there-yet"])
def test_filter_that_does_not_fit_is_refused_where_nothing_has_happened(
    branch: Branch, operation: Operation, ref: str
) -> None:
    """It would be refused as soon as something had."""
    base = branch.head if ref == "main" else None

    with pytest.raises(InvalidFilter):
        detect_conflicts(branch.metadata, branch, ref, base, operation)


def test_enough_conflicts_are_enough(branch: Branch) -> None:
    base = branch.head
    branch.commit("append", [data_file(f"new-{number}", "a") for number in range(10)])

    report = detect_conflicts(branch.metadata, branch, "main", base, overwrite(), limit=3)

    assert len(report.conflicts) == 3
    assert not report.is_complete
    assert ask(branch, base, overwrite()).is_complete


def test_another_branch_than_main(branch: Branch) -> None:
    base = branch.head
    assert base is not None
    audit = {"audit": SnapshotRef(snapshot_id=base, type="branch")}
    branch.metadata = branch.metadata.replace(refs={**branch.metadata.snapshot_refs, **audit})
    branch.commit("append", [data_file("new", "a")])

    assert not detect_conflicts(branch.metadata, branch, "audit", base, overwrite()).would_conflict
    assert ask(branch, base, overwrite()).would_conflict


def test_nan_is_one_partition(branch: Branch) -> None:
    """Two NaN are not equal to Python, and still they are one partition of a table."""

    def of(path: str, value: float) -> DataFile:
        return replace(data_file(path), partition=(value,))

    summary = {"replace-partitions": "true"}
    base = branch.head
    staged = branch.commit("overwrite", [of("staged", math.nan)], summary=summary, is_staged=True)
    branch.commit("append", [of("new", math.inf - math.inf)])
    picked = branch.metadata.snapshots_by_id[staged]
    replaced = ReplacePartitions(((SpecId(0), (math.nan,)),), checks_new_data=True)

    assert [item.file_path for item in ask(branch, branch.head, CherryPickOperation(staged)).conflicts] == [
        "new"
    ]
    assert [item.file_path for item in ask(branch, base, replaced).conflicts] == ["new"]
    with pytest.raises(InvalidRefMove, match="changed partition"):
        check_replaced_partitions(branch, branch.metadata, branch.head, picked, file_changes(branch, picked))
