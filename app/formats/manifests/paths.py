"""Locations in manifest lists and manifests, read by a second decoder before files go."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final, TypeVar

import fastavro
from fastavro.schema import SchemaParseException, UnknownType

from app.engine.model.ids import Location
from app.errors import InvalidMetadata
from app.formats.avro import AvroFile, compile_type, open_avro

Picked = TypeVar("Picked")

_INNER: Final = ("type", "fields", "items", "values")
_BROKEN: Final = (
    ValueError,
    EOFError,
    KeyError,
    IndexError,
    TypeError,
    OverflowError,
    AttributeError,
    MemoryError,
)
"""On broken bytes fastavro may raise any of these; only `_picked` turns them into ours."""


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("a path is not a string")
    return value


def statuses_and_paths(content: bytes, manifest: Location) -> list[tuple[int, str]]:
    """Return the status and file path of each entry.

    Before files are deleted because our own decoder does not find them in use, the two decoders must agree.

    Raises:
        InvalidMetadata: the bytes are not a manifest; names the file.
    """
    return _picked(content, manifest, lambda entry: (entry["status"], _text(entry["data_file"]["file_path"])))


def _picked(content: bytes, location: Location, pick: Callable[[dict[str, Any]], Picked]) -> list[Picked]:
    """Return a part of each record of a file."""
    try:
        file = open_avro(content)
        *unlikely, plain = _fastavro_schemas(file.schema_text)
        for schema in unlikely:
            with suppress(*_BROKEN):
                return [pick(record) for record in _records(file, schema)]
        return [pick(record) for record in _records(file, plain)]
    except _BROKEN as error:
        raise InvalidMetadata(f"Cannot read {location} as Avro: {type(error).__name__}: {error}") from error


def _records(file: AvroFile, schema: Any) -> Iterator[Any]:
    for block in file.blocks:
        stream = io.BytesIO(block.content)
        for _ in range(block.record_count):
            yield fastavro.schemaless_reader(stream, schema, None)
        if stream.tell() != len(block.content):
            raise ValueError("a block does not have the records it says")


@lru_cache(maxsize=128)
def _fastavro_schemas(schema_text: str) -> tuple[Any, ...]:
    """Return the schemas that may fit a file with this one, best first; see `CountedFixed`."""
    try:
        schema = json.loads(schema_text)
        plain = _parsed(_without_meanings(schema, None))
        counted: set[str] = set()
        likeliest = _without_meanings(schema, counted)
        if counted:
            return _parsed(likeliest), plain
    except (RecursionError, SchemaParseException, UnknownType) as error:
        raise ValueError(f"its schema makes no sense: {error}") from error
    return (plain,)


def _parsed(schema: Any) -> Any:
    """Return what fastavro makes of a schema; raises `ValueError` if that has no bounds.

    Types inside themselves and items without bytes it would follow as deep and as long as a file says, and a process
    ends by that. So its own words are checked: it might find another type under a name than our decoder does.
    """
    parsed = fastavro.parse_schema(schema)
    compile_type(parsed)
    return parsed


def _without_meanings(schema: Any, counted: set[str] | None) -> Any:
    """Return a schema without logical types: fastavro's dates, for example, end in 9999.

    With a set of names, plain `fixed` types are read as bytes with a length, and their names are added to the set.
    """
    match schema:
        case str():
            return "bytes" if counted is not None and schema in counted else schema
        case list():
            return [_without_meanings(branch, counted) for branch in schema]
        case {"type": "fixed", "name": str(name)}:
            if counted is None or "logicalType" in schema:
                return {key: value for key, value in schema.items() if key != "logicalType"}
            counted.add(name)
            return "bytes"
        case dict():
            inner = {key: _without_meanings(schema[key], counted) for key in _INNER if key in schema}
            return {key: value for key, value in schema.items() if key != "logicalType"} | inner
    return schema
