"""The locations that manifest lists and manifests name: what a purge must find."""

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
from app.engine.model.snapshot import Snapshot
from app.errors import InvalidMetadata
from app.fileio.files import FileIO
from app.formats.avro_files import AvroFile, open_avro
from app.formats.avro_schemas import has_plain_fixed

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
"""fastavro raises whatever broken bytes lead it into; `_picked` is the one place that turns it into ours."""


def manifests_of(files: FileIO, snapshot: Snapshot) -> list[Location]:
    """Return the locations of a snapshot's manifests.

    Raises:
        FileMissing: the manifest list is gone.
        InvalidMetadata: the manifest list cannot be read.
        FilesUnavailable: the store does not answer.

    Spec: #manifest-lists
    """
    if snapshot.manifest_list is None:
        return [Location(path) for path in snapshot.manifests or ()]
    location = snapshot.manifest_list
    return _picked(files.read(location), location, lambda entry: Location(_text(entry["manifest_path"])))


def content_files_of(files: FileIO, manifest: Location) -> Iterator[Location]:
    """Return the locations of the data and delete files that a manifest names, whatever their status.

    Raises:
        FileMissing: the manifest is gone.
        InvalidMetadata: the manifest cannot be read.
        FilesUnavailable: the store does not answer.

    Spec: #manifests
    """
    content = files.read(manifest)
    return iter(_picked(content, manifest, lambda entry: Location(_text(entry["data_file"]["file_path"]))))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("a path is no text")
    return value


def statuses_and_paths(content: bytes, manifest: Location) -> list[tuple[int, str]]:
    """Return status and file path of each entry, whose records are read by a decoder that is not our own.

    Before anything is deleted because our own decoder says so, the two must agree.

    Raises:
        InvalidMetadata: the bytes are no manifest; names the file.
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
    """Return the schemas that a file with this one may be laid out by, likeliest first; see `CountedFixed`."""
    try:
        schema = json.loads(schema_text)
        plain = fastavro.parse_schema(_without_meanings(schema, None))
        if has_plain_fixed(schema):
            return fastavro.parse_schema(_without_meanings(schema, set())), plain
    except (RecursionError, SchemaParseException, UnknownType) as error:
        raise ValueError(f"its schema makes no sense: {error}") from error
    return (plain,)


def _without_meanings(schema: Any, counted: set[str] | None) -> Any:
    """Return a schema whose values are read as they are: fastavro's dates, for one, end with the year 9999.

    With a set of names, types that are `fixed` and no more than that are read as bytes, and their names put there.
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
