from __future__ import annotations

from typing import Any

import pytest

from app.engine.expressions.expression_json import parse_expression, to_json
from app.engine.expressions.expressions import BoundPredicate, Operation
from app.engine.expressions.transform_projection import _among, _with_rounded_up
from tests.builders.filtered_files import asked, bound_of, schema_of, spec_of
from tests.builders.filters import project
from tests.unit.engine.effort import comparisons_of


def projected(kind: str, transform: str, document: Any, *, strict: bool = False) -> Any:
    """Return a projection in JSON, on the field `p0`."""
    expression = parse_expression(document)
    return to_json(project(expression, schema_of(c=kind), spec_of((1, transform)), strict=strict))


def on_field(operation: str, *values: Any) -> Any:
    return asked(operation, *values, of="p0")


@pytest.mark.parametrize(
    ("operation", "values", "inclusive", "strict"),
    [
        ("lt", (20,), ("lt-eq", 10), ("lt", 20)),
        ("lt", (21,), ("lt-eq", 20), ("lt", 20)),
        ("lt-eq", (19,), ("lt-eq", 10), ("lt", 20)),
        ("lt-eq", (20,), ("lt-eq", 20), ("lt", 20)),
        ("gt", (19,), ("gt-eq", 20), ("gt", 10)),
        ("gt", (20,), ("gt-eq", 20), ("gt", 20)),
        ("gt-eq", (20,), ("gt-eq", 20), ("gt", 10)),
        ("gt-eq", (21,), ("gt-eq", 20), ("gt", 20)),
        ("eq", (25,), ("eq", 20), None),
        ("not-eq", (25,), None, ("not-eq", 20)),
        ("in", (5, 7, 25), ("in", 0, 20), None),
        ("in", (5, 7), ("eq", 0), None),
        ("not-in", (5, 7, 25), None, ("not-in", 0, 20)),
        ("is-null", (), ("is-null",), ("is-null",)),
        ("not-null", (), ("not-null",), ("not-null",)),
    ],
)
def test_truncated_decimals(operation: str, values: Any, inclusive: Any, strict: Any) -> None:
    """On decimals of no decimal places: whole numbers without a lowest one."""

    def texts(numbers: Any) -> list[str]:
        return [str(number) for number in numbers]

    document = asked(operation, *texts(values))
    expected = True if inclusive is None else on_field(inclusive[0], *texts(inclusive[1:]))
    assert projected("decimal(9,0)", "truncate[10]", document) == expected
    expected = False if strict is None else on_field(strict[0], *texts(strict[1:]))
    assert projected("decimal(9,0)", "truncate[10]", document, strict=True) == expected


def test_numbers_that_wrap_around_are_not_forgotten() -> None:
    stray = 2**31 - 2  # what -2³¹ truncates to

    below = projected("int", "truncate[10]", asked("lt", 0))
    assert below == {"type": "or", "left": on_field("lt-eq", -10), "right": on_field("eq", stray)}
    above = projected("int", "truncate[10]", asked("gt-eq", 0), strict=True)
    assert above == {"type": "and", "left": on_field("gt", -10), "right": on_field("not-eq", stray)}
    assert projected("int", "truncate[4]", asked("lt", 0)) == on_field("lt-eq", -4)


@pytest.mark.parametrize(
    ("operation", "prefix", "inclusive", "strict"),
    [
        ("starts-with", "a", ("starts-with", "a"), ("starts-with", "a")),
        ("starts-with", "ab", ("eq", "ab"), ("eq", "ab")),
        ("starts-with", "abc", ("starts-with", "ab"), None),
        ("starts-with", "\U0001f600", ("starts-with", "\U0001f600"), ("starts-with", "\U0001f600")),
        ("not-starts-with", "a", ("not-starts-with", "a"), ("not-starts-with", "a")),
        ("not-starts-with", "ab", ("not-eq", "ab"), ("not-eq", "ab")),
        ("not-starts-with", "abc", None, ("not-starts-with", "ab")),
    ],
)
def test_prefixes_of_truncated_text(operation: str, prefix: str, inclusive: Any, strict: Any) -> None:
    document = asked(operation, prefix)

    assert projected("string", "truncate[2]", document) == (inclusive is None or on_field(*inclusive))
    of_all = projected("string", "truncate[2]", document, strict=True)
    assert of_all == (False if strict is None else on_field(*strict))
    assert projected("string", "bucket[4]", document) is True
    assert projected("string", "bucket[4]", document, strict=True) is False
    assert projected("string", "identity", document) == on_field(operation, prefix)


@pytest.mark.parametrize(
    ("operation", "inclusive", "strict"),
    [
        ("lt", ("lt-eq", "ab"), ("lt", "ab")),
        ("lt-eq", ("lt-eq", "ab"), ("lt", "ab")),
        ("gt", ("gt-eq", "ab"), ("gt", "ab")),
        ("gt-eq", ("gt-eq", "ab"), ("gt", "ab")),
    ],
)
def test_text_has_no_next_value(operation: str, inclusive: Any, strict: Any) -> None:
    assert projected("string", "truncate[2]", asked(operation, "abc")) == on_field(*inclusive)
    assert projected("string", "truncate[2]", asked(operation, "abc"), strict=True) == on_field(*strict)


