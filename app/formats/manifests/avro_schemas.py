"""Avro schemas of manifest lists and manifests, for each format version."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from app.engine.model.format_versions import FORMAT_VERSIONS


def _field(field_id: int, name: str, kind: Any, *, required: bool = False) -> dict[str, Any]:
    if required:
        return {"name": name, "type": kind, "field-id": field_id}
    return {"name": name, "type": ["null", kind], "default": None, "field-id": field_id}


def _list(element: Any, element_id: int) -> dict[str, Any]:
    return {"type": "array", "items": element, "element-id": element_id}


def _map(key_id: int, value_id: int, value: Any) -> dict[str, Any]:
    """Avro's own maps have string keys only, so the spec has arrays of pairs."""
    pair = {
        "type": "record",
        "name": f"k{key_id}_v{value_id}",
        "fields": [
            _field(key_id, "key", "int", required=True),
            _field(value_id, "value", value, required=True),
        ],
    }
    return {"type": "array", "items": pair, "logicalType": "map"}


SUMMARY_SCHEMA = {
    "type": "record",
    "name": "r508",
    "fields": [
        _field(509, "contains_null", "boolean", required=True),
        _field(518, "contains_nan", "boolean"),
        _field(510, "lower_bound", "bytes"),
        _field(511, "upper_bound", "bytes"),
    ],
}


def ids_of_fields(schema: dict[str, Any], kind: type[Any]) -> dict[str, int]:
    """Return the ids of a dataclass's fields, in their order, from the schema of its records."""
    ids = {field["name"]: field["field-id"] for field in schema["fields"]}
    return {field.name: ids[field.name] for field in fields(kind) if field.name in ids}


def manifest_list_schema(format_version: int) -> dict[str, Any]:
    """Return the schema of a manifest list's records.

    Spec: #manifest-lists
    """
    version = FORMAT_VERSIONS[format_version]
    counted = version.requires_manifest_counts
    head = [
        _field(500, "manifest_path", "string", required=True),
        _field(501, "manifest_length", "long", required=True),
        _field(502, "partition_spec_id", "int", required=True),
    ]
    sequence_numbers = [
        _field(517, "content", "int", required=True),
        _field(515, "sequence_number", "long", required=True),
        _field(516, "min_sequence_number", "long", required=True),
    ]
    snapshot = [_field(503, "added_snapshot_id", "long", required=True)]
    file_counts = [
        _field(504, "added_files_count", "int", required=counted),
        _field(505, "existing_files_count", "int", required=counted),
        _field(506, "deleted_files_count", "int", required=counted),
    ]
    row_counts = [
        _field(512, "added_rows_count", "long", required=counted),
        _field(513, "existing_rows_count", "long", required=counted),
        _field(514, "deleted_rows_count", "long", required=counted),
    ]
    partitions = [_field(507, "partitions", _list(SUMMARY_SCHEMA, 508))]
    key_metadata = [_field(519, "key_metadata", "bytes")]
    if version.has_sequence_numbers:
        fields = [*head, *sequence_numbers, *snapshot, *file_counts, *row_counts, *partitions, *key_metadata]
    else:
        fields = [*head, *snapshot, *file_counts, *partitions, *row_counts, *key_metadata]
    if version.has_row_lineage:
        fields.append(_field(520, "first_row_id", "long"))
    return {"type": "record", "name": "manifest_file", "fields": fields}


def manifest_schema(format_version: int, partition: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the schema of a manifest's records, given the fields of its partition tuples.

    Spec: #manifests
    """
    version = FORMAT_VERSIONS[format_version]
    entry = [
        _field(0, "status", "int", required=True),
        _field(1, "snapshot_id", "long", required=not version.inherits_snapshot_ids),
    ]
    if version.has_sequence_numbers:
        entry += [_field(3, "sequence_number", "long"), _field(4, "file_sequence_number", "long")]
    entry.append(_field(2, "data_file", data_file_schema(format_version, partition), required=True))
    return {"type": "record", "name": "manifest_entry", "fields": entry}


def data_file_schema(format_version: int, partition: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the schema of the files in a manifest's records.

    Spec: #manifests
    """
    version = FORMAT_VERSIONS[format_version]
    data_file = [
        _field(100, "file_path", "string", required=True),
        _field(101, "file_format", "string", required=True),
        _field(102, "partition", {"type": "record", "name": "r102", "fields": partition}, required=True),
        _field(103, "record_count", "long", required=True),
        _field(104, "file_size_in_bytes", "long", required=True),
        _field(108, "column_sizes", _map(117, 118, "long")),
        _field(109, "value_counts", _map(119, 120, "long")),
        _field(110, "null_value_counts", _map(121, 122, "long")),
        _field(137, "nan_value_counts", _map(138, 139, "long")),
        _field(125, "lower_bounds", _map(126, 127, "bytes")),
        _field(128, "upper_bounds", _map(129, 130, "bytes")),
        _field(131, "key_metadata", "bytes"),
        _field(132, "split_offsets", _list("long", 133)),
    ]
    sort_order = _field(140, "sort_order_id", "int")
    referenced_data_file = _field(143, "referenced_data_file", "string")
    if version.has_delete_files:
        data_file.insert(0, _field(134, "content", "int", required=True))
        data_file += [_field(135, "equality_ids", _list("int", 136)), sort_order]
        if version.has_row_lineage:
            data_file.append(_field(142, "first_row_id", "long"))
        data_file.append(referenced_data_file)
        if version.has_deletion_vectors:
            data_file.append(_field(144, "content_offset", "long"))
            data_file.append(_field(145, "content_size_in_bytes", "long"))
    else:
        data_file.insert(5, _field(105, "block_size_in_bytes", "long", required=True))
        data_file.append(sort_order)
    return {"type": "record", "name": "r2", "fields": data_file}
