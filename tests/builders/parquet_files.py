"""Parquet files, and tables to append them to."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from app.engine.appends.appended_files import ParquetFile
from app.engine.model.ids import Location, SpecId
from app.engine.model.table_metadata import TableMetadata, read_table_metadata
from app.fileio.tails import Tail
from app.formats.parquet.footers import read_footer

PATH = Location("s3://bucket/t/data/1.parquet")
Json = dict[str, Any]


def parquet(table: pa.Table, **options: Any) -> bytes:
    """Return a table as a Parquet file."""
    stream = io.BytesIO()
    pq.write_table(table, stream, **options)
    return stream.getvalue()


def parquet_rows(**columns: list[Any]) -> bytes:
    """Return rows, column by column, as a Parquet file without field ids."""
    return parquet(pa.table(columns))


def with_ids(schema: pa.Schema, ids: Mapping[str, int]) -> pa.Schema:
    """Return an Arrow schema whose columns have field ids."""
    return pa.schema([field.with_metadata({"PARQUET:field_id": str(ids[field.name])}) for field in schema])


def parquet_file(
    content: bytes,
    partition: Mapping[str, Any] | None = None,
    *,
    spec_id: int | None = None,
    path: str = PATH,
    from_path: bool = False,
) -> ParquetFile:
    """Return what an append knows of a Parquet file."""
    footer = read_footer(Tail(len(content), content))
    given = None if spec_id is None else SpecId(spec_id)
    return ParquetFile(Location(path), given, footer, partition or {}, from_path)


def table_of(
    columns: Sequence[Json],
    partition_fields: Sequence[Json] = (),
    *,
    sort_fields: Sequence[Json] = (),
    format_version: int = 2,
    properties: Mapping[str, str] | None = None,
) -> TableMetadata:
    """Return an empty table with these columns."""
    document: Json = {
        "format-version": format_version,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": "s3://bucket/t",
        "last-sequence-number": 0,
        "last-updated-ms": 1_700_000_000_000,
        "last-column-id": 1000,
        "current-schema-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": list(columns)}],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": list(partition_fields)}],
        "last-partition-id": 1010,
        "default-sort-order-id": 1 if sort_fields else 0,
        "sort-orders": [{"order-id": 0, "fields": []}]
        + ([{"order-id": 1, "fields": list(sort_fields)}] if sort_fields else []),
        "properties": dict(properties or {}),
    }
    if format_version == 3:
        document["next-row-id"] = 0
    return read_table_metadata(json.dumps(document).encode())


def column(field_id: int, name: str, kind: Any, *, required: bool = False, **more: Any) -> Json:
    """Return a column."""
    return {"id": field_id, "name": name, "required": required, "type": kind, **more}


def partitioned_by(transform: str, source_id: int = 1, name: str = "part", field_id: int = 1000) -> Json:
    """Return a partition field."""
    return {"name": name, "transform": transform, "source-id": source_id, "field-id": field_id}
