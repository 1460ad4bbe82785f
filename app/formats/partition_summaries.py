"""What a manifest's partitions have in common, field by field, while the manifest is being written."""

from __future__ import annotations

from typing import Any

from app.engine.model.manifests import PartitionSummary
from app.engine.model.types import PrimitiveType
from app.engine.model.values import is_nan, order_key, to_bytes


class FieldSummary:
    """Takes in the values of one partition field. NaN is told apart and never a bound."""

    def __init__(self, kind: PrimitiveType) -> None:
        self._kind = kind
        self._contains_null = False
        self._contains_nan = False
        self._lower: Any = None
        self._upper: Any = None
        self._lower_key: Any = None
        self._upper_key: Any = None

    def add(self, value: Any) -> None:
        if value is None:
            self._contains_null = True
        elif is_nan(value):
            self._contains_nan = True
        else:
            key = order_key(value)
            if self._lower is None or key < self._lower_key:
                self._lower, self._lower_key = value, key
            if self._upper is None or key > self._upper_key:
                self._upper, self._upper_key = value, key

    def summary(self) -> PartitionSummary:
        return PartitionSummary(
            contains_null=self._contains_null,
            contains_nan=self._contains_nan,
            lower_bound=None if self._lower is None else to_bytes(self._kind, self._lower),
            upper_bound=None if self._upper is None else to_bytes(self._kind, self._upper),
        )
