"""Metrics of files as columns, made file by file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from app.engine.health.column_summary import KnownSum, LiveMetrics
from app.engine.model.files.manifests import ManifestEntry

_METRICS = (
    "column_sizes",
    "value_counts",
    "null_value_counts",
    "nan_value_counts",
    "lower_bounds",
    "upper_bounds",
)
Maps = Sequence[Mapping[int, Any] | None]


def metrics_of(entries: Iterable[ManifestEntry]) -> LiveMetrics:
    """Return the metrics of live entries."""
    files = [entry.file for entry in entries if entry.is_live]
    return metrics_of_maps(
        [file.record_count for file in files],
        *([getattr(file, name) for file in files] for name in _METRICS),
    )


def metrics_of_maps(
    rows: Sequence[int], sizes: Maps, values: Maps, nulls: Maps, nans: Maps, lower: Maps, upper: Maps
) -> LiveMetrics:
    """Return the metrics of files, from a mapping of each of them and each kind."""
    summed = {}
    for field_id, counts in _counts(sizes).items():
        known = [count for count in counts if count is not None and count >= 0]
        if known:
            summed[field_id] = KnownSum(sum(known), len(known))
    return LiveMetrics(
        rows, summed, _counts(values), _counts(nulls), _counts(nans), _bounds(lower), _bounds(upper)
    )


def _ids(maps: Maps) -> list[int]:
    return sorted({field_id for found in maps for field_id in found or {}})


def _counts(maps: Maps) -> dict[int, list[int | None]]:
    return {field_id: [(found or {}).get(field_id) for found in maps] for field_id in _ids(maps)}


def _bounds(maps: Maps) -> dict[int, list[bytes]]:
    return {
        field_id: [found[field_id] for found in maps if found and field_id in found]
        for field_id in _ids(maps)
    }
