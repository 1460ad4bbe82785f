"""Manifests that fastavro writes, in any schema that a manifest may have, are read as fastavro reads them."""

from __future__ import annotations

import io
import itertools
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import fastavro
import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.engine.model.files.manifests import ManifestEntry, ManifestFile
from app.engine.model.ids import Location, SpecId
from app.formats.avro.container import open_avro
from app.formats.avro.types import write_long
from app.formats.manifests.avro_schemas import manifest_schema
from app.formats.manifests.columns import ManifestColumns

LISTED = ManifestFile(Location("memory://m.avro"), 0, SpecId(3), sequence_number=-1)
"""Without a sequence number nothing is inherited, so entries are what the file says."""
INTS, LONGS = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
PARTITION_TYPES: Mapping[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "int": ("int", INTS),
    "long": ("long", LONGS),
    "boolean": ("boolean", st.booleans()),
    "float": ("float", st.floats(width=32, allow_nan=False)),
    "double": ("double", st.floats(allow_nan=False)),
    "string": ("string", st.text(max_size=5)),
    "bytes": ("bytes", st.binary(max_size=70)),
    "nothing": ("null", st.none()),
    "map": ({"type": "map", "values": "long"}, st.dictionaries(st.text(max_size=3), LONGS, max_size=2)),
    "list": ({"type": "array", "items": "string"}, st.lists(st.text(max_size=3), max_size=3)),
}
PLAIN: Mapping[str, st.SearchStrategy[Any]] = {
    "int": INTS,
    "long": LONGS,
    "string": st.text("ab/é", max_size=80),
    "bytes": st.binary(max_size=70),
}
EXTRA = {"name": "unknown_to_us", "type": ["null", {"type": "map", "values": ["long", "string", "null"]}]}


@st.composite
def partition_fields(draw: st.DrawFn) -> list[dict[str, Any]]:
    chosen = draw(st.lists(st.sampled_from(sorted(PARTITION_TYPES)), max_size=4))
    fields = []
    for at, name in enumerate(chosen):
        kind, _ = PARTITION_TYPES[name]
        orders = [kind] if name == "nothing" else [kind, ["null", kind], [kind, "null"]]
        fields.append(
            {"name": f"p_{at}", "type": draw(st.sampled_from(orders)), "field-id": 1000 + at, "means": name}
        )
    return fields


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, Any]:
    """Return a schema of some version, with fields moved, made optional or required, left out or unknown to us."""
    schema = manifest_schema(draw(st.sampled_from([1, 2, 3])), draw(partition_fields()))
    (file,) = (field for field in schema["fields"] if field["name"] == "data_file")
    file["type"]["fields"] = _rearranged(draw, file["type"]["fields"])
    schema["fields"] = _rearranged(draw, schema["fields"])
    return schema


NEEDED = {
    "status",
    "data_file",
    "file_path",
    "file_format",
    "partition",
    "record_count",
    "file_size_in_bytes",
}


def _rearranged(draw: st.DrawFn, fields: list[dict[str, Any]]) -> list[dict[str, Any]]:
    kept = [dict(field) for field in fields if field["name"] in NEEDED or draw(st.integers(0, 5))]
    for field in kept:
        field.pop("default", None)
        match field["type"]:
            case ["null", kind]:
                field["type"] = draw(st.sampled_from([["null", kind], [kind, "null"], kind]))
            case kind if not isinstance(kind, dict) and draw(st.booleans()):
                field["type"] = draw(st.sampled_from([["null", kind], [kind, "null"]]))
    if draw(st.booleans()):
        kept.insert(draw(st.integers(0, len(kept))), EXTRA | {"name": f"unknown_{len(fields)}"})
    return draw(st.permutations(kept)) if draw(st.booleans()) else kept


