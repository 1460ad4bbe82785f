"""What makes one schema differ from another: each change has its name, and only changes do."""

from __future__ import annotations

import pytest

from app.engine.diff.schema_changes import (
    ColumnAdded,
    ColumnDropped,
    ColumnRegrouped,
    ColumnRenamed,
    ColumnsReordered,
    DefaultChanged,
    DocChanged,
    IdentifierFieldsChanged,
    RequiredChanged,
    SchemaChange,
    TypeChanged,
    schema_changes,
    shown_type,
)
from app.engine.model.data_types.types import parse_type
from app.engine.model.ids import FieldId
from app.engine.model.schema import Schema
from tests.unit.engine.documents import column, list_of, map_of, schema, struct

POINT = column(2, "point", struct(column(3, "x", "double"), column(4, "y", "double")))
TAGS = column(5, "tags", list_of(6, "string"))
SPOTS = column(7, "spots", map_of(8, "string", 9, struct(column(10, "z"))))
OLD = schema(column(1, "id", "long"), POINT, TAGS, SPOTS)


def field(number: int) -> FieldId:
    return FieldId(number)


def test_schema_does_not_differ_from_itself_whatever_its_id() -> None:
    assert schema_changes(OLD, OLD.with_id(9)) == ()


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (
            schema(column(1, "id", "long"), POINT, TAGS, SPOTS, column(11, "n", "string", required=True)),
            ColumnAdded(field(11), "n", "string", required=True),
        ),
        (
            schema(
                column(1, "id", "long"),
                POINT,
                TAGS,
                SPOTS,
                column(11, "s", struct(column(12, "a"), column(13, "b", list_of(14, "date")))),
            ),
            ColumnAdded(field(11), "s", "struct<a: int, b: list<date>>", required=False),
        ),
        (schema(POINT, TAGS, SPOTS), ColumnDropped(field(1), "id", "long")),
        (
            schema(column(1, "id", "long"), TAGS, SPOTS),
            ColumnDropped(field(2), "point", "struct<x: double, y: double>"),
        ),
        (
            schema(
                column(1, "id", "long"), column(2, "point", struct(column(3, "x", "double"))), TAGS, SPOTS
            ),
            ColumnDropped(field(4), "point.y", "double"),
        ),
        (
            schema(
                column(1, "id", "long"),
                POINT,
                TAGS,
                column(7, "spots", map_of(8, "string", 9, struct(column(10, "z"), column(11, "w")))),
            ),
            ColumnAdded(field(11), "spots.value.w", "int", required=False),
        ),
        (schema(column(1, "key", "long"), POINT, TAGS, SPOTS), ColumnRenamed(field(1), "id", "key")),
        (
            schema(
                column(1, "id", "long"),
                column(2, "point", struct(column(3, "lon", "double"), column(4, "y", "double"))),
                TAGS,
                SPOTS,
            ),
            ColumnRenamed(field(3), "point.x", "lon"),
        ),
        (
            schema(column(1, "id", "string"), POINT, TAGS, SPOTS),
            TypeChanged(field(1), "id", "long", "string"),
        ),
        (
            schema(column(1, "id", "long"), POINT, column(5, "tags", list_of(6, "int")), SPOTS),
            TypeChanged(field(6), "tags.element", "string", "int"),
        ),
        (
            schema(column(1, "id", "long"), column(2, "point", "binary"), TAGS, SPOTS),
            TypeChanged(field(2), "point", "struct<x: double, y: double>", "binary"),
        ),
        (
            schema(column(1, "id", "long"), POINT, column(5, "tags", map_of(16, "int", 17, "int")), SPOTS),
            TypeChanged(field(5), "tags", "list<string>", "map<int, int>"),
        ),
        (
            schema(column(1, "id", "long", required=True), POINT, TAGS, SPOTS),
            RequiredChanged(field(1), "id", required=True),
        ),
        (
            schema(
                column(1, "id", "long"), POINT, column(5, "tags", list_of(6, "string", required=True)), SPOTS
            ),
            RequiredChanged(field(6), "tags.element", required=True),
        ),
        (schema(column(1, "id", "long", doc="d"), POINT, TAGS, SPOTS), DocChanged(field(1), "id")),
        (
            schema(column(1, "id", "long", initial_default=1), POINT, TAGS, SPOTS),
            DefaultChanged(field(1), "id", "initial-default"),
        ),
        (
            schema(column(1, "id", "long", write_default=1), POINT, TAGS, SPOTS),
            DefaultChanged(field(1), "id", "write-default"),
        ),
        (
            schema(POINT, column(1, "id", "long"), TAGS, SPOTS),
            ColumnsReordered(
                None, (field(1), field(2), field(5), field(7)), (field(2), field(1), field(5), field(7))
            ),
        ),
        (
            schema(
                column(1, "id", "long"),
                column(2, "point", struct(column(4, "y", "double"), column(3, "x", "double"))),
                TAGS,
                SPOTS,
            ),
            ColumnsReordered(field(2), (field(3), field(4)), (field(4), field(3))),
        ),
        (
            schema(column(1, "id", "long"), POINT, TAGS, SPOTS, identifiers=[1]),
            IdentifierFieldsChanged(frozenset(), frozenset({1})),
        ),
    ],
)
def test_each_change_has_its_name(new: Schema, expected: SchemaChange) -> None:
    assert schema_changes(OLD, new) == (expected,)


