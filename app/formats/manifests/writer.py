"""Writes manifests: entries to Avro, in every format version."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

from app.engine.model.files.manifests import (
    UNASSIGNED_SEQUENCE_NUMBER,
    DataFile,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from app.engine.model.format_versions import FORMAT_VERSIONS, MAX_FORMAT_VERSION
from app.engine.model.ids import Location, SnapshotId
from app.engine.model.partition_spec import PartitionSpec
from app.engine.model.schema import Schema
from app.formats.avro import Packing, write_packed
from app.formats.manifests.avro_schemas import data_file_schema, ids_of_fields, manifest_schema
from app.formats.manifests.partition_fields import partition_schema, partition_types, typed
from app.formats.manifests.partition_summaries import summarize

_FILE_FIELD_IDS: Final = ids_of_fields(data_file_schema(MAX_FORMAT_VERSION, []), DataFile)
_FACTS_OF_FILE: Final = attrgetter(*_FILE_FIELD_IDS)
_V1_BLOCK_SIZE: Final = 64 << 20
"""Deprecated, but v1 requires a number there."""


@dataclass(frozen=True, slots=True)
class WrittenManifest:
    """A manifest's bytes, and its entry for a manifest list."""

    content: bytes
    manifest: ManifestFile

    def at(self, location: Location) -> ManifestFile:
        """Return the manifest as a list names it, after the bytes were stored there."""
        return replace(self.manifest, manifest_path=location)


def write_manifest(
    entries: Iterable[ManifestEntry],
    *,
    schema: Schema,
    spec: PartitionSpec,
    format_version: int,
    content: ManifestContent = ManifestContent.DATA,
    snapshot_id: SnapshotId | None,
) -> WrittenManifest:
    """Return a manifest of these entries, with its counts and summaries for a manifest list.

    Entries without a snapshot id get `snapshot_id`; if that is None, they inherit the id of the commit. If a source
    column of the spec is gone, pass a schema that still has it; otherwise types are guessed from the values.

    Raises:
        ValueError: an entry does not fit the spec, the content or the format version.

    Spec: #manifests
    """
    kept = tuple(entries)
    packer = ManifestPacker(
        schema=schema,
        spec=spec,
        format_version=format_version,
        content=content,
        snapshot_id=snapshot_id,
        partitions=[entry.file.partition for entry in kept],
    )
    files = dict.fromkeys(EntryStatus, 0)
    rows = dict.fromkeys(EntryStatus, 0)
    for entry in kept:
        files[entry.status] += 1
        rows[entry.status] += entry.file.record_count
    counts = EntryCounts(
        (files[EntryStatus.ADDED], files[EntryStatus.EXISTING], files[EntryStatus.DELETED]),
        (rows[EntryStatus.ADDED], rows[EntryStatus.EXISTING], rows[EntryStatus.DELETED]),
        # Files that inherit get the highest number there is, so only the others can be the lowest.
        min(
            (
                entry.data_sequence_number
                for entry in kept
                if entry.is_live and entry.data_sequence_number is not None
            ),
            default=UNASSIGNED_SEQUENCE_NUMBER,
        ),
        [entry.file.partition for entry in kept],
    )
    return packer.manifest(map(packer.pack, kept), counts)


@dataclass(frozen=True, slots=True)
class EntryCounts:
    """What a manifest list says about the entries of a manifest."""

    files: tuple[int, int, int]
    """Added, existing and deleted ones."""
    rows: tuple[int, int, int]
    """Rows of added, existing and deleted files."""
    lowest_sequence_number: int
    """Of the live files that have a data sequence number of their own."""
    partitions: Iterable[tuple[Any, ...]]
    """All partitions, each once or more often."""


