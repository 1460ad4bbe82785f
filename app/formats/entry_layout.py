"""Where a manifest's records have what: the writer's schema, resolved by the spec's field ids."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from app.engine.model.manifests import EntryStatus, FileContent
from app.formats.avro_types import (
    Array,
    AvroType,
    NotTraceable,
    Null,
    Number,
    Record,
    Text,
    Token,
    Union,
    compile_type,
    write_long,
)
from app.formats.entry_shapes import EntryShapes
from app.formats.metric_maps import MetricMap, read_bounds, read_counts

STATUS, SNAPSHOT_ID, DATA_FILE, SEQUENCE_NUMBER, FILE_SEQUENCE_NUMBER = range(5)
CONTENT, FILE_PATH, FILE_FORMAT, PARTITION, RECORD_COUNT, FIRST_ROW_ID = 134, 100, 101, 102, 103, 142
_FIELDS_OF_ENTRY: Final = frozenset({STATUS, SNAPSHOT_ID, SEQUENCE_NUMBER, FILE_SEQUENCE_NUMBER})
"""The others are the file's."""
_MAX_SCHEMA_BYTES: Final = 4 << 20
_REMEMBERED_VALUES: Final = 256

Reader = Callable[[bytes], Any]
"""Takes the bytes of one value; answers the value."""


def _number(kind: AvroType) -> Reader:
    return _reader_of(kind, Number)


def _text(kind: AvroType) -> Reader:
    return _reader_of(kind, Text)


def _status(kind: AvroType) -> Reader:
    read = _number(kind)
    return lambda content: EntryStatus(read(content))


def _content(kind: AvroType) -> Reader:
    read = _number(kind)
    return lambda content: FileContent(read(content))


def _format(kind: AvroType) -> Reader:
    read = _text(kind)
    return lambda content: read(content).lower()


def _partition(kind: AvroType) -> Reader:
    return _reader_of(kind, Record)


def _numbers(kind: AvroType) -> Reader:
    if isinstance(kind, Array) and kind.numbers_an_item == 1:
        return lambda content: tuple(kind.read(content, 0)[0])
    raise ValueError("is no list of numbers")


def _counts(kind: AvroType) -> Reader:
    if isinstance(kind, Array) and kind.numbers_an_item == 2:
        return lambda content: MetricMap(content, read_counts)
    raise ValueError("is no map of counts")


def _bounds(kind: AvroType) -> Reader:
    match kind:
        case Array(items=Record(fields=(key, value))):
            if isinstance(key.kind, Number) and isinstance(value.kind, Text):
                return lambda content: MetricMap(content, read_bounds)
    raise ValueError("is no map of bounds")


def _reader_of(kind: AvroType, expected: type[AvroType]) -> Reader:
    if not isinstance(kind, expected):
        raise ValueError(f"is no {expected.__name__.lower()}")
    return lambda content: kind.read(content, 0)[0]


@dataclass(frozen=True, slots=True)
class _EntryField:
    name: str
    reader: Callable[[AvroType], Reader]
    required: bool = False
    repeats: bool = False
    """Whether most records of a manifest have one of a few values there."""


ENTRY_FIELDS: Final[Mapping[int, _EntryField]] = {
    STATUS: _EntryField("status", _status, required=True, repeats=True),
    SNAPSHOT_ID: _EntryField("snapshot_id", _number, repeats=True),
    SEQUENCE_NUMBER: _EntryField("sequence_number", _number, repeats=True),
    FILE_SEQUENCE_NUMBER: _EntryField("file_sequence_number", _number, repeats=True),
    PARTITION: _EntryField("partition", _partition, required=True),
    CONTENT: _EntryField("content", _content, repeats=True),
    FILE_PATH: _EntryField("file_path", _text, required=True),
    FILE_FORMAT: _EntryField("file_format", _format, required=True, repeats=True),
    RECORD_COUNT: _EntryField("record_count", _number, required=True),
    104: _EntryField("file_size_in_bytes", _number, required=True),
    108: _EntryField("column_sizes", _counts),
    109: _EntryField("value_counts", _counts),
    110: _EntryField("null_value_counts", _counts),
    137: _EntryField("nan_value_counts", _counts),
    125: _EntryField("lower_bounds", _bounds),
    128: _EntryField("upper_bounds", _bounds),
    131: _EntryField("key_metadata", _text, repeats=True),
    132: _EntryField("split_offsets", _numbers, repeats=True),
    135: _EntryField("equality_ids", _numbers, repeats=True),
    140: _EntryField("sort_order_id", _number, repeats=True),
    FIRST_ROW_ID: _EntryField("first_row_id", _number),
    143: _EntryField("referenced_data_file", _text),
    144: _EntryField("content_offset", _number),
    145: _EntryField("content_size_in_bytes", _number),
}
"""What is read of an entry, by field id."""
_IDS_BY_NAME: Final = {field.name: field_id for field_id, field in ENTRY_FIELDS.items()} | {
    "data_file": DATA_FILE
}


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


