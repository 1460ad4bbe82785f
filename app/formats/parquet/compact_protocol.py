"""Thrift's compact protocol, in which Parquet writes footers and heads of pages."""

from __future__ import annotations

from typing import Final

from app.formats.parquet.not_parquet import NotParquetError

_DEEPEST: Final = 64
_LONGEST_NUMBER: Final = 10
"""Bytes of a 64-bit integer that is written in groups of seven bits."""

# Types of Thrift's compact protocol.
_TRUE, _FALSE, _BYTE, _I16, I32, _I64, _DOUBLE, BINARY, LIST, _SET, _MAP, STRUCT = range(1, 13)
CONTAINERS: Final = frozenset({STRUCT, BINARY, LIST, _SET, _MAP})


class CompactWalk:
    """Goes through a value of the compact protocol once, from its first byte.

    Its methods raise `IndexError` behind the end, and `NotParquetError` for what the protocol does not allow.

    Source: https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
    """

    def __init__(self, content: bytes, place: int = 0) -> None:
        self._content = content
        self._place = place

    def _count(self, kind: int, depth: int) -> None:
        """Note an element of a list of some type, so deep in the value; raises to go no further."""

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
        raise NotParquetError("its Parquet footer or pages cannot be read: a number in it is too long")

    def _integer(self) -> int:
        """Return a number that may be negative."""
        number = self._number()
        return (number >> 1) ^ -(number & 1)

    def _list_head(self) -> tuple[int, int]:
        """Return the type of the elements of the list that begins here, and how many there are."""
        head = self._content[self._place]
        self._place += 1
        count = head >> 4
        return head & 15, self._number() if count == 15 else count

    def _skip(self, kind: int, depth: int) -> None:
        """Go behind a field's value."""
        if depth > _DEEPEST:
            raise NotParquetError("its Parquet footer or pages cannot be read: it is nested too deeply")
        if self._place > len(self._content):
            raise IndexError(self._place)
        if _I16 <= kind <= _I64:
            self._number()
        elif kind == BINARY:
            size_bytes = self._number()
            self._place += size_bytes
        elif kind == STRUCT:
            self._skip_struct(depth + 1)
        elif kind in {LIST, _SET}:
            self._skip_list(depth + 1)
        elif kind in {_BYTE, _DOUBLE}:
            self._place += 1 if kind == _BYTE else 8
        elif kind not in {_TRUE, _FALSE}:
            raise NotParquetError(
                f"its Parquet footer or pages cannot be read: it has a value of type {kind}"
            )

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
            elif head > 15 and kind == BINARY and content[place] < 128:
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
        element = _BYTE if kind in {_TRUE, _FALSE} else kind  # elements of lists have a byte each
        for _ in range(count):
            self._count(kind, depth)
            self._skip(element, depth)
