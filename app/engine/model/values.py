"""Single values: their binary and JSON forms, and their order.

In Python, int, long, date (days since 1970), time and timestamp (micro- or nanoseconds since 1970) are `int`; float and
double are `float`; decimal is `Decimal`; uuid is `UUID`; fixed, binary, variant and geo values are `bytes`.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping
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
_NUMBERS: Final[Mapping[str, struct.Struct]] = {
    "int": _INT,
    "long": _LONG,
    "float": _FLOAT,
    "double": _DOUBLE,
    "date": _INT,
    "time": _LONG,
    "timestamp": _LONG,
    "timestamptz": _LONG,
    "timestamp_ns": _LONG,
    "timestamptz_ns": _LONG,
}
_MICROSECONDS_A_DAY: Final = 86_400_000_000
_WIDENED: Final = {
    "long": (_INT, 1),
    "double": (_FLOAT, 1),
    "timestamp": (_INT, _MICROSECONDS_A_DAY),
    "timestamp_ns": (_INT, _MICROSECONDS_A_DAY * 1000),
}
"""What four bytes are where eight are due: the column was an int, a float or a date before."""

FLOATING_KINDS: Final = frozenset({"float", "double"})
_MICROSECONDS: Final = 10**6
_UNITS_A_SECOND: Final = {
    "timestamp": _MICROSECONDS,
    "timestamptz": _MICROSECONDS,
    "timestamp_ns": 10**9,
    "timestamptz_ns": 10**9,
}
_DECIMAL: Final = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?", re.ASCII)
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_HEX: Final = re.compile(r"([0-9a-fA-F]{2})*")
_LARGEST_FLOAT: Final = 3.4028234663852886e38
_NO_NUMBERS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""JSON has no numbers for these; the reference writes and reads them as strings."""


