from __future__ import annotations

import math
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from app.engine.expressions.bounds import range_all_match, range_may_match
from app.engine.expressions.expressions import BoundPredicate, Operation
from app.engine.model.data_types.types import parse_primitive
from app.engine.model.data_types.values import to_bytes
from tests.builders.filtered_files import asked, bound_of

COMPARISONS = ("lt", "lt-eq", "gt", "gt-eq", "eq", "not-eq")


def predicate_of(kind: str, operation: str, *values: Any, through: str | None = None) -> BoundPredicate:
    found = bound_of(kind, asked(operation, *values, through=through))
    assert isinstance(found, BoundPredicate)
    return found


def bytes_of(kind: str, bound: Any) -> bytes | None:
    return bound if bound is None or isinstance(bound, bytes) else to_bytes(parse_primitive(kind), bound)


def verdict(
    kind: str, operation: str, literals: Any, lower: Any, upper: Any, *, through: str | None = None
) -> str:
    """Tell whether `all`, `some` or `none` of the values between two bounds may match."""
    literals = literals if isinstance(literals, list) else [literals]
    predicate = predicate_of(kind, operation, *literals, through=through)
    may, every = range_may_match(predicate), range_all_match(predicate)
    assert may is not None
    assert every is not None
    bounds = bytes_of(kind, lower), bytes_of(kind, upper)
    if every(*bounds):
        assert may(*bounds)
        return "all"
    return "some" if may(*bounds) else "none"


@pytest.mark.parametrize(
    ("operation", "literal", "expected"),
    [
        # of values from 10 to 20
        ("lt", 10, "none"),
        ("lt", 11, "some"),
        ("lt", 20, "some"),
        ("lt", 21, "all"),
        ("lt-eq", 9, "none"),
        ("lt-eq", 10, "some"),
        ("lt-eq", 19, "some"),
        ("lt-eq", 20, "all"),
        ("gt", 20, "none"),
        ("gt", 19, "some"),
        ("gt", 10, "some"),
        ("gt", 9, "all"),
        ("gt-eq", 21, "none"),
        ("gt-eq", 20, "some"),
        ("gt-eq", 11, "some"),
        ("gt-eq", 10, "all"),
        ("eq", 9, "none"),
        ("eq", 10, "some"),
        ("eq", 20, "some"),
        ("eq", 21, "none"),
        ("not-eq", 9, "all"),
        ("not-eq", 15, "some"),
        ("not-eq", 21, "all"),
        ("in", [1, 9], "none"),
        ("in", [1, 10], "some"),
        ("in", [9, 21], "none"),
        ("in", [20, 30], "some"),
        ("in", [21, 30], "none"),
        ("not-in", [1, 9], "all"),
        ("not-in", [9, 21], "all"),
        ("not-in", [1, 15], "some"),
    ],
)
def test_numbers_between_two_bounds(operation: str, literal: Any, expected: str) -> None:
    for kind in ("int", "long"):
        assert verdict(kind, operation, literal, 10, 20) == expected


@pytest.mark.parametrize(
    ("operation", "literals", "expected"),
    [
        ("eq", 10, "all"),
        ("eq", 11, "none"),
        ("not-eq", 10, "none"),
        ("not-eq", 11, "all"),
        ("in", [9, 10], "all"),
        ("in", [9, 11], "none"),
        ("not-in", [9, 10], "none"),
        ("not-in", [9, 11], "all"),
    ],
)
def test_only_one_value_between_two_bounds(operation: str, literals: Any, expected: str) -> None:
    assert verdict("int", operation, literals, 10, 10) == expected


@pytest.mark.parametrize(
    ("operation", "lower", "upper", "expected"),
    [
        ("lt", None, 4, "all"),
        ("lt", None, 6, "some"),
        ("lt", 5, None, "none"),
        ("gt", 6, None, "all"),
        ("gt", None, 5, "none"),
        ("eq", 6, None, "none"),
        ("eq", None, 4, "none"),
        ("eq", 5, None, "some"),
        ("in", 7, None, "none"),
        ("in", None, 4, "none"),
        ("in", None, 6, "some"),
        ("not-eq", 5, None, "some"),
        ("not-eq", 6, None, "all"),
        ("not-in", None, 4, "all"),
        *((operation, None, None, "some") for operation in (*COMPARISONS, "in", "not-in")),
    ],
)
def test_one_bound_is_missing(operation: str, lower: Any, upper: Any, expected: str) -> None:
    literals = [5, 6] if operation in ("in", "not-in") else 5
    assert verdict("int", operation, literals, lower, upper) == expected


