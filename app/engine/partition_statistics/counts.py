"""Counting partitions, over all partition specs of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.engine.model.data_types.transforms import find_transform
from app.engine.model.data_types.types import PrimitiveType
from app.engine.model.data_types.values import order_key
from app.engine.model.files.entry_filters import EntryFacts
from app.engine.model.files.manifests import EntryStatus, FileContent, PartitionKey, partition_key
from app.engine.model.files.partition_values import schema_with_sources
from app.engine.model.ids import SnapshotId, SpecId
from app.engine.model.partition_spec import FieldMeaning
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata


@dataclass(frozen=True, slots=True)
class UnifiedField:
    """A partition field of a table, whichever of its specs have it."""

    field_id: int
    name: str
    kind: PrimitiveType


def unified_fields(metadata: TableMetadata) -> list[UnifiedField]:
    """Return the partition fields of all specs of a table, by their ids.

    Names are those of the newest spec. Fields whose type is not known, as their column is gone, are left out.

    Spec: #partition-statistics-file

    Raises:
        ValueError: two specs mean different things by one id, so that their partitions have no type in common.
    """
    found: dict[int, tuple[str, PrimitiveType | None, bool]] = {}
    meant: dict[int, tuple[FieldMeaning, str]] = {}
    for spec in sorted(metadata.partition_specs, key=lambda spec: spec.spec_id, reverse=True):
        schema = schema_with_sources(metadata, spec)
        for field in spec.fields:
            transform, column = find_transform(field.transform), schema.columns.get(field.source_id)
            kind = transform.result_type(column.field.type) if transform and column else None
            known = kind if isinstance(kind, PrimitiveType) and kind.kind != "unknown" else None
            is_void = transform is not None and transform.name == "void"
            if not is_void:
                other, name = meant.setdefault(field.field_id, (field.meaning, field.name))
                if other != field.meaning:
                    raise ValueError(
                        f"the partition fields {field.name} and {name} of different specs have the same id "
                        f"{field.field_id}"
                    )
            before = found.get(field.field_id)
            if before is None:
                found[field.field_id] = field.name, known, is_void
            elif before[2] and not is_void and known is not None:
                # In v1 tables a field that was dropped stays as one without values, which has the type no more.
                found[field.field_id] = before[0], known, is_void
    return [UnifiedField(field_id, name, kind) for field_id, (name, kind, _) in sorted(found.items()) if kind]


@dataclass(slots=True)
class PartitionCount:
    """What is in one partition of one spec."""

    spec_id: SpecId
    partition: tuple[Any, ...]
    """In the order of the unified fields."""
    data_record_count: int = 0
    data_file_count: int = 0
    total_data_file_size_in_bytes: int = 0
    position_delete_record_count: int = 0
    position_delete_file_count: int = 0
    equality_delete_record_count: int = 0
    equality_delete_file_count: int = 0
    dv_count: int = 0
    last_updated_at: int | None = None
    """Epoch milliseconds."""
    last_updated_snapshot_id: SnapshotId | None = None

    def note(self, entry: EntryFacts, snapshot: Snapshot | None) -> None:
        """Count an entry, of a file that a snapshot added or deleted, if that is known."""
        if snapshot is not None and (
            self.last_updated_at is None or self.last_updated_at < snapshot.timestamp_ms
        ):
            self.last_updated_at = snapshot.timestamp_ms
            self.last_updated_snapshot_id = snapshot.snapshot_id
        if entry.status is EntryStatus.DELETED:
            return
        match entry.content:
            case FileContent.DATA:
                self.data_record_count += entry.record_count
                self.data_file_count += 1
                self.total_data_file_size_in_bytes += entry.size_bytes
            case FileContent.POSITION_DELETES:
                self.position_delete_record_count += entry.record_count
                if entry.file_format == "puffin":
                    self.dv_count += 1
                else:
                    self.position_delete_file_count += 1
            case FileContent.EQUALITY_DELETES:
                self.equality_delete_record_count += entry.record_count
                self.equality_delete_file_count += 1


class CountedPartitions:
    """The partitions of one snapshot, counted from its manifests.

    As in the reference, a partition that has nothing left is counted as long as a manifest says that its files were
    deleted.
    """

    def __init__(self, metadata: TableMetadata, fields: Sequence[UnifiedField]) -> None:
        self._snapshots: Mapping[SnapshotId, Snapshot] = metadata.snapshots_by_id
        self._places = {
            spec.spec_id: _places([field.field_id for field in spec.fields], fields)
            for spec in metadata.partition_specs
        }
        self._lengths = {spec.spec_id: len(spec.fields) for spec in metadata.partition_specs}
        self._counts: dict[PartitionKey, PartitionCount] = {}

    def note(self, spec_id: SpecId, entries: Iterable[EntryFacts]) -> None:
        """Count the entries of one manifest.

        Raises:
            ValueError: the table has no such spec, or partition values do not fit it.
        """
        snapshots, counts = self._snapshots, self._counts
        if spec_id not in self._places:
            raise ValueError(f"a manifest has partition spec {spec_id}, which the table has not")
        for entry in entries:
            key = partition_key(spec_id, entry.partition)
            count = counts.get(key)
            if count is None:
                due = self._lengths[spec_id]
                if len(entry.partition) != due:
                    raise ValueError(
                        f"{entry.path} has {len(entry.partition)} partition values, and partition spec {spec_id} "
                        f"has {due}"
                    )
                values = (*entry.partition, None)
                unified = tuple(values[place] for place in self._places[spec_id])
                count = counts[key] = PartitionCount(spec_id, unified)
            snapshot = None if entry.snapshot_id is None else snapshots.get(entry.snapshot_id)
            count.note(entry, snapshot)

    def in_order(self) -> list[PartitionCount]:
        """Return the counts in the order of their partitions, null first."""
        return sorted(
            self._counts.values(),
            key=lambda count: (
                tuple(() if value is None else (order_key(value),) for value in count.partition),
                count.spec_id,
            ),
        )


def _places(own: Sequence[int], fields: Sequence[UnifiedField]) -> tuple[int, ...]:
    """Return where a spec's partitions have the unified fields, or else a null at the end."""
    return tuple(own.index(field.field_id) if field.field_id in own else len(own) for field in fields)
