from __future__ import annotations

from app.engine.model.ancestry import (
    ancestors,
    branches_by_snapshot,
    is_ancestor,
    refs_by_snapshot,
)
from app.engine.model.ids import SnapshotId
from tests.builders.histories import branch, history, line, snapshot, tag
from tests.unit.engine.effort import calls_in


def number(value: int) -> SnapshotId:
    return SnapshotId(value)


# 1 ─ 2 ─ 3 (main)
#      └─ 4 (audit)
FORKED = history(
    [*line(3), snapshot(4, 2)], {"main": branch(3), "audit": branch(4), "v1": tag(1), "v2": tag(1)}
)


def test_ancestors_begin_with_the_snapshot_itself() -> None:
    assert [item.snapshot_id for item in ancestors(FORKED, number(4))] == [4, 2, 1]
    assert list(ancestors(FORKED, None)) == []
    assert list(ancestors(FORKED, number(99))) == []


def test_ancestors_end_where_a_parent_is_gone_or_comes_again() -> None:
    assert [item.snapshot_id for item in ancestors(history([snapshot(5, 4)], {}), number(5))] == [5]
    circle = history([snapshot(1, 2), snapshot(2, 1)], {})
    assert [item.snapshot_id for item in ancestors(circle, number(1))] == [1, 2]


def test_a_snapshot_is_its_own_ancestor_and_its_child_is_not() -> None:
    assert is_ancestor(FORKED, number(2), number(4))
    assert is_ancestor(FORKED, number(4), number(4))
    assert not is_ancestor(FORKED, number(3), number(4))
    assert not is_ancestor(FORKED, number(3), None)


def test_snapshots_are_on_every_branch_that_descends_from_them_and_tags_are_no_branches() -> None:
    assert branches_by_snapshot(FORKED) == {
        3: ["main"],
        2: ["main", "audit"],
        1: ["main", "audit"],
        4: ["audit"],
    }
    assert refs_by_snapshot(FORKED) == {3: ["main"], 4: ["audit"], 1: ["v1", "v2"]}


def test_branches_of_snapshots_that_descend_from_themselves_are_found() -> None:
    circle = history([snapshot(1, 2), snapshot(2, 1), snapshot(3, 2)], {"a": branch(1), "b": branch(3)})

    assert branches_by_snapshot(circle) == {1: ["a", "b"], 2: ["a", "b"], 3: ["b"]}


def test_many_branches_of_a_long_history_are_not_walked_one_by_one() -> None:
    def effort(branches: int) -> int:
        table = history(line(500), {f"b{at}": branch(500 - at) for at in range(branches)})
        branches_by_snapshot(table)  # what is found once is kept
        return calls_in(lambda: branches_by_snapshot(table))

    assert effort(100) < 3 * effort(1)
