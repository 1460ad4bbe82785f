"""Table metadata in format versions 1, 2 and 3: the document, its reading, writing and invariants."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, Self

from pydantic import Field

from app.engine.model.document import Document, Int, Long
from app.engine.model.ids import Location, SchemaId, SnapshotId, SortOrderId, SpecId, TableUuid
from app.engine.model.partition_spec import FIRST_PARTITION_FIELD_ID, PartitionField, PartitionSpec
from app.engine.model.refs import MAIN_BRANCH, SnapshotRef
from app.engine.model.schema import Schema
from app.engine.model.snapshot import MetadataLogEntry, Snapshot, SnapshotLogEntry
from app.engine.model.sort_order import UNSORTED, SortOrder
from app.engine.model.statistics import EncryptedKey, PartitionStatisticsFile, StatisticsFile
from app.errors import InvalidMetadata

MIN_FORMAT_VERSION = 1
MAX_FORMAT_VERSION = 3
DEFAULT_FORMAT_VERSION = 2
NO_SNAPSHOT = -1
CLOCK_TOLERANCE_MS = 60_000
"""Logs may be out of order by this much: the clocks of writers differ. Readers refuse more."""


class TableMetadata(Document):
    """Everything about a table at one commit. Made only by `read_table_metadata` and by finishing a draft.

    Spec: #table-metadata-fields
    """

    format_version: Int
    table_uuid: TableUuid | None = None
    location: Location
    last_sequence_number: Long | None = None
    last_updated_ms: Long
    last_column_id: Int
    current_schema_id: Annotated[SchemaId, Int] = SchemaId(0)
    schema_: Annotated[Schema | None, Field(alias="schema")] = None
    schemas: tuple[Schema, ...] = ()
    default_spec_id: Annotated[SpecId, Int] = SpecId(0)
    partition_spec: tuple[dict[str, Any], ...] | None = None
    partition_specs: tuple[PartitionSpec, ...] = ()
    last_partition_id: Int | None = None
    default_sort_order_id: Annotated[SortOrderId, Int] = SortOrderId(0)
    sort_orders: tuple[SortOrder, ...] = ()
    properties: dict[str, str] = Field(default_factory=dict)
    current_snapshot_id: Annotated[SnapshotId, Long] | None = None
    next_row_id: Annotated[Long, Field(ge=0)] | None = None
    encryption_keys: tuple[EncryptedKey, ...] | None = None
    refs: dict[str, SnapshotRef] | None = None
    snapshots: tuple[Snapshot, ...] = ()
    statistics: tuple[StatisticsFile, ...] = ()
    partition_statistics: tuple[PartitionStatisticsFile, ...] = ()
    snapshot_log: tuple[SnapshotLogEntry, ...] = ()
    metadata_log: tuple[MetadataLogEntry, ...] = ()

    @property
    def uuid(self) -> TableUuid:
        """The table's uuid; empty for a v1 table whose writer gave it none."""
        return self.table_uuid or TableUuid("")

    @property
    def last_sequence(self) -> int:
        return self.last_sequence_number or 0

    @cached_property
    def snapshots_by_id(self) -> dict[SnapshotId, Snapshot]:
        return {snapshot.snapshot_id: snapshot for snapshot in self.snapshots}

    @property
    def current_snapshot(self) -> Snapshot | None:
        if self.current_snapshot_id is None or self.current_snapshot_id == NO_SNAPSHOT:
            return None
        return self.snapshots_by_id.get(self.current_snapshot_id)

    @property
    def snapshot_refs(self) -> dict[str, SnapshotRef]:
        return self.refs or {}

    @property
    def current_schema(self) -> Schema:
        return next(schema for schema in self.schemas if schema.schema_id == self.current_schema_id)

    @property
    def default_spec(self) -> PartitionSpec:
        return next(spec for spec in self.partition_specs if spec.spec_id == self.default_spec_id)

    @property
    def default_sort_order(self) -> SortOrder:
        return next(order for order in self.sort_orders if order.order_id == self.default_sort_order_id)

    def with_referenced_snapshots_only(self) -> Self:
        """Return the metadata with only those snapshots that a ref names; logs and statistics stay whole."""
        named = {ref.snapshot_id for ref in self.snapshot_refs.values()}
        return self.replace(snapshots=tuple(item for item in self.snapshots if item.snapshot_id in named))


def read_table_metadata(content: bytes) -> TableMetadata:
    """Parse a metadata document of any supported format version and bring older forms to one.

    v1's single `schema` and `partition-spec` are moved into the lists, a missing `refs` gets `main`, a missing
    list of sort orders gets the unsorted order.

    Raises:
        InvalidMetadata: names the field that is missing or wrong.

    Spec: #appendix-c-json-serialization
    """
    return complete(TableMetadata.from_json(content))


