from __future__ import annotations

import math
import tracemalloc
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from app.engine.model.data_types.json_values import from_json_value, is_default_value, to_json_value
from app.engine.model.data_types.types import PrimitiveType, parse_primitive
from app.engine.model.data_types.values import is_nan

ID = UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
UUID_TEXT = "f79c3e09-677c-4bbd-a479-3f349cb785e7"


def kind_of(text: str) -> PrimitiveType:
    return parse_primitive(text)


@pytest.mark.parametrize(
    ("kind", "value", "document"),
    [
        ("boolean", True, True),
        ("int", 5, 5),
        ("long", -(2**63), -(2**63)),
        ("float", 0.10000000149011612, 0.1),
        ("float", 3.4028234663852886e38, 3.40282347e38),
        ("double", 0.1, 0.1),
        ("double", math.inf, "Infinity"),
        ("double", -math.inf, "-Infinity"),
        ("decimal(9,2)", Decimal("1.5"), "1.50"),
        ("decimal(9,2)", Decimal("1E+2"), "100.00"),
        ("date", 1, "1970-01-02"),
        ("time", 1, "00:00:00.000001"),
        ("timestamp", 0, "1970-01-01T00:00:00.000000"),
        ("timestamptz", 0, "1970-01-01T00:00:00.000000+00:00"),
        ("timestamp_ns", 1, "1970-01-01T00:00:00.000000001"),
        ("timestamptz_ns", 1, "1970-01-01T00:00:00.000000001+00:00"),
        ("string", "a", "a"),
        ("uuid", ID, str(ID)),
        ("fixed[2]", b"\x0a\xff", "0AFF"),
        ("binary", b"", ""),
    ],
)
def test_json_form_is_written_and_read(kind: str, value: Any, document: Any) -> None:
    assert to_json_value(kind_of(kind), value) == document
    assert from_json_value(kind_of(kind), document) == value


def test_nan_and_null_in_json() -> None:
    assert to_json_value(kind_of("double"), math.nan) == "NaN"
    assert is_nan(from_json_value(kind_of("double"), "NaN"))
    assert to_json_value(kind_of("int"), None) is None
    assert from_json_value(kind_of("int"), None) is None


@pytest.mark.parametrize(
    ("kind", "document"),
    [
        ("boolean", 1),
        ("boolean", "true"),
        ("int", True),
        ("int", 2**31),
        ("int", 1.0),
        ("int", "1"),
        ("long", 2**63),
        ("long", -(2**63) - 1),
        ("float", 1e39),
        ("float", "1"),
        ("double", True),
        ("double", {}),
        ("double", 10**400),
        ("decimal(4,2)", "100.00"),
        ("decimal(4,2)", "1.234"),
        ("decimal(4,2)", "NaN"),
        ("decimal(4,2)", "1e9999"),
        ("decimal(4,2)", 1),
        ("date", "2024-02-30"),
        ("date", 5),
        ("date", "+99999999-01-01"),
        ("time", "25:00"),
        ("timestamp", "1970-01-01"),
        ("timestamp_ns", "9999-01-01T00:00:00"),
        ("timestamptz", "1970-01-01T00:00:00"),
        ("string", 5),
        ("string", "\ud800"),
        ("uuid", "f79c3e09677c4bbda4793f349cb785e7"),
        ("uuid", 5),
        ("fixed[2]", "0A"),
        ("fixed[2]", "0AF"),
        ("binary", "0x0A"),
        ("binary", 5),
    ],
)
def test_what_is_no_value_in_json_is_refused(kind: str, document: Any) -> None:
    with pytest.raises(ValueError, match="Not a value of type"):
        from_json_value(kind_of(kind), document)


@pytest.mark.parametrize(
    ("kind", "value"),
    [("int", "x"), ("decimal(4,2)", Decimal(1000)), ("binary", 5), ("date", "x")],
)
def test_what_is_no_value_is_not_written(kind: str, value: Any) -> None:
    with pytest.raises(ValueError, match="Not a value of type"):
        to_json_value(kind_of(kind), value)