@pytest.mark.parametrize(
    ("kind", "literal"),
    [
        ("int", 5),
        ("long", 5),
        ("float", 1.5),
        ("double", 1.5),
        ("timestamp", 5),
        ("uuid", str(UUID(int=5))),
        ("boolean", True),
        ("decimal(9,2)", "1.50"),
    ],
)
@pytest.mark.parametrize("operation", [*COMPARISONS, "in", "not-in"])
def test_bound_that_cannot_be_read_says_nothing(kind: str, literal: Any, operation: str) -> None:
    content = b"" if kind.startswith("decimal") else b"\x01\x02\x03"
    literals = [literal] if operation in COMPARISONS else [literal, 7] if kind == "int" else [literal]

    assert verdict(kind, operation, literals, content, content) == "some"


def test_nan_is_no_bound() -> None:
    for operation in COMPARISONS:
        assert verdict("double", operation, 1.5, math.nan, math.nan) == "some"


@pytest.mark.parametrize(
    ("operation", "literal", "lower", "upper", "expected"),
    [
        ("lt", 0.0, -0.0, 1.0, "some"),
        ("lt", 0.0, 0.0, 1.0, "none"),
        ("gt-eq", 0.0, -0.0, -0.0, "some"),
        ("gt-eq", 0.0, 0.0, 1.0, "all"),
        ("eq", 0.0, -0.0, -0.0, "some"),
        ("eq", 0.0, 0.0, 0.0, "all"),
        ("not-eq", 0.0, -0.0, -0.0, "some"),
        ("not-eq", 0.0, 0.0, 0.0, "none"),
        ("in", [0.0, 5.0], -0.0, -0.0, "some"),
        ("lt", 1.0, -0.0, 0.5, "all"),
    ],
)
def test_zero_has_two_places(operation: str, literal: Any, lower: float, upper: float, expected: str) -> None:
    assert verdict("double", operation, literal, lower, upper) == expected


@pytest.mark.parametrize(
    ("kind", "narrow", "literal", "bounds"),
    [
        ("long", "int", 5, (3, 7)),
        ("double", "float", 1.5, (0.5, 2.5)),
        ("timestamp", "date", "1970-01-05T00:00:00", (3, 7)),
        ("timestamp_ns", "date", "1970-01-05T00:00:00", (3, 7)),
    ],
)
def test_bounds_from_before_the_column_was_widened(kind: str, narrow: str, literal: Any, bounds: Any) -> None:
    lower, upper = (to_bytes(parse_primitive(narrow), bound) for bound in bounds)

    assert verdict(kind, "eq", literal, lower, upper) == "some"
    assert verdict(kind, "lt", literal, upper, upper) == "none"
    assert verdict(kind, "lt", literal, lower, lower) == "all"


@pytest.mark.parametrize(
    ("kind", "literal", "below", "above"),
    [
        ("string", "b", "a", "c"),
        ("string", "\uffff", "\ue000", "\U00010000"),  # not in UTF-16's order
        ("binary", "7F", b"\x00", b"\x80"),
        ("fixed[2]", "0080", b"\x00\x7f", b"\xff\x00"),
        ("decimal(38,2)", "-0.01", Decimal("-9999999999.99"), Decimal("0.00")),
        ("date", "1969-12-31", -2, 0),
        ("time", "00:00:01", 999_999, 1_000_001),
        ("boolean", False, None, True),
        ("uuid", "7f000000-0000-0000-0000-000000000000", UUID(int=0), UUID(int=2**127)),
    ],
)
def test_every_type_has_an_order(kind: str, literal: Any, below: Any, above: Any) -> None:
    if below is not None:
        assert verdict(kind, "gt-eq", literal, below, below) == "none"
        assert verdict(kind, "lt", literal, below, below) == "all"
    assert verdict(kind, "lt-eq", literal, above, above) == "none"
    assert verdict(kind, "gt", literal, above, above) == "all"


@pytest.mark.parametrize(
    ("operation", "prefix", "lower", "upper", "expected"),
    [
        ("starts-with", "b", "a", "c", "some"),
        ("starts-with", "b", "ba", "bz", "all"),
        ("starts-with", "b", "b", None, "some"),
        ("starts-with", "b", "c", "d", "none"),
        ("starts-with", "b", "c", None, "none"),
        ("starts-with", "b", None, "a", "none"),
        ("starts-with", "bc", "a", "b", "none"),
        ("starts-with", "bc", "b", "bz", "some"),
        ("starts-with", "bc", "bd", "be", "none"),
        ("starts-with", "", "a", "b", "all"),
        ("not-starts-with", "b", "a", "c", "some"),
        ("not-starts-with", "b", "ba", "bz", "none"),
        ("not-starts-with", "b", "c", "d", "all"),
        ("not-starts-with", "bc", "b", "bz", "some"),
        ("not-starts-with", "b", None, None, "some"),
        # A lower bound that was cut inside a character.
        ("starts-with", "\u00e9", b"\xc3", "\uffff", "some"),
    ],
)
def test_prefixes_between_two_bounds(
    operation: str, prefix: str, lower: Any, upper: Any, expected: str
) -> None:
    assert verdict("string", operation, prefix, lower, upper) == expected


