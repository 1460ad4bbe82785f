"""Metadata while updates are applied: a mutable copy of the base, then new metadata."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeVar

from app.engine.change.logs import next_metadata_log, repaired_snapshot_log
from app.engine.change.numbering import NumberedItems, numbered_orders, numbered_schemas, numbered_specs
from app.engine.change.partition_fields import PartitionFields
from app.engine.change.spec_names import SpecNames
from app.engine.model.format_versions import DEFAULT_FORMAT_VERSION, FORMAT_VERSIONS, FormatVersion
from app.engine.model.ids import Location, SchemaId, SnapshotId, SortOrderId, SpecId, TableUuid
from app.engine.model.partition_spec import (
    UNPARTITIONED_LAST_ID,
    PartitionSpec,
    check_names,
    check_promoted,
    check_readable,
    check_spec,
)
from app.engine.model.refs import SnapshotRef
from app.engine.model.schema import Schema, check_initial_defaults
from app.engine.model.settings.properties import ENCRYPTION_KEY_ID
from app.engine.model.snapshot import MetadataLogEntry, Snapshot, SnapshotLogEntry
from app.engine.model.sort_order import SortOrder, check_order
from app.engine.model.statistics import EncryptedKey, PartitionStatisticsFile, StatisticsFile
from app.engine.model.table_metadata import TableMetadata, check_invariants
from app.errors import DanglingRef, InvalidMetadata, InvalidUpdate

File = TypeVar("File", StatisticsFile, PartitionStatisticsFile)


@dataclass(slots=True)
class MetadataDraft:
    """A table that updates are applied to. Edits change it, and set `has_changes` if they did.

    `now_ms` is the time of the commit.
    """

    base: TableMetadata | None
    now_ms: int
    format_version: int = DEFAULT_FORMAT_VERSION
    table_uuid: TableUuid | None = None
    location: Location | None = None
    last_sequence: int = 0
    last_column_id: int = 0
    current_schema_id: SchemaId | None = None
    schemas: NumberedItems[Schema] = field(default_factory=numbered_schemas)
    default_spec_id: SpecId | None = None
    specs: NumberedItems[PartitionSpec] = field(default_factory=numbered_specs)
    last_partition_id: int = UNPARTITIONED_LAST_ID
    default_sort_order_id: SortOrderId | None = None
    sort_orders: NumberedItems[SortOrder] = field(default_factory=numbered_orders)
    properties: dict[str, str] = field(default_factory=dict)
    current_snapshot_id: SnapshotId | None = None
    snapshots: dict[SnapshotId, Snapshot] = field(default_factory=dict)
    refs: dict[str, SnapshotRef] = field(default_factory=dict)
    snapshot_log: list[SnapshotLogEntry] = field(default_factory=list)
    statistics: dict[SnapshotId, list[StatisticsFile]] = field(default_factory=dict)
    partition_statistics: dict[SnapshotId, list[PartitionStatisticsFile]] = field(default_factory=dict)
    encryption_keys: dict[str, EncryptedKey] = field(default_factory=dict)
    next_row_id: int = 0
    unknown_fields: dict[str, Any] = field(default_factory=dict)

    has_changes: bool = False
    last_added_schema_id: SchemaId | None = None
    last_added_spec_id: SpecId | None = None
    last_added_order_id: SortOrderId | None = None
    added_snapshot_ids: set[SnapshotId] = field(default_factory=set)
    became_current_ids: set[SnapshotId] = field(default_factory=set)
    has_removed_snapshots: bool = False
    spec_names: SpecNames | None = None
    """The names in its specs; made when a schema is set as current."""
    partition_fields: PartitionFields | None = None
    """The fields of its specs; made when a spec is added."""

    @property
    def format(self) -> FormatVersion:
        """What the draft's format version has and requires."""
        return FORMAT_VERSIONS[self.format_version]

    @property
    def current_schema(self) -> Schema:
        """The schema that is current at this point of the updates.

        Raises:
            InvalidUpdate: the draft has none yet.
        """
        schema = self.schemas.find(self.current_schema_id)
        if schema is not None:
            return schema
        raise InvalidUpdate("The table has no current schema yet: add one and set it as current first")

    def fields_of_specs(self) -> PartitionFields:
        """Return the partition fields that the table has or had."""
        if self.partition_fields is None:
            self.partition_fields = PartitionFields(self.specs)
        return self.partition_fields

    def check_names_of_specs(self) -> None:
        """Check that the specs have names of their own beside the current schema's.

        Raises:
            InvalidUpdate: names the field.
        """
        if self.spec_names is None:
            self.spec_names = SpecNames(self.specs)
        if self.spec_names.are_free_in(self.current_schema):
            return
        for spec in self.specs:
            check_names(spec, self.current_schema)

    def finish(self, base_location: Location | None) -> TableMetadata:
        """Return the new metadata, complete and checked.

        Args:
            base_location: where the base's metadata file is; it goes into the metadata log. None for a new table.

        Raises:
            InvalidUpdate: the updates leave something missing or contradictory.
            DanglingRef: a snapshot was removed that a ref still names.
        """
        if self.table_uuid is None and (self.base is None or "table_uuid" in self.format.required_fields):
            raise InvalidUpdate("The table has no uuid: the updates need an assign-uuid")
        if self.location is None:
            raise InvalidUpdate("The table has no location: the updates need a set-location")
        schema, spec, order = self.current_schema, self._default_spec(), self._default_sort_order()
        self._check_bindings(schema, spec, order)
        self._check_refs()
        self._check_encryption_key()
        snapshot_log = self._repaired_snapshot_log()
        has_single = self.format.has_single_schema_and_spec
        # Fields are not checked again: every value was checked on arrival, and 10,000 snapshots take time.
        metadata = TableMetadata.model_construct(
            format_version=self.format_version,
            table_uuid=self.table_uuid,
            location=self.location,
            last_sequence_number=self.last_sequence if self.format.has_sequence_numbers else None,
            last_updated_ms=self._last_updated_ms(snapshot_log),
            last_column_id=self.last_column_id,
            current_schema_id=schema.schema_id,
            schema_=schema if has_single else None,
            schemas=tuple(self.schemas),
            default_spec_id=spec.spec_id,
            partition_spec=tuple(item.to_object() for item in spec.fields) if has_single else None,
            partition_specs=tuple(self.specs),
            last_partition_id=self.last_partition_id,
            default_sort_order_id=order.order_id,
            sort_orders=tuple(self.sort_orders),
            properties=dict(self.properties),
            current_snapshot_id=self._written_current_snapshot_id(),
            next_row_id=self.next_row_id if self.format.has_row_lineage else None,
            encryption_keys=tuple(self.encryption_keys.values()) or None,
            refs=dict(self.refs),
            snapshots=tuple(self.snapshots.values()),
            statistics=tuple(chain.from_iterable(self.statistics.values())),
            partition_statistics=tuple(chain.from_iterable(self.partition_statistics.values())),
            snapshot_log=snapshot_log,
            metadata_log=self._next_metadata_log(base_location),
        ).with_unknown_fields(self.unknown_fields)
        metadata.__dict__["snapshots_by_id"] = dict(self.snapshots)
        try:
            check_invariants(metadata, self.base)
        except InvalidMetadata as error:
            raise InvalidUpdate(str(error)) from error
        return metadata.continuing(self.base)

    def _default_spec(self) -> PartitionSpec:
        spec = self.specs.find(self.default_spec_id)
        if spec is not None:
            return spec
        raise InvalidUpdate(f"Cannot set default partition spec to unknown spec: {self.default_spec_id}")

    def _default_sort_order(self) -> SortOrder:
        order = self.sort_orders.find(self.default_sort_order_id)
        if order is not None:
            return order
        raise InvalidUpdate(
            f"Cannot set default sort order to unknown sort order: {self.default_sort_order_id}"
        )

    def _check_bindings(self, schema: Schema, spec: PartitionSpec, order: SortOrder) -> None:
        check_spec(spec, schema)
        check_order(order, schema)
        # Not by its id: a commit may remove the last schema, and give its id to another one.
        if self.base is not None and schema is self.base.current_schema:
            return
        for older in self.specs:
            check_readable(older, schema)
        if self.base is not None and self._keeps_files(self.base):
            before = self.base.current_schema
            check_initial_defaults(before, schema)
            for older in self.specs:
                check_promoted(older, before, schema)

    def _keeps_files(self, base: TableMetadata) -> bool:
        """Return whether main goes on from where it is; it may also begin anew, or go back."""
        current = base.current_snapshot
        seen: set[SnapshotId] = set()
        snapshot_id = self.current_snapshot_id
        while current is not None and snapshot_id is not None and snapshot_id not in seen:
            if snapshot_id == current.snapshot_id:
                return True
            seen.add(snapshot_id)
            snapshot = self.snapshots.get(snapshot_id)
            snapshot_id = None if snapshot is None else snapshot.parent_snapshot_id
        return False

    def _check_refs(self) -> None:
        for name, ref in self.refs.items():
            if ref.snapshot_id not in self.snapshots:
                raise DanglingRef(
                    f"Cannot remove snapshot {ref.snapshot_id}: {ref.type} {name} refers to it and is not removed "
                    "by the same commit",
                    name,
                    ref.snapshot_id,
                )

    def _check_encryption_key(self) -> None:
        before = self.base.properties.get(ENCRYPTION_KEY_ID) if self.base else None
        key_id = self.properties.get(ENCRYPTION_KEY_ID)
        if before is None and key_id is not None and not self.format.has_encryption_keys:
            raise InvalidUpdate(
                f"Invalid properties for v{self.format_version}: {ENCRYPTION_KEY_ID} needs format version 3"
            )
        # Writers would go on without a word: in plain text, or with a key that readers do not expect.
        if before is not None and key_id != before:
            raise InvalidUpdate(
                f"Cannot change or remove {ENCRYPTION_KEY_ID}: an encrypted table keeps its key for life"
            )

    def _repaired_snapshot_log(self) -> tuple[SnapshotLogEntry, ...]:
        return repaired_snapshot_log(
            self.snapshot_log,
            intermediate=(self.added_snapshot_ids & self.became_current_ids) - {self.current_snapshot_id},
            remaining=self.snapshots if self.has_removed_snapshots else None,
            current=self.current_snapshot_id,
        )

    def _last_updated_ms(self, snapshot_log: Sequence[SnapshotLogEntry]) -> int:
        last_logged_ms = snapshot_log[-1].timestamp_ms if snapshot_log else 0
        base_updated_ms = self.base.last_updated_ms if self.base else 0
        # Clocks differ, but time in the metadata must not run backwards, or clients refuse it.
        return max(self.now_ms, last_logged_ms, base_updated_ms)

    def _written_current_snapshot_id(self) -> SnapshotId | None:
        return self.format.no_snapshot_id if self.current_snapshot_id is None else self.current_snapshot_id

    def _next_metadata_log(self, base_location: Location | None) -> tuple[MetadataLogEntry, ...]:
        if self.base is None:
            return ()
        if base_location is None:
            return self.base.metadata_log
        return next_metadata_log(self.base, base_location, self.properties)


