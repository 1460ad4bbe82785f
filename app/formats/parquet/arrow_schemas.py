"""Arrow's own schema in a footer: columns that are to Arrow not what Parquet's types say.

Arrow reads it before the types of Parquet, and so does PyIceberg. It is a Flatbuffer, in which many fields may refer to
one. So it is never read as a whole: for each column of the file, one field is looked at.
"""

from __future__ import annotations

import base64
import binascii
import struct
from dataclasses import dataclass
from typing import Final

_UTC: Final = frozenset({"", "UTC", "+00:00", "Etc/UTC", "Z"})
"""Time zones that all readers take for UTC."""
_EXTENSION: Final = b"ARROW:extension:name"
_NO_TYPE_OF_ICEBERG: Final = frozenset({b"arrow.bool8", b"arrow.json", b"arrow.opaque"})
_MOST_NAMED: Final = 64
"""At how many names and values of one field is looked."""

# Places in the tables of Arrow's format: Message, Schema, Field, Timestamp, KeyValue.
_HEADER: Final = 2
_FIELDS: Final = 1
_TYPE_KIND, _TYPE, _CHILDREN, _NAMED = 2, 3, 5, 6
_TIME_ZONE: Final = 1
_KEY, _VALUE = 0, 1

_TIMESTAMP: Final = 10
_KINDS: Final = {18: "duration", 25: "list_view", 26: "large_list_view"}


@dataclass(frozen=True, slots=True)
class ArrowField:
    """A field of the schema: where its table is."""

    _content: bytes
    _at: int

    def strange_type(self) -> str | None:
        """Return what Arrow takes the column for, if no type of a table is like it."""
        try:
            return self._strange_type()
        except (struct.error, UnicodeDecodeError):
            return None

    def child(self, number: int) -> ArrowField | None:
        """Return a field inside it; None if there is none."""
        return _item(self._content, self._at, _CHILDREN, number)

    def _strange_type(self) -> str | None:
        content = self._content
        kind_at = _place(content, self._at, _TYPE_KIND)
        kind = content[kind_at] if kind_at is not None and kind_at < len(content) else 0
        if kind in _KINDS:
            return _KINDS[kind]
        if kind == _TIMESTAMP and (of_type := _place(content, self._at, _TYPE)) is not None:
            zone = _text(content, _follow(content, of_type), _TIME_ZONE).decode()
            return None if zone in _UTC else f"timestamp with time zone {zone[:50]}"
        for number in range(_MOST_NAMED):
            named = _item(content, self._at, _NAMED, number)
            if named is None:
                break
            if _text(content, named._at, _KEY) == _EXTENSION:  # noqa: SLF001 - of the same class
                name = _text(content, named._at, _VALUE)  # noqa: SLF001 - of the same class
                return name.decode() if name in _NO_TYPE_OF_ICEBERG else None
        return None


def arrow_fields(text: bytes | None) -> ArrowField | None:
    """Return the root of Arrow's schema, whose children are the columns; None if there is none.

    Args:
        text: what the footer has under Arrow's key.
    """
    if not text:
        return None
    try:
        content = base64.b64decode(text)
        # A mark and a length may come first: older writers have left out the mark.
        start = 8 if content[:4] == b"\xff\xff\xff\xff" else 4
        header = _place(content, start + _number(content, start), _HEADER)
        return None if header is None else _Root(content, _follow(content, header))
    except (binascii.Error, struct.error):
        return None


@dataclass(frozen=True, slots=True)
class _Root(ArrowField):
    def child(self, number: int) -> ArrowField | None:
        return _item(self._content, self._at, _FIELDS, number)


def _number(content: bytes, at: int) -> int:
    found: int = struct.unpack_from("<I", content, at)[0]
    return found


def _follow(content: bytes, at: int) -> int:
    return at + _number(content, at)


def _place(content: bytes, table: int, field: int) -> int | None:
    """Return where a field of a table is; None if the table does not have it."""
    layout = table - int(struct.unpack_from("<i", content, table)[0])
    size_bytes = struct.unpack_from("<H", content, layout)[0]
    if 4 + 2 * field >= size_bytes:
        return None
    offset = struct.unpack_from("<H", content, layout + 4 + 2 * field)[0]
    return table + offset if offset else None


def _text(content: bytes, table: int, field: int) -> bytes:
    at = _place(content, table, field)
    if at is None:
        return b""
    start = _follow(content, at)
    return content[start + 4 : start + 4 + min(_number(content, start), 1_000)]


def _item(content: bytes, table: int, field: int, number: int) -> ArrowField | None:
    try:
        at = _place(content, table, field)
        if at is None:
            return None
        start = _follow(content, at)
        if number >= _number(content, start):
            return None
        return ArrowField(content, _follow(content, start + 4 + 4 * number))
    except struct.error:
        return None
