"""Strategies for values of every primitive type, with their corners."""

from __future__ import annotations

import math
from typing import Any, Literal

from hypothesis import strategies as st

from app.engine.model.data_types.types import PrimitiveType
from app.engine.model.data_types.values import FLOATING_KINDS, decimal_of

MAX_INT, MAX_LONG = 2**31 - 1, 2**63 - 1
CORNERS = (0.0, -0.0, math.nan, math.inf, -math.inf)


def single_values(kind: PrimitiveType, *, only_finite: bool = False) -> st.SearchStrategy[Any]:
    """Return values of a type that has a binary form."""
    if only_finite and kind.kind in FLOATING_KINDS:
        width: Literal[32, 64] = 32 if kind.kind == "float" else 64
        return st.floats(width=width, allow_nan=False, allow_infinity=False)
    match kind.kind:
        case "boolean":
            return st.booleans()
        case "int" | "date":
            return st.integers(-MAX_INT - 1, MAX_INT)
        case "time":
            return st.integers(0, 86_400_000_000 - 1)
        case "long" | "timestamp" | "timestamptz" | "timestamp_ns" | "timestamptz_ns":
            return st.integers(-MAX_LONG - 1, MAX_LONG)
        case "float":
            return st.floats(width=32) | st.sampled_from(CORNERS)
        case "double":
            return st.floats() | st.sampled_from(CORNERS)
        case "decimal":
            largest = 10 ** (kind.precision or 1) - 1
            return st.integers(-largest, largest).map(lambda digits: decimal_of(digits, kind.scale or 0))
        case "string":
            return st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
        case "uuid":
            return st.uuids()
        case "fixed":
            return st.binary(min_size=kind.length or 0, max_size=kind.length)
        case "binary":
            return st.binary(max_size=80)
    raise AssertionError(kind)