@pytest.mark.parametrize(
    ("operation", "literal", "inclusive", "strict"),
    [
        ("lt", "2024-03-01", ("lt-eq", 649), ("lt", 650)),
        ("lt-eq", "2024-02-29", ("lt-eq", 649), ("lt", 650)),
        ("gt", "2024-02-29", ("gt-eq", 650), ("gt", 649)),
        ("gt-eq", "2024-03-01", ("gt-eq", 650), ("gt", 649)),
        ("eq", "2024-03-01", ("eq", 650), None),
        ("not-eq", "2024-03-01", None, ("not-eq", 650)),
        # Before 1970, early writers rounded up.
        ("lt", "1969-12-01", ("lt-eq", -1), ("lt", -1)),
        ("gt", "1969-11-30", ("gt-eq", -1), ("gt", -1)),
        ("eq", "1969-12-15", ("in", -1, 0), None),
        ("not-eq", "1969-12-15", None, ("not-in", -1, 0)),
        ("lt-eq", "1970-01-01", ("lt-eq", 0), ("lt", 0)),
        ("gt-eq", "1970-01-01", ("gt-eq", 0), ("gt", 0)),
    ],
)
def test_months_of_dates(operation: str, literal: str, inclusive: Any, strict: Any) -> None:
    document = asked(operation, literal)

    assert projected("date", "month", document) == (inclusive is None or on_field(*inclusive))
    of_all = projected("date", "month", document, strict=True)
    assert of_all == (False if strict is None else on_field(*strict))


def test_partition_of_1971_matches_what_is_after_the_first_moment_of_1970() -> None:
    """Nothing before 1970 was rounded up to more than 0."""
    document = asked("gt", "1970-01-01T00:00:00")

    assert projected("timestamp_ns", "year", document, strict=True) == on_field("gt", 0)


def test_days_of_dates_were_never_rounded() -> None:
    assert projected("date", "day", asked("eq", "1969-12-15")) == on_field("eq", "1969-12-15")
    assert projected("date", "day", asked("eq", "1969-12-15", through="day")) == on_field("eq", "1969-12-15")


@pytest.mark.parametrize(
    ("operation", "values", "inclusive", "strict"),
    [
        ("lt", (1,), ("lt", 1), ("lt", 1)),
        ("lt", (0,), ("lt", 1), ("lt", 0)),
        ("lt-eq", (0,), ("lt-eq", 0), ("lt-eq", 0)),
        ("lt-eq", (-1,), ("lt-eq", 0), ("lt-eq", -1)),
        ("gt", (0,), ("gt", 0), ("gt", 0)),
        ("gt", (-1,), ("gt", -1), ("gt", 0)),
        ("gt-eq", (1,), ("gt-eq", 1), ("gt-eq", 1)),
        ("gt-eq", (0,), ("gt-eq", 0), ("gt-eq", 1)),
        ("eq", (5,), ("eq", 5), ("eq", 5)),
        ("eq", (0,), ("eq", 0), None),
        ("eq", (-2,), ("in", -2, -1), None),
        ("not-eq", (5,), ("not-eq", 5), ("not-eq", 5)),
        ("not-eq", (0,), None, ("not-eq", 0)),
        ("not-eq", (-2,), None, ("not-in", -2, -1)),
        ("in", (-3, -2, 7), ("in", -3, -2, -1, 7), ("in", -2, 7)),
        ("not-in", (-3, -2, 7), ("not-in", -2, 7), ("not-in", -3, -2, -1, 7)),
        ("is-null", (), ("is-null",), ("is-null",)),
    ],
)
def test_years_that_early_writers_rounded_up(
    operation: str, values: Any, inclusive: Any, strict: Any
) -> None:
    document = asked(operation, *values, through="year")

    assert projected("timestamp", "year", document) == (inclusive is None or on_field(*inclusive))
    of_all = projected("timestamp", "year", document, strict=True)
    assert of_all == (False if strict is None else on_field(*strict))


@pytest.mark.parametrize("operation", ["lt", "lt-eq", "gt", "gt-eq"])
def test_buckets_have_no_order(operation: str) -> None:
    assert projected("int", "bucket[4]", asked(operation, 5)) is True
    assert projected("int", "bucket[4]", asked(operation, 5), strict=True) is False


def test_buckets_of_values() -> None:
    assert projected("int", "bucket[16]", asked("eq", 34)) == on_field("eq", 2_017_239_379 % 16)
    assert projected("int", "bucket[16]", asked("not-eq", 34)) is True
    assert projected("int", "bucket[16]", asked("not-eq", 34), strict=True) == on_field(
        "not-eq", 2_017_239_379 % 16
    )
    assert projected("int", "bucket[1]", asked("in", 34, 35)) == on_field("eq", 0)


def test_bucket_of_a_bucket_filter_is_the_field_itself() -> None:
    for strict in (False, True):
        document = asked("lt", 3, through="bucket[4]")
        assert projected("int", "bucket[4]", document, strict=strict) == on_field("lt", 3)
        assert projected("int", "bucket[8]", document, strict=strict) is not strict
        assert projected("int", "truncate[4]", document, strict=strict) is not strict
        assert projected("int", "identity", document, strict=strict) == asked(
            "lt", 3, of="p0", through="bucket[4]"
        )


def test_numbers_that_were_chosen_to_do_harm_are_compared_with_few_others() -> None:
    predicate = bound_of("long", asked("eq", 1))
    assert isinstance(predicate, BoundPredicate)
    target, numbers = predicate.reference, range(-3_000, 0)

    assert comparisons_of(numbers, lambda ids: _among(target, ids)) < 10 * 3_000
    assert comparisons_of(numbers, lambda ids: _with_rounded_up(Operation.IN, ids, target)) < 10 * 3_000
    assert comparisons_of(numbers, lambda ids: _with_rounded_up(Operation.NOT_IN, ids, target)) < 10 * 3_000
