"""Every change that a commit can ask for, as one closed union of small values."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag

from app.engine.model.document import INT, LONG, UUID, Int, Long, kebab
from app.engine.model.ids import Location, SchemaId, SnapshotId, SortOrderId, SpecId, TableUuid
from app.engine.model.partition_spec import UnboundPartitionSpec
from app.engine.model.schema import Schema
from app.engine.model.snapshot import Snapshot
from app.engine.model.sort_order import SortOrder
from app.engine.model.statistics import EncryptedKey, PartitionStatisticsFile, StatisticsFile
from app.engine.model.view_metadata import ViewVersion

LAST_ADDED = -1
"""In place of an id: the schema, spec, order or view version that this request added last."""


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


Lower = BeforeValidator(_lower)
"""Discriminators are compared without case, as the reference does."""


class Change(BaseModel):
    """Base of updates and requirements; fields that are not known are passed over."""

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        alias_generator=kebab,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        protected_namespaces=(),
    )


class AssignUuid(Change):
    """Give the table or view its uuid."""

    action: Annotated[Literal["assign-uuid"], Lower] = "assign-uuid"
    uuid: Annotated[TableUuid, UUID]


class UpgradeFormatVersion(Change):
    """Raise the format version."""

    action: Annotated[Literal["upgrade-format-version"], Lower] = "upgrade-format-version"
    format_version: Int


class AddSchema(Change):
    """Add a schema; its id is assigned here, whatever the request says."""

    action: Annotated[Literal["add-schema"], Lower] = "add-schema"
    schema_: Annotated[Schema, Field(alias="schema")]


class SetCurrentSchema(Change):
    """Make a schema the current one."""

    action: Annotated[Literal["set-current-schema"], Lower] = "set-current-schema"
    schema_id: Annotated[SchemaId, INT]


class AddSpec(Change):
    """Add a partition spec, bound to the schema that is current at this point."""

    action: Annotated[Literal["add-spec"], Lower] = "add-spec"
    spec: UnboundPartitionSpec


class SetDefaultSpec(Change):
    """Make a partition spec the default for writing."""

    action: Annotated[Literal["set-default-spec"], Lower] = "set-default-spec"
    spec_id: Annotated[SpecId, INT]


class AddSortOrder(Change):
    """Add a sort order."""

    action: Annotated[Literal["add-sort-order"], Lower] = "add-sort-order"
    sort_order: SortOrder


class SetDefaultSortOrder(Change):
    """Make a sort order the default for writing."""

    action: Annotated[Literal["set-default-sort-order"], Lower] = "set-default-sort-order"
    sort_order_id: Annotated[SortOrderId, INT]


class AddSnapshot(Change):
    """Add a snapshot, without any ref yet."""

    action: Annotated[Literal["add-snapshot"], Lower] = "add-snapshot"
    snapshot: Snapshot


class SetSnapshotRef(Change):
    """Create or replace a branch or tag; retention that is left out is cleared."""

    action: Annotated[Literal["set-snapshot-ref"], Lower] = "set-snapshot-ref"
    ref_name: Annotated[str, Field(min_length=1)]
    snapshot_id: Annotated[SnapshotId, LONG]
    type: Annotated[Literal["branch", "tag"], Lower]
    min_snapshots_to_keep: Int | None = None
    max_snapshot_age_ms: Long | None = None
    max_ref_age_ms: Long | None = None


class RemoveSnapshots(Change):
    """Remove snapshots; unknown ids are passed over."""

    action: Annotated[Literal["remove-snapshots"], Lower] = "remove-snapshots"
    snapshot_ids: tuple[Annotated[SnapshotId, LONG], ...]


class RemoveSnapshotRef(Change):
    """Remove a branch or tag."""

    action: Annotated[Literal["remove-snapshot-ref"], Lower] = "remove-snapshot-ref"
    ref_name: str


class SetLocation(Change):
    """Move where new files go."""

    action: Annotated[Literal["set-location"], Lower] = "set-location"
    location: Annotated[Location, Field(min_length=1)]


class SetProperties(Change):
    """Merge properties into the table's."""

    action: Annotated[Literal["set-properties"], Lower] = "set-properties"
    updates: Annotated[
        dict[str, str],
        Field(validation_alias=AliasChoices("updates", "updated"), serialization_alias="updates"),
    ]


class RemoveProperties(Change):
    """Remove properties; absent ones are passed over."""

    action: Annotated[Literal["remove-properties"], Lower] = "remove-properties"
    removals: Annotated[
        tuple[str, ...],
        Field(validation_alias=AliasChoices("removals", "removed"), serialization_alias="removals"),
    ]


class SetStatistics(Change):
    """Replace the statistics of one snapshot."""

    action: Annotated[Literal["set-statistics"], Lower] = "set-statistics"
    statistics: StatisticsFile