def test_bounds_cut_short_hold_what_they_stand_for() -> None:
    lower, upper = "a" * 16, "a" * 15 + "b"

    assert verdict("string", "eq", "a" * 20, lower, upper) == "some"
    assert verdict("string", "not-eq", "a" * 20, lower, upper) == "some"
    assert verdict("string", "gt", "a" * 20, lower, upper) == "some"
    assert verdict("string", "starts-with", "a" * 20, lower, upper) == "some"


@pytest.mark.parametrize(
    ("kind", "through", "operation", "literal", "lower", "upper", "expected"),
    [
        ("int", "truncate[10]", "eq", 10, 11, 19, "all"),
        ("int", "truncate[10]", "eq", 20, 11, 19, "none"),
        ("int", "truncate[10]", "gt", 10, 11, 21, "some"),
        ("string", "truncate[2]", "eq", "ab", "abc", "abd", "all"),
        ("string", "truncate[2]", "starts-with", "ab", "abc", "abd", "all"),
        ("string", "truncate[2]", "eq", "ab", b"ab\xc3", "abz", "some"),
        ("decimal(9,2)", "truncate[100]", "lt", "1.00", Decimal("0.10"), Decimal("0.99"), "all"),
        ("timestamp", "day", "eq", "1970-01-02", 86_400 * 10**6, 86_400 * 10**6 + 5, "all"),
        ("timestamp", "year", "lt", 0, -5, -1, "all"),
        ("date", "month", "in", [1, 2], 31, 45, "all"),
        ("timestamptz", "hour", "not-eq", 1, 0, 5, "all"),
    ],
)
def test_transformed_values_between_two_bounds(
    kind: str, through: str, operation: str, literal: Any, lower: Any, upper: Any, expected: str
) -> None:
    assert verdict(kind, operation, literal, lower, upper, through=through) == expected


@pytest.mark.parametrize("operation", ["starts-with", "not-starts-with"])
def test_prefix_longer_than_truncated_values_is_not_asked_of_bounds(operation: str) -> None:
    """`truncate[2]` of `abc` does not start with `abc`, whatever the bounds start with."""
    predicate = predicate_of("string", operation, "abc", through="truncate[2]")

    assert range_may_match(predicate) is None
    assert range_all_match(predicate) is None


def test_lowest_numbers_may_have_wrapped_around() -> None:
    lowest = -(2**31)

    assert verdict("int", "gt", 5, lowest, 0, through="truncate[3]") == "some"
    assert verdict("int", "gt", 5, None, 0, through="truncate[3]") == "some"
    assert verdict("int", "lt", 5, None, 0, through="truncate[3]") == "some"
    assert verdict("int", "gt", 5, lowest + 2, 0, through="truncate[3]") == "none"
    assert verdict("int", "gt", 5, lowest, 0, through="truncate[2]") == "none"
    assert verdict("int", "lt", 5, 0, 0, through="truncate[3]") == "all"


def test_buckets_have_no_order() -> None:
    assert range_may_match(predicate_of("int", "eq", 1, through="bucket[4]")) is None
    assert range_all_match(predicate_of("int", "eq", 1, through="bucket[4]")) is None


def test_uuids_are_compared_as_bytes_whatever_order_the_writer_had() -> None:
    low, high = UUID(int=5), UUID(int=2**127 + 5)
    signed_bounds = (high, low)  # 8000… is the lowest in signed order

    assert verdict("uuid", "gt", str(UUID(int=2**127)), low, high) == "some"
    assert verdict("uuid", "gt", str(UUID(int=2**127)), *signed_bounds) == "some"
    assert verdict("uuid", "gt", str(UUID(int=2**126)), UUID(int=5 << 64), UUID(int=6 << 64)) == "none"
    assert verdict("uuid", "eq", str(low), low, low) == "all"


def test_unary_operations_compare_nothing() -> None:
    with pytest.raises(ValueError, match="not enough values"):
        range_may_match(BoundPredicate(Operation.IS_NULL, predicate_of("int", "eq", 1).reference))
