"""The first metadata of a table that one request creates: fresh ids, and defaults."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from app.engine.change.draft import MetadataDraft
from app.engine.change.edits.properties import without_trailing_slash
from app.engine.change.numbering import numbered_orders, numbered_schemas, numbered_specs
from app.engine.model.format_versions import DEFAULT_FORMAT_VERSION, FORMAT_VERSIONS, MAX_FORMAT_VERSION
from app.engine.model.ids import Location, SchemaId, SortOrderId, TableUuid
from app.engine.model.partition_spec import (
    PartitionSpec,
    UnboundPartitionField,
    UnboundPartitionSpec,
    bind_spec,
)
from app.engine.model.schema import Schema, check_format_version, check_schema, renumber
from app.engine.model.settings import properties as props
from app.engine.model.sort_order import FIRST_ORDER_ID, UNSORTED, SortOrder, bind_order
from app.engine.model.table_metadata import TableMetadata
from app.engine.properties.lookup import check_properties
from app.errors import InvalidUpdate

DEFAULT_PARQUET_CODEC = "zstd"


def new_table_metadata(
    *,
    schema: Schema,
    spec: UnboundPartitionSpec | None,
    order: SortOrder | None,
    location: Location,
    properties: Mapping[str, str],
    uuid: TableUuid,
    now_ms: int,
) -> TableMetadata:
    """Return the metadata of a new table without data.

    Field ids are assigned from 1, whatever the request says. The spec and the sort order follow their columns.

    Raises:
        InvalidUpdate: the schema, spec, order or a property cannot be used.

    Spec: #table-metadata-fields
    """
    leaves_codec_open = props.leaves_codec_open(properties)
    if leaves_codec_open:
        properties = {name: value for name, value in properties.items() if name != props.PARQUET_COMPRESSION}
    check_properties(properties)
    version = _format_version(properties)
    check_schema(schema)
    ids = itertools.count(1)
    fresh, new_ids = renumber(schema, lambda: next(ids))
    fresh = fresh.with_id(0)
    check_format_version(fresh, version)
    kept = {name: value for name, value in properties.items() if name not in props.RESERVED}
    if not leaves_codec_open:
        kept.setdefault(props.PARQUET_COMPRESSION, DEFAULT_PARQUET_CODEC)
    props.check_column_metrics(kept, fresh)
    bound = _bind(spec, fresh, new_ids, version)
    sorted_by = _renumber_order(order, new_ids, fresh)
    draft = MetadataDraft(
        base=None,
        now_ms=now_ms,
        format_version=version,
        table_uuid=uuid,
        location=without_trailing_slash(location),
        last_column_id=len(new_ids),
        current_schema_id=SchemaId(0),
        schemas=numbered_schemas([fresh]),
        default_spec_id=bound.spec_id,
        specs=numbered_specs([bound]),
        last_partition_id=bound.highest_field_id,
        default_sort_order_id=sorted_by.order_id,
        sort_orders=numbered_orders([sorted_by]),
        properties=kept,
    )
    return draft.finish(None)


def _format_version(properties: Mapping[str, str]) -> int:
    version = props.int_property(properties, props.FORMAT_VERSION, DEFAULT_FORMAT_VERSION)
    if version not in FORMAT_VERSIONS:
        raise InvalidUpdate(f"Unsupported format version: v{version} (supported: v{MAX_FORMAT_VERSION})")
    return version


def _bind(
    spec: UnboundPartitionSpec | None, fresh: Schema, new_ids: Mapping[int, int], version: int
) -> PartitionSpec:
    fields: list[UnboundPartitionField] = []
    for field in spec.fields if spec else ():
        source_id = _follow(field.source_id, new_ids, f"partition field: {field.name}")
        fields.append(field.replace(source_id=source_id, field_id=None))
    renumbered = (spec or UnboundPartitionSpec(fields=())).replace(fields=tuple(fields))
    return bind_spec(renumbered, fresh, version, 0)


def _renumber_order(order: SortOrder | None, new_ids: Mapping[int, int], fresh: Schema) -> SortOrder:
    if order is None or order.is_unsorted:
        return UNSORTED
    fields = tuple(
        field.replace(source_id=_follow(field.source_id, new_ids, "sort field")) for field in order.fields
    )
    return bind_order(order.replace(order_id=SortOrderId(FIRST_ORDER_ID), fields=fields), fresh)


def _follow(source_id: int, new_ids: Mapping[int, int], what: str) -> int:
    if source_id not in new_ids:
        raise InvalidUpdate(f"Cannot find source column for {what} (source-id {source_id})")
    return new_ids[source_id]
