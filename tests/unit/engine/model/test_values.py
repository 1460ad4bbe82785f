from __future__ import annotations

import math
import struct
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from app.engine.model.types import ListType, MapType, PrimitiveType, StructType, parse_primitive, parse_type
from app.engine.model.values import (
    compare,
    decimal_of,
    from_bytes,
    from_json_value,
    is_nan,
    order_key,
    to_bytes,
    to_json_value,
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


def nested(document: Any) -> StructType | ListType | MapType:
    found = parse_type(document)
    assert isinstance(found, StructType | ListType | MapType)
    return found


POINT = (
    {"id": 1, "name": "x", "required": False, "type": "int"},
    {
        "id": 2,
        "name": "at",
        "required": False,
        "type": "date",
    },
)


def test_nested_values_in_json() -> None:
    struct_type = nested({"type": "struct", "fields": list(POINT)})
    list_type = nested({"type": "list", "element-id": 3, "element-required": False, "element": "date"})
    map_type = nested(
        {"type": "map", "key-id": 4, "key": "date", "value-id": 5, "value-required": False, "value": "int"}
    )

    assert to_json_value(struct_type, {1: 5, 2: 0}) == {"1": 5, "2": "1970-01-01"}
    assert to_json_value(struct_type, {1: 5}) == {"1": 5}
    assert from_json_value(struct_type, {"2": "1970-01-01"}) == {2: 0}
    assert to_json_value(list_type, [0, None]) == ["1970-01-01", None]
    assert from_json_value(list_type, ["1970-01-01", None]) == [0, None]
    assert to_json_value(map_type, {0: 7}) == {"keys": ["1970-01-01"], "values": [7]}
    assert from_json_value(map_type, {"keys": ["1970-01-01"], "values": [7]}) == {0: 7}


@pytest.mark.parametrize(
    ("kind", "document"),
    [
        ({"type": "struct", "fields": list(POINT)}, [1, 2]),
        ({"type": "list", "element-id": 3, "element-required": False, "element": "date"}, {"0": 1}),
        (
            {
                "type": "map",
                "key-id": 4,
                "key": "int",
                "value-id": 5,
                "value-required": False,
                "value": "int",
            },
            {"keys": [1, 2], "values": [1]},
        ),
    ],
)
def test_nested_value_of_another_shape_is_refused(kind: Any, document: Any) -> None:
    with pytest.raises(ValueError, match=r"Not a value of a (struct|list|map)"):
        from_json_value(nested(kind), document)


def test_order_of_floats_is_total() -> None:
    ordered = [-math.inf, -1.5, -0.0, 0.0, 1.5, math.inf, math.nan]

    assert [str(value) for value in sorted(ordered[3:] + ordered[:3], key=order_key)] == [
        str(value) for value in ordered
    ]
    assert compare(-0.0, 0.0) == -1
    assert compare(math.nan, math.inf) == 1
    assert compare(math.nan, math.nan) == 0


def test_order_of_other_values_is_their_own() -> None:
    assert compare("\uffff", "\U00010000") == -1
    assert compare(b"\x7f", b"\x80") == -1
    assert compare(UUID(int=2**127), UUID(int=5)) == 1
    assert compare(Decimal("1.10"), Decimal("1.1")) == 0
    assert compare(False, True) == -1


def test_only_floats_are_nan() -> None:
    assert is_nan(math.nan)
    assert not is_nan(1.5)
    assert not is_nan(Decimal("NaN"))
    assert not is_nan("NaN")
