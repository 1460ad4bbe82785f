"""Avro schemas: the types that their JSON describes."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from app.engine.model.data_types.values import decimal_of
from app.formats.avro import types as t

_MAX_LEVELS: Final = 40
_MOST_FIELDS: Final = 10_000
"""With each use of a named type: a few that use each other would have any number, and no byte for any of them."""
_MOST_FIELDS_OF_AN_ITEM: Final = 100
"""An item of an array takes a byte at least."""
_MOST_NUMBERS_OF_AN_ITEM: Final = 2
"""What is read as numbers has a key and a value; longer expressions take longer to compile than they save."""
_FLOAT: Final = struct.Struct("<f")
_DOUBLE: Final = struct.Struct("<d")


def compile_type(schema: Any, *, counted_fixed: bool = False) -> t.AvroType:
    """Return the type that a schema's JSON describes.

    With `counted_fixed`, values of the type `fixed` have their length before them; see `CountedFixed`.

    Raises:
        ValueError: the schema makes no sense, or refers to itself.
    """
    return _Compiler(counted_fixed=counted_fixed).compile(schema, "", 0)


@lru_cache(maxsize=32)
def record_type(schema_text: str, ids_by_name: tuple[tuple[str, int], ...]) -> t.Record:
    """Return the type of a file's records; files with the same schema share it.

    Fields to which the writer gave no id have the one of their name.

    Raises:
        ValueError: the schema makes no sense, or does not describe records.
    """
    try:
        kind = _Compiler(ids_by_name=dict(ids_by_name)).compile(json.loads(schema_text), "", 0)
    except RecursionError as error:
        raise ValueError("its schema is nested too deeply") from error
    if not isinstance(kind, t.Record):
        raise ValueError("its schema does not describe records")  # noqa: TRY004 - the file's fault, not the program's
    return kind


def has_plain_fixed(schema: Any) -> bool:
    """Return whether a schema has a `fixed` without a logical type such as decimal or uuid."""
    match schema:
        case {"type": "fixed"}:
            return "logicalType" not in schema
        case dict():
            return any(has_plain_fixed(schema.get(inner)) for inner in ("type", "fields", "items", "values"))
        case list():
            return any(map(has_plain_fixed, schema))
    return False


class _Compiler:
    def __init__(self, *, counted_fixed: bool = False, ids_by_name: Mapping[str, int] | None = None) -> None:
        self._named: dict[str, tuple[t.AvroType, int]] = {}
        """Types, and how many fields are in each."""
        self._open: set[str] = set()
        """Records whose fields are being read."""
        self._fields = 0
        self._counted_fixed = counted_fixed
        self._ids_by_name = ids_by_name or {}

    def compile(self, schema: Any, space: str, level: int) -> t.AvroType:
        """Return the type of a schema inside a namespace."""
        if level > _MAX_LEVELS:
            raise ValueError("its schema is nested too deeply")
        level += 1
        match schema:
            case str():
                return self._known(schema, space)
            case list():
                return t.Union(tuple(self.compile(branch, space, level) for branch in schema))
            case {"type": "record" | "error", "fields": list(fields)}:
                name, before = _full_name(schema, space), self._fields
                inside = name.rpartition(".")[0]
                self._open.add(name)
                record = t.Record(tuple(self._field(field, inside, level) for field in fields))
                self._open.discard(name)
                return self._remember(name, record, self._fields - before)
            case {"type": "array", "items": items}:
                return _array(self._item(items, space, level))
            case {"type": "map", "values": values}:
                key = t.Field("key", None, t.Text(bytes.decode))
                return t.Array(t.Record((key, t.Field("value", None, self._item(values, space, level)))))
            case {"type": "fixed", "size": int(size)} if size >= 0:
                is_counted = self._counted_fixed and "logicalType" not in schema
                fixed = t.CountedFixed(size) if is_counted else t.Fixed(size, _bytes_reader(schema))
                return self._remember(_full_name(schema, space), fixed)
            case {"type": "enum"}:
                return self._remember(_full_name(schema, space), t.Number())
            case {"type": "bytes"}:
                return t.Text(_bytes_reader(schema))
            case {"type": "string", "logicalType": "uuid"}:
                return t.Text(lambda content: UUID(content.decode()))
            case {"type": "int" | "long", "logicalType": str(logical)}:
                return t.Number(1000 if logical.endswith("-millis") else 1)
            case {"type": inner}:
                return self.compile(inner, space, level)
        raise ValueError(f"its schema makes no sense: {str(schema)[:100]}")

    def _known(self, name: str, space: str) -> t.AvroType:
        if name in _PLAIN:
            return _PLAIN[name]
        full_name = name if "." in name or not space else f"{space}.{name}"
        if full_name in self._open:
            # Not one of another namespace: other readers would go on for as long as the records say.
            raise ValueError(f"its schema has a type {name[:100]!r} that refers to itself")
        found = self._named.get(full_name) or self._named.get(name)
        if found is None:
            raise ValueError(f"its schema has no type {name[:100]!r}")
        kind, fields = found
        self._count(fields)
        return kind

    def _item(self, schema: Any, space: str, level: int) -> t.AvroType:
        before = self._fields
        kind = self.compile(schema, space, level)
        if self._fields - before > _MOST_FIELDS_OF_AN_ITEM:
            raise ValueError("its schema has an array of items with too many fields")
        return kind

    def _count(self, fields: int) -> None:
        self._fields += fields
        if self._fields > _MOST_FIELDS:
            raise ValueError("its schema has too many fields")

    def _field(self, field: Any, space: str, level: int) -> t.Field:
        self._count(1)
        match field:
            case {"name": str(name), "type": kind}:
                field_id = field.get("field-id")
                if not isinstance(field_id, int):
                    field_id = self._ids_by_name.get(name)
                return t.Field(name, field_id, self.compile(kind, space, level))
        raise ValueError(f"its schema has a field that makes no sense: {str(field)[:100]}")

    def _remember(self, name: str, kind: t.AvroType, fields: int = 0) -> t.AvroType:
        self._named[name] = kind, fields
        return kind


def _full_name(schema: Mapping[str, Any], space: str) -> str:
    name, own_space = schema.get("name"), schema.get("namespace", space)
    if not isinstance(name, str) or not isinstance(own_space, str):
        raise ValueError(f"its schema has a type without a name: {str(schema)[:100]}")  # noqa: TRY004 - the file's fault
    return name if "." in name or not own_space else f"{own_space}.{name}"


def _array(items: t.AvroType) -> t.Array:
    if _may_be_empty(items):
        raise ValueError("its schema has an array of nothing")
    fields = items.fields if isinstance(items, t.Record) else (t.Field("", None, items),)
    match tuple(type(field.kind) for field in fields):
        case kinds if set(kinds) == {t.Number} and len(kinds) <= _MOST_NUMBERS_OF_AN_ITEM:
            return t.Array(items, numbers_an_item=len(kinds))
        case (kind, other) if kind is t.Number and other is t.Text:
            return t.Array(items, is_map_of_texts=True)
    return t.Array(items)


def _may_be_empty(kind: t.AvroType) -> bool:
    match kind:
        case t.Fixed(size=0):
            return True
        case t.Record():
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


_PLAIN: Final[Mapping[str, t.AvroType]] = {
    "null": t.NULL,
    "boolean": t.Fixed(1, lambda content: content != b"\x00"),
    "int": t.Number(),
    "long": t.Number(),
    "float": t.Fixed(4, lambda content: _FLOAT.unpack(content)[0]),
    "double": t.Fixed(8, lambda content: _DOUBLE.unpack(content)[0]),
    "bytes": t.Text(bytes),
    "string": t.Text(bytes.decode),
}
