"""Where we answer otherwise than the reference, and why: it errs, or one of us knows more.

Each function tells whether a difference found there is one of these. All of them know one predicate only. Where it errs
we are the careful ones: what it passes over may hold a row that matches.
"""

from __future__ import annotations

import math
import operator
import struct
from typing import Any
from uuid import UUID

from app.engine.expressions.expressions import (
    BoundPredicate,
    BoundTransform,
    Operation,
    TransformTerm,
    predicates_of,
)
from app.engine.expressions.transform_values import lowest_unwrapped
from app.engine.model.data_types.transforms import Transform, parse_transform
from app.engine.model.data_types.types import PrimitiveType
from app.engine.model.files.manifests import DataFile, ManifestFile
from tests.builders.filters import transform_value
from tests.conformance.expressions.columns import Question, asks_transformed
from tests.conformance.expressions.reference import Refused

_ORDERED = {
    Operation.LT: operator.lt,
    Operation.LT_EQ: operator.le,
    Operation.GT: operator.gt,
    Operation.GT_EQ: operator.ge,
}
_BELOW = frozenset({Operation.LT, Operation.LT_EQ})
_ABOVE = frozenset({Operation.GT, Operation.GT_EQ})
_APART = frozenset({Operation.NOT_EQ, Operation.NOT_IN})
_PREFIXES = frozenset({Operation.STARTS_WITH, Operation.NOT_STARTS_WITH})
_TWO_SIDED = frozenset({Operation.EQ, Operation.IN}) | _PREFIXES
_TIMES = frozenset({"year", "month", "day", "hour"})


def on_refusal(asked: Question, refusal: Refused) -> bool:
    """It fails where a null is asked for a prefix, and where a set of nanoseconds is transformed."""
    predicates = list(predicates_of(asked.bound))
    if "NullPointerException" in str(refusal):
        return any(predicate.operation in _PREFIXES for predicate in predicates)
    return "long overflow" in str(refusal) and any(
        predicate.operation.is_set and str(predicate.reference.type).endswith("_ns")
        for predicate in predicates
    )


def on_nullness(asked: Question) -> bool:
    """To it, a bucket of a required column may be null; to us it is not."""
    return any(
        isinstance(predicate.term, TransformTerm) and predicate.operation.is_unary
        for predicate in predicates_of(asked.expression)
    )


def _on_identity(asked: Question) -> bool:
    """It takes any transform of a column for the column itself where that is an identity field."""
    transformed = {
        predicate.reference.field_id
        for predicate in predicates_of(asked.bound)
        if isinstance(predicate.term, BoundTransform)
    }
    return any(
        field.transform == "identity" and field.source_id in transformed for field in asked.spec.fields
    )


def _on_prefix(asked: Question) -> bool:
    """It counts a prefix's UTF-16 units where transforms count code points, and so passes over matches."""
    truncated = {field.source_id for field in asked.spec.fields if field.transform.startswith("truncate")}
    return any(
        predicate.operation in _PREFIXES and max(predicate.values[0], default="") > "\uffff"
        for predicate in predicates_of(asked.bound)
        if predicate.reference.field_id in truncated
    )


def on_projection(asked: Question) -> bool:
    """Tell whether a projection is known to differ, for any of the reasons."""
    return _on_identity(asked) or on_nullness(asked) or _on_prefix(asked) or _on_rounding(asked)


def _on_rounding(asked: Question) -> bool:
    """Early writers rounded times before 1970 up. We remember it also where a filter asks about a year or day.

    It remembers it where a filter asks about a column, and then needlessly for the first period of 1970 too.
    """
    return any(
        _asks_about_rounded(predicate, parse_transform(field.transform))
        for predicate in predicates_of(asked.bound)
        for field in asked.spec.fields
        if field.source_id == predicate.reference.field_id and field.transform in _TIMES
    )


def _asks_about_rounded(predicate: BoundPredicate, transform: Transform) -> bool:
    if isinstance(predicate.term, BoundTransform):
        return any(value <= 0 for value in predicate.values)
    if predicate.operation not in _ABOVE:
        return False
    (value,) = predicate.values
    kind = predicate.reference.type
    return 0 in (transform_value(transform, kind, value), transform_value(transform, kind, value - 1))


def on_row(asked: Question, row: Any, *, ours: bool, theirs: bool) -> bool:
    """Null is below everything to its row evaluator alone, NaN is above; uuids are two signed numbers."""
    predicate = _predicate(asked)
    value = row
    for position in predicate.reference.positions:
        value = None if value is None else value[position]
    if isinstance(predicate.term, BoundTransform):
        value = transform_value(predicate.term.transform, predicate.reference.type, value)
    return _on_value(predicate, value, ours=ours, theirs=theirs)


