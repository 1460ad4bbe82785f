"""Avro's binary encoding: types that skip, read and trace values.

A type is asked about a value at a position: where it ends, what it is, and which regular expression matches all values
laid out like it (see `entry_shapes`). `schema_types` makes types from a schema.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

MAX_TOKENS: Final = 3000
"""A longer expression for a record takes longer to compile than it saves."""
_ITEMS_AT_ONCE: Final = 1000
"""So many items of whole numbers one expression skips."""
_64_BITS: Final = (1 << 64) - 1

VARINT: Final = rb"[\x80-\xff]{0,9}+[\x00-\x7f]"
"""Any whole number: seven bits a byte, the last one below 128."""


@dataclass(frozen=True, slots=True)
class Length:
    """In a trace: a text of this length, in bytes, with its length before it."""

    size: int


Token = bytes | Length
"""A piece of a trace: a regular expression, or a text whose length may vary."""


def read_long(content: bytes, pos: int) -> tuple[int, int]:
    """Return the whole number at a position and its end; raises `IndexError` if it is cut off."""
    byte = content[pos]
    if byte < 128:
        return (byte >> 1) ^ -(byte & 1), pos + 1
    number = byte & 127
    shift = 7
    while True:
        pos += 1
        byte = content[pos]
        number |= (byte & 127) << shift
        if byte < 128:
            # Larger numbers are cut to 64 bits, as in Java, so that no number from a file is out of range.
            number &= _64_BITS
            return (number >> 1) ^ -(number & 1), pos + 1
        shift += 7
        if shift > 63:
            raise ValueError("a number has too many bytes")


def write_long(number: int) -> bytes:
    """Return a whole number in Avro's encoding."""
    rest = (number << 1) ^ (number >> 63)
    written = bytearray()
    while rest > 127:
        written.append(rest & 127 | 128)
        rest >>= 7
    written.append(rest)
    return bytes(written)


@lru_cache(maxsize=512)
def _varints(count: int) -> Callable[[bytes, int], re.Match[bytes] | None]:
    return re.compile(VARINT * count).match


class AvroType(ABC):
    """How values of one type are laid out."""

    @abstractmethod
    def skip(self, content: bytes, pos: int) -> int:
        """Return where the value ends; raises `IndexError` or `ValueError` if it does not."""

    @abstractmethod
    def read(self, content: bytes, pos: int) -> tuple[Any, int]:
        """Return the value and where it ends; raises like `skip`."""

    @abstractmethod
    def trace(self, content: bytes, pos: int, tokens: list[Token]) -> int:
        """Add tokens that match values laid out like this one; return where the value ends."""


@dataclass(frozen=True, slots=True)
class Number(AvroType):
    """An int, a long, or an enum's position. Times in milliseconds become microseconds."""

    factor: int = 1

    def skip(self, content: bytes, pos: int) -> int:
        return pos + 1 if content[pos] < 128 else read_long(content, pos)[1]

    def read(self, content: bytes, pos: int) -> tuple[Any, int]:
        number, pos = read_long(content, pos)
        return number * self.factor, pos

    def trace(self, content: bytes, pos: int, tokens: list[Token]) -> int:
        tokens.append(VARINT)
        return self.skip(content, pos)


@dataclass(frozen=True, slots=True)
class Fixed(AvroType):
    """As many bytes as the schema says."""

    size: int
    value_of: Callable[[bytes], Any]

    def skip(self, content: bytes, pos: int) -> int:
        end = pos + self.size
        if end > len(content):
            raise IndexError
        return end

    def read(self, content: bytes, pos: int) -> tuple[Any, int]:
        end = self.skip(content, pos)
        return self.value_of(content[pos:end]), end

    def trace(self, content: bytes, pos: int, tokens: list[Token]) -> int:
        tokens.append(b".{%d}" % self.size)
        return self.skip(content, pos)


NULL: Final = Fixed(0, lambda _: None)
"""Nothing, in no bytes."""


@dataclass(frozen=True, slots=True)
class CountedFixed(AvroType):
    """As many bytes as the schema says, with their number before them.

    Avro knows no such thing, but Iceberg's own writers up to 1.10 lay out `fixed` partition values so.
    """

    size: int

    def skip(self, content: bytes, pos: int) -> int:
        size, pos = read_long(content, pos)
        if size != self.size:
            raise ValueError(f"a fixed value of {self.size} bytes says that it has {size}")
        end = pos + size
        if end > len(content):
            raise IndexError
        return end

    def read(self, content: bytes, pos: int) -> tuple[Any, int]:
        end = self.skip(content, pos)
        return content[end - self.size : end], end

    def trace(self, content: bytes, pos: int, tokens: list[Token]) -> int:
        tokens.append(re.escape(write_long(self.size)) + b".{%d}" % self.size)
        return self.skip(content, pos)


@dataclass(frozen=True, slots=True)
class Text(AvroType):
    """A length, then as many bytes."""

    value_of: Callable[[bytes], Any]

    def skip(self, content: bytes, pos: int) -> int:
        size = content[pos]
        if size < 128:
            if size & 1:
                raise ValueError("a length is negative")
            return pos + 1 + (size >> 1)
        size, pos = read_long(content, pos)
        if size < 0:
            raise ValueError("a length is negative")
        return pos + size

    def read(self, content: bytes, pos: int) -> tuple[Any, int]:
        size, pos = read_long(content, pos)
        end = pos + size
        if size < 0:
            raise ValueError("a length is negative")
        if end > len(content):
            raise IndexError
        return self.value_of(content[pos:end]), end

    def trace(self, content: bytes, pos: int, tokens: list[Token]) -> int:
        end = self.skip(content, pos)
        if end > len(content):
            raise IndexError  # no expression can have any size
        size, _ = read_long(content, pos)
        tokens.append(Length(size))
        return end


