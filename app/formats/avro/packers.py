"""Writing Avro: values become the bytes that a schema lays out."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from itertools import islice
from typing import Any, Final
from uuid import UUID

from isal import isal_zlib

from app.engine.model.data_types.types import PrimitiveType
from app.engine.model.data_types.values import unscaled_value
from app.formats.avro.metric_maps import MetricMap
from app.formats.avro.types import write_long

BLOCK_BYTES: Final = 64_000
"""The size of a block before compression, about as large as other writers make it."""
_MEASURED_AT_ONCE: Final = 16
"""So many records are added to a block before its size is looked at."""
_COMPRESSION_LEVEL: Final = 2
"""Of ISA-L: smaller than zlib makes it at level 1, in a third of its time."""
_HASHED_BYTES: Final = 1024
_END: Final = b"\x00"
_NULL: Final = b"\x00"
_VALUE: Final = b"\x02"
_FLOAT: Final = struct.Struct("<f")
_DOUBLE: Final = struct.Struct("<d")
_SMALL: Final = tuple(write_long(number) for number in range(1024))

Packer = Callable[[Any], bytes]


class Packing:
    """How records of one schema become bytes; made once, and kept."""

    def __init__(self, schema: Any) -> None:
        """Prepare for the schema that this JSON describes."""
        self.schema_text = json.dumps(schema)
        self._schema = schema

    def pack(self, name: str, record: Mapping[int, Any]) -> bytes:
        """Pack a record by field id.

        Args:
            name: names the record in errors.
            record: its values by field id.

        Raises:
            ValueError: it does not follow the schema.
        """
        try:
            return self._packer(record)
        except (TypeError, ValueError, AttributeError, struct.error, OverflowError) as error:
            raise ValueError(f"Cannot write {name}: {error}") from error

    @cached_property
    def _packer(self) -> Packer:
        return _packer(self._schema, {})


def write_packed(packing: Packing, records: Iterable[bytes], metadata: Mapping[str, str]) -> bytes:
    """Return an Avro file of packed records; the same records always make the same file.

    It is put together here, since fastavro takes several times as long for its header as for its records.
    """
    fields = {**metadata, "avro.codec": "deflate", "avro.schema": packing.schema_text}
    header = b"".join(_pack_string(name) + _pack_string(value) for name, value in fields.items())
    blocks = []
    marker = hashlib.sha256(header)
    for block in _blocks(records):
        packed = isal_zlib.compress(b"".join(block), _COMPRESSION_LEVEL, -isal_zlib.MAX_WBITS)
        # A piece is enough: two files whose markers are the same do no harm, and more would take longer than packing.
        marker.update(packed[:_HASHED_BYTES])
        blocks.append(b"".join((write_long(len(block)), write_long(len(packed)), packed)))
    sync = marker.digest()[:16]
    head = b"".join((b"Obj\x01", write_long(len(fields)), header, _END, sync))
    return b"".join((head, *(part for block in blocks for part in (block, sync))))


def _blocks(records: Iterable[bytes]) -> Iterable[list[bytes]]:
    block: list[bytes] = []
    size, left = 0, iter(records)
    while some := list(islice(left, _MEASURED_AT_ONCE)):
        block += some
        size += sum(map(len, some))
        if size >= BLOCK_BYTES:
            yield block
            block, size = [], 0
    if block:
        yield block


def _packer(schema: Any, named: dict[str, Packer]) -> Packer:
    """Return the function that packs values of a schema; records are mappings by field id."""
    match schema:
        case str():
            return named.get(schema) or _PLAIN[schema]
        case ["null", kind]:
            return _optional(_packer(kind, named))
        case {"type": "record", "fields": fields}:
            return _record([(field["field-id"], _packer(field["type"], named)) for field in fields])
        case {"type": "array", "logicalType": "map", "items": {"fields": [key, value]}}:
            return _pairs(_packer(key["type"], named), _packer(value["type"], named))
        case {"type": "array", "items": items}:
            return _items(_packer(items, named))
        case {"type": "fixed", "name": name, "size": size}:
            named[name] = _fixed(size, schema)
            return named[name]
        case {"type": kind}:
            return _packer(kind, named)
    raise AssertionError(schema)


def _pack_nothing(value: Any) -> bytes:
    if value is not None:
        raise ValueError(f"a value where only null can be: {value!r}")
    return b""


def _pack_boolean(value: Any) -> bytes:
    return b"\x01" if value else b"\x00"


def _whole_number(bits: int) -> Callable[[int], bytes]:
    half = 1 << (bits - 1)

    def pack(value: int) -> bytes:
        if 0 <= value < 1024:
            return _SMALL[value]
        if not -half <= value < half:
            raise ValueError(f"{value} has more than {bits} bits")
        return write_long(value)

    return pack


_pack_long = _whole_number(64)


def _pack_bytes(value: bytes) -> bytes:
    return _pack_long(len(value)) + value


def _pack_string(value: str) -> bytes:
    content = str.encode(value)
    return _pack_long(len(content)) + content


def _optional(pack: Packer) -> Packer:
    return lambda value: _NULL if value is None else _VALUE + pack(value)


def _record(fields: Sequence[tuple[int, Packer]]) -> Packer:
    return lambda values: b"".join([pack(values[field_id]) for field_id, pack in fields])


def _items(pack: Packer) -> Packer:
    def pack_items(values: Any) -> bytes:
        if not values:
            return _END
        return b"".join([_pack_long(len(values)), *map(pack, values), _END])

    return pack_items


def _pairs(pack_key: Packer, pack_value: Packer) -> Packer:
    def pack_pairs(values: Any) -> bytes:
        if isinstance(values, MetricMap) and (packed := values.packed) is not None:
            return packed
        if not values:
            return _END
        pairs = [pack_key(key) + pack_value(value) for key, value in values.items()]
        return b"".join([_pack_long(len(pairs)), *pairs, _END])

    return pack_pairs


def _fixed(size: int, schema: Mapping[str, Any]) -> Packer:
    def pack_fixed(value: Any) -> bytes:
        match value:
            case UUID():
                value = value.bytes
            case Decimal():
                value = unscaled_value(kind, value).to_bytes(size, "big", signed=True)
        if len(value) != size:
            raise ValueError(f"{len(value)} bytes instead of {size}")
        return bytes(value)

    kind = PrimitiveType("decimal", "decimal", schema.get("precision"), schema.get("scale"))
    return pack_fixed


_PLAIN: Final[Mapping[str, Packer]] = {
    "null": _pack_nothing,
    "boolean": _pack_boolean,
    "int": _whole_number(32),
    "long": _pack_long,
    "float": _FLOAT.pack,
    "double": _DOUBLE.pack,
    "bytes": _pack_bytes,
    "string": _pack_string,
}
