"""Parts of footers on which Arrow ends the process, found before it looks at them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from app.formats.parquet.compact_protocol import BINARY, I32, LIST, STRUCT, CompactWalk
from app.formats.parquet.not_parquet import NotParquetError

Span = tuple[int, int]
"""Where the head of a field begins and ends in the footer, in bytes."""

# Ids of fields in parquet.thrift: of FileMetaData, KeyValue, RowGroup, ColumnChunk, ColumnMetaData and Statistics.
_ROW_GROUPS, _PAIRS = 4, 5
_KEY = 1
_COLUMNS = 1
_METADATA, _CRYPTO = 3, 8
_TYPE, _STATISTICS, _SIZE_STATISTICS = 1, 12, 16
_OF_COLUMN = frozenset({_TYPE, _STATISTICS, _SIZE_STATISTICS})
_BOUNDS = frozenset({1, 2, 5, 6})
_ARROW_SCHEMA: Final = b"ARROW:schema"
"""The key under which Arrow keeps a schema of its own."""
KEPT_SCHEMA: Final = b"other:schema"
"""The key that it has in a footer without traps. It is as long."""
_UNKNOWN: Final = bytes([STRUCT, 0x80, 0xF4, 0x03])
"""The head of a struct with the id 32,000, which every reader skips."""
_MOST_FIELDS: Final = 200
"""Of a struct: there are less than twenty. So ids that count on from an unknown one come round to none."""
_ID_BITS: Final = 0xFFFF
_PHYSICAL_TYPES: Final = (
    "BOOLEAN",
    "INT32",
    "INT64",
    "INT96",
    "FLOAT",
    "DOUBLE",
    "BYTE_ARRAY",
    "FIXED_LEN_BYTE_ARRAY",
)
_BYTES: Final = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
_Take = Callable[[int, int, int], bool]
"""Takes a field by where its head begins, its type and its id; False to have its value skipped."""


@dataclass(slots=True)
class ChunkClaims:
    """What a footer says of the column of a row group, as far as Arrow trusts it blindly."""

    physical_type: str | None = None
    size_statistics: Span | None = None
    """Arrow checks them where nothing catches its error."""
    statistics: Span | None = None
    bound_bytes: list[int] = field(default_factory=list)
    """The lengths of its bounds: Arrow reads values of the column's type from them."""


@dataclass(slots=True)
class FooterClaims:
    """What a footer says, as far as Arrow trusts it blindly."""

    groups: list[list[ChunkClaims]] = field(default_factory=list)
    """Of each column of each row group."""
    arrow_schemas: list[Span] = field(default_factory=list)
    """The keys of schemas of Arrow's own: a small one can be made of so many references that it fills the memory."""


def footer_claims(footer: bytes) -> FooterClaims:
    """Return what a footer says of its row groups, and where Arrow has a schema of its own.

    Args:
        footer: the footer's own bytes, without its length and the magic bytes behind it.

    Raises:
        NotParquetError: a column is encrypted, which ends the process as well, or the footer cannot be read.

    Source: parquet.thrift of https://github.com/apache/parquet-format; `ColumnChunkMetaData` of Arrow's C++
    """
    walk = _Walk(footer)
    try:
        walk.fields(walk.of_file, {_ROW_GROUPS, _PAIRS})
    except IndexError as error:
        raise NotParquetError("its Parquet footer cannot be read: it ends too early") from error
    return walk.claims


def wrong_statistics(
    groups: Iterable[Sequence[ChunkClaims]], columns: Sequence[tuple[str, int]]
) -> list[Span]:
    """Return the statistics whose bounds are no values of their columns.

    Args:
        groups: what the footer says of each column of each row group.
        columns: the physical type and the length of each column of the schema.

    Raises:
        NotParquetError: a row group has other columns than the schema.
    """
    found = []
    for group in groups:
        if [chunk.physical_type for chunk in group] != [physical for physical, _ in columns]:
            raise NotParquetError(
                "its Parquet footer cannot be read: a row group has other columns than its schema"
            )
        for chunk, (physical, length) in zip(group, columns, strict=True):
            size_bytes = length if physical == "FIXED_LEN_BYTE_ARRAY" else _BYTES.get(physical)
            if size_bytes is not None and chunk.statistics and set(chunk.bound_bytes) - {size_bytes}:
                found.append(chunk.statistics)
    return found


