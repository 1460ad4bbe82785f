"""Random schemas, partition specs and sort orders, as the JSON that clients send; mostly valid, sometimes not."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn as Draw

from tests.conformance.oracle.outcomes import Json

NAMES = ("id", "name", "ts", "day", "amount", "point", "tags", "key", "ID", "größe", "with space", "dot.ted")
PLAIN_TYPES = (
    *"boolean int long float double date time timestamp timestamptz string uuid binary fixed[16] fixed[1]".split(),
    "decimal(9, 2)",
    "decimal(38, 10)",
)
V3_TYPES = (
    "timestamp_ns",
    "timestamptz_ns",
    "unknown",
    "variant",
    "geometry",
    "geometry(srid:3857)",
    "geography",
    "geography(srid:4269, karney)",
)
NOT_IDENTIFYING = ("float", "double", "variant")
PROMOTIONS = {"int": "long", "float": "double", "decimal(9, 2)": "decimal(18, 2)", "date": "timestamp"}
TRANSFORMS = ("identity", "bucket[16]", "truncate[4]", "year", "month", "day", "hour", "void")
FITTING = {
    "date": ("identity", "bucket[8]", "year", "month", "day", "void"),
    "timestamp": ("identity", "bucket[8]", "year", "month", "day", "hour"),
    "timestamptz": ("identity", "year", "month", "day", "hour"),
    "timestamp_ns": ("identity", "month", "hour"),
    "timestamptz_ns": ("bucket[3]", "day"),
    "string": ("identity", "bucket[16]", "truncate[4]"),
    "int": ("identity", "bucket[16]", "truncate[10]"),
    "long": ("identity", "bucket[1]", "truncate[10]", "void"),
    "binary": ("identity", "bucket[16]", "truncate[2]"),
    "boolean": ("identity",),
    "float": ("identity",),
    "double": ("identity",),
}
DEFAULTS = {"int": 7, "long": 2**40, "string": "none", "boolean": True, "date": "2024-02-29"}


def rarely(draw: Draw, one_in: int = 12) -> bool:
    """Draw True once in a while; shrinking makes it False."""
    return bool(draw(st.integers(0, one_in - 1)) == one_in - 1)


def _type(draw: Draw, ids: Iterator[int], depth: int, version: int, *, sloppy: bool) -> Any:
    kind = draw(st.integers(0, 9 if depth else 6))
    if kind < 6:
        return draw(st.sampled_from(PLAIN_TYPES))
    if kind == 6:
        return draw(st.sampled_from(V3_TYPES if version >= 3 or (sloppy and rarely(draw)) else PLAIN_TYPES))
    if kind == 7:
        element_id = next(ids)
        element = _type(draw, ids, depth - 1, version, sloppy=sloppy)
        required = draw(st.booleans()) and (element != "unknown" or sloppy)
        return {"type": "list", "element-id": element_id, "element": element, "element-required": required}
    if kind == 8:
        key_id, value_id = next(ids), next(ids)
        key = draw(st.sampled_from(("string", "int")))
        value = _type(draw, ids, depth - 1, version, sloppy=sloppy)
        required = draw(st.booleans()) and (value != "unknown" or sloppy)
        pair = {"key-id": key_id, "key": key, "value-id": value_id, "value": value}
        return {"type": "map", **pair, "value-required": required}
    count = draw(st.integers(1, 2))
    names = draw(st.lists(st.sampled_from(("x", "y", "z")), min_size=count, max_size=count, unique=True))
    return {
        "type": "struct",
        "fields": [_field(draw, ids, name, depth - 1, version, sloppy=sloppy) for name in names],
    }


def _field(draw: Draw, ids: Iterator[int], name: str, depth: int, version: int, *, sloppy: bool) -> Json:
    field_id = next(ids)
    field: Json = {"id": field_id, "name": name, "required": draw(st.booleans())}
    field["type"] = _type(draw, ids, depth, version, sloppy=sloppy)
    if field["type"] == "unknown" and not (sloppy and rarely(draw)):
        field["required"] = False
    if rarely(draw, 6):
        field["doc"] = draw(st.sampled_from(("what it is", "", "ü")))
    default = DEFAULTS.get(field["type"]) if isinstance(field["type"], str) else None
    if default is not None and rarely(draw, 6) and (version >= 3 or (sloppy and rarely(draw))):
        field["initial-default"] = default
        field["write-default"] = default
    return field


@st.composite
def schemas(draw: Draw, version: int = 2, first_id: int = 1, *, sloppy: bool = True) -> Json:
    """Return a new schema whose field ids start anywhere and mostly follow one another."""
    ids = itertools.count(first_id)
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    fields = [_field(draw, ids, name, 2, version, sloppy=sloppy) for name in names]
    schema: Json = {"type": "struct", "schema-id": 0, "fields": fields}
    _choose_identifiers(draw, schema, sloppy=sloppy)
    return schema


def _choose_identifiers(draw: Draw, schema: Json, *, sloppy: bool) -> None:
    schema.pop("identifier-field-ids", None)
    if not rarely(draw, 4):
        return
    fitting = [
        field["id"]
        for field in schema["fields"]
        if field["required"] and isinstance(field["type"], str) and field["type"] not in NOT_IDENTIFYING
    ]
    if sloppy and rarely(draw):
        fitting = [*all_ids(schema), 4_000]
    if fitting:
        schema["identifier-field-ids"] = draw(st.lists(st.sampled_from(fitting), max_size=2, unique=True))


@st.composite
def evolved(draw: Draw, schema: Json, last_column_id: int, version: int, *, sloppy: bool = True) -> Json:
    """Return the schema changed as writers change it, or only almost so."""
    changed = copy.deepcopy(schema)
    fields: list[Json] = changed["fields"]
    for _ in range(draw(st.integers(1, 2))):
        ids = itertools.count(max(last_column_id, *all_ids(changed), 0) + 1)
        position = draw(st.integers(0, len(fields) - 1)) if fields else 0
        match draw(
            st.sampled_from(("add", "add", "drop", "rename", "promote", "doc", "required", "move", "retype"))
        ):
            case "add":
                free = [name for name in NAMES if name not in {field["name"] for field in fields}]
                name = draw(st.sampled_from(NAMES if sloppy and rarely(draw, 20) else free))
                fields.append(_field(draw, ids, name, 1, version, sloppy=sloppy))
            case "drop" if len(fields) > 1:
                fields.pop(position)
            case "rename" if fields:
                fields[position]["name"] += "_2"
            case "promote" if fields:
                _promote(fields[position])
            case "doc" if fields:
                fields[position]["doc"] = draw(st.sampled_from(("new words", "")))
            case "required" if fields and fields[position]["type"] != "unknown":
                fields[position]["required"] = not fields[position]["required"]
            case "move":
                fields.reverse()
            case "retype" if fields:
                # Replacing a table reuses ids by name, whatever the type was.
                fields[position] = {
                    "id": fields[position]["id"],
                    "name": fields[position]["name"],
                    "required": False,
                    "type": _type(draw, ids, 1, version, sloppy=sloppy),
                }
    if sloppy and rarely(draw, 20) and fields:
        fields.append({**fields[0], "name": "twin"})
    if changed["fields"] != schema["fields"] or rarely(draw, 3):
        _choose_identifiers(draw, changed, sloppy=sloppy)
    return changed


def _promote(field: Json) -> None:
    promoted = PROMOTIONS.get(field["type"]) if isinstance(field["type"], str) else None
    if promoted is not None:
        field["type"] = promoted
        field.pop("initial-default", None)
        field.pop("write-default", None)


def all_ids(schema: Json) -> list[int]:
    """Return the ids of all fields, nested ones too."""
    return [field_id for field_id, _name, _type, _plain in walk(schema)]


def walk(schema: Json) -> Iterator[tuple[int, str, Any, bool]]:
    """Yield id, dotted name, type and whether only structs stand above, for every field."""

    def below(kind: Any, prefix: str, plain: bool) -> Iterator[tuple[int, str, Any, bool]]:
        if not isinstance(kind, dict):
            return
        match kind["type"]:
            case "struct":
                for field in kind["fields"]:
                    yield field["id"], prefix + field["name"], field["type"], plain
                    yield from below(field["type"], f"{prefix}{field['name']}.", plain)
            case "list":
                yield kind["element-id"], f"{prefix}element", kind["element"], False
                yield from below(kind["element"], f"{prefix}element.", False)
            case "map":
                yield kind["key-id"], f"{prefix}key", kind["key"], False
                yield kind["value-id"], f"{prefix}value", kind["value"], False
                yield from below(kind["value"], f"{prefix}value.", False)

    return below({"type": "struct", "fields": schema["fields"]}, "", True)


@st.composite
def sourced_fields(draw: Draw, schema: Json, *, sloppy: bool) -> list[tuple[int, str, str]]:
    """Return source id, source name and a transform that fits, a few times; once in a while they do not fit."""
    columns = [
        (field_id, name, kind)
        for field_id, name, kind, plain in walk(schema)
        if plain and isinstance(kind, str) and kind in FITTING
    ]
    if sloppy and rarely(draw, 20):
        columns = [(field_id, name, kind) for field_id, name, kind, _plain in walk(schema)]
        columns.append((999, "gone", "int"))
    if not columns:
        return []
    chosen = draw(st.lists(st.sampled_from(columns), max_size=2, unique_by=lambda column: column[0]))
    return [
        (
            field_id,
            name,
            draw(
                st.sampled_from(
                    TRANSFORMS if sloppy and rarely(draw, 15) else FITTING.get(str(kind), ("identity",))
                )
            ),
        )
        for field_id, name, kind in chosen
    ]


@st.composite
def specs(
    draw: Draw,
    schema: Json,
    last_partition_id: int = 999,
    *,
    with_ids: bool | None = None,
    sloppy: bool = True,
) -> Json:
    """Return a partition spec without its own id; field ids continue the table's, or are left out."""
    numbered = draw(st.booleans()) if with_ids is None else with_ids
    ids = itertools.count(last_partition_id + 1 if not (sloppy and rarely(draw, 6)) else 1000)
    fields = []
    for source_id, source_name, transform in draw(sourced_fields(schema, sloppy=sloppy)):
        name = source_name if transform == "identity" else f"{source_name}_{transform.split('[')[0]}"
        if sloppy and rarely(draw, 25):
            name = draw(st.sampled_from(("id", "name", "renamed")))
        field: Json = {"name": name, "transform": transform, "source-id": source_id}
        if numbered:
            field["field-id"] = next(ids)
        fields.append(field)
    return {"fields": fields}


@st.composite
def orders(draw: Draw, schema: Json, *, sloppy: bool = True) -> Json:
    """Return a sort order with any id; unsorted when it has no fields."""
    fields = [
        {
            "transform": transform,
            "source-id": source_id,
            "direction": draw(st.sampled_from(("asc", "desc"))),
            "null-order": draw(st.sampled_from(("nulls-first", "nulls-last"))),
        }
        for source_id, _name, transform in draw(sourced_fields(schema, sloppy=sloppy))
    ]
    order_id = draw(st.integers(0, 3)) if sloppy and rarely(draw) else min(len(fields), 1)
    return {"order-id": order_id, "fields": fields}
