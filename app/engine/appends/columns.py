"""Which column of a table each column of a file is, and whether it can be read as that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from app.engine.appends.footers import FileColumn, Footer, LeafFacts, Shape
from app.engine.appends.name_mapping import NAME_MAPPING, MappedName, name_mapping_of
from app.engine.model.data_types.types import (
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
    Type,
    child_fields,
)
from app.engine.model.ids import FieldId
from app.engine.model.table_metadata import TableMetadata
from app.errors import InvalidDataFile

_SHAPES = {StructType: Shape.STRUCT, ListType: Shape.LIST, MapType: Shape.MAP, PrimitiveType: Shape.LEAF}


@dataclass(frozen=True, slots=True)
class MappedLeaf:
    """The leaf of a file that is a column of the table."""

    type: PrimitiveType
    """The column's type in the table."""
    facts: LeafFacts
    is_repeated: bool
    """Whether it is inside a list or map: a row may have many values, or none."""


@dataclass(slots=True)
class MappedColumns:
    """The columns of a file that are columns of the table, by field id."""

    leaves: dict[FieldId, MappedLeaf] = field(default_factory=dict)
    missing: dict[FieldId, str] = field(default_factory=dict)
    """Required columns that the file does not have, with their names."""


def map_columns(path: str, footer: Footer, metadata: TableMetadata) -> MappedColumns:
    """Return which columns of the table a file has.

    Field ids decide if the file has any. Otherwise the table's name mapping does, or, if it has none, the names of
    its columns.

    Raises:
        InvalidDataFile: a column is not in the table, is of a type that cannot be read as the column's, or may have
            nulls where the table has none.

    Spec: #column-projection
    """
    find: _Find = _find_by_id
    by = ""
    if not footer.has_field_ids:
        by = f" by {NAME_MAPPING}" if NAME_MAPPING in metadata.properties else ""
        try:
            find = _ByName(name_mapping_of(metadata)).find
        except ValueError as error:
            raise InvalidDataFile(
                path, f"it has no field ids, and table property {NAME_MAPPING} cannot be read: {error}"
            ) from error
    mapping = _Mapping(path, footer.record_count, by)
    mapping.match(footer.columns, metadata.current_schema.fields, _Place("", False, find))
    return mapping.found


_Find = Callable[[FileColumn], tuple[int | None, "_Find"]]
"""Returns the field id of a column, and how to find those inside it."""


def _find_by_id(column: FileColumn) -> tuple[int | None, _Find]:
    return column.field_id, _find_by_id


@dataclass(frozen=True, slots=True)
class _ByName:
    names: Mapping[str, MappedName]

    def find(self, column: FileColumn) -> tuple[int | None, _Find]:
        mapped = self.names.get(column.name)
        if mapped is None:
            return None, _find_by_id
        return mapped.field_id, _ByName(mapped.inner).find


@dataclass(frozen=True, slots=True)
class _Place:
    """Where columns are compared: what they are inside of, and how ids are found there."""

    prefix: str
    is_repeated: bool
    find: _Find


class _Mapping:
    def __init__(self, path: str, record_count: int, by: str) -> None:
        self.found = MappedColumns()
        self._by = by
        self._path = path
        self._record_count = record_count

    def match(self, columns: Sequence[FileColumn], fields: Sequence[NestedField], place: _Place) -> None:
        by_id = {item.id: item for item in fields}
        seen: dict[int, str] = {}
        for column in columns:
            name = place.prefix + column.name
            field_id, inner = place.find(column)
            wanted = None if field_id is None else by_id.get(FieldId(field_id))
            if wanted is None:
                given = f" (field id {field_id})" if field_id is not None else self._by
                raise InvalidDataFile(self._path, f"the table has no column for its column {name}{given}")
            if wanted.id in seen:
                raise InvalidDataFile(
                    self._path, f"its columns {seen[wanted.id]} and {name} are both column {wanted.name}"
                )
            seen[wanted.id] = name
            self._match_one(name, column, wanted, _Place(name + ".", place.is_repeated, inner))
        for item in fields:
            # A default says what rows of older files have.
            if item.id not in seen and item.required and item.initial_default is None:
                self.found.missing[item.id] = place.prefix + item.name

    def _match_one(self, name: str, column: FileColumn, wanted: NestedField, place: _Place) -> None:
        self._check_type(name, column, wanted.type)
        if wanted.required and column.is_optional and self._may_have_nulls(column):
            raise InvalidDataFile(
                self._path, f"its column {name} may have nulls, and in the table it is required"
            )
        if isinstance(wanted.type, PrimitiveType):
            assert column.facts is not None
            self.found.leaves[wanted.id] = MappedLeaf(wanted.type, column.facts, place.is_repeated)
            return
        children: Sequence[FileColumn] = column.children
        repeated = place.is_repeated or not isinstance(wanted.type, StructType)
        if not isinstance(wanted.type, StructType):
            # Writers call the parts of lists and maps what they like; a name mapping has the spec's names.
            names = [item.name for item in child_fields(wanted.type)]
            children = [replace(item, name=part) for part, item in zip(names, children, strict=True)]
        self.match(children, child_fields(wanted.type), _Place(place.prefix, repeated, place.find))

    def _check_type(self, name: str, column: FileColumn, wanted: Type) -> None:
        shape = _SHAPES[type(wanted)]
        if column.shape is not shape:
            raise InvalidDataFile(
                self._path, f"its column {name} is {column.shape.value}, in the table it is {shape.value}"
            )
        if isinstance(wanted, PrimitiveType) and (
            column.type is None or not is_readable_as(column.type, wanted, is_annotated=column.is_annotated)
        ):
            raise InvalidDataFile(
                self._path,
                f"its column {name} of type {column.type_text} cannot be read as {wanted}, which the table has",
            )

    def _may_have_nulls(self, column: FileColumn) -> bool:
        """Say whether a column may have nulls: a leaf counts those of all that it is inside of."""
        if self._record_count == 0:
            return False
        return all(leaf.facts is None or leaf.facts.null_count != 0 for leaf in column.leaves())


def is_readable_as(found: PrimitiveType, wanted: PrimitiveType, *, is_annotated: bool = False) -> bool:
    """Say whether every reader can read values of a file as a column's type.

    Args:
        is_annotated: as `FileColumn.is_annotated` of the values in the file.

    A date as a timestamp is left out: the spec allows that promotion, but engines do not read it yet.

    Spec: #schema-evolution
    """
    if found == wanted:
        return True
    match found.kind, wanted.kind:
        case ("int", "long"):
            return not is_annotated
        case ("float", "double"):
            return True
        case ("decimal", "decimal"):
            return found.scale == wanted.scale and (found.precision or 0) <= (wanted.precision or 0)
    return False
