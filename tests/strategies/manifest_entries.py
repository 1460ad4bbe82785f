"""Strategies for manifests: entries of any status and content, with partitions of any type."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from app.engine.model.data_types.transforms import parse_transform
from app.engine.model.data_types.types import NestedField, PrimitiveType, parse_primitive
from app.engine.model.files.manifests import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
)
from app.engine.model.ids import FieldId, Location, SnapshotId, SortOrderId, SpecId
from app.engine.model.partition_spec import PartitionField, PartitionSpec
from app.engine.model.schema import Schema
from tests.strategies.single_values import MAX_INT, MAX_LONG, single_values

KINDS = (
    *tuple(
        "boolean,int,long,float,double,date,time,timestamp,timestamptz,string,uuid,binary,fixed[5],fixed[16]".split(
            ","
        )
    ),
    "decimal(1, 0)",
    "decimal(9, 2)",
    "decimal(20, 5)",
    "decimal(38, 10)",
)
V3_KINDS = ("timestamp_ns", "timestamptz_ns")
NAMES = ("id", "order date", "straße", "9lives", "列", "a-b", "x")
SPEC_ID = SpecId(3)
IDS = st.integers(2**33, MAX_LONG)


def table_of(kinds: list[str], transforms: list[str]) -> tuple[Schema, PartitionSpec]:
    """Return a schema with a column of each type, and a spec that transforms each."""
    columns = [
        NestedField(
            id=FieldId(at + 1), name=f"{NAMES[at % 7]}{at}", required=False, type=parse_primitive(kind)
        )
        for at, kind in enumerate(kinds)
    ]
    fields = [
        PartitionField(
            name=column.name if transform == "identity" else f"{column.name}_{transform[:4]}",
            transform=transform,
            source_id=column.id,
            field_id=FieldId(1000 + at),
        )
        for at, (column, transform) in enumerate(zip(columns, transforms, strict=True))
    ]
    return Schema(type="struct", fields=tuple(columns)), PartitionSpec(spec_id=SPEC_ID, fields=tuple(fields))


def partition_kinds(schema: Schema, spec: PartitionSpec) -> list[PrimitiveType]:
    """Return the types of a spec's values."""
    kinds = []
    for field in spec.fields:
        kind = parse_transform(field.transform).result_type(schema.columns[field.source_id].field.type)
        assert isinstance(kind, PrimitiveType)
        kinds.append(kind)
    return kinds


@st.composite
def tables(draw: st.DrawFn, format_version: int = 2) -> tuple[Schema, PartitionSpec]:
    """Return a schema and a spec over it."""
    known = KINDS + (V3_KINDS if format_version >= 3 else ())
    kinds = draw(st.lists(st.sampled_from(known), max_size=4))
    transforms = []
    for kind in kinds:
        fitting = [
            text
            for text in ("identity", "void", "bucket[7]", "truncate[3]", "year", "month", "day", "hour")
            if parse_transform(text).applies_to(parse_primitive(kind))
        ]
        transforms.append(draw(st.sampled_from(fitting)))
    return table_of(kinds, transforms)


@st.composite
def partitions(
    draw: st.DrawFn, schema: Schema, spec: PartitionSpec, *, only_finite: bool = False
) -> tuple[Any, ...]:
    """Return a partition tuple; void fields have none but null."""
    values = []
    for field, kind in zip(spec.fields, partition_kinds(schema, spec), strict=True):
        fitting = (
            st.none()
            if field.transform == "void"
            else st.none() | single_values(kind, only_finite=only_finite)
        )
        values.append(draw(fitting))
    return tuple(values)


def _metrics(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[int, Any] | None]:
    return st.none() | st.dictionaries(st.integers(1, 5) | st.integers(1, MAX_INT), values, max_size=5)


