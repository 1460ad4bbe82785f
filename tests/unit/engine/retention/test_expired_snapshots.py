from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from app.engine.model.ids import SnapshotId
from app.engine.model.table_metadata import TableMetadata
from app.engine.retention.expired_snapshots import ExpiryWish, plan_expiry
from app.errors import ExpiryRefused, InvalidUpdate
from tests.builders.catalogs import START_MS
from tests.builders.histories import ListedManifests, branch, history, line, snapshot, tag
from tests.unit.engine.effort import comparisons_of

NOW_MS = START_MS + 1_000_000
ALL_OLD = ExpiryWish(older_than_ms=NOW_MS)


def gone(metadata: TableMetadata, wish: ExpiryWish = ALL_OLD, now_ms: int = NOW_MS) -> list[int]:
    return [item.snapshot_id for item in plan_expiry(metadata, wish, now_ms).snapshots]


def test_branch_keeps_its_last_snapshots_by_number_or_age() -> None:
    metadata = history(line(6), {"main": branch(6)})

    assert gone(metadata) == [1, 2, 3, 4, 5]
    assert gone(metadata, ExpiryWish(older_than_ms=NOW_MS, retain_last=4)) == [1, 2]
    assert gone(metadata, ExpiryWish(older_than_ms=START_MS + 5_000)) == [1, 2, 3, 4]
    assert gone(metadata, ExpiryWish(older_than_ms=START_MS + 5_000, retain_last=3)) == [1, 2, 3]


def test_walk_ends_at_the_first_snapshot_that_is_neither_counted_nor_young() -> None:
    """A clock that ran ahead made an old snapshot look young: it is not reached again."""
    ahead = snapshot(1, None, START_MS + 900_000)
    metadata = history([ahead, snapshot(2, 1), snapshot(3, 2)], {"main": branch(3)})

    assert gone(metadata, ExpiryWish(older_than_ms=START_MS + 500_000)) == [1, 2]


def test_tables_own_settings_count_where_nothing_is_asked() -> None:
    properties = {
        "history.expire.max-snapshot-age-ms": "995000",
        "history.expire.min-snapshots-to-keep": "3",
    }
    metadata = history(line(8), {"main": branch(8)}, properties)

    assert gone(metadata, ExpiryWish()) == [1, 2, 3, 4]
    assert gone(metadata, ExpiryWish(), NOW_MS + 10_000) == [1, 2, 3, 4, 5]
    assert gone(metadata, ExpiryWish(retain_last=1), NOW_MS + 10_000) == [1, 2, 3, 4, 5, 6, 7]


def test_five_days_and_one_snapshot_are_the_defaults() -> None:
    five_days_ms = 5 * 24 * 3_600_000
    metadata = history(line(3), {"main": branch(3)})

    assert gone(metadata, ExpiryWish(), START_MS + 1_000 + five_days_ms) == []
    assert gone(metadata, ExpiryWish(), START_MS + 1_001 + five_days_ms) == [1]
    assert gone(metadata, ExpiryWish(), START_MS + 9_000 + five_days_ms) == [1, 2]


def test_settings_of_a_branch_win_over_what_is_asked() -> None:
    metadata = history(line(6), {"main": branch(1), "audit": branch(6, min_snapshots_to_keep=2)})
    by_age = history(line(6), {"main": branch(1), "audit": branch(6, max_snapshot_age_ms=996_000)})

    assert gone(metadata, ExpiryWish(older_than_ms=0, retain_last=5)) == []
    assert gone(metadata) == [2, 3, 4]
    assert gone(by_age) == [2, 3]


def test_tags_keep_their_own_snapshot_only() -> None:
    metadata = history(line(5), {"main": branch(5), "v1": tag(3)})

    assert gone(metadata) == [1, 2, 4]


def test_refs_go_when_they_are_too_old_but_main_never() -> None:
    refs = {
        "main": branch(5, max_ref_age_ms=1),
        "old": tag(2, max_ref_age_ms=1),
        "own": tag(3, max_ref_age_ms=2_000_000),
        "default": branch(4),
    }
    metadata = history(line(5), refs, {"history.expire.max-ref-age-ms": "1000"})

    planned = plan_expiry(metadata, ALL_OLD, NOW_MS)

    assert planned.ref_names == ("old", "default")
    assert [item.snapshot_id for item in planned.snapshots] == [1, 2, 4]


def test_ref_of_exactly_its_greatest_age_stays() -> None:
    metadata = history(line(2), {"main": branch(2), "t": tag(1, max_ref_age_ms=NOW_MS - START_MS - 1_000)})

    assert plan_expiry(metadata, ALL_OLD, NOW_MS).ref_names == ()
    assert plan_expiry(metadata, ALL_OLD, NOW_MS + 1).ref_names == ("t",)


def test_staged_snapshots_stay_while_they_are_young() -> None:
    metadata = history([*line(2), snapshot(3, 1), snapshot(4, 1)], {"main": branch(2)})

    assert gone(metadata, ExpiryWish(older_than_ms=START_MS + 4_000)) == [1, 3]


def test_named_snapshots_go_out_of_the_middle_of_a_branch() -> None:
    metadata = history(line(4), {"main": branch(4)})

    assert gone(metadata, ExpiryWish(older_than_ms=0, snapshot_ids=frozenset({SnapshotId(2)}))) == [2]


