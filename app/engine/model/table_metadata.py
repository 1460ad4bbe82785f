"""Table metadata of any format version: the document, how it is read, and its invariants."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, ValidationError

from app.engine.model.document import (
    FIRST_ERROR,
    INT,
    LONG,
    MAX_LONG,
    UUID,
    Document,
    Int,
    JsonValue,
    Long,
    Text,
    describe_invalid,
    kebab,
)
from app.engine.model.format_versions import (
    FORMAT_VERSIONS,
    MAX_FORMAT_VERSION,
    MIN_FORMAT_VERSION,
    FormatVersion,
)
from app.engine.model.growing_lists import NOTHING_KNOWN, GrowingJson, count_gone
from app.engine.model.ids import NO_SNAPSHOT, Location, SchemaId, SnapshotId, SortOrderId, SpecId, TableUuid
from app.engine.model.partition_spec import PartitionSpec
from app.engine.model.refs import MAIN_BRANCH, SnapshotRef
from app.engine.model.schema import Schema
from app.engine.model.settings.properties import ENCRYPTION_KEY_ID
from app.engine.model.snapshot import MetadataLogEntry, Snapshot, SnapshotLogEntry
from app.engine.model.sort_order import UNSORTED, SortOrder
from app.engine.model.statistics import EncryptedKey, PartitionStatisticsFile, StatisticsFile
from app.errors import InvalidMetadata

CLOCK_TOLERANCE_MS = 60_000
"""How far logs may be out of order, as writers' clocks differ. Clients refuse more."""

_KNOWN_JSON = "_known_json"
_REGISTRATION = "_registration"


