"""The live files of a manifest as columns, read in one pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from app.engine.health.column_summary import LiveMetrics
from app.engine.health.live_columns import ContentKind, LiveColumns
from app.engine.model.files.delete_files import PUFFIN
from app.engine.model.files.manifests import (
    UNASSIGNED_SEQUENCE_NUMBER,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestFile,
)
from app.engine.model.ids import Location
from app.errors import InvalidMetadata
from app.formats.avro import (
    AvroFile,
    PickedFields,
    TooLargeError,
    bound_columns,
    count_columns,
    count_sums,
    open_avro,
    pick_fields,
)
from app.formats.bounds import MAX_FILE_BYTES, too_large
from app.formats.manifests.columns import ManifestColumns
from app.formats.manifests.headers import check_counts, check_header, partition_tuple, read_header

_ALWAYS: Final = ("content", "record_count", "file_size_in_bytes", "sequence_number", "sort_order_id")
_METRICS: Final = (
    "column_sizes",
    "value_counts",
    "null_value_counts",
    "nan_value_counts",
    "lower_bounds",
    "upper_bounds",
)
_FILES_AT_ONCE: Final = 4_096
"""Metrics of so many files are unpacked together."""
_OF_DELETES: Final = ("file_format", "content_size_in_bytes")


class UnpackedManifest:
    """A manifest's bytes, taken apart; the records in it are not looked at yet.

    Unpacking and reading are two steps because the first lets other threads work meanwhile.
    """

    def __init__(
        self, manifest: ManifestFile, content: bytes, max_unpacked_bytes: int = MAX_FILE_BYTES
    ) -> None:
        """Take a manifest apart.

        Raises:
            InvalidMetadata: the bytes are not a manifest, or are fewer than the list says; names the file.
        """
        self._manifest = manifest
        self._content = content
        self._max_unpacked_bytes = max_unpacked_bytes
        if len(content) < manifest.manifest_length:
            raise self._invalid(
                f"it has {len(content)} bytes, its manifest list says {manifest.manifest_length}"
            )
        try:
            self._file: AvroFile = open_avro(content, max_unpacked_bytes)
        except TooLargeError as error:
            raise too_large(str(self._invalid(error))) from error
        except ValueError as error:
            raise self._invalid(error) from error

    @property
    def location(self) -> Location:
        """Where the manifest is."""
        return self._manifest.manifest_path

    def live_columns(self) -> LiveColumns:
        """Return the live files.

        Raises:
            InvalidMetadata: an entry makes no sense, or the manifest contradicts its list; names the file.
        """
        manifest = self._manifest
        is_data = manifest.content is ManifestContent.DATA
        picked, field_ids = self._pick(_ALWAYS if is_data else _ALWAYS + _OF_DELETES)
        if picked is None:
            return LiveColumns.of(manifest.partition_spec_id, self._entries())
        # Nearly always there is one value, so that this costs next to nothing.
        for content in set(picked.columns["content"]):
            if ((content or FileContent.DATA) is FileContent.DATA) != is_data:
                raise self._invalid(f"it is of {manifest.content.name.lower()}, and an entry is not")
        partitions = [partition_tuple(partition, field_ids) for partition in picked.partitions]
        live = len(picked.partition_numbers)
        return LiveColumns(
            manifest.partition_spec_id,
            partitions,
            picked.partition_numbers,
            [ContentKind.DATA] * live if is_data else _kinds(picked),
            picked.columns["record_count"],
            picked.columns["file_size_in_bytes"] if is_data else _sizes(picked),
            self._sequence_numbers(picked),
            picked.columns["sort_order_id"],
        )

    def live_metrics(self) -> Iterator[LiveMetrics]:
        """Yield the metrics of the live files, of some thousand files at a time.

        Raises:
            InvalidMetadata: an entry makes no sense, or the manifest contradicts its list; names the file.
        """
        picked, _ = self._pick(("record_count", *_METRICS))
        columns: Mapping[str, Sequence[Any]]
        if picked is None:
            live = [entry.file for entry in self._entries() if entry.is_live]
            columns = {name: [getattr(file, name) for file in live] for name in ("record_count", *_METRICS)}
        else:
            columns = picked.columns
        for start in range(0, len(columns["record_count"]), _FILES_AT_ONCE):
            some = {name: column[start : start + _FILES_AT_ONCE] for name, column in columns.items()}
            yield LiveMetrics(
                some["record_count"],
                count_sums(some["column_sizes"]),
                count_columns(some["value_counts"]),
                count_columns(some["null_value_counts"]),
                count_columns(some["nan_value_counts"]),
                bound_columns(some["lower_bounds"]),
                bound_columns(some["upper_bounds"]),
            )

    def _pick(self, names: Sequence[str]) -> tuple[PickedFields | None, tuple[int, ...] | None]:
        """Return fields of the live entries, and the ids of the partition's fields in their order."""
        try:
            header = read_header(self._file.metadata)
            check_header(self._manifest, header)
            picked = pick_fields(self._file, names)
            if picked is not None:
                check_counts(self._manifest, picked.statuses)
        except IndexError as error:
            raise self._invalid("it is cut off") from error
        except ValueError as error:
            raise self._invalid(error) from error
        return picked, header.partition_field_ids

    def _entries(self) -> ManifestColumns:
        return ManifestColumns(self._manifest, self._content, self._max_unpacked_bytes)

    def _sequence_numbers(self, picked: PickedFields) -> list[int]:
        """Return the data sequence numbers, with those that are inherited.

        Spec: #sequence-number-inheritance
        """
        of_manifest = self._manifest.sequence_number
        numbers = picked.columns["sequence_number"]
        if of_manifest == UNASSIGNED_SEQUENCE_NUMBER:
            return [number or 0 for number in numbers]
        return [
            number if number is not None else of_manifest if status is EntryStatus.ADDED else 0
            for number, status in zip(numbers, picked.live_statuses, strict=True)
        ]

    def _invalid(self, reason: object) -> InvalidMetadata:
        return InvalidMetadata(f"Cannot read manifest {self._manifest.manifest_path}: {reason}")


def _kinds(picked: PickedFields) -> list[ContentKind]:
    contents, formats = picked.columns["content"], picked.columns["file_format"]
    return [_kind(content, kind) for content, kind in zip(contents, formats, strict=True)]


def _kind(content: FileContent | None, file_format: str) -> ContentKind:
    if content is FileContent.POSITION_DELETES and file_format == PUFFIN:
        return ContentKind.DELETION_VECTOR
    return ContentKind(content or FileContent.DATA)


def _sizes(picked: PickedFields) -> list[int]:
    sizes, own = picked.columns["file_size_in_bytes"], picked.columns["content_size_in_bytes"]
    return [size if of_content is None else of_content for size, of_content in zip(sizes, own, strict=True)]
