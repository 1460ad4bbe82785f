"""The first metadata of a table: ids, versions, properties, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from app.engine.change.initial import new_table_metadata
from app.engine.model.ids import Location, TableUuid
from app.engine.model.partition_spec import UnboundPartitionSpec
from app.engine.model.schema import Schema
from app.engine.model.sort_order import SortOrder
from app.engine.model.table_metadata import TableMetadata, read_table_metadata
from app.errors import InvalidUpdate
from tests.unit.engine.documents import (
    NOW_MS,
    UUID,
    Json,
    column,
    encoded,
    list_of,
    map_of,
    order_json,
    part,
    schema,
    sort_json,
    struct,
)

COLUMNS = schema(
    column(10, "id", "long", required=True, doc="key"),
    column(4, "point", struct(column(7, "x", "double"), column(9, "y", "double"))),
    column(30, "tags", list_of(2, "string")),
    column(1, "spots", map_of(3, "string", 6, struct(column(5, "z")))),
    column(8, "at", "timestamp"),
    schema_id=6,
    identifiers=[10],
)


def created(
    columns: Schema = COLUMNS,
    spec: Json | None = None,
    order: Json | None = None,
    location: str = "s3://bucket/t",
    properties: Mapping[str, str] | None = None,
) -> TableMetadata:
    metadata = new_table_metadata(
        schema=columns,
        spec=UnboundPartitionSpec.from_json(encoded(spec)) if spec else None,
        order=SortOrder.from_json(encoded(order)) if order else None,
        location=Location(location),
        properties=properties or {},
        uuid=TableUuid(UUID),
        now_ms=NOW_MS,
    )
    assert read_table_metadata(metadata.to_json()) == metadata
    return metadata


def refusal(columns: Schema = COLUMNS, **more: Any) -> str:
    with pytest.raises(InvalidUpdate) as caught:
        created(columns, **more)
    return str(caught.value)


def test_field_ids_are_assigned_anew_a_level_before_what_is_below() -> None:
    metadata = created()

    assert {item.name: field_id for field_id, item in metadata.current_schema.columns.items()} == {
        "id": 1,
        "point": 2,
        "tags": 3,
        "spots": 4,
        "at": 5,
        "point.x": 6,
        "point.y": 7,
        "tags.element": 8,
        "spots.key": 9,
        "spots.value": 10,
        "spots.value.z": 11,
    }
    assert metadata.current_schema.identifier_field_ids == (1,)
    assert metadata.current_schema.fields[0].doc == "key"
    assert metadata.last_column_id == 11
    assert metadata.current_schema_id == 0


def test_new_table_is_empty_and_begins_now() -> None:
    metadata = created()

    assert metadata.table_uuid == UUID
    assert metadata.last_updated_ms == NOW_MS
    assert metadata.current_snapshot is None
    assert (metadata.snapshots, metadata.snapshot_log, metadata.metadata_log) == ((), (), ())
    assert metadata.snapshot_refs == {}
    assert metadata.last_sequence == 0


def test_spec_and_order_follow_their_columns() -> None:
    spec = {"spec-id": 7, "fields": [part("day", 8, 2005, "DAY") | {"note": 1}, part("x", 7)], "vendor": 2}
    order = order_json(sort_json(8, "hour"), sort_json(10, direction="desc"), order_id=5) | {"vendor": 3}

    metadata = created(spec=spec, order=order)

    assert metadata.default_spec.to_object() == {
        "spec-id": 0,
        "fields": [part("day", 5, 1000, "day") | {"note": 1}, part("x", 6, 1001)],
        "vendor": 2,
    }
    assert metadata.last_partition_id == 1001
    assert metadata.default_sort_order.to_object() == order_json(
        sort_json(5, "hour"), sort_json(1, direction="desc")
    ) | {"vendor": 3}


@pytest.mark.parametrize("order", [None, order_json(order_id=3)])
def test_table_without_order_is_unsorted(order: Json | None) -> None:
    metadata = created(order=order)

    assert metadata.default_sort_order_id == 0
    assert metadata.default_sort_order.is_unsorted


@pytest.mark.parametrize("spec", [None, {"fields": []}])
def test_table_without_spec_is_unpartitioned(spec: Json | None) -> None:
    metadata = created(spec=spec)

    assert metadata.default_spec.to_object() == {"spec-id": 0, "fields": []}
    assert metadata.last_partition_id == 999


@pytest.mark.parametrize("version", [1, 2, 3])
def test_property_chooses_the_format_version(version: int) -> None:
    metadata = created(properties={"format-version": str(version)})

    assert metadata.format_version == version
    assert metadata.next_row_id == (0 if version == 3 else None)
    assert metadata.last_sequence_number == (None if version == 1 else 0)


def test_format_version_is_2_unless_told() -> None:
    assert created().format_version == 2


def test_reserved_properties_are_not_stored_and_a_codec_is() -> None:
    reserved = dict.fromkeys(
        (
            "uuid snapshot-count current-snapshot-id current-snapshot-summary current-snapshot-timestamp-ms "
            "current-schema default-partition-spec default-sort-order"
        ).split(),
        "x",
    )

    metadata = created(properties=reserved | {"format-version": "2", "owner": "me"})

    assert metadata.properties == {"owner": "me", "write.parquet.compression-codec": "zstd"}


def test_codec_that_was_chosen_stays() -> None:
    metadata = created(properties={"write.parquet.compression-codec": "gzip"})

    assert metadata.properties == {"write.parquet.compression-codec": "gzip"}


def test_empty_codec_is_not_stored_and_keeps_the_default_away() -> None:
    # So Trino 483 creates every table, and CREATE TABLE AS.
    metadata = created(
        properties={
            "write.format.default": "PARQUET",
            "format-version": "2",
            "write.parquet.compression-codec": "",
        }
    )

    assert metadata.properties == {"write.format.default": "PARQUET"}


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("s3://bucket/t///", "s3://bucket/t"),
        ("file:/data/x", "file:/data/x"),
        ("file:///data/x/", "file:///data/x"),
        ("s3://", "s3://"),
        ("/", "/"),
    ],
)
def test_only_slashes_at_the_end_of_the_location_are_dropped(given: str, stored: str) -> None:
    assert created(location=given).location == stored


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("0", "Unsupported format version: v0 (supported: v3)"),
        ("4", "Unsupported format version: v4 (supported: v3)"),
        ("two", "Table property format-version must be a whole number, found 'two'"),
    ],
)
def test_format_version_that_does_not_exist_is_refused(version: str, message: str) -> None:
    assert refusal(properties={"format-version": version}) == message


def test_type_of_a_later_version_is_refused() -> None:
    columns = schema(column(1, "v", "variant"))

    assert "variant is not supported until v3" in refusal(columns)
    assert created(columns, properties={"format-version": "3"}).current_schema.columns


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            {"spec": {"fields": [part("p", 99)]}},
            "Cannot find source column for partition field: p (source-id 99)",
        ),
        ({"order": order_json(sort_json(99))}, "Cannot find source column for sort field (source-id 99)"),
        (
            {"spec": {"fields": [part("p", 10, transform="day")]}},
            "Invalid source type long for transform day",
        ),
        ({"order": order_json(sort_json(10, "day"))}, "Invalid source type long for transform day"),
        (
            {"properties": {"commit.retry.num-retries": "-1"}},
            "Table property commit.retry.num-retries must be at least 0",
        ),
        (
            {"properties": {"commit.retry.min-wait-ms": "x"}},
            "Table property commit.retry.min-wait-ms must be a whole number",
        ),
        (
            {"properties": {"write.metadata.metrics.column.nope": "full"}},
            "could not find column nope from table prop",
        ),
        (
            {"properties": {"encryption.key-id": "k"}},
            "Invalid properties for v2: encryption.key-id needs format version 3",
        ),
    ],
)
def test_request_that_makes_no_table_is_refused(more: Json, message: str) -> None:
    assert message in refusal(**more)


def test_encrypted_table_can_be_made_in_v3() -> None:
    metadata = created(properties={"format-version": "3", "encryption.key-id": "k"})

    assert metadata.properties["encryption.key-id"] == "k"


def test_schema_that_contradicts_itself_is_refused() -> None:
    assert "is used more than once" in refusal(schema(column(1, "a"), column(1, "b")))


def test_table_without_columns_can_be_made() -> None:
    assert created(schema()).last_column_id == 0
