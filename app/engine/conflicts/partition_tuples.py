"""Partition tuples out of JSON: how a caller says which partitions an operation is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.engine.model.data_types.json_values import from_json_value
from app.engine.model.data_types.transforms import find_transform
from app.engine.model.data_types.types import PrimitiveType
from app.engine.model.files.manifests import Partition
from app.engine.model.files.partition_values import schema_with_sources
from app.engine.model.ids import SpecId
from app.engine.model.partition_spec import PartitionField, PartitionSpec
from app.engine.model.schema import Schema
from app.engine.model.table_metadata import TableMetadata
from app.errors import InvalidRequest


def partition_tuple(
    metadata: TableMetadata, spec_id: SpecId | None, value: Mapping[str, Any] | Sequence[Any] | None
) -> tuple[SpecId, Partition]:
    """Return a partition of a spec, of the default one if none is named.

    Args:
        value: the values in single-value JSON, by the names of the spec's fields or in their order; None for those
            of an unpartitioned spec.

    Raises:
        InvalidRequest: there is no such spec, or these are not its values.
    """
    spec = load_spec(metadata, spec_id)
    names = [field.name for field in spec.fields]
    if value is None and not names:
        value = ()
    if isinstance(value, Mapping):
        if set(value) != set(names):
            raise InvalidRequest(_unfit(spec, f"has {_listed(value)}, the spec has {_listed(names)}"))
        ordered = [value[name] for name in names]
    else:
        ordered = list(value or ())
        if len(ordered) != len(names):
            raise InvalidRequest(_unfit(spec, f"has {len(ordered)} values, the spec has {_listed(names)}"))
    schema = schema_with_sources(metadata, spec)
    return spec.spec_id, tuple(
        _value(spec, field, schema, item) for field, item in zip(spec.fields, ordered, strict=True)
    )


def load_spec(metadata: TableMetadata, spec_id: SpecId | None) -> PartitionSpec:
    """Return a table's partition spec; the default one for None.

    Raises:
        InvalidRequest: the table has no such spec.
    """
    spec = metadata.default_spec if spec_id is None else metadata.find_spec(spec_id)
    if spec is not None:
        return spec
    known = _listed(sorted(str(spec.spec_id) for spec in metadata.partition_specs))
    raise InvalidRequest(f"Invalid partition: the table has no partition spec {spec_id}, only {known}")


def _value(spec: PartitionSpec, field: PartitionField, schema: Schema, value: Any) -> Any:
    transform, column = find_transform(field.transform), schema.columns.get(field.source_id)
    if value is None:
        return None
    if transform is None or column is None or not transform.applies_to(column.field.type):
        raise InvalidRequest(_unfit(spec, f"{field.name} can only be null: its column is gone"))
    kind = transform.result_type(column.field.type)
    if not isinstance(kind, PrimitiveType) or transform.name == "void":
        raise InvalidRequest(_unfit(spec, f"{field.name} can only be null"))
    try:
        return from_json_value(kind, value)
    except ValueError as error:
        raise InvalidRequest(_unfit(spec, f"{field.name}: {error}")) from error


def _unfit(spec: PartitionSpec, reason: str) -> str:
    return f"Invalid partition: it does not fit partition spec {spec.spec_id}: {reason}"


def _listed(names: Mapping[str, Any] | Sequence[str]) -> str:
    return f"[{', '.join(names)}]"[:200]