def without(footer: bytes, heads: Iterable[Span], arrow_schemas: Iterable[Span]) -> bytes:
    """Return a footer in which some structs are such that every reader skips them.

    Args:
        heads: those of the structs.
        arrow_schemas: keys, which become `KEPT_SCHEMA`.
    """
    parts, done = [], 0
    instead = [(head, _UNKNOWN) for head in heads] + [(key, KEPT_SCHEMA) for key in arrow_schemas]
    for (start, end), written in sorted(instead):
        parts += [footer[done:start], written]
        done = end
    return b"".join([*parts, footer[done:]])


class _Walk(CompactWalk):
    """Goes through a footer, and notes what it says of columns."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.claims = FooterClaims()

    def fields(self, take: _Take, wanted: Container[int]) -> None:
        """Go through the fields of the struct that begins here; take those with these ids."""
        field_id = 0
        seen: set[int] = set()
        while True:
            start = self._place
            kind, field_id = self._field(field_id)
            if not kind:
                return
            field_id &= _ID_BITS
            if field_id in seen or len(seen) > _MOST_FIELDS:
                # Readers made by Thrift put several into one.
                raise NotParquetError(
                    "its Parquet footer cannot be read: a struct has a field twice, or too many"
                )
            seen.add(field_id)
            if field_id in wanted and take(start, kind, field_id):
                continue
            self._skip(kind, 0)

    def of_file(self, _start: int, kind: int, field_id: int) -> bool:
        """Take a field of the footer as a whole."""
        if kind != LIST:
            return False
        if field_id == _PAIRS:
            return self._each(self._of_pair, lambda: None, {_KEY})
        return self._each(self._of_group, self._new_group, {_COLUMNS})

    def _of_pair(self, _start: int, kind: int, _id: int) -> bool:
        if kind != BINARY:
            return False
        size_bytes = self._number()
        key = (self._place, self._place + size_bytes)
        if self._content[slice(*key)] == _ARROW_SCHEMA:
            self.claims.arrow_schemas.append(key)
        self._place += size_bytes
        return True

    def _new_group(self) -> None:
        self.claims.groups.append([])

    def _new_chunk(self) -> None:
        self.claims.groups[-1].append(ChunkClaims())

    def _of_group(self, _start: int, kind: int, _id: int) -> bool:
        return kind == LIST and self._each(self._of_chunk, self._new_chunk, {_METADATA, _CRYPTO})

    def _of_chunk(self, _start: int, kind: int, field_id: int) -> bool:
        if field_id == _CRYPTO:
            raise NotParquetError("a column of it is encrypted, which the server cannot read")
        if kind != STRUCT:
            return False
        self.fields(self._of_column, _OF_COLUMN)
        return True

    def _of_column(self, start: int, kind: int, field_id: int) -> bool:
        claims = self.claims.groups[-1][-1]
        if field_id == _TYPE and kind == I32:
            number = self._integer()
            claims.physical_type = _PHYSICAL_TYPES[number] if 0 <= number < len(_PHYSICAL_TYPES) else None
            return True
        if kind == STRUCT and field_id == _SIZE_STATISTICS:
            claims.size_statistics = (start, self._place)
        elif kind == STRUCT and field_id == _STATISTICS:
            claims.statistics = (start, self._place)
            self.fields(self._of_statistics, _BOUNDS)
            return True
        return False

    def _of_statistics(self, _start: int, kind: int, _id: int) -> bool:
        if kind != BINARY:
            return False
        size_bytes = self._number()
        self._place += size_bytes
        self.claims.groups[-1][-1].bound_bytes.append(size_bytes)
        return True

    def _each(self, take: _Take, begin: Callable[[], None], wanted: Container[int]) -> bool:
        """Go through the list of structs that begins here."""
        kind, count = self._list_head()
        if count and kind != STRUCT:
            # Readers made by Thrift would take its elements for structs all the same.
            raise NotParquetError("its Parquet footer cannot be read: a list in it is not one of structs")
        for _ in range(count):
            begin()
            self.fields(take, wanted)
        return True
