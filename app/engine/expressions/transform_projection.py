"""From a predicate on a column to one on its transformed values, transform by transform."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from itertools import groupby
from typing import Any, Final

from app.engine.expressions.expressions import (
    BoundExpression,
    BoundPredicate,
    BoundReference,
    Operation,
    disjunction,
)
from app.engine.expressions.transform_values import (
    EXACT,
    Function,
    lowest_unwrapped,
    transform_function,
    truncate_without_wrapping,
    unchanged,
)
from app.engine.model.data_types.transforms import Transform
from app.engine.model.data_types.types import PrimitiveType, Type
from app.engine.model.data_types.values import order_key

LT, LT_EQ, GT, GT_EQ = Operation.LT, Operation.LT_EQ, Operation.GT, Operation.GT_EQ
EQ, NOT_EQ, IN, NOT_IN = Operation.EQ, Operation.NOT_EQ, Operation.IN, Operation.NOT_IN
STARTS_WITH, NOT_STARTS_WITH = Operation.STARTS_WITH, Operation.NOT_STARTS_WITH

_TIMES: Final = frozenset({"year", "month", "day", "hour"})


def project_inclusive(
    predicate: BoundPredicate, transform: Transform, target: BoundReference
) -> BoundExpression | None:
    """Return what holds for the transformed values of all matching rows; None if unknown."""
    operation, values, source = predicate.operation, predicate.values, predicate.reference.type
    if operation.is_unary or transform.name == "identity":
        return BoundPredicate(operation, target, values)
    apply = transform_function(transform, source)
    if operation in (EQ, IN):
        found = [apply(value) for value in values]
        twins = [value + 1 for value in found if _has_late_twin(transform, source, value)]
        return _among(target, [*found, *twins])
    if operation in (STARTS_WITH, NOT_STARTS_WITH):
        return _project_prefix(operation, values[0], transform, target)
    if transform.name == "bucket" or operation not in (LT, LT_EQ, GT, GT_EQ):
        return None
    (value,) = values
    before, after = _neighbours(source)
    if transform.name == "truncate":
        apply = truncate_without_wrapping(transform, source)
    if operation in (GT, GT_EQ):
        return BoundPredicate(GT_EQ, target, (apply(after(value) if operation is GT else value),))
    bound = apply(before(value) if operation is LT else value)
    if _has_late_twin(transform, source, bound):
        bound += 1
    projected = BoundPredicate(LT_EQ, target, (bound,))
    strays = _wrapped_values(transform, source)
    return disjunction([projected, *(BoundPredicate(EQ, target, (stray,)) for stray in strays)])


def project_transformed(
    predicate: BoundPredicate, transform: Transform, target: BoundReference
) -> BoundPredicate | None:
    """Return what holds for the stored values of all rows whose transformed values match.

    The two differ because early writers rounded some values up. None if nothing is known.
    """
    operation = predicate.operation
    if operation.is_unary or not _may_be_rounded_up(transform, predicate.reference.type):
        return BoundPredicate(operation, target, predicate.values)
    return _with_rounded_up(operation, predicate.values, target)


def _with_rounded_up(
    operation: Operation, values: tuple[Any, ...], target: BoundReference
) -> BoundPredicate | None:
    """Return what holds for a number that matches and, if it is below 0, for the next one too."""
    if operation in (EQ, IN):
        return _among(target, [*values, *(value + 1 for value in values if value < 0)])
    if operation in (NOT_EQ, NOT_IN):
        # They are in order, so that the one before is the next lower one.
        certain = [
            value
            for before, value in zip((None, *values), values, strict=False)
            if value > 0 or before == value - 1
        ]
        return _among(target, certain, negated=True) if certain else None
    (value,) = values
    is_moved = (operation is LT_EQ and value < 0) or (operation is LT and value <= 0)
    return BoundPredicate(operation, target, (value + 1 if is_moved else value,))


def _may_be_rounded_up(transform: Transform, source: Type) -> bool:
    """Return whether early writers rounded values from before 1970 up."""
    if transform.name not in _TIMES:
        return False
    # The day of a date is not rounded.
    return not (transform.name == "day" and isinstance(source, PrimitiveType) and source.kind == "date")


def _has_late_twin(transform: Transform, source: Type, value: Any) -> bool:
    """Return whether early writers may have stored one more than this."""
    return _may_be_rounded_up(transform, source) and bool(value < 0)


def _among(target: BoundReference, values: Iterable[Any], *, negated: bool = False) -> BoundPredicate:
    several, one = (NOT_IN, NOT_EQ) if negated else (IN, EQ)
    # No set: one of numbers that were chosen to do harm takes seconds.
    ordered = tuple(value for value, _ in groupby(sorted(values, key=order_key)))
    return BoundPredicate(one if len(ordered) == 1 else several, target, ordered)


def _project_prefix(
    operation: Operation, prefix: str, transform: Transform, target: BoundReference
) -> BoundExpression | None:
    width = transform.parameter or 1
    if transform.name != "truncate":
        return None
    if len(prefix) < width:
        return BoundPredicate(operation, target, (prefix,))
    if len(prefix) == width:
        return BoundPredicate(EQ if operation is STARTS_WITH else NOT_EQ, target, (prefix,))
    # A truncated value shows whether a row has the first part of the prefix, but not the rest.
    return BoundPredicate(operation, target, (prefix[:width],)) if operation is STARTS_WITH else None


def _neighbours(source: Type) -> tuple[Function, Function]:
    """Return functions to the next lower and higher value, or to the same one at the end."""
    if not isinstance(source, PrimitiveType) or source.kind in ("string", "binary"):
        return unchanged, unchanged
    if source.kind == "decimal":
        step = Decimal(1).scaleb(-(source.scale or 0))
        return lambda value: EXACT.subtract(value, step), lambda value: EXACT.add(value, step)
    return lambda value: value - 1, lambda value: value + 1


def _wrapped_values(transform: Transform, source: Type) -> list[int]:
    """Return the high number that the lowest numbers of a type wrap around to when truncated."""
    lowest = lowest_unwrapped(transform, source)
    return [] if lowest is None else [transform_function(transform, source)(lowest - 1)]
