"""Reads the footers of Parquet files."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from app.engine.appends.footers import FileColumn, Footer, LeafFacts, Shape
from app.engine.model.data_types.types import PrimitiveType, parse_primitive
from app.engine.model.data_types.values import decimal_of, order_key
from app.engine.model.document import MAX_LONG
from app.fileio.tails import Tail
from app.formats.parquet.arrow_schemas import ArrowField, arrow_fields
from app.formats.parquet.footer_traps import KEPT_SCHEMA, Span, footer_claims, without, wrong_statistics
from app.formats.parquet.footer_weights import footer_weight
from app.formats.parquet.nested_layouts import check_layouts
from app.formats.parquet.not_parquet import NotParquetError

_MAGIC: Final = b"PAR1"
_END_BYTES: Final = 8
"""The length of the footer, and the magic bytes."""
_FIELD_ID: Final = b"PARQUET:field_id"


_PLAIN: Final = {
    ("BOOLEAN", "None"): "boolean",
    ("INT32", "None"): "int",
    ("INT64", "None"): "long",
    ("FLOAT", "None"): "float",
    ("DOUBLE", "None"): "double",
    ("INT32", "Date"): "date",
    ("BYTE_ARRAY", "String"): "string",
    ("BYTE_ARRAY", "None"): "binary",
    ("FIXED_LEN_BYTE_ARRAY", "UUID"): "uuid",
}
"""Types by physical and logical type, where nothing else matters."""


def footer_bytes(tail: Tail) -> int:
    """Return how many bytes at the end of a file its footer takes.

    Raises:
        NotParquetError: the file does not end like a Parquet file.
    """
    end = tail.content[-_END_BYTES:]
    if end[4:] == b"PARE":
        raise NotParquetError("it is a Parquet file with an encrypted footer, which the server cannot read")
    if len(end) < _END_BYTES or end[4:] != _MAGIC:
        raise NotParquetError("it is not a Parquet file")
    size_bytes = int.from_bytes(end[:4], "little") + _END_BYTES
    if size_bytes + len(_MAGIC) > tail.size_bytes:
        raise NotParquetError("it is not a whole Parquet file: its footer is said to be larger than the file")
    return size_bytes


def weight_of(tail: Tail, most: int) -> int:
    """Return how much the footer of a file weighs, `footer_weight`; raises `NotParquetError`."""
    size_bytes = footer_bytes(tail)
    return footer_weight(tail.content[-size_bytes:-_END_BYTES], most)


def read_footer(tail: Tail) -> Footer:
    """Return what the end of a file, with its whole footer, says.

    Look at its weight first, `weight_of`: a small footer can claim millions of columns.

    Raises:
        NotParquetError: it cannot be read.
    """
    import pyarrow as pa

    try:
        found = read_metadata(tail)
        return _footer(found, tail.size_bytes)
    except NotParquetError:
        raise
    except (OSError, ValueError, TypeError, pa.ArrowException) as error:
        raise NotParquetError(f"its Parquet footer cannot be read: {str(error).strip()[:300]}") from error


def read_metadata(tail: Tail) -> Any:
    """Return what Arrow says of a footer, without what it would end the process on.

    What has to stay out is known by the types of columns only, so the footer is read twice where something has.

    Raises:
        NotParquetError, OSError: it cannot be read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    size_bytes = footer_bytes(tail)
    footer = tail.content[-size_bytes:-_END_BYTES]

    def read(heads: Sequence[Span]) -> Any:
        # The pages of rows are not looked at: a footer behind the magic bytes is a file to the reader.
        content = without(footer, heads, claims.arrow_schemas)
        return pq.read_metadata(
            pa.BufferReader(_MAGIC + content + len(content).to_bytes(4, "little") + _MAGIC)
        )

    claims = footer_claims(footer)
    heads = [
        chunk.size_statistics
        for group in claims.groups
        for chunk in group
        if chunk.size_statistics is not None
    ]
    found = read(heads)
    schema = pq.ParquetSchema(found)
    columns = [
        (column.physical_type, column.length) for column in map(schema.column, range(found.num_columns))
    ]
    wrong = wrong_statistics(claims.groups, columns)
    return read([*heads, *wrong]) if wrong else found


