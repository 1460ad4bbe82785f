"""Filters on partition tuples, and compiling a filter into one function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from app.engine.expressions import expressions as e
from app.engine.expressions.comparisons import value_judge
from app.engine.model.data_types.types import PrimitiveType

Row = Sequence[Any]
Test = Callable[[Any], bool]
_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "boolean": bool,
    "float": float,
    "double": float,
    "decimal": Decimal,
    "string": str,
    "uuid": (UUID, bytes),
    "fixed": bytes,
    "binary": bytes,
}
"""What the values of partitions are; all others are whole numbers."""


def partition_test(projected: e.BoundExpression, *, strict: bool = False) -> Callable[[Row], bool]:
    """Return a test of whether a partition tuple matches a projected filter.

    If engines disagree about a value, it matches, but not in a strict test. So does one of another type than its
    field's, as a writer may have left in a manifest.
    """

    def partition_predicate(predicate: e.BoundPredicate) -> Test:
        judge, (position,) = value_judge(predicate), predicate.reference.positions
        kind = predicate.reference.type
        expected = _TYPES.get(kind.kind, int) if isinstance(kind, PrimitiveType) else object

        def test(partition: Row) -> bool:
            value = partition[position]
            verdict = judge(value) if value is None or isinstance(value, expected) else None
            return verdict is True if strict else verdict is not False

        return test

    return compiled(e.rewrite_not(projected), partition_predicate)


def compiled(expression: e.BoundExpression, test_of: Callable[[e.BoundPredicate], Test]) -> Test:
    """Return one test for an expression without `Not`, made of a test for each predicate."""
    match expression:
        case e.AlwaysTrue():
            return lambda _: True
        case e.AlwaysFalse():
            return lambda _: False
        case e.And():
            return _chained([compiled(part, test_of) for part in expression.parts], decisive=False)
        case e.Or():
            return _chained([compiled(part, test_of) for part in expression.parts], decisive=True)
        case e.BoundPredicate():
            return test_of(expression)
        case _:
            raise AssertionError("rewrite_not comes first")


def _chained(tests: list[Test], *, decisive: bool) -> Test:
    """Return one test for several; the first answer that is decisive is the answer."""
    if len(tests) == 2:
        first, second = tests
        if decisive:
            return lambda asked: first(asked) or second(asked)
        return lambda asked: first(asked) and second(asked)

    def match(asked: Any) -> bool:
        for test in tests:
            if test(asked) is decisive:
                return decisive
        return not decisive

    return match
