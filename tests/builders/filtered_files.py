"""Filters, files and manifests of a few words, for tests of what is pruned."""

from __future__ import annotations

from typing import Any

from app.engine.expressions.binding import bind
from app.engine.expressions.expression_json import parse_expression
from app.engine.expressions.expressions import BoundExpression
from app.engine.model.data_types.types import parse_primitive
from app.engine.model.data_types.values import to_bytes
from app.engine.model.files.manifests import DataFile, FileContent, ManifestFile, PartitionSummary
from app.engine.model.ids import Location, SpecId
from app.engine.model.partition_spec import PartitionSpec
from app.engine.model.schema import Schema

Json = Any


def schema_of(*, required: bool = False, **kinds: Json) -> Schema:
    """Return a schema of columns `name=type`, numbered from 1 in their order."""
    fields = [
        {"id": field_id, "name": name, "required": required, "type": kind}
        for field_id, (name, kind) in enumerate(kinds.items(), start=1)
    ]
    return Schema.from_object({"type": "struct", "schema-id": 0, "fields": fields})


def struct_of(*, first_id: int = 11, required: bool = False, **kinds: str) -> Json:
    """Return the JSON of a struct type with fields `name=type`."""
    fields = [
        {"id": field_id, "name": name, "required": required, "type": kind}
        for field_id, (name, kind) in enumerate(kinds.items(), start=first_id)
    ]
    return {"type": "struct", "fields": fields}


def spec_of(*fields: tuple[int, str]) -> PartitionSpec:
    """Return a spec of fields `(source id, transform)`, named p0, p1 and so on."""
    documents = [
        {"name": f"p{position}", "transform": transform, "source-id": source, "field-id": 1000 + position}
        for position, (source, transform) in enumerate(fields)
    ]
    return PartitionSpec.from_object({"spec-id": 0, "fields": documents})


def asked(operation: str, *values: Json, of: str = "c", through: str | None = None) -> Json:
    """Return the JSON of one predicate, on a column or on a transform of it."""
    term: Json = of if through is None else {"type": "transform", "transform": through, "term": of}
    document: dict[str, Json] = {"type": operation, "term": term}
    if operation in ("in", "not-in"):
        document["values"] = list(values)
    elif values:
        (document["value"],) = values
    return document


def bound_of(kind: str, document: Json, *, required: bool = False) -> BoundExpression:
    """Return a filter on the only column of a table, `c`."""
    return bind(parse_expression(document), schema_of(c=kind, required=required))


def file_of(
    kind: str = "int", *, lower: Any = None, upper: Any = None, rows: int = 10, **counts: Any
) -> DataFile:
    """Return a file with metrics of the only column; counts are `values`, `nulls` and `nans`.

    Bounds are values of the column's type, or bytes.
    """

    def in_bytes(bound: Any) -> dict[int, bytes] | None:
        if bound is None:
            return None
        return {1: bound if isinstance(bound, bytes) else to_bytes(parse_primitive(kind), bound)}

    def counted(name: str) -> dict[int, int] | None:
        return None if counts.get(name) is None else {1: counts[name]}

    return DataFile(
        content=FileContent.DATA,
        file_path=Location("file:/t/data/1.parquet"),
        file_format="parquet",
        spec_id=SpecId(0),
        partition=(),
        record_count=rows,
        file_size_in_bytes=1,
        value_counts=counted("values"),
        null_value_counts=counted("nulls"),
        nan_value_counts=counted("nans"),
        lower_bounds=in_bytes(lower),
        upper_bounds=in_bytes(upper),
    )


def manifest_of(*summaries: PartitionSummary | None) -> ManifestFile:
    """Return a manifest with summaries of its partition fields; one that is None stands for none at all."""
    known = tuple(summary for summary in summaries if summary is not None)
    return ManifestFile(
        manifest_path=Location("file:/t/metadata/m.avro"),
        manifest_length=1,
        partition_spec_id=SpecId(0),
        partitions=known if len(known) == len(summaries) else None,
    )


def summary_of(
    kind: str = "int", lower: Any = None, upper: Any = None, *, null: bool = False, nan: bool | None = None
) -> PartitionSummary:
    """Return what a manifest says of one partition field."""
    of_kind = parse_primitive(kind)
    return PartitionSummary(
        contains_null=null,
        contains_nan=nan,
        lower_bound=None if lower is None else to_bytes(of_kind, lower),
        upper_bound=None if upper is None else to_bytes(of_kind, upper),
    )
