"""The schema of a table that is made of Parquet files which belong to none yet."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from app.engine.appends.columns import is_readable_as
from app.engine.appends.footers import FileColumn, Footer, Shape
from app.engine.model.data_types.types import PrimitiveType
from app.engine.model.schema import Schema
from app.errors import InvalidDataFile


@dataclass(slots=True)
class _Column:
    """A column as far as the files seen so far have it."""

    shape: Shape
    type: PrimitiveType | None
    is_annotated: bool
    children: dict[str, _Column] = field(default_factory=dict)


class NewSchema:
    """Takes in footers one by one, and becomes a schema that all their files fit.

    Every column is optional, and files may leave some out. A column has the widest of its types: `int` and `long`,
    `float` and `double`, and decimals of one scale go together.
    """

    def __init__(self) -> None:
        self._columns: dict[str, _Column] = {}

    @property
    def names(self) -> frozenset[str]:
        """The names of the columns so far."""
        return frozenset(self._columns)

    def add(self, path: str, footer: Footer) -> None:
        """Take in what a file says about its columns.

        Raises:
            InvalidDataFile: its columns have field ids, are of a type that no table has, or contradict other files.
        """
        if footer.has_field_ids:
            raise InvalidDataFile(
                path,
                "its columns have field ids, so it was written for a table: import that one, or append the file to a "
                "table with these ids",
            )
        _merge(path, "", self._columns, footer.columns)

    def to_schema(self, further: Mapping[str, PrimitiveType]) -> Schema:
        """Return the schema, with further columns that no file has."""
        ids = itertools.count(1)
        fields = [_field(name, _type(column, ids), ids) for name, column in self._columns.items()]
        fields += [
            _field(name, str(kind), ids) for name, kind in further.items() if name not in self._columns
        ]
        return Schema.from_object({"type": "struct", "schema-id": 0, "fields": fields})


def _merge(path: str, prefix: str, known: dict[str, _Column], columns: Sequence[FileColumn]) -> None:
    seen = set()
    spellings = {other.lower(): other for other in known}
    for column in columns:
        name = f"{prefix}{column.name}"
        if column.name in seen:
            raise InvalidDataFile(path, f"it has two columns {name}")
        seen.add(column.name)
        if column.shape is Shape.LEAF and column.type is None:
            raise InvalidDataFile(
                path, f"its column {name} is of type {column.type_text}, which no table has"
            )
        if not column.name:
            raise InvalidDataFile(path, "it has a column without a name")
        earlier = known.get(column.name)
        if earlier is None:
            spelled = spellings.setdefault(column.name.lower(), column.name)
            if spelled != column.name:
                raise InvalidDataFile(
                    path,
                    f"its column {name} is called {prefix}{spelled}, too: to most engines that is one name",
                )
            earlier = known[column.name] = _Column(column.shape, column.type, column.is_annotated)
        elif earlier.shape is not column.shape:
            raise InvalidDataFile(
                path, f"its column {name} is {column.shape.value}, in other files it is {earlier.shape.value}"
            )
        else:
            _widen(path, name, earlier, column)
        # Writers call the parts of lists and maps what they like: they are known by their place.
        parts = column.children
        if column.shape in {Shape.LIST, Shape.MAP}:
            names = ("element",) if column.shape is Shape.LIST else ("key", "value")
            parts = tuple(replace(other, name=part) for part, other in zip(names, parts, strict=True))
        _merge(path, f"{name}.", earlier.children, parts)


def _widen(path: str, name: str, earlier: _Column, column: FileColumn) -> None:
    first, second = earlier.type, column.type
    if first is None or second is None:
        return
    if is_readable_as(first, second, is_annotated=earlier.is_annotated):
        earlier.type = second
    elif not is_readable_as(second, first, is_annotated=column.is_annotated):
        raise InvalidDataFile(
            path, f"its column {name} is of type {second}, in other files it is of type {first}"
        )
    earlier.is_annotated = earlier.is_annotated or column.is_annotated


def _field(name: str, kind: Any, ids: Iterator[int]) -> dict[str, Any]:
    return {"id": next(ids), "name": name, "required": False, "type": kind}


def _type(column: _Column, ids: Iterator[int]) -> Any:
    parts = {name: _type(child, ids) for name, child in column.children.items()}
    match column.shape:
        case Shape.LEAF:
            return str(column.type)
        case Shape.STRUCT:
            return {"type": "struct", "fields": [_field(name, kind, ids) for name, kind in parts.items()]}
        case Shape.LIST:
            element = {"element-id": next(ids), "element-required": False, "element": parts["element"]}
            return {"type": "list", **element}
    keys = {"key-id": next(ids), "key": parts["key"]}
    return {"type": "map", **keys, "value-id": next(ids), "value-required": False, "value": parts["value"]}
