"""Edits of uuid, format version, location and properties."""

from __future__ import annotations

import pytest

from app.engine.change.apply import apply_to_new
from app.engine.change.edits.properties import without_trailing_slash
from app.engine.model.table_metadata import read_table_metadata
from app.errors import InvalidUpdate
from tests.unit.engine.documents import (
    OTHER_UUID,
    UUID,
    Json,
    applied,
    column,
    committed,
    encoded,
    schema_json,
    table,
    table_json,
    updates_of,
)


def refusal(version: int, *updates: Json) -> str:
    with pytest.raises(InvalidUpdate) as caught:
        applied(table(version), *updates)
    return str(caught.value)


def upgrade(version: int) -> Json:
    return {"action": "upgrade-format-version", "format-version": version}


@pytest.mark.parametrize("uuid", [UUID, UUID.upper()])
def test_uuid_that_is_the_tables_own_changes_nothing(uuid: str) -> None:
    draft = applied(table(), {"action": "assign-uuid", "uuid": uuid})

    assert not draft.has_changes
    assert draft.table_uuid == UUID


def test_table_keeps_its_uuid_for_life() -> None:
    assert refusal(2, {"action": "assign-uuid", "uuid": OTHER_UUID}) == (
        f"Cannot reassign uuid: the table has {UUID}, the update says {OTHER_UUID}"
    )


def test_table_without_uuid_gets_one_once() -> None:
    document = table_json(1)
    del document["table-uuid"]
    base = read_table_metadata(encoded(document))

    draft = applied(base, {"action": "assign-uuid", "uuid": UUID})

    assert draft.has_changes
    assert draft.table_uuid == UUID
    with pytest.raises(InvalidUpdate, match=r"^Cannot reassign uuid"):
        applied(base, *({"action": "assign-uuid", "uuid": uuid} for uuid in (UUID, OTHER_UUID)))


def test_uuid_of_a_new_table_is_the_last_that_was_assigned() -> None:
    draft = apply_to_new(
        updates_of(*({"action": "assign-uuid", "uuid": uuid} for uuid in (UUID, OTHER_UUID))), 0
    )

    assert draft.table_uuid == OTHER_UUID


@pytest.mark.parametrize(("old", "new"), [(1, 2), (1, 3), (2, 3)])
def test_format_version_goes_up(old: int, new: int) -> None:
    assert committed(table(old), upgrade(new)).format_version == new


@pytest.mark.parametrize("version", [1, 2, 3])
def test_format_version_that_is_there_already_changes_nothing(version: int) -> None:
    assert not applied(table(version), upgrade(version)).has_changes


@pytest.mark.parametrize(("old", "new"), [(2, 1), (3, 2), (3, 0), (1, -4)])
def test_format_version_never_goes_down(old: int, new: int) -> None:
    assert refusal(old, upgrade(new)) == f"Cannot downgrade v{old} table to v{new}"


@pytest.mark.parametrize("version", [4, 2**31 - 1])
def test_format_version_that_nobody_knows_is_refused(version: int) -> None:
    assert refusal(2, upgrade(version)) == (
        f"Cannot upgrade table to unsupported format version: v{version} (supported: v3)"
    )


def test_upgrade_does_not_make_a_wrong_schema_right() -> None:
    base = table(
        1, schemas=[schema_json(column(1, "v", "variant"))], partition_specs=[{"spec-id": 0, "fields": []}]
    )

    with pytest.raises(InvalidUpdate, match="variant is not supported until v3"):
        applied(base, upgrade(2))
    assert committed(base, upgrade(3)).format_version == 3


@pytest.mark.parametrize("location", ["s3://bucket/t", "s3://bucket/t/", "s3://bucket/t//"])
def test_location_that_is_the_same_changes_nothing(location: str) -> None:
    assert not applied(table(), {"action": "set-location", "location": location}).has_changes


def test_location_moves() -> None:
    after = committed(table(), {"action": "set-location", "location": "file:/data/ü//x/"})

    assert after.location == "file:/data/ü//x"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("s3://b/t", "s3://b/t"),
        ("s3://b/t///", "s3://b/t"),
        ("s3://", "s3://"),
        ("file:///", "file://"),
        ("file:/", "file:"),
        ("/", "/"),
        ("///", "/"),
        ("", ""),
        ("s3://b/a%2F/", "s3://b/a%2F"),
        ("s3://///", "s3://"),
        ("file://", "file://"),
        ("s3://b/t" + "/" * 1_000_000, "s3://b/t"),
    ],
)
def test_only_slashes_at_the_end_are_dropped(given: str, kept: str) -> None:
    assert without_trailing_slash(given) == kept


