"""Single values in JSON: column defaults, literals of filters, partition values in answers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal, DecimalException
from typing import Any, Final
from uuid import UUID

from app.engine.model.data_types.moments import (
    MICROSECONDS,
    UNITS_A_SECOND,
    date_text,
    days_of_date,
    time_text,
    timestamp_text,
    units_of_time,
    units_of_timestamp,
)
from app.engine.model.data_types.types import PrimitiveType
from app.engine.model.data_types.values import (
    FLOATING_KINDS,
    LARGEST_FLOAT,
    decimal_of,
    nearest_float,
    unscaled_value,
)
from app.engine.model.document import MAX_INT, MAX_LONG, UUID_FORM

_DECIMAL: Final = re.compile(r"[+-]?\d{1,400}(?:\.\d{1,400})?(?:[eE][+-]?\d{1,3})?", re.ASCII)
"""No type has more than 38 digits, and to read a million of them takes half a minute, in which nothing else is done."""
_HEX: Final = re.compile(r"[0-9a-fA-F]*")
"""Not as pairs, of which a pattern would remember each."""
_NO_NUMBERS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""JSON has no numbers for these; the reference writes and reads them as strings."""
_DATE: Final = r"(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}"
_DEFAULT_FORMS: Final = {
    "decimal": re.compile(r"[^eE]*"),
    "date": re.compile(_DATE),
    **dict.fromkeys(("timestamp", "timestamp_ns"), re.compile(f"{_DATE}T.*")),
    **dict.fromkeys(("timestamptz", "timestamptz_ns"), re.compile(rf"{_DATE}T.*(?:Z|\+00:00)")),
}
"""What defaults must look like, for types of which `from_json_value` reads more forms."""


def to_json_value(kind: PrimitiveType, value: Any) -> Any:
    """Return a value in JSON; null stays null.

    Raises:
        ValueError: not a value of this type, or the type has no JSON form.

    Spec: #json-single-value-serialization
    """
    if value is None:
        return None
    try:
        return _to_json(kind, value)
    except (TypeError, AttributeError, ValueError, OverflowError, DecimalException) as error:
        raise ValueError(f"Not a value of type {kind}: {str(value)[:100]!r}") from error


def _to_json(kind: PrimitiveType, value: Any) -> Any:
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
            return time_text(value, MICROSECONDS)
        case "timestamp" | "timestamptz" | "timestamp_ns" | "timestamptz_ns":
            return timestamp_text(
                value, UNITS_A_SECOND[kind.kind], with_zone=kind.kind.startswith("timestamptz")
            )
        case "string" | "uuid":
            return str(value)
        case "fixed" | "binary":
            return value.hex().upper()
    raise ValueError(f"Type {kind} has no JSON form")


def _shortest(number: float) -> float:
    """Return the shortest number with the same float of 32 bits: 0.1, not 0.10000000149011612."""
    nearest = nearest_float(number)
    for digits in range(6, 9):
        shorter = float(f"{number:.{digits}g}")
        if abs(shorter) <= LARGEST_FLOAT and nearest_float(shorter) == nearest:
            return shorter
    return float(f"{number:.9g}")


def from_json_value(kind: PrimitiveType, value: Any) -> Any:
    """Return the value that a JSON value means; null stays null.

    Raises:
        ValueError: not a value of this type, or the type has no JSON form.

    Spec: #json-single-value-serialization
    """
    if value is None:
        return None
    read = _FROM_JSON.get(kind.kind)
    if read is None:
        raise ValueError(f"Type {kind} has no JSON form")
    try:
        return read(kind, value)
    except (TypeError, AttributeError, KeyError, ValueError, OverflowError, DecimalException) as error:
        raise ValueError(f"Not a value of type {kind}: {str(value)[:100]!r} ({error})") from error


def is_default_value(kind: PrimitiveType, value: Any) -> bool:
    """Return whether a JSON value can be the default of a column of this type; null can.

    A default must have the form that all clients read, which is stricter than `from_json_value`: a client that
    finds another form cannot read the table at all.
    """
    if value is None:
        return True
    # As in the reference: whole numbers need their `.0`, and there is no default NaN.
    if kind.kind in FLOATING_KINDS and type(value) is not float:
        return False
    form = _DEFAULT_FORMS.get(kind.kind)
    try:
        from_json_value(kind, value)
    except ValueError:
        return False
    if kind.kind == "decimal" and len(value.partition(".")[2]) != kind.scale:
        return False
    return form is None or form.fullmatch(value) is not None


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
    # Bounds and partition values have the nearest float of 32 bits too.
    return nearest_float(value) if kind.kind == "float" else float(value)


def _decimal_from_json(kind: PrimitiveType, value: Any) -> Decimal:
    if _DECIMAL.fullmatch(value) is None:
        raise ValueError("not a decimal")
    return decimal_of(unscaled_value(kind, Decimal(value)), kind.scale or 0)


def _timestamp_from_json(kind: PrimitiveType, value: Any) -> int:
    with_zone = kind.kind.startswith("timestamptz")
    return _within(units_of_timestamp(value, UNITS_A_SECOND[kind.kind], with_zone=with_zone), MAX_LONG)


def _text_from_json(_: PrimitiveType, value: Any) -> str:
    str.encode(value)  # half of a surrogate pair is no text
    return str(value)


def _uuid_from_json(_: PrimitiveType, value: Any) -> UUID:
    if UUID_FORM.fullmatch(value) is None:
        raise ValueError("not a uuid")
    return UUID(value)


def _binary_from_json(kind: PrimitiveType, value: Any) -> bytes:
    is_too_short = kind.kind == "fixed" and len(value) != 2 * (kind.length or 0)
    if _HEX.fullmatch(value) is None or len(value) % 2 or is_too_short:
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
    "time": lambda _, value: units_of_time(value, MICROSECONDS),
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