class TableMetadata(Document):
    """A table's state at one commit. Made by `read_table_metadata` and by finishing a draft.

    Spec: #table-metadata-fields
    """

    format_version: Int
    table_uuid: Annotated[TableUuid, UUID] | None = None
    location: Location
    last_sequence_number: Long | None = None
    last_updated_ms: Long
    last_column_id: Int
    schema_: Annotated[Schema | None, Field(alias="schema")] = None
    current_schema_id: Annotated[SchemaId, INT] = SchemaId(0)
    partition_spec: (
        Annotated[tuple[Annotated[dict[str, JsonValue], FIRST_ERROR], ...], FIRST_ERROR] | None
    ) = None
    default_spec_id: Annotated[SpecId, INT] = SpecId(0)
    last_partition_id: Int | None = None
    default_sort_order_id: Annotated[SortOrderId, INT] = SortOrderId(0)
    properties: Annotated[dict[str, Text], FIRST_ERROR] = Field(default_factory=dict)
    current_snapshot_id: Annotated[SnapshotId, LONG] | None = None
    next_row_id: Annotated[Long, Field(ge=0)] | None = None
    encryption_keys: Annotated[tuple[EncryptedKey, ...], FIRST_ERROR] | None = None
    refs: Annotated[dict[str, SnapshotRef], FIRST_ERROR] | None = None
    statistics: Annotated[tuple[StatisticsFile, ...], FIRST_ERROR] = ()
    partition_statistics: Annotated[tuple[PartitionStatisticsFile, ...], FIRST_ERROR] = ()
    schemas: Annotated[tuple[Schema, ...], FIRST_ERROR] = ()
    partition_specs: Annotated[tuple[PartitionSpec, ...], FIRST_ERROR] = ()
    sort_orders: Annotated[tuple[SortOrder, ...], FIRST_ERROR] = ()
    snapshots: Annotated[tuple[Snapshot, ...], FIRST_ERROR] = ()
    snapshot_log: Annotated[tuple[SnapshotLogEntry, ...], FIRST_ERROR] = ()
    metadata_log: Annotated[tuple[MetadataLogEntry, ...], FIRST_ERROR] = ()

    @property
    def format(self) -> FormatVersion:
        """What the table's format version has and requires."""
        return FORMAT_VERSIONS[self.format_version]

    @property
    def uuid(self) -> TableUuid:
        """The table's uuid; empty for a v1 table without one."""
        return self.table_uuid or TableUuid("")

    @property
    def last_sequence(self) -> int:
        return self.last_sequence_number or 0

    @property
    def is_encrypted(self) -> bool:
        """Whether its files are encrypted: the catalog has no keys."""
        return bool(self.encryption_keys) or ENCRYPTION_KEY_ID in self.properties

    @cached_property
    def snapshots_by_id(self) -> dict[SnapshotId, Snapshot]:
        return {snapshot.snapshot_id: snapshot for snapshot in self.snapshots}

    @cached_property
    def schemas_by_spec(self) -> dict[SpecId, Schema]:
        """What `schema_with_sources` has found, where that took a look at all schemas."""
        return {}

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

    def find_spec(self, spec_id: SpecId) -> PartitionSpec | None:
        """Return a partition spec by its id."""
        return next((spec for spec in self.partition_specs if spec.spec_id == spec_id), None)

    def schema_of(self, snapshot: Snapshot) -> Schema:
        """Return the schema that a snapshot names, else the current one."""
        named = (schema for schema in self.schemas if schema.schema_id == snapshot.schema_id)
        return next(named, self.current_schema)

    def to_json(self) -> bytes:
        """Return the same JSON as any document; what an earlier state's had is copied."""
        unknown = self.unknown_fields
        own = self.with_unknown_fields({}) if unknown else self
        first = own.model_dump_json(exclude_none=True, include=_BEFORE_LISTS).encode()
        growing = GrowingJson(first, self.__dict__.get(_KNOWN_JSON, NOTHING_KNOWN))
        for field, name in _LISTS.items():
            growing.add_list(name, getattr(self, field))
        if unknown:
            growing.add_fields(Document().with_unknown_fields(unknown).to_json())
        known = self.__dict__[_KNOWN_JSON] = growing.finish()
        return known.document

    def continuing(self, earlier: TableMetadata | None) -> Self:
        """Let what is known of an earlier state serve for this one; no field changes. Return this one."""
        if earlier is not None:
            for name in (_KNOWN_JSON, _REGISTRATION):
                if name in earlier.__dict__:
                    self.__dict__[name] = earlier.__dict__[name]
        return self

    @property
    def registration(self) -> int:
        """The number of the registration under which it was read; 0 if there was none. Not in the document.

        What is kept of the table's files is only right under the same number: before a registration, others may have
        replaced them.
        """
        found: int = self.__dict__.get(_REGISTRATION, 0)
        return found

    def registered_as(self, registration: int) -> Self:
        """Note under which registration it was read, and return this one."""
        self.__dict__[_REGISTRATION] = registration
        return self

    def replace(self, **changes: object) -> Self:
        """Return a copy with some fields changed; the values must already be valid."""
        return super().replace(**changes).registered_as(self.registration)

    def with_referenced_snapshots_only(self) -> Self:
        """Return the metadata with only the snapshots that refs name; the rest stays as it is."""
        named = {ref.snapshot_id for ref in self.snapshot_refs.values()}
        return self.replace(snapshots=tuple(item for item in self.snapshots if item.snapshot_id in named))


_FIELDS = list(TableMetadata.model_fields)
_LISTS = {field: kebab(field) for field in _FIELDS[_FIELDS.index("schemas") :]}
"""Of these a commit changes little, and all may be long."""
_BEFORE_LISTS = set(_FIELDS) - set(_LISTS)


class _Versioned(BaseModel):
    """A document of any format version."""

    format_version: Annotated[Int, Field(alias="format-version")]
    view_uuid: Annotated[JsonValue, Field(alias="view-uuid")] = None


def read_table_metadata(content: bytes) -> TableMetadata:
    """Parse a metadata document of any supported format version, and complete it.

    The single `schema` and `partition-spec` of v1 go into the lists, `main` is added to missing refs, and the
    unsorted order to a missing list of sort orders.

    Raises:
        InvalidMetadata: names the field that is missing or wrong.

    Spec: #appendix-c-json-serialization
    """
    try:
        parsed = TableMetadata.from_json(content)
    except InvalidMetadata:
        _check_version_of(content)
        raise
    return complete(parsed)


