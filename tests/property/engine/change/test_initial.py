"""Laws of create: fresh ids from 1, the spec and the order follow their columns."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from app.engine.change.initial import new_table_metadata
from app.engine.model.ids import FieldId, Location, TableUuid
from app.engine.model.partition_spec import UnboundPartitionSpec
from app.engine.model.schema import Schema
from app.engine.model.sort_order import SortOrder
from app.engine.model.table_metadata import TableMetadata, read_table_metadata
from tests.strategies.json_values import Json
from tests.strategies.partitions_and_orders import order_documents, spec_documents
from tests.strategies.table_schemas import schema_documents

UUID = TableUuid("7e59e3ff-91c5-4a8a-a2f3-cb4a6b9d3b0f")


@st.composite
def requests(draw: st.DrawFn) -> tuple[int, Schema, UnboundPartitionSpec, SortOrder]:
    """Return the parts of a create request, with field ids that are not the ones the table will have."""
    version = draw(st.sampled_from([1, 2, 3]))
    document = draw(schema_documents(version, min_columns=1))
    shifted = _shifted(document, draw(st.integers(0, 50)))
    spec, order = draw(spec_documents(shifted, 9)), draw(order_documents(shifted, 4))
    return (
        version,
        Schema.from_object(shifted),
        UnboundPartitionSpec.model_validate_json(json.dumps(spec), by_alias=True, by_name=False),
        SortOrder.from_object(order),
    )


def _shifted(value: Json, distance: int) -> Json:
    """Add a distance to every field id of a schema."""
    if isinstance(value, list):
        return [_shifted(item, distance) for item in value]
    if not isinstance(value, dict):
        return value
    moved = {name: _shifted(item, distance) for name, item in value.items()}
    for name in ("id", "element-id", "key-id", "value-id"):
        if name in moved:
            moved[name] += distance
    if "identifier-field-ids" in moved:
        moved["identifier-field-ids"] = [item + distance for item in value["identifier-field-ids"]]
    return moved


@given(requests())
def test_new_table_has_dense_ids_and_the_request_by_name(
    request: tuple[int, Schema, UnboundPartitionSpec, SortOrder],
) -> None:
    version, schema, spec, order = request

    metadata: TableMetadata = new_table_metadata(
        schema=schema,
        spec=spec,
        order=order,
        location=Location("s3://bucket/t/"),
        properties={"format-version": str(version)},
        uuid=TableUuid("7e59e3ff-5a0e-4b50-9c8c-2ff3a1f6f3a1"),
        now_ms=1_700_000_000_000,
    )

    fresh = metadata.current_schema
    assert metadata.format_version == version
    assert sorted(fresh.columns) == list(range(1, metadata.last_column_id + 1))
    assert set(fresh.ids_by_name) == set(schema.ids_by_name)
    assert [fresh.columns[field.source_id].name for field in metadata.default_spec.fields] == [
        schema.columns[field.source_id].name for field in spec.fields
    ]
    assert [field.field_id for field in metadata.default_spec.fields] == [
        1000 + position for position in range(len(spec.fields))
    ]
    assert [fresh.columns[field.source_id].name for field in metadata.default_sort_order.fields] == [
        schema.columns[field.source_id].name for field in order.fields
    ]
    assert {fresh.columns[FieldId(item)].name for item in fresh.identifier_field_ids or ()} == {
        schema.columns[FieldId(item)].name for item in schema.identifier_field_ids or ()
    }
    assert read_table_metadata(metadata.to_json()) == metadata
