"""The profile of a table's columns, from manifests only, with what is not known of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from app.engine.health.column_summary import ColumnSummaries, ColumnSummary, KnownSum, Share
from app.engine.model.data_types.json_values import to_json_value
from app.engine.model.data_types.types import PrimitiveType
from app.engine.model.data_types.values import UNORDERED_KINDS
from app.engine.model.ids import FieldId, SnapshotId
from app.engine.model.schema import Schema
from app.engine.model.settings.properties import COLUMN_METRICS_PREFIX
from app.engine.properties.metrics_modes import DEFAULT_MODE, FULL, METRICS_DEFAULT, metrics_mode

_CUT_KINDS: Final = frozenset({"string", "binary", "fixed"})


@dataclass(frozen=True, slots=True)
class KnownCount:
    """A sum over files, and how many of the files know their part; None if no file does."""

    total: int | None
    files: int


@dataclass(frozen=True, slots=True)
class ColumnProfile:
    """What manifests say of one column."""

    field_id: FieldId
    name: str
    kind: PrimitiveType
    values: KnownCount
    """Values, nulls and NaNs included."""
    nulls: KnownCount
    null_share: float | None
    """Nulls of the values, in files that know both."""
    nans: KnownCount
    nan_share: float | None
    column_bytes: KnownCount
    lower: Any
    """The lowest lower bound as JSON; None if no file has one."""
    lower_files: int
    upper: Any
    upper_files: int
    bounds_exact: bool
    """Whether the bounds are values of the column, and not cut: see `bounds_are_exact`."""


@dataclass(frozen=True, slots=True)
class TableProfile:
    """The columns of one snapshot; counts and bounds are of rows before deletes."""

    snapshot_id: SnapshotId | None
    data_files: int
    rows: int
    delete_files: int
    """If there are any, some of what is counted is deleted, and bounds may be wider than what is left."""
    columns: tuple[ColumnProfile, ...]


def column_profiles(
    schema: Schema, summaries: ColumnSummaries, properties: Mapping[str, str]
) -> tuple[ColumnProfile, ...]:
    """Return the profiles of a schema's primitive columns, in the schema's order."""
    return tuple(
        _profile(field_id, schema.columns[field_id].name, summary, properties)
        for field_id, summary in summaries.columns.items()
    )


def _profile(
    field_id: FieldId, name: str, summary: ColumnSummary, properties: Mapping[str, str]
) -> ColumnProfile:
    return ColumnProfile(
        field_id=field_id,
        name=name,
        kind=summary.kind,
        values=_known(summary.values),
        nulls=_known(summary.nulls),
        null_share=_share(summary.null_share),
        nans=_known(summary.nans),
        nan_share=_share(summary.nan_share),
        column_bytes=_known(summary.sizes),
        lower=_shown(summary.kind, summary.lower),
        lower_files=summary.lower_files,
        upper=_shown(summary.kind, summary.upper),
        upper_files=summary.upper_files,
        bounds_exact=bounds_are_exact(name, summary.kind, (summary.lower, summary.upper), properties),
    )


def bounds_are_exact(
    name: str, kind: PrimitiveType, bounds: tuple[Any, Any], properties: Mapping[str, str]
) -> bool:
    """Return whether bounds are values of the column, under the metrics mode in force now.

    Bounds of texts and bytes are cut to the length N of the mode `truncate(N)`; one that is shorter was not cut. Files
    that were written under a mode with a smaller N do not say so.
    """
    if kind.kind in UNORDERED_KINDS:
        return False
    if kind.kind not in _CUT_KINDS:
        return True
    of_table = metrics_mode(properties.get(METRICS_DEFAULT))
    mode = metrics_mode(properties.get(COLUMN_METRICS_PREFIX + name), of_table)
    # Files of a column without bounds were written under another mode.
    length = mode if mode >= FULL else DEFAULT_MODE
    return length == FULL or all(bound is None or len(bound) < length for bound in bounds)


def _known(tally: KnownSum) -> KnownCount:
    return KnownCount(tally.total if tally.files else None, tally.files)


def _share(found: Share) -> float | None:
    return found.part / found.values if found.values else None


def _shown(kind: PrimitiveType, value: Any) -> Any:
    if kind.kind in UNORDERED_KINDS:
        return None
    try:
        return to_json_value(kind, value)
    except ValueError:
        return None