def _footer(found: Any, file_size_in_bytes: int) -> Footer:
    import pyarrow.parquet as pq

    # Not `found.schema`, which refers to what it belongs to: both would stay until the garbage collector comes.
    schema = pq.ParquetSchema(found)
    groups = [found.row_group(number) for number in range(found.num_row_groups)]
    whole = _Whole(file_size_in_bytes, found.num_rows)
    _check_rows(groups, whole.record_count)
    leaves = iter([_leaf(schema.column(place), place, groups, whole) for place in range(found.num_columns)])
    fields = schema.to_arrow_schema()
    try:
        own = arrow_fields((found.metadata or {}).get(KEPT_SCHEMA))
        columns = tuple(
            _column(field, leaves, own and own.child(number)) for number, field in enumerate(fields)
        )
    except StopIteration:
        columns = ()
    if next(leaves, None) is not None or (found.num_columns and not columns):
        raise NotParquetError("its Parquet schema has a column of a kind that the server does not know")
    footer = Footer(
        file_size_in_bytes=file_size_in_bytes,
        record_count=whole.record_count,
        columns=columns,
        split_offsets=_split_offsets(groups, whole) if found.num_columns else (),
    )
    paths = [schema.column(place).path for place in range(found.num_columns)]
    check_layouts(fields, paths, has_field_ids=footer.has_field_ids)
    return footer


@dataclass(frozen=True, slots=True)
class _Whole:
    """What the file as a whole has: its parts cannot have more."""

    file_size_in_bytes: int
    record_count: int


def _check_rows(groups: Sequence[Any], record_count: int) -> None:
    rows = [group.num_rows for group in groups]
    if rows and min(rows) < 0:
        raise NotParquetError(f"a row group is said to have {min(rows)} rows")
    if sum(rows) != record_count:
        raise NotParquetError(f"it is said to have {record_count} rows, and its row groups {sum(rows)}")


def _split_offsets(groups: Sequence[Any], whole: _Whole) -> tuple[int, ...]:
    """Return where the row groups begin; nothing if one is said to begin outside the file."""
    offsets = sorted(map(_start, groups))
    if offsets and not 0 <= offsets[0] <= offsets[-1] < whole.file_size_in_bytes:
        return ()
    return tuple(offsets)


def _start(group: Any) -> int:
    """Return where a row group begins in the file, in bytes."""
    return first_page(group.column(0))


def first_page(column: Any) -> int:
    """Return where the first page of a column's chunk begins in the file, in bytes."""
    data: int = column.data_page_offset
    return min(data, column.dictionary_page_offset) if column.has_dictionary_page else data


def _column(field: Any, leaves: Iterator[FileColumn], own: ArrowField | None) -> FileColumn:
    """Return an Arrow field as a column; leaves are taken in the file's order.

    Args:
        field: as Parquet's types make it.
        leaves: those of the file that are left.
        own: what Arrow's own schema has in this place.
    """
    import pyarrow as pa

    kind = field.type
    if isinstance(kind, pa.ExtensionType | pa.BaseExtensionType) and pa.types.is_nested(kind.storage_type):
        raise NotParquetError(f"its column {field.name} is of type {kind}, which the server does not know")
    strange = own.strange_type() if own is not None else None
    text = (field.metadata or {}).get(_FIELD_ID)
    field_id = int(text) if text is not None and int(text) >= 0 else None
    if pa.types.is_struct(kind):
        shape, inner = Shape.STRUCT, [kind.field(place) for place in range(kind.num_fields)]
    elif pa.types.is_map(kind):
        shape, inner = Shape.MAP, [kind.key_field, kind.item_field]
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        shape, inner = Shape.LIST, [kind.value_field]
    else:
        leaf = next(leaves)
        if strange is not None:
            leaf = replace(leaf, type=None, type_text=f"{strange}, as Arrow reads it, {leaf.type_text}")
        return replace(leaf, name=field.name, field_id=field_id, is_optional=field.nullable)
    if strange is not None:
        raise NotParquetError(
            f"its column {field.name} is of type {strange} to Arrow, which the server does not know"
        )
    if shape is Shape.MAP and own is not None:
        own = own.child(0)  # the entries
    children = tuple([_column(child, leaves, own and own.child(place)) for place, child in enumerate(inner)])
    return FileColumn(field.name, shape, field_id, field.nullable, children)


def _leaf(column: Any, place: int, groups: list[Any], whole: _Whole) -> FileColumn:
    logical = json.loads(column.logical_type.to_json())
    kind = _type_of(column, logical)
    text = str(column.logical_type) if logical.get("Type") != "None" else column.physical_type
    chunks = [group.column(place) for group in groups]
    _check_counts(column, chunks, whole)
    facts = _facts(chunks, _reader(column, kind))
    return FileColumn(
        column.name,
        Shape.LEAF,
        None,
        True,
        type=kind,
        type_text=f"{text} ({column.physical_type})",
        facts=facts,
        is_annotated=column.physical_type == "INT32" and logical.get("Type") == "Int",
    )


