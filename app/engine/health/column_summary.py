"""What manifests say of columns: counts, sizes and bounds, over all data files."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from app.engine.model.data_types.types import PrimitiveType
from app.engine.model.data_types.values import from_bytes, is_nan, order_key
from app.engine.model.ids import FieldId
from app.engine.model.schema import Schema

CountColumns = Mapping[int, Sequence[int | None]]
"""Counts by field id: one for each file, None where its writer left it out."""
BoundColumns = Mapping[int, Sequence[bytes]]
"""Bounds by field id, of those files that have one."""
_LIKE_BYTES: Final = frozenset({"string", "binary", "fixed", "uuid"})
"""Values of these types are ordered like their bytes."""
_FORMS: Final = {
    "float": "f",
    "double": "d",
    **dict.fromkeys(("int", "date"), "i"),
    **dict.fromkeys(("long", "time", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"), "q"),
}
"""How numbers lie in bounds, so that all of them are read at once."""
_FLOATING: Final = frozenset({"float", "double"})
_UNSCALED: Final = partial(int.from_bytes, byteorder="big", signed=True)


@dataclass(frozen=True, slots=True)
class LiveMetrics:
    """The metrics of live files, by field id."""

    rows: Sequence[int]
    column_sizes: Mapping[int, KnownSum]
    value_counts: CountColumns
    null_value_counts: CountColumns
    nan_value_counts: CountColumns
    lower_bounds: BoundColumns
    upper_bounds: BoundColumns


@dataclass(slots=True)
class KnownSum:
    """A sum, and in how many files its parts are known."""

    total: int = 0
    files: int = 0

    def add(self, other: KnownSum) -> None:
        """Add what is known of other files."""
        self.total += other.total
        self.files += other.files


@dataclass(slots=True)
class Share:
    """A part of the values, of those files that know both numbers."""

    part: int = 0
    values: int = 0

    def add(self, values: int, part: int) -> None:
        """Add what files say that know both."""
        self.values += values
        self.part += part

    def add_files(self, values: Sequence[int | None], parts: Sequence[int | None]) -> None:
        """Add what files say of one column, as far as each of them knows both."""
        for count, part in zip(values, parts, strict=True):
            if count is not None and part is not None and count >= 0 and part >= 0:
                self.add(count, part)


@dataclass(slots=True)
class ColumnSummary:
    """What is known of one column."""

    kind: PrimitiveType
    sizes: KnownSum = field(default_factory=KnownSum)
    values: KnownSum = field(default_factory=KnownSum)
    nulls: KnownSum = field(default_factory=KnownSum)
    nans: KnownSum = field(default_factory=KnownSum)
    null_share: Share = field(default_factory=Share)
    nan_share: Share = field(default_factory=Share)
    lower: Any = None
    lower_files: int = 0
    upper: Any = None
    upper_files: int = 0


class ColumnSummaries:
    """What is known of the primitive columns of a schema, added up file by file."""

    def __init__(self, schema: Schema) -> None:
        self.files = 0
        self.rows = 0
        self.columns: dict[FieldId, ColumnSummary] = {
            field_id: ColumnSummary(column.field.type)
            for field_id, column in schema.columns.items()
            if isinstance(column.field.type, PrimitiveType)
        }

    def add(self, metrics: LiveMetrics) -> None:
        """Add the metrics of some files."""
        files = len(metrics.rows)
        self.files += files
        self.rows += sum(metrics.rows)
        for field_id, column in self.columns.items():
            column.sizes.add(metrics.column_sizes.get(field_id, KnownSum()))
            values = metrics.value_counts.get(field_id, ())
            of_values = _sum(values)
            column.values.add(of_values)
            for tally, share, parts in (
                (column.nulls, column.null_share, metrics.null_value_counts.get(field_id, ())),
                (column.nans, column.nan_share, metrics.nan_value_counts.get(field_id, ())),
            ):
                of_parts = _sum(parts)
                tally.add(of_parts)
                if of_values.files == of_parts.files == files:
                    share.add(of_values.total, of_parts.total)
                elif of_values.files and of_parts.files:
                    share.add_files(values, parts)
            self._add_bounds(field_id, column, metrics)

    def _add_bounds(self, field_id: FieldId, column: ColumnSummary, metrics: LiveMetrics) -> None:
        low, files = _extreme(column.kind, metrics.lower_bounds.get(field_id), min)
        if files:
            known = column.lower is not None
            column.lower = min(low, column.lower, key=order_key) if known else low
            column.lower_files += files
        high, files = _extreme(column.kind, metrics.upper_bounds.get(field_id), max)
        if files:
            known = column.upper is not None
            column.upper = max(high, column.upper, key=order_key) if known else high
            column.upper_files += files


def _sum(counts: Sequence[int | None]) -> KnownSum:
    """Return the sum of a column's counts, and how many files know it."""
    # Java's writers note -1 where they do not know a count.
    known = [count for count in counts if count is not None and count >= 0]
    return KnownSum(sum(known), len(known))


def _extreme(
    kind: PrimitiveType, bounds: Sequence[bytes] | None, choose: Callable[..., Any]
) -> tuple[Any, int]:
    """Return the lowest or highest of some bounds, and how many of them make sense.

    NaN, which early writers stored as a bound, does not count.
    """
    if not bounds:
        return None, 0
    if kind.kind in _LIKE_BYTES:
        # Their order is that of their bytes, so that only the extreme one has to be read.
        with suppress(ValueError):
            return from_bytes(kind, choose(bounds)), len(bounds)
    if kind.kind == "decimal" and all(bounds):
        with suppress(ValueError):
            return from_bytes(kind, choose(bounds, key=_UNSCALED)), len(bounds)
    form = _FORMS.get(kind.kind)
    if form is not None and set(map(len, bounds)) == {struct.calcsize(form)}:
        values = struct.unpack(f"<{len(bounds)}{form}", b"".join(bounds))
        if kind.kind in _FLOATING:
            values = tuple(value for value in values if not is_nan(value))
        return (
            (choose(values, key=order_key if 0.0 in values else None), len(values)) if values else (None, 0)
        )
    found, sound = [], 0
    # Many files share a bound: a day, a flag, a price.
    for bound, files in Counter(bounds).items():
        with suppress(ValueError):
            value = from_bytes(kind, bound)
            if not is_nan(value):
                found.append(value)
                sound += files
    return (choose(found, key=order_key), sound) if found else (None, 0)