def test_added_and_dropped_columns_are_no_reordering() -> None:
    new = schema(column(11, "first"), POINT, column(12, "between"), SPOTS)

    kinds = [type(change) for change in schema_changes(OLD, new)]

    assert kinds == [ColumnDropped, ColumnDropped, ColumnAdded, ColumnAdded]


def test_column_that_moves_into_a_new_struct_is_regrouped() -> None:
    new = schema(column(11, "s", struct(column(1, "id", "long"))), POINT, TAGS, SPOTS)

    assert schema_changes(OLD, new) == (
        ColumnAdded(field(11), "s", "struct<id: long>", required=False),
        ColumnRegrouped(field(1), "id", None, field(11)),
    )


def test_column_that_moves_out_of_a_dropped_struct_is_regrouped() -> None:
    new = schema(column(1, "id", "long"), column(3, "x", "double"), TAGS, SPOTS)

    assert schema_changes(OLD, new) == (
        ColumnDropped(field(2), "point", "struct<x: double, y: double>"),
        ColumnRegrouped(field(3), "point.x", field(2), None),
    )


def test_several_changes_of_one_column_are_told_apart() -> None:
    new = schema(column(1, "key", "string", required=True, doc="d"), POINT, TAGS, SPOTS)

    assert schema_changes(OLD, new) == (
        ColumnRenamed(field(1), "id", "key"),
        TypeChanged(field(1), "id", "long", "string"),
        RequiredChanged(field(1), "id", required=True),
        DocChanged(field(1), "id"),
    )


def test_children_of_a_type_that_is_gone_are_no_changes_of_their_own() -> None:
    new = schema(column(1, "id", "long"), column(2, "point", list_of(20, "int")), TAGS, SPOTS)

    assert schema_changes(OLD, new) == (
        TypeChanged(field(2), "point", "struct<x: double, y: double>", "list<int>"),
    )


def test_fields_that_nobody_knows_are_no_change() -> None:
    assert schema_changes(OLD, schema(column(1, "id", "long", vendor=1), POINT, TAGS, SPOTS)) == ()


def test_types_are_shown_in_one_line() -> None:
    kind = parse_type(
        map_of(1, "string", 2, list_of(3, struct(column(4, "a", "decimal(9,2)"), column(5, "b"))))
    )

    assert shown_type(kind) == "map<string, list<struct<a: decimal(9, 2), b: int>>>"