def _check_version_of(content: bytes) -> None:
    """Raise an error about the kind or the format version if that is wrong.

    It explains all other faults.
    """
    try:
        found = _Versioned.model_validate_json(content)
    except ValidationError:
        return
    if found.view_uuid is not None:
        raise InvalidMetadata("It is the metadata of a view, not of a table")
    _check_version(found.format_version)


def _check_version(version: int) -> None:
    if version not in FORMAT_VERSIONS:
        raise InvalidMetadata(
            f"Cannot read unsupported version {version}: this build knows {MIN_FORMAT_VERSION} to {MAX_FORMAT_VERSION}"
        )


def complete(parsed: TableMetadata) -> TableMetadata:
    """Return the metadata in the form that the engine uses, checked.

    Raises:
        InvalidMetadata: a field that its format version needs is missing, or an invariant is broken.
    """
    _check_version(parsed.format_version)
    version = parsed.format
    _check_required(parsed)
    _check_choices(parsed)
    changes: dict[str, object] = {}
    if not version.has_single_schema_and_spec:
        changes.update(schema_=None, partition_spec=None)
    if not version.has_sequence_numbers:
        changes["last_sequence_number"] = None
    if not version.has_row_lineage:
        changes["next_row_id"] = None
    if not parsed.schemas:
        if parsed.schema_ is None:
            raise InvalidMetadata("Cannot read metadata: schemas is missing")
        changes["schemas"] = (parsed.schema_,)
        changes["current_schema_id"] = parsed.schema_.schema_id
    specs = parsed.partition_specs
    if not specs:
        specs = (_legacy_spec(parsed),)
        changes["partition_specs"] = specs
        changes["default_spec_id"] = SpecId(0)
    if not parsed.sort_orders:
        changes["sort_orders"] = (UNSORTED,)
        changes["default_sort_order_id"] = UNSORTED.order_id
    changes.update(_counters(parsed, specs))
    current = parsed.current_snapshot_id
    refs = parsed.snapshot_refs
    if current is None or current == NO_SNAPSHOT:
        changes["current_snapshot_id"] = version.no_snapshot_id
    elif MAIN_BRANCH not in refs:
        # The current snapshot is that of main, even if the writer did not write refs.
        refs = {MAIN_BRANCH: SnapshotRef(snapshot_id=current, type="branch"), **refs}
    changes["refs"] = refs
    metadata = parsed.replace(**changes)
    check_invariants(metadata)
    return metadata


def _counters(parsed: TableMetadata, specs: tuple[PartitionSpec, ...]) -> dict[str, object]:
    """Return the counters of ids that are missing, or lower than the ids in use.

    The next ids would be given a second time, and old files be read as if they had the new columns or rows.
    """
    counters: dict[str, object] = {}
    single = () if parsed.schema_ is None or parsed.schemas else (parsed.schema_,)
    column_id = max((schema.highest_given_id for schema in (*parsed.schemas, *single)), default=0)
    if column_id > parsed.last_column_id:
        counters["last_column_id"] = column_id
    if parsed.last_partition_id is None:
        counters["last_partition_id"] = max(spec.highest_field_id for spec in specs)
    else:
        partition_id = max((field.field_id for spec in specs for field in spec.fields), default=0)
        if partition_id > parsed.last_partition_id:
            counters["last_partition_id"] = partition_id
    if parsed.format.has_row_lineage and parsed.next_row_id is not None:
        ends = (
            item.first_row_id + (item.added_rows or 0)
            for item in parsed.snapshots
            if item.first_row_id is not None
        )
        row_id = max((end for end in ends if end <= MAX_LONG), default=0)
        if row_id > parsed.next_row_id:
            counters["next_row_id"] = row_id
    return counters


def _check_required(parsed: TableMetadata) -> None:
    for name in parsed.format.required_fields:
        if not getattr(parsed, name) and getattr(parsed, name) != 0:
            field = name.replace("_", "-")
            raise InvalidMetadata(
                f"Cannot read metadata: {field} is missing, which v{parsed.format_version} needs"
            )


