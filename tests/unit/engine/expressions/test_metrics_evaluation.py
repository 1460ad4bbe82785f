from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from app.engine.expressions.binding import bind
from app.engine.expressions.expression_json import parse_expression
from app.engine.expressions.expressions import ALWAYS_FALSE, ALWAYS_TRUE, BoundExpression, Not
from app.engine.expressions.metrics_evaluation import (
    metrics_test,
    strict_metrics_test,
)
from app.engine.model.files.manifests import DataFile
from tests.builders.filtered_files import asked, bound_of, file_of, schema_of, struct_of

COUNTED = {"values": 10, "nulls": 0, "nans": 0}
SOME_NULL = {"values": 10, "nulls": 3, "nans": 0}
ALL_NULL = {"values": 10, "nulls": 10, "nans": 0}
SOME_NAN = {"values": 10, "nulls": 0, "nans": 3}
ALL_NAN = {"values": 10, "nulls": 0, "nans": 10}
UNCOUNTED: dict[str, int] = {}


def verdict(bound: BoundExpression, file: DataFile) -> str:
    """Return whether `all`, `some` or `none` of a file's rows may match."""
    if strict_metrics_test(bound)(file):
        assert metrics_test(bound)(file)
        return "all"
    return "some" if metrics_test(bound)(file) else "none"


@pytest.mark.parametrize(
    ("operation", "counts", "expected"),
    [
        ("is-null", COUNTED, "none"),
        ("is-null", SOME_NULL, "some"),
        ("is-null", ALL_NULL, "all"),
        ("is-null", UNCOUNTED, "some"),
        ("is-null", {"values": 10}, "some"),
        ("is-null", {"nulls": 10}, "some"),
        ("not-null", COUNTED, "all"),
        ("not-null", SOME_NULL, "some"),
        ("not-null", ALL_NULL, "none"),
        ("not-null", UNCOUNTED, "some"),
        ("is-nan", COUNTED, "none"),
        ("is-nan", SOME_NAN, "some"),
        ("is-nan", ALL_NAN, "all"),
        ("is-nan", ALL_NULL, "none"),
        ("is-nan", {"values": 10, "nulls": 10}, "none"),
        ("is-nan", UNCOUNTED, "some"),
        ("not-nan", COUNTED, "all"),
        ("not-nan", SOME_NAN, "some"),
        ("not-nan", ALL_NAN, "none"),
        ("not-nan", {"values": 10, "nulls": 10}, "all"),
        ("not-nan", UNCOUNTED, "some"),
    ],
)
def test_null_and_nan_are_asked_of_the_counts(operation: str, counts: dict[str, int], expected: str) -> None:
    assert verdict(bound_of("double", asked(operation)), file_of("double", **counts)) == expected


@pytest.mark.parametrize(
    ("operation", "literal", "counts", "expected"),
    [
        # of values from 1.0 to 2.0
        ("lt", 5.0, COUNTED, "all"),
        ("lt", 5.0, SOME_NULL, "some"),
        ("lt", 5.0, SOME_NAN, "some"),
        ("lt", 5.0, UNCOUNTED, "some"),
        ("lt", 5.0, {"values": 10, "nulls": 0}, "some"),
        ("lt", 1.0, COUNTED, "none"),
        ("lt", 1.0, SOME_NULL, "none"),
        ("lt", 1.0, SOME_NAN, "none"),
        ("lt", 5.0, ALL_NULL, "none"),
        ("lt", 5.0, ALL_NAN, "none"),
        ("gt", 0.0, COUNTED, "all"),
        ("gt", 5.0, COUNTED, "none"),
        ("gt", 5.0, UNCOUNTED, "none"),
        ("gt", 5.0, SOME_NAN, "some"),
        ("gt-eq", 5.0, ALL_NAN, "some"),
        ("gt-eq", 5.0, ALL_NULL, "none"),
        ("eq", 5.0, SOME_NAN, "none"),
        ("eq", 1.5, COUNTED, "some"),
        ("not-eq", 5.0, COUNTED, "all"),
        ("not-eq", 5.0, SOME_NULL, "all"),
        ("not-eq", 5.0, SOME_NAN, "all"),
        ("not-eq", 1.5, ALL_NULL, "all"),
        ("not-eq", 1.5, ALL_NAN, "all"),
        ("not-eq", 1.5, COUNTED, "some"),
    ],
)
def test_comparisons_are_asked_of_bounds_and_counts(
    operation: str, literal: float, counts: dict[str, int], expected: str
) -> None:
    """Null is never compared, and NaN is above all numbers for some engines."""
    file = file_of("double", lower=1.0, upper=2.0, **counts)

    assert verdict(bound_of("double", asked(operation, literal)), file) == expected


@pytest.mark.parametrize(
    ("operation", "counts", "expected"),
    [
        ("not-eq", COUNTED, "none"),
        ("not-eq", SOME_NULL, "some"),
        ("not-eq", UNCOUNTED, "some"),
        ("eq", COUNTED, "all"),
        ("eq", SOME_NULL, "some"),
        ("eq", ALL_NULL, "none"),
        ("not-in", COUNTED, "none"),
        ("in", COUNTED, "all"),
    ],
)
def test_file_of_one_value(operation: str, counts: dict[str, int], expected: str) -> None:
    literals = (5, 6) if operation in ("in", "not-in") else (5,)
    file = file_of("int", lower=5, upper=5, **counts)

    assert verdict(bound_of("int", asked(operation, *literals)), file) == expected


