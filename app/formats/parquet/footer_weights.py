"""The weight of Parquet footers: what they take when they are read, counted before."""

from __future__ import annotations

from typing import Final

from app.formats.parquet.compact_protocol import BINARY, CONTAINERS, I32, LIST, STRUCT, CompactWalk
from app.formats.parquet.not_parquet import NotParquetError

WEIGHT_OF_A_PART: Final = 128
"""A part of a footer is never smaller in a real file: a column of its schema, or a column of a row group."""
_SMALL_BYTES: Final = 16 << 10
"""What a footer of this size can become is little; most are no larger."""
_WEIGHT_OF_A_CONTAINER: Final = 8
"""What an element of a list inside a column weighs: a fifth of the memory that it takes, as with a column."""
_WEIGHT_OF_A_NUMBER: Final = 1
_DEPTH_OF_COLUMNS: Final = 3
"""Lists of row groups, and in those the lists of columns, are at most this deep."""
_SCHEMA: Final = 2
"""Fields of `FileMetaData` and `SchemaElement` by their ids in parquet.thrift."""
_NAME: Final = 4
_CHILDREN: Final = 5


def footer_weight(footer: bytes, most: int) -> int:
    """Return the bytes of a footer, or how much its parts weigh if that is more.

    Each part counts `WEIGHT_OF_A_PART`, each column also the length of its path. Nothing is kept while it is
    counted, so a small file cannot claim millions of columns or row groups at the cost of memory.

    Args:
        footer: the footer's own bytes, without its length and the magic bytes behind it.
        most: as soon as the weight is larger, counting ends, and what has been counted is returned.

    Raises:
        NotParquetError: it is not what the protocol allows.

    Source: https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md, and parquet.thrift
    of https://github.com/apache/parquet-format
    """
    if len(footer) <= _SMALL_BYTES:
        return len(footer)
    walk = _Walk(footer, most)
    try:
        walk.file_metadata()
    except _Enough:
        pass
    except IndexError as error:
        raise NotParquetError("its Parquet footer cannot be read: it ends too early") from error
    return max(len(footer), walk.weight)


class _Enough(Exception):
    """More is not worth counting."""


class _Walk(CompactWalk):
    """Goes through a footer once, and counts."""

    def __init__(self, content: bytes, most: int) -> None:
        super().__init__(content)
        self.weight = 0
        self._most = most

    def file_metadata(self) -> None:
        """Count the parts of a whole footer."""
        field_id = 0
        while True:
            kind, field_id = self._field(field_id)
            if not kind:
                return
            if field_id == _SCHEMA and kind == LIST:
                self._schema()
            else:
                self._skip(kind, 0)

    def _count(self, kind: int, depth: int) -> None:
        inner = _WEIGHT_OF_A_CONTAINER if kind in CONTAINERS else _WEIGHT_OF_A_NUMBER
        self._add(inner if depth > _DEPTH_OF_COLUMNS else WEIGHT_OF_A_PART)

    def _add(self, weight: int) -> None:
        self.weight += weight
        if self.weight > self._most:
            raise _Enough

    def _schema(self) -> None:
        """Count the schema: its elements come in the order of the tree, each before its children."""
        kind, count = self._list_head()
        if kind != STRUCT:
            raise NotParquetError("its Parquet footer cannot be read: its schema is no list of columns")
        path_bytes: list[int] = []
        left: list[int] = []
        for _ in range(count):
            while left and not left[-1]:
                left.pop()
                path_bytes.pop()
            if left:
                left[-1] -= 1
            name_bytes, children = self._column()
            here = name_bytes + (path_bytes[-1] if path_bytes else 0)
            self._add(WEIGHT_OF_A_PART + here)
            if children > 0:
                left.append(children)
                path_bytes.append(here)

    def _column(self) -> tuple[int, int]:
        """Return the length of a column's name, and how many children it has."""
        field_id = name_bytes = children = 0
        while True:
            kind, field_id = self._field(field_id)
            if not kind:
                return name_bytes, children
            if field_id == _NAME and kind == BINARY:
                name_bytes = self._number()
                self._place += name_bytes
            elif field_id == _CHILDREN and kind == I32:
                children = self._number() >> 1
            else:
                self._skip(kind, 0)
