"""Partition and sort transforms: their text, source types and result types."""

from __future__ import annotations

import re
from dataclasses import dataclass

from app.engine.model.data_types.moments import UNITS_A_DAY, UNITS_A_SECOND
from app.engine.model.data_types.types import PrimitiveType, Type

_WITH_PARAMETER = re.compile(r"(bucket|truncate)\[(\d{1,10})\]", re.ASCII)
_NAMES = frozenset({"identity", "year", "month", "day", "hour", "void"})

_TIMESTAMPS = frozenset(UNITS_A_SECOND)
_BUCKETABLE = (
    frozenset({"int", "long", "decimal", "date", "time", "string", "uuid", "fixed", "binary"}) | _TIMESTAMPS
)
_TRUNCATABLE = frozenset({"int", "long", "decimal", "string", "binary"})
_NOT_IDENTITY = frozenset({"variant", "geometry", "geography"})
_ALIKE = (
    {"int", "long"},
    {"float", "double"},
    {"timestamp", "timestamptz"},
    {"timestamp_ns", "timestamptz_ns"},
)
"""Types with the same values: what one of them is transformed to, the other is too."""
_INT = PrimitiveType("int", "int")
_DATE = PrimitiveType("date", "date")


@dataclass(frozen=True, slots=True)
class Transform:
    """A function from a column's value to a partition or sort value.

    Spec: #partition-transforms
    """

    name: str
    parameter: int | None = None

    def __str__(self) -> str:
        return self.name if self.parameter is None else f"{self.name}[{self.parameter}]"

    def applies_to(self, source: Type) -> bool:
        """Return whether values of this type can be transformed."""
        if self.name == "void":
            return True
        if not isinstance(source, PrimitiveType):
            return False
        match self.name:
            case "identity":
                return source.kind not in _NOT_IDENTITY
            case "bucket":
                return source.kind in _BUCKETABLE
            case "truncate":
                return source.kind in _TRUNCATABLE
            case "year" | "month" | "day":
                return source.kind in UNITS_A_DAY
            case "hour":
                return source.kind in _TIMESTAMPS
        return False

    def result_type(self, source: Type) -> Type:
        """Return the type of the transformed values."""
        match self.name:
            case "bucket" | "year" | "month" | "hour":
                return _INT
            case "day":
                return _DATE
        return source


def keeps_values(transform: Transform, before: PrimitiveType, after: PrimitiveType) -> bool:
    """Return whether values are transformed to the same ones when their type changes.

    Spec: #schema-evolution
    """
    if before == after or transform.name == "void" or before.kind == "unknown":
        return True
    if transform.name not in ("identity", "bucket", "truncate"):
        return before.kind in UNITS_A_DAY and after.kind in UNITS_A_DAY
    if before.kind == after.kind == "decimal":
        return before.scale == after.scale
    return any({before.kind, after.kind} == kinds for kinds in _ALIKE)


def find_transform(text: str) -> Transform | None:
    """Return the transform that a text names; None if this build does not know it.

    Tables keep unknown transforms: they come from later format versions or other writers.
    """
    try:
        return parse_transform(text)
    except ValueError:
        return None


def parse_transform(text: str) -> Transform:
    """Return the transform that a text names; upper case is accepted.

    Raises:
        ValueError: no such transform, or a parameter that is not a positive 32-bit number.
    """
    name = text.strip().lower()
    if name in _NAMES:
        return Transform(name)
    if match := _WITH_PARAMETER.fullmatch(name):
        parameter = int(match[2])
        if not 0 < parameter < 2**31:
            raise ValueError(f"Invalid transform {text!r}: the parameter must be from 1 to {2**31 - 1}")
        return Transform(match[1], parameter)
    raise ValueError(f"Unknown transform: {text[:100]!r}")
