"""Filters on the partition summaries of a manifest: whether one of its files may match."""

from __future__ import annotations

from collections.abc import Callable

from app.engine.expressions.bounds import range_may_match
from app.engine.expressions.comparisons import MATCHED_BY_NAN_ON_TOP, MATCHED_BY_NULL
from app.engine.expressions.evaluation import compiled
from app.engine.expressions.expressions import BoundExpression, BoundPredicate, Operation, rewrite_not
from app.engine.model.data_types.types import PrimitiveType
from app.engine.model.files.manifests import ManifestFile, PartitionSummary

ManifestTest = Callable[[ManifestFile], bool]
_SummaryTest = Callable[[PartitionSummary], bool]


def summaries_test(projected: BoundExpression) -> ManifestTest:
    """Return a test of whether a manifest may have a matching file; it may without summaries."""
    return compiled(rewrite_not(projected), _may_match)


def _may_match(predicate: BoundPredicate) -> ManifestTest:
    test, (position,) = _summary_test(predicate), predicate.reference.positions

    def match(manifest: ManifestFile) -> bool:
        summaries = manifest.partitions
        return summaries is None or position >= len(summaries) or test(summaries[position])

    return match


def _summary_test(predicate: BoundPredicate) -> _SummaryTest:
    operation, kind = predicate.operation, predicate.reference.type
    is_floating = isinstance(kind, PrimitiveType) and kind.kind in ("float", "double")
    match operation:
        case Operation.IS_NULL:
            return lambda summary: summary.contains_null
        case Operation.NOT_NULL:
            return lambda summary: not _only_null(summary, is_floating=is_floating)
        case Operation.IS_NAN:
            return lambda summary: summary.contains_nan is not False
        case Operation.NOT_NAN:
            return lambda summary: not _only_nan(summary)
    range_test = range_may_match(predicate)
    if operation in MATCHED_BY_NULL:
        return lambda summary: (
            range_test is None
            or summary.contains_null
            or (is_floating and summary.contains_nan is not False)
            or range_test(summary.lower_bound, summary.upper_bound)
        )

    def may_compare(summary: PartitionSummary) -> bool:
        is_in_range = range_test is None or range_test(summary.lower_bound, summary.upper_bound)
        return is_in_range and not _holds_nothing(summary)

    if is_floating and operation in MATCHED_BY_NAN_ON_TOP:
        return lambda summary: _may_hold_nan(summary) or may_compare(summary)
    return may_compare


def _has_bounds(summary: PartitionSummary) -> bool:
    return summary.lower_bound is not None or summary.upper_bound is not None


def _only_null(summary: PartitionSummary, *, is_floating: bool) -> bool:
    if not summary.contains_null or _has_bounds(summary):
        return False
    # Bounds leave out NaN, so without bounds there may be NaN and not only null.
    return not is_floating or summary.contains_nan is False


def _only_nan(summary: PartitionSummary) -> bool:
    return summary.contains_nan is True and not summary.contains_null and not _has_bounds(summary)


def _may_hold_nan(summary: PartitionSummary) -> bool:
    """Return whether a partition may be NaN; if unknown, bounds are taken to exclude it."""
    return summary.contains_nan is True or (summary.contains_nan is None and not _has_bounds(summary))


def _holds_nothing(summary: PartitionSummary) -> bool:
    """Return whether no partition can be compared: there are no bounds, but null or NaN."""
    return not _has_bounds(summary) and (summary.contains_null or summary.contains_nan is True)
