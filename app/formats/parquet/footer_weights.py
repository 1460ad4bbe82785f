"""The weight of Parquet footers: what they take when they are read, counted before."""

from __future__ import annotations

from typing import Final

from app.formats.parquet.not_parquet import NotParquetError

WEIGHT_OF_A_PART: Final = 128
"""A part of a footer is never smaller in a real file: a column of its schema, or a column of a row group."""
_SMALL_BYTES: Final = 16 << 10
"""What a footer of this size can become is little; most are no larger."""
_DEEPEST: Final = 64
_LONGEST_NUMBER: Final = 10
"""Bytes of a 64-bit integer that is written in groups of seven bits."""

# Types of Thrift's compact protocol.
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_WEIGHTS: Final = dict.fromkeys((_STRUCT, _BINARY, _LIST, _SET, _MAP), 8)
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


class _Walk:
    """Goes through a value of the compact protocol once, from its first byte."""

    def __init__(self, content: bytes, most: int) -> None:
        self.weight = 0
        self._content = content
        self._most = most
        self._place = 0

    def file_metadata(self) -> None:
        """Count the parts of a whole footer."""
        field_id = 0
        while True:
            kind, field_id = self._field(field_id)
            if not kind:
                return
            if field_id == _SCHEMA and kind == _LIST:
                self._schema()
            else:
                self._skip(kind, 0)

    def _add(self, weight: int) -> None:
        self.weight += weight
        if self.weight > self._most:
            raise _Enough

    def _field(self, before: int) -> tuple[int, int]:
        """Return the type and the id of the field that begins here; type 0 ends a struct."""
        head = self._content[self._place]
        self._place += 1
        if not head:
            return 0, before
        if head >> 4:
            return head & 15, before + (head >> 4)
        number = self._number()
        return head & 15, (number >> 1) ^ -(number & 1)

    def _number(self) -> int:
        number = shift = 0
        for _ in range(_LONGEST_NUMBER):
            byte = self._content[self._place]
            self._place += 1
            number |= (byte & 127) << shift
            if byte < 128:
                return number
            shift += 7
        raise NotParquetError("its Parquet footer cannot be read: a number in it is too long")

    def _list_head(self) -> tuple[int, int]:
        """Return the type of the elements of the list that begins here, and how many there are."""
        head = self._content[self._place]
        self._place += 1
        count = head >> 4
        return head & 15, self._number() if count == 15 else count

    def _schema(self) -> None:
        """Count the schema: its elements come in the order of the tree, each before its children."""
        kind, count = self._list_head()
        if kind != _STRUCT:
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
            if field_id == _NAME and kind == _BINARY:
                name_bytes = self._number()
                self._place += name_bytes
            elif field_id == _CHILDREN and kind == _I32:
                children = self._number() >> 1
            else:
                self._skip(kind, 0)

    def _skip(self, kind: int, depth: int) -> None:
        """Go behind a field's value."""
        if depth > _DEEPEST:
            raise NotParquetError("its Parquet footer cannot be read: it is nested too deeply")
        if self._place > len(self._content):
            raise IndexError(self._place)
        if _I16 <= kind <= _I64:
            self._number()
        elif kind == _BINARY:
            size_bytes = self._number()
            self._place += size_bytes
        elif kind == _STRUCT:
            self._skip_struct(depth + 1)
        elif kind in {_LIST, _SET}:
            self._skip_list(depth + 1)
        elif kind in {_BYTE, _DOUBLE}:
            self._place += 1 if kind == _BYTE else 8
        elif kind not in {_TRUE, _FALSE}:
            raise NotParquetError(f"its Parquet footer cannot be read: it has a value of type {kind}")

    def _skip_struct(self, depth: int) -> None:
        # As `_field` and `_skip`, without calls for what most fields are: large footers are millions of them.
        content, place = self._content, self._place
        while head := content[place]:
            place += 1
            kind = head & 15
            if head > 15 and _I16 <= kind <= _I64:
                while content[place] > 127:
                    place += 1
                place += 1
            elif head > 15 and kind == _BINARY and content[place] < 128:
                place += content[place] + 1
            else:
                self._place = place
                if head < 16:
                    self._number()
                self._skip(kind, depth)
                place = self._place
        self._place = place + 1

    def _skip_list(self, depth: int) -> None:
        kind, count = self._list_head()
        weight = _WEIGHTS.get(kind, _WEIGHT_OF_A_NUMBER) if depth > _DEPTH_OF_COLUMNS else WEIGHT_OF_A_PART
        if kind in {_TRUE, _FALSE}:
            kind = _BYTE  # elements of lists have a byte each
        for _ in range(count):
            self._add(weight)
            self._skip(kind, depth)
