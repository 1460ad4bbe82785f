"""Literals: from a constant of a filter to a value of the column's type."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal, InvalidOperation
from enum import Enum
from typing import Any, Final
from uuid import UUID

from app.engine.expressions.expressions import Literal, Value
from app.engine.model.data_types.json_values import from_json_value
from app.engine.model.data_types.moments import UNITS_A_DAY
from app.engine.model.data_types.types import PrimitiveType
from app.engine.model.data_types.values import LARGEST, nearest_float
from app.engine.model.document import MAX_INT, MAX_LONG

_RANGES: Final = {
    "int": (-MAX_INT - 1, MAX_INT),
    "date": (-MAX_INT - 1, MAX_INT),
    "time": (0, UNITS_A_DAY["timestamp"] - 1),
}
_WHOLE: Final = frozenset({"int", "long", "time", *UNITS_A_DAY})
_EXACT: Final = Context(prec=1000)
_NUMBER: Final = re.compile(r"[+-]?\d{1,400}(?:\.\d{1,400})?(?:[eE][+-]?\d{1,2})?", re.ASCII)


class OutOfRange(Enum):
    """Where a literal is if it is outside the values of the column's type."""

    ABOVE = "above"
    BELOW = "below"


@dataclass(frozen=True, slots=True)
class Between:
    """A literal between two values of the column's type: this one and the next."""

    below: Any


def value_of(literal: Literal, kind: PrimitiveType) -> Any:
    """Return the literal as a value of a type, or its place among the type's values.

    Raises:
        ValueError: it is not a value of the type.
    """
    value, source = literal.value, literal.data_type
    if source is None:
        return _converted(value, kind)
    typed = _typed(value, source)
    if source.kind in UNITS_A_DAY:
        if kind.kind not in UNITS_A_DAY:
            raise ValueError(f"a {source} is no {kind}")
        units, rest = divmod(typed * UNITS_A_DAY[kind.kind], UNITS_A_DAY[source.kind])
        below = _in_range(units, kind)
        return Between(below) if rest and not isinstance(below, OutOfRange) else below
    if source.kind == "time" and kind.kind != "time":
        raise ValueError(f"a {source} is no {kind}")
    return _converted(typed, kind)


def _typed(value: Value, source: PrimitiveType) -> Any:
    if source.kind == "decimal" and type(value) is int:
        value = str(value)
    return from_json_value(source, value)


def _converted(value: Any, kind: PrimitiveType) -> Any:
    match value:
        case bool() if kind.kind == "boolean":
            return value
        case bool():
            pass
        case int() if kind.kind in _WHOLE:
            # As in the reference, a number without a type counts microseconds, also for nanosecond columns.
            return _in_range(value * 1000 if kind.kind.endswith("_ns") else value, kind)
        case int() | float() | Decimal() if kind.kind in ("float", "double"):
            return _floating(value, kind)
        case int() | float() | Decimal() if kind.kind == "decimal":
            return _decimal(value, kind)
        case str() if kind.kind == "decimal" and _NUMBER.fullmatch(value):
            return _decimal(Decimal(value), kind)
        case str() if kind.kind in ("float", "double") and _NUMBER.fullmatch(value):
            # The reference sends numbers; PyIceberg reads `3.5` as a decimal and sends its text.
            return _floating(Decimal(value), kind)
        case str() if kind.kind in _WITH_ZONE and _NO_ZONE.fullmatch(value):
            # PyIceberg leaves the zone out, which is always UTC.
            return from_json_value(kind, f"{value}Z")
        case str() if kind.kind in _FROM_TEXT:
            return from_json_value(kind, value)
        case bytes() if kind.kind == "binary" or (kind.kind == "fixed" and len(value) == kind.length):
            return value
        case UUID() if kind.kind == "uuid":
            return value
    raise ValueError(f"it is no value of type {kind}")


_WITH_ZONE: Final = frozenset({"timestamptz", "timestamptz_ns"})
_NO_ZONE: Final = re.compile(r"[+-]?\d{4,9}-\d\d-\d\dT[\d:.]+", re.ASCII)
_FROM_TEXT: Final = frozenset({"string", "uuid", "fixed", "binary", "time", *UNITS_A_DAY})


def _in_range(number: int, kind: PrimitiveType) -> int | OutOfRange:
    lowest, highest = _RANGES.get(kind.kind, (-MAX_LONG - 1, MAX_LONG))
    if number > highest:
        return OutOfRange.ABOVE
    return OutOfRange.BELOW if number < lowest else number


def _floating(value: float | Decimal, kind: PrimitiveType) -> float | Between:
    try:
        number = float(value)
        if math.isnan(number):
            raise ValueError("NaN compares with nothing: use is-nan or not-nan")
        if math.isinf(number):
            if isinstance(value, float):
                raise ValueError("clients could not read infinity back from a plan")
            raise OverflowError  # A decimal, which does not say so by itself as a whole number does.
        if kind.kind == "double":
            return number
        # The column's values are floats of 32 bits too.
        return nearest_float(number)
    except OverflowError:
        return Between(LARGEST[kind.kind]) if value > 0 else Between(-math.inf)


def _decimal(value: float | Decimal, kind: PrimitiveType) -> Decimal | Between:
    step = Decimal(1).scaleb(-(kind.scale or 0))
    try:
        if isinstance(value, float):
            if math.isnan(value):
                raise ValueError("NaN compares with nothing")
            # Through its text: 1.1 means 11 tenths, not the nearest binary fraction.
            return Decimal(repr(value)).quantize(step, ROUND_HALF_UP, _EXACT)
        exact = Decimal(value)
        below = exact.quantize(step, ROUND_FLOOR, _EXACT)
    except InvalidOperation as error:
        raise ValueError("not a number, or one with too many digits") from error
    return below if below == exact else Between(below)
