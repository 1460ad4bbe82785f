from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from app.engine.expressions.transform_values import (
    lowest_unwrapped,
    transform_function,
    truncate_without_wrapping,
    unscaled,
)
from app.engine.model.data_types.transforms import parse_transform
from app.engine.model.data_types.types import StructType, parse_primitive
from tests.builders.filters import transform_value

DAY = 86_400 * 10**6


def transformed(transform: str, kind: str, value: Any) -> Any:
    return transform_value(parse_transform(transform), parse_primitive(kind), value)


@pytest.mark.parametrize(
    ("transform", "kind", "value", "expected"),
    [
        ("identity", "string", "abc", "abc"),
        ("void", "int", 1, None),
        ("truncate[10]", "int", 19, 10),
        ("truncate[10]", "int", -1, -10),
        ("truncate[10]", "long", -11, -20),
        ("truncate[50]", "decimal(9,2)", Decimal("10.65"), Decimal("10.50")),
        ("truncate[50]", "decimal(9,2)", Decimal("-0.05"), Decimal("-0.50")),
        ("truncate[3]", "string", "iceberg", "ice"),
        ("truncate[2]", "string", "\U0001f600\U0001f600b", "\U0001f600\U0001f600"),
        ("truncate[3]", "string", "a", "a"),
        ("truncate[2]", "binary", b"\x01\x02\x03", b"\x01\x02"),
        ("year", "date", -1, -1),
        ("year", "date", 0, 0),
        ("month", "date", 31, 1),
        ("month", "date", -1, -1),
        ("day", "date", -3, -3),
        ("day", "timestamp", -1, -1),
        ("day", "timestamptz", DAY, 1),
        ("day", "timestamp_ns", DAY * 1000 - 1, 0),
        ("hour", "timestamp", -1, -1),
        ("hour", "timestamptz_ns", 3_600 * 10**9, 1),
        ("month", "timestamp", 31 * DAY, 1),
        ("year", "timestamp", 365 * DAY, 1),
        ("bucket[16]", "int", 34, 2_017_239_379 % 16),
        ("bucket[16]", "long", 34, 2_017_239_379 % 16),
        ("bucket[7]", "string", "iceberg", 1_210_000_089 % 7),
        ("bucket[16]", "date", 17_486, (-653_330_422 & 0x7FFFFFFF) % 16),
        ("bucket[16]", "time", 81_068_000_000, (-662_762_989 & 0x7FFFFFFF) % 16),
        ("bucket[16]", "timestamp_ns", 1_510_871_468_000_001_999, (-1_207_196_810 & 0x7FFFFFFF) % 16),
        ("bucket[16]", "decimal(9,2)", Decimal("14.20"), (-500_754_589 & 0x7FFFFFFF) % 16),
        ("bucket[16]", "uuid", UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"), 1_488_055_340 % 16),
        ("bucket[16]", "binary", b"\x00\x01\x02\x03", (-188_683_207 & 0x7FFFFFFF) % 16),
        ("bucket[16]", "fixed[4]", b"\x00\x01\x02\x03", (-188_683_207 & 0x7FFFFFFF) % 16),
    ],
)
def test_values_are_transformed_as_the_specification_says(
    transform: str, kind: str, value: Any, expected: Any
) -> None:
    assert transformed(transform, kind, value) == expected


@pytest.mark.parametrize("transform", ["identity", "void", "bucket[3]", "truncate[3]"])
def test_null_stays_null(transform: str) -> None:
    assert transformed(transform, "int", None) is None


def test_hash_of_a_decimal_has_as_few_bytes_as_it_needs() -> None:
    values = [Decimal(digits).scaleb(-2) for digits in (0, 1, -1, 127, 128, -128, -129, 32_767, 32_768)]

    assert len({transformed("bucket[1000000]", "decimal(9,2)", value) for value in values}) == len(values)
    # One byte is enough for -128.
    assert transformed("bucket[1000]", "decimal(9,0)", Decimal(-128)) == transformed(
        "bucket[1000]", "binary", b"\x80"
    )


@pytest.mark.parametrize(
    ("transform", "kind"),
    [("hour", "date"), ("year", "int"), ("truncate[2]", "uuid"), ("bucket[2]", "float")],
)
def test_transform_that_does_not_apply_is_refused(transform: str, kind: str) -> None:
    with pytest.raises(ValueError, match="does not apply to"):
        transform_function(parse_transform(transform), parse_primitive(kind))


def test_void_applies_to_a_struct() -> None:
    struct = StructType.from_object({"type": "struct", "fields": []})

    assert transform_function(parse_transform("void"), struct)((1,)) is None


def test_truncated_number_below_the_lowest_wraps_around() -> None:
    lowest = -(2**31)

    assert transformed("truncate[3]", "int", lowest) == 2**31 - 1
    assert (
        truncate_without_wrapping(parse_transform("truncate[3]"), parse_primitive("int"))(lowest)
        == lowest - 1
    )
    assert transformed("truncate[3]", "int", lowest + 2) == lowest + 2


@pytest.mark.parametrize(
    ("transform", "kind", "expected"),
    [
        ("truncate[3]", "int", -(2**31) + 2),
        ("truncate[3]", "long", -(2**63) + 2),
        ("truncate[2]", "int", None),
        ("truncate[3]", "decimal(9,2)", None),
        ("bucket[3]", "int", None),
    ],
)
def test_lowest_number_that_does_not_wrap(transform: str, kind: str, expected: int | None) -> None:
    assert lowest_unwrapped(parse_transform(transform), parse_primitive(kind)) == expected
    if expected is not None:
        assert transformed(transform, kind, expected) == expected
        assert transformed(transform, kind, expected - 1) > 0


def test_unscaled_number_is_exact() -> None:
    assert unscaled(Decimal("9" * 100 + ".25"), 2) == int("9" * 100 + "25")
