"""Partition specs: how rows are grouped into files, and how a spec is bound to a schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Any, Self, TypeAlias

from pydantic import Field, model_validator

from app.engine.model.data_types.transforms import Transform, find_transform, keeps_values, parse_transform
from app.engine.model.data_types.types import PrimitiveType
from app.engine.model.document import FIRST_ERROR, INT, Document, Int
from app.engine.model.format_versions import FORMAT_VERSIONS
from app.engine.model.ids import FieldId, SpecId
from app.engine.model.schema import LAST_FIELD_ID, Schema
from app.errors import InvalidUpdate

FIRST_PARTITION_FIELD_ID = 1000
UNPARTITIONED_LAST_ID = FIRST_PARTITION_FIELD_ID - 1
LONGEST_NAME = 1_000
"""Characters of a partition field's name: answers repeat it for each file."""
FieldMeaning: TypeAlias = tuple[FieldId, str]
"""The source column and the transform of a partition field."""


class SourcedField(Document):
    """A field made of one column; v3's `source-ids` of one element is read as `source-id`."""

    @model_validator(mode="before")
    @classmethod
    def _single_source(cls, value: Any) -> Any:
        sources = value.get("source-ids") if isinstance(value, dict) else None
        if not isinstance(sources, list) or "source-id" in value:
            return value
        if len(sources) != 1:
            raise ValueError("transforms of several source columns are not supported")
        others = {name: item for name, item in value.items() if name != "source-ids"}
        return others | {"source-id": sources[0]}


class UnboundPartitionField(SourcedField):
    """A partition field as a client sends it: the id is optional."""

    name: Annotated[str, Field(min_length=1)]
    transform: str
    source_id: Annotated[FieldId, INT]
    field_id: Annotated[FieldId, INT] | None = None


class PartitionField(UnboundPartitionField):
    """One value of a partition tuple.

    Spec: #partitioning
    """

    field_id: Annotated[FieldId, INT]

    @property
    def is_void(self) -> bool:
        """Whether all its values are null: what version 1 makes of a field that is removed."""
        transform = find_transform(self.transform)
        return transform is not None and transform.name == "void"

    @property
    def meaning(self) -> FieldMeaning:
        """What fields have in common that have equal values; names do not count."""
        return self.source_id, self.transform.lower()


class PartitionSpec(Document):
    """An ordered list of partition fields, named by its id."""

    spec_id: Annotated[SpecId, INT]
    fields: Annotated[tuple[PartitionField, ...], FIRST_ERROR]

    @model_validator(mode="before")
    @classmethod
    def _numbered(cls, value: Any) -> Any:
        if isinstance(value, dict) and isinstance(value.get("fields"), list):
            return {**value, "fields": number_fields(value["fields"])}
        return value

    @property
    def is_unpartitioned(self) -> bool:
        return all(field.is_void for field in self.fields)

    @property
    def highest_field_id(self) -> int:
        return max((field.field_id for field in self.fields), default=UNPARTITIONED_LAST_ID)

    def same_fields(self, other: Self) -> bool:
        """Return whether two specs partition in the same way; ids do not count."""
        return self.meaning == other.meaning

    @cached_property
    def meaning(self) -> tuple[tuple[int, str, str], ...]:
        """What equal specs have in common: all but their ids."""
        return tuple((field.source_id, field.name, field.transform.lower()) for field in self.fields)


class UnboundPartitionSpec(Document):
    """A partition spec as a client sends it."""

    spec_id: Int | None = None
    fields: Annotated[tuple[UnboundPartitionField, ...], FIRST_ERROR]


def number_fields(fields: list[Any]) -> list[Any]:
    """Return the fields of a spec, numbered from 1000 if an early v1 writer left out all ids."""
    if any(not isinstance(field, dict) or "field-id" in field for field in fields):
        return fields
    return [
        {**field, "field-id": FIRST_PARTITION_FIELD_ID + position} for position, field in enumerate(fields)
    ]


