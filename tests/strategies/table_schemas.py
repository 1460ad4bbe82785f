"""Strategies for schemas: every type, nested, with defaults, and schemas that evolved from others."""

from __future__ import annotations

import copy
import itertools
import string
from collections.abc import Iterator
from functools import cache

from hypothesis import strategies as st

from tests.strategies.json_values import MAX_INT, MAX_LONG, Json, texts, unknown_fields

PLAIN_TYPES = ("boolean int long float double date time timestamp timestamptz string uuid binary").split()
V3_TYPES = ("unknown variant timestamp_ns timestamptz_ns geometry geography").split()
NEVER_IDENTIFIES = ("float", "double", "variant")
NAMES = st.text(string.ascii_lowercase, min_size=1, max_size=3) | st.sampled_from(
    ["ID", "order date", "straße", "列", "😀", "a-b", "select"]
)


@cache
def primitives(version: int) -> st.SearchStrategy[str]:
    """Return the texts of primitive types that a format version has."""
    decimals = st.integers(1, 38).flatmap(
        lambda precision: st.integers(0, precision).map(lambda scale: f"decimal({precision}, {scale})")
    )
    known = (
        st.sampled_from(PLAIN_TYPES) | decimals | st.integers(0, 64).map(lambda length: f"fixed[{length}]")
    )
    if version < 3:
        return known
    geo = st.sampled_from(["geometry(EPSG:3857)", "geography(OGC:CRS84, spherical)"])
    return known | st.sampled_from(V3_TYPES) | geo


@cache
def default_values(kind: str) -> st.SearchStrategy[Json]:
    """Return defaults that fit a primitive type; None for types that can have none."""
    fitting: dict[str, st.SearchStrategy[Json]] = {
        "boolean": st.booleans(),
        "int": st.integers(-MAX_INT - 1, MAX_INT),
        "long": st.integers(-MAX_LONG - 1, MAX_LONG),
        "float": st.floats(allow_nan=False, allow_infinity=False, width=32),
        "double": st.floats(allow_nan=False, allow_infinity=False),
        "date": st.dates().map(str),
        "time": st.times().map(str),
        "timestamp": st.datetimes().map(lambda moment: moment.isoformat()),
        "timestamptz": st.datetimes().map(lambda moment: f"{moment.isoformat()}+00:00"),
        "string": texts(),
        "uuid": st.uuids().map(str),
        "binary": st.binary(max_size=4).map(bytes.hex),
    }
    fitting["timestamp_ns"] = st.sampled_from(["1969-12-31T23:59:59.999999999", "2262-01-01T00:00:00"])
    fitting["timestamptz_ns"] = fitting["timestamp_ns"].map(lambda text: f"{text}+00:00")
    if kind.startswith("fixed["):
        length = int(kind[6:-1])
        return st.binary(min_size=length, max_size=length).map(bytes.hex)
    if kind.startswith("decimal("):
        precision, scale = map(int, kind[8:-1].split(","))
        return st.integers(0, 10**precision - 1).map(lambda digits: _decimal_text(digits, scale))
    return fitting.get(kind, st.none())


def _decimal_text(digits: int, scale: int) -> str:
    text = str(digits).rjust(scale + 1, "0")
    return f"{text[:-scale]}.{text[-scale:]}" if scale else text


@st.composite
def schema_documents(
    draw: st.DrawFn, version: int = 2, schema_id: int = 0, *, min_columns: int = 0, with_unknown: bool = False
) -> dict[str, Json]:
    """Return the JSON of a schema with fresh ids from 1."""
    ids = itertools.count(1)
    fields = draw(_fields(version, ids, depth=2, min_size=min_columns))
    document: dict[str, Json] = {"type": "struct", "schema-id": schema_id, "fields": fields}
    candidates = st.sampled_from([field["id"] for field in fields if can_identify(field)] or [0])
    identifiers: list[int] = draw(st.lists(candidates, unique=True, max_size=2))
    if identifiers and identifiers != [0]:
        document["identifier-field-ids"] = identifiers
    if with_unknown:
        document |= draw(unknown_fields().filter(lambda extra: "schema" not in extra))
    return document


def can_identify(field: Json) -> bool:
    """Tell whether a top-level field may be an identifier field."""
    return (
        bool(field["required"]) and isinstance(field["type"], str) and field["type"] not in NEVER_IDENTIFIES
    )


@st.composite
def _fields(
    draw: st.DrawFn, version: int, ids: Iterator[int], depth: int, min_size: int = 0
) -> list[dict[str, Json]]:
    names = draw(st.lists(NAMES, unique=True, min_size=min_size, max_size=4))
    return [draw(_field(name, version, ids, depth)) for name in names]


@st.composite
def _field(draw: st.DrawFn, name: str, version: int, ids: Iterator[int], depth: int) -> dict[str, Json]:
    field_id = next(ids)
    kind = draw(_types(version, ids, depth))
    field: dict[str, Json] = {
        "id": field_id,
        "name": name,
        "required": kind != "unknown" and draw(st.booleans()),
        "type": kind,
    }
    if draw(st.booleans()):
        field["doc"] = draw(texts())
    if version >= 3 and isinstance(kind, str) and draw(st.booleans()):
        for default in ("initial-default", "write-default"):
            value = draw(default_values(kind))
            if value is not None:
                field[default] = value
    return field


