"""Partition tuples as JSON objects by field name, for whoever reads answers."""

from __future__ import annotations

from typing import Any

from app.engine.model.ids import SpecId
from app.engine.model.partition_spec import PartitionSpec
from app.engine.model.table_metadata import TableMetadata
from app.engine.model.types import PrimitiveType
from app.engine.model.values import to_json_value
from app.formats.partition_fields import partition_types, type_of_value


class PartitionValues:
    """Shows the partition tuples of one table, those of dropped columns too."""

    def __init__(self, metadata: TableMetadata) -> None:
        self._metadata = metadata
        self._fields: dict[SpecId, list[tuple[str, PrimitiveType | None]]] = {}

    def shown(self, spec_id: SpecId, partition: tuple[Any, ...]) -> dict[str, Any]:
        """Return the values of a tuple by the names of the spec's fields, in single-value JSON."""
        fields = self._fields.get(spec_id)
        if fields is None:
            fields = self._fields[spec_id] = self._fields_of(spec_id)
        if len(fields) != len(partition):
            fields = [(f"field_{position}", None) for position in range(len(partition))]
        return {
            name: to_json_value(kind or type_of_value(value), value)
            for (name, kind), value in zip(fields, partition, strict=True)
        }

    def _fields_of(self, spec_id: SpecId) -> list[tuple[str, PrimitiveType | None]]:
        spec = next((item for item in self._metadata.partition_specs if item.spec_id == spec_id), None)
        if spec is None:
            return []
        return [(field.name, self._type_of(spec, position)) for position, field in enumerate(spec.fields)]

    def _type_of(self, spec: PartitionSpec, position: int) -> PrimitiveType | None:
        source_id = spec.fields[position].source_id
        schemas = (self._metadata.current_schema, *reversed(self._metadata.schemas))
        for schema in schemas:
            if source_id in schema.columns:
                return partition_types(spec, schema)[position]
        return None
