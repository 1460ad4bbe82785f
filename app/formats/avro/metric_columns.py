"""Metrics of many files, column by column.

Maps that look alike are taken apart by one regular expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from app.engine.health.column_summary import KnownSum
from app.formats.avro.metric_maps import MetricMap
from app.formats.avro.types import VARINT, read_long, write_long

_TOKENS: Final = re.compile(VARINT)
_MOST_LAYOUTS: Final = 8
"""Maps that look like none of so many are read one by one."""
_MOST_KEYS: Final = 1_500
_MOST_SIZES: Final = 4_000
"""Longer expressions take longer to compile than they save."""
_SUMMED_BYTES: Final = 8
_EVEN: Final = bytes(range(0, 256, 2))
_USUAL_BYTES: Final = 20
"""Texts in bounds are cut to 16 characters."""
_LONGEST: Final = 63
"""The length of longer bounds takes more than one byte."""

Counts = Mapping[int, int]
Bounds = Mapping[int, bytes]


def count_columns(maps: Sequence[Counts | None]) -> dict[int, list[int | None]]:
    """Return the counts of each column, by field id: one for each file, None where it has none."""
    columns: dict[int, list[int | None]] = {}
    numbers = _Numbers()

    def put(field_id: int, places: Sequence[int], counts: list[int]) -> None:
        if len(places) == len(maps):
            columns[field_id] = [*counts]
            return
        column = columns.setdefault(field_id, [None] * len(maps))
        for place, count in zip(places, counts, strict=True):
            column[place] = count

    layouts, others = _by_layout(maps)
    for layout in layouts:
        for field_id, parts in layout.columns():
            put(field_id, layout.places, [numbers[part] for part in parts])
    for place, counts in others:
        for field_id, count in counts.items():
            put(field_id, [place], [count])
    return columns


def count_sums(maps: Sequence[Counts | None]) -> dict[int, KnownSum]:
    """Return the sum of each column's counts, by field id; negative ones are not known."""
    sums: dict[int, KnownSum] = {}
    layouts, others = _by_layout(maps)
    for layout in layouts:
        for field_id, parts in layout.columns():
            sums.setdefault(field_id, KnownSum()).add(_sum(parts))
    for _, counts in others:
        for field_id, count in counts.items():
            if count >= 0:
                sums.setdefault(field_id, KnownSum()).add(KnownSum(count, 1))
    return {field_id: found for field_id, found in sums.items() if found.files}


def _sum(parts: Sequence[bytes]) -> KnownSum:
    """Return the sum of numbers in Avro's encoding, byte by byte of all of them at once."""
    total = 0
    for size in set(map(len, parts)):
        alike = [part for part in parts if len(part) == size]
        content = b"".join(alike)
        if size > _SUMMED_BYTES or content[::size].translate(None, _EVEN):
            # Odd ones are negative, and very long ones may be cut to 64 bits.
            known = [count for count in (read_long(part, 0)[0] for part in parts) if count >= 0]
            return KnownSum(sum(known), len(known))
        # Each byte but the last has a mark of 128.
        total += sum(sum(content[at::size]) << 7 * at for at in range(size))
        total -= len(alike) * sum(128 << 7 * at for at in range(size - 1))
    return KnownSum(total >> 1, len(parts))


def _by_layout(
    maps: Sequence[Counts | None],
) -> tuple[list[_CountLayout], list[tuple[int, Counts]]]:
    """Return those maps that look alike together, and the others with their places."""
    layouts, others = _CountLayouts(), []
    for place, counts in enumerate(maps):
        if counts is not None:
            packed = counts.packed if isinstance(counts, MetricMap) else None
            if packed is None or not layouts.take(place, packed):
                others.append((place, counts))
    return layouts.known, others


class _Numbers(dict[bytes, int]):
    """Numbers by their bytes: many files and columns share them."""

    def __missing__(self, content: bytes) -> int:
        number = self[content] = read_long(content, 0)[0]
        return number


class _CountLayout:
    """Maps with the same keys, in the same order."""

    def __init__(self, keys: tuple[bytes, ...], count: bytes) -> None:
        self.match = _counts_pattern(keys, count).fullmatch
        self.field_ids = [read_long(key, 0)[0] for key in keys]
        self.places: list[int] = []
        self.groups: list[tuple[bytes, ...]] = []

    def columns(self) -> Iterator[tuple[int, tuple[bytes, ...]]]:
        """Yield the counts of each field as they lie in the maps."""
        # Without keys there are no columns.
        return zip(self.field_ids, zip(*self.groups, strict=True), strict=False)


