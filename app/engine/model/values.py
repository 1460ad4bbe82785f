"""Single values: their binary and JSON forms, and their order.

In Python, int, long, date (days since 1970), time and timestamp (micro- or nanoseconds since 1970) are `int`; float and
double are `float`; decimal is `Decimal`; uuid is `UUID`; fixed, binary, variant and geo values are `bytes`.
"""

from __future__ import annotations

import math
import re
import struct
from decimal import Context, Decimal, DecimalException
from typing import Any, Final, assert_never
from uuid import UUID

from app.engine.model.document import MAX_INT, MAX_LONG
from app.engine.model.moments import (
    date_text,
    days_of_date,
    time_text,
    timestamp_text,
    units_of_time,
    units_of_timestamp,
)
from app.engine.model.types import ListType, MapType, PrimitiveType, StructType, Type

_INT: Final = struct.Struct("<i")
_LONG: Final = struct.Struct("<q")
_FLOAT: Final = struct.Struct("<f")
_DOUBLE: Final = struct.Struct("<d")
_EXACT: Final = Context(prec=100)
"""The default context rounds to 28 digits, and a decimal has up to 38."""
_MICROSECONDS_A_DAY: Final = 86_400_000_000

_MICROSECONDS: Final = 10**6
_UNITS_A_SECOND: Final = {
    "timestamp": _MICROSECONDS,
    "timestamptz": _MICROSECONDS,
    "timestamp_ns": 10**9,
    "timestamptz_ns": 10**9,
}
_DECIMAL: Final = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?", re.ASCII)
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_NO_NUMBERS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""JSON has no numbers for these; the reference writes and reads them as strings."""


def to_bytes(kind: PrimitiveType, value: Any) -> bytes:
    """Return a value in the binary form that bounds have.

    Raises:
        ValueError: the value is none of this type.

    Spec: #binary-single-value-serialization
    """
    try:
        match kind.kind:
            case "boolean":
                return b"\x01" if value else b"\x00"
            case "int" | "date":
                return _INT.pack(value)
            case "long" | "time" | "timestamp" | "timestamptz" | "timestamp_ns" | "timestamptz_ns":
                return _LONG.pack(value)
            case "float":
                return _FLOAT.pack(value)
            case "double":
                return _DOUBLE.pack(value)
            case "string":
                return str.encode(value)
            case "uuid":
                return bytes(value.bytes)
            case "decimal":
                unscaled = unscaled_value(kind, value)
                # One more bit than the magnitude needs, for the sign; -128 fits one byte.
                bits = (unscaled + 1 if unscaled < 0 else unscaled).bit_length() + 1
                return unscaled.to_bytes((bits + 7) // 8, "big", signed=True)
            case "fixed":
                if len(value) != kind.length:
                    raise ValueError(f"{len(value)} bytes")
                return bytes(value)
            case "binary" | "variant" | "geometry" | "geography":
                return bytes(value)
    except (TypeError, ValueError, AttributeError, OverflowError, struct.error, DecimalException) as error:
        raise ValueError(f"Not a value of type {kind}: {str(value)[:100]!r} ({error})") from error
    raise ValueError(f"Type {kind} has no binary form")


def from_bytes(kind: PrimitiveType, content: bytes) -> Any:
    """Return the value that a bound in binary form stands for.

    Bounds written before a column was widened have the narrower type's form, which their length tells.

    Raises:
        ValueError: the bytes are no value of this type.

    Spec: #binary-single-value-serialization
    """
    try:
        match kind.kind:
            case "boolean":
                if len(content) != 1:
                    raise ValueError(f"{len(content)} bytes")
                return content != b"\x00"
            case "int" | "date":
                return _INT.unpack(content)[0]
            case "long":
                return (_INT if len(content) == 4 else _LONG).unpack(content)[0]
            case "time":
                return _LONG.unpack(content)[0]
            case "timestamp" | "timestamptz" | "timestamp_ns" | "timestamptz_ns":
                if len(content) == 4:
                    days: int = _INT.unpack(content)[0]
                    return days * _MICROSECONDS_A_DAY * (1000 if kind.kind.endswith("_ns") else 1)
                return _LONG.unpack(content)[0]
            case "float":
                return _FLOAT.unpack(content)[0]
            case "double":
                return (_FLOAT if len(content) == 4 else _DOUBLE).unpack(content)[0]
            case "string":
                return content.decode()
            case "uuid":
                return UUID(bytes=bytes(content))
            case "decimal":
                if not content:
                    raise ValueError("no bytes")
                return decimal_of(int.from_bytes(content, "big", signed=True), kind.scale or 0)
            case "fixed":
                if len(content) != kind.length:
                    raise ValueError(f"{len(content)} bytes")
                return bytes(content)
            case "binary" | "variant" | "geometry" | "geography":
                return bytes(content)
    except (ValueError, struct.error) as error:
        raise ValueError(
            f"Not a value of type {kind} in binary form: {content[:32].hex()} ({error})"
        ) from error
    raise ValueError(f"Type {kind} has no binary form")


def decimal_of(unscaled: int, scale: int) -> Decimal:
    """Return unscaled × 10⁻ˢᶜᵃˡᵉ, exactly."""
    return Decimal(unscaled).scaleb(-scale, _EXACT)


def unscaled_value(kind: PrimitiveType, value: Any) -> int:
    """Return a decimal's digits as a whole number.

    Raises:
        ValueError: it has more decimal places, or more digits, than the type.
    """
    shifted = Decimal(value).scaleb(kind.scale or 0, _EXACT)
    unscaled = int(shifted)
    if unscaled != shifted or abs(unscaled) >= 10 ** (kind.precision or 38):
        raise ValueError("too many digits")
    return unscaled


def to_json_value(kind: Type, value: Any) -> Any:
    """Return a value in JSON; a struct is a mapping by field id, a list a sequence, a map a mapping.

    Raises:
        ValueError: the value is none of this type.

    Spec: #json-single-value-serialization
    """
    if value is None:
        return None
    match kind:
        case PrimitiveType():
            try:
                return _primitive_to_json(kind, value)
            except (TypeError, AttributeError, DecimalException) as error:
                raise ValueError(f"Not a value of type {kind}: {str(value)[:100]!r}") from error
        case StructType():
            return {
                str(field.id): to_json_value(field.type, value[field.id])
                for field in kind.fields
                if field.id in value
            }
        case ListType():
            return [to_json_value(kind.element, item) for item in value]
        case MapType():
            return {
                "keys": [to_json_value(kind.key, key) for key in value],
                "values": [to_json_value(kind.value, item) for item in value.values()],
            }
        case never:
            assert_never(never)


def _primitive_to_json(kind: PrimitiveType, value: Any) -> Any:
    match kind.kind:
        case "boolean":
            return bool(value)
        case "int" | "long":
            return int(value)
        case "float" | "double":
            number = float(value)
            if math.isfinite(number):
                return number
            return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
        case "decimal":
            return format(decimal_of(unscaled_value(kind, value), kind.scale or 0), "f")
        case "date":
            return date_text(value)
        case "time":
            return time_text(value, _MICROSECONDS)
        case "timestamp" | "timestamptz" | "timestamp_ns" | "timestamptz_ns":
            return timestamp_text(
                value, _UNITS_A_SECOND[kind.kind], with_zone=kind.kind.startswith("timestamptz")
            )
        case "string" | "uuid":
            return str(value)
        case "fixed" | "binary":
            return value.hex().upper()
    raise ValueError(f"Type {kind} has no JSON form")


def from_json_value(kind: Type, value: Any) -> Any:
    """Return the value that a JSON value stands for; a struct becomes a dict by field id, a map a dict by key.

    Raises:
        ValueError: it is no value of this type.

    Spec: #json-single-value-serialization
    """
    if value is None:
        return None
    match kind:
        case PrimitiveType():
            try:
                return _primitive_from_json(kind, value)
            except (TypeError, ValueError, DecimalException) as error:
                raise ValueError(f"Not a value of type {kind}: {str(value)[:100]!r} ({error})") from error
        case StructType():
            if not isinstance(value, dict):
                raise ValueError("Not a struct: expected an object of values by field id")
            return {
                field.id: from_json_value(field.type, value[str(field.id)])
                for field in kind.fields
                if str(field.id) in value
            }
        case ListType():
            if not isinstance(value, list):
                raise ValueError("Not a list: expected an array")
            return [from_json_value(kind.element, item) for item in value]
        case MapType():
            return _map_from_json(kind, value)
        case never:
            assert_never(never)


def _map_from_json(kind: MapType, value: Any) -> dict[Any, Any]:
    keys, values = (value.get("keys"), value.get("values")) if isinstance(value, dict) else (None, None)
    if not isinstance(keys, list) or not isinstance(values, list) or len(keys) != len(values):
        raise ValueError("Not a map: expected an object with as many keys as values")
    if not isinstance(kind.key, PrimitiveType):
        raise ValueError("Not a map that this build reads: its keys have parts")
    return {
        from_json_value(kind.key, key): from_json_value(kind.value, item)
        for key, item in zip(keys, values, strict=True)
    }


def _primitive_from_json(kind: PrimitiveType, value: Any) -> Any:
    match kind.kind:
        case "boolean":
            if isinstance(value, bool):
                return value
        case "int" | "long":
            largest = MAX_INT if kind.kind == "int" else MAX_LONG
            if type(value) is int and -largest - 1 <= value <= largest:
                return value
        case "float" | "double":
            return _floating_from_json(kind, value)
        case "decimal":
            if isinstance(value, str) and _DECIMAL.fullmatch(value):
                return decimal_of(unscaled_value(kind, Decimal(value)), kind.scale or 0)
        case "date":
            return _within(days_of_date(value), MAX_INT)
        case "time":
            return units_of_time(value, _MICROSECONDS)
        case "timestamp" | "timestamptz" | "timestamp_ns" | "timestamptz_ns":
            with_zone = kind.kind.startswith("timestamptz")
            return _within(
                units_of_timestamp(value, _UNITS_A_SECOND[kind.kind], with_zone=with_zone), MAX_LONG
            )
        case "string":
            if isinstance(value, str):
                value.encode()  # half of a surrogate pair is no text
                return value
        case "uuid":
            if isinstance(value, str) and _UUID.fullmatch(value):
                return UUID(value)
        case "fixed" | "binary":
            content = bytes.fromhex(value)
            if len(value) == 2 * len(content) and (kind.kind == "binary" or len(content) == kind.length):
                return content
        case _:
            raise ValueError("the type has no JSON form")
    raise ValueError("not in its JSON form")


def _floating_from_json(kind: PrimitiveType, value: Any) -> float:
    if isinstance(value, str):
        number = _NO_NUMBERS.get(value)
        if number is None:
            raise ValueError("not a number")
        return number
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("not a number")
    try:
        # A float of 32 bits is the nearest there is, as a bound or a partition value has it.
        return float(_FLOAT.unpack(_FLOAT.pack(value))[0]) if kind.kind == "float" else float(value)
    except OverflowError as error:
        raise ValueError("out of range") from error


def _within(number: int, largest: int) -> int:
    if not -largest - 1 <= number <= largest:
        raise ValueError("out of range")
    return number


def is_nan(value: Any) -> bool:
    """Tell whether a value is not a number, which only a float or double can be."""
    return isinstance(value, float) and math.isnan(value)


def order_key(value: Any) -> Any:
    """Return what sorts and compares like the value: -0.0 before 0.0, NaN after everything.

    Other values compare as they are in Python: strings by code point (which is the order of their UTF-8), bytes
    and uuids as unsigned bytes, decimals by number, false before true.

    Spec: #sorting
    """
    if isinstance(value, float):
        return (2, 0.0, 0.0) if math.isnan(value) else (1, value, math.copysign(1.0, value))
    return value


def compare(left: Any, right: Any) -> int:
    """Return -1, 0 or 1 as a value is before, equal to or after another of the same type."""
    first, second = order_key(left), order_key(right)
    return (first > second) - (first < second)