def ids_by_meaning(spec: PartitionSpec) -> Iterator[tuple[FieldMeaning, FieldId]]:
    """Yield the fields of a spec with their ids; those that are void mean nothing."""
    for field in spec.fields:
        if not field.is_void:
            yield field.meaning, field.field_id


def unpartitioned_specs(specs: Iterable[PartitionSpec]) -> frozenset[SpecId]:
    """Return the specs whose equality deletes apply to every partition."""
    return frozenset(spec.spec_id for spec in specs if spec.is_unpartitioned)


def bind_spec(
    unbound: UnboundPartitionSpec,
    schema: Schema,
    format_version: int,
    spec_id: int,
    *,
    known_ids: Mapping[FieldMeaning, FieldId] = MappingProxyType({}),
    last_field_id: int = UNPARTITIONED_LAST_ID,
) -> PartitionSpec:
    """Return the spec, checked against the schema, with ids for the fields that have none.

    A field that an earlier spec has keeps its id, and others go on from the last one: readers refuse a table in which
    one id means two fields. Version 1 does not track ids: there each spec counts from 1000.

    Args:
        known_ids: the ids of the table's partition fields.
        last_field_id: the highest field id of the table so far.

    Raises:
        InvalidUpdate: a source column is missing or has the wrong type, a name is taken or too long, or a v1 table
            needs other ids.
    """
    fields: list[PartitionField] = []
    tracks_ids = FORMAT_VERSIONS[format_version].tracks_partition_field_ids
    highest_id = max(UNPARTITIONED_LAST_ID, last_field_id if tracks_ids else 0)
    taken = {field.field_id for field in unbound.fields if field.field_id is not None}
    for field in unbound.fields:
        if len(field.name) > LONGEST_NAME:
            raise InvalidUpdate(
                f"Cannot add partition field {field.name[:100]}…: its name has {len(field.name)} characters, more than "
                f"{LONGEST_NAME}"
            )
        transform = str(parse_sent_transform(field.transform))
        field_id = field.field_id
        if field_id is None:
            known_id = known_ids.get((field.source_id, transform)) if tracks_ids else None
            # Tables of version 1 have ids that mean two fields, of which a spec can have one.
            field_id = known_id if known_id not in taken else None
        while field_id is None:
            highest_id += 1
            field_id = FieldId(highest_id) if highest_id not in taken else None
        taken.add(field_id)
        if field_id > LAST_FIELD_ID:
            raise InvalidUpdate(f"Cannot add partition field {field.name}: field id {field_id} is reserved")
        if field_id < FIRST_PARTITION_FIELD_ID:
            # Manifests have other fields with such ids, and could not be written.
            raise InvalidUpdate(
                f"Cannot add partition field {field.name}: field id {field_id} is below {FIRST_PARTITION_FIELD_ID}"
            )
        highest_id = max(highest_id, field_id)
        bound = PartitionField(
            name=field.name,
            transform=transform,
            source_id=field.source_id,
            field_id=field_id,
        )
        fields.append(bound.with_unknown_fields(field.unknown_fields))
    spec = PartitionSpec(spec_id=SpecId(spec_id), fields=tuple(fields))
    spec = spec.with_unknown_fields(unbound.unknown_fields)
    check_spec(spec, schema)
    _check_distinct(spec)
    check_names(spec, schema)
    if not tracks_ids:
        for position, item in enumerate(spec.fields):
            if item.field_id != FIRST_PARTITION_FIELD_ID + position:
                raise InvalidUpdate(
                    f"Cannot add partition spec: v{format_version} tables need field ids in sequence from 1000, "
                    f"found {item.field_id} for {item.name}"
                )
    return spec


