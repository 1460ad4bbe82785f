"""Which snapshots landed since a commit was prepared: by what failed, and what is known."""

from __future__ import annotations

import pytest

from app.engine.change.landed_since import (
    MAX_SNAPSHOTS,
    has_all_since,
    landed_between,
    landed_since,
    refs_set_by,
)
from app.engine.change.requirements import check_requirements
from app.engine.model.table_metadata import TableMetadata
from app.errors import CommitFailed, RequirementFailed, StaleUpdate
from tests.builders.histories import history, snapshot
from tests.unit.engine.documents import (
    Json,
    add_snapshot,
    applied,
    committed,
    requirements_of,
    set_ref,
    snapshot_json,
    table,
    table_with_snapshots,
    updates_of,
)

REFS: Json = {
    "main": {"snapshot-id": 5, "type": "branch"},
    "audit": {"snapshot-id": 2, "type": "branch"},
    "old": {"snapshot-id": 1, "type": "tag"},
}
BASE = table_with_snapshots(5, refs=REFS)


def failed(base: TableMetadata, *updates: Json, **requirement: object) -> tuple[list[int], int] | None:
    """Return the ids that landed, and how many, of a commit whose requirement does not hold."""
    demanded = {key.replace("_", "-"): value for key, value in requirement.items()}
    with pytest.raises(RequirementFailed) as caught:
        check_requirements(base, requirements_of(demanded))
    return told(base, caught.value, *updates)


def told(base: TableMetadata, error: CommitFailed, *updates: Json) -> tuple[list[int], int] | None:
    found = landed_since(base, updates_of(*updates), error)
    return ([item.snapshot_id for item in found.snapshots], found.count) if found is not None else None


def ref(name: str, snapshot_id: int | None) -> dict[str, object]:
    return {"type": "assert-ref-snapshot-id", "ref": name, "snapshot_id": snapshot_id}


@pytest.mark.parametrize(
    ("name", "expected", "landed"),
    [
        ("main", 3, [5, 4]),
        ("main", None, [5, 4, 3, 2, 1]),
        ("audit", 1, [2]),
        ("audit", None, []),
        ("audit", 5, []),
        ("nope", 3, []),
    ],
)
def test_snapshots_of_a_ref_that_moved_are_those_after_the_expected_one(
    name: str, expected: int | None, landed: list[int]
) -> None:
    assert failed(BASE, **ref(name, expected)) == (landed, len(landed))


def test_of_a_branch_that_went_another_way_only_the_new_part_has_landed() -> None:
    back = committed(BASE, set_ref("main", 2))
    elsewhere = committed(back, add_snapshot(snapshot_json(6, 6, 2)), set_ref("main", 6))

    assert failed(back, **ref("main", 5)) == ([], 0)
    assert failed(elsewhere, **ref("main", 5)) == ([6], 1)


def test_nothing_can_be_told_of_an_expected_snapshot_that_is_not_known() -> None:
    assert failed(BASE, **ref("main", 99)) is None


def test_only_the_last_are_told_and_all_are_counted() -> None:
    long = table_with_snapshots(MAX_SNAPSHOTS + 7)

    ids, count = failed(long, **ref("main", 1)) or ([], 0)

    assert ids == list(range(MAX_SNAPSHOTS + 7, 7, -1))
    assert count == MAX_SNAPSHOTS + 6


def test_commit_that_fails_for_another_reason_is_measured_by_its_snapshots_parent() -> None:
    made = add_snapshot(snapshot_json(9, 6, 3))
    schema: dict[str, object] = {"type": "assert-current-schema-id", "current_schema_id": 7}

    assert failed(BASE, made, set_ref("main", 9), **schema) == ([5, 4], 2)
    assert failed(BASE, made, **schema) is None
    assert failed(BASE, **schema) is None


def test_stale_sequence_number_tells_who_took_it() -> None:
    with pytest.raises(StaleUpdate) as caught:
        applied(BASE, add_snapshot(snapshot_json(9, 4, 3)))

    assert (caught.value.counter, caught.value.expected, caught.value.found) == ("last-sequence-number", 3, 5)
    assert told(BASE, caught.value) == ([5, 4], 2)


def test_stale_row_id_tells_who_took_it() -> None:
    first = committed(
        table(3), add_snapshot(snapshot_json(1, 1, None, first_row_id=0, added_rows=10)), set_ref("main", 1)
    )
    both = committed(
        first, add_snapshot(snapshot_json(2, 2, 1, first_row_id=10, added_rows=5)), set_ref("main", 2)
    )
    with pytest.raises(StaleUpdate) as caught:
        applied(both, add_snapshot(snapshot_json(3, 3, 1, first_row_id=10, added_rows=1)))

    assert (caught.value.counter, caught.value.expected, caught.value.found) == ("next-row-id", 10, 15)
    assert told(both, caught.value) == ([2], 1)


def test_between_two_versions_are_the_snapshots_that_came() -> None:
    found = landed_between(table_with_snapshots(2), table_with_snapshots(4))

    assert ([item.snapshot_id for item in found.snapshots], found.count) == ([4, 3], 2)


def test_ref_of_a_snapshot_is_the_one_that_the_updates_set() -> None:
    updates = updates_of(set_ref("x", 1), set_ref("audit", 9), set_ref("main", 9))

    assert refs_set_by(updates) == {1: "x", 9: "audit"}


@pytest.mark.parametrize(
    ("numbers", "parent", "last", "expected"),
    [
        ([1, 2, 3], 1, 3, True),
        ([1, 2, 3], 3, 3, True),
        ([1, 3], 1, 3, False),
        ([1, 2, 3], 1, 4, False),
        ([2, 3], 1, 3, False),
    ],
)
def test_nothing_has_expired_since_if_no_number_is_missing(
    numbers: list[int], parent: int, last: int, expected: bool
) -> None:
    snapshots = tuple(snapshot(number, number - 1).replace(sequence_number=number) for number in numbers)
    current = history(snapshots, {}).replace(last_sequence_number=last)

    assert has_all_since(current, snapshot(9, parent)) is expected


def test_whether_something_has_expired_is_not_known_without_a_parent() -> None:
    current = history([snapshot(1).replace(sequence_number=1)], {}).replace(last_sequence_number=1)

    assert not has_all_since(current, snapshot(9))


def test_number_of_a_snapshot_without_parent_proves_nothing() -> None:
    one, other = snapshot(1).replace(sequence_number=1), snapshot(2).replace(sequence_number=2)
    current = history([one, other], {}).replace(last_sequence_number=2)

    assert not has_all_since(current, snapshot(9, 1))