@dataclass(frozen=True, slots=True)
class Union(AvroType):
    """The position of a branch, then a value of it."""

    branches: tuple[AvroType, ...]

    def skip(self, content: bytes, pos: int) -> int:
        branch, pos = self._branch(content, pos)
        return branch.skip(content, pos)

    def read(self, content: bytes, pos: int) -> tuple[Any, int]:
        branch, pos = self._branch(content, pos)
        return branch.read(content, pos)

    def trace(self, content: bytes, pos: int, tokens: list[Token]) -> int:
        start = pos
        branch, pos = self._branch(content, pos)
        tokens.append(re.escape(content[start:pos]))
        return branch.trace(content, pos, tokens)

    def _branch(self, content: bytes, pos: int) -> tuple[AvroType, int]:
        position, pos = read_long(content, pos)
        if position < 0:
            raise ValueError("a union has no such branch")
        try:
            return self.branches[position], pos
        except IndexError as error:
            raise ValueError("a union has no such branch") from error


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a record: the spec's id if the writer gave it, else only its name."""

    name: str
    field_id: int | None
    kind: AvroType


@dataclass(frozen=True, slots=True)
class Record(AvroType):
    """Values of fields, one after the other; read as a dict by field id, or else by name."""

    fields: tuple[Field, ...]

    def skip(self, content: bytes, pos: int) -> int:
        for field in self.fields:
            pos = field.kind.skip(content, pos)
        return pos

    def read(self, content: bytes, pos: int) -> tuple[Any, int]:
        values: dict[int | str, Any] = {}
        for field in self.fields:
            key = field.name if field.field_id is None else field.field_id
            values[key], pos = field.kind.read(content, pos)
        return values, pos

    def trace(self, content: bytes, pos: int, tokens: list[Token]) -> int:
        for field in self.fields:
            pos = field.kind.trace(content, pos, tokens)
        return pos


@dataclass(frozen=True, slots=True)
class Array(AvroType):
    """Blocks of items with their count before them; zero ends it. A negative count has its bytes behind it."""

    items: AvroType
    numbers_an_item: int = 0
    """How many whole numbers an item consists of, if of nothing else: those are skipped many at a time."""
    is_map_of_texts: bool = False
    """Whether an item is a whole number and a text: bounds, of which a manifest has most."""

    def skip(self, content: bytes, pos: int) -> int:
        while True:
            count, pos = read_long(content, pos)
            if count == 0:
                return pos
            if count > 0:
                pos = self._skip_items(content, pos, count)
                continue
            # Later reads go by the items, so the size must agree with them.
            size, start = read_long(content, pos)
            pos = self._skip_items(content, start, -count)
            if pos - start != size:
                raise ValueError("the items of an array have another size than it says")

    def _skip_items(self, content: bytes, pos: int, count: int) -> int:
        _check_count(content, pos, count)
        if self.is_map_of_texts:
            return _skip_pairs(content, pos, count)
        if self.numbers_an_item:
            for skipped in range(0, count, _ITEMS_AT_ONCE):
                items = min(count - skipped, _ITEMS_AT_ONCE)
                match = _varints(items * self.numbers_an_item)(content, pos)
                if match is None:
                    raise IndexError
                pos = match.end()
            return pos
        skip = self.items.skip
        for _ in range(count):
            pos = skip(content, pos)
        return pos

    def read(self, content: bytes, pos: int) -> tuple[Any, int]:
        values: list[Any] = []
        read = self.items.read
        while True:
            count, pos = read_long(content, pos)
            if count == 0:
                return values, pos
            size = None
            if count < 0:
                count = -count
                size, pos = read_long(content, pos)
            start = pos
            _check_count(content, pos, count)
            for _ in range(count):
                value, pos = read(content, pos)
                values.append(value)
            if size is not None and pos - start != size:
                raise ValueError("the items of an array have another size than it says")

    def trace(self, content: bytes, pos: int, tokens: list[Token]) -> int:
        while True:
            start = pos
            count, pos = read_long(content, pos)
            tokens.append(re.escape(content[start:pos]))
            if count == 0:
                return pos
            if count < 0 or count > MAX_TOKENS:
                raise NotTraceable
            _check_count(content, pos, count)
            for _ in range(count):
                pos = self._trace_item(content, pos, tokens)

    def _trace_item(self, content: bytes, pos: int, tokens: list[Token]) -> int:
        # Files of a table mostly have the same columns in the same order, so the keys of a map are matched literally.
        if isinstance(self.items, Record) and len(self.items.fields) == 2:
            key, value = self.items.fields
            end = key.kind.skip(content, pos)
            tokens.append(re.escape(content[pos:end]))
            return value.kind.trace(content, end, tokens)
        return self.items.trace(content, pos, tokens)


def _skip_pairs(content: bytes, pos: int, count: int) -> int:
    for _ in range(count):
        pos = pos + 1 if content[pos] < 128 else read_long(content, pos)[1]
        size = content[pos]
        if size < 128:
            pos += 1
        else:
            size, pos = read_long(content, pos)
            size <<= 1
        if size & 1 or size < 0:
            raise ValueError("a length is negative")
        pos += size >> 1
    return pos


class NotTraceable(Exception):
    """No regular expression can describe this layout."""


def _check_count(content: bytes, pos: int, count: int) -> None:
    # An item takes a byte at least, so a larger count is wrong, or an attack.
    if count > len(content) - pos:
        raise ValueError("an array has fewer items than it says")
