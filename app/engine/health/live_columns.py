"""The live files of one manifest as columns, with no more than what is counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Self

from app.engine.model.files.delete_files import is_deletion_vector
from app.engine.model.files.manifests import DataFile, FileContent, ManifestEntry, Partition, PartitionKey
from app.engine.model.ids import SpecId


class ContentKind(IntEnum):
    """What a file holds; other than `FileContent` it keeps deletion vectors apart."""

    DATA = 0
    POSITION_DELETES = 1
    EQUALITY_DELETES = 2
    DELETION_VECTOR = 3

    @property
    def content(self) -> FileContent:
        """What its entries in manifests say."""
        is_vector = self is ContentKind.DELETION_VECTOR
        return FileContent.POSITION_DELETES if is_vector else FileContent(int(self))


@dataclass(frozen=True, slots=True)
class LiveColumns:
    """The files of a manifest that are not deleted, column by column.

    All columns but `partitions` have one value for each file.
    """

    spec_id: SpecId
    partitions: Sequence[Partition]
    """The distinct partitions of the manifest's entries; those of deleted files may be among them."""
    partition_numbers: Sequence[int]
    """For each file the position of its partition."""
    kinds: Sequence[ContentKind]
    rows: Sequence[int]
    """Rows of a data file, deleted positions or equality values of a delete file."""
    sizes: Sequence[int]
    """In bytes; of a deletion vector its own bytes, not those of the Puffin file around it."""
    sequence_numbers: Sequence[int]
    """Data sequence numbers."""
    sort_order_ids: Sequence[int | None]

    @classmethod
    def of(cls, spec_id: SpecId, entries: Iterable[ManifestEntry]) -> Self:
        """Return the columns of a manifest's entries.

        Raises:
            InvalidMetadata: an entry makes no sense; names the file.
        """
        live = [entry for entry in entries if entry.is_live]
        files = [entry.file for entry in live]
        numbers: dict[PartitionKey, int] = {}
        partitions: list[Partition] = []
        partition_numbers = []
        for file in files:
            number = numbers.setdefault(file.partition_key, len(numbers))
            if number == len(partitions):
                partitions.append(file.partition)
            partition_numbers.append(number)
        return cls(
            spec_id,
            partitions,
            partition_numbers,
            [kind_of(file) for file in files],
            [file.record_count for file in files],
            [
                file.file_size_in_bytes if file.content_size_in_bytes is None else file.content_size_in_bytes
                for file in files
            ],
            [entry.data_sequence_number or 0 for entry in live],
            [file.sort_order_id for file in files],
        )


def kind_of(file: DataFile) -> ContentKind:
    """Return what a file holds."""
    if is_deletion_vector(file):
        return ContentKind.DELETION_VECTOR
    return ContentKind(int(file.content)) if file.content is not FileContent.DATA else ContentKind.DATA
