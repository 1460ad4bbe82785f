"""The difference of two schemas, as one value for each change of a column."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

from app.engine.model.data_types.types import ListType, MapType, PrimitiveType, StructType, Type
from app.engine.model.ids import FieldId
from app.engine.model.schema import Column, Schema


@dataclass(frozen=True, slots=True)
class ColumnAdded:
    """A column that the old schema does not have; columns inside it come with it."""

    field_id: FieldId
    name: str
    type: str
    required: bool


@dataclass(frozen=True, slots=True)
class ColumnDropped:
    """A column that the new schema does not have; columns inside it go with it."""

    field_id: FieldId
    name: str
    type: str


@dataclass(frozen=True, slots=True)
class ColumnRenamed:
    """A column with a new name of its own; `name` is its dotted name in the old schema."""

    field_id: FieldId
    name: str
    new_name: str


@dataclass(frozen=True, slots=True)
class ColumnRegrouped:
    """A column that moved into another struct, list or map; None is the table itself."""

    field_id: FieldId
    name: str
    old_parent_id: FieldId | None
    new_parent_id: FieldId | None


@dataclass(frozen=True, slots=True)
class ColumnsReordered:
    """Columns of one struct in another order, without added ones; None is the table itself."""

    parent_id: FieldId | None
    old_order: tuple[FieldId, ...]
    new_order: tuple[FieldId, ...]


@dataclass(frozen=True, slots=True)
class TypeChanged:
    """A column with another type; changes inside a struct, list or map are values of their own."""

    field_id: FieldId
    name: str
    old_type: str
    new_type: str


@dataclass(frozen=True, slots=True)
class RequiredChanged:
    """A column that may be null and might not before, or the other way round."""

    field_id: FieldId
    name: str
    required: bool


@dataclass(frozen=True, slots=True)
class DocChanged:
    """A column with another description."""

    field_id: FieldId
    name: str


@dataclass(frozen=True, slots=True)
class DefaultChanged:
    """A column with another default; `kind` is `initial-default` or `write-default`."""

    field_id: FieldId
    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class IdentifierFieldsChanged:
    """Other columns identify a row."""

    old_ids: frozenset[int]
    new_ids: frozenset[int]


SchemaChange = (
    ColumnAdded
    | ColumnDropped
    | ColumnRenamed
    | ColumnRegrouped
    | ColumnsReordered
    | TypeChanged
    | RequiredChanged
    | DocChanged
    | DefaultChanged
    | IdentifierFieldsChanged
)


def schema_changes(old: Schema, new: Schema) -> tuple[SchemaChange, ...]:
    """Return the changes from an old schema to a new one, in the order of the columns.

    Columns are the same if their ids are; schema ids and fields that are not known do not count.

    Spec: #schema-evolution
    """
    return (
        *_dropped(old, new),
        *(change for field_id in new.columns for change in _changes_of_column(old, new, field_id)),
        *_reordered(old, new),
        *_identifier_changes(old, new),
    )


def _dropped(old: Schema, new: Schema) -> Iterator[SchemaChange]:
    for field_id, column in old.columns.items():
        if field_id in new.columns:
            continue
        if column.parent is None or _still_holds(new, column.parent):
            yield ColumnDropped(field_id, column.name, shown_type(column.field.type))


def _still_holds(schema: Schema, parent: Column) -> bool:
    """Return whether the other schema has a parent of the same kind to compare children with."""
    other = schema.columns.get(parent.field.id)
    return other is not None and is_same_shape(parent.field.type, other.field.type)


def _changes_of_column(old: Schema, new: Schema, field_id: FieldId) -> Iterator[SchemaChange]:
    after = new.columns[field_id]
    before = old.columns.get(field_id)
    if before is None:
        if after.parent is None or _still_holds(old, after.parent):
            yield ColumnAdded(field_id, after.name, shown_type(after.field.type), after.field.required)
        return
    was, now = before.field, after.field
    if _parent_id(before) != _parent_id(after):
        yield ColumnRegrouped(field_id, before.name, _parent_id(before), _parent_id(after))
    if was.name != now.name:
        yield ColumnRenamed(field_id, before.name, now.name)
    if not is_same_shape(was.type, now.type):
        yield TypeChanged(field_id, before.name, shown_type(was.type), shown_type(now.type))
    if was.required != now.required:
        yield RequiredChanged(field_id, before.name, now.required)
    if was.doc != now.doc:
        yield DocChanged(field_id, before.name)
    if was.initial_default != now.initial_default:
        yield DefaultChanged(field_id, before.name, "initial-default")
    if was.write_default != now.write_default:
        yield DefaultChanged(field_id, before.name, "write-default")


def _parent_id(column: Column) -> FieldId | None:
    return column.parent.field.id if column.parent else None


def _reordered(old: Schema, new: Schema) -> Iterator[SchemaChange]:
    before, after = _kept_orders(old, new), _kept_orders(new, old)
    for parent_id, order in before.items():
        if order != after[parent_id]:
            yield ColumnsReordered(parent_id, tuple(order), tuple(after[parent_id]))


def _kept_orders(schema: Schema, other: Schema) -> dict[FieldId | None, list[FieldId]]:
    """Return for each struct the columns that are in the same struct of the other schema."""
    found: dict[FieldId | None, list[FieldId]] = {}
    for field_id, column in schema.columns.items():
        twin = other.columns.get(field_id)
        if twin is not None and _parent_id(twin) == _parent_id(column):
            found.setdefault(_parent_id(column), []).append(field_id)
    return found


def _identifier_changes(old: Schema, new: Schema) -> Iterator[SchemaChange]:
    before, after = frozenset(old.identifier_field_ids or ()), frozenset(new.identifier_field_ids or ())
    if before != after:
        yield IdentifierFieldsChanged(before, after)


def is_same_shape(one: Type, other: Type) -> bool:
    """Return whether two types are equal, or both structs, both lists or both maps."""
    match one, other:
        case (PrimitiveType(), PrimitiveType()):
            return one == other
        case (StructType(), StructType()) | (ListType(), ListType()) | (MapType(), MapType()):
            return True
    return False


def shown_type(kind: Type) -> str:
    """Return a type as one line for people, nested ones too."""
    match kind:
        case PrimitiveType():
            return kind.text
        case StructType():
            return f"struct<{', '.join(f'{field.name}: {shown_type(field.type)}' for field in kind.fields)}>"
        case ListType():
            return f"list<{shown_type(kind.element)}>"
        case MapType():
            return f"map<{shown_type(kind.key)}, {shown_type(kind.value)}>"
        case never:
            assert_never(never)
