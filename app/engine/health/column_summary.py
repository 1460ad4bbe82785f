"""What manifests say of columns: counts, sizes and bounds, over all data files."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from app.engine.model.ids import FieldId
from app.engine.model.manifests import ManifestEntry
from app.engine.model.schema import Schema
from app.engine.model.types import PrimitiveType
from app.engine.model.values import from_bytes, is_nan, order_key

Counts = Mapping[int, int]
Bounds = Mapping[int, bytes]
_LIKE_BYTES: Final = frozenset({"string", "binary", "fixed", "uuid"})
"""Values of these types are ordered like their bytes."""
_FORMS: Final = {
    **dict.fromkeys(("int", "date"), "i"),
    **dict.fromkeys(("long", "time", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"), "q"),
}
"""How whole numbers lie in bounds, so that all of them are read at once."""


@dataclass(frozen=True, slots=True)
class LiveMetrics:
    """The metrics of a manifest's live files; None where a writer left them out."""

    rows: Sequence[int]
    column_sizes: Sequence[Counts | None]
    value_counts: Sequence[Counts | None]
    null_value_counts: Sequence[Counts | None]
    nan_value_counts: Sequence[Counts | None]
    lower_bounds: Sequence[Bounds | None]
    upper_bounds: Sequence[Bounds | None]

    @classmethod
    def of(cls, entries: Iterable[ManifestEntry]) -> LiveMetrics:
        """Return the metrics of a manifest's entries.

        Raises:
            InvalidMetadata: an entry makes no sense; names the file.
        """
        files = [entry.file for entry in entries if entry.is_live]
        return cls(
            [file.record_count for file in files],
            [file.column_sizes for file in files],
            [file.value_counts for file in files],
            [file.null_value_counts for file in files],
            [file.nan_value_counts for file in files],
            [file.lower_bounds for file in files],
            [file.upper_bounds for file in files],
        )


@dataclass(slots=True)
class KnownSum:
    """A sum, and in how many files its parts are known."""

    total: int = 0
    files: int = 0

    def add(self, other: KnownSum) -> None:
        """Add what is known of other files."""
        self.total += other.total
        self.files += other.files


_NOTHING: Final = KnownSum()


@dataclass(slots=True)
class Share:
    """A part of the values, of those files that know both numbers."""

    part: int = 0
    values: int = 0

    def add(self, values: int, part: int) -> None:
        """Add what files say that know both."""
        self.values += values
        self.part += part

    def add_files(
        self, field_id: int, values: Sequence[Counts | None], parts: Sequence[Counts | None]
    ) -> None:
        """Add what files say of one column, as far as each of them knows both."""
        for of_values, of_part in zip(values, parts, strict=True):
            count, part = (of_values or {}).get(field_id, -1), (of_part or {}).get(field_id, -1)
            if count >= 0 and part >= 0:
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
        """Add the metrics of the files of one manifest."""
        self.files += len(metrics.rows)
        self.rows += sum(metrics.rows)
        sizes, values = _sums(metrics.column_sizes), _sums(metrics.value_counts)
        nulls, nans = _sums(metrics.null_value_counts), _sums(metrics.nan_value_counts)
        files = len(metrics.rows)
        for field_id, column in self.columns.items():
            for tally, sums in (
                (column.sizes, sizes),
                (column.values, values),
                (column.nulls, nulls),
                (column.nans, nans),
            ):
                tally.add(sums.get(field_id, _NOTHING))
            of_values = values.get(field_id, _NOTHING)
            for share, sums, by_file in (
                (column.null_share, nulls, metrics.null_value_counts),
                (column.nan_share, nans, metrics.nan_value_counts),
            ):
                part = sums.get(field_id, _NOTHING)
                if of_values.files == part.files == files:
                    share.add(of_values.total, part.total)
                elif of_values.files and part.files:
                    share.add_files(field_id, metrics.value_counts, by_file)
        self._add_bounds(metrics.lower_bounds, metrics.upper_bounds)

    def _add_bounds(self, lower: Sequence[Bounds | None], upper: Sequence[Bounds | None]) -> None:
        lowest, highest = _by_field(lower), _by_field(upper)
        for field_id, column in self.columns.items():
            low, files = _extreme(column.kind, lowest.get(field_id), min)
            if files:
                known = column.lower is not None
                column.lower = min(low, column.lower, key=order_key) if known else low
                column.lower_files += files
            high, files = _extreme(column.kind, highest.get(field_id), max)
            if files:
                known = column.upper is not None
                column.upper = max(high, column.upper, key=order_key) if known else high
                column.upper_files += files


def _sums(by_file: Iterable[Counts | None]) -> dict[int, KnownSum]:
    """Return the sum of each column's counts, and how many files know it."""
    totals: dict[int, int] = {}
    files: dict[int, int] = {}
    for counts in by_file:
        for field_id, count in (counts or {}).items():
            # Java's writers note -1 where they do not know a count.
            if count >= 0:
                totals[field_id] = totals.get(field_id, 0) + count
                files[field_id] = files.get(field_id, 0) + 1
    return {field_id: KnownSum(total, files[field_id]) for field_id, total in totals.items()}


def _by_field(by_file: Iterable[Bounds | None]) -> dict[int, list[bytes]]:
    """Return all bounds of each column."""
    found: dict[int, list[bytes]] = {}
    for bounds in by_file:
        for field_id, bound in (bounds or {}).items():
            known = found.get(field_id)
            if known is None:
                known = found[field_id] = []
            known.append(bound)
    return found


def _extreme(kind: PrimitiveType, bounds: list[bytes] | None, choose: Callable[..., Any]) -> tuple[Any, int]:
    """Return the lowest or highest of some bounds, and how many of them make sense.

    NaN, which early writers stored as a bound, does not count.
    """
    if not bounds:
        return None, 0
    if kind.kind in _LIKE_BYTES:
        # Their order is that of their bytes, so that only the extreme one has to be read.
        with suppress(ValueError):
            return from_bytes(kind, choose(bounds)), len(bounds)
    form = _FORMS.get(kind.kind)
    if form is not None and set(map(len, bounds)) == {struct.calcsize(form)}:
        return choose(struct.unpack(f"<{len(bounds)}{form}", b"".join(bounds))), len(bounds)
    values = []
    for bound in bounds:
        with suppress(ValueError):
            value = from_bytes(kind, bound)
            if not is_nan(value):
                values.append(value)
    return (choose(values, key=order_key), len(values)) if values else (None, 0)
