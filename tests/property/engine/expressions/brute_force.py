"""What a filter means, row by row, in the plainest words: read from its JSON, with nothing that binds or evaluates."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from app.engine.model.data_types.json_values import from_json_value
from app.engine.model.data_types.transforms import parse_transform
from app.engine.model.data_types.types import NestedField, PrimitiveType, StructType, Type
from app.engine.model.data_types.values import order_key
from app.engine.model.schema import Schema
from tests.builders.filters import transform_value
from tests.strategies.json_values import Json

_OPPOSITES = {
    "is-null": "not-null",
    "is-nan": "not-nan",
    "lt": "gt-eq",
    "gt": "lt-eq",
    "eq": "not-eq",
    "in": "not-in",
    "starts-with": "not-starts-with",
}
_OPPOSITE = _OPPOSITES | {right: left for left, right in _OPPOSITES.items()}


def matches(document: Json, schema: Schema, row: Any, *, by_total_order: bool = False) -> bool:
    """Tell whether a row matches; by total order, -0.0 is before 0.0 and NaN above all numbers."""
    return _holds(document, schema, row, order_key if by_total_order else _same, is_negated=False)


def _holds(document: Json, schema: Schema, row: Any, key: Callable[[Any], Any], *, is_negated: bool) -> bool:
    if isinstance(document, bool):
        return document is not is_negated
    kind = document["type"]
    if kind == "not":
        return _holds(document["child"], schema, row, key, is_negated=not is_negated)
    if kind in ("and", "or"):
        sides = (document["left"], document["right"])
        both = [_holds(side, schema, row, key, is_negated=is_negated) for side in sides]
        return all(both) if (kind == "and") is not is_negated else any(both)
    of_type, value = _value(document["term"], schema, row)
    literals = document.get("values", [document["value"]] if "value" in document else [])
    return _is_so(
        _OPPOSITE[kind] if is_negated else kind,
        value,
        [_literal(of_type, literal) for literal in literals],
        key,
    )


def _literal(of_type: Type, literal: Json) -> Any:
    assert isinstance(of_type, PrimitiveType)
    return from_json_value(of_type, literal)


def _value(term: Json, schema: Schema, row: Any) -> tuple[Type, Any]:
    if isinstance(term, str):
        return _in_struct(term, schema.fields, row)
    kind, value = _value(term["term"], schema, row)
    transform = parse_transform(term["transform"])
    return transform.result_type(kind), transform_value(transform, kind, value)


def _in_struct(path: str, fields: Sequence[NestedField], values: Any) -> tuple[Type, Any]:
    for position, field in enumerate(fields):
        value = None if values is None else values[position]
        if path == field.name:
            return field.type, value
        # Names may have dots of their own.
        if isinstance(field.type, StructType) and path.startswith(f"{field.name}."):
            return _in_struct(path.removeprefix(f"{field.name}."), field.type.fields, value)
    raise AssertionError(path)


def _same(value: Any) -> Any:
    return value


def _is_so(operation: str, value: Any, literals: list[Any], key: Callable[[Any], Any]) -> bool:
    null = value is None
    place = key(value)
    places = [key(literal) for literal in literals]
    match operation:
        case "is-null":
            return null
        case "not-null":
            return not null
        case "is-nan":
            return not null and math.isnan(value)
        case "not-nan":
            return null or not math.isnan(value)
        case "lt":
            return bool(not null and place < places[0])
        case "lt-eq":
            return bool(not null and place <= places[0])
        case "gt":
            return bool(not null and place > places[0])
        case "gt-eq":
            return bool(not null and place >= places[0])
        case "eq" | "in":
            return not null and any(place == item for item in places)
        case "not-eq" | "not-in":
            return null or all(place != item for item in places)
        case "starts-with":
            return not null and value[: len(places[0])] == places[0]
        case "not-starts-with":
            return null or value[: len(places[0])] != places[0]
    raise AssertionError(operation)


def holds_nan(row: Any, fields: Sequence[NestedField]) -> set[int]:
    """Return the field ids of the columns that are NaN in a row."""
    found: set[int] = set()
    for field, value in zip(fields, row, strict=True):
        if isinstance(field.type, StructType):
            found |= set() if value is None else holds_nan(value, field.type.fields)
        elif isinstance(field.type, PrimitiveType) and isinstance(value, float) and math.isnan(value):
            found.add(field.id)
    return found
