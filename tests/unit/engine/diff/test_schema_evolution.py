"""Which changes of a schema the table format allows, version by version."""

from __future__ import annotations

from typing import Any

import pytest

from app.engine.diff.schema_changes import (
    ColumnAdded,
    ColumnDropped,
    ColumnRegrouped,
    DefaultChanged,
    RequiredChanged,
    TypeChanged,
)
from app.engine.diff.schema_evolution import can_promote, incompatible_changes
from app.engine.model.partition_spec import PartitionSpec
from app.engine.model.schema import Schema
from app.engine.model.types import parse_type
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

ALWAYS = [
    ("int", "long"),
    ("float", "double"),
    ("decimal(9,2)", "decimal(10,2)"),
    ("decimal(1,0)", "decimal(38,0)"),
]
SINCE_V3 = [
    *(("date", "timestamp"), ("date", "timestamp_ns"), ("unknown", "int"), ("unknown", "variant")),
    *(("unknown", struct(column(9, "a"))), ("unknown", list_of(9, "int"))),
]
NEVER = [
    *(("long", "int"), ("double", "float"), ("int", "double"), ("int", "string"), ("string", "int")),
    *(("decimal(9,2)", "decimal(9,3)"), ("decimal(9,2)", "decimal(8,2)"), ("decimal(9,2)", "decimal(10,3)")),
    *(("date", "timestamptz"), ("date", "timestamptz_ns"), ("date", "long"), ("timestamp", "date")),
    *(
        ("timestamp", "timestamp_ns"),
        ("timestamp", "timestamptz"),
        ("string", "binary"),
        ("binary", "string"),
    ),
    *(("fixed[4]", "fixed[8]"), ("fixed[4]", "binary"), ("uuid", "string"), ("int", "unknown")),
    *(("int", struct(column(9, "a"))), (struct(column(9, "a")), "int"), (list_of(9, "int"), "int")),
    *((list_of(9, "int"), struct(column(9, "a"))), (struct(column(9, "a")), map_of(9, "int", 10, "int"))),
]


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize(
    ("old", "new", "since"),
    [
        *((old, new, 1) for old, new in ALWAYS),
        *((old, new, 3) for old, new in SINCE_V3),
        *((old, new, 99) for old, new in NEVER),
    ],
)
def test_type_is_promoted_exactly_where_the_format_says(old: Any, new: Any, since: int, version: int) -> None:
    allowed = version >= since

    found = incompatible_changes(schema(column(1, "a", old)), schema(column(1, "a", new)), version)

    assert can_promote(parse_type(old), parse_type(new), version) is allowed
    type_changes = [item for item in found if isinstance(item.change, TypeChanged)]
    assert (type_changes == []) is allowed
    for item in type_changes:
        assert item.reason.startswith("a cannot change from ")
        assert item.reason.endswith(f" in v{version}")


def single(old: Schema, new: Schema, version: int = 2, *specs: PartitionSpec) -> tuple[type, str]:
    """Return the one change that is forbidden, and why."""
    (found,) = incompatible_changes(old, new, version, specs)
    return type(found.change), found.reason


A = column(1, "a")


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (schema(A), schema(A, column(2, "b"))),
        (schema(A, column(2, "b")), schema(A)),
        (schema(A), schema(column(1, "renamed", doc="d"))),
        (schema(A, column(2, "b")), schema(column(2, "b"), A)),
        (schema(column(1, "a", required=True)), schema(A)),
        (schema(A), schema(column(1, "a", write_default=1))),
        (
            schema(column(1, "s", struct(column(2, "x")))),
            schema(column(1, "s", struct(column(3, "y"), column(2, "z", "long")))),
        ),
        (
            schema(column(1, "l", list_of(2, "int", required=True))),
            schema(column(1, "l", list_of(2, "long"))),
        ),
        (
            schema(column(1, "m", map_of(2, "string", 3, struct(column(4, "x")), required=True))),
            schema(column(1, "m", map_of(2, "string", 3, struct(column(5, "y"))))),
        ),
        (schema(column(1, "m", map_of(2, "string", 3, "int"))), schema(column(9, "b"))),
        (schema(A), schema(A, column(2, "s", struct(column(3, "x", required=True))))),
        (schema(column(1, "a", required=True)), schema(column(1, "a", required=True), identifiers=[1])),
    ],
)
def test_what_the_format_allows_is_allowed(old: Schema, new: Schema, version: int) -> None:
    assert incompatible_changes(old, new, version) == ()


def test_optional_column_cannot_become_required() -> None:
    assert single(schema(A), schema(column(1, "a", required=True))) == (
        RequiredChanged,
        "a may hold nulls already",
    )


@pytest.mark.parametrize("version", [1, 2])
def test_new_column_is_optional_before_v3(version: int) -> None:
    new = schema(A, column(2, "b", required=True, initial_default=1))

    assert single(schema(A), new, version) == (
        ColumnAdded,
        "b is required, but rows written before have no value for it",
    )


def test_new_required_column_needs_an_initial_default_in_v3() -> None:
    assert single(schema(A), schema(A, column(2, "b", required=True, write_default=1)), 3) == (
        ColumnAdded,
        "b is required, but has no initial-default for rows written before",
    )
    with_default = schema(A, column(2, "b", required=True, initial_default=1, write_default=1))
    assert incompatible_changes(schema(A), with_default, 3) == ()


