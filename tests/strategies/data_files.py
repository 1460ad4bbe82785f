"""Strategies for data files that tell the truth about their rows, if not all of it, and for manifests of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st

from app.engine.model.data_types.transforms import parse_transform
from app.engine.model.data_types.types import PrimitiveType, StructType
from app.engine.model.data_types.values import FLOATING_KINDS, from_bytes, is_nan, order_key, to_bytes
from app.engine.model.files.manifests import DataFile, FileContent, ManifestFile, PartitionSummary
from app.engine.model.ids import FieldId, Location, SpecId
from app.engine.model.partition_spec import PartitionSpec
from app.engine.model.schema import Column, Schema
from tests.builders.filters import transform_value

Row = tuple[Any, ...]
N = TypeVar("N", int, bytes)

_INT, _FLOAT, _DATE = (PrimitiveType(kind, kind) for kind in ("int", "float", "date"))


def value_in(row: Row, column: Column, schema: Schema) -> Any:
    """Return a column's value in a row."""
    place: Any
    if column.parent is None:
        siblings, place = schema.fields, row
    else:
        assert isinstance(column.parent.field.type, StructType)
        siblings, place = column.parent.field.type.fields, value_in(row, column.parent, schema)
    return None if place is None else place[[field.id for field in siblings].index(column.field.id)]


def partition_of(row: Row, spec: PartitionSpec, schema: Schema, *, early: bool = False) -> tuple[Any, ...]:
    """Return the partition tuple that a row belongs to; early writers rounded times before 1970 up."""
    found = []
    for field in spec.fields:
        column = schema.columns[field.source_id]
        value = value_in(row, column, schema)
        transform, kind = parse_transform(field.transform), column.field.type
        result = transform_value(transform, kind, value)
        if early and transform.name in ("year", "month", "day", "hour") and value is not None and result < 0:
            # Unless the value is the first of its year, month, day or hour.
            is_first = transform_value(transform, kind, value - 1) != result
            result += 0 if is_first else 1
        found.append(result)
    return tuple(found)


def by_partition(
    rows: Iterable[Row], spec: PartitionSpec, schema: Schema, *, early: bool = False
) -> list[tuple[tuple[Any, ...], list[Row]]]:
    """Return the partition tuples of some rows, each with its rows; -0.0 and 0.0 are two."""
    groups: dict[Any, tuple[tuple[Any, ...], list[Row]]] = {}
    for row in rows:
        partition = partition_of(row, spec, schema, early=early)
        key = tuple(order_key(value) for value in partition)
        groups.setdefault(key, (partition, []))[1].append(row)
    return list(groups.values())


@st.composite
def data_files(
    draw: st.DrawFn,
    rows: Sequence[Row],
    schema: Schema,
    partition: tuple[Any, ...] = (),
    *,
    with_gaps: bool = True,
    early: bool = True,
) -> DataFile:
    """Return a file of some rows. Its metrics are true; bounds may be truncated, anything may be missing.

    With what early and careless writers did: bounds in other orders, of narrower types or NaN, nulls not counted.
    """
    value_counts: dict[int, int] = {}
    null_counts: dict[int, int] = {}
    nan_counts: dict[int, int] = {}
    lower: dict[int, bytes] = {}
    upper: dict[int, bytes] = {}
    for field_id, column in schema.columns.items():
        kind = column.field.type
        if not isinstance(kind, PrimitiveType):
            continue
        counted = list(rows)
        if column.parent is not None and early and draw(st.booleans()):
            # Some writers count only where there is a struct.
            counted = [row for row in rows if value_in(row, column.parent, schema) is not None]
        value_counts[field_id] = len(counted)
        found = [value_in(row, column, schema) for row in counted]
        null_counts[field_id] = found.count(None)
        there = [value for value in found if value is not None and not is_nan(value)]
        if kind.kind in FLOATING_KINDS:
            nan_counts[field_id] = sum(map(is_nan, found))
            if early and nan_counts[field_id] and draw(st.booleans()):
                lower[field_id] = upper[field_id] = to_bytes(kind, math.nan)
                continue
        if there:
            # A bound to keep 1, 2 or 16 characters, or all of them.
            length = draw(st.sampled_from([1, 2, 16, 1000]))
            key = draw(orders(kind)) if early else order_key
            in_bytes = draw(st.sampled_from([_in_bytes, _before_widening])) if early else _in_bytes
            lower[field_id] = in_bytes(kind, _cut(min(there, key=key), length))
            above = _cut_above(max(there, key=key), length)
            if above is not None:
                upper[field_id] = in_bytes(kind, above)

    def told(known: dict[int, N]) -> dict[int, N] | None:
        return _with_gaps(draw, known) if with_gaps else known

    return DataFile(
        content=FileContent.DATA,
        file_path=Location("file:/t/data/1.parquet"),
        file_format="parquet",
        spec_id=SpecId(0),
        partition=partition,
        record_count=len(rows),
        file_size_in_bytes=1,
        value_counts=told(value_counts),
        null_value_counts=told(null_counts),
        nan_value_counts=told(nan_counts),
        lower_bounds=told(lower),
        upper_bounds=told(upper),
    )


