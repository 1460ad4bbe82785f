"""Schemas: a table's columns, looked up by id and by name, and what makes them valid."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Annotated, Literal, assert_never

from app.engine.model.data_types.json_values import from_json_value, is_default_value
from app.engine.model.data_types.types import (
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
    Type,
    child_fields,
    flaw_of_parameters,
    is_primitive,
)
from app.engine.model.data_types.values import from_bytes, to_bytes
from app.engine.model.document import FIRST_ERROR, INT, Document, Int, JsonValue
from app.engine.model.format_versions import FORMAT_VERSIONS
from app.engine.model.ids import FieldId, SchemaId
from app.errors import InvalidMetadata, InvalidUpdate

LAST_FIELD_ID = 2**31 - 1 - 200
"""Ids above are reserved for columns that are not in a schema, such as `_file` and `_pos`."""
MAX_TYPE_LEVELS = 40
"""A struct in a struct is three levels of JSON, and clients' parsers give up at 200."""
MOST_IN_NAMES = 16 << 20
"""Characters of all dotted names: that of a struct is in those of all columns inside it, however long it is."""
_TOO_LONG = (
    "the names of its columns, with those that they are inside of, have more than "
    f"{MOST_IN_NAMES} characters together"
)


@dataclass(frozen=True, slots=True)
class Column:
    """A field and its place: its dotted name, short name for queries, and parent column."""

    field: NestedField
    name: str
    short_name: str
    parent: Column | None
    position: int
    """Among the fields of its parent, or of the schema."""

    @property
    def outer(self) -> Iterator[Column]:
        """The columns that it is inside of, from its parent outwards."""
        place = self.parent
        while place is not None:
            yield place
            place = place.parent

    @property
    def is_repeated(self) -> bool:
        """Whether a row may have any number of its values: it is inside of a list or a map."""
        return any(isinstance(outer.field.type, ListType | MapType) for outer in self.outer)


def _highest_given_id(fields: tuple[NestedField, ...]) -> int:
    highest = 0
    for field in fields:
        if highest < field.id <= LAST_FIELD_ID:
            highest = field.id
        inner = child_fields(field.type)
        if inner:
            highest = max(highest, _highest_given_id(inner))
    return highest