@st.composite
def files(
    draw: st.DrawFn,
    schema: Schema,
    spec: PartitionSpec,
    content: FileContent,
    format_version: int,
    *,
    only_finite: bool = False,
) -> DataFile:
    """Return a data file, a delete file or (from v3 on) a deletion vector."""
    counts = _metrics(st.integers(0, 3) | st.integers(0, MAX_LONG))
    bounds = _metrics(st.binary(max_size=4) | st.binary(min_size=60, max_size=140))
    is_vector = content is FileContent.POSITION_DELETES and format_version >= 3
    references = is_vector or (content is FileContent.POSITION_DELETES and draw(st.booleans()))
    # Readers ignore offsets that are not in order or beyond the end of the file.
    offsets = draw(
        st.none() | st.lists(st.integers(4, MAX_LONG - 1), min_size=1, max_size=3, unique=True).map(sorted)
    )
    smallest_size = 0 if offsets is None else offsets[-1] + 1
    return DataFile(
        content=content,
        file_path=Location("s3://b/" + draw(st.text("ab/=é", min_size=1, max_size=150))),
        file_format="puffin" if is_vector else draw(st.sampled_from(["parquet", "avro", "orc"])),
        spec_id=spec.spec_id,
        partition=draw(partitions(schema, spec, only_finite=only_finite)),
        record_count=draw(st.integers(0, 10) | st.integers(0, 2**40)),
        file_size_in_bytes=draw(st.integers(smallest_size, MAX_LONG)),
        column_sizes=draw(counts),
        value_counts=draw(counts),
        null_value_counts=draw(counts),
        nan_value_counts=draw(counts),
        lower_bounds=draw(bounds),
        upper_bounds=draw(bounds),
        key_metadata=draw(st.none() | st.binary(min_size=1, max_size=9)),
        split_offsets=None if offsets is None else tuple(offsets),
        equality_ids=(
            tuple(draw(st.lists(st.integers(1, MAX_INT), min_size=1, max_size=3)))
            if content is FileContent.EQUALITY_DELETES
            else None
        ),
        sort_order_id=(
            None
            if content is FileContent.POSITION_DELETES
            else draw(st.none() | st.integers(0, 3).map(SortOrderId))
        ),
        first_row_id=(
            draw(st.none() | st.integers(0, 2**40))
            if content is FileContent.DATA and format_version >= 3
            else None
        ),
        referenced_data_file=Location("s3://b/data.parquet") if references else None,
        content_offset=draw(st.integers(0, 2**40)) if is_vector else None,
        content_size_in_bytes=draw(st.integers(0, 2**40)) if is_vector else None,
    )


@st.composite
def entries(
    draw: st.DrawFn,
    schema: Schema,
    spec: PartitionSpec,
    manifest_content: ManifestContent,
    format_version: int,
    *,
    only_finite: bool = False,
) -> ManifestEntry:
    """Return an entry as a writer makes it: an added file may leave its numbers to the commit."""
    contents = (
        [FileContent.DATA]
        if manifest_content is ManifestContent.DATA
        else [FileContent.POSITION_DELETES, FileContent.EQUALITY_DELETES]
    )
    file_content = draw(st.sampled_from(contents))
    file = draw(files(schema, spec, file_content, format_version, only_finite=only_finite))
    status = draw(st.sampled_from(EntryStatus))
    if format_version == 1:
        return ManifestEntry(status, SnapshotId(draw(IDS)), None, None, file)
    if status is EntryStatus.ADDED:
        return ManifestEntry(status, draw(st.none() | IDS.map(SnapshotId)), None, None, file)
    return ManifestEntry(status, SnapshotId(draw(IDS)), draw(IDS), draw(IDS), file)


@st.composite
def manifests(
    draw: st.DrawFn, format_version: int, *, max_size: int = 6, only_finite: bool = False
) -> tuple[Schema, PartitionSpec, ManifestContent, list[ManifestEntry]]:
    """Return what a manifest is written of."""
    schema, spec = draw(tables(format_version))
    content = ManifestContent.DATA if format_version == 1 else draw(st.sampled_from(ManifestContent))
    one = entries(schema, spec, content, format_version, only_finite=only_finite)
    found = draw(st.lists(one, min_size=1, max_size=max_size))
    return schema, spec, content, found
