"""Layouts of lists and maps: levels and names by which readers find values."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from app.formats.parquet.not_parquet import NotParquetError


def check_layouts(schema: Any, paths: Sequence[str], *, has_field_ids: bool) -> None:
    """Check that all readers find the values inside of lists and maps.

    Arrow reads older layouts, too. With those, Iceberg's own readers fail, and DuckDB takes values for null.

    Args:
        schema: the columns, as Arrow sees them.
        paths: where the file has its leaves, in their order.
        has_field_ids: whether columns are found by id: then the group between a list or map and its parts may have any
            name.

    Raises:
        NotParquetError: a list or map is laid out otherwise.

    Spec: #parquet
    """
    walk = _Walk(paths, has_field_ids=has_field_ids)
    for field in schema:
        walk.check(field, field.name)


class _Walk:
    def __init__(self, paths: Sequence[str], *, has_field_ids: bool) -> None:
        self._paths = deque(paths)
        self._has_field_ids = has_field_ids

    def check(self, field: Any, place: str) -> None:
        """Check a column of which the path should be this one."""
        import pyarrow as pa

        kind = field.type
        if pa.types.is_struct(kind):
            for number in range(kind.num_fields):
                child = kind.field(number)
                self.check(child, f"{place}.{child.name}")
        elif pa.types.is_map(kind):
            group = self._group(place, "key_value")
            self.check(kind.key_field, f"{group}.key")
            self.check(kind.item_field, f"{group}.value")
        elif pa.types.is_nested(kind):
            self.check(kind.value_field, f"{self._group(place, 'list')}.{kind.value_field.name}")
        elif self._paths.popleft() != place:
            raise NotParquetError(
                f"it should have a column {place}: its lists and maps are laid out in an older way, in which some "
                "readers find no values"
            )

    def _group(self, place: str, name: str) -> str:
        """Return the path of the repeated group of a list or map."""
        # Where no leaf is left, it has an empty struct inside.
        if self._has_field_ids and self._paths and self._paths[0].startswith(f"{place}."):
            name = self._paths[0].removeprefix(f"{place}.").partition(".")[0]
        return f"{place}.{name}"