@pytest.mark.parametrize(
    ("operation", "counts", "expected"),
    [
        ("starts-with", COUNTED, "all"),
        ("starts-with", SOME_NULL, "some"),
        ("starts-with", ALL_NULL, "none"),
        ("not-starts-with", COUNTED, "none"),
        ("not-starts-with", SOME_NULL, "some"),
        ("not-starts-with", ALL_NULL, "all"),
    ],
)
def test_prefixes_are_asked_of_bounds_and_counts(
    operation: str, counts: dict[str, int], expected: str
) -> None:
    file = file_of("string", lower="ab", upper="abz", **counts)

    assert verdict(bound_of("string", asked(operation, "ab")), file) == expected


@pytest.mark.parametrize(
    ("operation", "counts", "expected"),
    [
        ("eq", COUNTED, "some"),
        ("eq", ALL_NULL, "none"),
        ("not-eq", COUNTED, "some"),
        ("not-eq", ALL_NULL, "all"),
        ("is-null", ALL_NULL, "all"),
        ("not-null", ALL_NULL, "none"),
    ],
)
def test_buckets_have_counts_only(operation: str, counts: dict[str, int], expected: str) -> None:
    values = (1,) if operation.endswith("eq") else ()
    file = file_of("int", lower=5, upper=5, **counts)

    assert verdict(bound_of("int", asked(operation, *values, through="bucket[4]")), file) == expected


def test_prefix_of_truncated_values_keeps_a_file_that_may_match() -> None:
    file = file_of("string", lower="abcx", upper="abcz", **COUNTED)
    bound = bound_of("string", asked("not-starts-with", "abc", through="truncate[2]"))

    assert metrics_test(bound)(file)
    opposite = bound_of("string", asked("starts-with", "abc", through="truncate[2]"))
    assert not strict_metrics_test(opposite)(file)


def test_file_without_rows_matches_nothing_and_all() -> None:
    empty, unknown = file_of(rows=0), file_of(rows=-1)
    bound = bound_of("int", asked("eq", 5))

    assert not metrics_test(bound)(empty)
    assert strict_metrics_test(bound)(empty)
    # Early Avro writers recorded -1 rows.
    assert metrics_test(bound)(unknown)
    assert not strict_metrics_test(bound)(unknown)


def test_constants_and_negations() -> None:
    file = file_of("int", lower=5, upper=5, **COUNTED)
    bound = bound_of("int", asked("eq", 5))

    assert verdict(ALWAYS_TRUE, file) == "all"
    assert verdict(ALWAYS_FALSE, file) == "none"
    assert not metrics_test(Not(bound))(file)
    assert strict_metrics_test(Not(Not(bound)))(file)


def test_parts_of_a_filter_are_asked_one_by_one() -> None:
    both = {"type": "and", "left": asked("gt-eq", 5), "right": asked("lt", 8)}
    either = {"type": "or", "left": asked("lt", 0), "right": asked("gt", 9)}
    file = file_of("int", lower=5, upper=7, **COUNTED)

    assert verdict(bound_of("int", both), file) == "all"
    assert verdict(bound_of("int", either), file) == "none"


NESTED = schema_of(c=struct_of(x="double"))


def nested_file(**counts: Any) -> DataFile:
    """Return a file with metrics of `c.x`."""
    file = file_of("double", lower=1.0, upper=2.0, **counts)
    moved: dict[str, Any] = {}
    for name in ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds"):
        known = getattr(file, name)
        moved[name] = None if known is None else {11: known[1]}
    return replace(file, **moved)


@pytest.mark.parametrize(
    ("operation", "literals", "counts", "expected"),
    [
        ("is-null", (), COUNTED, "some"),
        ("is-null", (), ALL_NULL, "some"),
        ("not-null", (), COUNTED, "some"),
        ("not-null", (), ALL_NULL, "none"),
        ("eq", (5.0,), COUNTED, "none"),
        ("eq", (1.5,), COUNTED, "some"),
        ("lt", (5.0,), COUNTED, "some"),
        ("not-eq", (5.0,), COUNTED, "some"),
        ("not-nan", (), COUNTED, "some"),
        ("not-nan", (), ALL_NAN, "some"),
        ("is-nan", (), COUNTED, "none"),
        ("gt", (5.0,), SOME_NAN, "some"),
    ],
)
def test_null_count_inside_a_struct_may_leave_out_null_structs(
    operation: str, literals: Any, counts: dict[str, int], expected: str
) -> None:
    bound = bind(parse_expression(asked(operation, *literals, of="c.x")), NESTED)

    assert verdict(bound, nested_file(**counts)) == expected


def test_null_count_inside_structs_that_are_never_null_is_believed() -> None:
    schema = schema_of(required=True, c=struct_of(x="double"))
    bound = bind(parse_expression(asked("not-eq", 5.0, of="c.x")), schema)

    assert metrics_test(bound)(nested_file(**COUNTED))


def test_whole_number_inside_a_struct_is_never_nan() -> None:
    schema = schema_of(c=struct_of(x="int"))
    file = replace(file_of("int"), lower_bounds={11: b"\x05\0\0\0"}, upper_bounds={11: b"\x07\0\0\0"})

    assert verdict(bind(parse_expression(asked("gt", 7, of="c.x")), schema), file) == "none"
    assert verdict(bind(parse_expression(asked("gt", 6, of="c.x")), schema), file) == "some"


def test_struct_has_no_metrics() -> None:
    bound = bind(parse_expression(asked("is-null", of="c")), NESTED)

    assert verdict(bound, nested_file(**ALL_NULL)) == "some"
