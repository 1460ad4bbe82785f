"""Every update that a commit can have, as one closed union of small values."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from app.engine.model.document import INT, LONG, UUID, Document, Int, Long
from app.engine.model.ids import Location, SchemaId, SnapshotId, SortOrderId, SpecId, TableUuid
from app.engine.model.partition_spec import UnboundPartitionSpec
from app.engine.model.schema import Schema
from app.engine.model.snapshot import Snapshot
from app.engine.model.sort_order import SortOrder
from app.engine.model.statistics import EncryptedKey, PartitionStatisticsFile, StatisticsFile
from app.engine.model.view_metadata import ViewVersion


class Change(BaseModel):
    """The base class of updates and requirements; unknown fields are ignored."""

    model_config = ConfigDict(**Document.model_config | {"extra": "ignore"})


class AssignUuid(Change):
    """Give the table or view its uuid."""

    action: Literal["assign-uuid"] = "assign-uuid"
    uuid: Annotated[TableUuid, UUID]


class UpgradeFormatVersion(Change):
    """Raise the format version."""

    action: Literal["upgrade-format-version"] = "upgrade-format-version"
    format_version: Int


class AddSchema(Change):
    """Add a schema; the server assigns its id."""

    action: Literal["add-schema"] = "add-schema"
    schema_: Annotated[Schema, Field(alias="schema")]


class SetCurrentSchema(Change):
    """Make a schema the current one."""

    action: Literal["set-current-schema"] = "set-current-schema"
    schema_id: Annotated[SchemaId, INT]


class AddSpec(Change):
    """Add a partition spec, bound to the schema that is current at this point."""

    action: Literal["add-spec"] = "add-spec"
    spec: UnboundPartitionSpec


class SetDefaultSpec(Change):
    """Make a partition spec the default for writing."""

    action: Literal["set-default-spec"] = "set-default-spec"
    spec_id: Annotated[SpecId, INT]


class AddSortOrder(Change):
    """Add a sort order."""

    action: Literal["add-sort-order"] = "add-sort-order"
    sort_order: SortOrder


class SetDefaultSortOrder(Change):
    """Make a sort order the default for writing."""

    action: Literal["set-default-sort-order"] = "set-default-sort-order"
    sort_order_id: Annotated[SortOrderId, INT]


class AddSnapshot(Change):
    """Add a snapshot, without any ref yet."""

    action: Literal["add-snapshot"] = "add-snapshot"
    snapshot: Snapshot


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


class SetSnapshotRef(Change):
    """Create or replace a branch or tag; missing retention settings are cleared."""

    action: Literal["set-snapshot-ref"] = "set-snapshot-ref"
    ref_name: Annotated[str, Field(min_length=1)]
    snapshot_id: Annotated[SnapshotId, LONG]
    type: Annotated[Literal["branch", "tag"], BeforeValidator(_lower)]
    min_snapshots_to_keep: Int | None = None
    max_snapshot_age_ms: Long | None = None
    max_ref_age_ms: Long | None = None


class RemoveSnapshots(Change):
    """Remove snapshots; unknown ids are ignored."""

    action: Literal["remove-snapshots"] = "remove-snapshots"
    snapshot_ids: tuple[Annotated[SnapshotId, LONG], ...]


class RemoveSnapshotRef(Change):
    """Remove a branch or tag."""

    action: Literal["remove-snapshot-ref"] = "remove-snapshot-ref"
    ref_name: str


class SetLocation(Change):
    """Move where new files go."""

    action: Literal["set-location"] = "set-location"
    location: Annotated[Location, Field(min_length=1)]


class SetProperties(Change):
    """Merge properties into the table's."""

    action: Literal["set-properties"] = "set-properties"
    updates: Annotated[
        dict[str, str],
        Field(validation_alias=AliasChoices("updates", "updated"), serialization_alias="updates"),
    ]


