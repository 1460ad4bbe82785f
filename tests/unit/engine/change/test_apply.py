"""Applying update lists: order, creation from nothing, kinds that are not for tables, and effort."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from app.engine.change.apply import apply_to_new, apply_updates
from app.engine.change.updates import ACTIONS
from app.engine.model.table_metadata import TableMetadata, read_table_metadata
from app.errors import IcetowerError, InvalidUpdate
from tests.unit.engine.documents import (
    BASE_LOCATION,
    NOW_MS,
    UUID,
    Json,
    add_snapshot,
    applied,
    column,
    committed,
    order_json,
    part,
    schema_json,
    set_ref,
    snapshot_json,
    sort_json,
    spec_json,
    table,
    table_with_snapshots,
    updates_of,
    view_version_json,
)
from tests.unit.engine.effort import calls_in

SCHEMA = schema_json(column(3, "id", "long"), column(7, "category", "string"), schema_id=5)
CREATION: tuple[Json, ...] = (
    {"action": "assign-uuid", "uuid": UUID},
    {"action": "upgrade-format-version", "format-version": 2},
    {"action": "add-schema", "schema": SCHEMA},
    {"action": "set-current-schema", "schema-id": -1},
    {"action": "add-spec", "spec": spec_json(part("category", 7, 1000), spec_id=4)},
    {"action": "set-default-spec", "spec-id": -1},
    {"action": "add-sort-order", "sort-order": order_json(sort_json(3), order_id=8)},
    {"action": "set-default-sort-order", "sort-order-id": -1},
    {"action": "set-location", "location": "s3://bucket/t/"},
    {"action": "set-properties", "updates": {"owner": "me"}},
)


def created(*documents: Json) -> TableMetadata:
    metadata = apply_to_new(updates_of(*documents), NOW_MS).finish(None)
    assert read_table_metadata(metadata.to_json()) == metadata
    return metadata


def test_table_is_made_of_the_updates_alone_and_keeps_the_field_ids_that_were_sent() -> None:
    metadata = created(*CREATION)

    assert metadata.table_uuid == UUID
    assert metadata.location == "s3://bucket/t"
    assert metadata.last_column_id == 7
    assert [item.id for item in metadata.current_schema.fields] == [3, 7]
    assert (metadata.current_schema_id, metadata.default_spec_id, metadata.default_sort_order_id) == (0, 0, 1)
    assert metadata.last_partition_id == 1000
    assert metadata.properties == {"owner": "me"}
    assert metadata.last_updated_ms == NOW_MS
    assert metadata.metadata_log == ()
    assert metadata.current_snapshot is None


def test_creation_may_bring_its_first_data_and_more_changes() -> None:
    wider = schema_json(*SCHEMA["fields"], column(8, "n"))

    metadata = created(
        *CREATION,
        {"action": "add-schema", "schema": wider},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": spec_json(part("n", 8, 1001))},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": order_json(sort_json(8))},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        add_snapshot(snapshot_json(11, 1)),
        set_ref("main", 11),
    )

    assert [item.schema_id for item in metadata.schemas] == [0, 1]
    assert [item.spec_id for item in metadata.partition_specs] == [0, 1]
    assert [item.order_id for item in metadata.sort_orders] == [1, 2]
    assert metadata.current_snapshot_id == 11
    assert [entry.snapshot_id for entry in metadata.snapshot_log] == [11]


def test_new_table_has_format_version_2_unless_told() -> None:
    without_upgrade = [item for item in CREATION if item["action"] != "upgrade-format-version"]

    assert created(*without_upgrade).format_version == 2


@pytest.mark.parametrize("version", [1, 2, 3])
def test_first_upgrade_chooses_the_version_wherever_it_stands(version: int) -> None:
    others = [item for item in CREATION if item["action"] != "upgrade-format-version"]
    upgrade: Json = {"action": "upgrade-format-version", "format-version": version}

    assert created(upgrade, *others).format_version == version
    assert created(*others, upgrade).format_version == version


def test_second_upgrade_is_one() -> None:
    upgrades = [{"action": "upgrade-format-version", "format-version": version} for version in (1, 3)]

    assert created(*upgrades, *CREATION[2:], CREATION[0]).format_version == 3


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (0, "Cannot downgrade v2 table to v0"),
        (4, "Cannot upgrade table to unsupported format version: v4 (supported: v3)"),
    ],
)
def test_version_that_does_not_exist_makes_no_table(version: int, message: str) -> None:
    with pytest.raises(InvalidUpdate) as caught:
        created({"action": "upgrade-format-version", "format-version": version})

    assert str(caught.value) == message


def test_new_v3_table_numbers_its_rows_from_0() -> None:
    metadata = created(
        {"action": "upgrade-format-version", "format-version": 3},
        *(item for item in CREATION if item["action"] != "upgrade-format-version"),
        add_snapshot(snapshot_json(11, 1, first_row_id=0, added_rows=9)),
        set_ref("main", 11),
    )

    assert metadata.next_row_id == 9


def test_updates_are_applied_in_their_order() -> None:
    base = table()
    set_a: Json = {"action": "set-properties", "updates": {"a": "1"}}
    remove_a: Json = {"action": "remove-properties", "removals": ["a"]}

    assert committed(base, set_a, remove_a).properties == {}
    assert committed(base, remove_a, set_a).properties == {"a": "1"}


def test_spec_is_bound_to_the_schema_that_is_current_at_that_point() -> None:
    base = table()
    wider = schema_json(*base.to_object()["schemas"][0]["fields"], column(3, "n"))
    new_schema: list[Json] = [
        {"action": "add-schema", "schema": wider},
        {"action": "set-current-schema", "schema-id": -1},
    ]
    new_spec: Json = {"action": "add-spec", "spec": spec_json(part("n", 3, 1001))}

    assert len(committed(base, *new_schema, new_spec).partition_specs) == 2
    with pytest.raises(InvalidUpdate, match=r"^Cannot find source column for partition field: n"):
        applied(base, new_spec, *new_schema)


@pytest.mark.parametrize(
    "update",
    [
        {"action": "add-view-version", "view-version": view_version_json(1)},
        {"action": "set-current-view-version", "view-version-id": 1},
    ],
)
def test_update_for_views_is_refused(update: Json) -> None:
    with pytest.raises(InvalidUpdate) as caught:
        applied(table(), update)

    assert str(caught.value) == f"Cannot apply {update['action']} to a table: it is for views"


def test_replacing_a_table_keeps_its_past() -> None:
    """What a client sends for CREATE OR REPLACE TABLE … AS SELECT."""
    base = table_with_snapshots(
        2, refs={"main": {"snapshot-id": 2, "type": "branch"}, "v1": {"snapshot-id": 1, "type": "tag"}}
    )
    after = committed(
        base,
        {"action": "remove-snapshot-ref", "ref-name": "main"},
        {
            "action": "add-schema",
            "schema": schema_json(column(1, "id", "long"), column(3, "other", "double")),
        },
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": spec_json()},
        {"action": "set-default-spec", "spec-id": -1},
        add_snapshot(snapshot_json(7, 2)),
        set_ref("main", 7),
    )

    assert after.table_uuid == base.table_uuid
    assert after.snapshots[:2] == base.snapshots
    assert after.last_sequence == 2
    assert after.last_column_id == 3
    assert [entry.snapshot_id for entry in after.snapshot_log] == [1, 2, 7]
    assert set(after.snapshot_refs) == {"main", "v1"}
    assert after.metadata_log[-1].metadata_file == BASE_LOCATION


def test_every_known_action_is_written_with_its_own_name() -> None:
    assert len(ACTIONS) == 25
    assert all(action == action.lower() for action in ACTIONS)


HALF_DONE: tuple[Json, ...] = (
    # Refused for its row ids, after its sequence number was taken.
    add_snapshot(snapshot_json(9, 50, None, first_row_id=0, added_rows=1)),
    {"action": "set-current-schema", "schema-id": 77},
    set_ref("x", 99),
)


@pytest.mark.parametrize("refused", HALF_DONE)
def test_refused_update_leaves_no_trace_when_the_others_are_tried(refused: Json) -> None:
    rows = {"first_row_id": 5, "added_rows": 1}
    base = committed(
        table(3), add_snapshot(snapshot_json(1, 1, None, **(rows | {"first_row_id": 5}))), set_ref("main", 1)
    )
    others: tuple[Json, ...] = (
        {"action": "set-properties", "updates": {"a": "b"}},
        set_ref("audit", 1),
    )
    told: list[tuple[int, bool]] = []

    def take(position: int, error: IcetowerError | None) -> bool:
        told.append((position, error is None))
        return True

    draft = apply_updates(base, updates_of(others[0], refused, others[1]), NOW_MS + 60_000, take)

    assert told == [(0, True), (1, False), (2, True)]
    assert draft.finish(BASE_LOCATION) == committed(base, *others)


def test_nothing_is_tried_after_somebody_has_heard_enough() -> None:
    wrong = set_ref("x", 99)

    draft = apply_updates(
        table(),
        updates_of({"action": "set-properties", "updates": {"a": "b"}}, wrong, wrong),
        NOW_MS,
        lambda position, _error: position < 1,
    )

    assert draft.properties["a"] == "b"


# --------------------------------------------------------------------------------------------------------------- effort


def new_schema(number: int) -> Json:
    return {"action": "add-schema", "schema": schema_json(column(1, "id"), column(2, f"c{number}", "string"))}


def new_spec(number: int) -> Json:
    field = part(f"b{number}", 1, transform=f"bucket[{number + 1}]")
    return {"action": "add-spec", "spec": {"fields": [field]}}


def new_order(number: int) -> Json:
    return {"action": "add-sort-order", "sort-order": order_json(sort_json(1, f"bucket[{number + 1}]"))}


def schemas_beside_specs(count: int) -> list[Json]:
    return [
        *map(new_schema, range(count)),
        *map(new_spec, range(count)),
        *({"action": "set-current-schema", "schema-id": number + 1} for number in range(count)),
    ]


def specs_that_come_and_go(count: int) -> list[Json]:
    removals = [{"action": "remove-partition-specs", "spec-ids": [number + 1]} for number in range(count)]
    return [*map(new_spec, range(count)), *removals]


def schemas_that_come_and_go(count: int) -> list[Json]:
    removals = [{"action": "remove-schemas", "schema-ids": [number + 1]} for number in range(count)]
    return [*map(new_schema, range(count)), *removals]


@pytest.mark.parametrize(
    "documents",
    [
        lambda count: list(map(new_schema, range(count))),
        lambda count: list(map(new_spec, range(count))),
        lambda count: list(map(new_order, range(count))),
        schemas_beside_specs,
        specs_that_come_and_go,
        schemas_that_come_and_go,
    ],
)
def test_ten_times_as_many_updates_are_about_ten_times_the_work(
    documents: Callable[[int], Sequence[Json]],
) -> None:
    base = table(partition_specs=[spec_json()])

    def work(count: int) -> int:
        updates = updates_of(*documents(count))
        return calls_in(lambda: apply_updates(base, updates, NOW_MS).finish(BASE_LOCATION))

    assert work(500) < 15 * work(50)


def test_names_of_specs_that_are_gone_are_free_for_columns() -> None:
    add: Json = new_spec(0)
    column_of_its_name: Json = {
        "action": "add-schema",
        "schema": schema_json(column(1, "id"), column(2, "b0", "string")),
    }
    set_last: Json = {"action": "set-current-schema", "schema-id": -1}
    first: Json = {"action": "set-current-schema", "schema-id": 0}
    remove: Json = {"action": "remove-partition-specs", "spec-ids": [1]}
    base = table(partition_specs=[spec_json()])

    with pytest.raises(InvalidUpdate, match=r"^Cannot create partition from name that exists in schema: b0$"):
        applied(base, add, first, column_of_its_name, set_last)
    after = committed(base, add, column_of_its_name, first, remove, set_last, first, set_last)
    assert after.current_schema_id == 1
    with pytest.raises(InvalidUpdate, match=r"^Cannot create partition from name that exists in schema: b0$"):
        applied(after, first, add, set_last | {"schema-id": 1})
