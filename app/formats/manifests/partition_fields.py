"""Partition fields in Avro: types, names and schema."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from app.engine.model.data_types.transforms import find_transform
from app.engine.model.data_types.types import PrimitiveType
from app.engine.model.partition_spec import PartitionField, PartitionSpec
from app.engine.model.schema import Schema

_PLAIN: Final = {
    "boolean": "boolean",
    "int": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "bytes",
    "unknown": "null",
}
_LOGICAL: Final[dict[str, dict[str, Any]]] = {
    "date": {"type": "int", "logicalType": "date"},
    "time": {"type": "long", "logicalType": "time-micros"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
    "timestamptz": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True},
    "timestamp_ns": {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": False},
    "timestamptz_ns": {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": True},
}
_KINDS_OF_VALUES: Final[dict[type, str]] = {
    bool: "boolean",
    int: "long",
    float: "double",
    str: "string",
    bytes: "binary",
    UUID: "uuid",
}
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_]")
_UUID_BYTES: Final = 16
_UNKNOWN: Final = PrimitiveType("unknown", "unknown")


def partition_types(
    spec: PartitionSpec, schema: Schema, partitions: Sequence[tuple[Any, ...]]
) -> tuple[PrimitiveType, ...]:
    """Return the types of a spec's values. Where the source column is gone, the values decide.

    Raises:
        ValueError: a partition does not have a value for each field of the spec.
    """
    for partition in partitions:
        if len(partition) != len(spec.fields):
            raise ValueError(
                f"a partition has {len(partition)} values, spec {spec.spec_id} {len(spec.fields)} fields"
            )
    return tuple(
        _type_of(field, schema) or _type_of_values(partition[at] for partition in partitions)
        for at, field in enumerate(spec.fields)
    )


def _type_of(field: PartitionField, schema: Schema) -> PrimitiveType | None:
    transform = find_transform(field.transform)
    column = schema.columns.get(field.source_id)
    if transform is None:
        return None
    result = transform.result_type(_UNKNOWN if column is None else column.field.type)
    if not isinstance(result, PrimitiveType):
        return _UNKNOWN if transform.name == "void" else None
    return None if column is None and result is _UNKNOWN else result


def _type_of_values(values: Iterable[Any]) -> PrimitiveType:
    value = next((value for value in values if value is not None), None)
    if isinstance(value, Decimal):
        exponent = value.as_tuple().exponent
        scale = max(0, -exponent) if isinstance(exponent, int) else 0
        return PrimitiveType("decimal", f"decimal(38, {scale})", precision=38, scale=scale)
    kind = _KINDS_OF_VALUES.get(type(value))
    return _UNKNOWN if kind is None else PrimitiveType(kind, kind)


def typed(kinds: Sequence[PrimitiveType], partition: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return partition values as their types have them.

    Some writers leave the logical type of a uuid out, and then its 16 bytes are what is read.
    """
    if not any(isinstance(value, bytes) for value in partition):
        return partition
    return tuple(
        UUID(bytes=value)
        if kind.kind == "uuid" and isinstance(value, bytes) and len(value) == _UUID_BYTES
        else value
        for kind, value in zip(kinds, partition, strict=True)
    )


def partition_schema(spec: PartitionSpec, kinds: Iterable[PrimitiveType]) -> list[dict[str, Any]]:
    """Return the fields of a partition record.

    Raises:
        ValueError: a type has no values that can be partition values.
    """
    seen: set[str] = set()
    names: set[str] = set()
    fields = []
    for field, kind in zip(spec.fields, kinds, strict=True):
        avro = _avro_type(kind)
        # A named type is described where it is first used; later uses have its name only.
        name = avro.get("name") if isinstance(avro, dict) else None
        if name is not None:
            avro = name if name in seen else avro
            seen.add(name)
        field_name = _avro_name(field.name)
        while field_name in names:
            # Readers know fields by their ids, but lose one of two that have one name.
            field_name += f"_{field.field_id}"
        names.add(field_name)
        described = {
            "name": field_name,
            "type": avro if avro == "null" else ["null", avro],
            "default": None,
            "field-id": field.field_id,
        }
        if field_name != field.name:
            described["iceberg-field-name"] = field.name
        fields.append(described)
    return fields


def _avro_type(kind: PrimitiveType) -> Any:
    """Return the Avro type that holds values of a type.

    Spec: #avro
    """
    if kind.kind in _PLAIN:
        return _PLAIN[kind.kind]
    if kind.kind in _LOGICAL:
        return _LOGICAL[kind.kind]
    match kind.kind:
        case "uuid":
            return {"type": "fixed", "name": "uuid_fixed", "size": _UUID_BYTES, "logicalType": "uuid"}
        case "fixed":
            return {"type": "fixed", "name": f"fixed_{kind.length}", "size": kind.length}
        case "decimal":
            precision = kind.precision or 38
            return {
                "type": "fixed",
                "name": f"decimal_{precision}_{kind.scale}",
                # The bits of the largest value and one for the sign.
                "size": ((10**precision - 1).bit_length() + 8) // 8,
                "logicalType": "decimal",
                "precision": precision,
                "scale": kind.scale,
            }
    raise ValueError(f"values of type {kind} cannot be partition values")


def _avro_name(name: str) -> str:
    """Return a name that Avro accepts, made as the reference makes it."""
    safe = _NOT_IN_NAMES.sub(lambda match: f"_x{ord(match[0]):X}", name)
    return f"_{safe}" if safe[:1].isdigit() else safe
