"""The difference of two versions of a table's metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from app.engine.diff.schema_changes import SchemaChange, schema_changes
from app.engine.model.ids import SchemaId, SnapshotId
from app.engine.model.partition_spec import PartitionSpec
from app.engine.model.refs import SnapshotRef
from app.engine.model.schema import Schema
from app.engine.model.sort_order import SortOrder
from app.engine.model.table_metadata import TableMetadata

Value = TypeVar("Value")
Pair = tuple[Value | None, Value | None]
"""Before and after; None where there was nothing."""


@dataclass(frozen=True, slots=True)
class MetadataDiff:
    """The differences; what is equal is None or empty."""

    format_version: Pair[int] | None
    location: Pair[str] | None
    schema: tuple[SchemaChange, ...]
    spec: Pair[PartitionSpec] | None
    order: Pair[SortOrder] | None
    properties: Mapping[str, Pair[str]]
    refs: Mapping[str, Pair[SnapshotRef]]
    snapshots_added: tuple[SnapshotId, ...]
    snapshots_removed: tuple[SnapshotId, ...]


def metadata_diff(before: TableMetadata, after: TableMetadata) -> MetadataDiff:
    """Return the difference of two versions of a table's metadata."""
    return MetadataDiff(
        format_version=_pair(before.format_version, after.format_version),
        location=_pair(str(before.location), str(after.location)),
        schema=schema_changes(before.current_schema, after.current_schema),
        spec=_pair(before.default_spec, after.default_spec),
        order=_pair(before.default_sort_order, after.default_sort_order),
        properties=_changed(before.properties, after.properties),
        refs=_changed(before.snapshot_refs, after.snapshot_refs),
        snapshots_added=_only_in(after, before),
        snapshots_removed=_only_in(before, after),
    )


def creation_diff(after: TableMetadata) -> MetadataDiff:
    """Return the difference of a new table and no table."""
    return MetadataDiff(
        format_version=(None, after.format_version),
        location=(None, str(after.location)),
        schema=schema_changes(Schema(type="struct", schema_id=SchemaId(0), fields=()), after.current_schema),
        spec=(None, after.default_spec),
        order=(None, after.default_sort_order),
        properties=_changed({}, after.properties),
        refs=_changed({}, after.snapshot_refs),
        snapshots_added=tuple(after.snapshots_by_id),
        snapshots_removed=(),
    )


def _only_in(one: TableMetadata, other: TableMetadata) -> tuple[SnapshotId, ...]:
    """Return the snapshots that only one of two versions has, in its order."""
    return tuple(
        snapshot_id for snapshot_id in one.snapshots_by_id if snapshot_id not in other.snapshots_by_id
    )


def _pair(before: Value, after: Value) -> Pair[Value] | None:
    return None if before == after else (before, after)


def _changed(before: Mapping[str, Value], after: Mapping[str, Value]) -> dict[str, Pair[Value]]:
    return {
        key: (before.get(key), after.get(key))
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    }