class EntryLayout:
    """How the records of manifests with one schema are read. Safe to use from many threads."""

    def __init__(self, schema: Any) -> None:
        """Resolve a schema.

        Raises:
            ValueError: it is not the schema of a manifest.
        """
        self._steps: list[tuple[AvroType, int | None]] = []
        self._flatten(compile_type(schema))
        ids = [field_id for _, field_id in self._steps if field_id is not None]
        self.groups: Mapping[int, int] = {field_id: at + 1 for at, field_id in enumerate(ids)}
        """Which group of a match has a field's bytes."""
        if len(self.groups) != len(ids):
            raise ValueError("its entries have a field twice")
        for field_id, field in ENTRY_FIELDS.items():
            if field.required and field_id not in self.groups:
                raise ValueError(f"its entries have no {field.name}")
        self.readers = tuple(
            _reader(kind, ENTRY_FIELDS[field_id]) for kind, field_id in self._steps if field_id is not None
        )
        self._shapes = EntryShapes()

    def _flatten(self, kind: AvroType, *, below_file: bool = False) -> None:
        if not isinstance(kind, Record):
            raise ValueError("its records are no manifest entries")
        for field in kind.fields:
            # Where a writer gave no ids, the names that the spec has must do.
            field_id = _IDS_BY_NAME.get(field.name) if field.field_id is None else field.field_id
            if field_id == DATA_FILE and not below_file:
                self._flatten(field.kind, below_file=True)
            else:
                is_read = field_id is not None and field_id in ENTRY_FIELDS
                is_read = is_read and (field_id in _FIELDS_OF_ENTRY) != below_file
                self._steps.append((field.kind, field_id if is_read else None))

    def find(self, content: bytes, pos: int) -> tuple[tuple[bytes, ...], int]:
        """Return the bytes of a record's fields, in the order of `groups`, and where the record ends.

        Raises:
            ValueError: there is no record.
            IndexError: the content ends before the record does.
        """
        match = self._shapes.match(content, pos)
        if match is not None:
            return match.groups(), match.end()
        if self._shapes.wants_lesson():
            self._learn(content, pos)
        parts = []
        for kind, field_id in self._steps:
            end = kind.skip(content, pos)
            if field_id is not None:
                parts.append(content[pos:end])
            pos = end
        if pos > len(content):
            raise IndexError
        return tuple(parts), pos

    def _learn(self, content: bytes, pos: int) -> None:
        tokens: list[Token] = []
        try:
            for kind, field_id in self._steps:
                if field_id is not None:
                    tokens.append(b"(")
                pos = kind.trace(content, pos, tokens)
                if field_id is not None:
                    tokens.append(b")")
        except NotTraceable:
            return
        self._shapes.learn(tokens)


def _reader(kind: AvroType, field: _EntryField) -> Reader:
    try:
        read = _optional(kind, field)
    except ValueError as error:
        raise ValueError(f"its field {field.name} {error}") from error
    return _Remembered(read).__getitem__ if field.repeats else read


def _optional(kind: AvroType, field: _EntryField) -> Reader:
    if not isinstance(kind, Union):
        return field.reader(kind)
    values = [branch for branch in kind.branches if not isinstance(branch, Null)]
    if len(values) != 1:
        raise ValueError("has values of several types")
    read = field.reader(values[0])
    value_mark = write_long(kind.branches.index(values[0]))
    is_value = value_mark[0]

    def read_optional(content: bytes) -> Any:
        return read(content[1:]) if content[0] == is_value else None

    return read_optional


def layout_of(schema_text: str) -> EntryLayout:
    """Return the layout of records with a schema; manifests of one table share it, with what was learnt of them.

    Raises:
        ValueError: the text is not the schema of a manifest.
    """
    if len(schema_text) > _MAX_SCHEMA_BYTES:
        raise ValueError("its schema is too long")
    return _layout_of(schema_text)


@lru_cache(maxsize=128)
def _layout_of(schema_text: str) -> EntryLayout:
    try:
        return EntryLayout(json.loads(schema_text))
    except RecursionError as error:
        raise ValueError("its schema is nested too deeply") from error
