"""Transforms applied to values: from a column's value to the partition value."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from app.engine.expressions.bucket_hash import hash_bytes, hash_long
from app.engine.model.moments import year_and_month
from app.engine.model.transforms import Transform
from app.engine.model.types import PrimitiveType, Type
from app.engine.model.values import decimal_of, to_bytes, unscaled_value

Function = Callable[[Any], Any]

_UNITS_A_DAY: Final = {
    "date": 1,
    "timestamp": 86_400 * 10**6,
    "timestamptz": 86_400 * 10**6,
    "timestamp_ns": 86_400 * 10**9,
    "timestamptz_ns": 86_400 * 10**9,
}
_BITS: Final = {"int": 32, "long": 64}
_WIDE: Final = PrimitiveType("decimal", "decimal(200, 0)", 200, 0)


def transform_value(transform: Transform, source: Type, value: Any) -> Any:
    """Return the transformed value; null stays null.

    Spec: #partition-transforms
    """
    return None if value is None else transform_function(transform, source)(value)


def transform_function(transform: Transform, source: Type) -> Function:
    """Return the function from a column's values, null aside, to transformed values.

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
            return _moment_function(transform.name, _UNITS_A_DAY[source.kind])
    return _same


def _same(value: Any) -> Any:
    return value


def _nothing(value: Any) -> None:  # noqa: ARG001 - void takes a value like any transform
    return None


def _bucket_function(buckets: int, source: PrimitiveType) -> Function:
    hashed = _hash_function(source)
    return lambda value: (hashed(value) & 0x7FFFFFFF) % buckets


def _hash_function(source: PrimitiveType) -> Callable[[Any], int]:
    match source.kind:
        case "timestamp_ns" | "timestamptz_ns":
            # As microseconds, so that a column may be widened from them.
            return lambda value: hash_long(value // 1000)
        case "int" | "long" | "date" | "time" | "timestamp" | "timestamptz":
            return hash_long
        case "decimal":
            return lambda value: hash_bytes(to_bytes(source, value))
        case _:
            return lambda value: hash_bytes(to_bytes(source, value))


def _truncate_function(width: int, source: PrimitiveType) -> Function:
    match source.kind:
        case "int" | "long":
            bits = _BITS[source.kind]
            return lambda value: wrapped(value - value % width, bits)
        case "decimal":
            return lambda value: truncated_decimal(value, width, source.scale or 0)
        case _:
            # Code points of a string, bytes of a binary.
            return lambda value: value[:width]


def wrapped(number: int, bits: int) -> int:
    """Return what an overflowing number becomes, as in the reference: the lowest numbers truncate to high ones."""
    half = 1 << (bits - 1)
    return (number + half) % (half << 1) - half


def truncated_decimal(value: Decimal, width: int, scale: int) -> Decimal:
    """Return a decimal with its unscaled value truncated to a multiple of the width."""
    unscaled = int(value.scaleb(scale, _EXACT))
    return decimal_of(unscaled - unscaled % width, scale)


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
