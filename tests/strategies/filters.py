"""Strategies for filters, the columns they ask about, and rows whose values are close enough to matter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from functools import cache
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from app.engine.model.data_types.json_values import to_json_value
from app.engine.model.data_types.transforms import parse_transform
from app.engine.model.data_types.types import NestedField, StructType, parse_primitive
from app.engine.model.data_types.values import is_nan
from app.engine.model.schema import Schema
from tests.strategies.json_values import MAX_INT, MAX_LONG, Json

KINDS = (
    "boolean int long float double decimal(9,2) decimal(38,10) date time timestamp timestamptz timestamp_ns "
    "timestamptz_ns string uuid fixed[3] binary"
).split()
ODD_NAMES = ("a.b", "a", "Ä", 'é"x', "\u2028", "select", "n.z")
UNARY = ("is-null", "not-null")
OF_FLOATS = ("is-nan", "not-nan")
COMPARISONS = ("lt", "lt-eq", "gt", "gt-eq", "eq", "not-eq")
SETS = ("in", "not-in")
PREFIXES = ("starts-with", "not-starts-with")
_FLIPPED = {"lt": "gt", "gt": "lt", "lt-eq": "gt-eq", "gt-eq": "lt-eq", "eq": "eq", "not-eq": "not-eq"}
_DAY = 86_400 * 10**6
_FLOATS = (math.nan, -0.0, 0.0, math.inf, -math.inf, 1.5, -1.5, 0.5, 2.0**20, -3.0)
_HALVES = (0, 1, 2, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1)


@cache
def values(kind: str, *, extremes: bool = True) -> st.SearchStrategy[Any]:
    """Return values of a type, close to each other and to where its transforms turn over."""
    near = _near(kind)
    far = _extremes(kind)
    return near | st.sampled_from(far) if extremes and far else near


def _near(kind: str) -> st.SearchStrategy[Any]:
    days = st.integers(-800, 800)
    parts = st.sampled_from([0, 1, -1, 999, 3_600 * 10**6, 12 * 3_600 * 10**6 + 1])
    moments = st.builds(lambda day, part: day * _DAY + part, days, parts)
    match kind.partition("(")[0].partition("[")[0]:
        case "boolean":
            return st.booleans()
        case "int" | "long":
            return st.integers(-25, 25)
        case "float" | "double":
            return st.sampled_from(_FLOATS)
        case "decimal":
            scale = parse_primitive(kind).scale or 0
            return st.integers(-250, 250).map(lambda digits: Decimal(digits).scaleb(-scale))
        case "date":
            return days
        case "time":
            return st.sampled_from([0, 1, 5, _DAY - 1])
        case "timestamp" | "timestamptz":
            return moments
        case "timestamp_ns" | "timestamptz_ns":
            return st.builds(lambda moment, rest: moment * 1000 + rest, moments, st.sampled_from([0, 1, 999]))
        case "string":
            return st.text("ab\u00e9\uffff\U0001f600", max_size=5) | st.sampled_from(
                ["a" * 20, "a" * 20 + "b"]
            )
        case "uuid":
            half = st.sampled_from(_HALVES)
            return st.builds(lambda high, low: UUID(int=(high << 64) | low), half, half)
        case "fixed":
            return st.lists(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]), min_size=3, max_size=3).map(bytes)
    return st.lists(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]), max_size=4).map(bytes)


def _extremes(kind: str) -> list[Any]:
    match kind:
        case "int" | "date":
            return [-MAX_INT - 1, -MAX_INT, MAX_INT - 1, MAX_INT]
        case "timestamp" | "timestamptz":
            # Hours are numbers of 32 bits, which is not enough for all of 64 bits of microseconds.
            return [-(2**62), 2**62]
        case "long" | "timestamp_ns" | "timestamptz_ns":
            return [-MAX_LONG - 1, -MAX_LONG, MAX_LONG - 1, MAX_LONG]
        case "decimal(9,2)":
            return [Decimal("-9999999.99"), Decimal("9999999.99")]
        case "string":
            return ["\U0010ffff" * 3, "\ud7ff\U0010ffff", "\x00"]
        case "binary":
            return [b"\xff" * 20]
    return []


@st.composite
def filtered_schemas(draw: st.DrawFn, kinds: Sequence[str] = KINDS) -> dict[str, Json]:
    """Return the JSON of a schema of few columns, some of them inside structs."""
    names = "abc" if draw(st.integers(0, 3)) else draw(st.permutations(ODD_NAMES))
    names = names[: draw(st.integers(1, 3))]
    fields: list[Json] = [_field(draw, field_id, name, kinds) for field_id, name in enumerate(names, start=1)]
    if draw(st.booleans()):
        inner = [_field(draw, 11, "x", kinds), _field(draw, 12, "Y", kinds)]
        if draw(st.booleans()):
            deep = {"type": "struct", "fields": [_field(draw, 14, "x", kinds)]}
            inner.append({"id": 13, "name": "m.m", "required": draw(st.booleans()), "type": deep})
        kind = {"type": "struct", "fields": inner}
        fields.append({"id": 10, "name": "n", "required": draw(st.booleans()), "type": kind})
    return {"type": "struct", "schema-id": 0, "fields": fields}


def _field(draw: st.DrawFn, field_id: int, name: str, kinds: Sequence[str]) -> dict[str, Json]:
    return {
        "id": field_id,
        "name": name,
        "required": draw(st.integers(0, 3)) == 0,
        "type": draw(st.sampled_from(kinds)),
    }


def leaves(schema: dict[str, Json], prefix: str = "") -> list[tuple[int, str, str]]:
    """Return id, dotted name and type of every column that is no struct."""
    found: list[tuple[int, str, str]] = []
    for field in schema["fields"]:
        if isinstance(field["type"], str):
            found.append((field["id"], prefix + field["name"], field["type"]))
        else:
            found += leaves(field["type"], prefix + field["name"] + ".")
    return found


def transforms_of(kind: str) -> st.SearchStrategy[str]:
    """Return transforms that apply to a type, with parameters small enough to tell values apart."""
    family = kind.partition("(")[0].partition("[")[0]
    fitting = ["identity"]
    if family not in ("boolean", "float", "double"):
        fitting += ["bucket[1]", "bucket[3]", "bucket[8]"]
    if family in ("int", "long", "decimal", "string", "binary"):
        fitting += ["truncate[1]", "truncate[2]", "truncate[3]", "truncate[10]"]
    if family == "date" or family.startswith("timestamp"):
        fitting += ["year", "month", "day"]
    if family.startswith("timestamp"):
        fitting.append("hour")
    return st.sampled_from(fitting)


@st.composite
def filtered_specs(draw: st.DrawFn, schema: dict[str, Json]) -> dict[str, Json]:
    """Return the JSON of a partition spec over some of a schema's columns; one column may be used twice."""
    fields: list[Json] = []
    for position in range(draw(st.integers(0, 3))):
        source_id, _, kind = draw(st.sampled_from(leaves(schema)))
        transform = draw(transforms_of(kind)) if draw(st.integers(0, 9)) else "void"
        fields.append(
            {
                "name": f"p{position}",
                "transform": transform,
                "source-id": source_id,
                "field-id": 1000 + position,
            }
        )
    return {"spec-id": 0, "fields": fields}


