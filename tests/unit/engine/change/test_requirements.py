"""Requirements: each holds, fails with its words, and is derived where a writer needs it."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from app.engine.change.requirements import (
    KINDS,
    AssertCreate,
    check_requirements,
    check_view_requirements,
    expected_and_found,
    is_create,
)
from app.engine.model.table_metadata import TableMetadata, read_table_metadata
from app.errors import IcetowerError, InvalidUpdate, RequirementFailed
from tests.builders.derived_requirements import requirements_for
from tests.unit.engine.documents import (
    OTHER_UUID,
    UUID,
    Json,
    column,
    encoded,
    order_json,
    part,
    requirements_of,
    schema_json,
    set_ref,
    snapshot_json,
    spec_json,
    table,
    table_json,
    table_with_snapshots,
    updates_of,
    view,
)

REFS: Json = {
    "main": {"snapshot-id": 3, "type": "branch"},
    "audit": {"snapshot-id": 2, "type": "branch"},
    "test": {"snapshot-id": 1, "type": "branch"},
    "v1": {"snapshot-id": 1, "type": "tag"},
}
BASE = table_with_snapshots(3, refs=REFS)


def need(kind: str, **parts: object) -> Json:
    return {"type": kind} | {name.replace("_", "-"): value for name, value in parts.items()}


def failure(base: TableMetadata, *requirements: Json) -> str:
    with pytest.raises(RequirementFailed) as caught:
        check_requirements(base, requirements_of(*requirements))
    message = str(caught.value)
    assert message.startswith("Requirement failed: ")
    return message.removeprefix("Requirement failed: ")


@pytest.mark.parametrize(
    "requirement",
    [
        need("assert-table-uuid", uuid=UUID),
        need("assert-table-uuid", uuid=UUID.upper()),
        need("ASSERT-TABLE-UUID", uuid=UUID),
        need("assert-ref-snapshot-id", ref="main", snapshot_id=3),
        need("assert-ref-snapshot-id", ref="v1", snapshot_id=1),
        need("assert-ref-snapshot-id", ref="new", snapshot_id=None),
        need("assert-ref-snapshot-id", ref="new"),
        need("assert-last-assigned-field-id", last_assigned_field_id=2),
        need("assert-current-schema-id", current_schema_id=0),
        need("assert-last-assigned-partition-id", last_assigned_partition_id=1000),
        need("assert-default-spec-id", default_spec_id=0),
        need("assert-default-sort-order-id", default_sort_order_id=0),
    ],
)
def test_requirement_that_the_table_meets_holds(requirement: Json) -> None:
    check_requirements(BASE, requirements_of(requirement))


@pytest.mark.parametrize(
    ("requirement", "message"),
    [
        (need("assert-create"), "table already exists"),
        (
            need("assert-table-uuid", uuid=OTHER_UUID),
            f"UUID does not match: expected {UUID} != {OTHER_UUID}",
        ),
        (need("assert-ref-snapshot-id", ref="audit"), "branch audit was created concurrently"),
        (need("assert-ref-snapshot-id", ref="v1", snapshot_id=None), "tag v1 was created concurrently"),
        (
            need("assert-ref-snapshot-id", ref="main", snapshot_id=2),
            "branch main has changed: expected id 2 != 3",
        ),
        (need("assert-ref-snapshot-id", ref="v1", snapshot_id=3), "tag v1 has changed: expected id 3 != 1"),
        (
            need("assert-ref-snapshot-id", ref="gone", snapshot_id=2),
            "branch or tag gone is missing, expected 2",
        ),
        (
            need("assert-last-assigned-field-id", last_assigned_field_id=1),
            "last assigned field id changed: expected id 1 != 2",
        ),
        (
            need("assert-current-schema-id", current_schema_id=1),
            "current schema changed: expected id 1 != 0",
        ),
        (
            need("assert-last-assigned-partition-id", last_assigned_partition_id=999),
            "last assigned partition id changed: expected id 999 != 1000",
        ),
        (
            need("assert-default-spec-id", default_spec_id=4),
            "default partition spec changed: expected id 4 != 0",
        ),
        (
            need("assert-default-sort-order-id", default_sort_order_id=4),
            "default sort order changed: expected id 4 != 0",
        ),
    ],
)
def test_requirement_that_the_table_does_not_meet_fails_in_words(requirement: Json, message: str) -> None:
    assert failure(BASE, requirement) == message


def test_main_exists_where_there_is_a_current_snapshot() -> None:
    absent = need("assert-ref-snapshot-id", ref="main", snapshot_id=None)

    check_requirements(table(), requirements_of(absent))
    assert failure(table_with_snapshots(1), absent) == "branch main was created concurrently"


def test_first_requirement_that_fails_is_told() -> None:
    assert failure(
        BASE,
        need("assert-table-uuid", uuid=UUID),
        need("assert-default-spec-id", default_spec_id=4),
        need("assert-create"),
    ).startswith("default partition spec")


def test_no_requirements_always_hold() -> None:
    check_requirements(BASE, ())


def test_table_without_uuid_has_none_that_matches() -> None:
    document = table_json(1)
    del document["table-uuid"]
    base = read_table_metadata(encoded(document))

    assert failure(base, need("assert-table-uuid", uuid=UUID)).startswith("UUID does not match")


def test_requirement_for_views_is_refused_on_a_table() -> None:
    with pytest.raises(InvalidUpdate, match=r"^Cannot validate a table: assert-view-uuid is for views$"):
        check_requirements(BASE, requirements_of(need("assert-view-uuid", uuid=UUID)))


# ------------------------------------------------------------------------------------------------------------ parsing


@pytest.mark.parametrize("requirement", [need("assert-nothing"), {"type": 5}, {}, 7])
def test_unknown_requirement_is_refused_and_the_known_ones_are_named(requirement: object) -> None:
    with pytest.raises(ValidationError) as caught:
        requirements_of(requirement)  # type: ignore[arg-type]  # also what is no object

    assert "unknown or missing type; known are: assert-create, " in str(caught.value)
    assert all(kind in str(caught.value) for kind in KINDS)


@pytest.mark.parametrize(
    "requirement",
    [
        need("assert-table-uuid", uuid=None),
        need("assert-ref-snapshot-id", snapshot_id=1),
        need("assert-ref-snapshot-id", ref="main", snapshot_id="1"),
        need("assert-ref-snapshot-id", ref="main", snapshot_id=1.0),
        need("assert-last-assigned-field-id", last_assigned_field_id="2"),
        need("assert-current-schema-id", current_schema_id=True),
        need("assert-current-schema-id", current_schema_id=2**31),
        need("assert-default-spec-id"),
    ],
)
def test_requirement_with_a_wrong_part_is_refused(requirement: Json) -> None:
    with pytest.raises(ValidationError):
        requirements_of(requirement)


# ------------------------------------------------------------------------------------------------------------- create


def test_assert_create_alone_creates() -> None:
    create = need("assert-create")

    assert is_create(requirements_of(create))
    assert is_create(requirements_of(create, create))
    assert not is_create(())
    assert not is_create(requirements_of(need("assert-table-uuid", uuid=UUID)))


def test_assert_create_stands_beside_nothing_else() -> None:
    with pytest.raises(InvalidUpdate) as caught:
        is_create(
            requirements_of(
                need("assert-table-uuid", uuid=UUID),
                need("assert-create"),
                need("assert-ref-snapshot-id", ref="main"),
            )
        )

    assert str(caught.value) == (
        "Invalid create requirements: assert-create cannot stand beside assert-ref-snapshot-id, assert-table-uuid"
    )


# -------------------------------------------------------------------------------------------------------------- views


def test_view_is_known_by_its_uuid() -> None:
    base = view()
    check_view_requirements(base, requirements_of(need("assert-view-uuid", uuid=UUID.upper())))

    with pytest.raises(RequirementFailed) as caught:
        check_view_requirements(base, requirements_of(need("assert-view-uuid", uuid=OTHER_UUID)))
    assert str(caught.value) == (
        f"Requirement failed: view UUID does not match: expected {UUID} != {OTHER_UUID}"
    )


@pytest.mark.parametrize(
    "requirement",
    [
        need("assert-create"),
        need("assert-table-uuid", uuid=UUID),
        need("assert-ref-snapshot-id", ref="main"),
        need("assert-current-schema-id", current_schema_id=0),
    ],
)
def test_requirement_for_tables_is_refused_on_a_view(requirement: Json) -> None:
    with pytest.raises(InvalidUpdate, match=r"^Cannot validate a view: assert-.* is for tables$"):
        check_view_requirements(view(), requirements_of(requirement))


# --------------------------------------------------------------------------------------------- what a writer demands

UUID_NEEDED = need("assert-table-uuid", uuid=UUID)
SCHEMA: Json = {"action": "add-schema", "schema": schema_json(column(1, "a"))}
SPEC: Json = {"action": "add-spec", "spec": spec_json(part("category", 2))}
ORDER: Json = {"action": "add-sort-order", "sort-order": order_json()}
OTHER_BRANCHES = [
    need("assert-ref-snapshot-id", ref="audit", snapshot_id=2),
    need("assert-ref-snapshot-id", ref="test", snapshot_id=1),
]


def demanded(*updates: Json) -> list[Json]:
    derived = requirements_for(BASE, updates_of(*updates))
    check_requirements(BASE, derived)
    return [item.model_dump(by_alias=True, exclude_none=True) for item in derived]


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        (set_ref("main", 3), [need("assert-ref-snapshot-id", ref="main", snapshot_id=3)]),
        (set_ref("v1", 3), [need("assert-ref-snapshot-id", ref="v1", snapshot_id=1)]),
        (set_ref("new", 3), [need("assert-ref-snapshot-id", ref="new")]),
        (SCHEMA, [need("assert-last-assigned-field-id", last_assigned_field_id=2)]),
        (
            {"action": "set-current-schema", "schema-id": 0},
            [need("assert-current-schema-id", current_schema_id=0)],
        ),
        (SPEC, [need("assert-last-assigned-partition-id", last_assigned_partition_id=1000)]),
        ({"action": "set-default-spec", "spec-id": 0}, [need("assert-default-spec-id", default_spec_id=0)]),
        (
            {"action": "set-default-sort-order", "sort-order-id": 0},
            [need("assert-default-sort-order-id", default_sort_order_id=0)],
        ),
        (
            {"action": "remove-partition-specs", "spec-ids": [4]},
            [need("assert-default-spec-id", default_spec_id=0), *OTHER_BRANCHES],
        ),
        (
            {"action": "remove-schemas", "schema-ids": [4]},
            [need("assert-current-schema-id", current_schema_id=0), *OTHER_BRANCHES],
        ),
    ],
)
def test_update_that_builds_on_something_demands_that_it_stays(update: Json, expected: list[Json]) -> None:
    assert demanded(update) == [UUID_NEEDED, *expected]


@pytest.mark.parametrize(
    "update",
    [
        {"action": "add-snapshot", "snapshot": snapshot_json(9, 9)},
        {"action": "remove-snapshots", "snapshot-ids": [1]},
        {"action": "remove-snapshot-ref", "ref-name": "v1"},
        {"action": "set-properties", "updates": {"a": "b"}},
        {"action": "remove-properties", "removals": ["a"]},
        {"action": "set-location", "location": "s3://b/u"},
        {"action": "upgrade-format-version", "format-version": 3},
        {"action": "assign-uuid", "uuid": UUID},
        {"action": "remove-statistics", "snapshot-id": 1},
        {"action": "remove-encryption-key", "key-id": "k"},
        ORDER,
    ],
)
def test_update_that_builds_on_nothing_demands_only_the_table(update: Json) -> None:
    assert demanded(update) == [UUID_NEEDED]


def test_each_demand_is_made_once() -> None:
    assert demanded(
        SCHEMA,
        {"action": "set-current-schema", "schema-id": -1},
        SCHEMA,
        {"action": "remove-schemas", "schema-ids": [4]},
        {"action": "remove-partition-specs", "spec-ids": [4]},
        {"action": "set-default-spec", "spec-id": 0},
        set_ref("audit", 1),
        set_ref("audit", 3),
        set_ref("main", 1),
    ) == [
        UUID_NEEDED,
        need("assert-last-assigned-field-id", last_assigned_field_id=2),
        need("assert-current-schema-id", current_schema_id=0),
        *OTHER_BRANCHES,
        need("assert-default-spec-id", default_spec_id=0),
        need("assert-ref-snapshot-id", ref="main", snapshot_id=3),
    ]


def test_table_to_be_created_must_not_be_there() -> None:
    assert requirements_for(None, updates_of(SCHEMA, set_ref("main", 1))) == (AssertCreate(),)


@pytest.mark.parametrize(
    ("requirement", "expected", "found"),
    [
        (need("assert-create"), None, UUID),
        (need("assert-table-uuid", uuid=OTHER_UUID), OTHER_UUID, UUID),
        (need("assert-ref-snapshot-id", ref="main", snapshot_id=2), 2, 3),
        (need("assert-ref-snapshot-id", ref="main"), None, 3),
        (need("assert-ref-snapshot-id", ref="nope", snapshot_id=2), 2, None),
        (need("assert-last-assigned-field-id", last_assigned_field_id=7), 7, 2),
        (need("assert-current-schema-id", current_schema_id=7), 7, 0),
        (need("assert-last-assigned-partition-id", last_assigned_partition_id=7), 7, 1000),
        (need("assert-default-spec-id", default_spec_id=7), 7, 0),
        (need("assert-default-sort-order-id", default_sort_order_id=7), 7, 0),
    ],
)
def test_failure_carries_what_was_demanded_expected_and_found(
    requirement: Json, expected: object, found: object
) -> None:
    demanded = requirements_of(requirement)

    with pytest.raises(RequirementFailed) as caught:
        check_requirements(BASE, demanded)

    assert caught.value.requirement == demanded[0]
    assert (caught.value.expected, caught.value.found) == (expected, found)
    assert expected_and_found(BASE, demanded[0]) == (expected, found)
    assert expected_and_found(None, demanded[0]) == (expected, None)


def test_all_requirements_are_checked_if_somebody_wants_to_know() -> None:
    told: list[tuple[int, str]] = []

    def take(position: int, error: IcetowerError | None) -> bool:
        told.append((position, "" if error is None else type(error).__name__))
        return True

    requirements = [
        need("assert-default-spec-id", default_spec_id=7),
        need("assert-view-uuid", uuid=UUID),
        need("assert-table-uuid", uuid=UUID),
        need("assert-create"),
    ]
    check_requirements(BASE, requirements_of(*requirements), take)

    assert told == [(0, "RequirementFailed"), (1, "InvalidUpdate"), (2, ""), (3, "RequirementFailed")]
