from __future__ import annotations

from app.engine.change.updates import (
    AddSnapshot,
    RemoveSnapshotRef,
    RemoveSnapshots,
    SetSnapshotRef,
    Update,
)
from app.engine.guard.arrivals import Arrival, arrivals
from app.engine.model.ids import SnapshotId
from app.engine.model.settings.guard_settings import FindingKind
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from tests.builders.histories import branch, history, line, snapshot, tag
from tests.unit.engine.effort import calls_in


def add(made: Snapshot) -> Update:
    return AddSnapshot(snapshot=made)


def point(number: int, name: str = "main", kind: str = "branch") -> Update:
    return SetSnapshotRef(ref_name=name, snapshot_id=SnapshotId(number), type=kind)  # type: ignore[arg-type]  # a literal


def after(base: TableMetadata | None, updates: list[Update]) -> TableMetadata:
    """Return metadata with the snapshots that the updates leave; refs do not matter."""
    made = {item.snapshot_id: item for item in (base.snapshots if base else ())}
    for update in updates:
        if isinstance(update, AddSnapshot):
            made[update.snapshot.snapshot_id] = update.snapshot
        elif isinstance(update, RemoveSnapshots):
            for number in update.snapshot_ids:
                made.pop(number, None)
    return history(made.values(), {})


def arrived(base: TableMetadata | None, *updates: Update) -> list[Arrival]:
    return arrivals(base, list(updates), after(base, list(updates)))


def kinds(found: list[Arrival]) -> list[FindingKind]:
    return [finding.kind for item in found for finding in item.findings]


BASE = history(line(3), {"main": branch(3), "side": branch(2), "v1": tag(1)})


def test_append_arrives_with_its_parent() -> None:
    (item,) = arrived(BASE, add(snapshot(4, 3)), point(4))

    assert (item.snapshot.snapshot_id, item.is_root, item.findings) == (4, False, [])
    assert item.parent == BASE.snapshots_by_id[SnapshotId(3)]


def test_first_snapshot_of_a_table_that_is_being_created() -> None:
    (item,) = arrived(None, add(snapshot(1)), point(1))

    assert (item.parent, item.is_root, item.findings) == (None, True, [])


def test_parent_that_stands_for_none_is_none() -> None:
    (item,) = arrived(None, add(snapshot(1, -1)), point(1))

    assert (item.parent, item.is_root, item.findings) == (None, True, [])


def test_forgotten_parent_is_neither_known_nor_none() -> None:
    (item,) = arrived(BASE, add(snapshot(4, 99)), point(4))

    assert (item.parent, item.is_root, item.findings) == (None, False, [])


def test_parentless_snapshot_on_a_branch_with_history() -> None:
    (item,) = arrived(BASE, add(snapshot(4)), point(4))

    (finding,) = item.findings
    assert finding.kind is FindingKind.PARENTLESS
    assert finding.message == "snapshot 4 has no parent, but takes the place of snapshot 3 on branch main"


def test_parentless_snapshot_with_a_parent_of_minus_one_on_a_branch_with_history() -> None:
    assert kinds(arrived(BASE, add(snapshot(4, -1)), point(4))) == [FindingKind.PARENTLESS]


def test_parentless_snapshot_of_a_replaced_table() -> None:
    updates = (RemoveSnapshotRef(ref_name="main"), add(snapshot(4)), point(4))

    assert kinds(arrived(BASE, *updates)) == []


def test_parentless_snapshot_on_a_new_branch_or_on_none() -> None:
    assert kinds(arrived(BASE, add(snapshot(4)), point(4, "fresh"))) == []
    assert kinds(arrived(BASE, add(snapshot(4)))) == []


def test_parentless_snapshot_on_another_branch_with_history() -> None:
    assert kinds(arrived(BASE, add(snapshot(4)), point(4, "side"))) == [FindingKind.PARENTLESS]