def test_named_snapshot_of_a_ref_that_goes_too_is_no_obstacle() -> None:
    metadata = history(line(2), {"main": branch(2), "old": tag(1, max_ref_age_ms=1)})

    assert gone(metadata, ExpiryWish(snapshot_ids=frozenset({SnapshotId(1)}))) == [1]


def test_retaining_fewer_than_one_is_refused() -> None:
    with pytest.raises(ExpiryRefused, match="at least 1, cannot be: 0"):
        gone(history(line(2), {"main": branch(2)}), ExpiryWish(retain_last=0))


def test_setting_that_is_no_number_is_named() -> None:
    # It was set before values were checked, or by another catalog.
    strange = {"history.expire.max-snapshot-age-ms": "5 days"}
    metadata = history(line(2), {"main": branch(2)}).model_copy(update={"properties": strange})

    with pytest.raises(InvalidUpdate, match=r"history\.expire\.max-snapshot-age-ms .* '5 days'"):
        gone(metadata, ExpiryWish())


def test_snapshots_that_descend_from_themselves_are_left_alone() -> None:
    circle = [snapshot(1, 3), snapshot(2, 1), snapshot(3, 2)]
    metadata = history([*circle, snapshot(4, 3), snapshot(5, 4), snapshot(6)], {"main": branch(5)})

    assert gone(metadata) == [4, 6]


def test_table_without_snapshots_has_nothing_to_expire() -> None:
    assert gone(history([], {})) == []


def test_specs_of_remaining_manifests_and_schemas_of_remaining_snapshots_stay() -> None:
    first, second = line(2)
    metadata = history([first, second.replace(schema_id=None)], {"main": branch(2)})
    spec = metadata.partition_specs[0]
    schema = metadata.schemas[0]
    metadata = metadata.replace(
        partition_specs=tuple(spec.replace(spec_id=number) for number in (0, 1, 2)),
        default_spec_id=2,
        schemas=tuple(schema.replace(schema_id=number) for number in (0, 1)),
        current_schema_id=1,
    )
    source = ListedManifests(
        {first.snapshot_id: ["m1"], second.snapshot_id: ["m2"]}, specs={"m1": 0, "m2": 1}
    )
    thorough = ExpiryWish(older_than_ms=NOW_MS, clean_expired_metadata=True)

    planned = plan_expiry(metadata, thorough, NOW_MS, source)
    everything_stays = plan_expiry(
        metadata, ExpiryWish(older_than_ms=0, clean_expired_metadata=True), NOW_MS, source
    )

    assert (planned.spec_ids, planned.schema_ids) == ((0,), (0,))
    assert (everything_stays.spec_ids, everything_stays.schema_ids) == ((), ())


def steps(metadata: TableMetadata) -> int:
    """Return how many lines run until it is known that nothing expires."""
    taken = 0

    def count_line(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal taken
        taken += event == "line"
        return count_line

    before = sys.gettrace()
    sys.settrace(count_line)
    try:
        found = gone(metadata)
    finally:
        sys.settrace(before)
    assert found == []
    return taken


def test_cost_grows_with_the_snapshots_and_not_with_their_square() -> None:
    """Branches all along one history, each of which keeps all of it: a walk from each would never end."""

    def table(count: int) -> TableMetadata:
        refs = {f"b{number}": branch(number, min_snapshots_to_keep=count) for number in range(1, count, 2)}
        return history(line(count), refs | {"main": branch(count)})

    assert steps(table(3_000)) < 15 * steps(table(300))


def test_cost_does_not_grow_with_the_square_of_branches_that_keep_different_things() -> None:
    """The more snapshots each keeps by number, the fewer it keeps by age."""

    def table(count: int) -> TableMetadata:
        kept = {
            f"b{number}": branch(
                count, min_snapshots_to_keep=number, max_snapshot_age_ms=2_000_000 - number * 1_000
            )
            for number in range(1, count)
        }
        return history(line(count), kept | {"main": branch(count)})

    assert steps(table(300)) < 20 * steps(table(30))


def test_what_branches_keep_is_added_up_where_they_meet() -> None:
    histories = [*line(4), snapshot(5, 3), snapshot(6, 5), snapshot(7, 3)]
    refs = {
        "main": branch(4, min_snapshots_to_keep=1),
        "by-number": branch(6, min_snapshots_to_keep=4),
        "by-age": branch(7, min_snapshots_to_keep=2, max_snapshot_age_ms=NOW_MS - START_MS - 3_000),
    }

    assert gone(history(histories, refs)) == [1]
    assert gone(history(histories, refs | {"by-age": branch(7)})) == [1]
    assert gone(history(histories, refs | {"by-number": branch(6, min_snapshots_to_keep=2)})) == [1, 2]


def test_ids_that_were_chosen_to_do_harm_are_compared_with_few_others() -> None:
    metadata = history(line(6), {"main": branch(6)})

    def plan(ids: tuple[int, ...]) -> list[int]:
        return gone(metadata, ExpiryWish(snapshot_ids=[SnapshotId(each) for each in ids]))

    assert comparisons_of(range(100, 3_100), plan) < 3_000