def draft_of(base: TableMetadata, now_ms: int) -> MetadataDraft:
    """Return a draft that starts from a base."""
    current = base.current_snapshot
    return MetadataDraft(
        base=base,
        now_ms=now_ms,
        format_version=base.format_version,
        table_uuid=base.table_uuid,
        location=base.location,
        last_sequence=base.last_sequence,
        last_column_id=base.last_column_id,
        current_schema_id=base.current_schema_id,
        schemas=numbered_schemas(base.schemas),
        default_spec_id=base.default_spec_id,
        specs=numbered_specs(base.partition_specs),
        last_partition_id=base.last_partition_id or UNPARTITIONED_LAST_ID,
        default_sort_order_id=base.default_sort_order_id,
        sort_orders=numbered_orders(base.sort_orders),
        properties=dict(base.properties),
        current_snapshot_id=current.snapshot_id if current else None,
        snapshots=dict(base.snapshots_by_id),
        refs=dict(base.snapshot_refs),
        snapshot_log=list(base.snapshot_log),
        statistics=_by_snapshot(base.statistics),
        partition_statistics=_by_snapshot(base.partition_statistics),
        encryption_keys={key.key_id: key for key in base.encryption_keys or ()},
        next_row_id=base.next_row_id or 0,
        unknown_fields=dict(base.unknown_fields),
    )


def _by_snapshot(files: Iterable[File]) -> dict[SnapshotId, list[File]]:
    found: dict[SnapshotId, list[File]] = {}
    for file in files:
        found.setdefault(file.snapshot_id, []).append(file)
    return found
