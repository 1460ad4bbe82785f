"""Name mappings: which names the columns have in files without field ids."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from app.engine.model.data_types.types import NestedField, child_fields
from app.engine.model.schema import Schema
from app.engine.model.table_metadata import TableMetadata

NAME_MAPPING: Final = "schema.name-mapping.default"


@dataclass(frozen=True, slots=True)
class MappedName:
    """What a name stands for, and the names inside it.

    Spec: #name-mapping-serialization
    """

    field_id: int | None
    inner: Mapping[str, MappedName]


def name_mapping_of(metadata: TableMetadata) -> Mapping[str, MappedName]:
    """Return the table's name mapping; if it has none, the one of its column names.

    Raises:
        ValueError: the property is not a name mapping.
    """
    text = metadata.properties.get(NAME_MAPPING)
    try:
        return _read(json.loads(new_name_mapping(metadata.current_schema) if text is None else text))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def new_name_mapping(schema: Schema) -> str:
    """Return the mapping of a schema's own names, as the property has it."""
    return json.dumps([_field(field) for field in schema.fields], separators=(",", ":"))


def reads_all_of(text: str, other: str) -> bool:
    """Return whether all that a name mapping reads is read alike by another one, the first.

    Those that are none read nothing alike.
    """
    try:
        return _has_all(_read(json.loads(text)), _read(json.loads(other)))
    except (ValueError, RecursionError):
        return False


def _has_all(names: Mapping[str, MappedName], others: Mapping[str, MappedName]) -> bool:
    return all(
        name in names
        and names[name].field_id == mapped.field_id
        and _has_all(names[name].inner, mapped.inner)
        for name, mapped in others.items()
    )


def _field(field: NestedField) -> dict[str, Any]:
    found: dict[str, Any] = {"field-id": field.id, "names": [field.name]}
    inner = [_field(child) for child in child_fields(field.type)]
    return {**found, "fields": inner} if inner else found


def _read(fields: Any) -> dict[str, MappedName]:
    found: dict[str, MappedName] = {}
    try:
        for field in fields:
            field_id, names = field.get("field-id"), field["names"]
            if not (field_id is None or type(field_id) is int) or isinstance(names, str):
                raise TypeError("a field id is a whole number, and names are a list")
            mapped = MappedName(field_id, _read(field.get("fields") or ()))
            for name in names:
                # Iceberg's own readers fail then, and others take one of the columns.
                if found.setdefault(name, mapped) is not mapped:
                    raise ValueError(f"{name[:100]!r} is the name of two columns")
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError("it is not a list of fields with names") from error
    return found
