"""Metrics by field id, as they stand in a manifest: taken apart when somebody asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from app.formats.avro_types import read_long

Value = TypeVar("Value", int, bytes)


class MetricMap(Mapping[int, Value]):
    """A mapping over the Avro bytes of an array of pairs, which are known to be sound.

    Most entries of a large manifest are dropped by their partition, so most metrics are never looked at; and as
    bytes they take a fraction of the memory of a dict.
    """

    __slots__ = ("_content", "_read", "_values")

    def __init__(self, content: bytes, read: Callable[[bytes], dict[int, Value]]) -> None:
        self._content = content
        self._read = read
        self._values: dict[int, Value] | None = None

    def __getitem__(self, field_id: int) -> Value:
        values = self._values
        if values is None:
            values = self._values = self._read(self._content)
        return values[field_id]

    def __iter__(self) -> Iterator[int]:
        return iter(self.copy())

    def __len__(self) -> int:
        return len(self.copy())

    def __repr__(self) -> str:
        return repr(self.copy())

    def copy(self) -> dict[int, Value]:
        """Return the same as a dict."""
        return self._read(self._content)


def read_counts(content: bytes) -> dict[int, int]:
    """Return pairs of two whole numbers."""
    counts: dict[int, int] = {}
    left, pos = _block(content, 0)
    while left:
        for _ in range(left):
            byte = content[pos]
            if byte < 128:
                key, pos = (byte >> 1) ^ -(byte & 1), pos + 1
            else:
                key, pos = read_long(content, pos)
            byte = content[pos]
            if byte < 128:
                counts[key], pos = (byte >> 1) ^ -(byte & 1), pos + 1
            else:
                counts[key], pos = read_long(content, pos)
        left, pos = _block(content, pos)
    return counts


def read_bounds(content: bytes) -> dict[int, bytes]:
    """Return pairs of a whole number and bytes."""
    bounds: dict[int, bytes] = {}
    left, pos = _block(content, 0)
    while left:
        for _ in range(left):
            byte = content[pos]
            if byte < 128:
                key, pos = (byte >> 1) ^ -(byte & 1), pos + 1
            else:
                key, pos = read_long(content, pos)
            size = content[pos]
            if size < 128:
                size, pos = size >> 1, pos + 1
            else:
                size, pos = read_long(content, pos)
            bounds[key] = content[pos : pos + size]
            pos += size
        left, pos = _block(content, pos)
    return bounds


def _block(content: bytes, pos: int) -> tuple[int, int]:
    count, pos = read_long(content, pos)
    if count < 0:
        _, pos = read_long(content, pos)
    return abs(count), pos