def test_snapshot_built_on_an_ancestor_of_the_head() -> None:
    (item,) = arrived(BASE, add(snapshot(4, 2)), point(4))

    (finding,) = item.findings
    assert finding.kind is FindingKind.BYPASSED_HEAD
    assert "takes the place of snapshot 3 on branch main, but was built on snapshot 2" in finding.message


def test_snapshot_built_on_the_head_of_its_own_branch() -> None:
    assert kinds(arrived(BASE, add(snapshot(4, 2)), point(4, "side"))) == []


def test_rollback_and_append_in_one_commit() -> None:
    assert kinds(arrived(BASE, point(2), add(snapshot(4, 2)), point(4))) == []


def test_several_snapshots_in_one_commit() -> None:
    one_by_one = arrived(BASE, add(snapshot(4, 3)), point(4), add(snapshot(5, 4)), point(5))
    at_once = arrived(BASE, add(snapshot(4, 3)), add(snapshot(5, 4)), point(5))

    assert kinds(one_by_one) == kinds(at_once) == []
    assert [item.parent and item.parent.snapshot_id for item in at_once] == [3, 4]


def test_snapshot_that_the_same_commit_removes_is_not_looked_at() -> None:
    found = arrived(
        BASE,
        add(snapshot(4, 3)),
        add(snapshot(5, 4)),
        point(5),
        RemoveSnapshots(snapshot_ids=(SnapshotId(4),)),
    )

    assert [item.snapshot.snapshot_id for item in found] == [5]
    assert kinds(found) == []


def test_ancestors_that_were_expired_prove_nothing() -> None:
    base = history([snapshot(5, 4), snapshot(9, 8)], {"main": branch(9)})

    assert kinds(arrived(base, add(snapshot(10, 5)), point(10))) == []


def test_circle_of_parents_ends() -> None:
    base = history([snapshot(1, 2), snapshot(2, 1), snapshot(3)], {"main": branch(3)})

    assert kinds(arrived(base, add(snapshot(4, 2)), point(4))) == [FindingKind.BYPASSED_HEAD]


def test_branch_that_turns_into_a_tag_has_no_head() -> None:
    assert kinds(arrived(BASE, point(2, "side", "tag"), add(snapshot(4)), point(4, "side"))) == []


def test_tag_on_a_new_snapshot_takes_no_ones_place() -> None:
    assert kinds(arrived(BASE, add(snapshot(4, 1)), point(4, "v1", "tag"))) == []


def test_moving_a_branch_to_a_snapshot_that_was_there_is_somebodys_will() -> None:
    assert arrived(BASE, point(1)) == []


def test_branch_that_is_set_twice_to_the_same_new_snapshot() -> None:
    assert kinds(arrived(BASE, add(snapshot(4, 3)), point(4), point(4))) == []
    assert kinds(arrived(None, add(snapshot(4)), point(4), point(4))) == []


def test_repeated_change_brings_nothing_new() -> None:
    landed = BASE.snapshots_by_id[SnapshotId(3)]

    found = arrived(BASE, add(landed), point(3), add(snapshot(4, 3)), point(4))

    assert [item.snapshot.snapshot_id for item in found] == [4]
    assert kinds(found) == []


def test_branches_that_the_commit_makes() -> None:
    begun = [item.begins_branch for item in arrived(BASE, add(snapshot(4, 3)), point(4, "audit"))]
    moved = [item.begins_branch for item in arrived(BASE, add(snapshot(4, 3)), point(4, "side"))]
    staged = [item.begins_branch for item in arrived(BASE, add(snapshot(4, 3)))]

    assert (begun, moved, staged) == ([True], [False], [False])


def test_many_moves_along_a_long_history_do_not_walk_it_again() -> None:
    def effort(count: int) -> int:
        updates = [add(made) for made in line(count)]
        updates += [point(count if number % 2 else 1) for number in range(count)]
        of_all = after(None, updates)
        return calls_in(lambda: arrivals(None, updates, of_all))

    assert effort(400) < 20 * effort(40)
