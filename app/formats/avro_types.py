"""Avro's binary encoding: values found, skipped and read as the writer's schema lays them out.

Each type knows three things of a value that starts at a position: where it ends, what it is, and the regular expression
of all values laid out like it (see `entry_shapes`).
"""

from __future__ import annotations

import re
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from app.engine.model.values import decimal_of

_64_BITS: Final = (1 << 64) - 1
_MAX_LEVELS: Final = 40
_FLOAT: Final = struct.Struct("<f")
_DOUBLE: Final = struct.Struct("<d")

VARINT: Final = rb"[\x80-\xff]{0,9}+[\x00-\x7f]"
"""Any whole number: seven bits a byte, the last one below 128."""


@dataclass(frozen=True, slots=True)
class Length:
    """In a trace: a text of this length, in bytes, with its length before it."""

    size: int


Token = bytes | Length
"""A piece of a trace: a regular expression, or a text whose length may differ from value to value."""


def read_long(content: bytes, pos: int) -> tuple[int, int]:
    """Return the whole number at a position, and where it ends; raises `IndexError` beyond the end."""
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
            # What no 64 bits hold is cut to them, as in Java, so that no number from a file is out of range.
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
        """Add what matches values laid out like this one; return where it ends."""


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
    """Values of fields, one after the other; read as a dict by field id, or by name where there is no id."""

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
            if count < 0:
                size, pos = read_long(content, pos)
                if size < 0:
                    raise ValueError("a length is negative")
                pos += size
                continue
            pos = self._skip_items(content, pos, count)

    def _skip_items(self, content: bytes, pos: int, count: int) -> int:
        _check_count(content, pos, count)
        if self.is_map_of_texts:
            return _skip_pairs(content, pos, count)
        if self.numbers_an_item and count <= 1000:
            match = _varints(count * self.numbers_an_item)(content, pos)
            if match is None:
                raise IndexError
            return match.end()
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
            if count < 0:
                count = -count
                _, pos = read_long(content, pos)
            _check_count(content, pos, count)
            for _ in range(count):
                value, pos = read(content, pos)
                values.append(value)

    def trace(self, content: bytes, pos: int, tokens: list[Token]) -> int:
        while True:
            start = pos
            count, pos = read_long(content, pos)
            tokens.append(re.escape(content[start:pos]))
            if count == 0:
                return pos
            if count < 0:
                raise NotTraceable
            _check_count(content, pos, count)
            for _ in range(count):
                pos = self._trace_item(content, pos, tokens)

    def _trace_item(self, content: bytes, pos: int, tokens: list[Token]) -> int:
        # Pairs of a map: files of one table mostly have the same columns in the same order, so keys stand as they are.
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
    """A layout that no regular expression stands for."""


def _check_count(content: bytes, pos: int, count: int) -> None:
    # An item takes a byte at least, so a larger count is a lie, or a bomb.
    if count > len(content) - pos:
        raise ValueError("an array has fewer items than it says")


def compile_type(schema: Any) -> AvroType:
    """Return the type that a schema's JSON describes.

    Raises:
        ValueError: the schema makes no sense, or refers to itself.
    """
    return _Compiler().compile(schema, 0)


class _Compiler:
    def __init__(self) -> None:
        self._named: dict[str, AvroType] = {}

    def compile(self, schema: Any, level: int) -> AvroType:
        if level > _MAX_LEVELS:
            raise ValueError("its schema is nested too deeply")
        match schema:
            case str():
                return self._plain(schema)
            case list():
                return Union(tuple(self.compile(branch, level + 1) for branch in schema))
            case {"type": "record" | "error", "fields": list(fields)}:
                record = Record(tuple(self._field(field, level + 1) for field in fields))
                return self._remember(schema, record)
            case {"type": "array", "items": items}:
                return _array(self.compile(items, level + 1))
            case {"type": "map", "values": values}:
                key = Field("key", None, Text(bytes.decode))
                pair = Record((key, Field("value", None, self.compile(values, level + 1))))
                return Array(pair)
            case {"type": "fixed", "size": int(size)} if size >= 0:
                return self._remember(schema, Fixed(size, _bytes_reader(schema)))
            case {"type": "enum"}:
                return self._remember(schema, Number())
            case {"type": "bytes"}:
                return Text(_bytes_reader(schema))
            case {"type": "string", "logicalType": "uuid"}:
                return Text(lambda content: UUID(content.decode()))
            case {"type": "int" | "long", "logicalType": str(logical)}:
                return Number(1000 if logical.endswith("-millis") else 1)
            case {"type": inner}:
                return self.compile(inner, level + 1)
        raise ValueError(f"its schema makes no sense: {str(schema)[:100]}")

    def _plain(self, name: str) -> AvroType:
        kind = _PLAIN.get(name) or self._named.get(name)
        if kind is None:
            raise ValueError(f"its schema has no type {name[:100]!r}")
        return kind

    def _field(self, field: Any, level: int) -> Field:
        match field:
            case {"name": str(name), "type": kind}:
                field_id = field.get("field-id")
                return Field(name, field_id if isinstance(field_id, int) else None, self.compile(kind, level))
        raise ValueError(f"its schema has a field that makes no sense: {str(field)[:100]}")

    def _remember(self, schema: Mapping[str, Any], kind: AvroType) -> AvroType:
        name, space = schema.get("name"), schema.get("namespace")
        if isinstance(name, str):
            self._named[name] = kind
            if isinstance(space, str):
                self._named[f"{space}.{name}"] = kind
        return kind


def _array(items: AvroType) -> Array:
    if _may_be_empty(items):
        raise ValueError("its schema has an array of nothing")
    fields = items.fields if isinstance(items, Record) else (Field("", None, items),)
    match tuple(type(field.kind) for field in fields):
        case kinds if set(kinds) == {Number}:
            return Array(items, numbers_an_item=len(kinds))
        case (kind, other) if kind is Number and other is Text:
            return Array(items, is_map_of_texts=True)
    return Array(items)


def _may_be_empty(kind: AvroType) -> bool:
    match kind:
        case Fixed(size=0):
            return True
        case Record():
            return all(_may_be_empty(field.kind) for field in kind.fields)
    return False


def _bytes_reader(schema: Mapping[str, Any]) -> Callable[[bytes], Any]:
    match schema:
        case {"logicalType": "decimal"}:
            scale = schema.get("scale", 0)
            if not isinstance(scale, int) or not 0 <= scale <= 38:
                raise ValueError("its schema has a decimal without a scale")
            return lambda content: decimal_of(int.from_bytes(content, "big", signed=True), scale)
        case {"logicalType": "uuid", "size": 16}:
            return lambda content: UUID(bytes=content)
    return bytes


_PLAIN: Final[Mapping[str, AvroType]] = {
    "null": NULL,
    "boolean": Fixed(1, lambda content: content != b"\x00"),
    "int": Number(),
    "long": Number(),
    "float": Fixed(4, lambda content: _FLOAT.unpack(content)[0]),
    "double": Fixed(8, lambda content: _DOUBLE.unpack(content)[0]),
    "bytes": Text(bytes),
    "string": Text(bytes.decode),
}
