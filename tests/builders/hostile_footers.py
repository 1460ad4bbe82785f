"""Parquet files that are small and claim to be large: footers in Thrift's protocol."""

from __future__ import annotations

from collections.abc import Sequence

_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12
END = b"\x00"
REQUIRED, OPTIONAL, REPEATED = 0, 1, 2
INT32, BYTE_ARRAY = 1, 6
UTF8, MAP, MAP_KEY_VALUE, LIST, ENUM, JSON, BSON = 0, 1, 2, 3, 4, 19, 20


def footer_of(
    elements: Sequence[bytes], groups: Sequence[bytes] = (), pairs: Sequence[bytes] = (), rows: int = 0
) -> bytes:
    """Return a `FileMetaData`."""
    written = _head(1, _I32) + _zigzag(1) + _head(1, _LIST) + listed(elements)
    written += _head(1, _I64) + _zigzag(rows) + _head(1, _LIST) + listed(groups)
    return written + (_head(1, _LIST) + listed(pairs) if pairs else b"") + END


def file_of(footer: bytes) -> bytes:
    """Return a file that has nothing but a footer."""
    return b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def nest(
    name: str,
    children: int,
    *,
    repetition: int = OPTIONAL,
    converted: int | None = None,
    field_id: int | None = None,
) -> bytes:
    """Return a `SchemaElement` that has children."""
    written = _head(3, _I32) + _zigzag(repetition) + _head(1, _BINARY) + text(name)
    written += _head(1, _I32) + _zigzag(children)
    return written + _meaning(5, converted, field_id)


def leaf(
    name: str,
    *,
    repetition: int = OPTIONAL,
    physical: int = INT32,
    converted: int | None = None,
    field_id: int | None = None,
) -> bytes:
    """Return a `SchemaElement` for a column of one value."""
    written = _head(1, _I32) + _zigzag(physical) + _head(2, _I32) + _zigzag(repetition)
    return written + _head(1, _BINARY) + text(name) + _meaning(4, converted, field_id)


def _meaning(last: int, converted: int | None, field_id: int | None) -> bytes:
    """Return the rest of a `SchemaElement` of which a field has been written last."""
    written = b""
    for number, value in ((6, converted), (9, field_id)):
        if value is not None:
            written += _head(number - last, _I32) + _zigzag(value)
            last = number
    return written + END


def row_group(columns: Sequence[bytes], rows: int = 0) -> bytes:
    """Return a `RowGroup`."""
    sizes = _head(1, _I64) + _zigzag(0) + _head(1, _I64) + _zigzag(rows)
    return _head(1, _LIST) + listed(columns) + sizes + END


def column_of(
    name: str,
    *,
    values: int = 1,
    size_bytes: int = 8,
    start: int = 4,
    nulls: int = 0,
    lower: int = 1,
    upper: int = 1,
) -> bytes:
    """Return a `ColumnChunk` of integers of four bytes."""
    written = _head(1, _I32) + _zigzag(INT32) + _head(1, _LIST) + bytes([0x15, 0])
    written += _head(1, _LIST) + bytes([1 << 4 | _BINARY]) + text(name) + _head(1, _I32) + _zigzag(0)
    for step, number in ((1, values), (1, size_bytes), (1, size_bytes), (2, start)):
        written += _head(step, _I64) + _zigzag(number)
    bounds = _head(1, _BINARY) + b"\x04" + upper.to_bytes(4, "little")
    bounds += _head(1, _BINARY) + b"\x04" + lower.to_bytes(4, "little")
    written += _head(3, _STRUCT) + bounds + _head(1, _I64) + _zigzag(nulls) + END
    return _head(2, _I64) + _zigzag(0) + _head(1, _STRUCT) + written + END + END


def lying_file(name: str, *, values: int) -> bytes:
    """Return a file of one row whose only column is said to have so many values."""
    groups = [row_group([column_of(name, values=values)], 1)]
    return file_of(footer_of([nest("root", 1), leaf(name)], groups, rows=1))


def bare_column() -> bytes:
    """Return the shortest `ColumnChunk` there is: three bytes."""
    return _head(2, _I64) + _zigzag(4) + END


def pair(key: str, value: str) -> bytes:
    """Return a `KeyValue`."""
    return _head(1, _BINARY) + text(key) + _head(1, _BINARY) + text(value) + END


def listed(elements: Sequence[bytes]) -> bytes:
    """Return a list of structs."""
    count = len(elements)
    head = bytes([count << 4 | _STRUCT]) if count < 15 else bytes([0xF0 | _STRUCT]) + _number(count)
    return head + b"".join(elements)


def text(content: str) -> bytes:
    """Return a binary value."""
    return _number(len(content.encode())) + content.encode()


def _head(step: int, kind: int) -> bytes:
    return bytes([step << 4 | kind])


def _zigzag(number: int) -> bytes:
    return _number((number << 1 ^ number >> 63) & (1 << 64) - 1)


def _number(number: int) -> bytes:
    written = bytearray()
    while number > 127:
        written.append(number & 127 | 128)
        number >>= 7
    return bytes([*written, number])
