"""Which changes of a schema the table format allows: promotions, and what written data forbids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.engine.diff.schema_changes import (
    ColumnAdded,
    ColumnDropped,
    ColumnRegrouped,
    ColumnRenamed,
    ColumnsReordered,
    DefaultChanged,
    DocChanged,
    IdentifierFieldsChanged,
    RequiredChanged,
    SchemaChange,
    TypeChanged,
    schema_changes,
)
from app.engine.model.ids import FieldId
from app.engine.model.partition_spec import PartitionSpec
from app.engine.model.schema import Column, Schema
from app.engine.model.transforms import find_transform
from app.engine.model.types import MapType, PrimitiveType, StructType, Type

_KEEPS_VALUE = frozenset({"year", "month", "day", "void"})
"""Transforms with the same result for a date and for the midnight of that date."""


@dataclass(frozen=True, slots=True)
class IncompatibleChange:
    """A change that the table format forbids, and why."""

    change: SchemaChange
    reason: str


def incompatible_changes(
    old: Schema, new: Schema, format_version: int, specs: Sequence[PartitionSpec] = ()
) -> tuple[IncompatibleChange, ...]:
    """Return the changes after which data written with the old schema could not be read with the new one.

    Args:
        format_version: later versions allow more.
        specs: the table's partition specs; a column whose partition values would change keeps its type.

    Spec: #schema-evolution
    """
    sources: dict[int, set[str]] = {}
    for spec in specs:
        for field in spec.fields:
            transform = find_transform(field.transform)
            sources.setdefault(field.source_id, set()).add(transform.name if transform else field.transform)
    found = []
    for change in schema_changes(old, new):
        reason = _objection(old, new, change, format_version, sources)
        if reason is not None:
            found.append(IncompatibleChange(change, reason))
    return tuple(found)


def can_promote(old: Type, new: Type, format_version: int) -> bool:
    """Tell whether values of the old type can be read as the new one.

    Spec: #schema-evolution
    """
    if not isinstance(old, PrimitiveType):
        return False
    if old.kind == "unknown":
        return format_version >= 3
    if not isinstance(new, PrimitiveType):
        return False
    match old.kind, new.kind:
        case ("int", "long") | ("float", "double"):
            return True
        case ("date", "timestamp" | "timestamp_ns"):
            return format_version >= 3
        case ("decimal", "decimal"):
            return old.scale == new.scale and (new.precision or 0) > (old.precision or 0)
    return False


def _objection(
    old: Schema, new: Schema, change: SchemaChange, format_version: int, sources: dict[int, set[str]]
) -> str | None:
    match change:
        case ColumnsReordered() | IdentifierFieldsChanged() | ColumnRenamed() | DocChanged():
            return None
        case ColumnRegrouped():
            return f"{change.name} cannot move into or out of a struct, list or map"
    in_key = _enclosing_map_key(old, change.field_id) or _enclosing_map_key(new, change.field_id)
    if in_key and not (isinstance(change, DefaultChanged) and change.kind == "write-default"):
        return f"{change.name} is part of a map key: {in_key} must stay equal to what was written"
    match change:
        case ColumnAdded():
            return _objection_to_added(new.columns[change.field_id], format_version)
        case TypeChanged():
            return _objection_to_type(old, new, change, format_version, sources.get(change.field_id, set()))
        case RequiredChanged(required=True):
            return f"{change.name} may hold nulls already"
        case DefaultChanged(kind="initial-default"):
            return _objection_to_default(old.columns[change.field_id], new.columns[change.field_id])
        case ColumnDropped(field_id=field_id):
            return _objection_to_dropped(old.columns[field_id])
    return None


def _enclosing_map_key(schema: Schema, field_id: FieldId) -> str | None:
    """Return the name of the outermost map key that a column is, or is inside of."""
    found = None
    column = schema.columns.get(field_id)
    while column is not None and column.parent is not None:
        above = column.parent.field.type
        if isinstance(above, MapType) and above.key_id == column.field.id:
            found = column.name
        column = column.parent
    return found


def _objection_to_added(column: Column, format_version: int) -> str | None:
    if not _is_struct_member(column):
        return f"{column.name} cannot replace the element, key or value that was there"
    if not column.field.required:
        return None
    if format_version < 3:
        return f"{column.name} is required, but rows written before have no value for it"
    if column.field.initial_default is None:
        return f"{column.name} is required, but has no initial-default for rows written before"
    return None


def _objection_to_dropped(column: Column) -> str | None:
    if _is_struct_member(column):
        return None
    return f"{column.name} cannot be dropped: a list needs its element, a map its key and value"


def _is_struct_member(column: Column) -> bool:
    return column.parent is None or isinstance(column.parent.field.type, StructType)


def _objection_to_type(
    old: Schema, new: Schema, change: TypeChanged, format_version: int, transforms: set[str]
) -> str | None:
    before, after = old.columns[change.field_id].field.type, new.columns[change.field_id].field.type
    if not can_promote(before, after, format_version):
        return f"{change.name} cannot change from {change.old_type} to {change.new_type} in v{format_version}"
    is_date = isinstance(before, PrimitiveType) and before.kind == "date"
    if is_date and transforms - _KEEPS_VALUE:
        names = ", ".join(sorted(transforms - _KEEPS_VALUE))
        return f"{change.name} is partitioned by {names}, whose values would change with the type"
    return None


def _objection_to_default(before: Column, after: Column) -> str | None:
    kind = before.field.type
    # The same value has another form in another type: a date becomes a timestamp.
    if isinstance(kind, PrimitiveType) and kind.kind == "date" and kind != after.field.type:
        return None
    return f"{before.name} has rows that were read with its initial-default, which cannot change"
