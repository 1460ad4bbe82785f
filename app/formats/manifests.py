"""Manifests: entries from and to Avro, in format versions 1, 2 and 3."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro

from app.engine.model.ids import Location, SnapshotId
from app.engine.model.manifests import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from app.engine.model.partition_spec import PartitionSpec
from app.engine.model.schema import Schema
from app.engine.model.types import PrimitiveType
from app.engine.model.values import unscaled_value
from app.errors import InvalidMetadata
from app.formats.manifest_schemas import manifest_schema
from app.formats.partition_fields import avro_name, avro_type, partition_types, type_of_value
from app.formats.partition_summaries import FieldSummary

UNASSIGNED_SEQUENCE_NUMBER = -1
"""What a new manifest has until a commit gives it the snapshot's."""
_V1_BLOCK_SIZE = 64 << 20
"""Deprecated, but v1 requires a number there."""


@dataclass(frozen=True, slots=True)
class WrittenManifest:
    """A manifest's bytes, and what a manifest list says of it once it has a place."""

    content: bytes
    manifest: ManifestFile

    def at(self, location: Location) -> ManifestFile:
        """Return the manifest as a list names it, after the bytes were stored there."""
        return replace(self.manifest, manifest_path=location)


def read_manifest(content: bytes, manifest: ManifestFile) -> tuple[ManifestEntry, ...]:
    """Return a manifest's entries in their order, with inherited values filled in.

    Raises:
        InvalidMetadata: the bytes are no manifest, or contradict the list; names the file.

    Spec: #manifests
    """
    try:
        reader = fastavro.reader(io.BytesIO(content))
        return tuple(_entries(reader, manifest))
    except (ValueError, EOFError, KeyError, IndexError, TypeError, OverflowError, AttributeError) as error:
        raise InvalidMetadata(f"Cannot read manifest {manifest.manifest_path}: {error}") from error


def _entries(reader: Any, manifest: ManifestFile) -> Iterator[ManifestEntry]:
    next_row_id = manifest.first_row_id
    for record in reader:
        raw = record["data_file"]
        status = EntryStatus(record["status"])
        first_row_id = raw.get("first_row_id")
        if manifest.first_row_id is None:
            first_row_id = None
        elif first_row_id is None and status is not EntryStatus.DELETED and next_row_id is not None:
            first_row_id = next_row_id
            next_row_id += raw["record_count"]
        sequence_number = record.get("sequence_number")
        file_sequence_number = record.get("file_sequence_number")
        snapshot_id = record.get("snapshot_id")
        inherits = status is EntryStatus.ADDED or manifest.sequence_number == 0
        file = DataFile(
            content=FileContent(raw.get("content") or 0),
            file_path=raw["file_path"],
            file_format=raw["file_format"].lower(),
            spec_id=manifest.partition_spec_id,
            partition=tuple(_plain(value) for value in raw["partition"].values()),
            record_count=raw["record_count"],
            file_size_in_bytes=raw["file_size_in_bytes"],
            column_sizes=_mapping(raw.get("column_sizes")),
            value_counts=_mapping(raw.get("value_counts")),
            null_value_counts=_mapping(raw.get("null_value_counts")),
            nan_value_counts=_mapping(raw.get("nan_value_counts")),
            lower_bounds=_mapping(raw.get("lower_bounds")),
            upper_bounds=_mapping(raw.get("upper_bounds")),
            key_metadata=raw.get("key_metadata"),
            split_offsets=_tuple(raw.get("split_offsets")),
            equality_ids=_tuple(raw.get("equality_ids")),
            sort_order_id=raw.get("sort_order_id"),
            first_row_id=first_row_id,
            referenced_data_file=raw.get("referenced_data_file"),
            content_offset=raw.get("content_offset"),
            content_size_in_bytes=raw.get("content_size_in_bytes"),
        )
        yield ManifestEntry(
            status=status,
            snapshot_id=manifest.added_snapshot_id if snapshot_id is None else snapshot_id,
            data_sequence_number=(
                manifest.sequence_number if sequence_number is None and inherits else sequence_number
            ),
            file_sequence_number=(
                manifest.sequence_number
                if file_sequence_number is None and inherits
                else file_sequence_number
            ),
            file=file,
        )


def _plain(value: Any) -> Any:
    return value


def _mapping(pairs: Any) -> dict[int, Any] | None:
    return None if pairs is None else {pair["key"]: pair["value"] for pair in pairs}


def _tuple(items: Any) -> tuple[int, ...] | None:
    return None if items is None else tuple(items)


def write_manifest(
    entries: Iterable[ManifestEntry],
    *,
    schema: Schema,
    spec: PartitionSpec,
    format_version: int,
    content: ManifestContent = ManifestContent.DATA,
    snapshot_id: SnapshotId | None,
    first_row_id: int | None = None,
) -> WrittenManifest:
    """Return a manifest of these entries, and its line for a manifest list with counts and summaries.

    Raises:
        ValueError: an entry does not fit the spec or the format version.

    Spec: #manifests
    """
    kept = tuple(entries)
    kinds = _partition_kinds(spec, schema, kept)
    fields = [
        {
            "name": avro_name(field.name),
            "type": ["null", avro_type(kind)] if kind.kind != "unknown" else ["null"],
            "default": None,
            "field-id": field.field_id,
            **({"iceberg-field-name": field.name} if avro_name(field.name) != field.name else {}),
        }
        for field, kind in zip(spec.fields, kinds, strict=True)
    ]
    avro_schema = fastavro.parse_schema(manifest_schema(format_version, fields))
    names = [field["name"] for field in fields]
    metadata = {
        "schema": schema.to_json().decode(),
        "schema-id": str(schema.schema_id),
        "partition-spec": json.dumps(spec.to_object()["fields"]),
        "partition-spec-id": str(spec.spec_id),
        "format-version": str(format_version),
    }
    if format_version >= 2:
        metadata["content"] = "data" if content is ManifestContent.DATA else "deletes"
    stream = io.BytesIO()
    fastavro.writer(
        stream,
        avro_schema,
        (_record(entry, names, kinds, format_version, snapshot_id) for entry in kept),
        codec="deflate",
        metadata=metadata,
    )
    content_bytes = stream.getvalue()
    return WrittenManifest(
        content_bytes,
        _manifest_file(kept, kinds, spec, content, snapshot_id, first_row_id, len(content_bytes)),
    )


