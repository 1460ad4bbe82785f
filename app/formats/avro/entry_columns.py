"""Entries of a manifest as columns: found at once, made only when they are asked for."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from operator import itemgetter
from typing import Any, Final

from app.engine.model.document import MAX_LONG
from app.engine.model.files.manifests import EntryStatus
from app.fileio.wanted import check_wanted
from app.formats.avro.container import AvroFile
from app.formats.avro.entry_fields import (
    ENTRY_FIELDS,
    FILE_PATH,
    FIRST_ROW_ID,
    LOWER_BOUNDS,
    PARTITION,
    RECORD_COUNT,
    STATUS,
    UPPER_BOUNDS,
)
from app.formats.avro.entry_layout import EntryLayout, layouts_of
from app.formats.avro.metric_maps import BoundMap

Bounds = list[bytes | None]

_FIELD_IDS: Final = tuple(field_id for field_id in ENTRY_FIELDS if field_id != PARTITION)
_NO_ROW_ID: Final = -1
_BYTES_A_PARTITION: Final = 200


class EntryColumns:
    """The entries of one manifest, exactly as its file has them.

    The unpacked records are kept, where each of them starts, and what nearly every question begins with: status and
    partition. Partitions are numbered, because thousands of entries mostly share a few.

    Attributes:
        statuses: the status of each entry.
        partition_numbers: for each entry the position of its partition in `partitions`.
        partitions: the distinct partitions, by field id, or by name where the writer gave no ids.
    """

    def __init__(self, file: AvroFile, layout: EntryLayout, first_row_id: int | None) -> None:
        """Find the entries; the arguments are those of `read_entries`.

        Raises:
            ValueError: the records do not have this layout.
            IndexError: a record is cut off.
        """
        self.statuses = bytearray()
        self.partition_numbers = array("I")
        self._content = b"".join(block.content for block in file.blocks)
        self._layout = layout
        self._starts = array("I")
        self._row_ids = array("q")
        self._in_order = itemgetter(*(layout.groups.get(field_id, 0) - 1 for field_id in _FIELD_IDS))
        self.partitions: tuple[Mapping[int | str, Any], ...] = tuple(
            map(layout.read_partition, self._read_records(file, first_row_id))
        )

    def _read_records(self, file: AvroFile, next_row_id: int | None) -> Iterable[bytes]:
        """Find every record; return the distinct partitions in the order of their numbers."""
        groups = self._layout.groups
        wanted = [groups[STATUS], groups[PARTITION]]
        if next_row_id is not None:
            wanted += [groups[RECORD_COUNT], groups.get(FIRST_ROW_ID, groups[STATUS])]
        pick, content = self._layout.pick, self._content
        read_status = self._layout.readers[groups[STATUS] - 1]
        numbers: dict[bytes, int] = {}
        pos = end = 0
        for block in file.blocks:
            check_wanted()
            end += len(block.content)
            for _ in range(block.record_count):
                self._starts.append(pos)
                parts, pos = pick(content, pos, wanted)
                status = read_status(parts[0])
                self.statuses.append(status)
                self.partition_numbers.append(numbers.setdefault(parts[1], len(numbers)))
                if next_row_id is not None:
                    row_id, next_row_id = self._number(status, parts, next_row_id)
                    self._row_ids.append(row_id)
            if pos != end:
                raise ValueError("a block does not have the records it says")
        return numbers

    def _number(self, status: EntryStatus, parts: Sequence[bytes], next_row_id: int) -> tuple[int, int]:
        """Return a file's first row id and the next one after it; files that went take none."""
        groups, readers = self._layout.groups, self._layout.readers
        if abs(next_row_id) > MAX_LONG:
            raise ValueError("its files have more row ids than there are")
        if FIRST_ROW_ID in groups:
            own = readers[groups[FIRST_ROW_ID] - 1](parts[3])
            if own is not None:
                return own, next_row_id
        if status is EntryStatus.DELETED:
            return _NO_ROW_ID, next_row_id
        return next_row_id, next_row_id + (readers[groups[RECORD_COUNT] - 1](parts[2]) or 0)

    def numbered_from(self, first_row_id: int | None) -> EntryColumns:
        """Return the same entries with row ids that begin elsewhere; None for none but their own.

        Raises:
            ValueError: a value makes no sense.
        """
        row_ids = array("q")
        if first_row_id is not None:
            groups, layout, next_row_id = self._layout.groups, self._layout, first_row_id
            wanted = [
                groups[STATUS],
                groups[PARTITION],
                groups[RECORD_COUNT],
                groups.get(FIRST_ROW_ID, groups[STATUS]),
            ]
            for start, status in zip(self._starts, self.statuses, strict=True):
                parts, _ = layout.pick(self._content, start, wanted)
                row_id, next_row_id = self._number(EntryStatus(status), parts, next_row_id)
                row_ids.append(row_id)
        found = copy(self)
        found._row_ids = row_ids  # noqa: SLF001 - a copy of its own class
        return found

    @property
    def size_bytes(self) -> int:
        """About how much memory they take."""
        return (
            len(self._content)
            + 9 * len(self._starts)
            + 8 * len(self._row_ids)
            + _BYTES_A_PARTITION * len(self.partitions)
        )

    def __len__(self) -> int:
        return len(self._starts)

    def values(self, at: int) -> tuple[Any, ...]:
        """Return the values of one entry in the order of `ENTRY_FIELDS`, without the partition.

        So status, snapshot id, data and file sequence number come first, then the file's values in the order of
        `DataFile`, without its spec id. Values that the writer left out are None.

        Raises:
            ValueError: a value makes no sense.
        """
        parts = self._layout.split(self._content, self._starts[at])
        values = [read(part) for read, part in zip(self._layout.readers, parts, strict=True)]
        values.append(None)  # fields that the writer does not have are looked up at -1
        in_order: tuple[Any, ...] = self._in_order(values)
        return in_order

    def values_of(self, field_ids: Sequence[int]) -> Iterator[tuple[Any, ...]]:
        """Yield the values of two or more fields for each entry; None where there is none.

        Raises:
            ValueError: a value makes no sense.
        """
        layout, content = self._layout, self._content
        known = [field_id for field_id in field_ids if field_id in layout.groups]
        groups = [layout.groups[field_id] for field_id in known]
        readers = [layout.readers[group - 1] for group in groups]
        # Fields that the writer does not have are looked up behind the last value.
        places = [known.index(item) if item in layout.groups else len(known) for item in field_ids]
        in_order = None if known == list(field_ids) else itemgetter(*places)
        for start in self._starts:
            parts, _ = layout.pick(content, start, groups)
            values = [read(part) for read, part in zip(readers, parts, strict=True)]
            yield tuple(values) if in_order is None else in_order([*values, None])

    def columns_at(
        self, positions: Sequence[int], field_ids: Sequence[int], alike_in: Sequence[int]
    ) -> tuple[list[list[Any]], list[int]]:
        """Return fields of some entries as columns, and a number for each that those alike share.

        Args:
            positions: which entries.
            field_ids: two or more fields; values that the writer left out are None.
            alike_in: fields; entries are alike if these and their partitions have the same bytes.

        Raises:
            ValueError: a value makes no sense.
        """
        layout = self._layout
        known = [field_id for field_id in field_ids if field_id in layout.groups]
        groups = [layout.groups[field_id] for field_id in known]
        readers = [layout.readers[group - 1] for group in groups]
        groups += [layout.groups[field_id] for field_id in alike_in if field_id in layout.groups]
        parts = layout.pick_at(self._content, map(self._starts.__getitem__, positions), groups)
        # A list of no rows has no columns.
        columns = list(zip(*parts, strict=True)) if parts else [()] * len(groups)
        read = {
            field_id: list(map(reader, column))
            for field_id, reader, column in zip(known, readers, columns, strict=False)
        }
        of_partition = [self.partition_numbers[at] for at in positions]
        numbers: dict[tuple[Any, ...], int] = {}
        alike = [
            numbers.setdefault(key, len(numbers))
            for key in zip(of_partition, *columns[len(known) :], strict=True)
        ]
        return [read.get(field_id) or [None] * len(positions) for field_id in field_ids], alike

    def live_paths(self) -> Iterable[Any]:
        """Yield the paths of the files that are not deleted, in their order.

        Raises:
            ValueError: a path makes no sense.
        """
        groups, deleted = self._layout.groups, EntryStatus.DELETED
        # Of one part alone no tuple is made.
        wanted = [groups[STATUS], groups[FILE_PATH]]
        read, pick, content = self._layout.readers[wanted[1] - 1], self._layout.pick, self._content
        for start, status in zip(self._starts, self.statuses, strict=True):
            if status != deleted:
                (_, part), _ = pick(content, start, wanted)
                yield read(part)

    def row_id(self, at: int) -> int | None:
        """Return the first row id of one entry's file.

        Spec: #first-row-id-inheritance
        """
        if not self._row_ids or self._row_ids[at] == _NO_ROW_ID:
            return None
        return self._row_ids[at]

    def bounds_of(self, field_id: int) -> tuple[Bounds, Bounds] | None:
        """Return the lower and upper bounds of a column, entry by entry; None if the file has none.

        Raises:
            ValueError: bounds make no sense.
        """
        layout = self._layout
        if LOWER_BOUNDS not in layout.groups or UPPER_BOUNDS not in layout.groups:
            return None
        groups = [layout.groups[LOWER_BOUNDS], layout.groups[UPPER_BOUNDS]]
        readers = [layout.readers[group - 1] for group in groups]
        found: tuple[Bounds, Bounds] = ([], [])
        for start in self._starts:
            parts, _ = layout.pick(self._content, start, groups)
            for bounds, read, part in zip(found, readers, parts, strict=True):
                by_field = read(part)
                if isinstance(by_field, BoundMap):
                    bounds.append(by_field.find(field_id))
                else:
                    bounds.append(None if by_field is None else by_field.get(field_id))
        return found


def read_entries(
    file: AvroFile, is_sound: Callable[[EntryColumns], bool], first_row_id: int | None
) -> EntryColumns:
    """Return the entries of a manifest.

    Args:
        is_sound: asked about entries that were read by another layout than Avro's own (see `CountedFixed`); that
            layout is taken only if the answer is yes.
        first_row_id: the manifest's first row id, from which files without one of their own are numbered.

    Raises:
        ValueError: the file is not a manifest, or its records do not follow its schema.
        IndexError: a record is cut off.
    """
    *unlikely, plain = layouts_of(file.schema_text)
    for layout in unlikely:
        with suppress(IndexError, ValueError):
            entries = EntryColumns(file, layout, first_row_id)
            if is_sound(entries):
                return entries
    return EntryColumns(file, plain, first_row_id)
