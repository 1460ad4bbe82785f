"""What must still be true when a commit lands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Literal, assert_never

from pydantic import Field

from app.engine.change.updates import Change, known_names, names_in
from app.engine.model.document import INT, LONG, Int
from app.engine.model.ids import SchemaId, SnapshotId, SortOrderId, SpecId, TableUuid, is_same_uuid
from app.engine.model.table_metadata import TableMetadata
from app.engine.model.view_metadata import ViewMetadata
from app.errors import IcetowerError, InvalidUpdate, RequirementFailed


class AssertCreate(Change):
    """Nothing has this name yet."""

    type: Literal["assert-create"] = "assert-create"


class AssertTableUuid(Change):
    """It is this very table."""

    type: Literal["assert-table-uuid"] = "assert-table-uuid"
    uuid: TableUuid


class AssertViewUuid(Change):
    """It is this very view."""

    type: Literal["assert-view-uuid"] = "assert-view-uuid"
    uuid: TableUuid


class AssertRefSnapshotId(Change):
    """A ref names this snapshot, or does not exist."""

    type: Literal["assert-ref-snapshot-id"] = "assert-ref-snapshot-id"
    ref: str
    snapshot_id: Annotated[SnapshotId, LONG] | None = None


class AssertLastAssignedFieldId(Change):
    """No field id was assigned since."""

    type: Literal["assert-last-assigned-field-id"] = "assert-last-assigned-field-id"
    last_assigned_field_id: Int


class AssertCurrentSchemaId(Change):
    """The current schema is this one."""

    type: Literal["assert-current-schema-id"] = "assert-current-schema-id"
    current_schema_id: Annotated[SchemaId, INT]


class AssertLastAssignedPartitionId(Change):
    """No partition field id was assigned since."""

    type: Literal["assert-last-assigned-partition-id"] = "assert-last-assigned-partition-id"
    last_assigned_partition_id: Int


class AssertDefaultSpecId(Change):
    """The default spec is this one."""

    type: Literal["assert-default-spec-id"] = "assert-default-spec-id"
    default_spec_id: Annotated[SpecId, INT]


class AssertDefaultSortOrderId(Change):
    """The default sort order is this one."""

    type: Literal["assert-default-sort-order-id"] = "assert-default-sort-order-id"
    default_sort_order_id: Annotated[SortOrderId, INT]


Value = str | int | None
"""What a requirement is about: a uuid, an id, or nothing."""

AnyRequirement = (
    AssertCreate
    | AssertTableUuid
    | AssertViewUuid
    | AssertRefSnapshotId
    | AssertLastAssignedFieldId
    | AssertCurrentSchemaId
    | AssertLastAssignedPartitionId
    | AssertDefaultSpecId
    | AssertDefaultSortOrderId
)
KINDS = names_in(AnyRequirement, "type")
Requirement = Annotated[
    AnyRequirement, Field(discriminator="type"), known_names("type", KINDS, "requirement")
]


def is_create(requirements: Sequence[Requirement]) -> bool:
    """Return whether a commit creates its table.

    Raises:
        InvalidUpdate: there are other requirements beside `assert-create`, which no new table can meet.
    """
    others = sorted({item.type for item in requirements if not isinstance(item, AssertCreate)})
    if len(requirements) == 0 or len(others) == len({item.type for item in requirements}):
        return False
    if others:
        raise InvalidUpdate(
            f"Invalid create requirements: assert-create cannot stand beside {', '.join(others)}"
        )
    return True


Report = Callable[[int, IcetowerError | None], bool]
"""Called after each item with its position and error, if any; returns whether to continue."""


def raise_refusal(_position: int, error: IcetowerError | None) -> bool:
    """Raise the first error."""
    if error is not None:
        raise error
    return True


def check_requirements(
    base: TableMetadata | None, requirements: Sequence[Requirement], report: Report = raise_refusal
) -> None:
    """Check every requirement of a commit against a table; None if it does not exist.

    Raises:
        RequirementFailed: says what was expected and found; the commit must not happen.
        InvalidUpdate: a requirement that only views can meet.
    """
    for position, requirement in enumerate(requirements):
        try:
            _check(base, requirement)
        except IcetowerError as error:
            report(position, error)
        else:
            report(position, None)


def expected_and_found(base: TableMetadata | None, requirement: Requirement) -> tuple[Value, Value]:
    """Return the value that a requirement expects, and the table's own; None if it has none."""
    match requirement:
        case AssertCreate():
            return None, base.uuid if base else None
        case AssertTableUuid(uuid=uuid):
            return uuid, base.uuid if base else None
        case AssertViewUuid(uuid=uuid):
            return uuid, None
        case AssertRefSnapshotId(ref=name, snapshot_id=snapshot_id):
            ref = base.snapshot_refs.get(name) if base else None
            return snapshot_id, ref.snapshot_id if ref else None
        case AssertLastAssignedFieldId(last_assigned_field_id=expected):
            return expected, base.last_column_id if base else None
        case AssertCurrentSchemaId(current_schema_id=expected_schema):
            return expected_schema, base.current_schema_id if base else None
        case AssertLastAssignedPartitionId(last_assigned_partition_id=expected):
            return expected, base.last_partition_id or 0 if base else None
        case AssertDefaultSpecId(default_spec_id=expected_spec):
            return expected_spec, base.default_spec_id if base else None
        case AssertDefaultSortOrderId(default_sort_order_id=expected_order):
            return expected_order, base.default_sort_order_id if base else None
        case never:
            assert_never(never)


def _check(base: TableMetadata | None, requirement: Requirement) -> None:
    if isinstance(requirement, AssertViewUuid):
        raise InvalidUpdate(f"Cannot validate a table: {requirement.type} is for views")
    expected, found = expected_and_found(base, requirement)
    if expected == found:
        return
    if isinstance(expected, str) and isinstance(found, str) and is_same_uuid(expected, found):
        return
    raise RequirementFailed(_reason(base, requirement, expected, found), requirement, expected, found)


_NAMES = {
    "assert-last-assigned-field-id": "last assigned field id",
    "assert-current-schema-id": "current schema",
    "assert-last-assigned-partition-id": "last assigned partition id",
    "assert-default-spec-id": "default partition spec",
    "assert-default-sort-order-id": "default sort order",
}


def _reason(base: TableMetadata | None, requirement: Requirement, expected: Value, found: Value) -> str:
    match requirement:
        case AssertCreate():
            return "table already exists"
        case AssertTableUuid():
            return f"UUID does not match: expected {found} != {expected}"
        case AssertRefSnapshotId(ref=name):
            ref = base.snapshot_refs.get(name) if base else None
            if ref is None:
                return f"branch or tag {name} is missing, expected {expected}"
            if expected is None:
                return f"{ref.type} {name} was created concurrently"
            return f"{ref.type} {name} has changed: expected id {expected} != {found}"
        case _:
            return f"{_NAMES[requirement.type]} changed: expected id {expected} != {found}"


def check_view_requirements(base: ViewMetadata, requirements: Sequence[Requirement]) -> None:
    """Check every requirement of a view commit against the view.

    Raises:
        RequirementFailed: it is another view.
        InvalidUpdate: a requirement that only tables can meet.
    """
    for requirement in requirements:
        if not isinstance(requirement, AssertViewUuid):
            raise InvalidUpdate(f"Cannot validate a view: {requirement.type} is for tables")
        if requirement.uuid.lower() != base.uuid.lower():
            reason = f"view UUID does not match: expected {base.uuid} != {requirement.uuid}"
            raise RequirementFailed(reason, requirement, requirement.uuid, base.uuid)
