"""Some fields of a manifest's live entries, read in one pass; entries are not kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

from app.engine.model.files.manifests import EntryStatus
from app.fileio.wanted import check_wanted
from app.formats.avro.container import AvroFile
from app.formats.avro.entry_fields import IDS_BY_NAME, PARTITION, STATUS, Reader
from app.formats.avro.entry_layout import layouts_of


@dataclass(frozen=True, slots=True)
class PickedFields:
    """The columns of a manifest: statuses of all its entries, the rest of live ones."""

    statuses: Sequence[EntryStatus]
    partitions: Sequence[Mapping[int | str, Any]]
    """The distinct partitions, by field id, or by name where the writer gave no ids."""
    partition_numbers: Sequence[int]
    live_statuses: Sequence[EntryStatus]
    columns: Mapping[str, Sequence[Any]]
    """Values by the names of fields; those that the writer left out are None."""


def pick_fields(file: AvroFile, names: Sequence[str]) -> PickedFields | None:
    """Return some fields of a manifest's live entries; None if there are two ways to read them.

    Where partitions have values of the type `fixed`, `read_entries` decides between those.

    Args:
        file: the manifest.
        names: fields of `ManifestEntry` or `DataFile`, but not the partition.

    Raises:
        ValueError: the file is not a manifest, or its records do not follow its schema.
        IndexError: a record is cut off.
    """
    layout, *others = layouts_of(file.schema_text)
    if others:
        return None
    groups = layout.groups
    known = [name for name in names if IDS_BY_NAME[name] in groups]
    wanted = [groups[field_id] for field_id in (STATUS, PARTITION, *(IDS_BY_NAME[name] for name in known))]
    statuses: list[EntryStatus] = []
    live_statuses: list[EntryStatus] = []
    parts_of_live: list[list[bytes]] = [[] for _ in wanted[1:]]
    read_status = layout.readers[groups[STATUS] - 1]
    for block in file.blocks:
        check_wanted()
        records = layout.pick_all(block, wanted)
        if not records:
            continue
        columns: Iterable[Iterable[bytes]]
        of_status, *columns = zip(*records, strict=True)
        of_block = _values(read_status, of_status)
        statuses += of_block
        if EntryStatus.DELETED in of_block:
            is_live = [status is not EntryStatus.DELETED for status in of_block]
            of_block = list(compress(of_block, is_live))
            columns = [compress(column, is_live) for column in columns]
        live_statuses += of_block
        for parts, column in zip(parts_of_live, columns, strict=True):
            parts.extend(column)
    of_partition, *of_fields = parts_of_live
    numbers = {part: number for number, part in enumerate(dict.fromkeys(of_partition))}
    readers = [layout.readers[groups[IDS_BY_NAME[name]] - 1] for name in known]
    found: dict[str, list[Any]] = dict.fromkeys(names, [None] * len(of_partition))
    found |= {name: _values(read, parts) for name, read, parts in zip(known, readers, of_fields, strict=True)}
    partitions = [layout.read_partition(part) for part in numbers]
    return PickedFields(statuses, partitions, [*map(numbers.__getitem__, of_partition)], live_statuses, found)


def _values(read: Reader, parts: Sequence[bytes]) -> list[Any]:
    """Return the values of one field; each of its distinct values is read once."""
    values = {part: read(part) for part in set(parts)}
    return list(map(values.__getitem__, parts))