class RemoveStatistics(Change):
    """Remove the statistics of one snapshot."""

    action: Annotated[Literal["remove-statistics"], Lower] = "remove-statistics"
    snapshot_id: Annotated[SnapshotId, LONG]


class SetPartitionStatistics(Change):
    """Replace the partition statistics of one snapshot."""

    action: Annotated[Literal["set-partition-statistics"], Lower] = "set-partition-statistics"
    partition_statistics: PartitionStatisticsFile


class RemovePartitionStatistics(Change):
    """Remove the partition statistics of one snapshot."""

    action: Annotated[Literal["remove-partition-statistics"], Lower] = "remove-partition-statistics"
    snapshot_id: Annotated[SnapshotId, LONG]


class RemovePartitionSpecs(Change):
    """Remove partition specs that nothing uses any more; unknown ids are passed over."""

    action: Annotated[Literal["remove-partition-specs"], Lower] = "remove-partition-specs"
    spec_ids: tuple[Annotated[SpecId, INT], ...]


class RemoveSchemas(Change):
    """Remove schemas that nothing uses any more; unknown ids are passed over."""

    action: Annotated[Literal["remove-schemas"], Lower] = "remove-schemas"
    schema_ids: tuple[Annotated[SchemaId, INT], ...]


class AddEncryptionKey(Change):
    """Add a key; one with the same id stays as it is."""

    action: Annotated[Literal["add-encryption-key"], Lower] = "add-encryption-key"
    encryption_key: EncryptedKey


class RemoveEncryptionKey(Change):
    """Remove a key."""

    action: Annotated[Literal["remove-encryption-key"], Lower] = "remove-encryption-key"
    key_id: str


class AddViewVersion(Change):
    """Add a version of a view."""

    action: Annotated[Literal["add-view-version"], Lower] = "add-view-version"
    view_version: ViewVersion


class SetCurrentViewVersion(Change):
    """Make a version of a view the current one."""

    action: Annotated[Literal["set-current-view-version"], Lower] = "set-current-view-version"
    view_version_id: Int


def tag_of(field: str, known: frozenset[str], what: str) -> Any:
    """Return a discriminator that reads `field` without case and says which values it knows."""

    def find(value: Any) -> str | None:
        tag = value.get(field) if isinstance(value, dict) else getattr(value, field, None)
        return tag.lower() if isinstance(tag, str) and tag.lower() in known else None

    return Discriminator(
        find,
        custom_error_type=f"unknown_{what}",
        custom_error_message=f"unknown or missing {field}; known are: {', '.join(sorted(known))}",
    )


ACTIONS = frozenset(
    """assign-uuid upgrade-format-version add-schema set-current-schema add-spec set-default-spec add-sort-order
    set-default-sort-order add-snapshot set-snapshot-ref remove-snapshots remove-snapshot-ref set-location
    set-properties remove-properties set-statistics remove-statistics set-partition-statistics
    remove-partition-statistics remove-partition-specs remove-schemas add-encryption-key remove-encryption-key
    add-view-version set-current-view-version""".split()
)

Update = Annotated[
    Annotated[AssignUuid, Tag("assign-uuid")]
    | Annotated[UpgradeFormatVersion, Tag("upgrade-format-version")]
    | Annotated[AddSchema, Tag("add-schema")]
    | Annotated[SetCurrentSchema, Tag("set-current-schema")]
    | Annotated[AddSpec, Tag("add-spec")]
    | Annotated[SetDefaultSpec, Tag("set-default-spec")]
    | Annotated[AddSortOrder, Tag("add-sort-order")]
    | Annotated[SetDefaultSortOrder, Tag("set-default-sort-order")]
    | Annotated[AddSnapshot, Tag("add-snapshot")]
    | Annotated[SetSnapshotRef, Tag("set-snapshot-ref")]
    | Annotated[RemoveSnapshots, Tag("remove-snapshots")]
    | Annotated[RemoveSnapshotRef, Tag("remove-snapshot-ref")]
    | Annotated[SetLocation, Tag("set-location")]
    | Annotated[SetProperties, Tag("set-properties")]
    | Annotated[RemoveProperties, Tag("remove-properties")]
    | Annotated[SetStatistics, Tag("set-statistics")]
    | Annotated[RemoveStatistics, Tag("remove-statistics")]
    | Annotated[SetPartitionStatistics, Tag("set-partition-statistics")]
    | Annotated[RemovePartitionStatistics, Tag("remove-partition-statistics")]
    | Annotated[RemovePartitionSpecs, Tag("remove-partition-specs")]
    | Annotated[RemoveSchemas, Tag("remove-schemas")]
    | Annotated[AddEncryptionKey, Tag("add-encryption-key")]
    | Annotated[RemoveEncryptionKey, Tag("remove-encryption-key")]
    | Annotated[AddViewVersion, Tag("add-view-version")]
    | Annotated[SetCurrentViewVersion, Tag("set-current-view-version")],
    tag_of("action", ACTIONS, "update"),
]
