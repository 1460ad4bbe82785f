from __future__ import annotations

import tracemalloc
from random import Random

import pytest

from app.engine.model.ancestry import (
    ancestors,
    branch_finder,
    is_ancestor,
    refs_by_snapshot,
)
from app.engine.model.ids import SnapshotId
from app.engine.model.table_metadata import TableMetadata
from tests.builders.histories import branch, history, line, snapshot, tag
from tests.unit.engine.effort import calls_in


def number(value: int) -> SnapshotId:
    return SnapshotId(value)


def branches_in(table: TableMetadata) -> dict[int, list[str]]:
    branches_of = branch_finder(table)
    return {snapshot_id: branches_of(snapshot_id) for snapshot_id in table.snapshots_by_id}


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
    assert branches_in(FORKED) == {
        3: ["main"],
        2: ["main", "audit"],
        1: ["main", "audit"],
        4: ["audit"],
    }
    assert refs_by_snapshot(FORKED) == {3: ["main"], 4: ["audit"], 1: ["v1", "v2"]}


def test_branches_of_snapshots_that_descend_from_themselves_are_found() -> None:
    circle = history([snapshot(1, 2), snapshot(2, 1), snapshot(3, 2)], {"a": branch(1), "b": branch(3)})

    assert branches_in(circle) == {1: ["a", "b"], 2: ["a", "b"], 3: ["b"]}


@pytest.mark.parametrize("seed", range(50))
def test_branches_are_those_that_a_walk_from_their_heads_finds(seed: int) -> None:
    chance = Random(seed)
    numbers = range(1, 9)
    table = history(
        [snapshot(at, chance.choice([None, 99, *numbers])) for at in numbers],
        {name: chance.choice([branch, tag])(chance.choice(numbers)) for name in "febcda"},
    )
    walked: dict[int, list[str]] = {at: [] for at in numbers}
    for name, ref in table.snapshot_refs.items():
        for found in ancestors(table, ref.snapshot_id if ref.is_branch else None):
            walked[found.snapshot_id].append(name)

    assert branches_in(table) == walked


def test_names_of_many_branches_take_no_memory_for_each_snapshot() -> None:
    count = 1_000
    table = history(line(count), {f"b{at}": branch(at) for at in range(1, count + 1)})
    tracemalloc.start()
    branches_of = branch_finder(table)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert len(branches_of(number(1))) == count
    assert most < 1_000 * count


def test_many_branches_of_a_long_history_are_not_walked_one_by_one() -> None:
    def effort(branches: int) -> int:
        table = history(line(500), {f"b{at}": branch(500 - at) for at in range(branches)})
        branch_finder(table)  # what is found once is kept
        return calls_in(lambda: branch_finder(table))

    assert effort(100) < 3 * effort(1)
