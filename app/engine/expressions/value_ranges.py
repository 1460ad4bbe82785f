"""Ranges of values that a filter needs, for filtering a whole manifest by bounds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from app.engine.expressions import expressions as e
from app.engine.model.data_types.types import PrimitiveType
from app.engine.model.data_types.values import FLOATING_KINDS, is_nan
from app.engine.model.files.entry_filters import ValueRange

_LEAVES_LOW_OPEN: Final = frozenset({e.Operation.LT, e.Operation.LT_EQ})
_LEAVES_HIGH_OPEN: Final = frozenset({e.Operation.GT, e.Operation.GT_EQ})
_CLOSED: Final = frozenset({e.Operation.EQ, e.Operation.IN})


def value_ranges(bound: e.BoundExpression) -> tuple[ValueRange, ...]:
    """Return ranges of columns; every matching row has a value in each of them.

    Alternatives and transforms give no ranges, nor do uuids, for which early writers used another order. Nor do
    lower limits of floats, as some engines place NaN above all numbers.
    """
    found = e.rewrite_not(bound)
    parts = found.parts if isinstance(found, e.And) else (found,)
    return tuple(_ranges(part for part in parts if isinstance(part, e.BoundPredicate)))


def _ranges(predicates: Iterable[e.BoundPredicate]) -> Iterator[ValueRange]:
    for predicate in predicates:
        term, values = predicate.term, predicate.values
        if not isinstance(term, e.BoundReference) or not isinstance(term.type, PrimitiveType):
            continue
        if term.type.kind == "uuid" or not values or any(map(is_nan, values)):
            continue
        lowest, highest = min(values), max(values)
        if predicate.operation in _LEAVES_LOW_OPEN:
            yield ValueRange(term.field_id, term.type, None, highest)
        elif predicate.operation in _LEAVES_HIGH_OPEN and term.type.kind not in FLOATING_KINDS:
            yield ValueRange(term.field_id, term.type, lowest, None)
        elif predicate.operation in _CLOSED:
            yield ValueRange(term.field_id, term.type, lowest, highest)
