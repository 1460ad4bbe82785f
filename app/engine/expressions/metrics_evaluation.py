"""Filters on the metrics of a data file: whether a row may match, and whether all rows do.

A filter is compiled once, and then tests many files: `metrics_test` and `strict_metrics_test` return functions.
Some engines place NaN above all numbers. If a writer did not count NaN, and there is an upper bound, the file is
taken to have no NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from app.engine.expressions.bounds import range_all_match, range_may_match
from app.engine.expressions.comparisons import MATCHED_BY_NAN_ON_TOP, MATCHED_BY_NULL
from app.engine.expressions.evaluation import compiled
from app.engine.expressions.expressions import BoundExpression, BoundPredicate, Operation, rewrite_not
from app.engine.model.data_types.types import PrimitiveType
from app.engine.model.data_types.values import FLOATING_KINDS
from app.engine.model.files.manifests import DataFile

FileTest = Callable[[DataFile], bool]


def metrics_test(bound: BoundExpression) -> FileTest:
    """Return a test of whether a file may have a matching row; it may if metrics are unknown."""
    test = compiled(rewrite_not(bound), _may_match)
    # Early Avro writers recorded -1 rows.
    return lambda file: file.record_count != 0 and test(file)


def strict_metrics_test(bound: BoundExpression) -> FileTest:
    """Return a test of whether every row of a file certainly matches."""
    test = compiled(rewrite_not(bound), _all_match)
    return lambda file: file.record_count == 0 or test(file)


def _may_match(predicate: BoundPredicate) -> FileTest:
    operation, counts = predicate.operation, _counts(predicate)
    match operation:
        case Operation.IS_NULL:
            return lambda file: not counts.no_null(file)
        case Operation.NOT_NULL:
            return lambda file: not counts.only_null(file)
        case Operation.IS_NAN:
            return lambda file: not counts.no_nan(file) and not counts.only_null(file)
        case Operation.NOT_NAN:
            return lambda file: not counts.only_nan(file)
    range_test, field_id = range_may_match(predicate), predicate.reference.field_id
    if operation in MATCHED_BY_NULL:
        if range_test is None:
            return _yes
        return lambda file: (
            range_test(*_bounds(file, field_id)) or not counts.no_null(file) or not counts.no_nan(file)
        )
    if range_test is None:
        return lambda file: not counts.only_null(file)
    if operation in MATCHED_BY_NAN_ON_TOP:
        return lambda file: (
            (range_test(*_bounds(file, field_id)) and not counts.only_null(file)) or counts.some_nan(file)
        )
    return lambda file: (
        range_test(*_bounds(file, field_id)) and not counts.only_null(file) and not counts.only_nan(file)
    )


def _all_match(predicate: BoundPredicate) -> FileTest:
    operation, counts = predicate.operation, _counts(predicate)
    if len(predicate.reference.positions) > 1:
        # If a struct is null, not every writer counts the values inside it as null.
        return _no
    match operation:
        case Operation.IS_NULL:
            return counts.only_null
        case Operation.NOT_NULL:
            return counts.no_null
        case Operation.IS_NAN:
            return counts.only_nan
        case Operation.NOT_NAN:
            return lambda file: counts.no_nan(file) or counts.only_null(file)
    range_test, field_id = range_all_match(predicate), predicate.reference.field_id
    if operation in MATCHED_BY_NULL:
        return lambda file: (
            counts.only_null(file)
            or counts.only_nan(file)
            or (range_test is not None and range_test(*_bounds(file, field_id)))
        )
    if range_test is None:
        return _no
    return lambda file: range_test(*_bounds(file, field_id)) and counts.no_null(file) and counts.no_nan(file)


def _yes(_: DataFile) -> bool:
    return True


def _no(_: DataFile) -> bool:
    return False


def _bounds(file: DataFile, field_id: int) -> tuple[bytes | None, bytes | None]:
    lower, upper = file.lower_bounds, file.upper_bounds
    return (
        None if lower is None else lower.get(field_id),
        None if upper is None else upper.get(field_id),
    )


@dataclass(frozen=True, slots=True)
class _Counts:
    """What a file's counts certainly say about one column."""

    only_null: FileTest
    no_null: FileTest
    only_nan: FileTest
    some_nan: FileTest
    no_nan: FileTest


def _counts(predicate: BoundPredicate) -> _Counts:
    reference = predicate.reference
    field_id = reference.field_id

    def only_null(file: DataFile) -> bool:
        return _is_all(file.null_value_counts, file.value_counts, field_id)

    def no_null(file: DataFile) -> bool:
        nulls = file.null_value_counts
        return nulls is not None and nulls.get(field_id) == 0

    def only_nan(file: DataFile) -> bool:
        return _is_all(file.nan_value_counts, file.value_counts, field_id)

    def some_nan(file: DataFile) -> bool:
        nans = file.nan_value_counts
        return nans is not None and nans.get(field_id, 0) != 0

    def no_nan(file: DataFile) -> bool:
        nans = file.nan_value_counts
        return nans is not None and nans.get(field_id) == 0

    is_floating = isinstance(reference.type, PrimitiveType) and reference.type.kind in FLOATING_KINDS
    if len(reference.positions) > 1 and reference.is_nullable:
        # If a struct is null, Iceberg's own writers do not count the values inside it at all. So counts can show
        # neither that there is no null, nor that there is only NaN.
        return _Counts(only_null, _no, _no, some_nan, no_nan if is_floating else _yes)
    if is_floating:
        return _Counts(only_null, no_null, only_nan, some_nan, no_nan)
    return _Counts(only_null, no_null, _no, _no, _yes)


def _is_all(counts: Mapping[int, int] | None, of_values: Mapping[int, int] | None, field_id: int) -> bool:
    if counts is None or of_values is None:
        return False
    count = counts.get(field_id)
    return count is not None and count == of_values.get(field_id)
