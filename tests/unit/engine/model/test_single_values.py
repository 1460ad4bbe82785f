"""Single values in JSON: which fit a type and which do not."""

from __future__ import annotations

from typing import Any

import pytest

from app.engine.model.single_values import is_value_of
from app.engine.model.types import parse_type
from tests.unit.engine.documents import column, list_of, map_of, struct

UUID_TEXT = "f79c3e09-677c-4bbd-a479-3f349cb785e7"


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
        *(("decimal(38, 38)", "0." + "9" * 38), ("decimal(4, 2)", "+0012.34")),
    ],
)
def test_value_in_its_json_form_is_one_of_the_type(kind: str, value: Any) -> None:
    assert is_value_of(value, parse_type(kind))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *(("boolean", 1), ("boolean", "true"), ("int", True), ("int", 1.0), ("int", "1"), ("int", 2**31)),
        *(("long", 2**63), ("long", -(2**63) - 1), ("float", "1.0"), ("float", True), ("double", 1)),
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
def test_any_other_value_is_not_one_of_the_type(kind: str, value: Any) -> None:
    assert not is_value_of(value, parse_type(kind))


@pytest.mark.parametrize("kind", ["int", "unknown", "variant", struct(column(1, "a")), list_of(1, "int")])
def test_null_is_a_value_of_every_type(kind: Any) -> None:
    assert is_value_of(None, parse_type(kind))


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (struct(column(1, "a"), column(2, "b", "string")), {"1": 1, "2": "x"}, True),
        (struct(column(1, "a"), column(2, "b", "string")), {"1": None}, True),
        (struct(column(1, "a")), {"1": "x"}, False),
        (struct(column(1, "a")), {"a": 1}, False),
        (struct(column(1, "a")), [1], False),
        (list_of(1, "int"), [1, None], True),
        (list_of(1, "int"), ["x"], False),
        (list_of(1, "int"), {"1": 1}, False),
        (map_of(1, "string", 2, "int"), {"keys": ["a", "b"], "values": [1, None]}, True),
        (map_of(1, "string", 2, "int"), {"keys": [], "values": []}, True),
        (map_of(1, "string", 2, "int"), {"keys": ["a"], "values": []}, False),
        (map_of(1, "string", 2, "int"), {"keys": [None], "values": [1]}, False),
        (map_of(1, "string", 2, "int"), {"keys": ["a"], "values": ["x"]}, False),
        (map_of(1, "string", 2, "int"), {"keys": "a", "values": [1]}, False),
        (map_of(1, "string", 2, "int"), {"keys": ["a"], "values": 1}, False),
        (map_of(1, "string", 2, "int"), {"a": 1}, False),
        (map_of(1, "string", 2, "int"), [], False),
    ],
)
def test_nested_values_are_values_in_every_part(kind: Any, value: Any, *, expected: bool) -> None:
    assert is_value_of(value, parse_type(kind)) is expected
