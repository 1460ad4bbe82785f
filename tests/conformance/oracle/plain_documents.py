"""One small table and one small view, for examples that are written out."""

from __future__ import annotations

import copy

from tests.conformance.oracle.outcomes import Json
from tests.conformance.oracle.table_documents import START_MS, TABLE_LOCATION, UUID
from tests.conformance.oracle.view_documents import VIEW_LOCATION

COLUMNS: list[Json] = [
    {"id": 1, "name": "id", "required": True, "type": "long"},
    {"id": 2, "name": "name", "required": False, "type": "string"},
    {"id": 3, "name": "day", "required": False, "type": "date"},
]
OTHER_UUID = "0e4d5ad5-9d5c-4a4b-8f3f-6d1a4d3a2c11"


def schema_of(*fields: Json, schema_id: int = 0) -> Json:
    """Return a schema of these fields."""
    return {"type": "struct", "schema-id": schema_id, "fields": list(fields)}


def table(format_version: int = 2, snapshot_count: int = 2, **changes: object) -> Json:
    """Return a table with a line of snapshots 1, 2, …, of which `main` is the last and the tag `first` the first.

    Fields to change are written with underscores.
    """
    document: Json = {
        "format-version": format_version,
        "table-uuid": UUID,
        "location": TABLE_LOCATION,
        "last-updated-ms": START_MS + 10_000,
        "last-column-id": 3,
        "schemas": [schema_of(*COLUMNS), schema_of(*COLUMNS[:1], schema_id=1)],
        "current-schema-id": 0,
        "partition-specs": [
            {"spec-id": 0, "fields": []},
            {
                "spec-id": 1,
                "fields": [
                    {"name": "name_truncate", "transform": "truncate[4]", "source-id": 2, "field-id": 1000}
                ],
            },
        ],
        "default-spec-id": 0,
        "last-partition-id": 1000,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": {},
        "refs": {},
        "snapshots": [snapshot(number, format_version) for number in range(1, snapshot_count + 1)],
        "snapshot-log": [
            {"timestamp-ms": START_MS + number, "snapshot-id": number}
            for number in range(1, snapshot_count + 1)
        ],
        "metadata-log": [],
        "statistics": [],
        "partition-statistics": [],
    }
    if snapshot_count:
        document["current-snapshot-id"] = snapshot_count
        document["refs"] = {
            "main": {"snapshot-id": snapshot_count, "type": "branch"},
            "first": {"snapshot-id": 1, "type": "tag"},
        }
    if format_version > 1:
        document["last-sequence-number"] = snapshot_count
    if format_version > 2:
        document["next-row-id"] = 10 * snapshot_count
    document.update({name.replace("_", "-"): value for name, value in changes.items()})
    return copy.deepcopy(document)


def snapshot(number: int, format_version: int = 2, **changes: object) -> Json:
    """Return the snapshot with this id, sequence number and time, child of the one before."""
    document: Json = {
        "snapshot-id": number,
        "timestamp-ms": START_MS + number,
        "manifest-list": f"{TABLE_LOCATION}/metadata/snap-{number}.avro",
        "summary": {"operation": "append"},
    }
    if number > 1:
        document["parent-snapshot-id"] = number - 1
    if format_version > 1:
        document["sequence-number"] = number
    if format_version > 2:
        document.update({"first-row-id": 10 * (number - 1), "added-rows": 10})
    document.update({name.replace("_", "-"): value for name, value in changes.items()})
    return document


def view(**changes: object) -> Json:
    """Return a view of one version."""
    document: Json = {
        "view-uuid": UUID,
        "format-version": 1,
        "location": VIEW_LOCATION,
        "schemas": [schema_of(*COLUMNS)],
        "current-version-id": 1,
        "versions": [view_version(1)],
        "version-log": [{"timestamp-ms": START_MS + 1, "version-id": 1}],
        "properties": {},
    }
    document.update({name.replace("_", "-"): value for name, value in changes.items()})
    return copy.deepcopy(document)


def view_version(number: int, schema_id: int = 0, *dialects: str) -> Json:
    """Return a version with a query of its own in each dialect, Spark's if none is named."""
    return {
        "version-id": number,
        "timestamp-ms": START_MS + number,
        "schema-id": schema_id,
        "summary": {},
        "default-namespace": ["db"],
        "representations": [
            {"type": "sql", "sql": f"SELECT {number}", "dialect": dialect}
            for dialect in dialects or ("spark",)
        ],
    }
