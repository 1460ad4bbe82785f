"""Values of primitive types: their binary form in bounds, and their order.

In Python, int, long, date (days since 1970), time and timestamp (micro- or nanoseconds since 1970) are `int`; float and
double are `float`; decimal is `Decimal`; uuid is `UUID`; fixed, binary, variant and geo values are `bytes`.
"""

from __future__ import annotations

import math
import struct
import sys
from collections.abc import Mapping
from decimal import Context, Decimal, DecimalException
from typing import Any, Final
from uuid import UUID

from app.engine.model.data_types.moments import UNITS_A_DAY
from app.engine.model.data_types.types import PrimitiveType

_INT: Final = struct.Struct("<i")
_LONG: Final = struct.Struct("<q")
_FLOAT: Final = struct.Struct("<f")
_DOUBLE: Final = struct.Struct("<d")
_EXACT: Final = Context(prec=100)
"""The default context rounds to 28 digits, but decimals have up to 38."""
_MOST_BITS: Final = 4096
"""Decimals have 127, those of filters some more. To convert millions takes minutes, in which no other thread runs."""
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
_WIDENED: Final = {
    "long": (_INT, 1),
    "double": (_FLOAT, 1),
    "timestamp": (_INT, UNITS_A_DAY["timestamp"]),
    "timestamp_ns": (_INT, UNITS_A_DAY["timestamp_ns"]),
}
"""How four bytes are read where eight are expected: the column was an int, a float or a date before."""

FLOATING_KINDS: Final = frozenset({"float", "double"})
UNORDERED_KINDS: Final = frozenset({"variant", "geometry", "geography"})
"""Values of these have no order, and their bounds are no values."""
LARGEST_FLOAT: Final = 3.4028234663852886e38
"""The largest number that a float of 32 bits can hold."""
LARGEST: Final = {"float": LARGEST_FLOAT, "double": sys.float_info.max}
"""The largest number of each floating type."""


def to_bytes(kind: PrimitiveType, value: Any) -> bytes:
    """Return a value in binary form, as in bounds.

    Raises:
        ValueError: not a value of this type.

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
                return fewest_bytes(unscaled_value(kind, value))
            case "fixed" if len(value) != kind.length:
                raise ValueError(f"{len(value)} bytes")
            case "fixed" | "binary" | "variant" | "geometry" | "geography":
                return bytes(value)
    except (TypeError, ValueError, AttributeError, struct.error, OverflowError, DecimalException) as error:
        raise ValueError(f"Not a value of type {kind}: {str(value)[:100]!r} ({error})") from error
    raise ValueError(f"Type {kind} has no binary form")


def from_bytes(kind: PrimitiveType, content: bytes) -> Any:
    """Return the value of a bound in binary form.

    A bound that was written before its column was widened is shorter, and is read as the narrower type.

    Raises:
        ValueError: the bytes are not a value of this type.

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
    """Return unscaled × 10⁻ˢᶜᵃˡᵉ, exactly.

    Raises:
        ValueError: no decimal has as many digits.
    """
    if unscaled.bit_length() > _MOST_BITS:
        raise ValueError("too many digits")
    return Decimal(unscaled).scaleb(-scale, _EXACT)


def fewest_bytes(number: int) -> bytes:
    """Return a number in as few big-endian bytes as it needs with its sign."""
    # One more bit than the magnitude needs, for the sign; -128 fits one byte.
    bits = (number + 1 if number < 0 else number).bit_length() + 1
    return number.to_bytes((bits + 7) // 8, "big", signed=True)


def unscaled_value(kind: PrimitiveType, value: Any) -> int:
    """Return a decimal's digits as a whole number.

    Raises:
        ValueError: it has more decimal places, or more digits, than the type.
    """
    number = Decimal(value)
    if number and number.adjusted() > _EXACT.prec:  # not converted, as in `decimal_of`
        raise ValueError("too many digits")
    shifted = number.scaleb(kind.scale or 0, _EXACT)
    unscaled = int(shifted)
    if unscaled != shifted or abs(unscaled) >= 10 ** (kind.precision or 38):
        raise ValueError("too many digits")
    return unscaled


def nearest_float(number: float) -> float:
    """Return the float of 32 bits that is nearest to a number.

    Raises:
        OverflowError: the number is too large for one.
    """
    return float(_FLOAT.unpack(_FLOAT.pack(number))[0])


def is_nan(value: Any) -> bool:
    """Return whether a value is NaN, which only a float or double can be."""
    return isinstance(value, float) and math.isnan(value)


def order_key(value: Any) -> Any:
    """Return a key that compares like the value: -0.0 before 0.0, NaN after everything.

    Other values compare as they are in Python: strings by code point (which is the order of their UTF-8), bytes
    and uuids as unsigned bytes, decimals by number, false before true. A uuid equals its bytes, which is what is read
    of writers that leave the logical type of a partition value out.

    Spec: #sorting
    """
    if isinstance(value, float):
        return (2, 0.0, 0.0) if math.isnan(value) else (1, value, math.copysign(1.0, value))
    return value.bytes if isinstance(value, UUID) else value