def _partition_kinds(
    spec: PartitionSpec, schema: Schema, entries: Sequence[ManifestEntry]
) -> list[PrimitiveType]:
    kinds = []
    for position, kind in enumerate(partition_types(spec, schema)):
        known = kind
        if known is None:
            present = (entry.file.partition[position] for entry in entries)
            known = type_of_value(next((value for value in present if value is not None), None))
        kinds.append(known)
    return kinds


def _record(
    entry: ManifestEntry,
    names: list[str],
    kinds: list[PrimitiveType],
    format_version: int,
    snapshot_id: SnapshotId | None,
) -> dict[str, Any]:
    file = entry.file
    if len(file.partition) != len(names):
        raise ValueError(
            f"{file.file_path} has {len(file.partition)} partition values, the spec {len(names)}"
        )
    record: dict[str, Any] = {
        "status": int(entry.status),
        "snapshot_id": entry.snapshot_id if entry.snapshot_id is not None else snapshot_id,
        "sequence_number": entry.data_sequence_number,
        "file_sequence_number": entry.file_sequence_number,
    }
    record["data_file"] = {
        "content": int(file.content),
        "file_path": file.file_path,
        "file_format": file.file_format.upper(),
        "partition": {
            name: _avro_value(kind, value)
            for name, kind, value in zip(names, kinds, file.partition, strict=True)
        },
        "record_count": file.record_count,
        "file_size_in_bytes": file.file_size_in_bytes,
        "block_size_in_bytes": _V1_BLOCK_SIZE,
        "column_sizes": _pairs(file.column_sizes),
        "value_counts": _pairs(file.value_counts),
        "null_value_counts": _pairs(file.null_value_counts),
        "nan_value_counts": _pairs(file.nan_value_counts),
        "lower_bounds": _pairs(file.lower_bounds),
        "upper_bounds": _pairs(file.upper_bounds),
        "key_metadata": file.key_metadata,
        "split_offsets": _list(file.split_offsets),
        "equality_ids": _list(file.equality_ids),
        "sort_order_id": file.sort_order_id,
        "first_row_id": file.first_row_id,
        "referenced_data_file": file.referenced_data_file,
        "content_offset": file.content_offset,
        "content_size_in_bytes": file.content_size_in_bytes,
    }
    return record


def _pairs(mapping: Any) -> list[dict[str, Any]] | None:
    return None if mapping is None else [{"key": key, "value": value} for key, value in mapping.items()]


def _list(items: tuple[int, ...] | None) -> list[int] | None:
    # fastavro takes a tuple for its own way of naming a branch of a union.
    return None if items is None else list(items)


def _avro_value(kind: PrimitiveType, value: Any) -> Any:
    match value:
        case UUID():
            return value.bytes
        case Decimal():
            size = avro_type(kind)["size"]
            return unscaled_value(kind, value).to_bytes(size, "big", signed=True)
    return value


def _manifest_file(
    entries: Sequence[ManifestEntry],
    kinds: list[PrimitiveType],
    spec: PartitionSpec,
    content: ManifestContent,
    snapshot_id: SnapshotId | None,
    first_row_id: int | None,
    length: int,
) -> ManifestFile:
    files = dict.fromkeys(EntryStatus, 0)
    rows = dict.fromkeys(EntryStatus, 0)
    summaries = [FieldSummary(kind) for kind in kinds]
    min_sequence_number: int | None = None
    for entry in entries:
        files[entry.status] += 1
        rows[entry.status] += entry.file.record_count
        for summary, value in zip(summaries, entry.file.partition, strict=True):
            summary.add(value)
        number = entry.data_sequence_number
        if (
            entry.is_live
            and number is not None
            and (min_sequence_number is None or number < min_sequence_number)
        ):
            min_sequence_number = number
    return ManifestFile(
        manifest_path=Location(""),
        manifest_length=length,
        partition_spec_id=spec.spec_id,
        content=content,
        sequence_number=UNASSIGNED_SEQUENCE_NUMBER,
        min_sequence_number=(
            UNASSIGNED_SEQUENCE_NUMBER if min_sequence_number is None else min_sequence_number
        ),
        added_snapshot_id=snapshot_id,
        added_files_count=files[EntryStatus.ADDED],
        existing_files_count=files[EntryStatus.EXISTING],
        deleted_files_count=files[EntryStatus.DELETED],
        added_rows_count=rows[EntryStatus.ADDED],
        existing_rows_count=rows[EntryStatus.EXISTING],
        deleted_rows_count=rows[EntryStatus.DELETED],
        partitions=tuple(summary.summary() for summary in summaries),
        first_row_id=first_row_id,
    )