def test_variant_has_no_json_form() -> None:
    with pytest.raises(ValueError, match="has no JSON form"):
        from_json_value(kind_of("variant"), "x")
    with pytest.raises(ValueError, match="Not a value of type variant"):
        to_json_value(kind_of("variant"), b"x")


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *(("boolean", True), ("int", -(2**31)), ("int", 2**31 - 1), ("long", 2**63 - 1), ("long", -(2**63))),
        *(("float", 1.0), ("double", 1.5), ("double", 1e300), ("date", "2017-11-16"), ("date", "0001-01-01")),
        *(("time", "22:31:08"), ("time", "22:31:08.123456"), ("timestamp", "2017-11-16T22:31:08.123456")),
        *(("timestamptz", "2017-11-16T22:31:08+00:00"), ("timestamptz", "2017-11-16T22:31:08.1Z")),
        *(("timestamp_ns", "2017-11-16T22:31:08.123456789"), ("timestamptz_ns", "2262-01-01T00:00:00Z")),
        *(("string", ""), ("string", "line\nbreak 😀"), ("uuid", UUID_TEXT), ("uuid", UUID_TEXT.upper())),
        *(("fixed[2]", "00fF"), ("fixed[0]", ""), ("binary", ""), ("binary", "000102FF")),
        *(
            ("decimal(9, 2)", "14.20"),
            ("decimal(9, 2)", "-0.05"),
            ("decimal(2, 2)", "0.05"),
            ("decimal(3, 0)", "999"),
        ),
        *(("int", None), ("unknown", None), ("variant", None)),
        *(("decimal(38, 38)", "0." + "9" * 38), ("decimal(4, 2)", "+0012.34")),
    ],
)
def test_value_in_the_form_that_all_clients_read_can_be_a_default(kind: str, value: Any) -> None:
    assert is_default_value(kind_of(kind), value)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *(("boolean", 1), ("boolean", "true"), ("int", True), ("int", 1.0), ("int", "1"), ("int", 2**31)),
        *(("long", 2**63), ("long", -(2**63) - 1), ("float", "1.0"), ("float", True), ("double", 1)),
        *(("float", 1e39), ("float", -1e300)),
        *(("date", "2017-02-30"), ("date", "2017-11-16T00:00:00"), ("date", 17486), ("date", "17-11-16")),
        *(("time", "24:00:00"), ("time", "22:60:00"), ("time", "22:31:08.1234567890"), ("time", "22")),
        *(("timestamp", "2017-11-16 22:31:08"), ("timestamp", "2017-11-16T22:31:08+00:00"), ("timestamp", 0)),
        *(("timestamptz", "2017-11-16T22:31:08"), ("timestamptz", "2017-11-16T22:31:08+01:00")),
        *(("timestamp_ns", "2300-01-01T00:00:00"), ("timestamp_ns", "1600-01-01T00:00:00")),
        *(("string", 1), ("string", ["a"]), ("uuid", UUID_TEXT[:-1]), ("uuid", UUID_TEXT.replace("-", ""))),
        *(("fixed[2]", "00"), ("fixed[2]", "zzzz"), ("fixed[2147483647]", "00"), ("fixed[1]", 1)),
        *(("binary", "0"), ("binary", "xx"), ("binary", b"")),
        *(
            ("decimal(9, 2)", "14.2"),
            ("decimal(9, 2)", 14.2),
            ("decimal(3, 2)", "14.20"),
            ("decimal(3, 0)", "1e2"),
        ),
        *(("unknown", 1), ("variant", {}), ("geometry", "POINT (1 1)"), ("geography", "")),
    ],
)
def test_any_other_value_cannot_be_a_default(kind: str, value: Any) -> None:
    assert not is_default_value(kind_of(kind), value)


def test_decimal_has_no_more_digits_than_can_be_read_at_once() -> None:
    kind = kind_of("decimal(4, 2)")

    assert from_json_value(kind, "0" * 390 + "12.50") == Decimal("12.50")
    with pytest.raises(ValueError, match="not a decimal"):
        from_json_value(kind, "0" * 1_000_000 + "12.50")


def test_long_binary_value_takes_no_more_memory_than_its_text() -> None:
    text = "0a" * 500_000
    tracemalloc.start()
    try:
        from_json_value(kind_of("binary"), text)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak_bytes < 4 * len(text)
