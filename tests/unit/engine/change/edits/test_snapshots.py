"""Edits of snapshots: numbers that never fall, what makes one impossible or stale, and removal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from app.engine.change.apply import apply_to_new, apply_update
from app.engine.change.draft import MetadataDraft, draft_of
from app.engine.change.edits.snapshots import remove_snapshots
from app.engine.change.edits.specs import remove_partition_specs
from app.engine.change.edits.table_schemas import remove_schemas
from app.engine.change.updates import RemovePartitionSpecs, RemoveSchemas, RemoveSnapshots
from app.engine.model.table_metadata import TableMetadata
from app.errors import ClockBehind, CommitFailed, InvalidUpdate, StaleUpdate, Unavailable
from tests.unit.engine.documents import (
    NOW_MS,
    Json,
    add_snapshot,
    applied,
    column,
    committed,
    schema_json,
    set_ref,
    snapshot_json,
    spec_json,
    table,
    table_with_snapshots,
    updates_of,
)
from tests.unit.engine.effort import comparisons_of

BASE = table_with_snapshots(3)


def refusal(base: TableMetadata, *updates: Json) -> str:
    with pytest.raises(InvalidUpdate) as caught:
        applied(base, *updates)
    return str(caught.value)


def stale(base: TableMetadata, *updates: Json) -> str:
    with pytest.raises(StaleUpdate) as caught:
        applied(base, *updates)
    assert isinstance(caught.value, CommitFailed)
    return str(caught.value)


def test_snapshot_is_added_without_any_ref() -> None:
    after = committed(BASE, add_snapshot(snapshot_json(4, 4, 3, vendor=[None])))

    assert after.snapshots[-1].to_object() == snapshot_json(4, 4, 3, vendor=[None])
    assert after.last_sequence == 4
    assert after.current_snapshot_id == 3
    assert after.snapshots[:3] == BASE.snapshots


def test_snapshot_needs_a_schema_a_spec_and_an_order_first() -> None:
    draft = apply_to_new((), NOW_MS)
    (update,) = updates_of(add_snapshot(snapshot_json(1, 1)))
    steps = (
        ("schema", {"action": "add-schema", "schema": schema_json(column(1, "a"))}),
        ("partition spec", {"action": "add-spec", "spec": spec_json()}),
        ("sort order", {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}}),
    )

    for what, step in steps:
        with pytest.raises(InvalidUpdate) as caught:
            apply_update(draft, update)
        assert str(caught.value) == f"Attempting to add a snapshot before a {what} is added"
        for item in updates_of(step, {"action": "set-current-schema", "schema-id": -1}):
            apply_update(draft, item)
    apply_update(draft, update)

    assert list(draft.snapshots) == [1]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_snapshot_is_added_once(version: int) -> None:
    base = table_with_snapshots(2, version)

    assert refusal(base, add_snapshot(snapshot_json(2))) == "Snapshot already exists for id: 2"


def test_id_that_stands_for_no_snapshot_is_refused() -> None:
    assert refusal(BASE, add_snapshot(snapshot_json(-1, 4, 3))) == (
        "Cannot add snapshot with id -1: it stands for no snapshot"
    )


@pytest.mark.parametrize("snapshot_id", [0, -2, 2**63 - 1, -(2**63)])
def test_any_other_id_is_taken(snapshot_id: int) -> None:
    after = committed(BASE, add_snapshot(snapshot_json(snapshot_id, 4, 3)), set_ref("main", snapshot_id))

    assert after.current_snapshot_id == snapshot_id


@pytest.mark.parametrize(("sequence", "version"), [(3, 2), (2, 2), (0, 3), (None, 2)])
def test_snapshot_that_another_commit_overtook_is_stale(sequence: int | None, version: int) -> None:
    base = table_with_snapshots(3, version)
    rows = {"first-row-id": 0, "added-rows": 0} if version == 3 else {}

    assert stale(base, add_snapshot(snapshot_json(4, sequence, 3) | rows)) == (
        "Validation failed, please retry: Cannot add snapshot with sequence number "
        f"{sequence or 0} older than last sequence number 3"
    )


def test_sequence_numbers_may_leave_gaps() -> None:
    assert committed(BASE, add_snapshot(snapshot_json(4, 40, 3))).last_sequence == 40


@pytest.mark.parametrize("sequence", [1, 3, None])
def test_snapshot_without_parent_may_be_late_but_never_lowers_the_last_number(sequence: int | None) -> None:
    after = committed(BASE, add_snapshot(snapshot_json(4, sequence)), set_ref("main", 4))

    assert after.last_sequence == 3


def test_two_appends_on_one_base_conflict_also_in_one_request() -> None:
    assert "older than last sequence number 4" in stale(
        BASE,
        add_snapshot(snapshot_json(4, 4, 3)),
        set_ref("main", 4),
        add_snapshot(snapshot_json(5, 4, 3)),
        set_ref("audit", 5),
    )


def test_parent_need_not_be_there() -> None:
    assert committed(BASE, add_snapshot(snapshot_json(4, 4, 99))).snapshots[-1].parent_snapshot_id == 99


def test_v1_has_no_sequence_numbers() -> None:
    base = table_with_snapshots(1, 1)
    legacy = {"snapshot-id": 2, "timestamp-ms": NOW_MS + 5000, "manifests": ["s3://b/m.avro"]}

    assert refusal(base, add_snapshot(snapshot_json(2, 1, 1))) == (
        "Cannot add snapshot with sequence number 1 to a v1 table: it must be 0"
    )
    assert committed(base, add_snapshot(legacy)).last_sequence == 0
    assert committed(base, add_snapshot(snapshot_json(2, 0, 1))).last_sequence_number is None


def test_later_versions_need_a_manifest_list() -> None:
    legacy = {"snapshot-id": 4, "sequence-number": 4, "timestamp-ms": NOW_MS, "manifests": ["s3://b/m.avro"]}

    assert refusal(BASE, add_snapshot(legacy)) == (
        "Cannot add snapshot 4 to a v2 table: it has no manifest-list"
    )


@pytest.mark.parametrize("operation", ["append", "replace", "overwrite", "delete"])
def test_operation_of_the_spec_is_taken(operation: str) -> None:
    committed(BASE, add_snapshot(snapshot_json(4, 4, 3, summary={"operation": operation})))


@pytest.mark.parametrize("summary", [None, {}])
def test_snapshot_may_say_nothing_of_its_operation(summary: Json | None) -> None:
    committed(BASE, add_snapshot(snapshot_json(4, 4, 3, summary=summary)))


def test_operation_that_no_reader_knows_is_refused() -> None:
    message = refusal(BASE, add_snapshot(snapshot_json(4, 4, 3, summary={"operation": "merge"})))

    assert message == (
        "Cannot add snapshot 4: operation 'merge' is none of append, delete, overwrite, replace"
    )


def test_snapshot_from_the_far_future_is_refused() -> None:
    now_ms = NOW_MS + 60_000
    committed(BASE, add_snapshot(snapshot_json(4, 4, 3, timestamp_ms=now_ms + 86_400_000)))

    message = refusal(BASE, add_snapshot(snapshot_json(4, 4, 3, timestamp_ms=now_ms + 86_400_001)))
    assert message.endswith(f"is more than a day ahead of {now_ms}")


# ------------------------------------------------------------------------------------------------------------- row ids


def rows(first: int | None, added: int | None, snapshot_id: int = 4, sequence: int = 4) -> Json:
    return add_snapshot(
        snapshot_json(snapshot_id, sequence, sequence - 1, first_row_id=first, added_rows=added)
    )


def test_rows_of_v3_are_numbered_on() -> None:
    base = table_with_snapshots(3, 3, next_row_id=10)

    assert committed(base, rows(10, 5)).next_row_id == 15
    assert committed(base, rows(10, 5), rows(15, 2, 5, 5)).next_row_id == 17
    assert committed(base, rows(10, 0)).next_row_id == 10


def test_row_ids_that_a_snapshot_took_further_on_are_not_given_again() -> None:
    base = table_with_snapshots(3, 3, next_row_id=10)

    after = committed(base, rows(100, 5))

    assert after.next_row_id == 105
    assert stale(after, rows(15, 90, 5, 5)).endswith("first-row-id is behind table next-row-id: 15 < 105")


def test_snapshot_that_passes_over_most_row_ids_is_refused() -> None:
    base = table_with_snapshots(3, 3, next_row_id=10)
    highest = 10 + 2**48

    assert refusal(base, rows(highest + 1, 5)) == (
        f"Cannot add a snapshot: first-row-id {highest + 1} passes over more row ids than any table has; "
        f"the highest allowed is {highest}"
    )
    assert committed(base, rows(highest, 5)).next_row_id == highest + 5


@pytest.mark.parametrize("added", [None, 5])
def test_snapshot_of_v3_needs_its_first_row_id(added: int | None) -> None:
    base = table_with_snapshots(3, 3)

    assert refusal(base, rows(None, added)) == "Cannot add a snapshot: first-row-id is null"


def test_row_ids_that_another_commit_took_are_stale() -> None:
    base = table_with_snapshots(3, 3, next_row_id=10)

    assert stale(base, rows(9, 5)) == (
        "Validation failed, please retry: Cannot add a snapshot, first-row-id is behind table next-row-id: 9 < 10"
    )


def test_more_rows_than_there_are_numbers_are_refused() -> None:
    base = table_with_snapshots(3, 3, next_row_id=10)

    assert refusal(base, rows(10, 2**63 - 10)) == (
        "Cannot add a snapshot: 9223372036854775798 added rows exceed what row ids can number; the highest allowed is "
        "281474976710656"
    )
    assert "added rows exceed what row ids can number" in refusal(base, rows(10, 2**48 + 1))
    assert committed(base, rows(10, 2**48)).next_row_id == 10 + 2**48


def test_row_ids_of_a_table_that_has_counted_far_go_on_to_the_last() -> None:
    base = table_with_snapshots(3, 3, next_row_id=2**63 - 6)

    assert refusal(base, rows(2**63 - 6, 6)).endswith("the highest allowed is 5")
    assert committed(base, rows(2**63 - 6, 5)).next_row_id == 2**63 - 1


@pytest.mark.parametrize("parent", [None, 3])
def test_sequence_numbers_that_leave_no_room_for_others_are_refused(parent: int | None) -> None:
    highest = BASE.last_sequence + 2**32

    def numbered(number: int) -> Json:
        return add_snapshot(snapshot_json(4, 4, parent) | {"sequence-number": number})

    assert refusal(BASE, numbered(highest + 1)) == (
        f"Cannot add snapshot 4: after sequence number {highest + 1} the table could soon take no further commit; "
        f"the highest allowed is {highest}"
    )
    assert committed(BASE, numbered(highest)).last_sequence == highest


@pytest.mark.parametrize("last", [2**32, 2**62, 2**63 - 2])
def test_table_that_has_counted_far_takes_the_next_commit(last: int) -> None:
    base = BASE.replace(last_sequence_number=last)
    following = add_snapshot(snapshot_json(4, 4, 3) | {"sequence-number": last + 1})

    assert committed(base, following).last_sequence == last + 1


def test_server_whose_clock_is_behind_blames_no_writer() -> None:
    two_days = 2 * 86_400_000
    late = BASE.replace(last_updated_ms=NOW_MS + two_days)
    snapshot = snapshot_json(4, 4, 3) | {"timestamp-ms": NOW_MS + two_days}

    with pytest.raises(ClockBehind, match="The clock of this server is behind") as caught:
        applied(late, add_snapshot(snapshot))
    assert isinstance(caught.value, Unavailable)


def test_rows_of_v2_have_no_numbers() -> None:
    after = committed(BASE, rows(5, 5))

    assert after.next_row_id is None
    assert after.snapshots[-1].first_row_id == 5


# ------------------------------------------------------------------------------------------------------------- removal


def statistics(snapshot_id: int) -> Json:
    return {
        "snapshot-id": snapshot_id,
        "statistics-path": "s",
        "file-size-in-bytes": 1,
        "file-footer-size-in-bytes": 1,
        "blob-metadata": [],
    }


def test_removed_snapshot_takes_its_statistics_and_the_log_before_it_along() -> None:
    base = table_with_snapshots(
        4,
        statistics=[statistics(1), statistics(2), statistics(77)],
        partition_statistics=[
            {"snapshot-id": number, "statistics-path": "p", "file-size-in-bytes": 1} for number in (2, 4)
        ],
    )

    after = committed(base, {"action": "remove-snapshots", "snapshot-ids": [2, 99]})

    assert [item.snapshot_id for item in after.snapshots] == [1, 3, 4]
    assert after.snapshots_by_id[after.snapshots[1].snapshot_id].parent_snapshot_id == 2
    assert [item.snapshot_id for item in after.statistics] == [1, 77]
    assert [item.snapshot_id for item in after.partition_statistics] == [4]
    assert [entry.snapshot_id for entry in after.snapshot_log] == [3, 4]
    assert after.last_sequence == 4


@pytest.mark.parametrize("ids", [[], [99, -5]])
def test_removing_snapshots_that_are_not_there_changes_nothing(ids: list[int]) -> None:
    assert not applied(BASE, {"action": "remove-snapshots", "snapshot-ids": ids}).has_changes


def test_one_update_for_each_snapshot_does_the_same() -> None:
    base = table_with_snapshots(5)

    one = committed(base, {"action": "remove-snapshots", "snapshot-ids": [1, 2, 3]})
    each = committed(
        base, *({"action": "remove-snapshots", "snapshot-ids": [number]} for number in (1, 2, 3))
    )

    assert one == each


def test_all_snapshots_can_go_with_their_refs() -> None:
    after = committed(
        BASE,
        {"action": "remove-snapshot-ref", "ref-name": "main"},
        {"action": "remove-snapshots", "snapshot-ids": [1, 2, 3]},
    )

    assert after.snapshots == ()
    assert after.snapshot_log == ()
    assert after.last_sequence == 3


def test_snapshot_can_be_added_and_removed_in_one_commit() -> None:
    after = committed(
        BASE, add_snapshot(snapshot_json(4, 4, 3)), {"action": "remove-snapshots", "snapshot-ids": [4]}
    )

    assert after.snapshots == BASE.snapshots
    assert after.last_sequence == 4
    assert after.snapshot_log == BASE.snapshot_log


def test_commit_on_ten_thousand_snapshots_walks_them_a_few_times_only() -> None:
    """Expiry sends one update for each snapshot; none of them may walk through all the others."""
    count = 10_000
    base = table_with_snapshots(count, statistics=[statistics(number) for number in range(1, count + 1)])
    draft = draft_of(base, NOW_MS)

    for update in updates_of(
        *({"action": "remove-snapshots", "snapshot-ids": [number]} for number in range(1, count))
    ):
        apply_update(draft, update)

    assert [item.snapshot_id for item in draft.finish(None).statistics] == [count]


def test_table_without_snapshots_takes_its_first() -> None:
    after = committed(table(), add_snapshot(snapshot_json(1, 1)), set_ref("main", 1))

    assert [entry.snapshot_id for entry in after.snapshot_log] == [1]


@pytest.mark.parametrize(
    ("edit", "update"),
    [
        (remove_snapshots, lambda ids: RemoveSnapshots.model_construct(snapshot_ids=ids)),
        (remove_schemas, lambda ids: RemoveSchemas.model_construct(schema_ids=ids)),
        (remove_partition_specs, lambda ids: RemovePartitionSpecs.model_construct(spec_ids=ids)),
    ],
)
def test_ids_that_were_chosen_to_do_harm_are_compared_with_few_others(
    edit: Callable[[MetadataDraft, Any], None], update: Callable[[tuple[int, ...]], Any]
) -> None:
    draft = draft_of(BASE, NOW_MS)

    assert comparisons_of(range(100, 3_100), lambda ids: edit(draft, update(ids))) <= 3_000
    assert not draft.has_changes