def orders(kind: PrimitiveType) -> st.SearchStrategy[Callable[[Any], Any]]:
    """Return the orders that writers have: for uuids, some compare two signed halves."""
    return st.sampled_from([order_key, _signed_halves]) if kind.kind == "uuid" else st.just(order_key)


def _signed_halves(value: Any) -> tuple[int, int]:
    return (
        int.from_bytes(value.bytes[:8], "big", signed=True),
        int.from_bytes(value.bytes[8:], "big", signed=True),
    )


def _with_gaps(draw: st.DrawFn, known: dict[int, N]) -> dict[int, N] | None:
    match draw(st.integers(0, 11)):
        case 0:
            return None
        case 1 if known:
            gone = draw(st.sampled_from(sorted(known)))
            return {field_id: value for field_id, value in known.items() if field_id != gone}
    return known


def _before_widening(kind: PrimitiveType, bound: Any) -> bytes:
    """Return a bound as it was written when the column had a narrower type, if that can hold it."""
    narrow, factor = {
        "long": (_INT, 1),
        "double": (_FLOAT, 1),
        "timestamp": (_DATE, 86_400 * 10**6),
        "timestamp_ns": (_DATE, 86_400 * 10**9),
    }.get(kind.kind, (kind, 1))
    try:
        days, rest = (bound, 0) if factor == 1 else divmod(bound, factor)
        if not rest and from_bytes(narrow, to_bytes(narrow, days)) == days:
            return to_bytes(narrow, days)
    except (TypeError, ValueError):
        pass  # A number too large for it, or a cut bound that is no value.
    return _in_bytes(kind, bound)


def _in_bytes(kind: PrimitiveType, bound: Any) -> bytes:
    # A bound of a fixed column may be cut too, and is none of its values then.
    return bound if isinstance(bound, bytes) else to_bytes(kind, bound)


def _cut(value: Any, length: int) -> Any:
    return value[:length] if isinstance(value, str | bytes) else value


def _cut_above(value: Any, length: int) -> Any:
    """Return the lowest short value that is not below a value; None if there is none."""
    if not isinstance(value, str | bytes) or len(value) <= length:
        return value
    highest = 0xFF if isinstance(value, bytes) else 0x10FFFF
    numbers = list(value) if isinstance(value, bytes) else [ord(char) for char in value]
    numbers = numbers[:length]
    while numbers and numbers[-1] == highest:
        numbers.pop()
    if not numbers:
        return None
    # Surrogates are no characters.
    numbers[-1] = 0xE000 if numbers[-1] == 0xD7FF and isinstance(value, str) else numbers[-1] + 1
    return bytes(numbers) if isinstance(value, bytes) else "".join(map(chr, numbers))


def partition_kinds(spec: PartitionSpec, schema: Schema) -> list[PrimitiveType]:
    """Return the types of a spec's partition values."""
    kinds = []
    for field in spec.fields:
        kind = parse_transform(field.transform).result_type(
            schema.columns[FieldId(field.source_id)].field.type
        )
        assert isinstance(kind, PrimitiveType)
        kinds.append(kind)
    return kinds


@st.composite
def manifests(
    draw: st.DrawFn, partitions: Sequence[tuple[Any, ...]], kinds: Sequence[PrimitiveType]
) -> ManifestFile:
    """Return a manifest that names a file of each partition; old ones do not tell whether there is NaN."""
    knows_nan = draw(st.booleans())
    summaries = []
    for position, kind in enumerate(kinds):
        found = [partition[position] for partition in partitions]
        there = [value for value in found if value is not None and not is_nan(value)]
        key = draw(orders(kind))
        summary = PartitionSummary(
            contains_null=None in found,
            contains_nan=any(map(is_nan, found)) if knows_nan else None,
            lower_bound=to_bytes(kind, min(there, key=key)) if there else None,
            upper_bound=to_bytes(kind, max(there, key=key)) if there else None,
        )
        summaries.append(summary)
    return ManifestFile(
        manifest_path=Location("file:/t/metadata/m.avro"),
        manifest_length=1,
        partition_spec_id=SpecId(0),
        partitions=tuple(summaries),
    )
