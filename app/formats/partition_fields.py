"""Partition fields in Avro: their schema, names and values."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any
from uuid import UUID

from app.engine.model.partition_spec import PartitionField, PartitionSpec
from app.engine.model.schema import Schema
from app.engine.model.transforms import find_transform
from app.engine.model.types import PrimitiveType

_PLAIN = {
    "boolean": "boolean",
    "int": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "bytes",
    "unknown": "null",
}
_LOGICAL: dict[str, dict[str, Any]] = {
    "date": {"type": "int", "logicalType": "date"},
    "time": {"type": "long", "logicalType": "time-micros"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
    "timestamptz": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True},
    "timestamp_ns": {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": False},
    "timestamptz_ns": {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": True},
}
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]")


def partition_types(spec: PartitionSpec, schema: Schema) -> tuple[PrimitiveType | None, ...]:
    """Return the types of a spec's values; None where the source column is gone and the transform does not say."""
    return tuple(_type_of(field, schema) for field in spec.fields)


def _type_of(field: PartitionField, schema: Schema) -> PrimitiveType | None:
    transform = find_transform(field.transform)
    column = schema.columns.get(field.source_id)
    source = column.field.type if column is not None else PrimitiveType("unknown", "unknown")
    if transform is None:
        return None
    result = transform.result_type(source)
    if not isinstance(result, PrimitiveType) or (column is None and result.kind == "unknown"):
        return None
    return result


def avro_type(kind: PrimitiveType) -> Any:
    """Return the Avro type that holds values of a type.

    Spec: #avro
    """
    if kind.kind in _PLAIN:
        return _PLAIN[kind.kind]
    if kind.kind in _LOGICAL:
        return _LOGICAL[kind.kind]
    if kind.kind == "uuid":
        return {"type": "fixed", "name": "uuid_fixed", "size": 16, "logicalType": "uuid"}
    if kind.kind == "fixed":
        return {"type": "fixed", "name": f"fixed_{kind.length}", "size": kind.length}
    if kind.kind == "decimal":
        precision = kind.precision or 38
        size = ((10**precision - 1).bit_length() + 1 + 7) // 8
        return {
            "type": "fixed",
            "name": f"decimal_{precision}_{kind.scale}",
            "size": size,
            "logicalType": "decimal",
            "precision": precision,
            "scale": kind.scale,
        }
    raise ValueError(f"Values of type {kind} cannot be partition values")


def avro_name(name: str) -> str:
    """Return a name that Avro accepts, as the reference makes it."""
    safe = _NOT_IN_NAMES.sub(lambda match: f"_x{ord(match[0]):X}", name)
    return f"_{safe}" if safe[:1].isdigit() else safe


def type_of_value(value: Any) -> PrimitiveType:
    """Return the type of a value whose column is gone."""
    match value:
        case bool():
            return PrimitiveType("boolean", "boolean")
        case int():
            return PrimitiveType("long", "long")
        case float():
            return PrimitiveType("double", "double")
        case str():
            return PrimitiveType("string", "string")
        case bytes():
            return PrimitiveType("binary", "binary")
        case UUID():
            return PrimitiveType("uuid", "uuid")
        case Decimal():
            exponent = value.as_tuple().exponent
            scale = -exponent if isinstance(exponent, int) else 0
            return PrimitiveType("decimal", f"decimal(38, {scale})", precision=38, scale=scale)
    return PrimitiveType("unknown", "unknown")