class RemoveProperties(Change):
    """Remove properties; missing ones are ignored."""

    action: Literal["remove-properties"] = "remove-properties"
    removals: Annotated[
        tuple[str, ...],
        Field(validation_alias=AliasChoices("removals", "removed"), serialization_alias="removals"),
    ]


class SetStatistics(Change):
    """Replace the statistics of one snapshot."""

    action: Literal["set-statistics"] = "set-statistics"
    statistics: StatisticsFile


class RemoveStatistics(Change):
    """Remove the statistics of one snapshot."""

    action: Literal["remove-statistics"] = "remove-statistics"
    snapshot_id: Annotated[SnapshotId, LONG]


class SetPartitionStatistics(Change):
    """Replace the partition statistics of one snapshot."""

    action: Literal["set-partition-statistics"] = "set-partition-statistics"
    partition_statistics: PartitionStatisticsFile


class RemovePartitionStatistics(Change):
    """Remove the partition statistics of one snapshot."""

    action: Literal["remove-partition-statistics"] = "remove-partition-statistics"
    snapshot_id: Annotated[SnapshotId, LONG]


class RemovePartitionSpecs(Change):
    """Remove partition specs that nothing uses any more; unknown ids are ignored."""

    action: Literal["remove-partition-specs"] = "remove-partition-specs"
    spec_ids: tuple[Annotated[SpecId, INT], ...]


class RemoveSchemas(Change):
    """Remove schemas that nothing uses any more; unknown ids are ignored."""

    action: Literal["remove-schemas"] = "remove-schemas"
    schema_ids: tuple[Annotated[SchemaId, INT], ...]


class AddEncryptionKey(Change):
    """Add a key; one with the same id stays as it is."""

    action: Literal["add-encryption-key"] = "add-encryption-key"
    encryption_key: EncryptedKey


class RemoveEncryptionKey(Change):
    """Remove a key."""

    action: Literal["remove-encryption-key"] = "remove-encryption-key"
    key_id: str


class AddViewVersion(Change):
    """Add a version of a view."""

    action: Literal["add-view-version"] = "add-view-version"
    view_version: ViewVersion


class SetCurrentViewVersion(Change):
    """Make a version of a view the current one."""

    action: Literal["set-current-view-version"] = "set-current-view-version"
    view_version_id: Int


def names_in(union: Any, field: str) -> frozenset[str]:
    """Return the names of a union's members, which `field` has."""
    return frozenset(member.model_fields[field].default for member in get_args(union))


def known_names(field: str, names: frozenset[str], what: str) -> BeforeValidator:
    """Return a validator that makes names lower case, as the reference does, and checks them."""
    message = f"unknown or missing {field}; known are: {', '.join(sorted(names))}"

    def with_known_name(value: Any) -> Any:
        name = value.get(field) if isinstance(value, dict) else getattr(value, field, None)
        if not isinstance(name, str) or name.lower() not in names:
            raise PydanticCustomError(f"unknown_{what}", message)
        return {**value, field: name.lower()} if isinstance(value, dict) else value

    return BeforeValidator(with_known_name)


AnyUpdate = (
    AssignUuid
    | UpgradeFormatVersion
    | AddSchema
    | SetCurrentSchema
    | AddSpec
    | SetDefaultSpec
    | AddSortOrder
    | SetDefaultSortOrder
    | AddSnapshot
    | SetSnapshotRef
    | RemoveSnapshots
    | RemoveSnapshotRef
    | SetLocation
    | SetProperties
    | RemoveProperties
    | SetStatistics
    | RemoveStatistics
    | SetPartitionStatistics
    | RemovePartitionStatistics
    | RemovePartitionSpecs
    | RemoveSchemas
    | AddEncryptionKey
    | RemoveEncryptionKey
    | AddViewVersion
    | SetCurrentViewVersion
)
ACTIONS = names_in(AnyUpdate, "action")
Update = Annotated[AnyUpdate, Field(discriminator="action"), known_names("action", ACTIONS, "update")]