@st.composite
def _types(draw: st.DrawFn, version: int, ids: Iterator[int], depth: int) -> Json:
    shape = draw(st.sampled_from(["primitive"] * 5 + ["struct", "list", "map"])) if depth else "primitive"
    match shape:
        case "struct":
            return {"type": "struct", "fields": draw(_fields(version, ids, depth - 1))}
        case "list":
            element_id = next(ids)
            element = draw(_types(version, ids, depth - 1))
            required = element != "unknown" and draw(st.booleans())
            return {
                "type": "list",
                "element-id": element_id,
                "element-required": required,
                "element": element,
            }
        case "map":
            key_id, value_id = next(ids), next(ids)
            key = draw(_types(version, ids, depth - 1).filter(lambda kind: kind != "unknown"))
            value = draw(_types(version, ids, depth - 1))
            return {
                "type": "map",
                "key-id": key_id,
                "key": key,
                "value-id": value_id,
                "value-required": value != "unknown" and draw(st.booleans()),
                "value": value,
            }
    return draw(primitives(version))


PROMOTIONS = {"int": ["long"], "float": ["double"]}
V3_PROMOTIONS = {"date": ["timestamp", "timestamp_ns"], "unknown": ["int", "string", "variant"]}


@st.composite
def evolutions(
    draw: st.DrawFn, document: dict[str, Json], version: int, next_id: int, schema_id: int
) -> dict[str, Json]:
    """Return a schema that some allowed changes made of another; ids of new columns start at `next_id`."""
    evolved = copy.deepcopy(document)
    evolved["schema-id"] = schema_id
    identifiers = set(evolved.get("identifier-field-ids") or ())
    ids = itertools.count(next_id)
    for _ in range(draw(st.integers(0, 4))):
        fields = draw(st.sampled_from(list(open_structs(evolved))))
        _evolve(draw, fields, version, ids, identifiers)
    return evolved


def open_structs(value: Json) -> Iterator[list[Json]]:
    """Yield the field lists of every struct that may evolve: those that are no part of a map key."""
    match value:
        case {"type": "struct", "fields": fields}:
            yield fields
            for field in fields:
                yield from open_structs(field["type"])
        case {"type": "list", "element": element}:
            yield from open_structs(element)
        case {"type": "map", "value": inner}:
            yield from open_structs(inner)


def _evolve(
    draw: st.DrawFn, fields: list[Json], version: int, ids: Iterator[int], identifiers: set[int]
) -> None:
    change = draw(st.sampled_from("add drop rename reorder promote relax describe write-default".split()))
    if change == "add":
        field = draw(_field(_free_name(draw, fields), version, ids, 1))
        field["required"] = field["required"] and "initial-default" in field
        fields.insert(draw(st.integers(0, len(fields))), field)
        return
    if not fields:
        return
    field = draw(st.sampled_from(fields))
    match change:
        case "drop" if field["id"] not in identifiers:
            fields.remove(field)
        case "rename":
            field["name"] = _free_name(draw, fields)
        case "reorder":
            fields[:] = draw(st.permutations(fields))
        case "relax" if field["id"] not in identifiers:
            field["required"] = False
        case "describe":
            field["doc"] = draw(texts())
        case "promote" if "initial-default" not in field and "write-default" not in field:
            _promote(draw, field, version)
        case "write-default" if version >= 3 and isinstance(field["type"], str):
            value = draw(default_values(field["type"]))
            if value is not None:
                field["write-default"] = value


def _free_name(draw: st.DrawFn, fields: list[Json]) -> str:
    taken = {field["name"] for field in fields}
    return draw(NAMES.filter(lambda name: name not in taken))


def _promote(draw: st.DrawFn, field: Json, version: int) -> None:
    kind = field["type"]
    if not isinstance(kind, str):
        return
    wider = [*PROMOTIONS.get(kind, ()), *(V3_PROMOTIONS.get(kind, ()) if version >= 3 else ())]
    if kind.startswith("decimal("):
        precision, scale = map(int, kind[8:-1].split(","))
        if precision < 38:
            wider = [f"decimal({draw(st.integers(precision + 1, 38))}, {scale})"]
    if wider:
        field["type"] = draw(st.sampled_from(wider))


def highest_id(document: Json) -> int:
    """Return the highest field id in a schema's JSON, nested ones included."""
    match document:
        case {"type": "struct", "fields": fields}:
            return max((max(int(field["id"]), highest_id(field["type"])) for field in fields), default=0)
        case {"type": "list", "element-id": element_id, "element": element}:
            return max(int(element_id), highest_id(element))
        case {"type": "map", "key-id": key_id, "value-id": value_id, "key": key, "value": value}:
            return max(int(key_id), int(value_id), highest_id(key), highest_id(value))
    return 0
