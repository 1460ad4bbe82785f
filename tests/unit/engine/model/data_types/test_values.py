from __future__ import annotations

import math
import struct
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from app.engine.model.data_types.types import PrimitiveType, parse_primitive
from app.engine.model.data_types.values import (
    decimal_of,
    from_bytes,
    is_nan,
    nearest_float,
    order_key,
    to_bytes,
    unscaled_value,
)

ID = UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
MAX_LONG = 2**63 - 1


def kind_of(text: str) -> PrimitiveType:
    return parse_primitive(text)


@pytest.mark.parametrize(
    ("kind", "value", "content"),
    [
        ("boolean", True, "01"),
        ("boolean", False, "00"),
        ("int", 34, "22000000"),
        ("int", -1, "ffffffff"),
        ("long", 2**40, "0000000000010000"),
        ("float", 1.5, "0000c03f"),
        ("double", -0.0, "0000000000000080"),
        ("date", 17_486, "4e440000"),
        ("time", 1, "0100000000000000"),
        ("timestamp", -1, "ffffffffffffffff"),
        ("timestamptz_ns", 1, "0100000000000000"),
        ("string", "\u00e9\U0001f600", "c3a9f09f9880"),
        ("uuid", ID, ID.hex),
        ("fixed[2]", b"\x01\xff", "01ff"),
        ("binary", b"", ""),
        ("decimal(9,2)", Decimal("14.20"), "058c"),
        ("decimal(9,2)", Decimal("0.00"), "00"),
        ("decimal(9,2)", Decimal("1.27"), "7f"),
        ("decimal(9,2)", Decimal("1.28"), "0080"),
        ("decimal(9,2)", Decimal("-1.28"), "80"),
        ("decimal(9,2)", Decimal("-1.29"), "ff7f"),
        ("decimal(38,0)", Decimal(10**38 - 1), f"{10**38 - 1:032x}"),
    ],
)
def test_binary_form_is_written_and_read(kind: str, value: Any, content: str) -> None:
    assert to_bytes(kind_of(kind), value).hex() == content
    found = from_bytes(kind_of(kind), bytes.fromhex(content))
    assert repr(found) == repr(value)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int", 2**31),
        ("int", "1"),
        ("long", 2**63),
        ("float", 1e39),
        ("string", 5),
        ("string", "\ud800"),
        ("uuid", "x"),
        ("decimal(4,2)", Decimal("100.00")),
        ("decimal(4,2)", Decimal("0.001")),
        ("decimal(4,2)", "x"),
        ("fixed[2]", b"\x01"),
        ("binary", "\u00e9"),
    ],
)
def test_what_is_no_value_has_no_binary_form(kind: str, value: Any) -> None:
    with pytest.raises(ValueError, match="Not a value of type"):
        to_bytes(kind_of(kind), value)


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("boolean", b""),
        ("int", b"\x01"),
        ("long", b"\x01\x02"),
        ("float", b"\x00" * 8),
        ("string", b"\xff"),
        ("uuid", b"\x01"),
        ("decimal(9,2)", b""),
        ("fixed[2]", b"\x01"),
    ],
)
def test_bytes_that_are_no_value_are_refused(kind: str, content: bytes) -> None:
    with pytest.raises(ValueError, match="in binary form"):
        from_bytes(kind_of(kind), content)


def test_unknown_has_no_binary_form() -> None:
    with pytest.raises(ValueError, match="has no binary form"):
        to_bytes(kind_of("unknown"), 1)
    with pytest.raises(ValueError, match="has no binary form"):
        from_bytes(kind_of("unknown"), b"")


@pytest.mark.parametrize(
    ("kind", "content", "value"),
    [
        ("long", struct.pack("<i", -7), -7),
        ("double", struct.pack("<f", 0.5), 0.5),
        ("timestamp", struct.pack("<i", 2), 2 * 86_400 * 10**6),
        ("timestamp_ns", struct.pack("<i", -1), -86_400 * 10**9),
    ],
)
def test_bytes_from_before_a_column_was_widened_are_read(kind: str, content: bytes, value: Any) -> None:
    assert from_bytes(kind_of(kind), content) == value


def test_decimals_are_exact() -> None:
    largest = 10**38 - 1

    assert str(decimal_of(largest, 10)) == "9999999999999999999999999999.9999999999"
    assert unscaled_value(kind_of("decimal(38,10)"), decimal_of(-largest, 10)) == -largest


def test_a_number_that_no_decimal_can_be_is_not_converted() -> None:
    # Converted, a number of so many digits keeps every thread of the process waiting for hours.
    with pytest.raises(ValueError, match="too many digits"):
        from_bytes(kind_of("decimal(38,10)"), b"\x7f" * (16 << 20))
    with pytest.raises(ValueError, match="too many digits"):
        unscaled_value(kind_of("decimal(38,10)"), Decimal("9" * (16 << 20)))
    assert unscaled_value(kind_of("decimal(38,10)"), Decimal("0e500")) == 0


def test_order_of_floats_is_total() -> None:
    ordered = [-math.inf, -1.5, -0.0, 0.0, 1.5, math.inf, math.nan]

    assert [str(value) for value in sorted(ordered[3:] + ordered[:3], key=order_key)] == [
        str(value) for value in ordered
    ]
    assert order_key(-0.0) < order_key(0.0)
    assert order_key(math.nan) > order_key(math.inf)
    assert order_key(math.nan) == order_key(math.nan)


def test_order_of_other_values_is_their_own() -> None:
    assert order_key("\uffff") < order_key("\U00010000")
    assert order_key(b"\x7f") < order_key(b"\x80")
    assert order_key(UUID(int=2**127)) > order_key(UUID(int=5))
    assert order_key(Decimal("1.10")) == order_key(Decimal("1.1"))
    assert order_key(False) < order_key(True)


def test_only_floats_are_nan() -> None:
    assert is_nan(math.nan)
    assert not is_nan(1.5)
    assert not is_nan(Decimal("NaN"))
    assert not is_nan("NaN")


def test_nearest_float_has_32_bits() -> None:
    assert nearest_float(0.1) == 0.10000000149011612
    assert nearest_float(1) == 1.0
    with pytest.raises(OverflowError):
        nearest_float(1e39)
