"""Data types: primitives, structs, lists, maps, and their JSON."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal, assert_never

from pydantic import Field, PlainSerializer, PlainValidator

from app.engine.model.document import FIRST_ERROR, Bool, Document, JsonValue
from app.engine.model.ids import FieldId

_INT_ID = Annotated[FieldId, Field(strict=True, ge=0, le=2**31 - 1)]
_DECIMAL = re.compile(r"decimal\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\)", re.ASCII)
_FIXED = re.compile(r"fixed\[\s*(\d{1,10})\s*\]", re.ASCII)
# Spaces around a CRS belong to its group: beside it, they can be shared out in so many ways that no match takes hours.
_GEOMETRY = re.compile(r"geometry(?:\(([^,)]*)\))?")
_GEOGRAPHY = re.compile(r"geography(?:\(([^,)]*)(?:,\s*([a-zA-Z]+)\s*)?\))?")
_EDGES = frozenset({"spherical", "vincenty", "thomas", "andoyer", "karney"})
_PLAIN_NAMES = frozenset(
    "boolean int long float double date time timestamp timestamptz timestamp_ns timestamptz_ns "
    "string uuid binary unknown variant".split()
)
_FIRST_FORMAT_VERSIONS = dict.fromkeys(
    ("timestamp_ns", "timestamptz_ns", "unknown", "variant", "geometry", "geography"), 3
)
"""The first format version that has a type, if it is not version 1."""


@dataclass(frozen=True, slots=True)
class PrimitiveType:
    """A type without fields; `text` is its canonical spelling, `kind` that without parameters.

    Spec: #primitive-types
    """

    kind: str
    text: str
    precision: int | None = None
    scale: int | None = None
    length: int | None = None

    def __str__(self) -> str:
        return self.text

    @property
    def min_format_version(self) -> int:
        return _FIRST_FORMAT_VERSIONS.get(self.kind, 1)


class NestedField(Document):
    """A named, numbered field of a struct. Defaults are single-value JSON.

    Spec: #nested-types
    """

    id: _INT_ID
    name: Annotated[str, Field(min_length=1)]
    required: Bool
    type: FieldType
    doc: str | None = None
    initial_default: JsonValue = None
    write_default: JsonValue = None


class StructType(Document):
    """An ordered list of fields."""

    type: Literal["struct"]
    fields: Annotated[tuple[NestedField, ...], FIRST_ERROR]


class ListType(Document):
    """A list of one element type."""

    type: Literal["list"]
    element_id: _INT_ID
    element_required: Bool
    element: FieldType


class MapType(Document):
    """A map; keys are never null."""

    type: Literal["map"]
    key_id: _INT_ID
    key: FieldType
    value_id: _INT_ID
    value_required: Bool
    value: FieldType


Type = PrimitiveType | StructType | ListType | MapType


def is_primitive(kind: Type) -> bool:
    """Return whether values of a type have no parts; those of a variant have."""
    return isinstance(kind, PrimitiveType) and kind.kind != "variant"


def parse_primitive(text: str) -> PrimitiveType:
    """Return the primitive type that a JSON string names.

    Raises:
        ValueError: no such type, or its parameters are out of range.
    """
    name = text.strip().lower()
    if name in _PLAIN_NAMES:
        return PrimitiveType(name, name)
    if match := _DECIMAL.fullmatch(name):
        precision, scale = int(match[1]), int(match[2])
        if not 1 <= precision <= 38 or scale > precision:
            raise ValueError(
                f"Invalid type {text!r}: decimal needs a precision of 1 to 38 and a scale up to it"
            )
        return PrimitiveType("decimal", f"decimal({precision}, {scale})", precision=precision, scale=scale)
    if match := _FIXED.fullmatch(name):
        length = int(match[1])
        if length > 2**31 - 1:
            raise ValueError(f"Invalid type {text!r}: the length is too large")
        return PrimitiveType("fixed", f"fixed[{length}]", length=length)
    # Parameters of geo types are case-sensitive, as a CRS may be the name of a property: they stay as sent.
    for kind, pattern in (("geometry", _GEOMETRY), ("geography", _GEOGRAPHY)):
        if name.startswith(kind) and pattern.fullmatch(kind + text.strip()[len(kind) :]):
            return PrimitiveType(kind, kind + text.strip()[len(kind) :])
    raise ValueError(f"Cannot parse type string to primitive: {text[:100]!r}")


def flaw_of_parameters(kind: PrimitiveType) -> str | None:
    """Return why clients cannot read the parameters of a geo type; None if they can.

    Spec: #crs, #edge-interpolation-algorithm
    """
    pattern = {"geometry": _GEOMETRY, "geography": _GEOGRAPHY}.get(kind.kind)
    match = pattern.fullmatch(kind.text) if pattern is not None else None
    if match is None or match[1] is None:
        return None
    crs = match[1].strip()
    if not crs:
        return "the CRS is empty"
    if crs.startswith("{"):
        return "the CRS must name a definition, not hold one"
    edges = match[2] if kind.kind == "geography" else None
    if edges is not None and edges.lower() not in _EDGES:
        return f"its edges are none of {', '.join(sorted(_EDGES))}"
    return None


def parse_type(value: object) -> Type:
    """Return the type that a JSON value describes.

    Raises:
        ValueError: it is not a type (`pydantic.ValidationError` is one, with the path inside).
    """
    if isinstance(value, (PrimitiveType, StructType, ListType, MapType)):
        return value
    if isinstance(value, str):
        return parse_primitive(value)
    if isinstance(value, dict):
        match value.get("type"):
            case "struct":
                return StructType.from_object(value)
            case "list":
                return ListType.from_object(value)
            case "map":
                return MapType.from_object(value)
            case other:
                raise ValueError(f"Cannot parse type: {str(other)[:100]!r} is none of struct, list, map")
    raise ValueError("Cannot parse type: expected a string or an object")


def _type_to_object(value: Type) -> Any:
    return value.text if isinstance(value, PrimitiveType) else value.to_object()


FieldType = Annotated[Type, PlainValidator(parse_type), PlainSerializer(_type_to_object)]

for _model in (NestedField, StructType, ListType, MapType):
    _model.model_rebuild()


def child_fields(field_type: Type) -> tuple[NestedField, ...]:
    """Return the fields directly below a type; list elements and map entries count as fields."""
    match field_type:
        case StructType():
            return field_type.fields
        case ListType():
            return (
                NestedField(
                    id=field_type.element_id,
                    name="element",
                    required=field_type.element_required,
                    type=field_type.element,
                ),
            )
        case MapType():
            return (
                NestedField(id=field_type.key_id, name="key", required=True, type=field_type.key),
                NestedField(
                    id=field_type.value_id,
                    name="value",
                    required=field_type.value_required,
                    type=field_type.value,
                ),
            )
        case PrimitiveType():
            return ()
        case never:
            assert_never(never)
