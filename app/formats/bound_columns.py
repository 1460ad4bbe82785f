"""Bounds of one column as Arrow columns: which files of a large manifest can hold a value in a range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from app.engine.model.entry_filters import ValueRange
from app.engine.model.types import PrimitiveType
from app.engine.model.values import FLOATING_KINDS, from_bytes, is_nan, to_bytes

_NUMBERS: Final = {
    "int": pa.int32(),
    "date": pa.int32(),
    "long": pa.int64(),
    "time": pa.int64(),
    "timestamp": pa.int64(),
    "timestamptz": pa.int64(),
    "timestamp_ns": pa.int64(),
    "timestamptz_ns": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
}
"""Bounds of these are laid out as Arrow has them in memory."""
_BYTES: Final = frozenset({"string", "uuid", "fixed", "binary"})
"""Values of these are in the order of their bytes."""


@dataclass(frozen=True, slots=True)
class BoundColumns:
    """The lower and upper bounds of one column, file by file; null where they are missing or say nothing."""

    lower: pa.Array
    upper: pa.Array

    @property
    def size_bytes(self) -> int:
        """How much memory they take."""
        return int(self.lower.nbytes + self.upper.nbytes)

    def positions_in(self, wanted: ValueRange) -> set[int]:
        """Return the positions of files that may hold a value of the range; a missing bound rules nothing out."""
        is_out = pa.array([False] * len(self.lower), pa.bool_())
        for bounds, limit, is_beyond in (
            (self.upper, wanted.lowest, pc.less),
            (self.lower, wanted.highest, pc.greater),
        ):
            scalar = _scalar(wanted.kind, limit)
            if scalar is not None:
                is_out = pc.or_kleene(is_out, is_beyond(bounds, scalar))
        may_be_in = pc.invert(pc.fill_null(is_out, fill_value=False))
        return set(pc.indices_nonzero(may_be_in).to_pylist())


def bound_columns(
    kind: PrimitiveType, lower: Sequence[bytes | None], upper: Sequence[bytes | None]
) -> BoundColumns | None:
    """Return bounds in binary form as columns; None for types whose bounds are not compared so."""
    if kind.kind == "decimal" or kind.kind in _NUMBERS or kind.kind in _BYTES:
        return BoundColumns(_column(kind, lower), _column(kind, upper))
    return None


def _column(kind: PrimitiveType, bounds: Sequence[bytes | None]) -> pa.Array:
    if kind.kind in _BYTES:
        return pa.array(bounds, pa.binary())
    arrow = _arrow_type(kind)
    width = arrow.bit_width // 8
    if kind.kind not in _NUMBERS or any(bound is not None and len(bound) != width for bound in bounds):
        return pa.array([_value(kind, arrow, bound) for bound in bounds], arrow)
    absent = bytes(width)
    packed = b"".join([absent if bound is None else bound for bound in bounds])
    is_present = pa.array([bound is not None for bound in bounds], pa.bool_())
    column = pa.Array.from_buffers(arrow, len(bounds), [is_present.buffers()[1], pa.py_buffer(packed)])
    if kind.kind in FLOATING_KINDS:
        # Early writers took NaN for a bound, which is none.
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, arrow), column)
    return column


def _arrow_type(kind: PrimitiveType) -> pa.DataType:
    return pa.decimal128(38, kind.scale) if kind.kind == "decimal" else _NUMBERS[kind.kind]


def _value(kind: PrimitiveType, arrow: pa.DataType, bound: bytes | None) -> Any:
    """Return a bound's value; None for one that makes no sense, so that it rules nothing out."""
    if bound is None:
        return None
    try:
        value = from_bytes(kind, bound)
        if is_nan(value):
            return None
        # A date that became a moment may be one that no moment's number reaches.
        return pa.scalar(value, arrow).as_py()
    except (ValueError, OverflowError, pa.ArrowException):
        return None


def _scalar(kind: PrimitiveType, limit: Any) -> pa.Scalar | None:
    """Return a limit to compare with; None for one that the type cannot have, which so rules nothing out."""
    if limit is None:
        return None
    try:
        if kind.kind in _BYTES:
            return pa.scalar(to_bytes(kind, limit), pa.binary())
        # A limit between two floats of 32 bits would be rounded to one of them: Arrow compares in 64 bits then.
        return pa.scalar(limit, pa.float64() if kind.kind == "float" else _arrow_type(kind))
    except (ValueError, OverflowError, pa.ArrowException):
        return None
