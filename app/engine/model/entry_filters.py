"""Filtering the entries of a manifest, all at once where their source can do that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from app.engine.model.ids import Location
from app.engine.model.manifests import ManifestEntry
from app.engine.model.types import PrimitiveType

PartitionTest = Callable[[tuple[Any, ...]], bool]


@dataclass(frozen=True, slots=True)
class ValueRange:
    """The values of a column that a reader looks for, limits included; None means no limit.

    Null is outside every range, and NaN is never a limit.
    """

    field_id: int
    kind: PrimitiveType
    lowest: Any = None
    highest: Any = None


@runtime_checkable
class FilterableEntries(Protocol):
    """Entries of one manifest that are filtered as columns, before they become objects."""

    def live_in(self, is_wanted: PartitionTest, ranges: Sequence[ValueRange] = ()) -> Iterator[ManifestEntry]:
        """Yield the entries that are not deleted and whose partition is wanted, in their order.

        `is_wanted` is called once for each distinct partition. `ranges` only saves work: an entry whose bounds are
        outside one of them may be left out or not, so the caller still has to check each entry's metrics.

        Raises:
            InvalidMetadata: an entry makes no sense; names the file.
        """
        ...


def live_entries(
    entries: Iterable[ManifestEntry], is_wanted: PartitionTest, ranges: Sequence[ValueRange] = ()
) -> Iterator[ManifestEntry]:
    """Yield the entries that are not deleted and whose partition is wanted.

    Raises:
        InvalidMetadata: an entry makes no sense; names the file.
    """
    if isinstance(entries, FilterableEntries):
        return entries.live_in(is_wanted, ranges)
    return (entry for entry in entries if entry.is_live and is_wanted(entry.file.partition))


@runtime_checkable
class PathedEntries(Protocol):
    """Entries of one manifest whose paths are found without making objects of them."""

    def live_paths(self) -> Iterator[Location]:
        """Yield the paths of the files that are not deleted, in their order.

        Raises:
            InvalidMetadata: an entry makes no sense; names the file.
        """
        ...


def live_paths(entries: Iterable[ManifestEntry]) -> Iterator[Location]:
    """Yield the paths of the files that are not deleted.

    Raises:
        InvalidMetadata: an entry makes no sense; names the file.
    """
    if isinstance(entries, PathedEntries):
        return entries.live_paths()
    return (entry.file.file_path for entry in entries if entry.is_live)
