"""Small tables and views for the engine's unit tests, made from JSON as clients write it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter

from app.engine.change.apply import apply_updates
from app.engine.change.draft import MetadataDraft
from app.engine.change.requirements import Requirement
from app.engine.change.updates import Update
from app.engine.model.ids import Location
from app.engine.model.schema import Schema
from app.engine.model.table_metadata import TableMetadata, read_table_metadata
from app.engine.model.view_metadata import ViewMetadata, read_view_metadata

Json = dict[str, Any]

NOW_MS = 1_700_000_000_000
UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
OTHER_UUID = "0d51ef4c-7a4e-4b2a-9a3a-3c8e1b1f8a55"
BASE_LOCATION = Location("s3://bucket/t/metadata/00001-base.metadata.json")

_UPDATES: TypeAdapter[tuple[Update, ...]] = TypeAdapter(tuple[Update, ...])
_REQUIREMENTS: TypeAdapter[tuple[Requirement, ...]] = TypeAdapter(tuple[Requirement, ...])


def encoded(document: object) -> bytes:
    return json.dumps(document).encode()


def updates_of(*documents: Json) -> tuple[Update, ...]:
    """Return the updates of a request."""
    return _UPDATES.validate_json(encoded(documents), by_alias=True, by_name=False)


def requirements_of(*documents: Json) -> tuple[Requirement, ...]:
    """Return the requirements of a request."""
    return _REQUIREMENTS.validate_json(encoded(documents), by_alias=True, by_name=False)


def column(field_id: int, name: str, kind: Any = "int", *, required: bool = False, **more: Any) -> Json:
    """Return a column's JSON; `initial_default=1` stands for `initial-default`."""
    extra = {key.replace("_", "-"): value for key, value in more.items()}
    return {"id": field_id, "name": name, "required": required, "type": kind} | extra


def schema_json(*columns: Json, schema_id: int = 0, identifiers: Sequence[int] | None = None) -> Json:
    """Return a schema's JSON."""
    document: Json = {"type": "struct", "schema-id": schema_id, "fields": list(columns)}
    return document | ({"identifier-field-ids": list(identifiers)} if identifiers is not None else {})


def schema(*columns: Json, schema_id: int = 0, identifiers: Sequence[int] | None = None) -> Schema:
    """Return a schema."""
    return Schema.from_json(encoded(schema_json(*columns, schema_id=schema_id, identifiers=identifiers)))


def struct(*columns: Json) -> Json:
    """Return a struct type's JSON."""
    return {"type": "struct", "fields": list(columns)}


def list_of(element_id: int, element: Any, *, required: bool = False) -> Json:
    """Return a list type's JSON."""
    return {"type": "list", "element-id": element_id, "element": element, "element-required": required}


def map_of(key_id: int, key: Any, value_id: int, value: Any, *, required: bool = False) -> Json:
    """Return a map type's JSON."""
    return {
        "type": "map",
        "key-id": key_id,
        "key": key,
        "value-id": value_id,
        "value": value,
        "value-required": required,
    }


def part(name: str, source_id: int, field_id: int | None = None, transform: str = "identity") -> Json:
    """Return a partition field's JSON."""
    field: Json = {"name": name, "source-id": source_id, "transform": transform}
    return field | ({"field-id": field_id} if field_id is not None else {})


def spec_json(*fields: Json, spec_id: int = 0) -> Json:
    """Return a partition spec's JSON."""
    return {"spec-id": spec_id, "fields": list(fields)}


def sort_json(source_id: int, transform: str = "identity", direction: str = "asc") -> Json:
    """Return a sort field's JSON."""
    return {
        "source-id": source_id,
        "transform": transform,
        "direction": direction,
        "null-order": "nulls-first",
    }


def order_json(*fields: Json, order_id: int = 1) -> Json:
    """Return a sort order's JSON."""
    return {"order-id": order_id, "fields": list(fields)}


def snapshot_json(
    snapshot_id: int, sequence: int | None = None, parent: int | None = None, **more: Any
) -> Json:
    """Return a snapshot's JSON, made one second after the one before."""
    document: Json = {
        "snapshot-id": snapshot_id,
        "timestamp-ms": NOW_MS + (sequence or 0) * 1000,
        "manifest-list": f"s3://bucket/t/metadata/snap-{snapshot_id}.avro",
        "summary": {"operation": "append"},
    }
    if sequence is not None:
        document["sequence-number"] = sequence
    if parent is not None:
        document["parent-snapshot-id"] = parent
    return document | {key.replace("_", "-"): value for key, value in more.items()}


