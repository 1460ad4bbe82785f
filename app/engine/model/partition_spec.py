"""Partition specs: how rows are grouped into files, and the rules that bind a spec to a schema."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from app.engine.model.document import Document, Int
from app.engine.model.ids import FieldId, SpecId
from app.engine.model.schema import Schema
from app.engine.model.transforms import Transform, parse_transform
from app.engine.model.types import ListType, MapType, PrimitiveType
from app.errors import InvalidUpdate

FIRST_PARTITION_FIELD_ID = 1000
UNPARTITIONED_LAST_ID = FIRST_PARTITION_FIELD_ID - 1


class PartitionField(Document):
    """One value of a partition tuple.

    Spec: #partitioning
    """

    name: Annotated[str, Field(min_length=1)]
    transform: str
    source_id: Annotated[FieldId, Int]
    field_id: Annotated[FieldId, Int]


class UnboundPartitionField(Document):
    """A partition field as a client sends it: the id is optional, the source may be a list of one."""

    name: Annotated[str, Field(min_length=1)]
    transform: str
    source_id: Annotated[FieldId, Int]
    field_id: Annotated[FieldId, Int] | None = None

    @model_validator(mode="before")
    @classmethod
    def _single_source(cls, value: Any) -> Any:
        return take_single_source(value)


class PartitionSpec(Document):
    """An ordered list of partition fields, named by its id."""

    spec_id: Annotated[SpecId, Int]
    fields: tuple[PartitionField, ...]

    @property
    def is_unpartitioned(self) -> bool:
        return all(field.transform == "void" for field in self.fields)

    @property
    def highest_field_id(self) -> int:
        return max((field.field_id for field in self.fields), default=UNPARTITIONED_LAST_ID)

    def same_fields(self, other: Self) -> bool:
        """Tell whether two specs partition alike; field ids and the spec's id do not count."""
        return len(self.fields) == len(other.fields) and all(
            mine.source_id == theirs.source_id
            and mine.name == theirs.name
            and mine.transform.lower() == theirs.transform.lower()
            for mine, theirs in zip(self.fields, other.fields, strict=True)
        )


class UnboundPartitionSpec(Document):
    """A partition spec as a client sends it."""

    spec_id: Int | None = None
    fields: tuple[UnboundPartitionField, ...]


def take_single_source(value: Any) -> Any:
    """Read v3's `source-ids` of one element as `source-id`, the only form this build binds."""
    if isinstance(value, dict) and "source-id" not in value:
        sources = value.get("source-ids")
        if isinstance(sources, list) and len(sources) == 1:
            value = {key: item for key, item in value.items() if key != "source-ids"}
            value["source-id"] = sources[0]
        elif isinstance(sources, list):
            raise ValueError("transforms of several source columns are not supported")
    return value


def bind_spec(
    unbound: UnboundPartitionSpec, schema: Schema, format_version: int, spec_id: int
) -> PartitionSpec:
    """Return the spec with every field checked against the schema, missing field ids numbered from 1000.

    Raises:
        InvalidUpdate: a source column is missing or cannot be transformed so, a name clashes, or the ids
            are not those a v1 table needs.
    """
    fields: list[PartitionField] = []
    next_id = UNPARTITIONED_LAST_ID
    for field in unbound.fields:
        transform = _parse(field.transform)
        next_id = field.field_id if field.field_id is not None else next_id + 1
        fields.append(
            PartitionField(
                name=field.name,
                transform=str(transform),
                source_id=field.source_id,
                field_id=FieldId(next_id),
                **field.unknown_fields,
            )
        )
    spec = PartitionSpec(spec_id=SpecId(spec_id), fields=tuple(fields), **unbound.unknown_fields)
    check_spec(spec, schema)
    _check_names(spec, schema)
    if format_version == 1:
        for position, bound in enumerate(spec.fields):
            if bound.field_id != FIRST_PARTITION_FIELD_ID + position:
                raise InvalidUpdate(
                    f"Cannot add partition spec: v1 tables need field ids in sequence from 1000, found {bound.field_id} "
                    f"for {bound.name}"
                )
    return spec


def check_spec(spec: PartitionSpec, schema: Schema) -> None:
    """Check that every field that is not void has a source column that its transform applies to.

    Raises:
        InvalidUpdate: names the field and what is wrong with its source.
    """
    for field in spec.fields:
        check_source(schema, field.source_id, _parse(field.transform), f"partition field: {field.name}")


def check_source(schema: Schema, source_id: int, transform: Transform, what: str) -> None:
    """Check that a column exists and that the transform applies to it.

    Raises:
        InvalidUpdate: names `what` and the reason.
    """
    if transform.name == "void":
        return
    column = schema.columns.get(FieldId(source_id))
    if column is None:
        raise InvalidUpdate(f"Cannot find source column for {what} (source-id {source_id})")
    if not isinstance(column.field.type, PrimitiveType):
        raise InvalidUpdate(f"Cannot use {column.name} as source of {what}: it is not a primitive type")
    parent = column.parent
    while parent is not None:
        if isinstance(parent.field.type, (ListType, MapType)):
            raise InvalidUpdate(f"Cannot use {column.name} as source of {what}: it is inside a list or map")
        parent = parent.parent
    if not transform.applies_to(column.field.type):
        raise InvalidUpdate(f"Invalid source type {column.field.type} for transform {transform} of {what}")


def _check_names(spec: PartitionSpec, schema: Schema) -> None:
    seen_names: set[str] = set()
    seen_ids: set[int] = set()
    for field in spec.fields:
        if field.name in seen_names:
            raise InvalidUpdate(f"Cannot use partition name more than once: {field.name}")
        if field.field_id in seen_ids:
            raise InvalidUpdate(f"Cannot use partition field id more than once: {field.field_id}")
        seen_names.add(field.name)
        seen_ids.add(field.field_id)
        clash = schema.ids_by_name.get(field.name)
        if clash is None:
            continue
        if field.transform == "identity" and clash != field.source_id:
            raise InvalidUpdate(
                f"Cannot create identity partition sourced from different field in schema: {field.name}"
            )
        if field.transform not in ("identity", "void"):
            raise InvalidUpdate(f"Cannot create partition from name that exists in schema: {field.name}")


def _parse(text: str) -> Transform:
    try:
        return parse_transform(text)
    except ValueError as error:
        raise InvalidUpdate(str(error)) from error
