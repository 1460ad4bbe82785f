"""Transforms: their texts, what they apply to, what comes out."""

from __future__ import annotations

import pytest

from app.engine.model.data_types.transforms import Transform, find_transform, parse_transform
from app.engine.model.data_types.types import parse_type
from tests.unit.engine.documents import column, list_of, struct

ALL_TYPES = (
    "boolean int long float double decimal(9, 2) date time timestamp timestamptz timestamp_ns timestamptz_ns "
    "string uuid fixed[4] binary unknown variant geometry geography"
)
TYPES = ALL_TYPES.replace("(9, 2)", "(9,2)").split()
APPLIES_TO = {
    "identity": set(TYPES) - {"variant", "geometry", "geography"},
    "bucket[4]": set(TYPES) - set("boolean float double unknown variant geometry geography".split()),
    "truncate[4]": {"int", "long", "decimal(9,2)", "string", "binary"},
    "year": set("date timestamp timestamptz timestamp_ns timestamptz_ns".split()),
    "month": set("date timestamp timestamptz timestamp_ns timestamptz_ns".split()),
    "day": set("date timestamp timestamptz timestamp_ns timestamptz_ns".split()),
    "hour": set("timestamp timestamptz timestamp_ns timestamptz_ns".split()),
    "void": set(TYPES),
}


@pytest.mark.parametrize("text", [*APPLIES_TO, "bucket[1]", "truncate[2147483647]"])
def test_text_and_transform_are_the_same(text: str) -> None:
    transform = parse_transform(text)

    assert str(transform) == text
    assert parse_transform(f" {text.upper()} ") == transform == find_transform(text)


def test_leading_zeros_say_nothing() -> None:
    assert parse_transform("bucket[016]") == Transform("bucket", 16)


@pytest.mark.parametrize(
    "text",
    [
        *("", "bucket", "bucket[]", "bucket[-1]", "bucket[1.5]", "bucket(4)", "truncate[a]", "identity[1]"),
        *("years", "zorder", "bucket[٣]", "bucket[4] x", "bucket[12345678901]"),
    ],
)
def test_text_that_names_no_transform_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^Unknown transform: "):
        parse_transform(text)

    assert find_transform(text) is None


@pytest.mark.parametrize("text", ["bucket[0]", "truncate[2147483648]"])
def test_parameter_out_of_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="the parameter must be from 1 to 2147483647"):
        parse_transform(text)


@pytest.mark.parametrize("text", APPLIES_TO)
def test_transform_applies_to_exactly_its_types(text: str) -> None:
    transform = parse_transform(text)

    assert {name for name in TYPES if transform.applies_to(parse_type(name))} == APPLIES_TO[text]


@pytest.mark.parametrize("text", APPLIES_TO)
def test_only_void_applies_to_nested_types(text: str) -> None:
    transform = parse_transform(text)

    for kind in (struct(column(1, "a")), list_of(1, "int")):
        assert transform.applies_to(parse_type(kind)) is (text == "void")


def test_transform_that_nobody_knows_applies_to_nothing() -> None:
    assert not Transform("zorder").applies_to(parse_type("int"))


@pytest.mark.parametrize(
    ("text", "source", "result"),
    [
        ("bucket[4]", "string", "int"),
        ("year", "date", "int"),
        ("month", "timestamp", "int"),
        ("day", "timestamp", "date"),
        ("hour", "timestamp", "int"),
        ("identity", "uuid", "uuid"),
        ("truncate[2]", "decimal(9,2)", "decimal(9,2)"),
        ("void", "string", "string"),
    ],
)
def test_result_type(text: str, source: str, result: str) -> None:
    assert parse_transform(text).result_type(parse_type(source)) == parse_type(result)
