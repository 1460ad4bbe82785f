"""Manifest lists: which manifests a snapshot has, from and to Avro, in format versions 1, 2 and 3."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from app.engine.model.format_versions import FORMAT_VERSIONS
from app.engine.model.ids import Location, SnapshotId, SpecId
from app.engine.model.manifests import ManifestContent, ManifestFile, PartitionSummary
from app.errors import InvalidMetadata
from app.formats.avro_files import AvroFile, open_avro
from app.formats.avro_packing import Packer, packer_of, write_avro
from app.formats.avro_schemas import compile_type
from app.formats.avro_types import Array, AvroType, Field, Record, Union
from app.formats.manifest_columns import UNASSIGNED_SEQUENCE_NUMBER
from app.formats.manifest_schemas import manifest_list_schema

_IDS_BY_NAME: Final = {
    "manifest_path": 500,
    "manifest_length": 501,
    "partition_spec_id": 502,
    "content": 517,
    "sequence_number": 515,
    "min_sequence_number": 516,
    "added_snapshot_id": 503,
    "added_files_count": 504,
    "existing_files_count": 505,
    "deleted_files_count": 506,
    "added_data_files_count": 504,
    "existing_data_files_count": 505,
    "deleted_data_files_count": 506,
    "partitions": 507,
    "added_rows_count": 512,
    "existing_rows_count": 513,
    "deleted_rows_count": 514,
    "key_metadata": 519,
    "first_row_id": 520,
    "contains_null": 509,
    "contains_nan": 518,
    "lower_bound": 510,
    "upper_bound": 511,
}
"""For writers that left the ids out; v1 once had other names for the counts."""


def read_manifest_list(content: bytes, location: Location) -> tuple[ManifestFile, ...]:
    """Return the manifests that a list names, in its order.

    Raises:
        InvalidMetadata: the bytes are no manifest list; names the file.

    Spec: #manifest-lists
    """
    try:
        return tuple(_manifests(open_avro(content)))
    except IndexError as error:
        raise InvalidMetadata(f"Cannot read manifest list {location}: it is cut off") from error
    except (ValueError, TypeError) as error:
        raise InvalidMetadata(f"Cannot read manifest list {location}: {error}") from error


def _manifests(file: AvroFile) -> Iterator[ManifestFile]:
    kind = _record_of(file.schema_text)
    for block in file.blocks:
        pos = 0
        for _ in range(block.record_count):
            record, pos = kind.read(block.content, pos)
            yield _manifest(record)
        if pos != len(block.content):
            raise ValueError("a block does not have the records it says")


@lru_cache(maxsize=32)
def _record_of(schema_text: str) -> Record:
    try:
        kind = _with_ids(compile_type(json.loads(schema_text)))
    except RecursionError as error:
        raise ValueError("its schema is nested too deeply") from error
    if not isinstance(kind, Record):
        raise ValueError("its records are no manifests")  # noqa: TRY004 - the file's fault, not the program's
    return kind


def _with_ids(kind: AvroType) -> AvroType:
    """Return a type whose records give their values by the spec's ids, also where the writer gave names only."""
    match kind:
        case Record():
            return Record(
                tuple(
                    Field(
                        field.name,
                        _IDS_BY_NAME.get(field.name, -1) if field.field_id is None else field.field_id,
                        _with_ids(field.kind),
                    )
                    for field in kind.fields
                )
            )
        case Union():
            return Union(tuple(map(_with_ids, kind.branches)))
        case Array():
            return replace(kind, items=_with_ids(kind.items))
    return kind


