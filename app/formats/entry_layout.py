"""Where a manifest's records have what: the writer's schema, resolved by the spec's field ids."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from app.engine.model.manifests import EntryStatus, FileContent
from app.formats.avro_types import (
    NULL,
    Array,
    AvroType,
    NotTraceable,
    Number,
    Record,
    Text,
    Token,
    Union,
    compile_type,
    read_long,
)
from app.formats.entry_shapes import EntryShapes
from app.formats.metric_maps import MetricMap, read_bounds, read_counts

STATUS, SNAPSHOT_ID, DATA_FILE, SEQUENCE_NUMBER, FILE_SEQUENCE_NUMBER = range(5)
CONTENT, FILE_PATH, FILE_FORMAT, PARTITION, RECORD_COUNT, FIRST_ROW_ID = 134, 100, 101, 102, 103, 142
LOWER_BOUNDS, UPPER_BOUNDS = 125, 128
_FIELDS_OF_ENTRY: Final = frozenset({STATUS, SNAPSHOT_ID, SEQUENCE_NUMBER, FILE_SEQUENCE_NUMBER})
"""The others are the file's."""
_MAX_SCHEMA_BYTES: Final = 4 << 20
_REMEMBERED_VALUES: Final = 256

Reader = Callable[[bytes], Any]
"""Takes the bytes of one value, all of them; answers the value."""
ReaderMaker = Callable[[AvroType, int], Reader]
"""Takes a type, and how many bytes stand before a value of it."""


def _number(kind: AvroType, start: int) -> Reader:
    _check_is(kind, Number)
    return lambda content: read_long(content, start)[0]


def _text(kind: AvroType, start: int) -> Reader:
    _check_is(kind, Text)
    return lambda content: _after_length(content, start).decode()


def _bytes(kind: AvroType, start: int) -> Reader:
    _check_is(kind, Text)
    return lambda content: _after_length(content, start)


def _after_length(content: bytes, start: int) -> bytes:
    while content[start] > 127:
        start += 1
    return content[start + 1 :]


def _status(kind: AvroType, start: int) -> Reader:
    _check_is(kind, Number)
    return lambda content: EntryStatus(read_long(content, start)[0])


def _content(kind: AvroType, start: int) -> Reader:
    _check_is(kind, Number)
    return lambda content: FileContent(read_long(content, start)[0])


def _format(kind: AvroType, start: int) -> Reader:
    read = _text(kind, start)
    return lambda content: read(content).lower()


def _partition(kind: AvroType, start: int) -> Reader:
    _check_is(kind, Record)
    return lambda content: kind.read(content, start)[0]


def _numbers(kind: AvroType, start: int) -> Reader:
    if isinstance(kind, Array) and kind.numbers_an_item == 1:
        return lambda content: tuple(kind.read(content, start)[0])
    raise ValueError("is no list of numbers")


def _counts(kind: AvroType, start: int) -> Reader:
    if isinstance(kind, Array) and kind.numbers_an_item == 2:
        return lambda content: MetricMap(content, start, read_counts)
    raise ValueError("is no map of counts")


def _bounds(kind: AvroType, start: int) -> Reader:
    if isinstance(kind, Array) and kind.is_map_of_texts:
        return lambda content: MetricMap(content, start, read_bounds)
    raise ValueError("is no map of bounds")


def _nothing(content: bytes) -> None:
    """Leave a value alone."""


def _check_is(kind: AvroType, expected: type[AvroType]) -> None:
    if not isinstance(kind, expected):
        raise ValueError(f"is no {expected.__name__.lower()}")  # noqa: TRY004 - the file's fault, not the program's


@dataclass(frozen=True, slots=True)
class _EntryField:
    name: str
    make_reader: ReaderMaker
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
    LOWER_BOUNDS: _EntryField("lower_bounds", _bounds),
    UPPER_BOUNDS: _EntryField("upper_bounds", _bounds),
    131: _EntryField("key_metadata", _bytes, repeats=True),
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
        readers = {
            field_id: _reader(kind, ENTRY_FIELDS[field_id])
            for kind, field_id in self._steps
            if field_id is not None
        }
        self.read_partition = readers[PARTITION]
        readers[PARTITION] = _nothing
        self.readers = tuple(readers.values())
        """What reads the groups; the partition, which many records share, is left out."""
        self._shapes = EntryShapes()

    def _flatten(self, kind: AvroType, *, below_file: bool = False) -> None:
        if not isinstance(kind, Record):
            raise ValueError("its records are no manifest entries")  # noqa: TRY004 - the file's fault
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
        return self._walk(content, pos) if match is None else (match.groups(), match.end())

    def pick(self, content: bytes, pos: int, groups: Sequence[int]) -> tuple[Sequence[bytes], int]:
        """Return the bytes of some fields only, two at least; everything else is as with `find`."""
        match = self._shapes.match(content, pos)
        if match is not None:
            return match.group(*groups), match.end()
        parts, end = self._walk(content, pos)
        return [parts[group - 1] for group in groups], end

    def _walk(self, content: bytes, pos: int) -> tuple[tuple[bytes, ...], int]:
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
        return field.make_reader(kind, 0)
    values = [branch for branch in kind.branches if branch is not NULL]
    if len(values) != 1 or len(kind.branches) > 2:
        raise ValueError("has values of several types")
    read = field.make_reader(values[0], 1)
    mark = 2 * kind.branches.index(values[0])
    return lambda content: read(content) if content[0] == mark else None


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