class Schema(Document):
    """The columns of a table at one time.

    Spec: #schemas-and-data-types
    """

    type: Literal["struct"]
    schema_id: Annotated[SchemaId, INT] = SchemaId(0)
    identifier_field_ids: Annotated[tuple[Int, ...], FIRST_ERROR] | None = None
    fields: Annotated[tuple[NestedField, ...], FIRST_ERROR]

    @cached_property
    def columns(self) -> dict[FieldId, Column]:
        """Every column by field id, parents before children.

        Raises:
            InvalidMetadata: names are too long, as in metadata that was made elsewhere.
        """
        found: dict[FieldId, Column] = {}
        in_names = 0

        def visit(above: Type, prefix: str, short_prefix: str, parent: Column | None) -> None:
            nonlocal in_names
            for position, field in enumerate(child_fields(above)):
                column = Column(field, prefix + field.name, short_prefix + field.name, parent, position)
                in_names += len(column.name)
                if in_names > MOST_IN_NAMES:
                    raise InvalidMetadata(f"Invalid schema {self.schema_id}: {_TOO_LONG}")
                found.setdefault(field.id, column)
                # For lists of structs, queries write `points.x`, not `points.element.x`. The same goes for map values.
                skipped = (
                    isinstance(field.type, StructType)
                    and isinstance(above, (ListType, MapType))
                    and not (isinstance(above, MapType) and field.id == above.key_id)
                )
                below = short_prefix if skipped else column.short_name + "."
                visit(field.type, column.name + ".", below, column)

        visit(StructType(type="struct", fields=self.fields), "", "", None)
        return found

    @cached_property
    def ids_by_name(self) -> dict[str, FieldId]:
        """Field ids by dotted name; list elements and map values also by their short names."""
        names = {column.name: field_id for field_id, column in self.columns.items()}
        for field_id, column in self.columns.items():
            names.setdefault(column.short_name, field_id)
        return names

    @cached_property
    def names_alike(self) -> dict[str, dict[str, FieldId]]:
        """The names of `ids_by_name` by what they are in lower case."""
        found: dict[str, dict[str, FieldId]] = {}
        for name, field_id in self.ids_by_name.items():
            found.setdefault(name.lower(), {})[name] = field_id
        return found

    @property
    def highest_field_id(self) -> int:
        return max((*self.columns, *(self.identifier_field_ids or ())), default=0)

    @property
    def highest_given_id(self) -> int:
        """The highest id of a column that is not reserved; found without making `columns`."""
        return _highest_given_id(self.fields)

    def same_columns(self, other: Schema) -> bool:
        """Return whether two schemas differ at most in their id."""
        return self.meaning == other.meaning

    @cached_property
    def meaning(self) -> tuple[str, tuple[int, ...]]:
        """What equal schemas have in common: all but their id."""
        # Comparing text is fast; a thousand models with a thousand columns each would take minutes.
        identifiers = sorted(set(self.identifier_field_ids or ()))
        return self.model_dump_json(include={"fields"}, exclude_none=True), tuple(identifiers)

    @cached_property
    def fingerprint(self) -> str:
        """A short text for the meaning, which may be very long."""
        return sha256(repr(self.meaning).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def with_id(self, schema_id: int) -> Schema:
        return self.replace(schema_id=SchemaId(schema_id))


def check_schema(schema: Schema) -> None:
    """Check the rules for schemas of any format version.

    Raises:
        InvalidUpdate: a field id or name occurs twice, names are too long, a required field has no type yet, no client
            can read a type's parameters, a default is not of its column's type, or an identifier field cannot
            identify rows.

    Spec: #identifier-field-ids
    """
    seen_ids: set[int] = set()
    seen_names: set[str] = set()
    in_names = 0

    def visit(children: tuple[NestedField, ...], prefix: str, level: int) -> None:
        nonlocal in_names
        if children and level > MAX_TYPE_LEVELS:
            raise InvalidUpdate(f"Invalid schema: types are nested more than {MAX_TYPE_LEVELS} levels deep")
        for field in children:
            name = prefix + field.name
            in_names += len(name)
            if in_names > MOST_IN_NAMES:
                raise InvalidUpdate(f"Invalid schema: {_TOO_LONG}")
            if field.id in seen_ids:
                raise InvalidUpdate(f"Invalid schema: field id {field.id} is used more than once ({name})")
            if name in seen_names:
                raise InvalidUpdate(f"Invalid schema: multiple fields for name {name}")
            seen_ids.add(field.id)
            seen_names.add(name)
            if field.required and isinstance(field.type, PrimitiveType) and field.type.kind == "unknown":
                raise InvalidUpdate(f"Cannot create required field with unknown type: {name}")
            flaw = flaw_of_parameters(field.type) if isinstance(field.type, PrimitiveType) else None
            if flaw is not None:
                raise InvalidUpdate(f"Invalid type for {name}: {str(field.type)[:100]}: {flaw}")
            for default, value in (("initial", field.initial_default), ("write", field.write_default)):
                if value is None:
                    continue
                if not isinstance(field.type, PrimitiveType):
                    # The spec allows them, but no client reads them: it could not read the table at all.
                    raise InvalidUpdate(f"Invalid {default} default for {name}: a nested type can have none")
                if not is_default_value(field.type, value):
                    raise InvalidUpdate(
                        f"Invalid {default} default for {name}: {str(value)[:100]!r} is not a single value of its type"
                    )
            visit(child_fields(field.type), name + ".", level + 1)

    visit(schema.fields, "", 0)
    for field_id in schema.identifier_field_ids or ():
        _check_identifier_field(schema, FieldId(field_id))


def _check_identifier_field(schema: Schema, field_id: FieldId) -> None:
    column = schema.columns.get(field_id)
    if column is None:
        raise InvalidUpdate(f"Cannot add fieldId {field_id} as an identifier field: field does not exist")
    intro = f"Cannot add field {column.name} as an identifier field"
    field = column.field
    if not is_primitive(field.type):
        raise InvalidUpdate(f"{intro}: not a primitive type field")
    if str(field.type) in ("float", "double"):
        raise InvalidUpdate(f"{intro}: must not be float or double field")
    if not field.required:
        raise InvalidUpdate(f"{intro}: not a required field")
    for parent in column.outer:
        if not isinstance(parent.field.type, StructType):
            raise InvalidUpdate(f"{intro}: must not be nested in {parent.name}, a list or map")
        if not parent.field.required:
            raise InvalidUpdate(f"{intro}: must not be nested in an optional field {parent.name}")


def check_format_version(schema: Schema, format_version: int) -> None:
    """Check that this format version has the types and defaults of a schema.

    Raises:
        InvalidUpdate: lists the columns that need a later version.
    """
    problems: list[str] = []
    for column in schema.columns.values():
        kind = column.field.type
        if isinstance(kind, PrimitiveType) and format_version < kind.min_format_version:
            problems.append(
                f"Invalid type for {column.name}: {kind} is not supported until v{kind.min_format_version}"
            )
        has_default = column.field.initial_default is not None
        if has_default and not FORMAT_VERSIONS[format_version].has_default_values:
            problems.append(
                f"Invalid initial default for {column.name}: "
                f"non-null default ({column.field.initial_default}) is not supported until v3"
            )
    if problems:
        raise InvalidUpdate(f"Invalid schema for v{format_version}:\n- " + "\n- ".join(problems))


def check_initial_defaults(before: Schema, after: Schema) -> None:
    """Check that columns keep what rows of older files have in them.

    A client that does not know defaults leaves them out when it adds a column or changes another one.

    Raises:
        InvalidUpdate: names the column and both defaults.

    Spec: #schema-evolution
    """
    for field_id, column in after.columns.items():
        older = before.columns.get(field_id)
        if older is None:
            continue
        was, now = older.field.initial_default, column.field.initial_default
        found, kind = older.field.type, column.field.type
        if was == now or not isinstance(found, PrimitiveType) or not isinstance(kind, PrimitiveType):
            continue
        if was is None or now is None or not _is_one_value(found, was, kind, now):
            raise InvalidUpdate(
                f"Cannot change the initial default of {column.name} from {str(was)[:100]} to {str(now)[:100]}: "
                "it is what rows of older files have"
            )


def _is_one_value(found: PrimitiveType, was: JsonValue, kind: PrimitiveType, now: JsonValue) -> bool:
    """Return whether a default is the same one where its column has been widened."""
    try:
        widened = from_bytes(kind, to_bytes(found, from_json_value(found, was)))
        return bool(widened == from_json_value(kind, now))
    except ValueError:
        return False  # tables of other catalogs may have defaults that are none


def renumber(schema: Schema, next_id: Callable[[], int]) -> tuple[Schema, dict[int, int]]:
    """Return the schema with fresh field ids and the map from old ids to new.

    All fields of one struct level get their ids before any of their children do.

    Spec: #column-projection (ids are what identifies a column)
    """
    renumbered: dict[int, int] = {}

    def fresh(old: int) -> FieldId:
        renumbered[old] = next_id()
        return FieldId(renumbered[old])

    def visit_fields(fields: tuple[NestedField, ...]) -> tuple[NestedField, ...]:
        ids = [fresh(field.id) for field in fields]
        return tuple(
            field.replace(id=field_id, type=visit(field.type))
            for field, field_id in zip(fields, ids, strict=True)
        )

    def visit(kind: Type) -> Type:
        match kind:
            case PrimitiveType():
                return kind
            case StructType():
                return kind.replace(fields=visit_fields(kind.fields))
            case ListType():
                element_id = fresh(kind.element_id)
                return kind.replace(element_id=element_id, element=visit(kind.element))
            case MapType():
                key_id, value_id = fresh(kind.key_id), fresh(kind.value_id)
                key, value = visit(kind.key), visit(kind.value)
                return kind.replace(key_id=key_id, value_id=value_id, key=key, value=value)
            case never:
                assert_never(never)

    fields = visit_fields(schema.fields)
    identifiers = schema.identifier_field_ids
    if identifiers is not None:
        identifiers = tuple(renumbered[field_id] for field_id in identifiers)
    return schema.replace(fields=fields, identifier_field_ids=identifiers), renumbered