def on_partition(asked: Question, partition: tuple[Any, ...], *, ours: bool, theirs: bool) -> bool:
    """As on rows."""
    predicate = _predicate(asked)
    values = [
        value
        for field, value in zip(asked.spec.fields, partition, strict=True)
        if field.source_id == predicate.reference.field_id and field.transform != "void"
    ]
    return any(_on_value(predicate, value, ours=ours, theirs=theirs) for value in values)


def on_residual(asked: Question, partition: tuple[Any, ...]) -> bool:
    """As on rows: a question is left where engines disagree about a value."""
    both = ((True, False), (False, True))
    return any(on_partition(asked, partition, ours=ours, theirs=theirs) for ours, theirs in both)


def _on_value(predicate: BoundPredicate, value: Any, *, ours: bool, theirs: bool) -> bool:
    operation = predicate.operation
    if value is None:
        return operation in _BELOW and theirs and not ours
    if isinstance(value, float):
        if math.isnan(value):
            return operation in _ABOVE and theirs and not ours
        return value == 0.0 and _asks_for_zero(predicate)
    if isinstance(value, UUID) and operation in _ORDERED:
        return _ORDERED[operation](_signed(value), _signed(predicate.values[0])) is theirs
    return False


def on_manifest(asked: Question, manifest: ManifestFile, *, ours: bool) -> bool:
    """We see that there is one value only, and it is not the one asked for; and take care of uuids and zeros."""
    predicate = _predicate(asked)
    if _is_uuid(predicate) and predicate.operation in _ORDERED.keys() | {Operation.EQ, Operation.IN}:
        return True
    summaries = [
        summary
        for field, summary in zip(asked.spec.fields, manifest.partitions or (), strict=True)
        if field.source_id == predicate.reference.field_id
    ]
    if ours:
        is_above = predicate.operation in _ABOVE and _is_floating(predicate)
        # It takes missing bounds for a sign that there is nothing to compare, though no null or NaN explains them.
        is_unexplained = any(
            summary.lower_bound is None and not summary.contains_null and summary.contains_nan is None
            for summary in summaries
        )
        return _asks_for_zero(predicate) or is_above or is_unexplained
    is_single = any(summary.lower_bound == summary.upper_bound is not None for summary in summaries)
    return predicate.operation in _APART and is_single


def on_metrics(asked: Question, file: DataFile, *, ours: bool) -> bool:
    """As on manifests; we make use of an upper bound alone, where it gives up without a lower one.

    And we do not believe a count that there are no nulls, or nothing but NaN, inside structs: its own writers do not
    count values whose struct is null.
    """
    predicate = _predicate(asked)
    operation, column = predicate.operation, predicate.reference.field_id
    if _is_uuid(predicate) and operation in _ORDERED.keys() | {Operation.EQ, Operation.IN}:
        return True
    lower, upper = (file.lower_bounds or {}).get(column), (file.upper_bounds or {}).get(column)
    if ours:
        is_above_nan = operation in _ABOVE and bool((file.nan_value_counts or {}).get(column))
        of_null = operation in (Operation.IS_NULL, Operation.NOT_STARTS_WITH)
        is_inside = (of_null or _is_floating(predicate)) and len(predicate.reference.positions) > 1
        return _asks_for_zero(predicate) or is_above_nan or is_inside or _may_wrap(predicate, lower)
    if operation in _APART:
        return lower is not None and upper is not None
    if operation in _TWO_SIDED and lower is None and upper is not None:
        return True
    # It asks no counts about transformed columns.
    nulls = (file.null_value_counts or {}).get(column)
    return asks_transformed(asked) and nulls is not None


def on_strict_metrics(asked: Question, file: DataFile, *, ours: bool) -> bool:
    """We know more of transformed columns and prefixes, and do not take a missing count for none."""
    predicate = _predicate(asked)
    if ours:
        is_uuid = _is_uuid(predicate) and predicate.operation in _ORDERED
        return asks_transformed(asked) or predicate.operation in _PREFIXES or is_uuid
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


def _may_wrap(predicate: BoundPredicate, lower: bytes | None) -> bool:
    """Tell whether values may be so low that truncating makes the highest of them, for all that bounds say."""
    term = predicate.term
    if not isinstance(term, BoundTransform) or lowest_unwrapped(term.transform, term.reference.type) is None:
        return False
    return lower is None


def _predicate(asked: Question) -> BoundPredicate:
    assert asked.predicate is not None, "there is no difference about constants"
    return asked.predicate


def _signed(value: UUID) -> tuple[int, int]:
    high, low = struct.unpack(">qq", value.bytes)
    return high, low


def _is_uuid(predicate: BoundPredicate) -> bool:
    kind = predicate.term.type
    return isinstance(kind, PrimitiveType) and kind.kind == "uuid"


def _is_floating(predicate: BoundPredicate) -> bool:
    kind = predicate.term.type
    return isinstance(kind, PrimitiveType) and kind.kind in ("float", "double")


def _asks_for_zero(predicate: BoundPredicate) -> bool:
    return _is_floating(predicate) and 0.0 in predicate.values