class _CountLayouts:
    """The layouts of counts that were met."""

    def __init__(self) -> None:
        self.known: list[_CountLayout] = []

    def take(self, place: int, packed: bytes) -> bool:
        """Put a map to those that look like it; return whether there is room for it."""
        for layout in self.known:
            match = layout.match(packed)
            if match is not None:
                layout.places.append(place)
                layout.groups.append(match.groups())
                return True
        if len(self.known) == _MOST_LAYOUTS:
            return False
        # The number of pairs, the pairs, and a zero.
        count, *tokens = _TOKENS.findall(packed)
        keys = tuple(tokens[:-1:2])
        is_one_block = read_long(count, 0)[0] == len(keys) and len(tokens) == 2 * len(keys) + 1
        if not is_one_block or not _are_plain(keys):
            return False
        self.known.append(_CountLayout(keys, count))
        return self.take(place, packed)


@lru_cache(maxsize=64)
def _counts_pattern(keys: tuple[bytes, ...], count: bytes) -> re.Pattern[bytes]:
    pairs = b"".join(re.escape(key) + b"(" + VARINT + b")" for key in keys)
    return re.compile(re.escape(count) + pairs + rb"\0", re.DOTALL)


def _are_plain(keys: Sequence[bytes]) -> bool:
    return len(keys) <= _MOST_KEYS and len(set(keys)) == len(keys)


def bound_columns(maps: Sequence[Bounds | None]) -> dict[int, list[bytes]]:
    """Return the bounds of each column, by field id and in any order, where files have one."""
    columns: dict[int, list[bytes]] = {}
    layouts: dict[tuple[int, ...], _BoundLayout] = {}
    for bounds in maps:
        if bounds is None:
            continue
        packed = bounds.packed if isinstance(bounds, MetricMap) else None
        if packed is not None and any(layout.take(packed) for layout in layouts.values()):
            continue
        keys = tuple(bounds)
        if packed is not None and (keys in layouts or len(layouts) < _MOST_LAYOUTS):
            # Learnt from this one, which may be of a known layout with other sizes.
            layout = layouts.setdefault(keys, _BoundLayout())
            layout.move_to(columns)
            if layout.learn(bounds) and layout.take(packed):
                continue
        for field_id, bound in bounds.items():
            columns.setdefault(field_id, []).append(bound)
    for layout in layouts.values():
        layout.move_to(columns)
    return columns


class _BoundLayout:
    """Maps with the same keys, in the same order, and sizes that were met."""

    def __init__(self) -> None:
        self._field_ids: tuple[int, ...] = ()
        self._sizes: list[frozenset[int]] = []
        self._pattern: re.Pattern[bytes] | None = None
        self._is_useless = False
        self._groups: list[tuple[bytes, ...]] = []

    def take(self, packed: bytes) -> bool:
        """Put a map to the others; return whether it looks like them."""
        match = None if self._pattern is None else self._pattern.fullmatch(packed)
        if match is None:
            return False
        self._groups.append(match.groups())
        return True

    def learn(self, bounds: Bounds) -> bool:
        """Learn the sizes of one more map; return whether there is an expression for them."""
        if self._is_useless:
            return False
        sizes = self._sizes or [frozenset()] * len(bounds)
        self._field_ids = tuple(bounds)
        self._sizes = [
            _widened(known, len(bound)) for known, bound in zip(sizes, bounds.values(), strict=True)
        ]
        is_short = all(max(known) <= _LONGEST or len(known) == 1 for known in self._sizes)
        keys = tuple(map(write_long, self._field_ids))
        self._is_useless = not is_short or not _are_plain(keys) or sum(map(len, self._sizes)) > _MOST_SIZES
        self._pattern = None if self._is_useless else _bounds_pattern(keys, tuple(self._sizes))
        return self._pattern is not None

    def move_to(self, columns: dict[int, list[bytes]]) -> None:
        """Move what was taken to the columns."""
        for field_id, sizes, parts in zip(
            self._field_ids, self._sizes, zip(*self._groups, strict=True), strict=False
        ):
            # Where sizes differ, the length is before the bound.
            found: Iterable[bytes] = parts if len(sizes) == 1 else [part[1:] for part in parts]
            columns.setdefault(field_id, []).extend(found)
        self._groups = []


def _widened(known: frozenset[int], size: int) -> frozenset[int]:
    if not known or known == {size}:
        return frozenset({size})
    if max(size, *known) > _LONGEST:
        return known | {size}  # of no use, and all sizes up to it could fill the memory
    return known | frozenset(range(max(_USUAL_BYTES, size, *known) + 1))


@lru_cache(maxsize=64)
def _bounds_pattern(keys: tuple[bytes, ...], sizes: tuple[frozenset[int], ...]) -> re.Pattern[bytes]:
    pieces = [re.escape(write_long(len(keys)))]
    for key, known in zip(keys, sizes, strict=True):
        texts = [re.escape(write_long(size)) + b"(.{%d})" % size for size in known]
        if len(texts) > 1:
            texts = [
                b"("
                + b"|".join(re.escape(write_long(size)) + b".{%d}" % size for size in sorted(known))
                + b")"
            ]
        pieces += [re.escape(key), *texts]
    return re.compile(b"".join(pieces) + rb"\0", re.DOTALL)