def to_bytes(kind: PrimitiveType, value: Any) -> bytes:
    """Return a value in the binary form that bounds have.

    Raises:
        ValueError: the value is none of this type.

    Spec: #binary-single-value-serialization
    """
    numbers = _NUMBERS.get(kind.kind)
    try:
        if numbers is not None:
            return numbers.pack(value)
        match kind.kind:
            case "boolean":
                return b"\x01" if value else b"\x00"
            case "string":
                return str.encode(value)
            case "uuid":
                return bytes(value.bytes)
            case "decimal":
                unscaled = unscaled_value(kind, value)
                # One more bit than the magnitude needs, for the sign; -128 fits one byte.
                bits = (unscaled + 1 if unscaled < 0 else unscaled).bit_length() + 1
                return unscaled.to_bytes((bits + 7) // 8, "big", signed=True)
            case "fixed" if len(value) != kind.length:
                raise ValueError(f"{len(value)} bytes")
            case "fixed" | "binary" | "variant" | "geometry" | "geography":
                return bytes(value)
    except (TypeError, ValueError, AttributeError, struct.error, OverflowError, DecimalException) as error:
        raise ValueError(f"Not a value of type {kind}: {str(value)[:100]!r} ({error})") from error
    raise ValueError(f"Type {kind} has no binary form")


def from_bytes(kind: PrimitiveType, content: bytes) -> Any:
    """Return the value that a bound in binary form stands for.

    Bounds written before a column was widened have the narrower type's form, which their length tells.

    Raises:
        ValueError: the bytes are no value of this type.

    Spec: #binary-single-value-serialization
    """
    numbers = _NUMBERS.get(kind.kind)
    try:
        if numbers is not None:
            if len(content) == 4 and kind.kind in _WIDENED:
                narrow, factor = _WIDENED[kind.kind]
                return narrow.unpack(content)[0] * factor
            return numbers.unpack(content)[0]
        match kind.kind:
            case "boolean" if len(content) == 1:
                return content != b"\x00"
            case "string":
                return str(content, "utf-8")
            case "uuid":
                return UUID(bytes=bytes(content))
            case "decimal" if content:
                return decimal_of(int.from_bytes(content, "big", signed=True), kind.scale or 0)
            case "fixed" if len(content) == kind.length:
                return bytes(content)
            case "binary" | "variant" | "geometry" | "geography":
                return bytes(content)
            case "boolean" | "decimal" | "fixed":
                raise ValueError(f"{len(content)} bytes")
    except (ValueError, struct.error) as error:
        raise ValueError(
            f"Not a value of type {kind} in binary form: {bytes(content[:32]).hex()} ({error})"
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
            except (TypeError, AttributeError, ValueError, OverflowError, DecimalException) as error:
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
                return _shortest(number) if kind.kind == "float" else number
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


def _shortest(number: float) -> float:
    """Return the number with the fewest digits that is this one in 32 bits: 0.1, not 0.10000000149011612."""
    packed = _FLOAT.pack(number)
    for digits in range(6, 9):
        shorter = float(f"{number:.{digits}g}")
        if abs(shorter) <= _LARGEST_FLOAT and _FLOAT.pack(shorter) == packed:
            return shorter
    return float(f"{number:.9g}")


def from_json_value(kind: Type, value: Any) -> Any:
    """Return the value that a JSON value stands for; a struct becomes a dict by field id, a map a dict by key.

    Raises:
        ValueError: it is no value of this type.

    Spec: #json-single-value-serialization
    """
    if value is None:
        return None
    match kind, value:
        case PrimitiveType(), _:
            return _primitive_from_json(kind, value)
        case StructType(), dict():
            return {
                field.id: from_json_value(field.type, value[str(field.id)])
                for field in kind.fields
                if str(field.id) in value
            }
        case ListType(), list():
            return [from_json_value(kind.element, item) for item in value]
        case MapType(key=PrimitiveType()), {"keys": list(keys), "values": list(values)}:
            if len(keys) == len(values):
                return {
                    from_json_value(kind.key, key): from_json_value(kind.value, item)
                    for key, item in zip(keys, values, strict=True)
                }
    raise ValueError(
        f"Not a value of a {type(kind).__name__.removesuffix('Type').lower()}: {str(value)[:100]!r}"
    )


def _primitive_from_json(kind: PrimitiveType, value: Any) -> Any:
    read = _FROM_JSON.get(kind.kind)
    if read is None:
        raise ValueError(f"Type {kind} has no JSON form")
    try:
        return read(kind, value)
    except (TypeError, AttributeError, KeyError, ValueError, OverflowError, DecimalException) as error:
        raise ValueError(f"Not a value of type {kind}: {str(value)[:100]!r} ({error})") from error


def _boolean_from_json(_: PrimitiveType, value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    raise ValueError("neither true nor false")


def _whole_from_json(kind: PrimitiveType, value: Any) -> int:
    if type(value) is not int:
        raise ValueError("not a whole number")
    return _within(value, MAX_INT if kind.kind == "int" else MAX_LONG)


def _floating_from_json(kind: PrimitiveType, value: Any) -> float:
    if type(value) is str:
        return _NO_NUMBERS[value]
    if type(value) is not int and type(value) is not float:
        raise ValueError("not a number")
    # A float of 32 bits is the nearest there is, as a bound or a partition value has it.
    return float(_FLOAT.unpack(_FLOAT.pack(value))[0]) if kind.kind == "float" else float(value)


def _decimal_from_json(kind: PrimitiveType, value: Any) -> Decimal:
    if _DECIMAL.fullmatch(value) is None:
        raise ValueError("not a decimal")
    return decimal_of(unscaled_value(kind, Decimal(value)), kind.scale or 0)


def _timestamp_from_json(kind: PrimitiveType, value: Any) -> int:
    with_zone = kind.kind.startswith("timestamptz")
    return _within(units_of_timestamp(value, _UNITS_A_SECOND[kind.kind], with_zone=with_zone), MAX_LONG)


def _text_from_json(_: PrimitiveType, value: Any) -> str:
    str.encode(value)  # half of a surrogate pair is no text
    return str(value)


def _uuid_from_json(_: PrimitiveType, value: Any) -> UUID:
    if _UUID.fullmatch(value) is None:
        raise ValueError("not a uuid")
    return UUID(value)


def _binary_from_json(kind: PrimitiveType, value: Any) -> bytes:
    if _HEX.fullmatch(value) is None or (kind.kind == "fixed" and len(value) != 2 * (kind.length or 0)):
        raise ValueError("not the hexadecimal digits of its bytes")
    return bytes.fromhex(value)


_FROM_JSON: Final[Mapping[str, Callable[[PrimitiveType, Any], Any]]] = {
    "boolean": _boolean_from_json,
    "int": _whole_from_json,
    "long": _whole_from_json,
    "float": _floating_from_json,
    "double": _floating_from_json,
    "decimal": _decimal_from_json,
    "date": lambda _, value: _within(days_of_date(value), MAX_INT),
    "time": lambda _, value: units_of_time(value, _MICROSECONDS),
    "timestamp": _timestamp_from_json,
    "timestamptz": _timestamp_from_json,
    "timestamp_ns": _timestamp_from_json,
    "timestamptz_ns": _timestamp_from_json,
    "string": _text_from_json,
    "uuid": _uuid_from_json,
    "fixed": _binary_from_json,
    "binary": _binary_from_json,
}


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
    return int(first > second) - int(first < second)
