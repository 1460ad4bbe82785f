"""Footers: what a Parquet file says about its columns, as values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from app.engine.model.data_types.types import PrimitiveType


class Shape(Enum):
    """How a column of a file is made."""

    LEAF = "a single value"
    STRUCT = "a struct"
    LIST = "a list"
    MAP = "a map"


@dataclass(frozen=True, slots=True)
class LeafFacts:
    """What a footer says about the values of one leaf, over all row groups.

    Bounds are values as in `app.engine.model.data_types.values`; None if there are none, or none to rely on.
    """

    size_bytes: int
    value_count: int
    null_count: int | None
    lower: Any
    upper: Any


@dataclass(frozen=True, slots=True)
class FileColumn:
    """A column of a file, with those inside it: element, key and value, or fields."""

    name: str
    shape: Shape
    field_id: int | None
    is_optional: bool
    children: tuple[FileColumn, ...] = ()
    type: PrimitiveType | None = None
    """What a leaf's values are; None if no type of a table is like it."""
    type_text: str = ""
    """What the file calls the type."""
    facts: LeafFacts | None = None
    """Of a leaf."""
    is_annotated: bool = False
    """Of an `int` whose width is said once more: Iceberg's own readers cannot read such a one as `long`."""

    def leaves(self) -> Iterator[FileColumn]:
        """Yield the column itself if it is a leaf, or the leaves inside it."""
        if self.shape is Shape.LEAF:
            yield self
        for child in self.children:
            yield from child.leaves()


@dataclass(frozen=True, slots=True)
class Footer:
    """What a Parquet file says about itself. Sizes and offsets are in bytes."""

    file_size_in_bytes: int
    record_count: int
    columns: tuple[FileColumn, ...]
    split_offsets: tuple[int, ...]

    @property
    def has_field_ids(self) -> bool:
        """Whether any column has a field id: then ids say which column is which."""
        return any(map(_has_id, self.columns))


def _has_id(column: FileColumn) -> bool:
    return column.field_id is not None or any(map(_has_id, column.children))
