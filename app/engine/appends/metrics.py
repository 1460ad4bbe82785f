"""Metrics of data files: which are kept of each column, and how bounds are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from app.engine.appends.columns import MappedColumns
from app.engine.model.data_types.types import (
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
    child_fields,
)
from app.engine.model.data_types.values import FLOATING_KINDS, to_bytes
from app.engine.model.ids import FieldId
from app.engine.model.schema import Schema
from app.engine.model.settings.properties import COLUMN_METRICS_PREFIX
from app.engine.model.table_metadata import TableMetadata
from app.engine.properties.known import Origin
from app.engine.properties.lookup import text_in_force
from app.engine.properties.metrics_modes import (
    COUNTS,
    DEFAULT_MODE,
    FULL,
    METRICS_DEFAULT,
    NONE,
    metrics_mode,
)

_MOST_INFERRED: Final = "write.metadata.metrics.max-inferred-column-defaults"
_UNORDERED: Final = frozenset({"bucket", "void"})
_CUT: Final = frozenset({"string", "binary"})
_SURROGATES: Final = range(0xD800, 0xE000)


def file_metrics(columns: MappedColumns, metadata: TableMetadata) -> dict[str, Any]:
    """Return metrics as the table's properties want them, by the names of `DataFile`."""
    modes = MetricsModes(metadata)
    sizes: dict[FieldId, int] = {}
    values: dict[FieldId, int] = {}
    nulls: dict[FieldId, int] = {}
    lower: dict[FieldId, bytes] = {}
    upper: dict[FieldId, bytes] = {}
    for field_id, leaf in sorted(columns.leaves.items()):
        facts, mode = leaf.facts, modes.of(field_id)
        sizes[field_id] = facts.size_bytes
        if mode == NONE:
            continue
        values[field_id] = facts.value_count
        if facts.null_count is not None:
            nulls[field_id] = facts.null_count
        if mode == COUNTS or leaf.is_repeated or facts.lower is None or facts.upper is None:
            continue
        if not bounds_hold(leaf.type, facts.null_count, None):  # footers do not count NaN
            continue
        length = mode if leaf.type.kind in _CUT else FULL
        lower[field_id] = to_bytes(leaf.type, cut_down(facts.lower, length))
        highest = cut_up(facts.upper, length)
        if highest is not None:
            upper[field_id] = to_bytes(leaf.type, highest)
    return {
        "column_sizes": sizes,
        "value_counts": values,
        "null_value_counts": nulls,
        "lower_bounds": lower,
        "upper_bounds": upper,
    }


def bounds_hold(kind: PrimitiveType, null_count: int | None, nan_count: int | None) -> bool:
    """Return whether readers may have a column's bounds.

    With bounds and without those counts, they take all values for between the bounds, and a DELETE whose filter holds
    for both takes the whole file, with the rows that have null or NaN.
    """
    return null_count is not None and (kind.kind not in FLOATING_KINDS or nan_count is not None)


class MetricsModes:
    """The mode of each column, from the properties of a table.

    As in the reference: a mode that cannot be read counts as not set, columns that the table is sorted by have bounds
    unless they are named themselves, and a table with many columns has metrics of the first ones only.
    """

    def __init__(self, metadata: TableMetadata) -> None:
        properties, schema = metadata.properties, metadata.current_schema
        self._default = metrics_mode(properties.get(METRICS_DEFAULT))
        self._modes: dict[FieldId, int] = {}
        if METRICS_DEFAULT not in properties:
            most = _most_inferred(properties)
            if len(schema.columns) > most:
                self._default = NONE
                self._modes = dict.fromkeys(_first_columns(schema, most), DEFAULT_MODE)
        for field in metadata.default_sort_order.fields:
            is_ordered = field.transform.lower().partition("[")[0] not in _UNORDERED
            if is_ordered and self.of(field.source_id) < FULL:
                self._modes[field.source_id] = DEFAULT_MODE
        for key, value in properties.items():
            field_id = (
                schema.ids_by_name.get(key.removeprefix(COLUMN_METRICS_PREFIX))
                if key.startswith(COLUMN_METRICS_PREFIX)
                else None
            )
            if field_id is not None:
                self._modes[field_id] = metrics_mode(value, self._default)

    def of(self, field_id: FieldId) -> int:
        """Return a column's mode."""
        return self._modes.get(field_id, self._default)


def _most_inferred(properties: Mapping[str, str]) -> int:
    return int(text_in_force({Origin.TABLE: properties}, _MOST_INFERRED) or 0)


def _first_columns(schema: Schema, most: int) -> list[FieldId]:
    """Return the first leaves: of each struct first its own, then those further inside."""

    def leaves(fields: tuple[NestedField, ...]) -> Iterator[FieldId]:
        for field in fields:
            if isinstance(field.type, PrimitiveType):
                yield field.id
        for field in fields:
            if isinstance(field.type, StructType | ListType | MapType):
                yield from leaves(child_fields(field.type))

    return [field_id for _, field_id in zip(range(most), leaves(schema.fields), strict=False)]


def cut_down(value: Any, length: int) -> Any:
    """Return a value at or below another: text and binary are cut to a length that is not 0."""
    if length > 0 and isinstance(value, str | bytes):
        return value[:length]
    return value


def cut_up(value: Any, length: int) -> Any:
    """Return a value at or above another, cut in the same way; None if there is none."""
    if length <= 0 or not isinstance(value, str | bytes) or len(value) <= length:
        return value
    return _next_text(value[:length]) if isinstance(value, str) else _next_bytes(value[:length])


def _next_text(text: str) -> str | None:
    for end in range(len(text), 0, -1):
        following = ord(text[end - 1]) + 1
        if following in _SURROGATES:
            following = _SURROGATES.stop
        if following <= 0x10FFFF:
            return text[: end - 1] + chr(following)
    return None


def _next_bytes(content: bytes) -> bytes | None:
    for end in range(len(content), 0, -1):
        if content[end - 1] < 0xFF:
            return content[: end - 1] + bytes([content[end - 1] + 1])
    return None
