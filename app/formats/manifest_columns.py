"""A parsed manifest as columns: little in memory, and filtered without touching the entries that go."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, overload

from app.engine.model.entry_filters import PartitionTest, ValueRange
from app.engine.model.manifests import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestEntry,
    ManifestFile,
)
from app.errors import InvalidMetadata
from app.formats.avro_files import open_avro
from app.formats.bound_columns import BoundColumns, bound_columns
from app.formats.entry_fields import (
    ENTRY_FIELDS,
    FILE_SEQUENCE_NUMBER,
    FIRST_ROW_ID,
    LOWER_BOUNDS,
    PARTITION,
    RECORD_COUNT,
    SEQUENCE_NUMBER,
    SNAPSHOT_ID,
    STATUS,
    UPPER_BOUNDS,
)
from app.formats.entry_layout import EntryLayout, layouts_of
from app.formats.manifest_headers import ManifestHeader, read_header
from app.formats.metric_maps import BoundMap

Partition = tuple[Any, ...]

UNASSIGNED_SEQUENCE_NUMBER: Final = -1
"""What a new manifest has until a commit gives it the snapshot's; until then nothing is inherited."""

_ENTRY_FIELD_IDS: Final = (STATUS, SNAPSHOT_ID, SEQUENCE_NUMBER, FILE_SEQUENCE_NUMBER)
_FILE_FIELD_IDS: Final = tuple(
    field_id for field_id in ENTRY_FIELDS if field_id not in (*_ENTRY_FIELD_IDS, PARTITION)
)
"""In the order of `DataFile`, but for the partition, which is read once for many files."""
_FIRST_ROW_ID: Final = _FILE_FIELD_IDS.index(FIRST_ROW_ID) - 5
"""Where it stands behind content, path, format, record count and size."""
_NO_ROW_ID: Final = -1
_BYTES_A_PARTITION: Final = 200
_KEPT_BOUNDS: Final = 4
_BYTES_OF_BOUNDS: Final = 2 * 16 * _KEPT_BOUNDS
"""For each entry; room is counted for them whether they have been asked for or not."""
_WORTH_COLUMNS: Final = 500
"""Fewer entries are sooner looked at one by one."""


