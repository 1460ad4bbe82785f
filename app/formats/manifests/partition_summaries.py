"""Summaries of a manifest's partitions, one for each partition field."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from app.engine.model.data_types.types import PrimitiveType
from app.engine.model.data_types.values import FLOATING_KINDS, is_nan, order_key, to_bytes
from app.engine.model.files.manifests import PartitionSummary


def summarize(
    kinds: Iterable[PrimitiveType], partitions: Iterable[tuple[Any, ...]]
) -> tuple[PartitionSummary, ...]:
    """Return a summary for each partition field; NaN is counted apart and is never a bound.

    Raises:
        ValueError: a value does not have its field's type.

    Spec: #manifest-lists
    """
    rows = list(partitions)
    return tuple(_summary(kind, (row[at] for row in rows)) for at, kind in enumerate(kinds))


def _summary(kind: PrimitiveType, values: Iterable[Any]) -> PartitionSummary:
    # 0.0 and -0.0 are one value to a set, but two in the order of bounds.
    distinct = list(values) if kind.kind in FLOATING_KINDS else set(values)
    present = [value for value in distinct if value is not None and not is_nan(value)]
    return PartitionSummary(
        contains_null=None in distinct,
        contains_nan=any(is_nan(value) for value in distinct),
        lower_bound=to_bytes(kind, min(present, key=order_key)) if present else None,
        upper_bound=to_bytes(kind, max(present, key=order_key)) if present else None,
    )
