"""Partition specs: reading old and new forms, and binding them to a schema."""

from __future__ import annotations

import json

import pytest

from app.engine.model.partition_spec import (
    PartitionSpec,
    UnboundPartitionSpec,
    bind_spec,
    check_names,
    check_readable,
    check_spec,
)
from app.errors import InvalidMetadata, InvalidUpdate
from tests.unit.engine.documents import (
    Json,
    column,
    encoded,
    list_of,
    map_of,
    part,
    schema,
    spec_json,
    struct,
)

COLUMNS = schema(
    column(1, "id", "long"),
    column(2, "name", "string"),
    column(3, "at", "timestamp"),
    column(4, "point", struct(column(5, "x", "int"))),
    column(6, "tags", list_of(7, "string")),
    column(8, "scores", map_of(9, "string", 10, "int")),
    column(11, "blob", "variant"),
)


def unbound(*fields: Json, **more: object) -> UnboundPartitionSpec:
    return UnboundPartitionSpec.from_json(encoded({"fields": list(fields)} | more))


def bound(*fields: Json, version: int = 2) -> PartitionSpec:
    return bind_spec(unbound(*fields), COLUMNS, version, 0)


def refusal(*fields: Json, version: int = 2) -> str:
    with pytest.raises(InvalidUpdate) as caught:
        bound(*fields, version=version)
    return str(caught.value)


def spec(*fields: Json, spec_id: int = 0) -> PartitionSpec:
    return PartitionSpec.from_json(encoded(spec_json(*fields, spec_id=spec_id)))


def test_missing_field_ids_are_numbered_from_1000() -> None:
    made = bound(part("a", 1), part("b", 2), part("c", 3, transform="day"))

    assert [field.field_id for field in made.fields] == [1000, 1001, 1002]
    assert made.highest_field_id == 1002


def test_missing_field_ids_stay_clear_of_those_that_were_sent() -> None:
    made = bound(part("a", 1, 1005), part("b", 2, 1001), part("c", 3))

    assert [field.field_id for field in made.fields] == [1005, 1001, 1006]


def test_bound_spec_has_canonical_transforms_and_keeps_unknown_fields() -> None:
    sent = unbound(
        part("a", 1, transform="BUCKET[016]") | {"note": 1, "field_id": 3, "self": 4}, spec_id=7, vendor=[2]
    )

    made = bind_spec(sent, COLUMNS, 2, 5)

    assert json.loads(made.to_json()) == {
        "spec-id": 5,
        "fields": [
            {
                "name": "a",
                "transform": "bucket[16]",
                "source-id": 1,
                "field-id": 1000,
                "note": 1,
                "field_id": 3,
                "self": 4,
            }
        ],
        "spec_id": 7,
        "vendor": [2],
    }


def test_spec_without_fields_is_unpartitioned() -> None:
    assert bound().is_unpartitioned
    assert bound().highest_field_id == 999
    assert bound(part("gone", 2, transform="void")).is_unpartitioned
    assert bound(part("gone", 2, transform="VOID")).is_unpartitioned
    assert not bound(part("a", 2)).is_unpartitioned


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (part("p", 99), "Cannot find source column for partition field: p (source-id 99)"),
        (part("p", 4), "Cannot use point as source of partition field: p: it is not a primitive type"),
        (part("p", 7), "Cannot use tags.element as source of partition field: p: it is inside a list or map"),
        (part("p", 9), "Cannot use scores.key as source of partition field: p: it is inside a list or map"),
        (
            part("p", 2, transform="day"),
            "Invalid source type string for transform day of partition field: p",
        ),
        (part("p", 11), "Invalid source type variant for transform identity of partition field: p"),
        (part("p", 1, transform="zorder"), "Unknown transform: 'zorder'"),
        (
            part("p", 1, transform="bucket[0]"),
            "Invalid transform 'bucket[0]': the parameter must be from 1 to 2147483647",
        ),
        (part("name", 1), "Cannot create identity partition sourced from different field in schema: name"),
        (
            part("name", 1, transform="bucket[4]"),
            "Cannot create partition from name that exists in schema: name",
        ),
        (part("p", 1, 999), "Cannot add partition field p: field id 999 is below 1000"),
        (part("p", 1, 2**31 - 1), "Cannot add partition field p: field id 2147483647 is reserved"),
    ],
)
def test_field_that_cannot_be_bound_is_refused(field: Json, message: str) -> None:
    assert refusal(field) == message


def test_names_and_field_ids_occur_once() -> None:
    assert refusal(part("p", 1), part("p", 2)) == "Cannot use partition name more than once: p"
    assert (
        refusal(part("p", 1, 1000), part("q", 2, 1000))
        == "Cannot use partition field id more than once: 1000"
    )


def test_field_beside_its_own_void_one_is_told_the_way_out() -> None:
    # So Java adds a field again that it had removed from a table of version 1.
    assert refusal(part("p_1000", 1, 1000, transform="void"), part("p", 1, 1000)) == (
        "Cannot use partition field id more than once: 1000; the void field of the same column has it: "
        "remove that field first"
    )


def test_identity_partition_may_have_the_name_of_its_source() -> None:
    assert bound(part("name", 2)).fields[0].name == "name"


