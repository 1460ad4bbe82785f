"""Manifests made byte by byte: what our own writer does not write."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from app.engine.model.files.manifests import EntryStatus, ManifestFile
from app.engine.model.ids import Location, SnapshotId, SpecId
from app.formats.avro.packers import Packing, write_packed
from app.formats.avro.types import write_long
from app.formats.manifests.avro_schemas import manifest_list_schema
from app.formats.manifests.lists import read_manifest_list


def field(field_id: int, name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "field-id": field_id}


def schema_with(partition: list[dict[str, Any]], *others: dict[str, Any]) -> dict[str, Any]:
    """Return the smallest schema that is a manifest's, and fields of the file behind the required ones."""
    file = [
        field(100, "file_path", "string"),
        field(101, "file_format", "string"),
        field(102, "partition", {"type": "record", "name": "r102", "fields": partition}),
        field(103, "record_count", "long"),
        field(104, "file_size_in_bytes", "long"),
        *others,
    ]
    entry = [
        field(0, "status", "int"),
        field(2, "data_file", {"type": "record", "name": "r2", "fields": file}),
    ]
    return {"type": "record", "name": "manifest_entry", "fields": entry}


def text(value: str) -> bytes:
    return write_long(len(value)) + value.encode()


def record(partition: bytes = b"", others: bytes = b"", *, rows: int = 5, path: str = "s3://b/x") -> bytes:
    """Return a record of such a schema."""
    numbers = write_long(rows) + write_long(100)
    return write_long(EntryStatus.ADDED) + text(path) + text("PARQUET") + partition + numbers + others


FIXED = field(1000, "f", ["null", {"type": "fixed", "name": "fixed_5", "size": 5}])
"""A partition field of five bytes."""


def manifest_list_of(count: int, path: str = "s3://b/m.avro") -> bytes:
    """Return a manifest list that names one manifest many times: equal lines pack well."""
    manifest = ManifestFile(Location(path), 100, SpecId(0))
    schema = manifest_list_schema(1)
    line = text(path) + write_long(100) + write_long(0) + write_long(1) + b"\x00" * 8
    assert tuple(read_manifest_list(write_packed(Packing(schema), [line], {}), Location("list")).values) == (
        replace(manifest, added_snapshot_id=SnapshotId(1)),
    )
    return write_packed(Packing(schema), [line] * count, {})
