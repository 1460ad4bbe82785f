"""Splits: planned files, cut and combined into pieces of work of about the same size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from app.engine.model.files.delete_files import is_deletion_vector
from app.engine.model.files.manifests import DataFile
from app.engine.model.settings.properties import int_property
from app.engine.scan.scan_planner import PlannedFile
from app.errors import InvalidUpdate

SPLITTABLE: Final = frozenset({"parquet", "orc", "avro"})


@dataclass(frozen=True, slots=True)
class SplitSettings:
    """How a table wants its scans to be split; sizes in bytes, all at least 1."""

    target_size: int = 128 << 20
    lookback: int = 10
    open_file_cost: int = 4 << 20

    @staticmethod
    def of(properties: Mapping[str, str]) -> SplitSettings:
        """Return what a table's properties say.

        Raises:
            InvalidUpdate: one of them is not a number, or below 1.
        """
        default = SplitSettings()
        found = SplitSettings(
            int_property(properties, "read.split.target-size", default.target_size),
            int_property(properties, "read.split.planning-lookback", default.lookback),
            int_property(properties, "read.split.open-file-cost", default.open_file_cost),
        )
        if found.target_size < 1 or found.lookback < 1 or found.open_file_cost < 0:
            raise InvalidUpdate("Table properties read.split.* must be positive")
        return found


@dataclass(frozen=True, slots=True)
class Split:
    """A part of a data file: `length` bytes from `start`."""

    planned: PlannedFile
    start: int
    length: int


def splits_of(planned: PlannedFile, target_size: int) -> Iterator[Split]:
    """Yield the parts of a file: its row groups, if the file names their offsets."""
    file = planned.file
    size = file.file_size_in_bytes
    if file.file_format not in SPLITTABLE or size <= 0:
        yield Split(planned, 0, size)
        return
    starts = _row_groups(file)
    if not starts:
        starts = list(range(0, size, target_size))
    for start, end in zip(starts, [*starts[1:], size], strict=True):
        yield Split(planned, start, end - start)


def _row_groups(file: DataFile) -> list[int]:
    """Return where row groups start; nothing if the offsets are wrong."""
    offsets = list(file.split_offsets or ())
    is_ascending = all(one < other for one, other in pairwise(offsets))
    return offsets if offsets and is_ascending and offsets[-1] < file.file_size_in_bytes else []


def combined(files: Iterable[PlannedFile], settings: SplitSettings) -> Iterator[list[Split]]:
    """Yield pieces of work: splits read together, neighbours of one file as one split."""
    splits = (split for planned in files for split in splits_of(planned, settings.target_size))
    yield from map(_merged, _packed(splits, settings))


def _weight(split: Split, settings: SplitSettings) -> int:
    """Return a split's bytes with its deletes, but at least what opening its files costs."""
    deletes = split.planned.deletes
    size = split.length + sum(map(_delete_bytes, deletes))
    return max(size, (1 + len(deletes)) * settings.open_file_cost)


def _delete_bytes(file: DataFile) -> int:
    if is_deletion_vector(file) and file.content_size_in_bytes is not None:
        return file.content_size_in_bytes
    return file.file_size_in_bytes


def _packed(splits: Iterable[Split], settings: SplitSettings) -> Iterator[list[Split]]:
    """Put each split into the first open group with room; close the fullest of too many."""
    groups: list[list[Split]] = []
    weights: list[int] = []
    for split in splits:
        weight = _weight(split, settings)
        for place, filled in enumerate(weights):
            if filled + weight <= settings.target_size:
                groups[place].append(split)
                weights[place] += weight
                break
        else:
            groups.append([split])
            weights.append(weight)
            if len(groups) > settings.lookback:
                fullest = weights.index(max(weights))
                del weights[fullest]
                yield groups.pop(fullest)
    yield from groups


def _merged(group: Sequence[Split]) -> list[Split]:
    merged: list[Split] = []
    for split in group:
        last = merged[-1] if merged else None
        if last is not None and last.planned is split.planned and last.start + last.length == split.start:
            merged[-1] = Split(last.planned, last.start, last.length + split.length)
        else:
            merged.append(split)
    return merged