def complete(parsed: TableMetadata) -> TableMetadata:
    """Return the metadata in the one form the engine works on, checked.

    Raises:
        InvalidMetadata: a field that its format version needs is missing, or an invariant is broken.
    """
    version = parsed.format_version
    if not MIN_FORMAT_VERSION <= version <= MAX_FORMAT_VERSION:
        raise InvalidMetadata(
            f"Cannot read unsupported version {version}: this build knows 1 to {MAX_FORMAT_VERSION}"
        )
    changes: dict[str, object] = {}
    if version > 1:
        _need(parsed, "table_uuid", "last_sequence_number", "last_partition_id")
        _need(parsed, "schemas", "partition_specs", "sort_orders")
        changes.update(schema_=None, partition_spec=None)
    if not parsed.schemas:
        if parsed.schema_ is None:
            raise InvalidMetadata("Cannot read metadata: schemas is missing")
        changes["schemas"] = (parsed.schema_,)
        changes["current_schema_id"] = parsed.schema_.schema_id
    if not parsed.partition_specs:
        changes["partition_specs"] = (_legacy_spec(parsed),)
        changes["default_spec_id"] = SpecId(0)
    if not parsed.sort_orders:
        changes["sort_orders"] = (UNSORTED,)
        changes["default_sort_order_id"] = UNSORTED.order_id
    if parsed.last_partition_id is None:
        specs: tuple[PartitionSpec, ...] = changes.get("partition_specs", parsed.partition_specs)  # type: ignore[assignment]  # set just above
        changes["last_partition_id"] = max(spec.highest_field_id for spec in specs)
    if version >= 3 and parsed.next_row_id is None:
        raise InvalidMetadata("Cannot read metadata: next-row-id is missing, which v3 needs")
    current = parsed.current_snapshot_id
    if version < 3 and current is None:
        changes["current_snapshot_id"] = NO_SNAPSHOT
    elif version >= 3 and current == NO_SNAPSHOT:
        changes["current_snapshot_id"] = None
    has_current = current is not None and current != NO_SNAPSHOT
    if parsed.refs is None:
        main = (
            {MAIN_BRANCH: SnapshotRef(snapshot_id=current, type="branch")} if has_current and current else {}
        )
        changes["refs"] = main
    metadata = parsed.replace(**changes)
    check_invariants(metadata)
    return metadata


def _need(parsed: TableMetadata, *names: str) -> None:
    for name in names:
        if not getattr(parsed, name) and getattr(parsed, name) != 0:
            field = name.replace("_", "-")
            raise InvalidMetadata(
                f"Cannot read metadata: {field} is missing, which v{parsed.format_version} needs"
            )


def _legacy_spec(parsed: TableMetadata) -> PartitionSpec:
    if parsed.partition_spec is None:
        raise InvalidMetadata("Cannot read metadata: partition-specs is missing")
    fields = tuple(
        PartitionField.from_object({"field-id": FIRST_PARTITION_FIELD_ID + position, **field})
        for position, field in enumerate(parsed.partition_spec)
    )
    return PartitionSpec(spec_id=SpecId(0), fields=fields)


def check_invariants(metadata: TableMetadata) -> None:
    """Check what holds for every table's metadata, whoever wrote it.

    Raises:
        InvalidMetadata: says which rule is broken.
    """
    if metadata.current_schema_id not in {schema.schema_id for schema in metadata.schemas}:
        raise InvalidMetadata(
            f"Cannot find schema with current-schema-id={metadata.current_schema_id} from schemas"
        )
    if metadata.default_spec_id not in {spec.spec_id for spec in metadata.partition_specs}:
        raise InvalidMetadata(f"Cannot find partition spec with default-spec-id={metadata.default_spec_id}")
    if metadata.default_sort_order_id not in {order.order_id for order in metadata.sort_orders}:
        raise InvalidMetadata(
            f"Cannot find sort order with default-sort-order-id={metadata.default_sort_order_id}"
        )
    _check_snapshots(metadata)
    _check_logs(metadata)


def _check_snapshots(metadata: TableMetadata) -> None:
    by_id = metadata.snapshots_by_id
    if len(by_id) != len(metadata.snapshots):
        raise InvalidMetadata("Two snapshots have the same snapshot-id")
    current = metadata.current_snapshot_id
    has_current = current is not None and current != NO_SNAPSHOT
    if has_current and current not in by_id:
        raise InvalidMetadata(f"Cannot find current snapshot with id {current} in snapshots")
    refs = metadata.snapshot_refs
    for name, ref in refs.items():
        if ref.snapshot_id not in by_id:
            raise InvalidMetadata(
                f"Snapshot {ref.snapshot_id} of reference {name} does not exist in the list of snapshots"
            )
    main = refs.get(MAIN_BRANCH)
    if has_current != (main is not None) or (main is not None and main.snapshot_id != current):
        found = main.snapshot_id if main else "no main branch"
        raise InvalidMetadata(f"Current snapshot ID does not match main branch ({current} != {found})")
    if metadata.format_version == 1:
        if metadata.last_sequence:
            raise InvalidMetadata(f"Sequence number must be 0 in v1: {metadata.last_sequence}")
    else:
        last = metadata.last_sequence
        for snapshot in metadata.snapshots:
            if (snapshot.sequence_number or 0) > last:
                raise InvalidMetadata(
                    f"Invalid snapshot with sequence number {snapshot.sequence} greater than last sequence "
                    f"number {last}"
                )


def _check_logs(metadata: TableMetadata) -> None:
    for name, log in (("snapshot-log", metadata.snapshot_log), ("metadata-log", metadata.metadata_log)):
        previous = None
        for entry in log:
            if previous is not None and entry.timestamp_ms - previous < -CLOCK_TOLERANCE_MS:
                raise InvalidMetadata(f"The entries of {name} are not sorted by time")
            previous = entry.timestamp_ms
        if previous is not None and metadata.last_updated_ms - previous < -CLOCK_TOLERANCE_MS:
            raise InvalidMetadata(
                f"Invalid update timestamp {metadata.last_updated_ms}: before last {name} entry at {previous}"
            )
