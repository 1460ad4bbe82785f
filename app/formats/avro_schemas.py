"""Avro schemas: the types that their JSON describes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import UUID

from app.engine.model.values import decimal_of
from app.formats.avro_types import NULL, Array, AvroType, CountedFixed, Field, Fixed, Number, Record, Text, Union

_MAX_LEVELS: Final = 40
_FLOAT: Final = struct.Struct("<f")
_DOUBLE: Final = struct.Struct("<d")


def compile_type(schema: Any) -> AvroType:
    """Return the type that a schema's JSON describes.

    Raises:
        ValueError: the schema makes no sense, or refers to itself.
    """
    return _Compiler().compile(schema, 0)


class _Compiler:
    def __init__(self) -> None:
        self._named: dict[str, AvroType] = {}

    def compile(self, schema: Any, level: int) -> AvroType:
        if level > _MAX_LEVELS:
            raise ValueError("its schema is nested too deeply")
        match schema:
            case str():
                return self._plain(schema)
            case list():
                return Union(tuple(self.compile(branch, level + 1) for branch in schema))
            case {"type": "record" | "error", "fields": list(fields)}:
                record = Record(tuple(self._field(field, level + 1) for field in fields))
                return self._remember(schema, record)
            case {"type": "array", "items": items}:
                return _array(self.compile(items, level + 1))
            case {"type": "map", "values": values}:
                key = Field("key", None, Text(bytes.decode))
                pair = Record((key, Field("value", None, self.compile(values, level + 1))))
                return Array(pair)
            case {"type": "fixed", "size": int(size)} if size >= 0:
                return self._remember(schema, Fixed(size, _bytes_reader(schema)))
            case {"type": "enum"}:
                return self._remember(schema, Number())
            case {"type": "bytes"}:
                return Text(_bytes_reader(schema))
            case {"type": "string", "logicalType": "uuid"}:
                return Text(lambda content: UUID(content.decode()))
            case {"type": "int" | "long", "logicalType": str(logical)}:
                return Number(1000 if logical.endswith("-millis") else 1)
            case {"type": inner}:
                return self.compile(inner, level + 1)
        raise ValueError(f"its schema makes no sense: {str(schema)[:100]}")

    def _plain(self, name: str) -> AvroType:
        kind = _PLAIN.get(name) or self._named.get(name)
        if kind is None:
            raise ValueError(f"its schema has no type {name[:100]!r}")
        return kind

    def _field(self, field: Any, level: int) -> Field:
        match field:
            case {"name": str(name), "type": kind}:
                field_id = field.get("field-id")
                return Field(name, field_id if isinstance(field_id, int) else None, self.compile(kind, level))
        raise ValueError(f"its schema has a field that makes no sense: {str(field)[:100]}")

    def _remember(self, schema: Mapping[str, Any], kind: AvroType) -> AvroType:
        name, space = schema.get("name"), schema.get("namespace")
        if isinstance(name, str):
            self._named[name] = kind
            if isinstance(space, str):
                self._named[f"{space}.{name}"] = kind
        return kind


def _array(items: AvroType) -> Array:
    if _may_be_empty(items):
        raise ValueError("its schema has an array of nothing")
    fields = items.fields if isinstance(items, Record) else (Field("", None, items),)
    match tuple(type(field.kind) for field in fields):
        case kinds if set(kinds) == {Number}:
            return Array(items, numbers_an_item=len(kinds))
        case (kind, other) if kind is Number and other is Text:
            return Array(items, is_map_of_texts=True)
    return Array(items)


def _may_be_empty(kind: AvroType) -> bool:
    match kind:
        case Fixed(size=0):
            return True
        case Record():
            return all(_may_be_empty(field.kind) for field in kind.fields)
    return False


def _bytes_reader(schema: Mapping[str, Any]) -> Callable[[bytes], Any]:
    match schema:
        case {"logicalType": "decimal"}:
            scale = schema.get("scale", 0)
            if not isinstance(scale, int) or not 0 <= scale <= 38:
                raise ValueError("its schema has a decimal without a scale")
            return lambda content: decimal_of(int.from_bytes(content, "big", signed=True), scale)
        case {"logicalType": "uuid", "size": 16}:
            return lambda content: UUID(bytes=content)
    return bytes


_PLAIN: Final[Mapping[str, AvroType]] = {
    "null": NULL,
    "boolean": Fixed(1, lambda content: content != b"\x00"),
    "int": Number(),
    "long": Number(),
    "float": Fixed(4, lambda content: _FLOAT.unpack(content)[0]),
    "double": Fixed(8, lambda content: _DOUBLE.unpack(content)[0]),
    "bytes": Text(bytes),
    "string": Text(bytes.decode),
}