@st.composite
def filters(
    draw: st.DrawFn,
    schema: dict[str, Json],
    *,
    depth: int = 2,
    extremes: bool = True,
    with_transforms: bool = True,
    with_structs: bool = False,
) -> Json:
    """Return the JSON of a filter on a schema's columns."""
    shape = draw(st.sampled_from(["predicate"] * 3 + ["and", "or", "not"])) if depth else "predicate"
    inner = filters(
        schema,
        depth=depth - 1,
        extremes=extremes,
        with_transforms=with_transforms,
        with_structs=with_structs,
    )
    match shape:
        case "and" | "or":
            return {"type": shape, "left": draw(inner), "right": draw(inner)}
        case "not":
            return {"type": "not", "child": draw(inner)}
    if draw(st.integers(0, 19)) == 0:
        return draw(st.booleans())
    structs = [field["name"] for field in schema["fields"] if not isinstance(field["type"], str)]
    if with_structs and structs and draw(st.integers(0, 9)) == 0:
        return {"type": draw(st.sampled_from(UNARY)), "term": draw(st.sampled_from(structs))}
    return draw(predicates(schema, extremes=extremes, with_transforms=with_transforms))


@st.composite
def predicates(
    draw: st.DrawFn, schema: dict[str, Json], *, extremes: bool = True, with_transforms: bool = True
) -> Json:
    """Return the JSON of one predicate on one of a schema's columns, or on a transform of it."""
    _, name, kind = draw(st.sampled_from(leaves(schema)))
    term: Json = name
    if with_transforms and draw(st.integers(0, 4)) == 0:
        transform = draw(transforms_of(kind))
        term = {"type": "transform", "transform": transform, "term": name}
        kind = str(parse_transform(transform).result_type(parse_primitive(kind)))
    operation = draw(st.sampled_from(_operations(kind)))
    question = {"type": operation, "term": term}
    if operation in UNARY + OF_FLOATS:
        return question
    literals = values(kind, extremes=extremes).filter(_is_json_number)
    if operation in SETS:
        items = draw(st.lists(literals, max_size=4))
        return question | {"values": [to_json_value(parse_primitive(kind), item) for item in items]}
    if operation in PREFIXES:
        return question | {"value": draw(literals)[: draw(st.integers(0, 4))]}
    return question | {"value": to_json_value(parse_primitive(kind), draw(literals))}


