"""What a client requires of a table so that its updates stay right."""

from __future__ import annotations

from collections.abc import Sequence

from app.engine.change.requirements import (
    AssertCreate,
    AssertCurrentSchemaId,
    AssertDefaultSortOrderId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    AssertRefSnapshotId,
    AssertTableUuid,
    Requirement,
)
from app.engine.change.updates import (
    AddSchema,
    AddSpec,
    RemovePartitionSpecs,
    RemoveSchemas,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetSnapshotRef,
    Update,
)
from app.engine.model.refs import MAIN_BRANCH
from app.engine.model.table_metadata import TableMetadata


def requirements_for(base: TableMetadata | None, updates: Sequence[Update]) -> tuple[Requirement, ...]:
    """Return what a writer must require so that these updates, made for this base, stay right.

    Every returned requirement holds on `base`. Without a base, the updates create the table.
    """
    if base is None:
        return (AssertCreate(),)
    needed: dict[object, Requirement] = {"uuid": AssertTableUuid(uuid=base.uuid)}
    for update in updates:
        for key, requirement in _demands(base, update):
            needed.setdefault(key, requirement)
    return tuple(needed.values())


def _demands(base: TableMetadata, update: Update) -> list[tuple[object, Requirement]]:
    match update:
        case SetSnapshotRef(ref_name=name):
            return [(("ref", name), _assert_ref(base, name))]
        case AddSchema():
            return [("field-id", AssertLastAssignedFieldId(last_assigned_field_id=base.last_column_id))]
        case SetCurrentSchema():
            return [("schema", AssertCurrentSchemaId(current_schema_id=base.current_schema_id))]
        case AddSpec():
            last = base.last_partition_id or 0
            return [("partition-id", AssertLastAssignedPartitionId(last_assigned_partition_id=last))]
        case SetDefaultSpec():
            return [("spec", AssertDefaultSpecId(default_spec_id=base.default_spec_id))]
        case SetDefaultSortOrder():
            return [("order", AssertDefaultSortOrderId(default_sort_order_id=base.default_sort_order_id))]
        case RemovePartitionSpecs():
            spec = AssertDefaultSpecId(default_spec_id=base.default_spec_id)
            return [("spec", spec), *_other_branches(base)]
        case RemoveSchemas():
            schema = AssertCurrentSchemaId(current_schema_id=base.current_schema_id)
            return [("schema", schema), *_other_branches(base)]
    return []


def _other_branches(base: TableMetadata) -> list[tuple[object, Requirement]]:
    """Branches whose heads keep schemas and specs alive; main is covered by the current schema and spec."""
    return [
        (("ref", name), _assert_ref(base, name))
        for name, ref in base.snapshot_refs.items()
        if ref.is_branch and name != MAIN_BRANCH
    ]


def _assert_ref(base: TableMetadata, name: str) -> AssertRefSnapshotId:
    ref = base.snapshot_refs.get(name)
    return AssertRefSnapshotId(ref=name, snapshot_id=ref.snapshot_id if ref else None)
