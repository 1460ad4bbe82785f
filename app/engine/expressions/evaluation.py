"""Filters on partition tuples, and compiling a filter into one function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from app.engine.expressions import expressions as e
from app.engine.expressions.comparisons import value_judge

Row = Sequence[Any]
Test = Callable[[Any], bool]


def partition_test(projected: e.BoundExpression, *, strict: bool = False) -> Callable[[Row], bool]:
    """Return a test of whether a partition tuple matches a projected filter.

    If engines disagree about a value, it matches, but not in a strict test.
    """

    def partition_predicate(predicate: e.BoundPredicate) -> Test:
        judge, (position,) = value_judge(predicate), predicate.reference.positions
        if strict:
            return lambda partition: judge(partition[position]) is True
        return lambda partition: judge(partition[position]) is not False

    return compiled(e.rewrite_not(projected), partition_predicate)


def compiled(expression: e.BoundExpression, test_of: Callable[[e.BoundPredicate], Test]) -> Test:
    """Return one test for an expression without `Not`, made of a test for each predicate."""
    match expression:
        case e.AlwaysTrue():
            return lambda _: True
        case e.AlwaysFalse():
            return lambda _: False
        case e.And():
            return _all([compiled(part, test_of) for part in expression.parts])
        case e.Or():
            return _any([compiled(part, test_of) for part in expression.parts])
        case e.BoundPredicate():
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