class ManifestColumns(Sequence[ManifestEntry]):
    """The entries of one manifest in their order; each is made when it is asked for.

    Kept are the unpacked records, where each of them starts, and what nearly every question begins with: status and
    partition. Partitions are numbered, as thousands of entries mostly share a few.
    """

    def __init__(self, manifest: ManifestFile, content: bytes) -> None:
        """Parse a manifest.

        Raises:
            InvalidMetadata: the bytes are no manifest, or contradict the list; names the file.
        """
        self._manifest = manifest
        self._bounds: dict[Hashable, BoundColumns | None] = {}
        try:
            self._read(content)
        except IndexError as error:
            raise self._invalid("it is cut off") from error
        except ValueError as error:
            raise self._invalid(error) from error

    def _read(self, content: bytes) -> None:
        if len(content) < self._manifest.manifest_length:
            raise ValueError(
                f"it has {len(content)} bytes, its manifest list says {self._manifest.manifest_length}"
            )
        file = open_avro(content)
        header = read_header(file.metadata)
        self._check_header(header)
        self._content = b"".join(block.content for block in file.blocks)
        blocks = [(block.record_count, len(block.content)) for block in file.blocks]
        *unlikely, plain = layouts_of(file.schema_text)
        if not any(self._fits(layout, blocks, header) for layout in unlikely):
            self._read_with(plain, blocks, header)

    def _fits(self, layout: EntryLayout, blocks: Iterable[tuple[int, int]], header: ManifestHeader) -> bool:
        """Read records of a layout that they may not have; tell whether they have it."""
        rows = dict.fromkeys(EntryStatus, 0)
        try:
            self._read_with(layout, blocks, header)
            for entry in self:
                rows[entry.status] += entry.file.record_count
        except (IndexError, ValueError, InvalidMetadata):
            return False
        manifest = self._manifest
        return all(
            listed is None or listed == rows[status]
            for status, listed in (
                (EntryStatus.ADDED, manifest.added_rows_count),
                (EntryStatus.EXISTING, manifest.existing_rows_count),
                (EntryStatus.DELETED, manifest.deleted_rows_count),
            )
        )

    def _read_with(
        self, layout: EntryLayout, blocks: Iterable[tuple[int, int]], header: ManifestHeader
    ) -> None:
        self._starts = array("I")
        self._statuses = bytearray()
        self._partition_numbers = array("I")
        self._row_ids = array("q")
        self._layout = layout
        self._entry_values, self._file_values = (
            itemgetter(*(layout.groups.get(field_id, 0) - 1 for field_id in field_ids))
            for field_ids in (_ENTRY_FIELD_IDS, _FILE_FIELD_IDS)
        )
        self.partitions: tuple[Partition, ...] = tuple(
            _tuple_of(layout.read_partition(packed), header.partition_field_ids)
            for packed in self._read_records(blocks)
        )
        self._check_counts()

    def _read_records(self, blocks: Iterable[tuple[int, int]]) -> Iterable[bytes]:
        """Find every record; return the distinct partitions in the order of their numbers."""
        groups = self._layout.groups
        wanted = [groups[STATUS], groups[PARTITION]]
        next_row_id = self._manifest.first_row_id
        if next_row_id is not None:
            wanted += [groups[RECORD_COUNT], groups.get(FIRST_ROW_ID, groups[STATUS])]
        pick, content = self._layout.pick, self._content
        read_status = self._layout.readers[groups[STATUS] - 1]
        numbers: dict[bytes, int] = {}
        pos = end = 0
        for count, size in blocks:
            end += size
            for _ in range(count):
                self._starts.append(pos)
                parts, pos = pick(content, pos, wanted)
                status = read_status(parts[0])
                self._statuses.append(status)
                self._partition_numbers.append(numbers.setdefault(parts[1], len(numbers)))
                if next_row_id is not None:
                    row_id, next_row_id = self._row_id(status, parts, next_row_id)
                    self._row_ids.append(row_id)
            if pos != end:
                raise ValueError("a block does not have the records it says")
        return numbers

    def _row_id(self, status: EntryStatus, parts: Sequence[bytes], next_row_id: int) -> tuple[int, int]:
        """Return a file's first row id and the next one after it; files that went take none."""
        groups, readers = self._layout.groups, self._layout.readers
        if FIRST_ROW_ID in groups:
            own = readers[groups[FIRST_ROW_ID] - 1](parts[3])
            if own is not None:
                return own, next_row_id
        if status is EntryStatus.DELETED:
            return _NO_ROW_ID, next_row_id
        return next_row_id, next_row_id + (readers[groups[RECORD_COUNT] - 1](parts[2]) or 0)

    def _check_header(self, header: ManifestHeader) -> None:
        manifest = self._manifest
        if header.content is not None and header.content is not manifest.content:
            raise ValueError(
                f"it holds {header.content.name.lower()}, its manifest list says {manifest.content.name.lower()}"
            )
        if header.spec_id is not None and header.spec_id != manifest.partition_spec_id:
            raise ValueError(
                f"it has partition spec {header.spec_id}, its manifest list says {manifest.partition_spec_id}"
            )

    def _check_counts(self) -> None:
        # Fewer files than listed are lost ones, which a file cut off between two blocks would not show otherwise.
        for status, listed in (
            (EntryStatus.ADDED, self._manifest.added_files_count),
            (EntryStatus.EXISTING, self._manifest.existing_files_count),
        ):
            found = self._statuses.count(status)
            if listed is not None and found < listed:
                raise ValueError(
                    f"it has {found} {status.name.lower()} files, its manifest list says {listed}"
                )

    def _invalid(self, reason: object) -> InvalidMetadata:
        return InvalidMetadata(f"Cannot read manifest {self._manifest.manifest_path}: {reason}")

    @property
    def size_bytes(self) -> int:
        """About how much memory it takes."""
        return (
            len(self._content)
            + (9 + _BYTES_OF_BOUNDS) * len(self._starts)
            + 8 * len(self._row_ids)
            + _BYTES_A_PARTITION * len(self.partitions)
        )

    def __len__(self) -> int:
        return len(self._starts)

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
        wanted = {number for number, values in enumerate(self.partitions) if is_wanted(values)}
        if not wanted:
            return
        statuses, deleted = self._statuses, EntryStatus.DELETED
        positions = [
            at
            for at, number in enumerate(self._partition_numbers)
            if number in wanted and statuses[at] != deleted
        ]
        # A column is made of all entries: too much where the partition has left few to look at.
        if len(positions) >= max(_WORTH_COLUMNS, len(self) // 4):
            for wanted_range in ranges:
                columns = self._bounds_of(wanted_range)
                if columns is not None:
                    in_range = columns.positions_in(wanted_range)
                    positions = [at for at in positions if at in in_range]
        for at in positions:
            yield self._entry(at)

    def _bounds_of(self, wanted: ValueRange) -> BoundColumns | None:
        """Return a column's bounds; those of the columns asked for last are kept."""
        if LOWER_BOUNDS not in self._layout.groups or UPPER_BOUNDS not in self._layout.groups:
            return None
        key = (wanted.field_id, wanted.kind)
        if key not in self._bounds:
            try:
                columns = bound_columns(wanted.kind, *self._bounds_by_entry(wanted.field_id))
            except ValueError as error:
                raise self._invalid(error) from error
            if len(self._bounds) >= _KEPT_BOUNDS:
                self._bounds.clear()
            self._bounds[key] = columns
            return columns
        return self._bounds.get(key)

    def _bounds_by_entry(self, field_id: int) -> tuple[list[bytes | None], list[bytes | None]]:
        layout = self._layout
        groups = [layout.groups[LOWER_BOUNDS], layout.groups[UPPER_BOUNDS]]
        readers = [layout.readers[group - 1] for group in groups]
        found: tuple[list[bytes | None], list[bytes | None]] = ([], [])
        for start in self._starts:
            parts, _ = layout.pick(self._content, start, groups)
            for bounds, read, part in zip(found, readers, parts, strict=True):
                by_field = read(part)
                if isinstance(by_field, BoundMap):
                    bounds.append(by_field.find(field_id))
                else:
                    bounds.append(None if by_field is None else by_field.get(field_id))
        return found

    def _entry(self, at: int) -> ManifestEntry:
        layout, manifest = self._layout, self._manifest
        try:
            parts, _ = layout.find(self._content, self._starts[at])
            values = [read(part) for read, part in zip(layout.readers, parts, strict=True)]
        except ValueError as error:
            raise self._invalid(error) from error
        values.append(None)  # what the writer does not have is looked up at -1
        status, snapshot_id, sequence_number, file_sequence_number = self._entry_values(values)
        content, file_path, file_format, record_count, size_bytes, *rest = self._file_values(values)
        if manifest.sequence_number != UNASSIGNED_SEQUENCE_NUMBER:
            rest[_FIRST_ROW_ID] = self._first_row_id(at)
            # Early writers left the numbers of v1's files out, which are 0 whatever the status.
            if status is EntryStatus.ADDED or manifest.sequence_number == 0:
                if sequence_number is None:
                    sequence_number = manifest.sequence_number
                if file_sequence_number is None:
                    file_sequence_number = manifest.sequence_number
        file = DataFile(
            content or FileContent.DATA,
            file_path,
            file_format,
            manifest.partition_spec_id,
            self.partitions[self._partition_numbers[at]],
            record_count,
            size_bytes,
            *rest,
        )
        if snapshot_id is None:
            snapshot_id = manifest.added_snapshot_id
        return ManifestEntry(status, snapshot_id, sequence_number, file_sequence_number, file)

    def _first_row_id(self, at: int) -> int | None:
        if not self._row_ids or self._row_ids[at] == _NO_ROW_ID:
            return None
        return self._row_ids[at]


def _tuple_of(values: Mapping[int | str, Any], field_ids: tuple[int, ...] | None) -> Partition:
    if field_ids is None or any(isinstance(key, str) for key in values):
        return tuple(values.values())
    return tuple(values.get(field_id) for field_id in field_ids)