def test_properties_are_merged_and_removed() -> None:
    base = table(properties={"a": "1", "b": "2"})

    after = committed(
        base,
        {"action": "set-properties", "updates": {"b": "3", "c": "4"}},
        {"action": "remove-properties", "removals": ["a", "absent"]},
    )

    assert after.properties == {"b": "3", "c": "4"}
    assert base.properties == {"a": "1", "b": "2"}


@pytest.mark.parametrize(
    ("update", "changes"),
    [
        ({"action": "set-properties", "updates": {"a": "1"}}, True),
        ({"action": "set-properties", "updates": {}}, False),
        ({"action": "remove-properties", "removals": ["absent"]}, True),
        ({"action": "remove-properties", "removals": []}, False),
    ],
)
def test_equal_properties_count_as_a_change_and_none_do_not(update: Json, *, changes: bool) -> None:
    assert applied(table(properties={"a": "1"}), update).has_changes is changes


def test_property_that_makes_no_sense_is_refused() -> None:
    message = refusal(2, {"action": "set-properties", "updates": {"commit.retry.num-retries": "-1"}})

    assert message == "Table property commit.retry.num-retries must be at least 0, found -1"


@pytest.mark.parametrize("name", ["format-version", "uuid", "current-snapshot-id", "default-sort-order"])
def test_what_clients_only_show_as_a_property_is_not_stored(name: str) -> None:
    message = refusal(2, {"action": "set-properties", "updates": {"a": "b", name: "3"}})

    assert message.startswith(f"Table property {name} cannot be set, as it only shows what the table is")
    assert ("use upgrade-format-version" in message) is (name == "format-version")
    committed(table(properties={name: "3"}), {"action": "remove-properties", "removals": [name]})


def test_property_that_makes_no_sense_can_be_removed() -> None:
    base = table(properties={"write.metadata.previous-versions-max": "many"})

    with pytest.raises(InvalidUpdate, match="must be a whole number"):
        committed(base, {"action": "set-properties", "updates": {"a": "b"}})
    committed(base, {"action": "remove-properties", "removals": ["write.metadata.previous-versions-max"]})


def set_key(key_id: str) -> Json:
    return {"action": "set-properties", "updates": {"encryption.key-id": key_id}}


REMOVED_KEY: Json = {"action": "remove-properties", "removals": ["encryption.key-id"]}


@pytest.mark.parametrize("updates", [[set_key("other")], [REMOVED_KEY], [REMOVED_KEY, set_key("other")]])
def test_encrypted_table_keeps_its_key_for_life(updates: list[Json]) -> None:
    base = table(3, properties={"encryption.key-id": "k"})

    with pytest.raises(InvalidUpdate, match=r"^Cannot change or remove encryption\.key-id: "):
        committed(base, *updates)


@pytest.mark.parametrize("version", [1, 2])
def test_key_needs_a_format_version_that_has_keys(version: int) -> None:
    with pytest.raises(
        InvalidUpdate, match=f"^Invalid properties for v{version}: encryption.key-id needs format "
    ):
        committed(table(version), set_key("k"))
    assert committed(table(version), upgrade(3), set_key("k")).is_encrypted
    committed(table(version, properties={"encryption.key-id": "k"}), set_key("k"))


@pytest.mark.parametrize("updates", [[set_key("k")], [REMOVED_KEY, set_key("k")]])
def test_key_of_an_encrypted_table_can_be_named_again(updates: list[Json]) -> None:
    base = table(3, properties={"encryption.key-id": "k"})

    assert committed(base, *updates).properties == {"encryption.key-id": "k"}


def test_empty_parquet_codec_means_that_none_is_chosen() -> None:
    base = table(2)
    chosen: Json = {"action": "set-properties", "updates": {"write.parquet.compression-codec": "gzip"}}
    given: Json = {
        "action": "set-properties",
        "updates": {"write.parquet.compression-codec": "", "write.format.default": "PARQUET"},
    }
    taken_back: Json = {"action": "remove-properties", "removals": ["write.parquet.compression-codec"]}

    for updates in ([given], [chosen, given], [given, taken_back]):
        draft = applied(base, *updates)
        assert draft.has_changes
        assert draft.properties == {**base.properties, "write.format.default": "PARQUET"}
    assert refusal(
        2, {"action": "set-properties", "updates": {"write.parquet.compression-codec": " "}}
    ).startswith("Table property write.parquet.compression-codec must be ")
