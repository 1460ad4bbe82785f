"""Data types: their texts, their JSON, what is below them."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from app.engine.model.data_types.types import (
    ListType,
    MapType,
    PrimitiveType,
    StructType,
    child_fields,
    is_primitive,
    parse_primitive,
    parse_type,
)
from app.engine.model.schema import Schema
from tests.unit.engine.documents import column, encoded, list_of, map_of, schema_json, struct

V1_TYPES = "boolean int long float double date time timestamp timestamptz string uuid binary".split()
V3_TYPES = "timestamp_ns timestamptz_ns unknown variant geometry geography".split()


@pytest.mark.parametrize("name", V1_TYPES + V3_TYPES)
def test_type_without_parameters_is_known_in_any_case(name: str) -> None:
    expected = PrimitiveType(name, name)

    assert parse_primitive(name) == expected
    assert parse_primitive(f" {name.upper()} ") == expected
    assert str(expected) == name
    assert expected.min_format_version == (3 if name in V3_TYPES else 1)


@pytest.mark.parametrize(
    ("text", "canonical", "precision", "scale", "length"),
    [
        ("decimal(9,2)", "decimal(9, 2)", 9, 2, None),
        ("decimal( 38 , 38 )", "decimal(38, 38)", 38, 38, None),
        ("DECIMAL(1, 0)", "decimal(1, 0)", 1, 0, None),
        ("fixed[16]", "fixed[16]", None, None, 16),
        ("fixed[ 0 ]", "fixed[0]", None, None, 0),
        ("fixed[2147483647]", "fixed[2147483647]", None, None, 2147483647),
    ],
)
def test_parameters_are_read_and_written_in_one_way(
    text: str, canonical: str, precision: int | None, scale: int | None, length: int | None
) -> None:
    kind = canonical.partition("(")[0].partition("[")[0]

    assert parse_primitive(text) == PrimitiveType(kind, canonical, precision, scale, length)


@pytest.mark.parametrize(
    "text",
    ["geometry(srid:4326)", "geometry(EPSG:3857)", "geography(OGC:CRS84, spherical)", "geography(Prop.Name)"],
)
def test_parameters_of_geo_types_keep_their_spelling(text: str) -> None:
    kind = parse_primitive(text)

    assert kind.text == text
    assert kind.kind == text.partition("(")[0]
    assert parse_primitive(f" {text.replace('geo', 'GEO')}").text == text


@pytest.mark.parametrize(
    "text",
    [
        *("", "integer", "int[]", "varchar(3)", "struct", "list", "map", "decimal", "fixed", "timestampz"),
        *("decimal(0,0)", "decimal(39,0)", "decimal(5,6)", "decimal(9,-1)", "decimal(9)", "decimal(٣,٢)"),
        *(
            "fixed[-1]",
            "fixed[2147483648]",
            "fixed[]",
            "fixed[x]",
            "geometry(a,b)",
            "geography(a,b,c)",
            "geom",
        ),
    ],
)
def test_text_that_names_no_type_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="type"):
        parse_primitive(text)


@pytest.mark.parametrize("kind", ["geometry", "geography"])
def test_spaces_without_an_end_are_refused_at_once(kind: str) -> None:
    """All of the server would wait while a pattern tries each way to share them out."""
    with pytest.raises(ValueError, match="Cannot parse type string"):
        parse_primitive(f"{kind}({' ' * 20_000}x")


def test_long_nonsense_is_quoted_in_part() -> None:
    with pytest.raises(ValueError, match=r"^Cannot parse type string to primitive: 'xxx") as caught:
        parse_primitive("x" * 10_000)

    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("value", [None, 5, True, [], {"type": "array"}, {}, {"type": ["struct"]}])
def test_json_that_describes_no_type_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="Cannot parse type"):
        parse_type(value)


@pytest.mark.parametrize(
    "document",
    [
        {"type": "struct"},
        {"type": "list", "element-id": -1, "element": "int", "element-required": True},
        {"type": "list", "element-id": 2**31, "element": "int", "element-required": True},
        {"type": "list", "element-id": 1, "element": "int", "element-required": "true"},
        {"type": "map", "key-id": 1, "key": "int", "value-id": 2, "value": "int"},
        {"type": "struct", "fields": [{"id": 1, "name": "", "required": True, "type": "int"}]},
    ],
)
def test_nested_type_with_a_wrong_part_is_refused(document: object) -> None:
    with pytest.raises(ValidationError):
        parse_type(document)


def test_type_that_is_parsed_already_stays_as_it_is() -> None:
    kind = parse_primitive("int")

    assert parse_type(kind) is kind


def test_nested_types_keep_unknown_fields() -> None:
    kind = struct(
        column(2, "l", list_of(3, "int") | {"vendor": 1}, note="x"),
        column(
            4, "m", map_of(5, "string", 6, struct(column(7, "x")) | {"vendor": [2]}) | {"vendor": {"a": None}}
        ),
    ) | {"vendor": 0}
    document = schema_json(column(1, "s", kind))

    assert json.loads(Schema.from_json(encoded(document)).to_json()) == document


def test_children_of_each_type() -> None:
    kinds = [
        parse_type(struct(column(1, "a"), column(2, "b", required=True))),
        parse_type(list_of(3, "int", required=True)),
        parse_type(map_of(4, "string", 5, "int")),
        parse_type("int"),
    ]

    children = [[(item.id, item.name, item.required) for item in child_fields(kind)] for kind in kinds]

    assert children == [
        [(1, "a", False), (2, "b", True)],
        [(3, "element", True)],
        [(4, "key", True), (5, "value", False)],
        [],
    ]
    assert [type(kind) for kind in kinds] == [StructType, ListType, MapType, PrimitiveType]


def test_variant_has_parts_and_is_no_primitive() -> None:
    assert not is_primitive(parse_type("variant"))
    assert not is_primitive(parse_type(list_of(1, "int")))
    assert is_primitive(parse_type("geometry"))
