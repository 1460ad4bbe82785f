"""One value against one predicate: it matches, does not match, or engines disagree.

Null is not equal to anything, is in no set, and starts with nothing; all other comparisons with null are false.
Engines disagree about NaN (unordered, or above all numbers) and about -0.0 (equal to 0.0, or before it).
"""

from __future__ import annotations

import math
import operator
from bisect import bisect_left
from collections.abc import Callable
from typing import Any, Final

from app.engine.expressions.expressions import BoundPredicate, BoundTransform, Operation
from app.engine.expressions.transform_values import transform_function
from app.engine.model.data_types.types import PrimitiveType
from app.engine.model.data_types.values import order_key

Verdict = bool | None
"""Whether a value matches; None if engines disagree."""
Judge = Callable[[Any], Verdict]
Test = Callable[[Any], bool]

_COMPARED: Final[dict[Operation, Callable[[Any, Any], bool]]] = {
    Operation.LT: operator.lt,
    Operation.LT_EQ: operator.le,
    Operation.GT: operator.gt,
    Operation.GT_EQ: operator.ge,
    Operation.EQ: operator.eq,
    Operation.NOT_EQ: operator.ne,
    Operation.STARTS_WITH: str.startswith,
}
MATCHED_BY_NULL: Final = frozenset(
    {Operation.IS_NULL, Operation.NOT_NAN, Operation.NOT_EQ, Operation.NOT_IN, Operation.NOT_STARTS_WITH}
)
"""The operations that null matches."""
MATCHED_BY_NAN_ON_TOP: Final = frozenset({Operation.GT, Operation.GT_EQ})
"""The operations that NaN matches only in engines that place it above all numbers."""
_FEW: Final = 1_000
"""So many values may be in a set, whatever they are."""


def value_test(predicate: BoundPredicate) -> Test:
    """Return a test of a column's value, for which NaN is unordered and -0.0 equals 0.0."""
    kind = predicate.term.type
    if isinstance(kind, PrimitiveType) and kind.kind == "uuid":
        test = _total(_test(predicate.operation, tuple(map(order_key, predicate.values))))
    else:
        test = _test(predicate.operation, predicate.values)
    return _of_term(predicate, _with_null(predicate.operation, test))


def value_judge(predicate: BoundPredicate) -> Judge:
    """Return a test of a column's value that gives None where engines disagree."""
    test = value_test(predicate)
    kind = predicate.term.type
    if not (isinstance(kind, PrimitiveType) and kind.kind in ("float", "double")):
        return test
    if predicate.operation.is_unary:
        return test
    keys = tuple(order_key(value) for value in predicate.values)
    total = _of_term(predicate, _with_null(predicate.operation, _total(_test(predicate.operation, keys))))

    def judge(value: Any) -> Verdict:
        verdict = test(value)
        return verdict if verdict is total(value) else None

    return judge


def _total(test: Test) -> Test:
    return lambda value: test(order_key(value))


def _with_null(operation: Operation, test: Test) -> Test:
    of_null = operation in MATCHED_BY_NULL
    return lambda value: of_null if value is None else test(value)


def _of_term(predicate: BoundPredicate, test: Test) -> Test:
    term = predicate.term
    if not isinstance(term, BoundTransform):
        return test
    transformed = transform_function(term.transform, term.reference.type)
    return lambda value: test(None if value is None else transformed(value))


def _membership(values: tuple[Any, ...]) -> Test:
    """Return a test for one of some values."""
    if len(values) <= _FEW or isinstance(values[0], str | bytes):
        return frozenset(values).__contains__
    # No set: one of numbers that were chosen to do harm takes seconds, in which nothing else is done.
    in_order = sorted(values, key=order_key)

    def is_in(value: Any) -> bool:
        at = bisect_left(in_order, value)
        return at < len(in_order) and bool(in_order[at] == value)

    return is_in


def _test(operation: Operation, values: tuple[Any, ...]) -> Test:
    match operation:
        case Operation.IS_NULL:
            return lambda _: False
        case Operation.NOT_NULL:
            return lambda _: True
        case Operation.IS_NAN:
            return math.isnan
        case Operation.NOT_NAN:
            return lambda value: not math.isnan(value)
        case Operation.NOT_STARTS_WITH:
            (prefix,) = values
            return lambda value: not value.startswith(prefix)
        case Operation.IN:
            return _membership(values)
        case Operation.NOT_IN:
            is_in = _membership(values)
            return lambda value: not is_in(value)
    compared, (literal,) = _COMPARED[operation], values
    return lambda value: compared(value, literal)