def _manifest(values: Mapping[int, Any]) -> ManifestFile:
    path, length, spec_id = values.get(500), values.get(501), values.get(502)
    if not isinstance(path, str) or not isinstance(length, int) or not isinstance(spec_id, int):
        raise ValueError("one of its manifests has no path, no length or no partition spec")  # noqa: TRY004 - as above
    summaries = values.get(507)
    return ManifestFile(
        manifest_path=Location(path),
        manifest_length=length,
        partition_spec_id=SpecId(spec_id),
        content=ManifestContent(values.get(517) or 0),
        sequence_number=values.get(515) or 0,
        min_sequence_number=values.get(516) or 0,
        added_snapshot_id=values.get(503),
        added_files_count=values.get(504),
        existing_files_count=values.get(505),
        deleted_files_count=values.get(506),
        added_rows_count=values.get(512),
        existing_rows_count=values.get(513),
        deleted_rows_count=values.get(514),
        partitions=None if summaries is None else tuple(map(_summary, summaries)),
        key_metadata=values.get(519),
        first_row_id=values.get(520),
    )


def _summary(values: Mapping[int, Any]) -> PartitionSummary:
    # A writer that did not say whether there are nulls may have had some.
    contains_null = values.get(509)
    return PartitionSummary(
        contains_null=contains_null is not False,
        contains_nan=values.get(518),
        lower_bound=values.get(510),
        upper_bound=values.get(511),
    )


def assign_numbers(
    manifests: Iterable[ManifestFile], *, sequence_number: int, first_row_id: int | None = None
) -> tuple[tuple[ManifestFile, ...], int | None]:
    """Return the manifests as a commit numbers them, and the row id that comes after all of them.

    New manifests get the snapshot's sequence number. With `first_row_id` (from v3 on), data manifests without row
    ids get the next ones, as many as they have added and existing rows.

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
        is_data = manifest.content is ManifestContent.DATA
        if next_row_id is not None and is_data and manifest.first_row_id is None:
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
        ValueError: a manifest does not fit the format version, or lacks what it asks for.

    Spec: #manifest-lists
    """
    version = FORMAT_VERSIONS[format_version]
    numbered, _ = assign_numbers(
        manifests,
        sequence_number=sequence_number if version.has_sequence_numbers else 0,
        first_row_id=first_row_id if version.has_row_lineage else None,
    )
    metadata = {
        "snapshot-id": str(snapshot_id),
        "parent-snapshot-id": "null" if parent_snapshot_id is None else str(parent_snapshot_id),
        "format-version": str(format_version),
    }
    if version.has_sequence_numbers:
        metadata["sequence-number"] = str(sequence_number)
    if version.has_row_lineage:
        metadata["first-row-id"] = "null" if first_row_id is None else str(first_row_id)
    schema, pack = _written(format_version)
    return write_avro(schema, [_pack(pack, manifest, format_version) for manifest in numbered], metadata)


@lru_cache(maxsize=8)
def _written(format_version: int) -> tuple[Any, Packer]:
    schema = manifest_list_schema(format_version)
    return schema, packer_of(schema)


def _pack(pack: Packer, manifest: ManifestFile, format_version: int) -> bytes:
    if manifest.content is not ManifestContent.DATA and not FORMAT_VERSIONS[format_version].has_delete_files:
        raise ValueError(
            f"Cannot list {manifest.manifest_path}: format version {format_version} has no delete files"
        )
    try:
        return pack(_values(manifest))
    except (TypeError, ValueError, AttributeError, struct.error) as error:
        raise ValueError(f"Cannot list manifest {manifest.manifest_path}: {error}") from error


def _values(manifest: ManifestFile) -> Mapping[int, Any]:
    summaries = manifest.partitions
    return {
        500: manifest.manifest_path,
        501: manifest.manifest_length,
        502: manifest.partition_spec_id,
        517: manifest.content,
        515: manifest.sequence_number,
        516: manifest.min_sequence_number,
        503: manifest.added_snapshot_id,
        504: manifest.added_files_count,
        505: manifest.existing_files_count,
        506: manifest.deleted_files_count,
        512: manifest.added_rows_count,
        513: manifest.existing_rows_count,
        514: manifest.deleted_rows_count,
        507: (
            None
            if summaries is None
            else [
                {
                    509: item.contains_null,
                    518: item.contains_nan,
                    510: item.lower_bound,
                    511: item.upper_bound,
                }
                for item in summaries
            ]
        ),
        519: manifest.key_metadata,
        520: manifest.first_row_id,
    }
