"""The live files of a manifest as columns, read in one pass: what is counted of very large tables."""

from __future__ import annotations

from typing import Final

from app.engine.health.live_files import FileKind, LiveFiles
from app.engine.model.delete_files import PUFFIN
from app.engine.model.ids import Location
from app.engine.model.manifests import (
    UNASSIGNED_SEQUENCE_NUMBER,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestFile,
)
from app.errors import InvalidMetadata
from app.formats.avro import AvroFile, PickedFields, TooLargeError, open_avro, pick_fields
from app.formats.bounds import MAX_FILE_BYTES, too_large
from app.formats.manifests.columns import ManifestColumns
from app.formats.manifests.headers import check_counts, check_header, partition_tuple, read_header

_ALWAYS: Final = ("record_count", "file_size_in_bytes", "sequence_number", "sort_order_id")
_OF_DELETES: Final = ("content", "file_format", "content_size_in_bytes")


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

    def live_files(self) -> LiveFiles:
        """Return the live files.

        Raises:
            InvalidMetadata: an entry makes no sense, or the manifest contradicts its list; names the file.
        """
        manifest = self._manifest
        is_data = manifest.content is ManifestContent.DATA
        try:
            header = read_header(self._file.metadata)
            check_header(manifest, header)
            picked = pick_fields(self._file, _ALWAYS if is_data else _ALWAYS + _OF_DELETES)
            if picked is None:
                columns = ManifestColumns(manifest, self._content, self._max_unpacked_bytes)
                return LiveFiles.of(manifest.partition_spec_id, columns)
            check_counts(manifest, picked.statuses)
            partitions = [
                partition_tuple(partition, header.partition_field_ids) for partition in picked.partitions
            ]
        except IndexError as error:
            raise self._invalid("it is cut off") from error
        except ValueError as error:
            raise self._invalid(error) from error
        live = len(picked.partition_numbers)
        return LiveFiles(
            manifest.partition_spec_id,
            partitions,
            picked.partition_numbers,
            [FileKind.DATA] * live if is_data else _kinds(picked),
            picked.columns["record_count"],
            picked.columns["file_size_in_bytes"] if is_data else _sizes(picked),
            self._sequence_numbers(picked),
            picked.columns["sort_order_id"],
        )

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


def _kinds(picked: PickedFields) -> list[FileKind]:
    contents, formats = picked.columns["content"], picked.columns["file_format"]
    return [_kind(content, kind) for content, kind in zip(contents, formats, strict=True)]


def _kind(content: FileContent | None, file_format: str) -> FileKind:
    if content is FileContent.POSITION_DELETES and file_format == PUFFIN:
        return FileKind.DELETION_VECTOR
    return FileKind(content or FileContent.DATA)


def _sizes(picked: PickedFields) -> list[int]:
    sizes, own = picked.columns["file_size_in_bytes"], picked.columns["content_size_in_bytes"]
    return [size if of_content is None else of_content for size, of_content in zip(sizes, own, strict=True)]
