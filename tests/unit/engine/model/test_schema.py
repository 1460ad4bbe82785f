"""Schemas: looking columns up, what makes a schema valid, fresh ids."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from app.engine.model.schema import (
    MAX_TYPE_LEVELS,
    MOST_IN_NAMES,
    Schema,
    check_format_version,
    check_schema,
    renumber,
)
from app.errors import InvalidMetadata, InvalidUpdate
from tests.unit.engine.documents import Json, column, list_of, map_of, schema, struct

NESTED = schema(
    column(1, "id", "long", required=True),
    column(2, "point", struct(column(3, "x", "double"), column(4, "y", "double")), required=True),
    column(5, "tags", list_of(6, "string")),
    column(7, "lines", list_of(8, struct(column(9, "text", "string")))),
    column(
        10, "spots", map_of(11, struct(column(12, "x", "int")), 13, struct(column(14, "x"), column(15, "z")))
    ),
)


def refusal(made: Schema) -> str:
    with pytest.raises(InvalidUpdate) as caught:
        check_schema(made)
    return str(caught.value)


def test_columns_are_found_with_their_dotted_names_and_parents() -> None:
    columns = NESTED.columns

    assert {field_id: item.name for field_id, item in columns.items()} == {
        1: "id",
        2: "point",
        3: "point.x",
        4: "point.y",
        5: "tags",
        6: "tags.element",
        7: "lines",
        8: "lines.element",
        9: "lines.element.text",
        10: "spots",
        11: "spots.key",
        12: "spots.key.x",
        13: "spots.value",
        14: "spots.value.x",
        15: "spots.value.z",
    }
    parents = {field_id: item.parent.field.id for field_id, item in columns.items() if item.parent}
    assert parents == {3: 2, 4: 2, 6: 5, 8: 7, 9: 8, 11: 10, 13: 10, 12: 11, 14: 13, 15: 13}
    assert NESTED.highest_field_id == 15


def test_short_names_pass_over_elements_and_values_that_are_structs_but_not_over_keys() -> None:
    ids = NESTED.ids_by_name

    assert ids["lines.text"] == ids["lines.element.text"] == 9
    assert ids["spots.x"] == ids["spots.value.x"] == 14
    assert ids["spots.key.x"] == 12
    assert ids["tags.element"] == 6
    assert "tags" in ids
    assert "spots.key" in ids


def test_full_name_wins_over_a_short_one() -> None:
    made = schema(column(1, "a", list_of(2, struct(column(3, "b")))), column(4, "a.b"))

    assert made.ids_by_name["a.b"] == 4


def test_schema_without_columns_is_one() -> None:
    empty = schema()

    check_schema(empty)

    assert empty.highest_field_id == 0


def test_highest_field_id_counts_identifier_fields() -> None:
    assert schema(column(1, "a"), identifiers=[9]).highest_field_id == 9


@pytest.mark.parametrize(
    "other",
    [
        schema(column(1, "b")),
        schema(column(2, "a")),
        schema(column(1, "a", "long")),
        schema(column(1, "a", required=True)),
        schema(column(1, "a", doc="x")),
        schema(column(1, "a", initial_default=1)),
        schema(column(1, "a", write_default=1)),
        schema(column(1, "a", vendor=1)),
        schema(column(1, "a"), column(2, "b")),
        schema(),
        schema(column(1, "a"), identifiers=[1]),
    ],
)
def test_schemas_that_differ_in_anything_but_the_id_are_not_the_same(other: Schema) -> None:
    assert not schema(column(1, "a")).same_columns(other)


def test_schemas_are_the_same_whatever_their_ids_and_the_order_of_identifiers() -> None:
    a = schema(column(1, "a"), column(2, "b"), identifiers=[1, 2])
    b = schema(column(1, "a"), column(2, "b"), identifiers=[2, 1], schema_id=4)

    assert a.same_columns(b)
    assert schema(identifiers=[]).same_columns(schema())
    assert a.fingerprint == b.fingerprint != schema(column(1, "b")).fingerprint


def test_valid_nested_schema_passes() -> None:
    check_schema(NESTED)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (schema(column(1, "a"), column(1, "b")), "Invalid schema: field id 1 is used more than once (b)"),
        (
            schema(column(1, "a", list_of(1, "int"))),
            "Invalid schema: field id 1 is used more than once (a.element)",
        ),
        (
            schema(column(1, "a", map_of(2, "int", 2, "int"))),
            "Invalid schema: field id 2 is used more than once (a.value)",
        ),
        (schema(column(1, "a"), column(2, "a")), "Invalid schema: multiple fields for name a"),
        (
            schema(column(1, "a", struct(column(2, "b"))), column(3, "a.b")),
            "Invalid schema: multiple fields for name a.b",
        ),
        (
            schema(column(1, "u", "unknown", required=True)),
            "Cannot create required field with unknown type: u",
        ),
        (
            schema(column(1, "u", list_of(2, "unknown", required=True))),
            "Cannot create required field with unknown type: u.element",
        ),
        (
            schema(column(1, "a", "int", initial_default="1")),
            "Invalid initial default for a: '1' is not a single value of its type",
        ),
        (
            schema(column(1, "a", struct(column(2, "b", "date", write_default=5)))),
            "Invalid write default for a.b: '5' is not a single value of its type",
        ),
        (
            schema(column(1, "a", struct(column(2, "b")), initial_default={})),
            "Invalid initial default for a: a nested type can have none",
        ),
    ],
)
def test_schema_that_contradicts_itself_is_refused(made: Schema, message: str) -> None:
    assert refusal(made) == message


def deep(levels: int) -> Schema:
    kind: Any = "int"
    for level in range(levels):
        kind = list_of(level + 2, kind)
    return schema(column(1, "deep", kind))


def test_names_that_fill_the_memory_together_are_refused() -> None:
    """That of a struct is in the names of all columns inside it."""
    length = MOST_IN_NAMES // 100

    def made(count: int) -> Schema:
        inside = (column(number, f"c{number:03}") for number in range(2, 2 + count))
        return schema(column(1, "s" * length, struct(*inside)))

    check_schema(made(90))
    assert refusal(made(100)) == (
        "Invalid schema: the names of its columns, with those that they are inside of, have more than 16777216 "
        "characters together"
    )


def test_names_of_metadata_that_was_made_elsewhere_do_not_fill_the_memory() -> None:
    """Those of this schema would take 100 GB."""
    inside = (column(number, f"c{number}") for number in range(2, 1_002))
    made = schema(column(1, "s" * (100 << 20), struct(*inside)))

    with pytest.raises(InvalidMetadata, match="Invalid schema 0: the names of its columns"):
        _ = made.columns


def test_types_nested_deeper_than_readers_can_take_are_refused() -> None:
    check_schema(deep(MAX_TYPE_LEVELS))

    assert refusal(deep(MAX_TYPE_LEVELS + 1)) == "Invalid schema: types are nested more than 40 levels deep"


@pytest.mark.parametrize(
    ("columns", "identifier", "reason"),
    [
        ([column(1, "a")], 7, "Cannot add fieldId 7 as an identifier field: field does not exist"),
        (
            [column(1, "a", struct(column(2, "b")), required=True)],
            1,
            "a as an identifier field: not a primitive",
        ),
        (
            [column(1, "a", "variant", required=True)],
            1,
            "a as an identifier field: not a primitive type field",
        ),
        (
            [column(1, "a", "float", required=True)],
            1,
            "a as an identifier field: must not be float or double",
        ),
        (
            [column(1, "a", "double", required=True)],
            1,
            "a as an identifier field: must not be float or double",
        ),
        ([column(1, "a")], 1, "a as an identifier field: not a required field"),
        (
            [column(1, "a", struct(column(2, "b", required=True)))],
            2,
            "a.b as an identifier field: must not be nested in an optional field a",
        ),
        (
            [column(1, "a", list_of(2, "int", required=True), required=True)],
            2,
            "a.element as an identifier field: must not be nested in a, a list or map",
        ),
        (
            [column(1, "a", map_of(2, "int", 3, "int", required=True), required=True)],
            2,
            "a.key as an identifier field: must not be nested in a, a list or map",
        ),
    ],
)
def test_field_that_cannot_identify_rows_is_refused(
    columns: list[Json], identifier: int, reason: str
) -> None:
    assert reason in refusal(schema(*columns, identifiers=[identifier]))


def test_required_field_in_required_structs_may_identify_rows() -> None:
    inner = struct(column(3, "c", "string", required=True))
    made = schema(
        column(1, "a", struct(column(2, "b", inner, required=True)), required=True), identifiers=[3]
    )

    check_schema(made)


def test_types_and_defaults_of_later_versions_are_listed() -> None:
    made = schema(
        column(1, "v", "variant"),
        column(2, "n", struct(column(3, "t", "timestamp_ns"))),
        column(4, "d", "int", initial_default=3, write_default=4),
    )

    with pytest.raises(InvalidUpdate) as caught:
        check_format_version(made, 2)

    assert str(caught.value) == (
        "Invalid schema for v2:\n"
        "- Invalid type for v: variant is not supported until v3\n"
        "- Invalid type for n.t: timestamp_ns is not supported until v3\n"
        "- Invalid initial default for d: non-null default (3) is not supported until v3"
    )
    check_format_version(made, 3)


def test_write_default_alone_needs_no_later_version() -> None:
    check_format_version(schema(column(1, "d", "int", write_default=4)), 1)


def test_fresh_ids_number_a_level_before_what_is_below() -> None:
    ids = itertools.count(1)

    fresh, new_ids = renumber(NESTED.replace(identifier_field_ids=(1,)), lambda: next(ids))

    assert {item.name: field_id for field_id, item in fresh.columns.items()} == {
        "id": 1,
        "point": 2,
        "tags": 3,
        "lines": 4,
        "spots": 5,
        "point.x": 6,
        "point.y": 7,
        "tags.element": 8,
        "lines.element": 9,
        "lines.element.text": 10,
        "spots.key": 11,
        "spots.value": 12,
        "spots.key.x": 13,
        "spots.value.x": 14,
        "spots.value.z": 15,
    }
    assert new_ids[15] == 15
    assert new_ids[5] == 3
    assert fresh.identifier_field_ids == (1,)


def test_fresh_ids_keep_unknown_fields_docs_and_defaults() -> None:
    made = schema(
        column(7, "a", list_of(9, "int") | {"vendor": 1}, doc="d", note=2), column(8, "b", initial_default=3)
    )

    fresh, _ = renumber(made, itertools.count(1).__next__)

    assert fresh.to_object()["fields"] == [
        column(1, "a", list_of(3, "int") | {"vendor": 1}, doc="d", note=2),
        column(2, "b", initial_default=3),
    ]