class ManifestPacker:
    """Packs entries for manifests of one spec, content and format version."""

    def __init__(
        self,
        *,
        schema: Schema,
        spec: PartitionSpec,
        format_version: int,
        content: ManifestContent,
        snapshot_id: SnapshotId | None,
        partitions: Sequence[tuple[Any, ...]],
    ) -> None:
        """Prepare for entries of some partitions; raises `ValueError` if those do not fit the spec.

        Arguments are those of `write_manifest`.
        """
        self._spec, self._version, self._content = spec, format_version, content
        self._snapshot_id = snapshot_id
        self._kinds = partition_types(spec, schema, partitions)
        self._packing = _packing(format_version, json.dumps(partition_schema(spec, self._kinds)))
        self._field_ids = [field.field_id for field in spec.fields]
        self._metadata = {
            "schema": schema.to_json().decode(),
            "schema-id": str(schema.schema_id),
            "partition-spec": json.dumps(spec.to_object()["fields"], separators=(",", ":")),
            "partition-spec-id": str(spec.spec_id),
            "format-version": str(format_version),
        }
        if FORMAT_VERSIONS[format_version].has_delete_files:
            self._metadata["content"] = "data" if content is ManifestContent.DATA else "deletes"

    def pack(self, entry: ManifestEntry) -> bytes:
        """Return the record of an entry.

        Raises:
            ValueError: the entry does not fit the spec, the content or the format version.
        """
        _check(entry, self._spec, self._version, self._content, self._snapshot_id)
        values = _values(entry, self._field_ids, typed(self._kinds, entry.file.partition), self._snapshot_id)
        return self._packing.pack(f"an entry for {entry.file.file_path}", values)

    def manifest(
        self, records: Iterable[bytes], counts: EntryCounts, first_row_id: int | None = None
    ) -> WrittenManifest:
        """Return a manifest of packed entries.

        Raises:
            ValueError: a partition does not have the types of the spec.
        """
        written = write_packed(self._packing, records, self._metadata)
        added, existing, deleted = counts.files
        added_rows, existing_rows, deleted_rows = counts.rows
        manifest = ManifestFile(
            manifest_path=Location(""),
            manifest_length=len(written),
            partition_spec_id=self._spec.spec_id,
            content=self._content,
            sequence_number=UNASSIGNED_SEQUENCE_NUMBER,
            min_sequence_number=counts.lowest_sequence_number,
            added_snapshot_id=self._snapshot_id,
            added_files_count=added,
            existing_files_count=existing,
            deleted_files_count=deleted,
            added_rows_count=added_rows,
            existing_rows_count=existing_rows,
            deleted_rows_count=deleted_rows,
            partitions=summarize(self._kinds, (typed(self._kinds, values) for values in counts.partitions)),
            first_row_id=first_row_id,
        )
        return WrittenManifest(written, manifest)


@lru_cache(maxsize=64)
def _packing(format_version: int, partition_schema_text: str) -> Packing:
    """Return how manifests are packed whose partitions have a schema."""
    return Packing(manifest_schema(format_version, json.loads(partition_schema_text)))


def _check(
    entry: ManifestEntry,
    spec: PartitionSpec,
    format_version: int,
    content: ManifestContent,
    snapshot_id: SnapshotId | None,
) -> None:
    file, version = entry.file, FORMAT_VERSIONS[format_version]
    problem = None
    if file.spec_id != spec.spec_id:
        problem = f"it has partition spec {file.spec_id}, the manifest {spec.spec_id}"
    elif (file.content is FileContent.DATA) != (content is ManifestContent.DATA):
        problem = f"a manifest of {content.name.lower()} has no room for {file.content.name.lower()}"
    elif not version.has_delete_files and content is not ManifestContent.DATA:
        problem = f"format version {format_version} has no delete files"
    elif not version.inherits_snapshot_ids and entry.snapshot_id is None and snapshot_id is None:
        problem = f"format version {format_version} needs a snapshot id"
    elif not version.has_deletion_vectors and (
        file.content_offset is not None or file.content_size_in_bytes is not None
    ):
        problem = f"format version {format_version} has no deletion vectors"
    elif (
        version.has_sequence_numbers
        and entry.data_sequence_number is None
        and entry.status is not EntryStatus.ADDED
    ):
        problem = "only an added file can inherit its sequence number"
    if problem is not None:
        raise ValueError(f"Cannot write an entry for {file.file_path}: {problem}")


def _values(
    entry: ManifestEntry,
    partition_field_ids: Sequence[int],
    partition: tuple[Any, ...],
    snapshot_id: SnapshotId | None,
) -> Mapping[int, Any]:
    """Return an entry's values by the spec's field ids; a schema uses those that it has."""
    file = entry.file
    facts = dict(zip(_FILE_FIELD_IDS.values(), _FACTS_OF_FILE(file), strict=True))
    facts[101] = file.file_format.upper()
    facts[102] = dict(zip(partition_field_ids, partition, strict=True))
    facts[105] = _V1_BLOCK_SIZE
    # Data files refer to no other file, and delete files have no row ids.
    facts[143 if file.content is FileContent.DATA else 142] = None
    return {
        0: entry.status,
        1: snapshot_id if entry.snapshot_id is None else entry.snapshot_id,
        3: entry.data_sequence_number,
        4: entry.file_sequence_number,
        2: facts,
    }