def _type_of(column: Any, logical: dict[str, Any]) -> PrimitiveType | None:
    """Return the type of a leaf's values; None if there is none that all readers read.

    Spec: #parquet
    """
    physical, name = column.physical_type, logical.get("Type")
    text = _PLAIN.get((str(physical), str(name)))
    match physical, name:
        case "INT32", "Int" if logical["isSigned"]:
            text = "int"
        case "INT64", "Int" if logical["isSigned"]:
            text = "long"
        case "INT64", "Time" if logical["timeUnit"] == "microseconds":
            text = "time"
        # Of milliseconds, Iceberg's own readers make microseconds if they are in a dictionary, and fail otherwise.
        case "INT64", "Timestamp" if logical["timeUnit"] != "milliseconds":
            zone = "timestamptz" if logical["isAdjustedToUTC"] else "timestamp"
            text = zone + ("_ns" if logical["timeUnit"] == "nanoseconds" else "")
        case "INT96", _:
            text = "timestamptz"
        case "FIXED_LEN_BYTE_ARRAY", "None":
            text = f"fixed[{column.length}]"
        # Java's readers fail on decimals in byte arrays of any length, and on filters on texts called ENUM or JSON.
        case "INT32" | "INT64" | "FIXED_LEN_BYTE_ARRAY", "Decimal":
            text = f"decimal({column.precision}, {column.scale})"
    try:
        return None if text is None else parse_primitive(text)
    except ValueError:
        return None


Read = Callable[[Any], Any]
"""Makes a value of the raw one of a statistic; None if it is no bound."""


def _reader(column: Any, kind: PrimitiveType | None) -> Read | None:
    if kind is None or column.physical_type == "INT96":
        return None
    match kind.kind:
        case "decimal":
            precision, scale = kind.precision or 0, kind.scale or 0
            return lambda raw: _decimal(raw, precision, scale)
        case "string":
            return _text
        case "uuid":
            return lambda raw: UUID(bytes=raw)
        case "float" | "double":
            return lambda raw: None if math.isnan(raw) else raw
    return lambda raw: raw


def _decimal(raw: Any, precision: int, scale: int) -> Decimal | None:
    unscaled = int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else raw
    return decimal_of(unscaled, scale) if abs(unscaled) < 10**precision else None


def _text(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None  # cut by the writer inside a character


def _check_counts(column: Any, chunks: Sequence[Any], whole: _Whole) -> None:
    """Check what manifests have of a column, so that its counts are those of some file."""
    sizes = [chunk.total_compressed_size for chunk in chunks]
    size_bytes = next((size for size in sizes if size < 0), sum(sizes))
    if not 0 <= size_bytes <= whole.file_size_in_bytes:
        raise NotParquetError(
            f"its column {column.path} is said to take {size_bytes} bytes, and the file has {whole.file_size_in_bytes}"
        )
    counts = [chunk.num_values for chunk in chunks]
    count = next((count for count in counts if count < 0), sum(counts))
    is_repeated = column.max_repetition_level > 0
    if not 0 <= count <= MAX_LONG or (count != whole.record_count and not is_repeated):
        raise NotParquetError(
            f"its column {column.path} is said to have {count} values, and the file {whole.record_count} rows"
        )


def _facts(chunks: list[Any], read: Read | None) -> LeafFacts:
    size_bytes = value_count = nulls = 0
    are_nulls_known = True
    lowers: list[Any] = []
    uppers: list[Any] = []
    for chunk in chunks:
        size_bytes += chunk.total_compressed_size
        value_count += chunk.num_values
        statistics = chunk.statistics if chunk.is_stats_set else None
        null_count = statistics.null_count if statistics is not None and statistics.has_null_count else -1
        if 0 <= null_count <= chunk.num_values:
            nulls += null_count
            if null_count == chunk.num_values:
                continue  # without bounds, as there are no values
        else:
            are_nulls_known = False
        if read is None or statistics is None or not statistics.has_min_max:
            lowers.append(None)
            continue
        lower, upper = read(statistics.min_raw), read(statistics.max_raw)
        is_range = lower is not None and upper is not None and order_key(lower) <= order_key(upper)
        lowers.append(lower if is_range else None)
        uppers.append(upper)
    are_bounds_known = bool(lowers) and None not in lowers and None not in uppers
    return LeafFacts(
        size_bytes,
        value_count,
        nulls if are_nulls_known else None,
        min(lowers, key=order_key) if are_bounds_known else None,
        max(uppers, key=order_key) if are_bounds_known else None,
    )
