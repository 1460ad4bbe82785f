"""Some fields of a manifest's live entries, read in one pass; entries are not kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.engine.model.files.manifests import EntryStatus
from app.fileio.wanted import check_wanted
from app.formats.avro.container import AvroFile
from app.formats.avro.entry_fields import IDS_BY_NAME, PARTITION, STATUS
from app.formats.avro.entry_layout import EntryLayout, layouts_of


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
    live: list[Sequence[bytes]] = []
    live_statuses: list[EntryStatus] = []
    read_status = layout.readers[groups[STATUS] - 1]
    for block in file.blocks:
        check_wanted()
        records = layout.pick_all(block, wanted)
        of_block = [read_status(parts[0]) for parts in records]
        statuses += of_block
        if EntryStatus.DELETED in of_block:
            is_live = [status is not EntryStatus.DELETED for status in of_block]
            records = [parts for parts, stays in zip(records, is_live, strict=True) if stays]
            of_block = [status for status in of_block if status is not EntryStatus.DELETED]
        live += records
        live_statuses += of_block
    numbers: dict[bytes, int] = {}
    partition_numbers = [numbers.setdefault(parts[1], len(numbers)) for parts in live]
    columns = {name: _column(layout, name, live, at) for at, name in enumerate(known, start=2)}
    absent = dict.fromkeys(set(names) - set(known), [None] * len(live))
    partitions = [layout.read_partition(part) for part in numbers]
    return PickedFields(statuses, partitions, partition_numbers, live_statuses, columns | absent)


def _column(layout: EntryLayout, name: str, live: Sequence[Sequence[bytes]], at: int) -> list[Any]:
    read = layout.readers[layout.groups[IDS_BY_NAME[name]] - 1]
    return [read(parts[at]) for parts in live]
