"""Finishing a draft: what must be there, what is written by each version, time, and what is kept."""

from __future__ import annotations

import json

import pytest

from app.engine.change.draft import MetadataDraft, draft_of
from app.engine.model.ids import SnapshotId
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata, read_table_metadata
from app.errors import DanglingRef, InvalidUpdate
from tests.unit.engine.documents import (
    BASE_LOCATION,
    NOW_MS,
    Json,
    add_snapshot,
    applied,
    column,
    committed,
    encoded,
    order_json,
    part,
    schema_json,
    set_ref,
    snapshot_json,
    sort_json,
    spec_json,
    struct,
    table,
    table_json,
    table_with_snapshots,
)

TOUCH: Json = {"action": "set-properties", "updates": {"touched": "yes"}}


def refusal(base: TableMetadata, *updates: Json) -> str:
    with pytest.raises(InvalidUpdate) as caught:
        applied(base, *updates).finish(BASE_LOCATION)
    return str(caught.value)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_draft_that_nothing_touched_finishes_into_its_base(version: int) -> None:
    base = table_with_snapshots(3, version)

    draft = draft_of(base, base.last_updated_ms)

    assert not draft.has_changes
    assert draft.finish(None) == base


@pytest.mark.parametrize("version", [1, 2, 3])
def test_everything_that_no_update_names_stays(version: int) -> None:
    document = table_json(version, vendor={"a": None}, format_version=version) | {"table_uuid": 1, "self": 2}
    document["schemas"][0]["vendor"] = 1
    document["partition-specs"][0]["vendor"] = 2
    document["sort-orders"][0]["vendor"] = 3
    document["statistics"] = [
        {
            "snapshot-id": 4,
            "statistics-path": "s",
            "file-size-in-bytes": 1,
            "vendor": 4,
            "file-footer-size-in-bytes": 1,
            "blob-metadata": [],
        }
    ]
    document["partition-statistics"] = [
        {"snapshot-id": 4, "statistics-path": "p", "file-size-in-bytes": 1, "vendor": 5}
    ]
    document["encryption-keys"] = [{"key-id": "k", "encrypted-key-metadata": "AA==", "vendor": 6}]
    base = read_table_metadata(encoded(document))

    after = json.loads(committed(base, TOUCH).to_json())

    changed = {"last-updated-ms", "properties", "metadata-log"}
    assert {name for name in document if after[name] != document[name]} == changed
    assert after.keys() == document.keys()


def test_v1_table_is_also_written_in_its_old_form() -> None:
    base = table(1)
    wider = schema_json(
        column(1, "id", "long", required=True), column(2, "category", "string"), column(3, "n")
    )

    after = committed(
        base,
        {"action": "add-schema", "schema": wider},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": spec_json(part("n", 3) | {"note": 1})},
        {"action": "set-default-spec", "spec-id": -1},
    ).to_object()

    assert after["schema"] == after["schemas"][1]
    assert after["partition-spec"] == [part("n", 3, 1000) | {"note": 1}]
    assert "last-sequence-number" not in after
    assert "next-row-id" not in after


def test_upgraded_table_is_written_in_its_new_form() -> None:
    base = table_with_snapshots(2, 1)

    v2 = committed(base, {"action": "upgrade-format-version", "format-version": 2})
    v3 = committed(v2, {"action": "upgrade-format-version", "format-version": 3})

    assert v2.last_sequence_number == 0
    assert v2.schema_ is None
    assert v2.partition_spec is None
    assert v3.next_row_id == 0
    assert v3.snapshots == base.snapshots


@pytest.mark.parametrize(("version", "expected"), [(1, -1), (2, -1), (3, None)])
def test_table_without_snapshot_says_so_as_its_version_does(version: int, expected: int | None) -> None:
    after = committed(table_with_snapshots(1, version), {"action": "remove-snapshot-ref", "ref-name": "main"})

    assert after.to_object().get("current-snapshot-id") == expected
    assert after.current_snapshot is None


# ------------------------------------------------------------------------------------------------ what must be there


def test_new_table_needs_a_uuid_a_location_a_schema_a_spec_and_an_order() -> None:
    draft = MetadataDraft(base=None, now_ms=NOW_MS)
    whole = draft_of(table(), NOW_MS)
    for name, message in (
        ("table_uuid", "The table has no uuid: the updates need an assign-uuid"),
        ("location", "The table has no location: the updates need a set-location"),
        ("schemas", "The table has no current schema yet: add one and set it as current first"),
        ("current_schema_id", None),
        ("specs", "Cannot set default partition spec to unknown spec: None"),
        ("default_spec_id", None),
        ("sort_orders", "Cannot set default sort order to unknown sort order: None"),
        ("default_sort_order_id", None),
    ):
        if message is not None:
            with pytest.raises(InvalidUpdate) as caught:
                draft.finish(None)
            assert str(caught.value) == message
        setattr(draft, name, getattr(whole, name))

    assert draft.finish(None) == table().replace(last_partition_id=999, last_column_id=0)


