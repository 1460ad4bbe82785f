"""Pages of Parquet files: what they unpack to, known before they are unpacked."""

from __future__ import annotations

from typing import Final

from app.formats.parquet.compact_protocol import I32, STRUCT, CompactWalk
from app.formats.parquet.not_parquet import NotParquetError

LARGEST_PAGE_BYTES: Final = 32 << 20
"""Unpacked; writers make pages of one megabyte."""
_SIZE, _PACKED_SIZE, _HEADS = 2, 3, {5: 2, 7: 2, 8: 4}
"""Fields of `PageHeader` by their ids in parquet.thrift: sizes, and for each kind of page where its encoding is."""
_DELTA_BYTE_ARRAY: Final = 7
"""Values that begin as the one before them: a few bytes can be any number of long texts."""


def check_pages(content: bytes, start: int, packed_bytes: int) -> None:
    """Check that the pages of one column of a row group can be unpacked within bounds.

    Args:
        content: the whole file.
        start: where the first page begins, in bytes.
        packed_bytes: how many bytes all pages have, with their heads.

    Raises:
        NotParquetError: one is too large, is encoded in a way that has no bounds, or has a head that cannot be read.

    Source: parquet.thrift and Encodings.md of https://github.com/apache/parquet-format
    """
    end = start + packed_bytes
    if start < 0 or packed_bytes < 0 or end > len(content):
        raise NotParquetError("its pages are said to lie outside the file")
    while start < end:
        try:
            head = _PageHead(content, start)
        except IndexError as error:
            raise NotParquetError("the head of a page ends too early") from error
        if head.size_bytes > LARGEST_PAGE_BYTES:
            raise NotParquetError(
                f"a page unpacks to {head.size_bytes} bytes, more than {LARGEST_PAGE_BYTES}"
            )
        if head.encoding == _DELTA_BYTE_ARRAY:
            raise NotParquetError("its encoding DELTA_BYTE_ARRAY has no bounds: use another one")
        start = head.end + head.packed_bytes


class _PageHead(CompactWalk):
    """The head of a page."""

    def __init__(self, content: bytes, place: int) -> None:
        super().__init__(content, place)
        self.size_bytes = self.packed_bytes = -1
        self.encoding: int | None = None
        field_id = 0
        while True:
            kind, field_id = self._field(field_id)
            if not kind:
                break
            if kind == I32 and field_id in {_SIZE, _PACKED_SIZE}:
                number = self._integer()
                if field_id == _SIZE:
                    self.size_bytes = number
                else:
                    self.packed_bytes = number
            elif kind == STRUCT and field_id in _HEADS:
                self._kind_of_page(_HEADS[field_id])
            else:
                self._skip(kind, 0)
        self.end = self._place
        if self.size_bytes < 0 or self.packed_bytes < 0:
            raise NotParquetError("the head of a page has no sizes")

    def _kind_of_page(self, of_encoding: int) -> None:
        field_id = 0
        while True:
            kind, field_id = self._field(field_id)
            if not kind:
                return
            if kind == I32 and field_id == of_encoding:
                self.encoding = self._integer()
            else:
                self._skip(kind, 1)
