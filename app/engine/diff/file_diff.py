"""The difference of two snapshots: live files that only one of them has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from app.engine.model.files.manifests import (
    DataFile,
    FileContent,
    FileKey,
    ManifestEntry,
    ManifestFile,
    ManifestSource,
    Partition,
    PartitionKey,
)
from app.engine.model.ids import Location, SpecId
from app.engine.model.snapshot import Snapshot

_PIECE: Final = 10_000


@dataclass(slots=True)
class FileTotals:
    """How many files there are, and what they hold; rows of delete files count as deletes."""

    data_files: int = 0
    delete_files: int = 0
    rows: int = 0
    deletes: int = 0
    bytes: int = 0

    def add(self, file: DataFile) -> None:
        """Add a file to the totals; a deletion vector counts with its own bytes only."""
        if file.content is FileContent.DATA:
            self.data_files += 1
            self.rows += file.record_count
        else:
            self.delete_files += 1
            self.deletes += file.record_count
        own = file.content_size_in_bytes
        self.bytes += file.file_size_in_bytes if own is None else own


@dataclass(slots=True)
class PartitionTotals:
    """What was added to and removed from one partition, or the whole table."""

    added: FileTotals = field(default_factory=FileTotals)
    removed: FileTotals = field(default_factory=FileTotals)


PartitionChange = tuple[SpecId, Partition, PartitionTotals]
"""A partition, and what was added to and removed from it."""


@dataclass(frozen=True, slots=True)
class FileDiff:
    """Live files that only one of two snapshots has, in the order of the manifests."""

    added: list[ManifestEntry]
    removed: list[ManifestEntry]

    def totals(self) -> PartitionTotals:
        """Return the counts of the whole table."""
        whole = PartitionTotals()
        for entry in self.added:
            whole.added.add(entry.file)
        for entry in self.removed:
            whole.removed.add(entry.file)
        return whole

    def by_partition(self) -> list[PartitionChange]:
        """Return the counts of each partition in which something changed."""
        found: dict[PartitionKey, PartitionChange] = {}
        for entry in self.added:
            _of_partition(found, entry.file).added.add(entry.file)
        for entry in self.removed:
            _of_partition(found, entry.file).removed.add(entry.file)
        return list(found.values())

    def let_go(self) -> None:
        """Forget the files, piece by piece.

        A million of them that go at once are one step of the interpreter, in which no other thread runs.
        """
        for entries in (self.added, self.removed):
            while entries:
                del entries[-_PIECE:]


def _of_partition(found: dict[PartitionKey, PartitionChange], file: DataFile) -> PartitionTotals:
    of_partition = (file.spec_id, file.partition, PartitionTotals())
    return found.setdefault(file.partition_key, of_partition)[2]


def file_diff(source: ManifestSource, before: Snapshot | None, after: Snapshot | None) -> FileDiff:
    """Return the live files that only one of two snapshots has; None is an empty table.

    Manifests that both snapshots have are not read: their files live in both. A file that was only moved from one
    manifest to another is no difference.

    Raises:
        CorruptMetadata, FileMissing, FilesUnavailable: a manifest cannot be read.
    """
    old = list(source.manifests(before)) if before is not None else []
    new = list(source.manifests(after)) if after is not None else []
    shared = {manifest.manifest_path for manifest in old} & {manifest.manifest_path for manifest in new}
    gone = _live_files(source, old, shared)
    come = _live_files(source, new, shared)
    diff = FileDiff(
        added=[entry for key, entry in come.items() if key not in gone],
        removed=[entry for key, entry in gone.items() if key not in come],
    )
    for files in (come, gone):
        while files:
            files.popitem()
    return diff


def _live_files(
    source: ManifestSource, manifests: Sequence[ManifestFile], shared: Iterable[Location]
) -> dict[FileKey, ManifestEntry]:
    return {
        entry.file.key: entry
        for entry in live_entries(source, (item for item in manifests if item.manifest_path not in shared))
    }


def live_entries(source: ManifestSource, manifests: Iterable[ManifestFile]) -> Iterator[ManifestEntry]:
    """Yield the entries of live files, manifest after manifest.

    Raises:
        CorruptMetadata, FileMissing, FilesUnavailable: a manifest cannot be read.
    """
    for manifest in manifests:
        for entry in source.entries(manifest):
            if entry.is_live:
                yield entry
