"""Facts about a snapshot's manifests, and how well they are clustered."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, Final

from app.engine.appends.merging import MergeRules
from app.engine.health.facts import ManifestFacts
from app.engine.model.data_types.types import PrimitiveType, Type
from app.engine.model.data_types.values import from_bytes, is_nan, order_key
from app.engine.model.files.manifests import ManifestContent, ManifestFile, PartitionSummary
from app.engine.model.files.partition_values import partition_field_types
from app.engine.model.ids import SpecId
from app.engine.model.table_metadata import TableMetadata

_SMALL_SHARE: Final = 2
"""Manifests with less than one part in so many of the target are small."""

_Range = tuple[Any, Any]


def manifest_facts(metadata: TableMetadata, manifests: Sequence[ManifestFile]) -> ManifestFacts:
    """Return the facts about the manifests of one snapshot."""
    data = [manifest for manifest in manifests if manifest.content is ManifestContent.DATA]
    total_bytes = sum(manifest.manifest_length for manifest in manifests)
    target = MergeRules.of(metadata.properties).target_bytes
    # Scans pass over manifests whose files are all deleted.
    by_field = overlaps(metadata, [manifest for manifest in data if manifest.may_have_live_files])
    return ManifestFacts(
        data_manifests=len(data),
        delete_manifests=len(manifests) - len(data),
        total_bytes=total_bytes,
        average_bytes=total_bytes / len(manifests) if manifests else 0.0,
        target_bytes=target,
        small_manifests=sum(manifest.manifest_length * _SMALL_SHARE < target for manifest in manifests),
        old_spec_manifests=sum(
            manifest.partition_spec_id != metadata.default_spec_id for manifest in manifests
        ),
        average_overlap=min(by_field.values(), default=None),
        overlap_by_field=by_field,
    )


def overlaps(metadata: TableMetadata, manifests: Sequence[ManifestFile]) -> Mapping[str, float]:
    """Return how many manifests overlap a manifest on average, for each partition field.

    The range of a manifest in a field goes from the lower to the upper bound in its summary. For each manifest those
    are counted whose range has a value in common with its own, itself included; the average of that is 1 if every
    manifest has values of its own, and the number of manifests if each covers them all. Fields in which a manifest
    has no bounds (all its values are null) are compared by the others.
    """
    spec_id = metadata.default_spec_id
    names = [field.name for field in metadata.default_spec.fields]
    kinds = partition_field_types(metadata, metadata.default_spec)
    found: dict[str, float] = {}
    for position, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        ranges = _ranges(manifests, spec_id, position, kind)
        if ranges:
            found[name] = average_overlap(ranges)
    return found


def average_overlap(ranges: Sequence[_Range]) -> float:
    """Return how many ranges overlap a range on average, itself included.

    Args:
        ranges: lowest and highest value of each, both included; at least one.
    """
    lows, highs = sorted(low for low, _ in ranges), sorted(high for _, high in ranges)
    # Those that do not begin after its end, less those that end before its beginning.
    return sum(bisect_right(lows, high) - bisect_left(highs, low) for low, high in ranges) / len(ranges)


def _ranges(
    manifests: Sequence[ManifestFile], spec_id: SpecId, position: int, kind: Type | None
) -> list[_Range]:
    if not isinstance(kind, PrimitiveType):
        return []
    found: list[_Range] = []
    for manifest in manifests:
        summaries = manifest.partitions or ()
        if manifest.partition_spec_id != spec_id or position >= len(summaries):
            continue
        values = _range(summaries[position], kind)
        if values is not None:
            found.append(values)
    return found


def _range(summary: PartitionSummary, kind: PrimitiveType) -> _Range | None:
    if summary.lower_bound is None or summary.upper_bound is None:
        return None
    try:
        low, high = from_bytes(kind, summary.lower_bound), from_bytes(kind, summary.upper_bound)
    except ValueError:
        return None
    return None if is_nan(low) or is_nan(high) else (order_key(low), order_key(high))