def table_json(version: int = 2, **changes: Any) -> Json:
    """Return the JSON of a table with two columns, partitioned by the second, without snapshots."""
    document: Json = {
        "format-version": version,
        "table-uuid": UUID,
        "location": "s3://bucket/t",
        "last-sequence-number": 0,
        "last-updated-ms": NOW_MS,
        "last-column-id": 2,
        "current-schema-id": 0,
        "schemas": [schema_json(column(1, "id", "long", required=True), column(2, "category", "string"))],
        "default-spec-id": 0,
        "partition-specs": [spec_json(part("category", 2, 1000))],
        "last-partition-id": 1000,
        "default-sort-order-id": 0,
        "sort-orders": [order_json(order_id=0)],
        "properties": {},
        "current-snapshot-id": -1,
        "refs": {},
        "snapshots": [],
        "statistics": [],
        "partition-statistics": [],
        "snapshot-log": [],
        "metadata-log": [],
    }
    if version == 1:
        del document["last-sequence-number"]
        document |= {"schema": document["schemas"][0], "partition-spec": [part("category", 2, 1000)]}
    if version >= 3:
        document["next-row-id"] = 0
        del document["current-snapshot-id"]
    return document | {key.replace("_", "-"): value for key, value in changes.items()}


def table(version: int = 2, **changes: Any) -> TableMetadata:
    """Return a table with two columns, partitioned by the second, without snapshots."""
    return read_table_metadata(encoded(table_json(version, **changes)))


def table_with_snapshots(count: int, version: int = 2, **changes: Any) -> TableMetadata:
    """Return a table whose snapshots 1, 2, … were appended to `main`, a second apart."""
    numbers = range(1, count + 1)
    rows = {"first_row_id": 0, "added_rows": 0} if version >= 3 else {}
    history: Json = {
        "snapshots": [
            snapshot_json(number, number if version > 1 else None, number - 1 or None, **rows)
            for number in numbers
        ],
        "snapshot_log": [
            {"snapshot-id": number, "timestamp-ms": NOW_MS + number * 1000} for number in numbers
        ],
        "current_snapshot_id": count,
        "refs": {"main": {"snapshot-id": count, "type": "branch"}},
        "last_updated_ms": NOW_MS + count * 1000,
    }
    if version > 1:
        history["last_sequence_number"] = count
    else:
        for number, snapshot in enumerate(history["snapshots"], 1):
            snapshot["timestamp-ms"] = NOW_MS + number * 1000
    return table(version, **(history | changes))


def applied(base: TableMetadata, *documents: Json, now_ms: int = NOW_MS + 60_000) -> MetadataDraft:
    """Return the draft that updates make of a base."""
    return apply_updates(base, updates_of(*documents), now_ms)


def committed(base: TableMetadata, *documents: Json, now_ms: int = NOW_MS + 60_000) -> TableMetadata:
    """Return what a commit makes of a base; what comes out is written and read again on the way."""
    metadata = applied(base, *documents, now_ms=now_ms).finish(BASE_LOCATION)
    assert read_table_metadata(metadata.to_json()) == metadata
    return metadata


def set_ref(name: str, snapshot_id: int, kind: str = "branch", **more: Any) -> Json:
    """Return a set-snapshot-ref update."""
    extra = {key.replace("_", "-"): value for key, value in more.items()}
    return {"action": "set-snapshot-ref", "ref-name": name, "snapshot-id": snapshot_id, "type": kind} | extra


def add_snapshot(snapshot: Json) -> Json:
    """Return an add-snapshot update."""
    return {"action": "add-snapshot", "snapshot": snapshot}


def view_version_json(version_id: int, *dialects: str, schema_id: int = 0, sql: str = "select 1") -> Json:
    """Return a view version's JSON with one query for each dialect."""
    return {
        "version-id": version_id,
        "timestamp-ms": NOW_MS + version_id * 1000,
        "schema-id": schema_id,
        "summary": {"engine-name": "test"},
        "default-namespace": ["db"],
        "representations": [
            {"type": "sql", "sql": sql, "dialect": dialect} for dialect in dialects or ("spark",)
        ],
    }


def view_json(*versions: Json, current: int | None = None, **changes: Any) -> Json:
    """Return the JSON of a view that had these versions one after the other."""
    shown = versions or (view_version_json(1),)
    current_id = current if current is not None else shown[-1]["version-id"]
    document: Json = {
        "view-uuid": UUID,
        "format-version": 1,
        "location": "s3://bucket/v",
        "schemas": [schema_json(column(1, "id"))],
        "current-version-id": current_id,
        "versions": list(shown),
        "version-log": [
            {"timestamp-ms": version["timestamp-ms"], "version-id": version["version-id"]}
            for version in shown
        ],
        "properties": {},
    }
    return document | {key.replace("_", "-"): value for key, value in changes.items()}


def view(*versions: Json, current: int | None = None, **changes: Any) -> ViewMetadata:
    """Return a view that had these versions one after the other."""
    return read_view_metadata(encoded(view_json(*versions, current=current, **changes)))
