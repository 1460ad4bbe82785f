"""Columns that no new table may have: types, ids, names, identifiers, defaults."""

from __future__ import annotations

from typing import Any

import pytest

from tests.bad_input.attacks import Attack, check_refused
from tests.bad_input.creations import ID, LIST, STRUCT, column, making, making_from
from tests.bad_input.victim import Victim

NO_TYPE = "Invalid body: schema.fields[1].type: Cannot parse type string to primitive: …"


def deep(levels: int) -> Any:
    """Return a list of lists of lists."""
    kind: Any = "int"
    for level in range(levels):
        kind = {"type": "list", "element-id": 10 + level, "element": kind, "element-required": False}
    return kind


def too_new(kind: str, shown: str | None = None) -> Attack:
    """Return an attempt to give a v2 table a type of v3."""
    message = f"Invalid schema for v2:\n- Invalid type for c: {shown or kind} is not supported until v3"
    return making(f"{kind} in v2", message, column(kind))


TYPES = [
    *(
        too_new(kind)
        for kind in ("timestamp_ns", "timestamptz_ns", "variant", "unknown", "geometry", "geography")
    ),
    too_new("geometry(srid:3857)"),
    making("no such type", NO_TYPE, column("lonk")),
    making("empty type", NO_TYPE, column("")),
    making("sql's type", NO_TYPE, column("varchar(10)")),
    *(
        making(
            f"geo type {kind}",
            f"Invalid type for c: {kind}: {flaw}",
            column(kind),
            version="3",
        )
        for kind, flaw in (
            ("geometry()", "the CRS is empty"),
            ("geography( )", "the CRS is empty"),
            ("geography(, karney)", "the CRS is empty"),
            ('geometry({"type": "GeographicCRS"})', "the CRS must name a definition, not hold one"),
            (
                "geography(srid:4326, flat)",
                "its edges are none of andoyer, karney, spherical, thomas, vincenty",
            ),
        )
    ),
    making("geometry of spaces", NO_TYPE, column("geometry(" + " " * 100_000)),
    making("geography of spaces and commas", NO_TYPE, column("geography(" + " ,a" * 50_000)),
    making(
        "decimal too wide",
        "Invalid body: …decimal needs a precision of 1 to 38 and a scale up to it",
        column("decimal(39, 2)"),
    ),
    making(
        "decimal all scale",
        "Invalid body: …decimal needs a precision of 1 to 38 and a scale up to it",
        column("decimal(2, 3)"),
    ),
    making("decimal of words", NO_TYPE, column("decimal(a, b)")),
    making("decimal in arabic digits", NO_TYPE, column("decimal(٩, ٢)")),
    making("fixed without end", "Invalid body: …the length is too large", column("fixed[9999999999]")),
    making("fixed below zero", NO_TYPE, column("fixed[-1]")),
    making(
        "type is a number",
        "Invalid body: schema.fields[1].type: Cannot parse type: expected a string or an object",
        column(7),
    ),
    making(
        "type is null",
        "Invalid body: schema.fields[1].type: Cannot parse type: expected a string or an object",
        column(None),
    ),
    making(
        "type is a list",
        "Invalid body: schema.fields[1].type: Cannot parse type: expected a string or an object",
        column(["int"]),
    ),
    making(
        "nested type of no kind",
        "Invalid body: schema.fields[1].type: Cannot parse type: …",
        column({"type": "set"}),
    ),
    making(
        "list without an element",
        "Invalid body: schema.fields[1].type.element: Field required",
        column({"type": "list", "element-id": 3, "element-required": True}),
    ),
    making(
        "map without values",
        "Invalid body: schema.fields[1].type.…: Field required",
        column({"type": "map", "key-id": 3, "key": "string", "value-id": 4}),
    ),
    making(
        "struct of no fields' list",
        "Invalid body: schema.fields[1].type.fields: Input should be a valid array",
        column({"type": "struct", "fields": {}}),
    ),
    making(
        "50 levels of lists", "Invalid schema: types are nested more than 40 levels deep", column(deep(50))
    ),
    making(
        "190 levels of lists", "Invalid schema: types are nested more than 40 levels deep", column(deep(190))
    ),
    making("400 levels of lists", "Invalid body: …recursion limit…", column(deep(400))),
    making(
        "an unknown field of 100 levels",
        "Invalid body: schema.fields[1].novel: nested more than 40 levels deep",
        column("int", novel=deep(100)),
    ),
]

