"""Planning a scan: from manifests to the files to read, with deletes and residuals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from app.engine.expressions.expressions import ALWAYS_TRUE, Expression
from app.engine.model.files.entry_filters import ColumnarEntries, FileColumns, columnar
from app.engine.model.files.manifests import (
    DataFile,
    EntryStatus,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    ManifestSource,
    Partition,
)
from app.engine.model.ids import Location
from app.engine.model.table_metadata import TableMetadata
from app.engine.scan.scan_scope import ScanScope, appends_in
from app.engine.selection.deletes import DeleteIndex
from app.engine.selection.files import FileSelection

MakeIndex = Callable[[], DeleteIndex]
KeepIndex = Callable[[MakeIndex], DeleteIndex]


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A data file to read, its deletes, and the residual filter for its rows."""

    file: DataFile
    deletes: Sequence[DataFile]
    residual: Expression

    @property
    def sure_rows(self) -> int:
        """How many rows of the result it certainly has."""
        return self.file.record_count if self.residual == ALWAYS_TRUE and not self.deletes else 0


class PlannedColumns(Iterable[PlannedFile]):
    """Files of one manifest that no delete applies to; each is made only when it is asked for."""

    def __init__(
        self,
        entries: ColumnarEntries,
        positions: Sequence[int],
        residual_of: Callable[[Partition], Expression],
    ) -> None:
        self._entries = entries
        self._positions = positions
        self.residual_of = residual_of
        """Takes a partition; returns the residual filter for its rows."""

    def __len__(self) -> int:
        return len(self._positions)

    def __iter__(self) -> Iterator[PlannedFile]:
        for entry in self._entries.entries_at(self._positions):
            yield PlannedFile(entry.file, (), self.residual_of(entry.file.partition))

    def part(self, first: int, end: int) -> PlannedColumns:
        """Return the files from one place up to another, without that."""
        return PlannedColumns(self._entries, self._positions[first:end], self.residual_of)

    @cached_property
    def files(self) -> FileColumns:
        """The files as columns.

        Raises:
            InvalidMetadata: an entry makes no sense; names the file.
        """
        return self._entries.files_at(self._positions)

    @property
    def sure_rows(self) -> int:
        """How many rows of the result they certainly have."""
        counted = zip(self.files.partitions, self.files.record_counts, strict=True)
        return sum(count for partition, count in counted if self.residual_of(partition) == ALWAYS_TRUE)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A data manifest that may name files of the scan, and its place among all data manifests."""

    place: int
    manifest: ManifestFile


class ScanPlanner:
    """Plans one scan, manifest by manifest, so that another server can go on with it.

    One thread at a time may use it.
    """

    def __init__(
        self,
        metadata: TableMetadata,
        scope: ScanScope,
        source: ManifestSource,
        keep: KeepIndex | None = None,
    ) -> None:
        """Begin a scan; `keep` may return the deletes of another scan of the same scope."""
        self._metadata = metadata
        self._scope = scope
        self._source = source
        self._selection = FileSelection(scope.rows, metadata.partition_specs)
        self._keep = keep

    @cached_property
    def candidates(self) -> Sequence[Candidate]:
        """The data manifests whose summaries do not rule them out."""
        return [
            Candidate(place, manifest)
            for place, manifest in enumerate(self._data_manifests)
            if self._selection.may_hold_live(manifest)
        ]

    @property
    def manifest_count(self) -> int:
        """How many data manifests there are, including those that are ruled out."""
        return len(self._data_manifests)

    @cached_property
    def delete_manifests(self) -> Sequence[ManifestFile]:
        """The delete manifests whose summaries do not rule them out."""
        if self._scope.start_snapshot_id is not None:
            return ()
        return [
            manifest
            for manifest in self._listed
            if manifest.content is ManifestContent.DELETES and self._selection.may_hold_live(manifest)
        ]

    @property
    def is_everything(self) -> bool:
        """Whether nothing is filtered, so that reading a manifest cannot rule a file out."""
        return self._selection.is_everything

    @cached_property
    def deletes(self) -> DeleteIndex:
        """The deletes of the scan, read at the first question."""
        if self._keep is None or not self.delete_manifests:
            return self._read_deletes()
        return self._keep(self._read_deletes)

    def _read_deletes(self) -> DeleteIndex:
        entries = (
            entry
            for manifest in self.delete_manifests
            for entry in self._selection.live(manifest, self._source.entries(manifest))
        )
        return DeleteIndex(entries, self._metadata.partition_specs, self._metadata.schemas)

    def files(self, manifest: ManifestFile) -> Iterable[PlannedFile]:
        """Return the files of one data manifest, in an order that is always the same.

        They are `PlannedColumns` where the manifest's entries alone decide, which is far less work.

        Raises:
            InvalidMetadata, FileMissing, FilesUnavailable: a manifest cannot be read.
        """
        entries = self._source.entries(manifest)
        columns = columnar(entries)
        if self.deletes.count or self._appended or columns is None:
            return self._one_by_one(manifest, entries)
        spec_id, residual = manifest.partition_spec_id, self._selection.residual
        positions = self._selection.data_positions(manifest, columns)
        return PlannedColumns(columns, positions, lambda partition: residual(spec_id, partition))

    def _one_by_one(self, manifest: ManifestFile, entries: Iterable[ManifestEntry]) -> Iterator[PlannedFile]:
        deletes_of = self.deletes.deletes_of
        for entry, residual in self._selection.data_files(manifest, entries):
            if self._is_of_scan(entry):
                deletes = deletes_of(entry.file, entry.data_sequence_number or 0)
                yield PlannedFile(entry.file, [each.file for each in deletes] if deletes else (), residual)

    def _is_of_scan(self, entry: ManifestEntry) -> bool:
        return not self._appended or (
            entry.status is EntryStatus.ADDED and entry.snapshot_id in self._appended
        )

    @cached_property
    def _listed(self) -> Sequence[ManifestFile]:
        return () if self._scope.snapshot is None else self._source.manifests(self._scope.snapshot)

    @cached_property
    def _appended(self) -> frozenset[int]:
        """The snapshots of an incremental scan."""
        if self._scope.start_snapshot_id is None:
            return frozenset()
        return frozenset(snapshot.snapshot_id for snapshot in appends_in(self._metadata, self._scope))

    @cached_property
    def _data_manifests(self) -> Sequence[ManifestFile]:
        if self._scope.start_snapshot_id is None:
            return [manifest for manifest in self._listed if manifest.content is ManifestContent.DATA]
        # Later snapshots may have rewritten or dropped appended files: the list of the append has them.
        found: dict[Location, ManifestFile] = {}
        for snapshot in appends_in(self._metadata, self._scope):
            for manifest in self._source.manifests(snapshot):
                if manifest.content is ManifestContent.DATA and manifest.added_snapshot_id in self._appended:
                    found.setdefault(manifest.manifest_path, manifest)
        return list(found.values())
