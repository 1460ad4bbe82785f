"""The fields of a manifest's entries, and how the values of each are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from app.engine.model.files.manifests import EntryStatus, FileContent
from app.formats.avro.metric_maps import BoundMap, CountMap
from app.formats.avro.types import NULL, Array, AvroType, Number, Record, Text, Union, read_long

STATUS, SNAPSHOT_ID, DATA_FILE, SEQUENCE_NUMBER, FILE_SEQUENCE_NUMBER = range(5)
CONTENT, FILE_PATH, FILE_FORMAT, PARTITION, RECORD_COUNT, FIRST_ROW_ID = 134, 100, 101, 102, 103, 142
LOWER_BOUNDS, UPPER_BOUNDS = 125, 128
FIELDS_OF_ENTRY: Final = frozenset({STATUS, SNAPSHOT_ID, SEQUENCE_NUMBER, FILE_SEQUENCE_NUMBER})
"""The others are the file's."""
_REMEMBERED_VALUES: Final = 256

Reader = Callable[[bytes], Any]
"""Takes all bytes of one value; returns the value."""


class _Unusual(ValueError):
    """A type is not the one that the spec has; its values may still make sense."""


@dataclass(frozen=True, slots=True)
class _Meaning:
    """How a field's values are read: from the type that the spec has, or from any other type."""

    reader_at: Callable[[AvroType, int], Reader]
    """Takes a type and the number of bytes before its value; raises `_Unusual` if the spec has another type."""
    value_of: Callable[[Any], Any]
    """Takes a value that was read by Avro's plain rules, but never null; raises `ValueError` if it makes no sense."""


def _number_at(kind: AvroType, start: int) -> Reader:
    _expect(kind, Number)
    return lambda content: read_long(content, start)[0]


def _text_at(kind: AvroType, start: int) -> Reader:
    _expect(kind, Text)
    return lambda content: _after_length(content, start).decode()


def _bytes_at(kind: AvroType, start: int) -> Reader:
    _expect(kind, Text)
    return lambda content: _after_length(content, start)


def _after_length(content: bytes, start: int) -> bytes:
    while content[start] > 127:
        start += 1
    return content[start + 1 :]


def _member_of(enum: type[IntEnum]) -> Callable[[AvroType, int], Reader]:
    def member_at(kind: AvroType, start: int) -> Reader:
        _expect(kind, Number)
        return lambda content: enum(read_long(content, start)[0])

    return member_at


def _format_at(kind: AvroType, start: int) -> Reader:
    read = _text_at(kind, start)
    return lambda content: read(content).lower()


def _partition_at(kind: AvroType, start: int) -> Reader:
    _expect(kind, Record)
    return lambda content: kind.read(content, start)[0]


def _numbers_at(kind: AvroType, start: int) -> Reader:
    if isinstance(kind, Array) and isinstance(kind.items, Number):
        return lambda content: tuple(kind.read(content, start)[0])
    raise _Unusual


def _counts_at(kind: AvroType, start: int) -> Reader:
    if isinstance(kind, Array) and kind.numbers_an_item == 2 and _starts_with_key(kind):
        return lambda content: CountMap(content, start)
    raise _Unusual


def _bounds_at(kind: AvroType, start: int) -> Reader:
    if isinstance(kind, Array) and kind.is_map_of_texts and _starts_with_key(kind):
        return lambda content: BoundMap(content, start)
    raise _Unusual


def _starts_with_key(kind: Array) -> bool:
    return isinstance(kind.items, Record) and kind.items.fields[0].name == "key"


def leave_alone(content: bytes) -> None:
    """Leave a value alone."""


def _expect(kind: AvroType, expected: type[AvroType]) -> None:
    if not isinstance(kind, expected):
        raise _Unusual


def _is_a(expected: type) -> Callable[[Any], Any]:
    def value_of(value: Any) -> Any:
        if not isinstance(value, expected) or isinstance(value, bool):
            raise ValueError(f"is not of type {expected.__name__}")  # noqa: TRY004 - the file's fault, not the program's
        return value

    return value_of


def _tuple_of_numbers(value: Any) -> tuple[int, ...]:
    return tuple(map(_is_a(int), _is_a(list)(value)))


def _map_to(expected: type) -> Callable[[Any], Any]:
    def value_of(value: Any) -> dict[int, Any]:
        found = {}
        for pair in map(_is_a(dict), _is_a(list)(value)):
            # Keys and values have ids of their own in each map, and text for keys in Avro's own kind of map.
            (key, item) = (
                (pair["key"], pair["value"]) if "key" in pair else (pair[min(pair)], pair[max(pair)])
            )
            if item is not None:
                found[int(key)] = _is_a(expected)(item)
        return found

    return value_of