def test_source_inside_a_struct_can_be_partitioned_by() -> None:
    assert bound(part("x", 5)).fields[0].source_id == 5


def test_void_field_needs_no_source() -> None:
    assert bound(part("gone", 99, transform="void"), part("p", 4, transform="void")).is_unpartitioned


def test_v1_needs_field_ids_in_sequence() -> None:
    bound(part("a", 1, 1000), part("b", 2, 1001), version=1)

    message = "Cannot add partition spec: v1 tables need field ids in sequence from 1000, found 1002 for b"
    assert refusal(part("a", 1, 1000), part("b", 2, 1002), version=1) == message


def test_single_source_of_v3_is_read_as_the_source() -> None:
    field = {"name": "p", "transform": "identity", "source-ids": [2], "field-id": 1000}

    assert spec(field).fields[0].source_id == 2
    assert unbound(field).fields[0].source_id == 2
    assert spec(field | {"source-id": 3}).fields[0].source_id == 3


@pytest.mark.parametrize("sources", [[], [1, 2]])
def test_several_sources_are_refused(sources: list[int]) -> None:
    field = {"name": "p", "transform": "identity", "source-ids": sources, "field-id": 1000}

    with pytest.raises(InvalidMetadata, match="transforms of several source columns are not supported"):
        spec(field)
    with pytest.raises(InvalidMetadata, match="transforms of several source columns are not supported"):
        unbound(field)


@pytest.mark.parametrize("sources", [None, 5, "1"])
def test_sources_that_are_no_list_leave_the_source_missing(sources: object) -> None:
    with pytest.raises(InvalidMetadata, match=r"fields\[0\].source-id: Field required"):
        spec({"name": "p", "transform": "identity", "source-ids": sources, "field-id": 1000})


def test_spec_of_an_early_v1_writer_is_numbered_when_read() -> None:
    made = PartitionSpec.from_json(encoded({"spec-id": 0, "fields": [part("a", 1), part("b", 2)]}))

    assert [field.field_id for field in made.fields] == [1000, 1001]


@pytest.mark.parametrize("fields", [[part("a", 1), part("b", 2, 1001)], [5], 7])
def test_spec_with_some_field_ids_missing_is_refused(fields: object) -> None:
    with pytest.raises(InvalidMetadata, match=r"^fields"):
        PartitionSpec.from_json(encoded({"spec-id": 0, "fields": fields}))


def test_specs_are_the_same_whatever_their_ids_and_field_ids() -> None:
    a = spec(part("a", 1, 1000, "bucket[4]"), part("b", 2, 1001))

    assert a.same_fields(spec(part("a", 1, 1007, "BUCKET[4]"), part("b", 2, 1001), spec_id=3))
    assert not a.same_fields(spec(part("b", 2, 1001), part("a", 1, 1000, "bucket[4]")))
    assert not a.same_fields(spec(part("a", 1, 1000, "bucket[4]")))
    assert not a.same_fields(spec(part("a", 1, 1000, "bucket[8]"), part("b", 2, 1001)))
    assert not a.same_fields(spec(part("x", 1, 1000, "bucket[4]"), part("b", 2, 1001)))
    assert not a.same_fields(spec(part("a", 3, 1000, "bucket[4]"), part("b", 2, 1001)))


def test_transform_of_a_later_version_passes_where_it_is_already() -> None:
    check_spec(spec(part("p", 1, 1000, "zorder[2]")), COLUMNS)

    with pytest.raises(InvalidUpdate, match="Cannot find source column"):
        check_spec(spec(part("p", 99, 1000, "zorder[2]")), COLUMNS)


def test_spec_of_old_files_may_have_lost_its_source_but_not_its_type() -> None:
    check_readable(spec(part("gone", 99, 1000, "bucket[4]")), COLUMNS)
    check_readable(spec(part("p", 1, 1000, "zorder")), COLUMNS)
    check_readable(spec(part("p", 4, 1000)), COLUMNS)
    check_readable(spec(part("p", 1, 1000, "bucket[4]")), COLUMNS)

    with pytest.raises(InvalidUpdate) as caught:
        check_readable(spec(part("p", 2, 1000, "day"), spec_id=6), COLUMNS)
    assert str(caught.value) == "Cannot change the type of name: partition spec 6 applies day to it"
    with pytest.raises(InvalidUpdate, match="applies bucket"):
        check_readable(spec(part("p", 4, 1000, "bucket[2]")), COLUMNS)


def test_partition_name_may_not_be_that_of_another_column() -> None:
    check_names(spec(part("name", 2, 1000, "bucket[4]"), part("free", 1, 1001)), COLUMNS)

    with pytest.raises(InvalidUpdate, match=r"^Cannot create partition from name that exists in schema: id$"):
        check_names(spec(part("id", 2, 1000, "bucket[4]")), COLUMNS)


def test_name_of_a_partition_field_is_not_longer_than_answers_can_repeat() -> None:
    bound(part("n" * 1_000, 1))

    assert refusal(part("n" * 1_001, 1)) == (
        f"Cannot add partition field {'n' * 100}…: its name has 1001 characters, more than 1000"
    )
