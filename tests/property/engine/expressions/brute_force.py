"""What a filter means, row by row, in the plainest words."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from app.engine.expressions.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundExpression,
    BoundPredicate,
    BoundTransform,
    Not,
    Or,
)
from app.engine.expressions.transform_values import transform_value
from app.engine.model.values import order_key


def matches(expression: BoundExpression, row: Any, *, by_total_order: bool = False) -> bool:
    """Tell whether a row matches; by total order, -0.0 is before 0.0 and NaN above all numbers."""
    match expression:
        case AlwaysTrue():
            return True
        case AlwaysFalse():
            return False
        case And():
            return all(matches(part, row, by_total_order=by_total_order) for part in expression.parts)
        case Or():
            return any(matches(part, row, by_total_order=by_total_order) for part in expression.parts)
        case Not():
            return not matches(expression.part, row, by_total_order=by_total_order)
        case BoundPredicate():
            return _holds(expression, _value(expression, row), order_key if by_total_order else _same)


def _value(predicate: BoundPredicate, row: Any) -> Any:
    value = row
    for position in predicate.reference.positions:
        value = None if value is None else value[position]
    term = predicate.term
    if isinstance(term, BoundTransform):
        return transform_value(term.transform, term.reference.type, value)
    return value


def _same(value: Any) -> Any:
    return value


def _holds(predicate: BoundPredicate, value: Any, key: Callable[[Any], Any]) -> bool:
    null = value is None
    place = key(value)
    places = [key(item) for item in predicate.values]
    match predicate.operation.value:
        case "is-null":
            return null
        case "not-null":
            return not null
        case "is-nan":
            return not null and math.isnan(value)
        case "not-nan":
            return null or not math.isnan(value)
        case "lt":
            return bool(not null and place < places[0])
        case "lt-eq":
            return bool(not null and place <= places[0])
        case "gt":
            return bool(not null and place > places[0])
        case "gt-eq":
            return bool(not null and place >= places[0])
        case "eq" | "in":
            return not null and any(place == item for item in places)
        case "not-eq" | "not-in":
            return null or all(place != item for item in places)
        case "starts-with":
            return not null and value[: len(places[0])] == places[0]
        case "not-starts-with":
            return null or value[: len(places[0])] != places[0]
    raise AssertionError(predicate.operation)