def test_v1_table_may_go_on_without_a_uuid_but_not_into_v2() -> None:
    document = table_json(1)
    del document["table-uuid"]
    base = read_table_metadata(encoded(document))

    assert committed(base, TOUCH).table_uuid is None
    assert refusal(base, {"action": "upgrade-format-version", "format-version": 2}) == (
        "The table has no uuid: the updates need an assign-uuid"
    )


def test_default_spec_and_order_need_their_columns() -> None:
    base = table()
    without_category: list[Json] = [
        {"action": "add-schema", "schema": schema_json(column(1, "id", "long", required=True))},
        {"action": "set-current-schema", "schema-id": -1},
    ]

    assert refusal(base, *without_category) == (
        "Cannot find source column for partition field: category (source-id 2)"
    )
    unpartitioned = committed(
        base, {"action": "add-spec", "spec": spec_json()}, {"action": "set-default-spec", "spec-id": -1}
    )
    assert committed(unpartitioned, *without_category).current_schema.schema_id == 1
    by_category = committed(
        unpartitioned,
        {"action": "add-sort-order", "sort-order": order_json(sort_json(2))},
        {"action": "set-default-sort-order", "sort-order-id": -1},
    )
    assert refusal(by_category, *without_category) == (
        "Cannot find source column for sort field with source-id 2"
    )


def test_void_fields_need_no_column() -> None:
    base = table(partition_specs=[spec_json(part("gone", 99, 1000, "void"))])

    committed(base, TOUCH)


def test_spec_and_order_with_a_transform_of_a_later_version_do_not_stop_a_commit() -> None:
    base = table(
        partition_specs=[spec_json(part("z", 2, 1000, "zorder[3]"))],
        sort_orders=[order_json(sort_json(2, "zorder[3]"))],
        default_sort_order_id=1,
    )

    after = committed(base, TOUCH)

    assert after.default_spec.fields[0].transform == "zorder[3]"
    assert after.default_sort_order == base.default_sort_order


def test_column_keeps_a_type_that_specs_of_old_files_can_read() -> None:
    base = table(
        partition_specs=[spec_json(part("bucketed", 2, 1000, "bucket[4]")), spec_json(spec_id=1)],
        default_spec_id=1,
    )
    changed = schema_json(column(1, "id", "long", required=True), column(2, "category", "boolean"))

    assert (
        refusal(
            base,
            {"action": "add-schema", "schema": changed},
            {"action": "set-current-schema", "schema-id": -1},
        )
        == "Cannot change the type of category: partition spec 0 applies bucket[4] to it"
    )


@pytest.mark.parametrize(
    ("update", "message"),
    [
        (
            {"action": "set-default-spec", "spec-id": 9},
            "Cannot set default partition spec to unknown spec: 9",
        ),
        (
            {"action": "set-default-sort-order", "sort-order-id": 9},
            "Cannot set default sort order to unknown sort order: 9",
        ),
    ],
)
def test_unknown_default_is_refused_at_the_end(update: Json, message: str) -> None:
    assert refusal(table(), update) == message


def test_what_readers_would_refuse_is_refused_before_it_is_written() -> None:
    draft = draft_of(table(), NOW_MS)
    draft.last_sequence = 1
    draft.snapshots[SnapshotId(1)] = Snapshot.from_object(snapshot_json(1, 2))

    with pytest.raises(InvalidUpdate, match=r"^Invalid snapshot with sequence number 2 greater than last"):
        draft.finish(None)


# -------------------------------------------------------------------------------------------------------- dangling refs


def test_snapshot_of_a_ref_stays_unless_the_same_commit_removes_the_ref() -> None:
    base = table_with_snapshots(
        3,
        refs={"main": {"snapshot-id": 3, "type": "branch"}, "v1": {"snapshot-id": 1, "type": "tag"}},
    )
    remove: Json = {"action": "remove-snapshots", "snapshot-ids": [1]}

    with pytest.raises(DanglingRef) as caught:
        applied(base, remove).finish(BASE_LOCATION)
    assert str(caught.value) == (
        "Cannot remove snapshot 1: tag v1 refers to it and is not removed by the same commit"
    )

    for rescue in ({"action": "remove-snapshot-ref", "ref-name": "v1"}, set_ref("v1", 2, "tag")):
        for updates in ((remove, rescue), (rescue, remove)):
            assert [item.snapshot_id for item in committed(base, *updates).snapshots] == [2, 3]


