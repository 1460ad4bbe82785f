"""Laws of conflict detection, on random histories of an in-memory branch."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from app.engine.conflicts.detection import detect_conflicts
from app.engine.conflicts.operations import (
    Delete,
    Operation,
    Overwrite,
    RemovedFile,
    ReplacePartitions,
    RewriteFiles,
    RowDelta,
)
from app.engine.expressions.expressions import ALWAYS_TRUE, Expression
from app.engine.expressions.expressions import Operation as Ask
from app.engine.model.files.manifests import DataFile, ManifestContent
from app.engine.model.ids import SnapshotId, SpecId
from tests.builders.branches import Branch, data_file, equality_deletes, position_deletes
from tests.builders.filters import predicate

KINDS = ("a", "b")


@st.composite
def branches(draw: st.DrawFn) -> Branch:
    """Return a branch of up to seven commits of all kinds."""
    branch = Branch()
    for number in range(draw(st.integers(2, 7))):
        live = live_files(branch)
        what = draw(st.sampled_from(["append", "append", "overwrite", "delete", "replace", "deletes"]))
        kind, low = draw(st.sampled_from(KINDS)), draw(st.integers(0, 3)) * 10
        new = data_file(f"data-{number}", kind, (low, low + 9))
        gone = [draw(st.sampled_from(live))] if live else []
        match what:
            case "append":
                branch.commit("append", [new])
            case "delete":
                branch.commit("delete", removed=gone)
            case "deletes":
                of = gone[0] if gone else new
                made = draw(
                    st.sampled_from(
                        [
                            position_deletes(f"deletes-{number}", of.partition[0], of.file_path),
                            equality_deletes(f"deletes-{number}", kind, (low, low)),
                        ]
                    )
                )
                branch.commit("overwrite", [made])
            case _:
                branch.commit(what, [new], gone)
    return branch


def live_files(branch: Branch) -> list[DataFile]:
    if branch.head is None:
        return []
    head = branch.metadata.snapshots_by_id[branch.head]
    return [
        entry.file
        for manifest in branch.manifests(head)
        if manifest.content is ManifestContent.DATA
        for entry in branch.entries(manifest)
        if entry.is_live
    ]


def filters() -> st.SearchStrategy[Expression]:
    by_kind = st.sampled_from(KINDS).map(lambda kind: predicate(Ask.EQ, "kind", kind))
    by_id = st.integers(0, 40).map(lambda number: predicate(Ask.LT, "id", number))
    return st.one_of(st.just(ALWAYS_TRUE), by_kind, by_id)


@st.composite
def operations(draw: st.DrawFn, branch: Branch) -> Operation:
    """Return an operation on files that some snapshot of the branch has had."""
    every = [
        entry.file
        for snapshot in branch.metadata.snapshots
        for manifest in branch.manifests(snapshot)
        if manifest.content is ManifestContent.DATA
        for entry in branch.entries(manifest)
    ]
    some = draw(st.lists(st.sampled_from(every), max_size=2)) if every else []
    removed = tuple(map(RemovedFile.of, some))
    new_data, new_deletes = draw(st.booleans()), draw(st.booleans())
    made: list[Operation] = [
        Delete(removed_files=removed, checks_existence=new_data),
        Overwrite(
            conflict_filter=draw(filters()),
            removed_files=removed,
            checks_new_data=new_data,
            checks_new_deletes=new_deletes,
        ),
        ReplacePartitions(((SpecId(0), (draw(st.sampled_from(KINDS)),)),), new_data, new_deletes),
        RowDelta(
            draw(filters()),
            referenced_files=frozenset(file.file_path for file in some),
            checks_new_data=new_data,
            checks_new_deletes=new_deletes,
        ),
        RewriteFiles(removed),
    ]
    return draw(st.sampled_from(made))


def bases(branch: Branch) -> st.SearchStrategy[SnapshotId | None]:
    return st.sampled_from([None, *(snapshot.snapshot_id for snapshot in branch.metadata.snapshots)])


@given(data=st.data())
def test_conflicts_are_with_what_came_after_the_base(data: st.DataObject) -> None:
    branch = data.draw(branches())
    base = data.draw(bases(branch))
    report = detect_conflicts(branch.metadata, branch, "main", base, data.draw(operations(branch)))

    since = {snapshot.snapshot_id for snapshot in report.since}
    assert {item.snapshot_id for item in report.conflicts} <= since
    assert base not in since


@given(data=st.data())
def test_an_earlier_base_never_has_fewer_conflicts_with_the_same_files(data: st.DataObject) -> None:
    """What collides with a part of what happened collides with all of it, unless a removed file came back."""
    branch = data.draw(branches())
    ids = [None, *(snapshot.snapshot_id for snapshot in branch.metadata.snapshots)]
    late = data.draw(st.integers(1, len(ids) - 1))
    early = data.draw(st.integers(0, late))
    operation = data.draw(operations(branch))

    after_early = detect_conflicts(branch.metadata, branch, "main", ids[early], operation)
    after_late = detect_conflicts(branch.metadata, branch, "main", ids[late], operation)

    assert {item.message for item in after_late.conflicts} <= {item.message for item in after_early.conflicts}


@given(data=st.data())
def test_what_conflicts_in_part_conflicts_as_a_whole(data: st.DataObject) -> None:
    """Serializable finds all that snapshot isolation does, and no filter finds all that any filter does."""
    branch = data.draw(branches())
    base = data.draw(bases(branch))
    read = data.draw(filters())
    weak = RowDelta(read, checks_new_deletes=True)

    def messages(operation: RowDelta) -> set[tuple[SnapshotId | None, str | None]]:
        report = detect_conflicts(branch.metadata, branch, "main", base, operation)
        return {(item.snapshot_id, item.file_path) for item in report.conflicts}

    strong = replace(weak, checks_new_data=True)
    assert messages(weak) <= messages(strong)
    assert messages(strong) <= messages(replace(strong, conflict_filter=ALWAYS_TRUE))


@given(data=st.data())
def test_only_manifests_of_concurrent_snapshots_are_opened(data: st.DataObject) -> None:
    branch = data.draw(branches())
    base = data.draw(bases(branch))
    operation = data.draw(operations(branch))
    branch.opened.clear()

    report = detect_conflicts(branch.metadata, branch, "main", base, operation)

    own = {
        manifest.manifest_path
        for snapshot in report.since
        for manifest in branch.manifests(snapshot)
        if manifest.added_snapshot_id == snapshot.snapshot_id
    }
    assert set(branch.opened) <= own
    assert len(branch.opened) == len(set(branch.opened))
