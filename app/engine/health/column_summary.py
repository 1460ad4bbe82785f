"""What manifests say of columns: counts, sizes and bounds, merged over the data files of a snapshot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.engine.model.ids import FieldId
from app.engine.model.manifests import ManifestEntry
from app.engine.model.schema import Schema
from app.engine.model.types import PrimitiveType
from app.engine.model.values import from_bytes, is_nan, order_key

Counts = Mapping[int, int]
Bounds = Mapping[int, bytes]


@dataclass(frozen=True, slots=True)
class LiveMetrics:
    """The metrics of the live files of one manifest, file by file; None where a writer left them out."""

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
class Tally:
    """A sum, and in how many files its parts are known."""

    total: int = 0
    files: int = 0


@dataclass(slots=True)
class Share:
    """A part of the values, of those files that know both numbers."""

    part: int = 0
    values: int = 0

    def add(self, values: int, part: int | None) -> None:
        """Add what one file says; None or -1 if it does not know its part."""
        if part is not None and part >= 0:
            self.part += part
            self.values += values


@dataclass(slots=True)
class ColumnSummary:
    """What is known of one column."""

    kind: PrimitiveType
    sizes: Tally = field(default_factory=Tally)
    values: Tally = field(default_factory=Tally)
    nulls: Tally = field(default_factory=Tally)
    nans: Tally = field(default_factory=Tally)
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
        self._add_counts(metrics.column_sizes, lambda column: column.sizes)
        self._add_counts(metrics.value_counts, lambda column: column.values)
        self._add_counts(metrics.null_value_counts, lambda column: column.nulls)
        self._add_counts(metrics.nan_value_counts, lambda column: column.nans)
        for values, nulls, nans in zip(
            metrics.value_counts, metrics.null_value_counts, metrics.nan_value_counts, strict=True
        ):
            self._add_shares(values or {}, nulls or {}, nans or {})
        self._add_bounds(metrics.lower_bounds, metrics.upper_bounds)

    def _add_counts(
        self, by_file: Iterable[Counts | None], tally_of: Callable[[ColumnSummary], Tally]
    ) -> None:
        tallies: dict[int, Tally] = {field_id: tally_of(column) for field_id, column in self.columns.items()}
        for counts in by_file:
            for field_id, count in (counts or {}).items():
                # Java's writers note -1 where they do not know a count.
                if field_id in tallies and count >= 0:
                    tally = tallies[field_id]
                    tally.total += count
                    tally.files += 1

    def _add_shares(self, values: Counts, nulls: Counts, nans: Counts) -> None:
        for field_id, count in values.items():
            column = self.columns.get(FieldId(field_id))
            if column is not None and count >= 0:
                column.null_share.add(count, nulls.get(field_id))
                column.nan_share.add(count, nans.get(field_id))

    def _add_bounds(self, lower: Sequence[Bounds | None], upper: Sequence[Bounds | None]) -> None:
        lowest, highest = _by_field(lower), _by_field(upper)
        for field_id, column in self.columns.items():
            low, files = _decoded(column.kind, lowest.get(field_id))
            if low:
                candidates = low if column.lower is None else [*low, column.lower]
                column.lower = min(candidates, key=order_key)
                column.lower_files += files
            high, files = _decoded(column.kind, highest.get(field_id))
            if high:
                candidates = high if column.upper is None else [*high, column.upper]
                column.upper = max(candidates, key=order_key)
                column.upper_files += files


def _by_field(by_file: Iterable[Bounds | None]) -> dict[int, Counter[bytes]]:
    """Return how many files have each bound, column by column."""
    found: dict[int, Counter[bytes]] = {}
    for bounds in by_file:
        for field_id, bound in (bounds or {}).items():
            counts = found.get(field_id)
            if counts is None:
                counts = found[field_id] = Counter()
            counts[bound] += 1
    return found


def _decoded(kind: PrimitiveType, bounds: Counter[bytes] | None) -> tuple[list[Any], int]:
    """Return the values of bounds, and how many files have one.

    A bound that makes no sense says nothing, and so does NaN, which early writers stored.
    """
    values, files = [], 0
    for bound, number in (bounds or {}).items():
        try:
            value = from_bytes(kind, bytes(bound))
        except ValueError:
            continue
        if not is_nan(value):
            values.append(value)
            files += number
    return values, files