def test_current_snapshot_cannot_be_removed_from_under_main() -> None:
    with pytest.raises(DanglingRef, match=r"^Cannot remove snapshot 2: branch main refers to it"):
        applied(table_with_snapshots(2), {"action": "remove-snapshots", "snapshot-ids": [1, 2]}).finish(
            BASE_LOCATION
        )


# ------------------------------------------------------------------------------------------------------ time and logs


@pytest.mark.parametrize(("now_offset", "written"), [(5_000, 5_000), (0, 0), (-5_000, 0)])
def test_time_of_the_last_change_never_runs_backwards(now_offset: int, written: int) -> None:
    base = table()

    after = committed(base, TOUCH, now_ms=NOW_MS + now_offset)

    assert after.last_updated_ms == NOW_MS + written


def test_snapshot_of_a_fast_clock_takes_the_time_of_the_last_change_along() -> None:
    ahead = snapshot_json(1, 1) | {"timestamp-ms": NOW_MS + 3_600_000}

    after = committed(table(), add_snapshot(ahead), set_ref("main", 1), now_ms=NOW_MS + 1)

    assert after.last_updated_ms == NOW_MS + 3_600_000
    assert committed(after, TOUCH, now_ms=NOW_MS + 2).last_updated_ms == NOW_MS + 3_600_000


def test_snapshot_of_a_slow_clock_does_not_break_the_log() -> None:
    base = table_with_snapshots(1)
    behind = snapshot_json(2, 2, 1) | {"timestamp-ms": NOW_MS - 3_600_000}

    after = committed(base, add_snapshot(behind), set_ref("main", 2))

    assert after.snapshot_log[-1].snapshot_id == 2
    assert after.snapshot_log[-1].timestamp_ms == base.snapshot_log[-1].timestamp_ms
    assert after.snapshots[-1].timestamp_ms == NOW_MS - 3_600_000


def test_commit_that_does_not_touch_history_keeps_a_log_that_was_wrong() -> None:
    base = table_with_snapshots(2, snapshot_log=[{"snapshot-id": 1, "timestamp-ms": NOW_MS}])

    assert committed(base, TOUCH).snapshot_log == base.snapshot_log


def test_base_goes_into_the_metadata_log_with_the_time_of_its_last_change() -> None:
    after = committed(table(), TOUCH)

    assert [(entry.metadata_file, entry.timestamp_ms) for entry in after.metadata_log] == [
        (BASE_LOCATION, NOW_MS)
    ]


def test_table_without_a_base_file_has_nothing_to_log() -> None:
    log = [{"timestamp-ms": NOW_MS, "metadata-file": "f"}]
    base = table(metadata_log=log)

    assert applied(base, TOUCH).finish(None).metadata_log == base.metadata_log


def test_properties_of_the_commit_itself_decide_how_long_the_metadata_log_is() -> None:
    log = [{"timestamp-ms": NOW_MS, "metadata-file": f"f{number}"} for number in range(4)]
    base = table(metadata_log=log, properties={"write.metadata.previous-versions-max": "9"})

    after = committed(
        base, {"action": "set-properties", "updates": {"write.metadata.previous-versions-max": "2"}}
    )

    assert [entry.metadata_file for entry in after.metadata_log] == ["f3", BASE_LOCATION]


def test_draft_is_a_copy_and_can_be_finished_twice() -> None:
    base = table_with_snapshots(2)
    before = base.to_json()
    draft = applied(
        base,
        add_snapshot(snapshot_json(3, 3, 2)),
        set_ref("main", 3),
        {"action": "remove-snapshots", "snapshot-ids": [1]},
        TOUCH,
    )

    first = draft.finish(BASE_LOCATION)

    assert draft.finish(BASE_LOCATION) == first
    assert base.to_json() == before


def test_several_statistics_of_one_snapshot_all_stay() -> None:
    files = [
        {
            "snapshot-id": 4,
            "statistics-path": f"s{number}",
            "file-size-in-bytes": 1,
            "file-footer-size-in-bytes": 1,
            "blob-metadata": [],
        }
        for number in range(2)
    ]
    base = table(statistics=files)

    assert committed(base, TOUCH).statistics == base.statistics


def test_nested_partition_source_survives_the_check() -> None:
    base = table(
        schemas=[schema_json(column(1, "id", "long"), column(2, "p", struct(column(3, "x", "string"))))],
        partition_specs=[spec_json(part("x", 3, 1000))],
        last_column_id=3,
    )

    committed(base, TOUCH)
