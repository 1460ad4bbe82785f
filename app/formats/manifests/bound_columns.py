"""Bounds as Arrow columns: which files of a large manifest can hold a value in a range.

Columns are made of bytes, never of Python's values: to convert the first value, Arrow loads pandas if it is installed,
and that takes longer than planning a scan.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from app.engine.model.data_types.types import PrimitiveType
from app.engine.model.data_types.values import FLOATING_KINDS, from_bytes, is_nan, to_bytes, unscaled_value
from app.engine.model.files.entry_filters import ValueRange

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
"""Bounds of these types have the layout of Arrow's memory."""
_BYTES: Final = frozenset({"string", "uuid", "fixed", "binary"})
"""Values of these types are ordered like their bytes."""
_DECIMAL_BYTES: Final = 16
_DOUBLE: Final = struct.Struct("<d")
_FALSE: Final = pa.Array.from_buffers(pa.bool_(), 1, [None, pa.py_buffer(b"\x00")])[0]


@dataclass(frozen=True, slots=True)
class BoundColumns:
    """The lower and upper bounds of one column, file by file; null if missing or useless."""

    lower: pa.Array
    upper: pa.Array

    def positions_in(self, wanted: ValueRange) -> set[int]:
        """Return the positions of files that may hold a value of the range."""
        ruled_out = [
            pc.coalesce(is_beyond(bounds, limit), _FALSE)
            for bounds, limit, is_beyond in (
                (self.upper, _limit(wanted.kind, wanted.lowest), pc.less),
                (self.lower, _limit(wanted.kind, wanted.highest), pc.greater),
            )
            if limit is not None
        ]
        match ruled_out:
            case [one]:
                return set(pc.indices_nonzero(pc.invert(one)).to_pylist())
            case [one, other]:
                return set(pc.indices_nonzero(pc.invert(pc.or_(one, other))).to_pylist())
        return set(range(len(self.lower)))


def bound_columns(
    kind: PrimitiveType, lower: Sequence[bytes | None], upper: Sequence[bytes | None]
) -> BoundColumns | None:
    """Return bounds in binary form as columns; None if such columns cannot be compared."""
    if kind.kind == "decimal" or kind.kind in _NUMBERS or kind.kind in _BYTES:
        return BoundColumns(_column(kind, lower), _column(kind, upper))
    return None


def _column(kind: PrimitiveType, bounds: Sequence[bytes | None]) -> pa.Array:
    if kind.kind in _BYTES:
        sizes = (0 if bound is None else len(bound) for bound in bounds)
        offsets = array("q", accumulate(sizes, initial=0))
        return _array_of(pa.large_binary(), bounds, [offsets, b"".join(bound or b"" for bound in bounds)])
    arrow = _arrow_type(kind)
    width = arrow.bit_width // 8
    # Integers mostly have the right width; other bounds, and floats, which may be NaN, are converted one by one.
    is_as_it_is = kind.kind in _NUMBERS and kind.kind not in FLOATING_KINDS
    if not is_as_it_is or any(bound is not None and len(bound) != width for bound in bounds):
        bounds = list(_repacked(kind, bounds))
    absent = bytes(width)
    return _array_of(arrow, bounds, [b"".join([absent if bound is None else bound for bound in bounds])])


def _array_of(arrow: pa.DataType, bounds: Sequence[bytes | None], buffers: Sequence[Any]) -> pa.Array:
    presence = pa.py_buffer(bytes([bound is not None for bound in bounds]))
    is_present = pa.Array.from_buffers(pa.uint8(), len(bounds), [None, presence]).cast(pa.bool_())
    return pa.Array.from_buffers(
        arrow, len(bounds), [is_present.buffers()[1], *(pa.py_buffer(buffer) for buffer in buffers)]
    )


def _arrow_type(kind: PrimitiveType) -> pa.DataType:
    return pa.decimal128(38, kind.scale) if kind.kind == "decimal" else _NUMBERS[kind.kind]


def _repacked(kind: PrimitiveType, bounds: Sequence[bytes | None]) -> Iterator[bytes | None]:
    """Yield bounds as a column stores them; None, which excludes nothing, for invalid ones."""
    for bound in bounds:
        try:
            value = None if bound is None else from_bytes(kind, bound)
            # Early writers stored NaN as a bound; it bounds nothing.
            yield None if value is None or is_nan(value) else _packed(kind, value)
        # A widened date may be out of a timestamp's range.
        except (ValueError, OverflowError):
            yield None


def _packed(kind: PrimitiveType, value: Any) -> bytes:
    if kind.kind == "decimal":
        return unscaled_value(kind, value).to_bytes(_DECIMAL_BYTES, "little", signed=True)
    return to_bytes(kind, value)


def _limit(kind: PrimitiveType, limit: Any) -> pa.Scalar | None:
    """Return a limit to compare with; None, which excludes nothing, for impossible values."""
    if limit is None:
        return None
    try:
        if kind.kind in _BYTES:
            return _column(kind, [to_bytes(kind, limit)])[0]
        if kind.kind == "float":
            # As a float of 32 bits the limit might be rounded; with one of 64 bits Arrow compares in 64 bits.
            return pa.Array.from_buffers(pa.float64(), 1, [None, pa.py_buffer(_DOUBLE.pack(limit))])[0]
        return pa.Array.from_buffers(_arrow_type(kind), 1, [None, pa.py_buffer(_packed(kind, limit))])[0]
    except (ValueError, OverflowError, struct.error):
        return None
