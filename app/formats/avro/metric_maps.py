"""Metrics by field id: kept as bytes of a manifest, parsed when first asked for."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from typing import Any, TypeVar

from app.formats.avro.types import read_long

Value = TypeVar("Value", int, bytes)


class MetricMap(Mapping[int, Value]):
    """A mapping over the Avro bytes of an array of pairs, which are known to be valid.

    A filter drops most entries of a large manifest by their partition, so most metrics are never looked at; and bytes
    take a fraction of the memory of a dict.
    """

    __slots__ = ("_content", "_start", "_values")

    def __init__(self, content: bytes, start: int) -> None:
        self._content = content
        self._start = start
        self._values: dict[int, Value] | None = None

    @staticmethod
    @abstractmethod
    def _read(content: bytes, pos: int) -> dict[int, Value]:
        """Parse the array."""

    @property
    def packed(self) -> bytes | None:
        """The array's bytes; None if this build would write them differently."""
        # A negative count, which is odd, has a size behind it that we do not write.
        return None if self._content[self._start] & 1 else self._content[self._start :]

    def _known(self) -> dict[int, Value]:
        if self._values is None:
            self._values = self._read(self._content, self._start)
        return self._values

    def __getitem__(self, field_id: int) -> Value:
        return self._known()[field_id]

    def get(self, field_id: int, default: Any = None) -> Any:
        return self._known().get(field_id, default)

    def __iter__(self) -> Iterator[int]:
        return iter(self._known())

    def __len__(self) -> int:
        return len(self._known())

    def __repr__(self) -> str:
        return repr(self._known())

    def items(self) -> ItemsView[int, Value]:
        return self._known().items()

    def values(self) -> ValuesView[Value]:
        return self._known().values()


class CountMap(MetricMap[int]):
    """Counts or sizes."""

    __slots__ = ()

    @staticmethod
    def _read(content: bytes, pos: int) -> dict[int, int]:
        counts: dict[int, int] = {}
        left, pos = _block(content, pos)
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


class BoundMap(MetricMap[bytes]):
    """Bounds in binary form."""

    __slots__ = ()

    @staticmethod
    def _read(content: bytes, pos: int) -> dict[int, bytes]:
        bounds: dict[int, bytes] = {}
        left, pos = _block(content, pos)
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

    def find(self, field_id: int) -> bytes | None:
        """Return one bound without parsing the others, or None."""
        content, pos = self._content, self._start
        left, pos = _block(content, pos)
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
                if key == field_id:
                    return content[pos : pos + size]
                pos += size
            left, pos = _block(content, pos)
        return None


def _block(content: bytes, pos: int) -> tuple[int, int]:
    count, pos = read_long(content, pos)
    if count < 0:
        _, pos = read_long(content, pos)
    return abs(count), pos
