"""Manifest lists: which manifests a snapshot has, from and to Avro, in format versions 1, 2 and 3."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import fastavro

from app.engine.model.ids import Location, SnapshotId, SpecId
from app.engine.model.manifests import ManifestContent, ManifestFile, PartitionSummary
from app.errors import InvalidMetadata
from app.formats.manifest_schemas import manifest_list_schema
from app.formats.manifests import UNASSIGNED_SEQUENCE_NUMBER


def read_manifest_list(content: bytes, location: Location) -> tuple[ManifestFile, ...]:
    """Return the manifests that a list names, in its order.

    Raises:
        InvalidMetadata: the bytes are no manifest list; names the file.

    Spec: #manifest-lists
    """
    try:
        return tuple(_manifest(record) for record in fastavro.reader(io.BytesIO(content)))
    except (ValueError, EOFError, KeyError, IndexError, TypeError, OverflowError, AttributeError) as error:
        raise InvalidMetadata(f"Cannot read manifest list {location}: {error}") from error


def _manifest(record: Any) -> ManifestFile:
    summaries = record.get("partitions")
    return ManifestFile(
        manifest_path=Location(record["manifest_path"]),
        manifest_length=record["manifest_length"],
        partition_spec_id=SpecId(record["partition_spec_id"]),
        content=ManifestContent(record.get("content") or 0),
        sequence_number=record.get("sequence_number") or 0,
        min_sequence_number=record.get("min_sequence_number") or 0,
        added_snapshot_id=record.get("added_snapshot_id"),
        added_files_count=record.get("added_files_count", record.get("added_data_files_count")),
        existing_files_count=record.get("existing_files_count", record.get("existing_data_files_count")),
        deleted_files_count=record.get("deleted_files_count", record.get("deleted_data_files_count")),
        added_rows_count=record.get("added_rows_count"),
        existing_rows_count=record.get("existing_rows_count"),
        deleted_rows_count=record.get("deleted_rows_count"),
        partitions=(
            None
            if summaries is None
            else tuple(
                PartitionSummary(
                    item["contains_null"], item.get("contains_nan"), item["lower_bound"], item["upper_bound"]
                )
                for item in summaries
            )
        ),
        key_metadata=record.get("key_metadata"),
        first_row_id=record.get("first_row_id"),
    )


def assign_numbers(
    manifests: Iterable[ManifestFile],
    *,
    sequence_number: int,
    first_row_id: int | None = None,
) -> tuple[tuple[ManifestFile, ...], int | None]:
    """Return the manifests as a commit numbers them, and the row id that comes after all of them.

    New manifests get the snapshot's sequence number; with `first_row_id` (v3), data manifests without row ids get
    the next ones, as many as they have added and existing rows.

    Spec: #sequence-number-inheritance, #first-row-id-assignment
    """
    next_row_id = first_row_id
    numbered: list[ManifestFile] = []
    for manifest in manifests:
        changes: dict[str, Any] = {}
        if manifest.sequence_number == UNASSIGNED_SEQUENCE_NUMBER:
            changes["sequence_number"] = sequence_number
        if manifest.min_sequence_number == UNASSIGNED_SEQUENCE_NUMBER:
            changes["min_sequence_number"] = sequence_number
        if (
            next_row_id is not None
            and manifest.content is ManifestContent.DATA
            and manifest.first_row_id is None
        ):
            changes["first_row_id"] = next_row_id
            next_row_id += (manifest.existing_rows_count or 0) + (manifest.added_rows_count or 0)
        numbered.append(replace(manifest, **changes) if changes else manifest)
    return tuple(numbered), next_row_id


def write_manifest_list(
    manifests: Iterable[ManifestFile],
    *,
    format_version: int,
    snapshot_id: SnapshotId,
    parent_snapshot_id: SnapshotId | None,
    sequence_number: int,
    first_row_id: int | None = None,
) -> bytes:
    """Return a manifest list of these manifests, numbered as `assign_numbers` does.

    Raises:
        ValueError: a manifest does not fit the format version.

    Spec: #manifest-lists
    """
    numbered, _ = assign_numbers(
        manifests,
        sequence_number=sequence_number if format_version >= 2 else 0,
        first_row_id=first_row_id if format_version >= 3 else None,
    )
    metadata = {
        "snapshot-id": str(snapshot_id),
        "parent-snapshot-id": "null" if parent_snapshot_id is None else str(parent_snapshot_id),
        "format-version": str(format_version),
    }
    if format_version >= 2:
        metadata["sequence-number"] = str(sequence_number)
    if format_version >= 3:
        metadata["first-row-id"] = "null" if first_row_id is None else str(first_row_id)
    stream = io.BytesIO()
    fastavro.writer(
        stream,
        fastavro.parse_schema(manifest_list_schema(format_version)),
        [_record(manifest) for manifest in numbered],
        codec="deflate",
        metadata=metadata,
    )
    return stream.getvalue()


def _record(manifest: ManifestFile) -> dict[str, Any]:
    return {
        "manifest_path": manifest.manifest_path,
        "manifest_length": manifest.manifest_length,
        "partition_spec_id": manifest.partition_spec_id,
        "content": int(manifest.content),
        "sequence_number": manifest.sequence_number,
        "min_sequence_number": manifest.min_sequence_number,
        "added_snapshot_id": manifest.added_snapshot_id,
        "added_files_count": manifest.added_files_count,
        "existing_files_count": manifest.existing_files_count,
        "deleted_files_count": manifest.deleted_files_count,
        "added_rows_count": manifest.added_rows_count,
        "existing_rows_count": manifest.existing_rows_count,
        "deleted_rows_count": manifest.deleted_rows_count,
        "partitions": (
            None
            if manifest.partitions is None
            else [
                {
                    "contains_null": item.contains_null,
                    "contains_nan": item.contains_nan,
                    "lower_bound": item.lower_bound,
                    "upper_bound": item.upper_bound,
                }
                for item in manifest.partitions
            ]
        ),
        "key_metadata": manifest.key_metadata,
        "first_row_id": manifest.first_row_id,
    }
