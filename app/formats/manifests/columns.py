"""A parsed manifest as columns: small in memory, and filtered before entries are made."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from copy import copy
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, overload

from app.engine.model.files.entry_filters import EntryFacts, FileColumns, PartitionTest, ValueRange
from app.engine.model.files.manifests import (
    UNASSIGNED_SEQUENCE_NUMBER,
    DataFile,
    EntryStatus,
    FileContent,
    ManifestEntry,
    ManifestFile,
)
from app.engine.model.ids import Location
from app.errors import InvalidMetadata
from app.formats.avro import EntryColumns, TooLargeError, open_avro, read_entries
from app.formats.bounds import MAX_FILE_BYTES, too_large
from app.formats.caches import BoundedCache
from app.formats.manifests.headers import check_counts, check_header, partition_tuple, read_header

if TYPE_CHECKING:
    from app.formats.manifests.bound_columns import BoundColumns

Partition = tuple[Any, ...]

_ROW_COUNT: Final = 7
"""Where an entry's values have its file's record count."""
_FIRST_ROW_ID: Final = [field.name for field in fields(DataFile)].index("first_row_id") - 7
"""Where it is behind content, path, format, spec id, partition, record count and size."""
_FACTS: Final = (0, 1, 3, 4, 134, 100, 101, 103, 104, 142)
"""The fields of `EntryFacts` by their ids, in their order, without the partition."""
_TOLD_APART: Final = (100, 104, 103, 132, 142)
"""The fields of `FileColumns` by their ids, in their order, without what is alike."""
_ALIKE_IN: Final = (134, 101, 131, 140)
"""Content, format, key metadata and sort order."""
_KEPT_BOUNDS: Final = 4
_BYTES_OF_BOUNDS: Final = 2 * 16 * _KEPT_BOUNDS
"""For each entry; counted for the cache's budget whether they are there or not."""
_BYTES_OF_COLUMNS: Final = 250
"""For each file, with its position and without its path."""
_WORTH_COLUMNS: Final = 500
"""Fewer entries are faster to look at one by one."""