def _check_choices(parsed: TableMetadata) -> None:
    """Check that the metadata says which item of each list is current."""
    for choices, name in (
        (parsed.schemas, "current_schema_id"),
        (parsed.partition_specs, "default_spec_id"),
        (parsed.sort_orders, "default_sort_order_id"),
    ):
        if choices and name not in parsed.model_fields_set:
            raise InvalidMetadata(f"Cannot read metadata: {name.replace('_', '-')} is missing")


def _legacy_spec(parsed: TableMetadata) -> PartitionSpec:
    if parsed.partition_spec is None:
        raise InvalidMetadata("Cannot read metadata: partition-specs is missing")
    try:
        return PartitionSpec.from_object({"spec-id": 0, "fields": list(parsed.partition_spec)})
    except ValidationError as error:
        fault = describe_invalid(error)
    raise InvalidMetadata(f"partition-spec.{fault}")


def check_invariants(metadata: TableMetadata, checked: TableMetadata | None = None) -> None:
    """Check the rules for the metadata of every table.

    Args:
        metadata: what to check.
        checked: an earlier state, which keeps the rules: what both have is not looked at again.

    Raises:
        InvalidMetadata: says which rule is broken.
    """
    schema_ids = _distinct((item.schema_id for item in metadata.schemas), "schema-id", "schemas")
    if metadata.current_schema_id not in schema_ids:
        raise InvalidMetadata(
            f"Cannot find schema with current-schema-id={metadata.current_schema_id} from schemas"
        )
    if metadata.default_spec_id not in _distinct(
        (item.spec_id for item in metadata.partition_specs), "spec-id", "partition specs"
    ):
        raise InvalidMetadata(f"Cannot find partition spec with default-spec-id={metadata.default_spec_id}")
    if metadata.default_sort_order_id not in _distinct(
        (item.order_id for item in metadata.sort_orders), "order-id", "sort orders"
    ):
        raise InvalidMetadata(
            f"Cannot find sort order with default-sort-order-id={metadata.default_sort_order_id}"
        )
    _check_snapshots(metadata, checked)
    _check_logs(metadata, checked)


def _distinct(ids: Iterable[int], name: str, owners: str) -> set[int]:
    seen: set[int] = set()
    for item in ids:
        if item in seen:
            raise InvalidMetadata(f"Two {owners} have the same {name}: {item}")
        seen.add(item)
    return seen


def _count_known(items: tuple[Any, ...], known: tuple[Any, ...]) -> int:
    """Return with how many known items a list begins.

    Some of the first may be gone, all others must be there.
    """
    gone = count_gone(items, known)
    return 0 if gone is None else len(known) - gone


def _check_snapshots(metadata: TableMetadata, checked: TableMetadata | None) -> None:
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
    last = metadata.last_sequence
    if last and not metadata.format.has_sequence_numbers:
        raise InvalidMetadata(f"Sequence number must be 0 in v{metadata.format_version}: {last}")
    new = metadata.snapshots
    if checked is not None and last >= checked.last_sequence:
        new = new[_count_known(new, checked.snapshots) :]
    highest = max((snapshot.sequence for snapshot in new), default=0)
    if highest > last:
        raise InvalidMetadata(
            f"Invalid snapshot with sequence number {highest} greater than last sequence number {last}"
        )


def _check_logs(metadata: TableMetadata, checked: TableMetadata | None) -> None:
    _check_log("snapshot-log", metadata, metadata.snapshot_log, checked.snapshot_log if checked else ())
    _check_log("metadata-log", metadata, metadata.metadata_log, checked.metadata_log if checked else ())


def _check_log(name: str, metadata: TableMetadata, log: tuple[Any, ...], checked: tuple[Any, ...]) -> None:
    start = max(_count_known(log, checked) - 1, 0)
    times = [entry.timestamp_ms for entry in log[start:]]
    if times != sorted(times) and any(
        after - before < -CLOCK_TOLERANCE_MS for before, after in pairwise(times)
    ):
        raise InvalidMetadata(f"The entries of {name} are not sorted by time")
    if times and metadata.last_updated_ms - times[-1] < -CLOCK_TOLERANCE_MS:
        raise InvalidMetadata(
            f"Invalid update timestamp {metadata.last_updated_ms}: before last {name} entry at {times[-1]}"
        )