def values_of(field: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Return values of a field of such a schema."""
    kind = field["type"]
    null: st.SearchStrategy[Any] = st.nothing()
    if isinstance(kind, list):
        null = st.nothing() if field["name"] in NEEDED else st.none()
        kind = next(branch for branch in kind if branch != "null")
    return null | _values(field["name"], kind, field.get("means"))


def _values(name: str, kind: Any, meaning: str | None) -> st.SearchStrategy[Any]:
    if meaning is not None:
        return PARTITION_TYPES[meaning][1]
    match name, kind:
        case "status" | "content", _:
            return st.integers(0, 2)
        case _, str():
            return PLAIN[kind]
        case _, {"type": "record", "fields": fields}:
            return st.fixed_dictionaries({field["name"]: values_of(field) for field in fields})
        case _, {"type": "array", "items": str(items)}:
            return st.lists(PLAIN[items], max_size=4)
        case _, {"type": "array", "items": {"fields": [_, value]}}:
            pairs = st.dictionaries(
                st.integers(1, 4) | st.integers(1, 2**31 - 1), PLAIN[value["type"]], max_size=5
            )
            return pairs.map(lambda found: [{"key": key, "value": item} for key, item in found.items()])
        case _, {"type": "map"}:
            return st.dictionaries(st.text(max_size=3), LONGS | st.text(max_size=3) | st.none(), max_size=2)
    raise AssertionError(kind)


@st.composite
def files(draw: st.DrawFn) -> tuple[bytes, list[dict[str, Any]]]:
    """Return a manifest's bytes, and what fastavro reads in them; many records look like others."""
    schema = draw(schemas())
    (root,) = ({"name": "", "type": schema},)
    different = draw(st.lists(values_of(root), min_size=1, max_size=4))
    records = draw(st.lists(st.sampled_from(different), max_size=45))
    for position, record in enumerate(records):
        records[position] = record | {"data_file": record["data_file"] | {"file_path": "é" * (position % 40)}}
    stream = io.BytesIO()
    fastavro.writer(
        stream,
        schema,
        records,
        codec=draw(st.sampled_from(["null", "deflate", "bzip2", "xz"])),
        sync_interval=draw(st.sampled_from([1, 500, 16000])),
        metadata={"content": "data", "partition-spec-id": "3"},
    )
    content = stream.getvalue()
    packed = draw(st.sampled_from([content, packed_with_snappy(content), packed_with_zstandard(content)]))
    read: list[Any] = list(fastavro.reader(io.BytesIO(content)))
    return packed, read


def packed_with_snappy(content: bytes) -> bytes:
    """Return a file packed so, which fastavro can do only with yet another library."""
    return _repacked(
        content,
        b"snappy",
        lambda block: pa.compress(block, "snappy", asbytes=True) + zlib.crc32(block).to_bytes(4, "big"),
    )


def packed_with_zstandard(content: bytes) -> bytes:
    return _repacked(content, b"zstandard", lambda block: pa.compress(block, "zstd", asbytes=True))


def _repacked(content: bytes, codec: bytes, pack: Callable[[bytes], bytes]) -> bytes:
    file = open_avro(content)
    sync = content[-16:]
    header = {b"avro.schema": file.schema_text.encode(), b"avro.codec": codec}
    header |= {name.encode(): value.encode() for name, value in file.metadata.items()}
    parts = [b"Obj\x01", write_long(len(header))]
    for item in itertools.chain.from_iterable(header.items()):
        parts += [write_long(len(item)), item]
    parts += [b"\x00", sync]
    for block in file.blocks:
        packed = pack(block.content)
        parts += [write_long(block.record_count), write_long(len(packed)), packed, sync]
    return b"".join(parts)


def in_words(entry: ManifestEntry) -> dict[str, Any]:
    """Return an entry's values by the spec's names."""
    file = entry.file
    return {
        "status": int(entry.status),
        "snapshot_id": entry.snapshot_id,
        "sequence_number": entry.data_sequence_number,
        "file_sequence_number": entry.file_sequence_number,
        "partition": [_pairs_gone(_with_lists(value)) for value in file.partition],
        "content": int(file.content),
        **{
            name: getattr(file, name)
            for name in ("file_path", "file_format", "record_count", "file_size_in_bytes")
        },
        **{name: _listed(getattr(file, name)) for name in OPTIONAL},
    }


OPTIONAL = (
    "column_sizes value_counts null_value_counts nan_value_counts lower_bounds upper_bounds key_metadata "
    "split_offsets equality_ids sort_order_id first_row_id referenced_data_file content_offset content_size_in_bytes"
).split()


def expected(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same of a record as fastavro reads it."""
    file = record["data_file"]
    return {
        **{
            name: record.get(name)
            for name in ("status", "snapshot_id", "sequence_number", "file_sequence_number")
        },
        "partition": list(file["partition"].values()),
        "content": file.get("content") or 0,
        **{name: file[name] for name in ("file_path", "record_count", "file_size_in_bytes")},
        "file_format": file["file_format"].lower(),
        **{name: _map_of_pairs(file.get(name)) for name in OPTIONAL},
    }


def _listed(value: Any) -> Any:
    match value:
        case tuple():
            return list(value)
        case Mapping():
            return dict(value)
    return value


def _with_lists(value: Any) -> Any:
    """Return a list or map as it was before it became a tuple, so that its partition can be a key."""
    if not isinstance(value, tuple):
        return value
    return [dict(item) if isinstance(item, tuple) else item for item in value]


def _pairs_gone(value: Any) -> Any:
    return {pair["key"]: pair["value"] for pair in value} if _is_pairs(value) else value


def _is_pairs(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _map_of_pairs(value: Any) -> Any:
    return _pairs_gone(value)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(files())
def test_every_entry_is_what_fastavro_reads(found: tuple[bytes, list[dict[str, Any]]]) -> None:
    content, records = found

    entries = tuple(ManifestColumns(LISTED, content))

    assert [_no_empty_maps(in_words(entry)) for entry in entries] == [
        _no_empty_maps(expected(record)) for record in records
    ]


def _no_empty_maps(words: dict[str, Any]) -> dict[str, Any]:
    """Return it with empty maps as fastavro has them: an array of pairs without a pair is an empty list."""
    partition = [[] if value == {} else value for value in words["partition"]]
    return {name: [] if value == {} else value for name, value in words.items()} | {"partition": partition}
