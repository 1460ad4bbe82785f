"""Single values in JSON, the form of column defaults: whether a value can be one of a type."""

from __future__ import annotations

import re
from datetime import date
from typing import Any, assert_never

from app.engine.model.document import MAX_INT, MAX_LONG
from app.engine.model.types import ListType, MapType, PrimitiveType, StructType, Type

_DATE = r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})"
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,9})?)?"
_MOMENTS = {
    "date": re.compile(_DATE),
    "timestamp": re.compile(f"{_DATE}T{_TIME}"),
    "timestamp_ns": re.compile(f"{_DATE}T{_TIME}"),
    "timestamptz": re.compile(rf"{_DATE}T{_TIME}(Z|\+00:00)"),
    "timestamptz_ns": re.compile(rf"{_DATE}T{_TIME}(Z|\+00:00)"),
}
_TEXTS = {
    "time": re.compile(_TIME),
    "uuid": re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"),
    "binary": re.compile(r"([0-9a-fA-F]{2})*"),
    "fixed": re.compile(r"([0-9a-fA-F]{2})*"),
    "string": re.compile(r".*", re.DOTALL),
}
_RANGES = {"int": MAX_INT, "long": MAX_LONG}
_EPOCH = date(1970, 1, 1)
_MOST_DAYS_IN_NANOSECONDS = MAX_LONG // (86_400 * 10**9)


def is_value_of(value: Any, kind: Type) -> bool:
    """Tell whether a JSON value is a single value of a type; null is one of every type.

    A reader that finds another value in a column's default cannot read the table at all.

    Spec: #json-single-value-serialization
    """
    if value is None:
        return True
    match kind:
        case PrimitiveType():
            return _is_primitive(value, kind)
        case StructType():
            fields = {str(field.id): field.type for field in kind.fields}
            return isinstance(value, dict) and all(
                name in fields and is_value_of(item, fields[name]) for name, item in value.items()
            )
        case ListType():
            return isinstance(value, list) and all(is_value_of(item, kind.element) for item in value)
        case MapType():
            return _is_map(value, kind)
        case never:
            assert_never(never)


def _is_map(value: Any, kind: MapType) -> bool:
    if not isinstance(value, dict) or value.keys() != {"keys", "values"}:
        return False
    keys, values = value["keys"], value["values"]
    return (
        isinstance(keys, list)
        and isinstance(values, list)
        and len(keys) == len(values)
        and all(item is not None and is_value_of(item, kind.key) for item in keys)
        and all(is_value_of(item, kind.value) for item in values)
    )


def _is_primitive(value: Any, kind: PrimitiveType) -> bool:
    match kind.kind:
        case "boolean":
            return isinstance(value, bool)
        case "int" | "long":
            largest = _RANGES[kind.kind]
            return type(value) is int and -largest - 1 <= value <= largest
        case "float" | "double":
            # A whole number without its `.0` is none to the reference.
            return type(value) is float
        case "decimal":
            return isinstance(value, str) and _is_decimal(value, kind)
        case "date" | "timestamp" | "timestamptz" | "timestamp_ns" | "timestamptz_ns":
            return isinstance(value, str) and _is_moment(value, kind.kind)
        case "fixed":
            if isinstance(value, str) and len(value) != 2 * (kind.length or 0):
                return False
    pattern = _TEXTS.get(kind.kind)
    return pattern is not None and isinstance(value, str) and pattern.fullmatch(value) is not None


def _is_moment(text: str, kind: str) -> bool:
    match = _MOMENTS[kind].fullmatch(text)
    if match is None:
        return False
    try:
        days = (date.fromisoformat(match["date"]) - _EPOCH).days
    except ValueError:  # not on the calendar
        return False
    return not kind.endswith("_ns") or abs(days) < _MOST_DAYS_IN_NANOSECONDS


def _is_decimal(text: str, kind: PrimitiveType) -> bool:
    match = re.fullmatch(r"[+-]?([0-9]+)(?:\.([0-9]+))?", text)
    if match is None:
        return False
    whole, fraction = match[1].lstrip("0"), match[2] or ""
    return len(fraction) == kind.scale and len(whole) + len(fraction) <= (kind.precision or 0)
