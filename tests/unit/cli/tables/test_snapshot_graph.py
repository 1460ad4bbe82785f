from __future__ import annotations

from app.cli.tables.snapshot_graph import graph_lines


def snapshot(snapshot_id: int, parent: int | None, *branches: str) -> dict[str, object]:
    made: dict[str, object] = {"snapshot-id": snapshot_id, "branches": list(branches)}
    return made if parent is None else {**made, "parent-snapshot-id": parent}


def drawn(*snapshots: dict[str, object]) -> list[str]:
    return [
        f"{line.lanes} {line.snapshot['snapshot-id']}" if line.snapshot else line.lanes
        for line in graph_lines(snapshots)
    ]


def test_one_branch_is_one_lane_down_to_the_root() -> None:
    assert drawn(snapshot(3, 2, "main"), snapshot(2, 1, "main"), snapshot(1, None, "main")) == [
        "● 3",
        "● 2",
        "○ 1",
    ]


def test_branches_join_where_they_began_and_main_is_on_the_left() -> None:
    assert drawn(
        snapshot(5, 2, "audit"),
        snapshot(4, 3, "main"),
        snapshot(3, 2, "main"),
        snapshot(2, 1, "main", "audit"),
        snapshot(1, None, "main", "audit"),
    ) == ["  ● 5", "● │ 4", "● │ 3", "├─╯", "● 2", "○ 1"]


def test_several_branches_of_one_snapshot_join_together_and_lanes_between_go_on() -> None:
    assert drawn(
        snapshot(9, 1, "c"),
        snapshot(8, 2, "b"),
        snapshot(7, 1, "a"),
        snapshot(6, 1, "main"),
        snapshot(2, None, "b"),
        snapshot(1, None, "main", "a", "c"),
    ) == ["  ● 9", "  │ ● 8", "  │ │ ● 7", "● │ │ │ 6", "│ │ ○ │ 2", "├─┴───╯", "○ 1"]


def test_lane_that_is_crossed_is_drawn_as_crossed() -> None:
    assert (
        drawn(
            snapshot(9, 2, "b"),
            snapshot(8, 1, "a"),
            snapshot(6, 1, "main"),
            snapshot(1, None),
            snapshot(2, None),
        )[3]
        == "├─┼─╯"
    )


def test_snapshot_whose_parent_is_gone_ends_its_lane_like_a_root() -> None:
    assert drawn(snapshot(3, 2, "main"), snapshot(1, None)) == ["○ 3", "  ○ 1"]


def test_table_without_snapshots_has_no_picture() -> None:
    assert graph_lines([]) == []
