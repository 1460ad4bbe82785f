"""Manifests written together, of entries that come in any order."""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from app.engine.model.files.manifests import ManifestEntry, Partition, PartitionKey, partition_key
from app.formats.manifests.writer import EntryCounts, ManifestPacker, WrittenManifest

_CHUNK_BYTES: Final = 256 << 10


@dataclass(slots=True)
class _Waiting:
    """The entries of one manifest that is to be written, as they came."""

    chunks: list[bytes] = field(default_factory=list)
    open_chunk: list[bytes] = field(default_factory=list)
    open_bytes: int = 0
    ranks: array[int] = field(default_factory=lambda: array("Q"))
    lengths: array[int] = field(default_factory=lambda: array("I"))
    rows: array[int] = field(default_factory=lambda: array("q"))
    sequence_numbers: array[int] = field(default_factory=lambda: array("q"))
    partitions: array[int] = field(default_factory=lambda: array("I"))
    lowest_row_id: int | None = None
    has_row_ids: bool = True
    """Whether all entries have one of their own."""

    def add(self, record: bytes, rank: int, partition: int, entry: ManifestEntry) -> None:
        self.open_chunk.append(record)
        self.open_bytes += len(record)
        self.ranks.append(rank)
        self.lengths.append(len(record))
        self.rows.append(entry.file.record_count)
        self.sequence_numbers.append(entry.data_sequence_number or 0)
        self.partitions.append(partition)
        row_id = entry.file.first_row_id
        if row_id is None:
            self.has_row_ids = False
        elif self.lowest_row_id is None or row_id < self.lowest_row_id:
            self.lowest_row_id = row_id
        if self.open_bytes >= _CHUNK_BYTES:
            self._close_chunk()

    def _close_chunk(self) -> None:
        self.chunks.append(zlib.compress(b"".join(self.open_chunk), 1))
        self.open_chunk, self.open_bytes = [], 0

    def take_records(self) -> list[bytes]:
        """Return the records as they came, and keep them no longer."""
        content = b"".join([*map(zlib.decompress, self.chunks), *self.open_chunk])
        self.chunks, self.open_chunk = [], []
        records, pos = [], 0
        for length in self.lengths:
            records.append(content[pos : pos + length])
            pos += length
        return records


class ShuffledManifests:
    """Several manifests of existing entries, which are given in any order.

    Memory holds about the bytes of the finished manifests; and while one is finished, its entries unpacked.
    """

    def __init__(self, packer: ManifestPacker, count: int, target_bytes: int) -> None:
        """Prepare for so many manifests; one that is larger than `target_bytes` becomes several."""
        self._packer = packer
        self._target_bytes = target_bytes
        self._waiting = [_Waiting() for _ in range(count)]
        self._places: dict[PartitionKey, int] = {}
        self._partitions: list[Partition] = []

    def add(self, to: int, rank: int, entry: ManifestEntry) -> None:
        """Add an entry to one of the manifests, where it stands by its rank.

        Raises:
            ValueError: the entry does not fit the spec, the content or the format version.
        """
        partition = entry.file.partition
        key = partition_key(entry.file.spec_id, partition)
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = len(self._partitions)
            self._partitions.append(partition)
        self._waiting[to].add(self._packer.pack(entry), rank, place, entry)

    def finish(self) -> Iterator[WrittenManifest]:
        """Yield the manifests in their order, each when it is asked for.

        Raises:
            ValueError: a partition does not have the types of the spec.
        """
        for number, waiting in enumerate(self._waiting):
            self._waiting[number] = _Waiting()
            records = waiting.take_records()
            order = sorted(range(len(records)), key=waiting.ranks.__getitem__)
            yield from self._written(waiting, records, order)

    def _written(
        self, waiting: _Waiting, records: Sequence[bytes], order: Sequence[int]
    ) -> Iterator[WrittenManifest]:
        if not order:
            return
        counts = EntryCounts(
            (0, len(order), 0),
            (0, sum(waiting.rows[at] for at in order), 0),
            min(waiting.sequence_numbers[at] for at in order),
            (self._partitions[place] for place in {waiting.partitions[at] for at in order}),
        )
        # Where every file has its row ids, none inherits, and a number here keeps a list from giving out new ones.
        first_row_id = waiting.lowest_row_id if waiting.has_row_ids else None
        written = self._packer.manifest((records[at] for at in order), counts, first_row_id)
        if len(written.content) <= self._target_bytes or len(order) == 1:
            yield written
            return
        half = len(order) // 2
        yield from self._written(waiting, records, order[:half])
        yield from self._written(waiting, records, order[half:])
