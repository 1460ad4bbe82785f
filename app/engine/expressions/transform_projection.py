"""What a predicate on a column says about the column's transformed values, transform by transform.

A projection is a list of operations with values that hold together; None says nothing is known.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any, Final

from app.engine.expressions.expressions import BoundPredicate, Operation
from app.engine.expressions.transform_values import Function, transform_function, wrapped
from app.engine.model.transforms import Transform
from app.engine.model.types import PrimitiveType, Type
from app.engine.model.values import decimal_of

Question = tuple[Operation, tuple[Any, ...]]
Projection = tuple[Question, ...] | None

LT, LT_EQ, GT, GT_EQ = Operation.LT, Operation.LT_EQ, Operation.GT, Operation.GT_EQ
EQ, NOT_EQ, IN, NOT_IN = Operation.EQ, Operation.NOT_EQ, Operation.IN, Operation.NOT_IN
STARTS_WITH, NOT_STARTS_WITH = Operation.STARTS_WITH, Operation.NOT_STARTS_WITH

_EXACT: Final = Context(prec=400)
_TIMES: Final = frozenset({"year", "month", "day", "hour"})


def project_inclusive(predicate: BoundPredicate, transform: Transform) -> Projection:
    """Return what is true of the transformed value of every row that matches."""
    operation, values, source = predicate.operation, predicate.values, predicate.reference.type
    if operation.is_unary or transform.name == "identity":
        return ((operation, values),)
    apply = transform_function(transform, source)
    if operation in (EQ, IN):
        return _inclusive_set({apply(value) for value in values}, transform, source)
    if transform.name == "bucket":
        return None
    if operation in (STARTS_WITH, NOT_STARTS_WITH):
        return _prefix(operation, values[0], transform.parameter or 1, strict=False)
    if operation not in (LT, LT_EQ, GT, GT_EQ):
        return None
    (value,) = values
    step = _step(source)
    if operation is LT:
        bound = apply(step(value, -1)) if step else apply(value)
    elif operation is GT:
        bound = apply(step(value, 1)) if step else apply(value)
    else:
        bound = apply(value)
    ...
