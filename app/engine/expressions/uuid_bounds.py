"""Bounds of uuid columns, for which writers use two orders.

The table format orders uuids as unsigned bytes. Early Java writers compared the two halves as signed numbers, and a
bound does not show which order its writer used.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

_Halves = tuple[int, int]
_SIGNED_HALVES: Final[Callable[[bytes], _Halves]] = struct.Struct(">qq").unpack
_BYTES: Final = struct.Struct(">qq").pack


def enclosing_bounds(lower: bytes | None, upper: bytes | None) -> tuple[bytes | None, bytes | None]:
    """Return unsigned bounds of all uuids that are between two bounds in either order.

    A bound that is not a uuid counts as missing.
    """
    return _enclosing(_read_halves(lower), _read_halves(upper))


def _read_halves(content: bytes | None) -> _Halves | None:
    return None if content is None or len(content) != 16 else _SIGNED_HALVES(content)


def _enclosing(lower: _Halves | None, upper: _Halves | None) -> tuple[bytes | None, bytes | None]:
    if lower is not None and upper is not None:
        if lower > upper:
            # Not in signed order, so in unsigned order.
            return _BYTES(*lower), _BYTES(*upper)
        if lower[0] == upper[0]:
            is_one_sign = (lower[1] < 0) is (upper[1] < 0)
            half = lower[0]
            return (
                _BYTES(half, lower[1] if is_one_sign else 0),
                _BYTES(half, upper[1] if is_one_sign else -1),
            )
    # From a negative to a positive bound there are numbers of both signs: in unsigned order, that is any number.
    least = most = None
    if lower is not None and (lower[0] >= 0 or (upper is not None and upper[0] < 0)):
        least = _BYTES(lower[0], max(lower[1], 0))
    if upper is not None and (upper[0] < 0 or (lower is not None and lower[0] >= 0)):
        most = _BYTES(upper[0], upper[1] if upper[1] < 0 else -1)
    return least, most