_NUMBER: Final = _Meaning(_number_at, _is_a(int))
_TEXT: Final = _Meaning(_text_at, _is_a(str))
_BYTES: Final = _Meaning(_bytes_at, _is_a(bytes))
_STATUS: Final = _Meaning(_member_of(EntryStatus), EntryStatus)
_CONTENT: Final = _Meaning(_member_of(FileContent), FileContent)
_FORMAT: Final = _Meaning(_format_at, lambda value: _is_a(str)(value).lower())
_PARTITION: Final = _Meaning(_partition_at, _is_a(dict))
_NUMBERS: Final = _Meaning(_numbers_at, _tuple_of_numbers)
_COUNTS: Final = _Meaning(_counts_at, _map_to(int))
_BOUNDS: Final = _Meaning(_bounds_at, _map_to(bytes))


@dataclass(frozen=True, slots=True)
class EntryField:
    """A field of an entry or of its file."""

    name: str
    meaning: _Meaning
    required: bool = False
    repeats: bool = False
    """Whether most records of a manifest share a few values."""


ENTRY_FIELDS: Final[Mapping[int, EntryField]] = {
    STATUS: EntryField("status", _STATUS, required=True, repeats=True),
    SNAPSHOT_ID: EntryField("snapshot_id", _NUMBER, repeats=True),
    SEQUENCE_NUMBER: EntryField("sequence_number", _NUMBER, repeats=True),
    FILE_SEQUENCE_NUMBER: EntryField("file_sequence_number", _NUMBER, repeats=True),
    PARTITION: EntryField("partition", _PARTITION, required=True),
    CONTENT: EntryField("content", _CONTENT, repeats=True),
    FILE_PATH: EntryField("file_path", _TEXT, required=True),
    FILE_FORMAT: EntryField("file_format", _FORMAT, required=True, repeats=True),
    RECORD_COUNT: EntryField("record_count", _NUMBER, required=True),
    104: EntryField("file_size_in_bytes", _NUMBER, required=True),
    108: EntryField("column_sizes", _COUNTS),
    109: EntryField("value_counts", _COUNTS),
    110: EntryField("null_value_counts", _COUNTS),
    137: EntryField("nan_value_counts", _COUNTS),
    LOWER_BOUNDS: EntryField("lower_bounds", _BOUNDS),
    UPPER_BOUNDS: EntryField("upper_bounds", _BOUNDS),
    131: EntryField("key_metadata", _BYTES, repeats=True),
    132: EntryField("split_offsets", _NUMBERS, repeats=True),
    135: EntryField("equality_ids", _NUMBERS, repeats=True),
    140: EntryField("sort_order_id", _NUMBER, repeats=True),
    FIRST_ROW_ID: EntryField("first_row_id", _NUMBER),
    143: EntryField("referenced_data_file", _TEXT),
    144: EntryField("content_offset", _NUMBER),
    145: EntryField("content_size_in_bytes", _NUMBER),
}
"""What is read of an entry, by field id."""
IDS_BY_NAME: Final = {field.name: field_id for field_id, field in ENTRY_FIELDS.items()} | {
    "data_file": DATA_FILE
}
"""For writers that left the ids out."""


class _Remembered(dict[bytes, Any]):
    """Values by their bytes, for fields that repeat."""

    def __init__(self, read: Reader) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, content: bytes) -> Any:
        value = self._read(content)
        if len(self) < _REMEMBERED_VALUES:
            self[content] = value
        return value


def reader_of(kind: AvroType, field: EntryField) -> tuple[Reader, bool]:
    """Return the reader of a field's values, and whether its type is the one that the spec has.

    Any other type is read by Avro's plain rules, and each value is checked.
    """
    try:
        read, is_usual = _usual_reader(kind, field.meaning), True
    except _Unusual:
        read, is_usual = _plain_reader(kind, field), False
    if field.required and (isinstance(kind, Union) or not is_usual):
        read = _required(read, field.name)
    return (_Remembered(read).__getitem__ if field.repeats else read), is_usual


def _required(read: Reader, name: str) -> Reader:
    def read_required(content: bytes) -> Any:
        value = read(content)
        if value is None:
            raise ValueError(f"an entry has no {name}")
        return value

    return read_required


def _usual_reader(kind: AvroType, meaning: _Meaning) -> Reader:
    if not isinstance(kind, Union):
        return meaning.reader_at(kind, 0)
    match kind.branches:
        case (first, value) if first is NULL and value is not NULL:
            null, mark = 0, 2
        case (value, second) if second is NULL and value is not NULL:
            null, mark = 2, 0
        case _:
            raise _Unusual
    read = meaning.reader_at(value, 1)

    def read_optional(content: bytes) -> Any:
        branch = content[0]
        if branch == mark:
            return read(content)
        if branch != null:
            raise ValueError("a union has a branch in more bytes than it needs")
        return None

    return read_optional


def _plain_reader(kind: AvroType, field: EntryField) -> Reader:
    def read(content: bytes) -> Any:
        try:
            value, _ = kind.read(content, 0)
            return None if value is None else field.meaning.value_of(value)
        except (ValueError, TypeError, LookupError) as error:
            raise ValueError(f"its field {field.name} makes no sense: {error}") from error

    return read