def test_new_required_column_in_a_struct_that_was_there_needs_a_default_too() -> None:
    old = schema(column(1, "s", struct(column(2, "x"))))
    new = schema(column(1, "s", struct(column(2, "x"), column(3, "y", required=True))))

    assert single(old, new, 3)[1].startswith("s.y is required")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"initial_default": 1}, {"initial_default": 2}),
        ({"initial_default": 1}, {}),
        ({}, {"initial_default": 1}),
    ],
)
def test_initial_default_never_changes(before: Json, after: Json) -> None:
    assert single(schema(column(1, "a", **before)), schema(column(1, "a", **after)), 3) == (
        DefaultChanged,
        "a has rows that were read with its initial-default, which cannot change",
    )


def test_initial_default_of_a_date_takes_the_form_of_the_timestamp_it_becomes() -> None:
    old = schema(column(1, "a", "date", initial_default="2020-01-01"))
    new = schema(column(1, "a", "timestamp", initial_default="2020-01-01T00:00:00"))

    assert incompatible_changes(old, new, 3) == ()


def test_columns_are_not_grouped_into_a_struct_or_out_of_one() -> None:
    grouped = schema(A, column(3, "s", struct(column(2, "b"))))
    flat = schema(A, column(2, "b"))

    for old, new in ((flat, grouped), (grouped, flat)):
        kind, reason = single(old, new)
        assert kind is ColumnRegrouped
        assert reason.endswith("cannot move into or out of a struct, list or map")


KEY = struct(column(3, "x"), column(4, "y"))


def keyed(key: Any) -> Schema:
    return schema(column(1, "m", map_of(2, key, 5, "int")))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("int", "long"),
        ("int", "string"),
        (KEY, struct(column(3, "x"))),
        (KEY, struct(column(3, "x"), column(4, "y"), column(6, "z"))),
        (KEY, struct(column(3, "x", "long"), column(4, "y"))),
        (struct(column(3, "x", required=True)), struct(column(3, "x"))),
        (struct(column(3, "x", initial_default=1)), struct(column(3, "x", initial_default=2))),
        (list_of(3, "int"), list_of(3, "long")),
        (map_of(3, "int", 4, "int"), map_of(3, "int", 4, "long")),
    ],
)
def test_map_keys_stay_equal_to_what_was_written(old: Any, new: Any) -> None:
    _, reason = single(keyed(old), keyed(new), 3)

    assert reason.endswith("is part of a map key: m.key must stay equal to what was written")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (KEY, struct(column(4, "y"), column(3, "x"))),
        (KEY, struct(column(3, "renamed", doc="d"), column(4, "y"))),
        (KEY, struct(column(3, "x", write_default=1), column(4, "y"))),
    ],
)
def test_names_and_order_inside_a_map_key_say_nothing_of_equality(old: Any, new: Any) -> None:
    assert incompatible_changes(keyed(old), keyed(new), 3) == ()


def test_map_inside_a_map_key_is_part_of_the_outer_key() -> None:
    old, new = keyed(map_of(3, "int", 4, "int")), keyed(map_of(3, "long", 4, "int"))

    assert single(old, new)[1] == (
        "m.key.key is part of a map key: m.key must stay equal to what was written"
    )


def test_list_keeps_its_element_and_a_map_its_value() -> None:
    found = incompatible_changes(
        schema(column(1, "l", list_of(2, "int")), column(3, "m", map_of(4, "int", 5, "int"))),
        schema(column(1, "l", list_of(6, "int")), column(3, "m", map_of(4, "int", 7, "int"))),
        3,
    )

    assert [(type(item.change), item.reason) for item in found] == [
        (ColumnDropped, "l.element cannot be dropped: a list needs its element, a map its key and value"),
        (ColumnDropped, "m.value cannot be dropped: a list needs its element, a map its key and value"),
        (ColumnAdded, "l.element cannot replace the element, key or value that was there"),
        (ColumnAdded, "m.value cannot replace the element, key or value that was there"),
    ]


def spec(*fields: Json) -> PartitionSpec:
    return PartitionSpec.from_json(encoded(spec_json(*fields)))


@pytest.mark.parametrize(
    ("transforms", "reason"),
    [
        ([], None),
        (["day", "month", "year", "void"], None),
        (["identity"], "identity"),
        (["day", "bucket[4]"], "bucket"),
        (["bucket[4]", "identity"], "bucket, identity"),
        (["zorder[2]"], "zorder[2]"),
    ],
)
def test_date_keeps_its_type_where_partition_values_would_change(
    transforms: list[str], reason: str | None
) -> None:
    specs = [spec(part("p", 1, 1000, text)) for text in transforms] + [spec(part("q", 9, 1000))]

    found = incompatible_changes(
        schema(column(1, "a", "date")), schema(column(1, "a", "timestamp")), 3, specs
    )

    assert [item.reason for item in found] == (
        [f"a is partitioned by {reason}, whose values would change with the type"] if reason else []
    )


def test_other_promotions_leave_partition_values_as_they_are() -> None:
    found = incompatible_changes(
        schema(column(1, "a", "int")),
        schema(column(1, "a", "long")),
        3,
        [spec(part("p", 1, 1000, "bucket[4]"))],
    )

    assert found == ()
