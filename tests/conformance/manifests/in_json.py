"""Entries and manifests as JSON, in the words of the reference's own parsers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.engine.model.data_types.json_values import from_json_value, to_json_value
from app.engine.model.data_types.types import PrimitiveType
from app.engine.model.files.manifests import DataFile, FileContent, ManifestEntry, ManifestFile
from app.engine.model.partition_spec import PartitionSpec

Json = Any


def entry_in_json(entry: ManifestEntry, spec: PartitionSpec, kinds: Sequence[PrimitiveType]) -> Json:
    return {
        "status": int(entry.status),
        "snapshot-id": entry.snapshot_id,
        "data-sequence-number": entry.data_sequence_number,
        "file-sequence-number": entry.file_sequence_number,
        "file": file_in_json(entry.file, spec, kinds),
    }


def with_values(entry: Json, spec: PartitionSpec, kinds: Sequence[PrimitiveType]) -> Json:
    """Return an entry with its partition's values in Python: their texts may differ, as 0.5 and 0.50 do."""
    partition = {
        field.field_id: repr(from_json_value(kind, entry["file"]["partition"].get(str(field.field_id))))
        for field, kind in zip(spec.fields, kinds, strict=True)
    }
    return entry | {"file": entry["file"] | {"partition": partition}}


def file_in_json(file: DataFile, spec: PartitionSpec, kinds: Sequence[PrimitiveType]) -> Json:
    """Return a content file as the reference's parser reads and writes it; what is null is left out."""
    optional = {
        "column-sizes": _counts(file.column_sizes),
        "value-counts": _counts(file.value_counts),
        "null-value-counts": _counts(file.null_value_counts),
        "nan-value-counts": _counts(file.nan_value_counts),
        "lower-bounds": _bounds(file.lower_bounds),
        "upper-bounds": _bounds(file.upper_bounds),
        "key-metadata": None if file.key_metadata is None else file.key_metadata.hex().upper(),
        "split-offsets": None if file.split_offsets is None else list(file.split_offsets),
        "equality-ids": None if file.equality_ids is None else list(file.equality_ids),
        "sort-order-id": file.sort_order_id,
        "first-row-id": file.first_row_id,
        "referenced-data-file": file.referenced_data_file,
        "content-offset": file.content_offset,
        "content-size-in-bytes": file.content_size_in_bytes,
    }
    return {
        "spec-id": file.spec_id,
        "content": FileContent(file.content).name,
        "file-path": file.file_path,
        "file-format": file.file_format.upper(),
        "partition": {
            str(field.field_id): to_json_value(kind, value)
            for field, kind, value in zip(spec.fields, kinds, file.partition, strict=True)
            if value is not None
        },
        "record-count": file.record_count,
        "file-size-in-bytes": file.file_size_in_bytes,
        **{name: value for name, value in optional.items() if value is not None},
    }


def _counts(counts: Mapping[int, int] | None) -> Json:
    return None if counts is None else {"keys": list(counts), "values": list(counts.values())}


def _bounds(bounds: Mapping[int, bytes] | None) -> Json:
    if bounds is None:
        return None
    return {"keys": list(bounds), "values": [bound.hex().upper() for bound in bounds.values()]}


def manifest_in_json(manifest: ManifestFile) -> Json:
    """Return what a manifest list says of a manifest."""
    summaries = manifest.partitions
    return {
        "path": manifest.manifest_path,
        "length": manifest.manifest_length,
        "spec-id": manifest.partition_spec_id,
        "content": int(manifest.content),
        "sequence-number": manifest.sequence_number,
        "min-sequence-number": manifest.min_sequence_number,
        "snapshot-id": manifest.added_snapshot_id,
        "files": [manifest.added_files_count, manifest.existing_files_count, manifest.deleted_files_count],
        "rows": [manifest.added_rows_count, manifest.existing_rows_count, manifest.deleted_rows_count],
        "partitions": (
            None
            if summaries is None
            else [
                [item.contains_null, item.contains_nan, item.lower_bound, item.upper_bound]
                for item in summaries
            ]
        ),
        "key-metadata": manifest.key_metadata,
        "first-row-id": manifest.first_row_id,
    }
