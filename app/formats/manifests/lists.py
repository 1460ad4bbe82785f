"""Manifest lists: the manifests of a snapshot, from and to Avro, in every format version."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from operator import attrgetter
from typing import Any, Final

from app.engine.model.files.manifests import (
    UNASSIGNED_SEQUENCE_NUMBER,
    ManifestContent,
    ManifestFile,
    PartitionSummary,
)
from app.engine.model.format_versions import FORMAT_VERSIONS, MAX_FORMAT_VERSION
from app.engine.model.ids import Location, SnapshotId, SpecId
from app.errors import InvalidMetadata
from app.formats.avro import KnownRecords, Packing, TooLargeError, open_avro, write_packed
from app.formats.bounds import MAX_FILE_BYTES, too_large
from app.formats.manifests.avro_schemas import SUMMARY_SCHEMA, ids_of_fields, manifest_list_schema

_FIELD_IDS: Final = ids_of_fields(manifest_list_schema(MAX_FORMAT_VERSION), ManifestFile)
_SUMMARY_FIELD_IDS: Final = ids_of_fields(SUMMARY_SCHEMA, PartitionSummary)
_SUMMARIES: Final = list(_FIELD_IDS).index("partitions") - 6
"""Where they are among the fields behind the first six."""
_WEIGHT: Final = 4
"""Each of its lines takes so much more memory than an entry of a manifest."""
_FACTS_OF_MANIFEST: Final = attrgetter(*_FIELD_IDS)
_FACTS_OF_SUMMARY: Final = attrgetter(*_SUMMARY_FIELD_IDS)
_IDS_BY_NAME: Final = (
    *_FIELD_IDS.items(),
    *_SUMMARY_FIELD_IDS.items(),
    ("added_data_files_count", 504),
    ("existing_data_files_count", 505),
    ("deleted_data_files_count", 506),
)
"""For writers that left the ids out; v1 once had other names for the counts."""
KnownLines = KnownRecords[ManifestFile]
"""A manifest list as it was read."""


def read_manifest_list(
    content: bytes, location: Location, max_bytes: int = MAX_FILE_BYTES, known: KnownLines | None = None
) -> KnownLines:
    """Return the manifests that a list names, in its order, with their lines.

    Args:
        content: the list.
        location: names the list in errors.
        max_bytes: the limit for files of metadata; what a list may unpack to is a part of it.
        known: another list, of whose lines this one may have many.

    Raises:
        InvalidMetadata: the bytes are not a manifest list; names the file.

    Spec: #manifest-lists
    """
    try:
        return open_avro(content, max_bytes // _WEIGHT).records(_IDS_BY_NAME, _manifest, known)
    except TooLargeError as error:
        raise too_large(f"Cannot read manifest list {location}: {error}") from error
    except IndexError as error:
        raise InvalidMetadata(f"Cannot read manifest list {location}: it is cut off") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise InvalidMetadata(f"Cannot read manifest list {location}: {error}") from error


def _manifest(record: Mapping[int, Any]) -> ManifestFile:
    path, length, spec_id, content, number, min_number, *others = map(record.get, _FIELD_IDS.values())
    if not isinstance(path, str) or not isinstance(length, int) or not isinstance(spec_id, int):
        raise ValueError("one of its manifests has no path, no length or no partition spec")  # noqa: TRY004 - the file's fault, not the program's
    summaries = others[_SUMMARIES]
    for fact in (number, min_number, *others[:_SUMMARIES], others[-1]):
        if fact is not None and not isinstance(fact, int):
            raise ValueError(f"of manifest {path} it has {str(fact)[:100]!r} for a number")
    if summaries is not None:
        others[_SUMMARIES] = tuple(map(_summary, summaries))
    kind = ManifestContent(content or 0)
    if kind is ManifestContent.DELETES:
        others[-1] = None  # only rows of data have ids, whatever DuckDB says here
    return ManifestFile(
        Location(path),
        length,
        SpecId(spec_id),
        kind,
        number or 0,
        min_number or 0,
        *others,
    )


def _summary(record: Mapping[int, Any]) -> PartitionSummary:
    contains_null, contains_nan, *bounds = map(record.get, _SUMMARY_FIELD_IDS.values())
    if not all(bound is None or isinstance(bound, bytes) for bound in bounds):
        raise ValueError("a bound of a summary is not binary")
    # If a writer did not say whether there are nulls, there may be some.
    return PartitionSummary(contains_null is not False, contains_nan, *bounds)


def assign_numbers(
    manifests: Iterable[ManifestFile], *, sequence_number: int, first_row_id: int | None = None
) -> tuple[tuple[ManifestFile, ...], int | None]:
    """Return the manifests as a commit numbers them, and the next free row id.

    New manifests get the snapshot's sequence number. With `first_row_id` (from v3 on), data manifests without row
    ids get the next ones, as many as they have added and existing rows.

    Spec: #sequence-number-inheritance, #first-row-id-assignment
    """
    next_row_id = first_row_id
    numbered: list[ManifestFile] = []
    for manifest in manifests:
        is_numbered = UNASSIGNED_SEQUENCE_NUMBER not in (
            manifest.sequence_number,
            manifest.min_sequence_number,
        )
        if is_numbered and (next_row_id is None or manifest.first_row_id is not None):
            numbered.append(manifest)
            continue
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


@dataclass(frozen=True, slots=True)
class WrittenList:
    """A manifest list that is not stored yet."""

    content: bytes
    lines: KnownLines
    """As it will be read."""
    next_row_id: int | None
    """The next free row id; None where the format version has none."""


def write_manifest_list(
    manifests: Iterable[ManifestFile],
    *,
    format_version: int,
    snapshot_id: SnapshotId,
    parent_snapshot_id: SnapshotId | None,
    sequence_number: int,
    first_row_id: int | None = None,
    complete: Callable[[ManifestFile], ManifestFile] = lambda manifest: manifest,
) -> WrittenList:
    """Return a manifest list of these manifests, numbered as `assign_numbers` does.

    Args:
        manifests: in the order of the list.
        format_version: the table's.
        snapshot_id: the snapshot's own.
        parent_snapshot_id: its parent's.
        sequence_number: the snapshot's.
        first_row_id: the snapshot's.
        complete: gives a manifest what its line needs, and may not have; asked for those without a line only.

    Raises:
        ValueError: a manifest does not fit the format version, or lacks a required value.

    Spec: #manifest-lists
    """
    version = FORMAT_VERSIONS[format_version]
    metadata = {
        "snapshot-id": str(snapshot_id),
        "parent-snapshot-id": "null" if parent_snapshot_id is None else str(parent_snapshot_id),
        "format-version": str(format_version),
    }
    if version.has_sequence_numbers:
        metadata["sequence-number"] = str(sequence_number)
    if version.has_row_lineage:
        metadata["first-row-id"] = "null" if first_row_id is None else str(first_row_id)
    packing = _packing(format_version)
    number = sequence_number if version.has_sequence_numbers else 0
    next_row_id = first_row_id if version.has_row_lineage else None
    numbered: list[ManifestFile] = []
    lines: list[bytes] = []
    for manifest in manifests:
        packed = manifest.packed
        # A line is packed when its manifest has its numbers. Some may have no row ids yet.
        if packed and packed[0] is packing and (next_row_id is None or manifest.first_row_id is not None):
            numbered.append(manifest)
            lines.append(packed[1])
            continue
        (with_numbers,), next_row_id = assign_numbers(
            (complete(manifest),), sequence_number=number, first_row_id=next_row_id
        )
        if with_numbers.content is not ManifestContent.DATA and not version.has_delete_files:
            raise ValueError(
                f"Cannot list {manifest.manifest_path}: format version {format_version} has no delete files"
            )
        numbered.append(with_numbers)
        lines.append(_pack_line(packing, with_numbers))
    return WrittenList(
        write_packed(packing, lines, metadata),
        KnownRecords.of(packing.schema_text, lines, tuple(numbered)),
        next_row_id,
    )


def _pack_line(packing: Packing, manifest: ManifestFile) -> bytes:
    line = packing.pack(f"the line of manifest {manifest.manifest_path}", _record(manifest))
    # Most of a list is the list before it.
    manifest.keep_packed((packing, line))
    return line


@cache
def _packing(format_version: int) -> Packing:
    return Packing(manifest_list_schema(format_version))


def _record(manifest: ManifestFile) -> Mapping[int, Any]:
    values = dict(zip(_FIELD_IDS.values(), _FACTS_OF_MANIFEST(manifest), strict=True))
    if manifest.partitions is not None:
        ids = _SUMMARY_FIELD_IDS.values()
        values[_FIELD_IDS["partitions"]] = [
            dict(zip(ids, _FACTS_OF_SUMMARY(summary), strict=True)) for summary in manifest.partitions
        ]
    return values
