from __future__ import annotations

import math
import sys
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from app.engine.expressions.expressions import Literal
from app.engine.expressions.literals import Between, OutOfRange, value_of
from app.engine.model.data_types.types import parse_primitive

ABOVE, BELOW = OutOfRange.ABOVE, OutOfRange.BELOW
DAY = 86_400 * 10**6
LARGEST_FLOAT = 3.4028234663852886e38
UUID_TEXT = "f79c3e09-677c-4bbd-a479-3f349cb785e7"


def found(kind: str, value: Any, data_type: str | None = None) -> Any:
    of_type = None if data_type is None else parse_primitive(data_type)
    return value_of(Literal(value, of_type), parse_primitive(kind))


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("boolean", True, True),
        ("int", 5, 5),
        ("int", 2**31, ABOVE),
        ("int", -(2**31) - 1, BELOW),
        ("int", -(2**31), -(2**31)),
        ("long", 2**63 - 1, 2**63 - 1),
        ("long", 2**63, ABOVE),
        ("date", "1970-01-02", 1),
        ("date", -7, -7),
        ("date", 2**31, ABOVE),
        ("time", "00:00:01", 1_000_000),
        ("time", -1, BELOW),
        ("time", DAY, ABOVE),
        ("time", DAY - 1, DAY - 1),
        ("timestamp", "1970-01-01T00:00:00.000001", 1),
        ("timestamptz", "1970-01-01T01:00:00+01:00", 0),
        ("timestamptz", "1970-01-01T00:00:00Z", 0),
        ("timestamptz", "1970-01-01T00:00:01", 1_000_000),
        ("timestamptz_ns", "1969-12-31T23:59", -60 * 10**9),
        ("timestamp_ns", "1970-01-01T00:00:00.000000001", 1),
        ("timestamp_ns", 1, 1000),
        ("timestamp_ns", 2**62, ABOVE),
        ("float", 0.1, 0.10000000149011612),
        ("float", 1, 1.0),
        ("float", 3.4028235e38, LARGEST_FLOAT),
        ("float", 1e39, Between(LARGEST_FLOAT)),
        ("float", -1e39, Between(-math.inf)),
        ("float", 10**400, Between(LARGEST_FLOAT)),
        ("double", 0.1, 0.1),
        ("double", 7, 7.0),
        ("double", "3.5", 3.5),
        ("float", "0.1", 0.10000000149011612),
        ("double", 10**400, Between(sys.float_info.max)),
        ("double", -(10**400), Between(-math.inf)),
        ("decimal(9,2)", 3, Decimal("3.00")),
        ("decimal(9,2)", 1.1, Decimal("1.10")),
        ("decimal(9,2)", 1.005, Decimal("1.01")),
        ("decimal(9,2)", "1.25", Decimal("1.25")),
        ("decimal(9,2)", "1.255", Between(Decimal("1.25"))),
        ("decimal(9,2)", "-1.255", Between(Decimal("-1.26"))),
        ("decimal(9,2)", "1e2", Decimal("100.00")),
        ("string", "a", "a"),
        ("uuid", UUID_TEXT, UUID(UUID_TEXT)),
        ("uuid", UUID(UUID_TEXT), UUID(UUID_TEXT)),
        ("fixed[2]", "0A0b", b"\x0a\x0b"),
        ("fixed[2]", b"\x0a\x0b", b"\x0a\x0b"),
        ("binary", "", b""),
        ("binary", b"\x01", b"\x01"),
    ],
)
def test_literal_without_a_type_takes_that_of_the_column(kind: str, value: Any, expected: Any) -> None:
    assert found(kind, value) == expected
    assert type(found(kind, value)) is type(expected)


@pytest.mark.parametrize(
    ("data_type", "value", "kind", "expected"),
    [
        ("int", 5, "long", 5),
        ("long", 2**40, "int", ABOVE),
        ("int", 5, "double", 5.0),
        ("double", 0.5, "float", 0.5),
        ("float", 0.1, "double", 0.10000000149011612),
        ("decimal(5,1)", "1.5", "decimal(9,2)", Decimal("1.50")),
        ("decimal(9,3)", "1.255", "decimal(9,2)", Between(Decimal("1.25"))),
        ("decimal(5,0)", 7, "decimal(9,2)", Decimal("7.00")),
        ("string", "1970-01-02", "date", 1),
        ("date", "1970-01-02", "timestamp", DAY),
        ("date", "1970-01-02", "timestamptz_ns", DAY * 1000),
        ("timestamp", "1970-01-02T00:00:00", "date", 1),
        ("timestamp", "1970-01-02T00:00:00.000001", "date", Between(1)),
        ("timestamp", "1969-12-31T23:59:59", "date", Between(-1)),
        ("timestamp_ns", "1970-01-01T00:00:00.000000999", "timestamp", Between(0)),
        ("timestamp", "1970-01-01T00:00:00.000001", "timestamp_ns", 1000),
        ("timestamp", "9999-12-31T00:00:00", "timestamp_ns", ABOVE),
        ("time", "00:00:01", "time", 1_000_000),
        ("uuid", UUID_TEXT, "uuid", UUID(UUID_TEXT)),
    ],
)
def test_literal_with_a_type_is_converted_to_that_of_the_column(
    data_type: str, value: Any, kind: str, expected: Any
) -> None:
    assert found(kind, value, data_type) == expected


@pytest.mark.parametrize(
    ("kind", "value", "data_type"),
    [
        ("boolean", 1, None),
        ("boolean", "true", None),
        ("int", True, None),
        ("int", "1", None),
        ("int", 1.5, None),
        ("int", 1.0, None),
        ("double", True, None),
        ("double", "x", None),
        ("double", "NaN", None),
        ("double", math.nan, None),
        ("float", math.nan, None),
        ("double", "Infinity", "double"),
        ("float", "-Infinity", "double"),
        ("double", math.inf, None),
        ("decimal(9,2)", "x", None),
        ("decimal(9,2)", "NaN", None),
        ("decimal(9,2)", math.inf, None),
        ("decimal(9,2)", "NaN", "float"),
        ("decimal(9,2)", "Infinity", "double"),
        ("decimal(9,2)", 10**1200, None),
        ("decimal(9,2)", True, None),
        ("date", "2024-02-30", None),
        ("date", "2024-01-01T00:00:00", None),
        ("time", "24:00:00", None),
        ("timestamp", "2024-01-01", None),
        ("timestamp", "2024-01-01T00:00:00Z", None),
        ("timestamptz", "2024-01-01T00:00:00", "timestamptz"),
        ("timestamptz", "2024-01-01", None),
        ("timestamptz", "2024-01-01T00:00:00+5", None),
        ("string", 1, None),
        ("uuid", "f79c3e09", None),
        ("uuid", 5, None),
        ("fixed[2]", "0a", None),
        ("fixed[2]", b"\x01", None),
        ("binary", "0", None),
        ("binary", "zz", None),
        ("int", "1970-01-02", "date"),
        ("timestamp", "00:00:01", "time"),
        ("int", 2**31, "int"),
        ("int", "five", "int"),
        ("string", 1, "string"),
    ],
)
def test_literal_that_is_no_value_of_the_column_is_refused(
    kind: str, value: Any, data_type: str | None
) -> None:
    with pytest.raises(ValueError, match=r".+"):
        found(kind, value, data_type)