class ManifestColumns(Sequence[ManifestEntry]):
    """The entries of one manifest in their order; each is made when it is asked for.

    What its manifest list says of a manifest is checked, and what its entries inherit is filled in.
    """

    def __init__(
        self,
        manifest: ManifestFile,
        content: bytes,
        max_unpacked_bytes: int = MAX_FILE_BYTES,
        kept_files: BoundedCache[FileColumns] | None = None,
    ) -> None:
        """Parse a manifest.

        Args:
            manifest: what its list says of it.
            content: its bytes.
            max_unpacked_bytes: more are not unpacked.
            kept_files: keeps the columns of files; without it they are always made anew.

        Raises:
            InvalidMetadata: the bytes are not a manifest, or contradict the list; names the file.
        """
        self._manifest = manifest
        self._bounds: dict[Hashable, BoundColumns | None] = {}
        self._kept_files, self._key = kept_files, object()
        try:
            self._read(content, max_unpacked_bytes)
        except TooLargeError as error:
            raise too_large(str(self._invalid(error))) from error
        except IndexError as error:
            raise self._invalid("it is cut off") from error
        except ValueError as error:
            raise self._invalid(error) from error

    def _read(self, content: bytes, max_unpacked_bytes: int) -> None:
        manifest = self._manifest
        if len(content) < manifest.manifest_length:
            raise ValueError(
                f"it has {len(content)} bytes, its manifest list says {manifest.manifest_length}"
            )
        file = open_avro(content, max_unpacked_bytes)
        header = read_header(file.metadata)
        check_header(manifest, header)
        entries = read_entries(file, self._agrees_with_the_list, manifest.first_row_id)
        check_counts(manifest, entries.statuses)
        self._entries = entries
        self._statuses, self._partition_numbers = entries.statuses, entries.partition_numbers
        self._partition_field_ids = header.partition_field_ids
        self.partitions: tuple[Partition, ...] = tuple(
            partition_tuple(partition, header.partition_field_ids) for partition in entries.partitions
        )

    def _agrees_with_the_list(self, entries: EntryColumns) -> bool:
        """Return whether entries have the numbers of files and rows that the manifest list says."""
        check_counts(self._manifest, entries.statuses)
        rows = dict.fromkeys(EntryStatus, 0)
        for at in range(len(entries)):
            values = entries.values(at)
            rows[values[0]] += values[_ROW_COUNT]
        manifest = self._manifest
        return all(
            listed is None or listed == rows[status]
            for status, listed in (
                (EntryStatus.ADDED, manifest.added_rows_count),
                (EntryStatus.EXISTING, manifest.existing_rows_count),
                (EntryStatus.DELETED, manifest.deleted_rows_count),
            )
        )

    def listed_as(self, manifest: ManifestFile) -> ManifestColumns:
        """Return the entries as another list names their manifest, with what they inherit there.

        Nothing is read again: only the numbers differ that the list gives.
        """
        found = copy(self)
        found._manifest, found._key = manifest, object()  # noqa: SLF001 - a copy of its own class
        try:
            found._entries = self._entries.numbered_from(manifest.first_row_id)  # noqa: SLF001 - the same
        except ValueError as error:
            raise self._invalid(error) from error
        return found

    def _invalid(self, reason: object) -> InvalidMetadata:
        return InvalidMetadata(f"Cannot read manifest {self._manifest.manifest_path}: {reason}")

    @property
    def size_bytes(self) -> int:
        """About how much memory it takes."""
        return self._entries.size_bytes + _BYTES_OF_BOUNDS * len(self)

    def __len__(self) -> int:
        return len(self._statuses)

    @overload
    def __getitem__(self, position: int) -> ManifestEntry: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[ManifestEntry]: ...
    def __getitem__(self, position: int | slice) -> ManifestEntry | Sequence[ManifestEntry]:
        if isinstance(position, slice):
            return [self._entry(at) for at in range(*position.indices(len(self)))]
        return self._entry(range(len(self))[position])

    def __iter__(self) -> Iterator[ManifestEntry]:
        return map(self._entry, range(len(self)))

    def live_in(self, is_wanted: PartitionTest, ranges: Sequence[ValueRange] = ()) -> Iterator[ManifestEntry]:
        """Yield entries as `FilterableEntries` promises."""
        return self.entries_at(self.live_positions(is_wanted, ranges))

    def live_positions(self, is_wanted: PartitionTest, ranges: Sequence[ValueRange] = ()) -> Sequence[int]:
        """Return positions as `ColumnarEntries` promises."""
        wanted = {number for number, values in enumerate(self.partitions) if is_wanted(values)}
        if not wanted:
            return ()
        statuses, deleted = self._statuses, EntryStatus.DELETED
        positions = [
            at
            for at, number in enumerate(self._partition_numbers)
            if number in wanted and statuses[at] != deleted
        ]
        # A column is made of all entries, which is too much if few of them are left.
        if len(positions) >= max(_WORTH_COLUMNS, len(self) // 4):
            for wanted_range in ranges:
                columns = self._bounds_of(wanted_range)
                if columns is not None:
                    in_range = columns.positions_in(wanted_range)
                    positions = [at for at in positions if at in in_range]
        return positions

    def entries_at(self, positions: Sequence[int]) -> Iterator[ManifestEntry]:
        """Yield entries as `ColumnarEntries` promises."""
        return map(self._entry, positions)

    def files_at(self, positions: Sequence[int]) -> FileColumns:
        """Return columns as `ColumnarEntries` promises."""
        if self._kept_files is None:
            return self._read_files(positions)
        # Filters in other words mostly want the same partitions of a manifest.
        key = self._key, tuple(positions)
        files = self._kept_files.find(key)
        if files is None:
            files = self._read_files(positions)
            size_bytes = _BYTES_OF_COLUMNS * len(positions) + sum(map(len, files.paths))
            self._kept_files.put(key, files, size_bytes)
        return files

    def _read_files(self, positions: Sequence[int]) -> FileColumns:
        try:
            found, alike = self._entries.columns_at(positions, _TOLD_APART, _ALIKE_IN)
        except ValueError as error:
            raise self._invalid(error) from error
        paths, sizes, record_counts, split_offsets, first_row_ids = found
        if self._manifest.sequence_number != UNASSIGNED_SEQUENCE_NUMBER:
            first_row_ids = list(map(self._entries.row_id, positions))
        numbers = self._partition_numbers
        partitions = [self.partitions[numbers[at]] for at in positions]
        return FileColumns(paths, sizes, record_counts, split_offsets, first_row_ids, partitions, alike)

    @property
    def partition_field_ids(self) -> tuple[int, ...] | None:
        """The ids as `SpecifiedEntries` promises."""
        return self._partition_field_ids

    @property
    def partition_value_ids(self) -> frozenset[int] | None:
        """The ids as `SpecifiedEntries` promises."""
        # One schema wrote all of them.
        first = next(iter(self._entries.partitions), None)
        if first is None or any(isinstance(key, str) for key in first):
            return None
        return frozenset(map(int, first))

    def live_paths(self) -> Iterator[Location]:
        """Yield the paths as `PathedEntries` promises."""
        try:
            yield from self._entries.live_paths()
        except ValueError as error:
            raise self._invalid(error) from error

    def facts(self) -> Iterator[EntryFacts]:
        """Yield the facts as `CountableEntries` promises."""
        manifest, numbers, partitions = self._manifest, self._partition_numbers, self.partitions
        try:
            for at, values in enumerate(self._entries.values_of(_FACTS)):
                status, snapshot_id, number, file_number, content, path, kind, rows, size, row_id = values
                if manifest.sequence_number != UNASSIGNED_SEQUENCE_NUMBER:
                    row_id = self._entries.row_id(at)
                    number, file_number = self._inherited(status, number, file_number)
                yield EntryFacts(
                    status,
                    manifest.added_snapshot_id if snapshot_id is None else snapshot_id,
                    number,
                    file_number,
                    content or FileContent.DATA,
                    path,
                    kind,
                    rows,
                    size,
                    row_id,
                    partitions[numbers[at]],
                )
        except ValueError as error:
            raise self._invalid(error) from error

    def _inherited(
        self, status: EntryStatus, number: int | None, file_number: int | None
    ) -> tuple[int | None, int | None]:
        """Return data and file sequence number with what they inherit from the manifest's.

        Early writers left out the sequence numbers of files from v1, which are 0 whatever the status.
        """
        own = self._manifest.sequence_number
        if status is EntryStatus.ADDED or own == 0:
            return own if number is None else number, own if file_number is None else file_number
        return number, file_number

    def _bounds_of(self, wanted: ValueRange) -> BoundColumns | None:
        """Return a column's bounds; those of the last columns are kept."""
        key = (wanted.field_id, wanted.kind)
        if key not in self._bounds:
            try:
                bounds = self._entries.bounds_of(wanted.field_id)
                from app.formats.manifests.bound_columns import bound_columns

                columns = None if bounds is None else bound_columns(wanted.kind, *bounds)
            except ValueError as error:
                raise self._invalid(error) from error
            if len(self._bounds) >= _KEPT_BOUNDS:
                self._bounds.clear()
            self._bounds[key] = columns
            return columns
        return self._bounds.get(key)

    def _entry(self, at: int) -> ManifestEntry:
        manifest = self._manifest
        try:
            values = self._entries.values(at)
        except ValueError as error:
            raise self._invalid(error) from error
        status, snapshot_id, number, file_number, content, path, file_format, rows, size, *rest = values
        if manifest.sequence_number != UNASSIGNED_SEQUENCE_NUMBER:
            rest[_FIRST_ROW_ID] = self._entries.row_id(at)
            number, file_number = self._inherited(status, number, file_number)
        file = DataFile(
            content or FileContent.DATA,
            path,
            file_format,
            manifest.partition_spec_id,
            self.partitions[self._partition_numbers[at]],
            rows,
            size,
            *rest,
        )
        if snapshot_id is None:
            snapshot_id = manifest.added_snapshot_id
        return ManifestEntry(status, snapshot_id, number, file_number, file)
