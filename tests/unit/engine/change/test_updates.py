"""Updates as they are parsed: names in any case, old spellings, numbers, and what is unknown."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from app.engine.change.updates import (
    ACTIONS,
    AddSchema,
    AddSnapshot,
    AssignUuid,
    RemoveProperties,
    RemoveSnapshots,
    SetProperties,
    SetSnapshotRef,
    SetStatistics,
    Update,
)
from tests.unit.engine.documents import (
    UUID,
    Json,
    column,
    schema_json,
    set_ref,
    snapshot_json,
    updates_of,
)


def refusal(update: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        updates_of(update)
    return str(caught.value)


@pytest.mark.parametrize("action", ["assign-uuid", "ASSIGN-UUID", "Assign-Uuid"])
def test_action_is_known_in_any_case(action: str) -> None:
    (update,) = updates_of({"action": action, "uuid": UUID})

    assert update == AssignUuid.model_validate({"uuid": UUID})
    assert update.action == "assign-uuid"


@pytest.mark.parametrize("update", [{"action": "zap"}, {"action": 5}, {"uuid": UUID}, {"action": None}])
def test_unknown_action_is_refused_and_the_known_ones_are_named(update: Json) -> None:
    message = refusal(update)

    assert "unknown or missing action; known are: add-encryption-key, " in message
    assert all(action in message for action in ACTIONS)


@pytest.mark.parametrize("update", [5, "add-schema", None, []])
def test_update_that_is_no_object_is_refused(update: object) -> None:
    assert "unknown or missing action" in refusal(update)


def test_properties_are_read_under_their_old_names_too() -> None:
    new, old, both = updates_of(
        {"action": "set-properties", "updates": {"a": "1"}},
        {"action": "set-properties", "updated": {"a": "1"}},
        {"action": "set-properties", "updates": {"a": "1"}, "updated": {"a": "2"}},
    )

    assert new == old == both == SetProperties.model_validate({"updates": {"a": "1"}})
    assert new.model_dump(by_alias=True) == {"action": "set-properties", "updates": {"a": "1"}}


def test_removals_are_read_under_their_old_names_too() -> None:
    new, old, both = updates_of(
        {"action": "remove-properties", "removals": ["a"]},
        {"action": "remove-properties", "removed": ["a"]},
        {"action": "remove-properties", "removals": ["a"], "removed": ["b"]},
    )

    assert new == old == both == RemoveProperties.model_validate({"removals": ["a"]})


def test_fields_that_the_protocol_gave_up_say_nothing() -> None:
    file = {
        "snapshot-id": 7,
        "statistics-path": "s",
        "file-size-in-bytes": 1,
        "file-footer-size-in-bytes": 1,
        "blob-metadata": [],
    }

    schema, statistics = updates_of(
        {"action": "add-schema", "schema": schema_json(column(1, "a")), "last-column-id": 99},
        {"action": "set-statistics", "snapshot-id": 5, "statistics": file},
    )

    assert isinstance(schema, AddSchema)
    assert schema.schema_.highest_field_id == 1
    assert isinstance(statistics, SetStatistics)
    assert statistics.statistics.snapshot_id == 7


def test_fields_nobody_knows_are_passed_over_but_kept_inside_documents() -> None:
    (update,) = updates_of(
        {"action": "add-snapshot", "novel": 1, "snapshot": snapshot_json(1, 1, novel=[None])}
    )

    assert isinstance(update, AddSnapshot)
    assert update.snapshot.unknown_fields == {"novel": [None]}
    assert "novel" not in update.model_dump(by_alias=True)


@pytest.mark.parametrize("kind", ["branch", "BRANCH", "Tag"])
def test_kind_of_a_ref_is_known_in_any_case(kind: str) -> None:
    (update,) = updates_of(set_ref("v1", 5, kind))

    assert isinstance(update, SetSnapshotRef)
    assert update.type == kind.lower()


@pytest.mark.parametrize(
    ("update", "part"),
    [
        ({"action": "assign-uuid", "uuid": None}, "uuid"),
        ({"action": "assign-uuid", "uuid": "no uuid"}, "not a UUID: 'no uuid'"),
        ({"action": "assign-uuid", "uuid": UUID.replace("-", "")}, "not a UUID"),
        ({"action": "assign-uuid"}, "Field required"),
        ({"action": "upgrade-format-version", "format-version": "2"}, "valid integer"),
        ({"action": "upgrade-format-version", "format-version": 2.0}, "valid integer"),
        ({"action": "set-current-schema", "schema-id": True}, "valid integer"),
        ({"action": "set-current-schema", "schema-id": 2**31}, "less than or equal"),
        ({"action": "set-default-spec", "spec-id": "0"}, "valid integer"),
        ({"action": "set-default-sort-order", "sort-order-id": None}, "valid integer"),
        ({"action": "remove-snapshots", "snapshot-ids": [2**63]}, "less than or equal"),
        ({"action": "remove-snapshots", "snapshot-ids": ["1"]}, "valid integer"),
        ({"action": "remove-snapshots", "snapshot-ids": 1}, "valid"),
        (set_ref("", 1), "at least 1 character"),
        (set_ref("a", 1, "head"), "'branch' or 'tag'"),
        (set_ref("a", 1, min_snapshots_to_keep=2**31), "less than or equal"),
        ({"action": "set-location", "location": None}, "valid string"),
        ({"action": "set-location", "location": ""}, "at least 1 character"),
        ({"action": "set-properties", "updates": {"a": 1}}, "valid string"),
        ({"action": "set-properties", "updates": {"a": None}}, "valid string"),
        ({"action": "set-statistics", "statistics": None}, "statistics"),
        ({"action": "add-schema", "schema": {"type": "struct"}}, "fields"),
        ({"action": "add-snapshot", "snapshot": {"snapshot-id": 1, "timestamp-ms": 1}}, "manifest-list"),
        ({"action": "remove-schemas", "schema-ids": [1.5]}, "valid integer"),
    ],
)
def test_part_of_the_wrong_kind_is_refused(update: Json, part: str) -> None:
    assert part in refusal(update)


def test_update_made_in_python_finds_its_kind_too() -> None:
    update = RemoveSnapshots.model_validate({"snapshot-ids": [1]})

    assert TypeAdapter(Update).validate_python(update) == update
    with pytest.raises(ValidationError, match="unknown or missing action"):
        TypeAdapter(Update).validate_python(object())