@st.composite
def spelled_otherwise(draw: st.DrawFn, document: Json, schema: Schema) -> Json:
    """Return the JSON of the same filter, here and there in the other form that the specification has."""
    if isinstance(document, bool):
        return draw(
            st.sampled_from(
                [document, {"type": str(document).lower()}, {"type": "literal", "value": document}]
            )
        )
    kind = document["type"]
    if kind in ("and", "or", "not"):
        names = ("child",) if kind == "not" else ("left", "right")
        return {"type": kind} | {name: draw(spelled_otherwise(document[name], schema)) for name in names}
    if not draw(st.booleans()):
        return document
    term = draw(_spelled_terms(document["term"], schema))
    if "values" in document:
        return {
            "type": kind,
            "child": term,
            "values": [draw(_spelled_literals(v)) for v in document["values"]],
        }
    if "value" not in document:
        return {"type": kind, "child": term}
    literal = {"type": "literal", "value": document["value"]}
    if kind in _FLIPPED and draw(st.booleans()):
        return {"type": _FLIPPED[kind], "left": literal, "right": term}
    return {"type": kind, "left": term, "right": draw(_spelled_literals(document["value"]))}


@st.composite
def _spelled_terms(draw: st.DrawFn, term: Json, schema: Schema) -> Json:
    if isinstance(term, str):
        by_id = {"type": "reference", "id": schema.ids_by_name[term]}
        return draw(st.sampled_from([{"type": "reference", "name": term}, by_id]))
    name, _, parameter = term["transform"].partition("[")
    arguments = [draw(_spelled_terms(term["term"], schema))]
    if parameter:
        arguments.insert(0, {"type": "literal", "value": int(parameter.removesuffix("]"))})
    names = st.sampled_from([name, f"{name}s"] if name in ("year", "month", "day", "hour") else [name])
    return {"type": "apply", "function": draw(names), "arguments": arguments}


def _spelled_literals(value: Json) -> st.SearchStrategy[Json]:
    return st.sampled_from([value, {"type": "literal", "value": value}])


def _is_json_number(value: Any) -> bool:
    """Tell whether JSON has the value as a number; infinity is none there."""
    return not isinstance(value, float) or math.isfinite(value)


@cache
def _operations(kind: str) -> tuple[str, ...]:
    some = UNARY + COMPARISONS + SETS
    if kind in ("float", "double"):
        return some + OF_FLOATS
    return some + PREFIXES if kind == "string" else some


@st.composite
def rows(draw: st.DrawFn, schema: Schema, *, extremes: bool = True, with_nan: bool = True) -> tuple[Any, ...]:
    """Return a row: a tuple of values in the order of the columns, structs as tuples."""
    return tuple(_row_values(draw, schema.fields, extremes=extremes, with_nan=with_nan))


def _row_values(
    draw: st.DrawFn, fields: Sequence[NestedField], *, extremes: bool, with_nan: bool
) -> list[Any]:
    found: list[Any] = []
    for field in fields:
        if not field.required and draw(st.integers(0, 3)) == 0:
            found.append(None)
        elif isinstance(field.type, StructType):
            inner = _row_values(draw, field.type.fields, extremes=extremes, with_nan=with_nan)
            found.append(tuple(inner))
        else:
            some = values(str(field.type), extremes=extremes)
            found.append(draw(some if with_nan else some.filter(lambda value: not is_nan(value))))
    return found