COLUMNS = [
    making_from("no schema type", "Invalid body: schema.type: Field required", {"fields": []}),
    making_from(
        "schema that is a list",
        "Invalid body: schema.type: Input should be 'struct'",
        {"type": "list", "fields": []},
    ),
    making_from("schema that is an array", "Invalid body: schema: …", []),
    making_from("schema without fields", "Invalid body: schema.fields: Field required", {"type": "struct"}),
    making_from(
        "fields are an object",
        "Invalid body: schema.fields: Input should be a valid array",
        {"type": "struct", "fields": {}},
    ),
    making_from("field is a text", "Invalid body: schema.fields[0]: …", {"type": "struct", "fields": ["id"]}),
    making_from(
        "no field id",
        "Invalid body: schema.fields[0].id: Field required",
        {"type": "struct", "fields": [{"name": "a", "type": "int", "required": True}]},
    ),
    making(
        "field id is a text",
        "Invalid body: schema.fields[1].id: Input should be a valid integer",
        column("int", "2"),
    ),
    making(
        "field id is a fraction",
        "Invalid body: schema.fields[1].id: Input should be a valid integer",
        column("int", 2.0),
    ),
    making(
        "field id is true",
        "Invalid body: schema.fields[1].id: Input should be a valid integer",
        column("int", True),
    ),
    making(
        "field id below zero",
        "Invalid body: schema.fields[1].id: Input should be greater than or equal to 0",
        column("int", -1),
    ),
    making(
        "field id of 2^31",
        "Invalid body: schema.fields[1].id: Input should be less than or equal to 2147483647",
        column("int", 2**31),
    ),
    making(
        "required in words",
        "Invalid body: schema.fields[1].required: Input should be a valid boolean",
        column("int", required="yes"),
    ),
    making(
        "empty column name",
        "Invalid body: schema.fields[1].name: String should have at least 1 character",
        column("int", name=""),
    ),
    making(
        "name is null",
        "Invalid body: schema.fields[1].name: Input should be a valid string",
        column("int", name=None),
    ),
    making(
        "doc is a number",
        "Invalid body: schema.fields[1].doc: Input should be a valid string",
        column("int", doc=7),
    ),
    making("one id twice", "Invalid schema: field id 1 is used more than once (c)", column("int", 1)),
    making(
        "one id twice, below",
        "Invalid schema: field id 2 is used more than once (c.element)",
        column({**LIST, "element-id": 2}),
    ),
    making("one name twice", "Invalid schema: multiple fields for name id", column("int", name="id")),
    making(
        "a dot that makes a name twice",
        "Invalid schema: multiple fields for name c.x",
        column(STRUCT),
        column("int", 9, "c.x"),
    ),
    making(
        "required and unknown",
        "Cannot create required field with unknown type: c",
        column("unknown", required=True),
        version="3",
    ),
    making_from(
        "identifier of nothing",
        "Cannot add fieldId 7 as an identifier field: field does not exist",
        {"type": "struct", "fields": [ID], "identifier-field-ids": [7]},
    ),
    making_from(
        "optional identifier",
        "Cannot add field c as an identifier field: not a required field",
        {"type": "struct", "fields": [column("int")], "identifier-field-ids": [2]},
    ),
    making_from(
        "identifier that is a float",
        "Cannot add field c as an identifier field: must not be float or double field",
        {"type": "struct", "fields": [column("float", required=True)], "identifier-field-ids": [2]},
    ),
    making_from(
        "identifier that is a struct",
        "Cannot add field c as an identifier field: not a primitive type field",
        {"type": "struct", "fields": [column(STRUCT, required=True)], "identifier-field-ids": [2]},
    ),
    making_from(
        "identifier in a list",
        "Cannot add field c.element as an identifier field: must not be nested in c, a list or map",
        {
            "type": "struct",
            "fields": [column({**LIST, "element-required": True}, required=True)],
            "identifier-field-ids": [3],
        },
    ),
]

DEFAULTS = [
    making(
        "default in v2",
        "Invalid schema for v2:\n- Invalid initial default for c: non-null default (7) is not supported until v3",
        column("int", **{"initial-default": 7}),
    ),
    *(
        making(
            f"default {default!r} of a {kind}",
            f"Invalid initial default for c: {str(default)!r} is not a single value of its type",
            column(kind, **{"initial-default": default}),
            version="3",
        )
        for kind, default in (
            ("int", 2**31),
            ("int", 1.0),
            ("int", True),
            ("long", "1"),
            ("float", 1),
            ("double", "1.5"),
            ("boolean", "true"),
            ("decimal(9, 2)", 1.5),
            ("decimal(9, 2)", "1.5"),
            ("decimal(3, 2)", "100.00"),
            ("date", "2023-02-29"),
            ("date", "yesterday"),
            ("date", 19_000),
            ("time", "25:00:00"),
            ("timestamp", "2024-01-01T00:00:00Z"),
            ("timestamp", "2024-01-01 00:00:00"),
            ("timestamptz", "2024-01-01T00:00:00"),
            ("timestamptz", "2024-01-01T00:00:00+02:00"),
            ("timestamp_ns", "1500-01-01T00:00:00"),
            ("uuid", "f79c3e09"),
            ("fixed[4]", "0102"),
            ("binary", "0x01"),
            ("string", 7),
        )
    ),
    making(
        "write default of a variant",
        "Invalid write default for c: '1' is not a single value of its type",
        column("variant", **{"write-default": 1}),
        version="3",
    ),
    making(
        "default of a list",
        "Invalid write default for c: a nested type can have none",
        column(LIST, **{"write-default": [1]}),
        version="3",
    ),
    making(
        "default of a struct",
        "Invalid initial default for c: a nested type can have none",
        column(STRUCT, **{"initial-default": {}}),
        version="3",
    ),
]


@pytest.mark.parametrize("attack", [*TYPES, *COLUMNS, *DEFAULTS], ids=str)
def test_attack_is_refused_and_changes_nothing(victim: Victim, attack: Attack) -> None:
    check_refused(attack, victim)
