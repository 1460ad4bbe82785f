"""Writes partition statistics files."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from app.engine.model.data_types.types import PrimitiveType
from app.engine.model.format_versions import FORMAT_VERSIONS
from app.engine.partition_statistics.counts import PartitionCount, UnifiedField

if TYPE_CHECKING:
    import pyarrow as pa

_PARTITION: Final = 1
_COLUMNS: Final = (
    (2, "spec_id", "int32", True),
    (3, "data_record_count", "int64", True),
    (4, "data_file_count", "int32", True),
    (5, "total_data_file_size_in_bytes", "int64", True),
    (6, "position_delete_record_count", "int64", False),
    (7, "position_delete_file_count", "int32", False),
    (8, "equality_delete_record_count", "int64", False),
    (9, "equality_delete_file_count", "int32", False),
    (10, "total_record_count", "int64", False),
    (11, "last_updated_at", "int64", False),
    (12, "last_updated_snapshot_id", "int64", False),
    (13, "dv_count", "int32", True),
)
"""Id, name, type and whether it is required; the last one only where there are deletion vectors."""
_ALWAYS_COUNTED: Final = frozenset({6, 7, 8, 9})
"""Required where there are deletion vectors."""
_DV_COUNT: Final = 13
_MOST_BYTES: Final = 256 << 20
"""Of one partition field, in all rows together."""


def write_partition_statistics(
    counts: Sequence[PartitionCount], fields: Sequence[UnifiedField], format_version: int
) -> bytes:
    """Return a Parquet file with a row for each partition, in the order given.

    The number of rows without those that deletes apply to is not known without reading data: it is null.

    Raises:
        ValueError: a value does not have its field's type, or a count is too large.

    Spec: #partition-statistics-file
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    has_vectors = FORMAT_VERSIONS[format_version].has_deletion_vectors
    try:
        partition = pa.StructArray.from_arrays(
            [
                _values(field.kind, [count.partition[place] for count in counts])
                for place, field in enumerate(fields)
            ],
            fields=[_field(field.field_id, field.name, _type_of(field.kind)) for field in fields],
        )
    except (pa.ArrowException, TypeError, OverflowError) as error:
        raise ValueError(f"a partition value does not have its type: {error}") from error
    columns: list[Any] = [partition]
    schema = [_field(_PARTITION, "partition", partition.type, required=True)]
    for field_id, name, kind, required in _COLUMNS:
        if field_id == _DV_COUNT and not has_vectors:
            continue
        values = [getattr(count, name, None) for count in counts]
        try:
            columns.append(pa.array(values, type=kind))
        except (pa.ArrowException, OverflowError) as error:
            raise ValueError(f"{name} of a partition is too large for {kind}") from error
        is_required = required or (has_vectors and field_id in _ALWAYS_COUNTED)
        schema.append(_field(field_id, name, columns[-1].type, required=is_required))
    stream = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(columns, schema=pa.schema(schema)), stream, compression="zstd")
    return stream.getvalue()


def _field(field_id: int, name: str, kind: pa.DataType, *, required: bool = False) -> pa.Field:
    import pyarrow as pa

    return pa.field(name, kind, nullable=not required, metadata={"PARQUET:field_id": str(field_id)})


def _type_of(kind: PrimitiveType) -> pa.DataType:
    import pyarrow as pa

    match kind.kind:
        case "decimal":
            return pa.decimal128(kind.precision or 38, kind.scale or 0)
        case "fixed":
            return pa.binary(kind.length or 0)
        case "uuid":
            return pa.binary(16)
    plain = {
        "boolean": pa.bool_(),
        "int": pa.int32(),
        "long": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "string": pa.string(),
        "binary": pa.binary(),
        "date": pa.date32(),
        "time": pa.time64("us"),
        "timestamp": pa.timestamp("us"),
        "timestamptz": pa.timestamp("us", "UTC"),
        "timestamp_ns": pa.timestamp("ns"),
        "timestamptz_ns": pa.timestamp("ns", "UTC"),
    }
    if kind.kind not in plain:
        raise ValueError(f"values of type {kind} cannot be partition values")
    return plain[kind.kind]


def _values(kind: PrimitiveType, values: Sequence[Any]) -> pa.Array:
    import pyarrow as pa

    wanted = _type_of(kind)
    if kind.kind == "fixed" and len(values) * (kind.length or 0) > _MOST_BYTES:
        # Arrow takes as many for each null, too.
        raise ValueError(f"{len(values)} values of type {kind} have more than {_MOST_BYTES} bytes")
    if kind.kind == "uuid":
        # Writers that call it no uuid leave its bytes.
        values = [value.bytes if isinstance(value, UUID) else value for value in values]
    if kind.kind == "date":
        return pa.array(values, type=pa.int32()).cast(wanted)
    if pa.types.is_time(wanted) or pa.types.is_timestamp(wanted):
        return pa.array(values, type=pa.int64()).cast(wanted)
    return pa.array(values, type=wanted)
