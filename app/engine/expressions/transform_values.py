"""Transforms of values: from a column's value to the partition value."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any, Final

from app.engine.expressions.bucket_hash import hash_bytes, hash_long
from app.engine.model.data_types.moments import UNITS_A_DAY, months_since_1970
from app.engine.model.data_types.transforms import Transform
from app.engine.model.data_types.types import PrimitiveType, Type
from app.engine.model.data_types.values import decimal_of, fewest_bytes

Function = Callable[[Any], Any]

_HALVES: Final = {"int": 1 << 31, "long": 1 << 63}
EXACT: Final = Context(prec=400)


def transform_function(transform: Transform, source: Type) -> Function:
    """Return the function from a column's values, except null, to transformed values.

    Raises:
        ValueError: the transform does not apply to the type.

    Spec: #partition-transforms
    """
    if not transform.applies_to(source):
        raise ValueError(f"{transform} does not apply to {source}")
    if transform.name == "void":
        return _nothing
    assert isinstance(source, PrimitiveType)  # said by `applies_to`
    match transform.name:
        case "bucket":
            return _bucket_function(transform.parameter or 1, source)
        case "truncate":
            return _truncate_function(transform.parameter or 1, source)
        case "year" | "month" | "day" | "hour":
            return _moment_function(transform.name, UNITS_A_DAY[source.kind])
    return unchanged


def unchanged(value: Any) -> Any:
    """Return a value as it is."""
    return value


def _nothing(value: Any) -> None:  # noqa: ARG001 - void takes a value like any transform
    return None


def _bucket_function(buckets: int, source: PrimitiveType) -> Function:
    hashed = _hash_function(source)
    return lambda value: (hashed(value) & 0x7FFFFFFF) % buckets


def _hash_function(source: PrimitiveType) -> Callable[[Any], int]:
    match source.kind:
        case "timestamp_ns" | "timestamptz_ns":
            # As microseconds, so that the hash stays the same when a column is widened.
            return lambda value: hash_long(value // 1000)
        case "int" | "long" | "date" | "time" | "timestamp" | "timestamptz":
            return hash_long
        case "decimal":
            scale = source.scale or 0
            return lambda value: hash_bytes(fewest_bytes(unscaled(value, scale)))
        case "string":
            return lambda value: hash_bytes(value.encode())
        case "uuid":
            return lambda value: hash_bytes(value.bytes)
        case _:
            return hash_bytes


def unscaled(value: Decimal, scale: int) -> int:
    """Return a decimal's digits as a whole number, of any length."""
    return int(value.scaleb(scale, EXACT))


def _truncate_function(width: int, source: PrimitiveType) -> Function:
    truncate = _truncation(width, source)
    half = _HALVES.get(source.kind)
    if half is None:
        return truncate
    # As in the reference, numbers too low for the type wrap around to the highest.
    return lambda value: (truncate(value) + half) % (half << 1) - half


def truncate_without_wrapping(transform: Transform, source: Type) -> Function:
    """Return the truncation that keeps the order of values, but may leave the type's range."""
    assert isinstance(source, PrimitiveType)
    return _truncation(transform.parameter or 1, source)


def lowest_unwrapped(transform: Transform, source: Type) -> int | None:
    """Return the lowest number that is truncated without wrapping around; None if all are."""
    if transform.name != "truncate" or not isinstance(source, PrimitiveType) or source.kind not in _HALVES:
        return None
    width, lowest = transform.parameter or 1, -_HALVES[source.kind]
    return lowest - lowest % -width if lowest % width else None


def _truncation(width: int, source: PrimitiveType) -> Function:
    match source.kind:
        case "int" | "long":
            return lambda value: value - value % width
        case "decimal":
            scale = source.scale or 0
            return lambda value: _truncated_decimal(value, width, scale)
        case _:
            # Code points of a string, bytes of a binary.
            return lambda value: value[:width]


def _truncated_decimal(value: Decimal, width: int, scale: int) -> Decimal:
    digits = unscaled(value, scale)
    return decimal_of(digits - digits % width, scale)


def _moment_function(unit: str, units_a_day: int) -> Function:
    match unit:
        case "hour":
            units_an_hour = units_a_day // 24
            return lambda value: value // units_an_hour
        case "day":
            return lambda value: value // units_a_day
        case "month":
            return lambda value: months_since_1970(value // units_a_day)
        case _:
            return lambda value: months_since_1970(value // units_a_day) // 12
