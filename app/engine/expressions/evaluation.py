"""Filters asked of rows and of partition tuples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from app.engine.expressions.comparisons import value_judge, value_test
from app.engine.expressions.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundExpression,
    BoundPredicate,
    Or,
    rewrite_not,
)

Row = Sequence[Any]
Test = Callable[[Any], bool]


def row_test(expression: BoundExpression) -> Callable[[Row], bool]:
    """Return whether a row matches a filter; rows and structs in them are sequences of values in the fields' order."""
    return compiled(rewrite_not(expression), _row_predicate)


def _row_predicate(predicate: BoundPredicate) -> Test:
    test, positions = value_test(predicate), predicate.reference.positions

    def match(row: Any) -> bool:
        value = row
        for position in positions:
            if value is None:
                break
            value = value[position]
        return test(value)

    return match


def partition_test(projected: BoundExpression, *, strict: bool = False) -> Callable[[Row], bool]:
    """Return whether a partition tuple matches a projected filter.

    Where engines disagree about a value, an inclusive test says yes, a strict one no.
    """

    def partition_predicate(predicate: BoundPredicate) -> Test:
        judge, (position,) = value_judge(predicate), predicate.reference.positions
        if strict:
            return lambda partition: judge(partition[position]) is True
        return lambda partition: judge(partition[position]) is not False

    return compiled(rewrite_not(projected), partition_predicate)


def compiled(expression: BoundExpression, test_of: Callable[[BoundPredicate], Test]) -> Test:
    """Return one function for an expression without `Not`, from a function for each of its predicates."""
    match expression:
        case AlwaysTrue():
            return lambda _: True
        case AlwaysFalse():
            return lambda _: False
        case And():
            return _all([compiled(part, test_of) for part in expression.parts])
        case Or():
            return _any([compiled(part, test_of) for part in expression.parts])
        case BoundPredicate():
            return test_of(expression)
        case _:
            raise AssertionError("rewrite_not comes first")


def _all(tests: list[Test]) -> Test:
    if len(tests) == 2:
        first, second = tests
        return lambda asked: first(asked) and second(asked)

    def match(asked: Any) -> bool:
        for test in tests:  # noqa: SIM110 - a generator costs more than the tests
            if not test(asked):
                return False
        return True

    return match


def _any(tests: list[Test]) -> Test:
    if len(tests) == 2:
        first, second = tests
        return lambda asked: first(asked) or second(asked)

    def match(asked: Any) -> bool:
        for test in tests:  # noqa: SIM110 - a generator costs more than the tests
            if test(asked):
                return True
        return False

    return match