def check_spec(spec: PartitionSpec, schema: Schema) -> None:
    """Check that each field, unless void, has a source column of a type that fits.

    Raises:
        InvalidUpdate: names the field and what is wrong with its source.
    """
    for field in spec.fields:
        if field.is_void:
            continue
        transform = find_transform(field.transform)
        what = f"partition field: {field.name}"
        column = schema.columns.get(field.source_id)
        if column is None:
            raise InvalidUpdate(f"Cannot find source column for {what} (source-id {field.source_id})")
        if not isinstance(column.field.type, PrimitiveType):
            raise InvalidUpdate(f"Cannot use {column.name} as source of {what}: it is not a primitive type")
        if column.is_repeated:
            raise InvalidUpdate(f"Cannot use {column.name} as source of {what}: it is inside a list or map")
        if transform is not None and not transform.applies_to(column.field.type):
            raise InvalidUpdate(
                f"Invalid source type {column.field.type} for transform {transform} of {what}"
            )


def check_readable(spec: PartitionSpec, schema: Schema) -> None:
    """Check that clients can read an older spec with a table's new current schema.

    Its source columns may be gone. If one has a type that does not fit, the reference cannot read the table.

    Raises:
        InvalidUpdate: names the field and the type.
    """
    for field in spec.fields:
        transform, column = find_transform(field.transform), schema.columns.get(field.source_id)
        if transform is None or column is None or transform.applies_to(column.field.type):
            continue
        if isinstance(column.field.type, PrimitiveType) or transform.name != "identity":
            raise InvalidUpdate(
                f"Cannot change the type of {column.name}: partition spec {spec.spec_id} applies {transform} to it"
            )


def check_promoted(spec: PartitionSpec, before: Schema, after: Schema) -> None:
    """Check that a spec's values of files stay right where columns change their types.

    A date has another value, and another bucket, as a timestamp: files would be looked for in wrong partitions.

    Raises:
        InvalidUpdate: names the field and the types.

    Spec: #schema-evolution
    """
    for field in spec.fields:
        transform = find_transform(field.transform)
        was, now = before.columns.get(field.source_id), after.columns.get(field.source_id)
        if transform is None or was is None or now is None:
            continue
        found, wanted = was.field.type, now.field.type
        if not isinstance(found, PrimitiveType) or not isinstance(wanted, PrimitiveType):
            continue
        if not keeps_values(transform, found, wanted):
            raise InvalidUpdate(
                f"Cannot change the type of {now.name} from {found} to {wanted}: {transform} in partition spec "
                f"{spec.spec_id} has other values for it"
            )


def _check_distinct(spec: PartitionSpec) -> None:
    seen_names: set[str] = set()
    seen: dict[FieldId, PartitionField] = {}
    for field in spec.fields:
        if field.name in seen_names:
            raise InvalidUpdate(f"Cannot use partition name more than once: {field.name}")
        other = seen.setdefault(field.field_id, field)
        if other is not field:
            # Java adds a field again beside the void one that version 1 has left in its place.
            is_beside_void = other.source_id == field.source_id and other.is_void is not field.is_void
            hint = (
                "; the void field of the same column has it: remove that field first"
                if is_beside_void
                else ""
            )
            raise InvalidUpdate(f"Cannot use partition field id more than once: {field.field_id}{hint}")
        seen_names.add(field.name)


def check_names(spec: PartitionSpec, schema: Schema) -> None:
    """Check that no partition field has the name of a column other than its source.

    This must hold for every spec and the current schema, or the reference cannot read the table.

    Raises:
        InvalidUpdate: names the field.
    """
    for field in spec.fields:
        clash = schema.ids_by_name.get(field.name)
        if clash is None or clash == field.source_id:
            continue
        if field.transform == "identity":
            raise InvalidUpdate(
                f"Cannot create identity partition sourced from different field in schema: {field.name}"
            )
        raise InvalidUpdate(f"Cannot create partition from name that exists in schema: {field.name}")


def parse_sent_transform(text: str) -> Transform:
    """Return the transform that a request names.

    Raises:
        InvalidUpdate: there is no such transform.
    """
    try:
        return parse_transform(text)
    except ValueError as error:
        raise InvalidUpdate(str(error)) from error
