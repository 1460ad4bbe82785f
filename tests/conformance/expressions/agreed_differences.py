"""Where we answer otherwise than the reference, and why.

Each function tells whether a difference found there is one of these. All of them know one predicate only.
"""

from __future__ import annotations

import math
from typing import Any

from app.engine.expressions.expressions import BoundPredicate, Operation, TransformTerm, predicates_of
from app.engine.model.manifests import DataFile
from app.engine.model.types import PrimitiveType
from tests.conformance.expressions.columns import Question, asks_transformed

_ORDERED = frozenset({Operation.LT, Operation.LT_EQ, Operation.GT, Operation.GT_EQ})
_BELOW = frozenset({Operation.LT, Operation.LT_EQ})
_APART = frozenset({Operation.NOT_EQ, Operation.NOT_IN})
_PREFIXES = frozenset({Operation.STARTS_WITH, Operation.NOT_STARTS_WITH})


def on_nullness(asked: Question) -> bool:
    """To it, a bucket of a required column may be null; to us it is not."""
    return any(
        isinstance(predicate.term, TransformTerm) and predicate.operation.is_unary
        for predicate in predicates_of(asked.expression)
    )


def on_row(asked: Question, row: Any) -> bool:
    """Null is below everything to its row evaluator alone, NaN is above; uuids are two signed numbers."""
    value = row
    for position in _predicate(asked).reference.positions:
        value = None if value is None else value[position]
    return _on_value(asked, value)


def on_partition(asked: Question, partition: tuple[Any, ...], *, ours: Any) -> bool:
    """As on rows. We never say yes where it says no, but for a null that is not below a literal."""
    column = _predicate(asked).reference.field_id
    values = [
        value
        for field, value in zip(asked.spec.fields, partition, strict=True)
        if field.source_id == column and field.transform != "void"
    ]
    return any(_on_value(asked, value) for value in values)


def _on_value(asked: Question, value: Any) -> bool:
    predicate = _predicate(asked)
    if value is None:
        return predicate.operation in _BELOW
    if isinstance(value, float) and (math.isnan(value) or value == 0.0):
        return True
    return _is_uuid(predicate) and predicate.operation in _ORDERED


def on_projection(asked: Question) -> bool:
    """It takes any transform of a column for the column itself where that is an identity field."""
    return asks_transformed(asked) and any(field.transform == "identity" for field in asked.spec.fields)


def on_manifest(asked: Question, *, ours: bool) -> bool:
    """We see that there is one value only, and it is not the one asked for; and take care of uuids and zeros."""
    predicate = _predicate(asked)
    if ours:
        return _is_uuid(predicate) or _asks_for_zero(predicate)
    return predicate.operation in _APART


def on_metrics(asked: Question, *, ours: bool) -> bool:
    """As on manifests; and we make use of an upper bound alone, where it gives up without a lower one."""
    predicate = _predicate(asked)
    if ours:
        return _is_uuid(predicate) or _asks_for_zero(predicate)
    return predicate.operation in _APART | _PREFIXES | {Operation.EQ, Operation.IN}


def on_strict_metrics(asked: Question, file: DataFile, *, ours: bool) -> bool:
    """We know more of transformed columns and prefixes, and do not take a missing count for none."""
    predicate = _predicate(asked)
    if ours:
        return asks_transformed(asked) or predicate.operation in _PREFIXES
    column = predicate.reference.field_id
    counts_missing = (file.null_value_counts or {}).get(column) is None
    if _is_floating(predicate):
        counts_missing = counts_missing or (file.nan_value_counts or {}).get(column) is None
    is_nested = len(predicate.reference.positions) > 1
    return counts_missing or is_nested or _is_uuid(predicate) or _asks_for_zero(predicate)


def on_any_predicate(asked: Question) -> bool:
    """Tell whether a filter has a predicate about which we know more."""
    return asks_transformed(asked) or any(
        predicate.operation in _APART | _PREFIXES or len(predicate.reference.positions) > 1
        for predicate in predicates_of(asked.bound)
    )


def _predicate(asked: Question) -> BoundPredicate:
    assert asked.predicate is not None, "there is no difference about constants"
    return asked.predicate


def _is_uuid(predicate: BoundPredicate) -> bool:
    kind = predicate.term.type
    return isinstance(kind, PrimitiveType) and kind.kind == "uuid"


def _is_floating(predicate: BoundPredicate) -> bool:
    kind = predicate.term.type
    return isinstance(kind, PrimitiveType) and kind.kind in ("float", "double")


def _asks_for_zero(predicate: BoundPredicate) -> bool:
    return _is_floating(predicate) and 0.0 in predicate.values
