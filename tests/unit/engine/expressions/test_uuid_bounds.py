from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement, product
from typing import Any
from uuid import UUID

import pytest

from app.engine.expressions.uuid_bounds import enclosing_bounds

HALVES = (0, 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1)
UUIDS = [UUID(int=(high << 64) | low) for high, low in product(HALVES, HALVES)]


def signed(value: UUID) -> tuple[int, int]:
    content = value.bytes
    return int.from_bytes(content[:8], signed=True), int.from_bytes(content[8:], signed=True)


def is_between(value: UUID, lower: bytes | None, upper: bytes | None) -> bool:
    return (lower is None or lower <= value.bytes) and (upper is None or value.bytes <= upper)


@pytest.mark.parametrize("order", [signed, lambda value: value.bytes], ids=["signed", "unsigned"])
def test_all_uuids_between_two_bounds_are_enclosed_whatever_their_order(order: Callable[[UUID], Any]) -> None:
    for pair in combinations_with_replacement(UUIDS, 2):
        least, most = sorted(pair, key=order)
        between = [value for value in UUIDS if order(least) <= order(value) <= order(most)]
        above = [value for value in UUIDS if order(least) <= order(value)]
        below = [value for value in UUIDS if order(value) <= order(most)]

        assert all(is_between(value, *enclosing_bounds(least.bytes, most.bytes)) for value in between)
        assert all(is_between(value, *enclosing_bounds(least.bytes, None)) for value in above)
        assert all(is_between(value, *enclosing_bounds(None, most.bytes)) for value in below)


def test_bounds_that_cannot_be_in_signed_order_stay_as_they_are() -> None:
    lower, upper = UUID(int=5).bytes, UUID(int=2**127 + 5).bytes

    assert enclosing_bounds(lower, upper) == (lower, upper)


def test_one_uuid_stays_one() -> None:
    for value in UUIDS:
        assert enclosing_bounds(value.bytes, value.bytes) == (value.bytes, value.bytes)


def test_bounds_of_time_ordered_uuids_stay_narrow() -> None:
    first, last = UUID("018f0000-0000-7000-8000-000000000001"), UUID("018f0001-0000-7000-8000-000000000001")

    lower, upper = enclosing_bounds(first.bytes, last.bytes)

    assert lower == UUID("018f0000-0000-7000-0000-000000000000").bytes
    assert upper == last.bytes


def test_what_is_no_uuid_counts_as_missing() -> None:
    assert enclosing_bounds(b"\x01", None) == (None, None)
    assert enclosing_bounds(None, b"") == (None, None)
