"""Partition tuples as JSON, for answers."""

from __future__ import annotations

from typing import Any

from app.engine.model.data_types.json_values import to_json_value
from app.engine.model.data_types.transforms import find_transform
from app.engine.model.data_types.types import PrimitiveType, Type
from app.engine.model.ids import SpecId
from app.engine.model.partition_spec import PartitionField, PartitionSpec
from app.engine.model.schema import Schema
from app.engine.model.table_metadata import TableMetadata


class PartitionValues:
    """The partition tuples of one table in JSON, also those of dropped columns."""

    def __init__(self, metadata: TableMetadata) -> None:
        self._metadata = metadata
        self._fields: dict[SpecId, list[tuple[str, Type | None]]] = {}

    def shown(self, spec_id: SpecId, partition: tuple[Any, ...]) -> dict[str, Any]:
        """Return the values of a tuple by the names of the spec's fields, in single-value JSON."""
        fields = self._fields_for(spec_id, partition)
        return {name: _shown(kind, value) for (name, kind), value in zip(fields, partition, strict=True)}

    def listed(self, spec_id: SpecId, partition: tuple[Any, ...]) -> list[Any]:
        """Return the values of a tuple in the order of the spec's fields, in single-value JSON."""
        fields = self._fields_for(spec_id, partition)
        return [_shown(kind, value) for (_, kind), value in zip(fields, partition, strict=True)]

    def _fields_for(self, spec_id: SpecId, partition: tuple[Any, ...]) -> list[tuple[str, Type | None]]:
        fields = self._fields.get(spec_id)
        if fields is None:
            fields = self._fields[spec_id] = self._fields_of(spec_id)
        if len(fields) != len(partition):
            return [(f"field_{position}", None) for position in range(len(partition))]
        return fields

    def _fields_of(self, spec_id: SpecId) -> list[tuple[str, Type | None]]:
        spec = self._metadata.find_spec(spec_id)
        if spec is None:
            return []
        kinds = partition_field_types(self._metadata, spec)
        return [(field.name, kind) for field, kind in zip(spec.fields, kinds, strict=True)]


def partition_field_types(metadata: TableMetadata, spec: PartitionSpec) -> list[Type | None]:
    """Return the types of a spec's partition values; None where the source column is gone."""
    schema = schema_with_sources(metadata, spec)
    return [_type_of(field, schema) for field in spec.fields]


def specs_with_fixed_values(metadata: TableMetadata) -> frozenset[SpecId]:
    """Return the specs that have values of type `fixed`, which engines lay out in two ways.

    Avro's own way cannot be read by Iceberg's Java library up to 1.10, and its way by no other engine. So manifests of
    these specs stay as they are.
    """
    return frozenset(
        spec.spec_id
        for spec in metadata.partition_specs
        for kind in partition_field_types(metadata, spec)
        if isinstance(kind, PrimitiveType) and kind.kind == "fixed"
    )


def schema_with_sources(metadata: TableMetadata, spec: PartitionSpec) -> Schema:
    """Return the newest schema with most of the source columns of one of a table's specs.

    If others have as many, it is the current one.
    """
    sources = {field.source_id for field in spec.fields}
    current = metadata.current_schema
    if sources <= current.columns.keys():
        return current  # mostly so, and there may be very many others
    found = metadata.schemas_by_spec.get(spec.spec_id)
    if found is None:
        # Once, and not for each of thousands of files.
        newest_first = (current, *reversed(metadata.schemas))
        found = max(newest_first, key=lambda schema: len(sources & schema.columns.keys()))
        metadata.schemas_by_spec[spec.spec_id] = found
    return found


def _type_of(field: PartitionField, schema: Schema) -> Type | None:
    transform, column = find_transform(field.transform), schema.columns.get(field.source_id)
    return transform.result_type(column.field.type) if transform is not None and column is not None else None


def _shown(kind: Type | None, value: Any) -> Any:
    if isinstance(kind, PrimitiveType):
        try:
            return to_json_value(kind, value)
        except ValueError:
            pass  # The column was promoted since: the value has the older type.
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if value - value == 0 else str(value)
        case bytes():
            return value.hex().upper()
    return str(value)
