"""Valid commits of every kind for one table with a history, in each format version: what mutations start from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx

Json = dict[str, Any]

FORMAT_VERSIONS = (1, 2, 3)
FIRST, SECOND, THIRD = 1_001, 1_002, 1_003
START_MS = 1_700_000_000_000
COLUMNS: list[Json] = [
    {"id": 1, "name": "id", "type": "long", "required": True},
    {"id": 2, "name": "note", "type": "string", "required": False, "doc": "what was said"},
    {"id": 3, "name": "at", "type": "timestamptz", "required": False},
    {
        "id": 4,
        "name": "place",
        "required": False,
        "type": {
            "type": "struct",
            "fields": [
                {"id": 5, "name": "x", "type": "double", "required": True},
                {"id": 6, "name": "y", "type": "decimal(9, 2)", "required": False},
            ],
        },
    },
]
NEXT_COLUMNS: list[Json] = [
    {
        "id": 7,
        "name": "tags",
        "required": False,
        "type": {"type": "list", "element-id": 8, "element": "string", "element-required": False},
    },
    {
        "id": 9,
        "name": "counts",
        "required": False,
        "type": {
            "type": "map",
            "key-id": 10,
            "key": "string",
            "value-id": 11,
            "value": "fixed[16]",
            "value-required": True,
        },
    },
]


def act(name: str, **fields: Any) -> Json:
    """Return an update; field names are written with underscores here."""
    return {"action": name, **{key.replace("_", "-"): value for key, value in fields.items()}}


def schema(*more: Json, schema_id: int = 0) -> Json:
    """Return a schema of the usual columns and more."""
    return {
        "type": "struct",
        "schema-id": schema_id,
        "identifier-field-ids": [1],
        "fields": [*COLUMNS, *more],
    }


def snapshot(version: int, snapshot_id: int, sequence: int, location: str, **fields: Any) -> Json:
    """Return a snapshot as a writer adds it."""
    made: Json = {
        "snapshot-id": snapshot_id,
        "timestamp-ms": START_MS + sequence * 1_000,
        "manifest-list": f"{location}/metadata/snap-{snapshot_id}.avro",
        "summary": {"operation": "append", "added-records": "3"},
        "schema-id": 0,
    }
    if version > 1:
        made["sequence-number"] = sequence
    if version > 2:
        made |= {"first-row-id": (sequence - 1) * 3, "added-rows": 3}
    return made | fields


def table_with_history(client: httpx.Client, namespace: str, version: int) -> Json:
    """Create the table that the commits are for, and return what loading it answers."""
    name = f"v{version}"
    made = client.post(
        f"/v1/namespaces/{namespace}/tables",
        json={
            "name": name,
            "schema": schema(),
            "partition-spec": {"fields": [{"name": "id_bucket", "transform": "bucket[16]", "source-id": 1}]},
            "write-order": {
                "order-id": 1,
                "fields": [
                    {"transform": "identity", "source-id": 2, "direction": "asc", "null-order": "nulls-first"}
                ],
            },
            "properties": {"format-version": str(version), "owner": "ada"},
        },
    ).raise_for_status()
    location = made.json()["metadata"]["location"]
    updates = [
        act("add-snapshot", snapshot=snapshot(version, FIRST, 1, location)),
        act("add-snapshot", snapshot=snapshot(version, SECOND, 2, location, **{"parent-snapshot-id": FIRST})),
        act("set-snapshot-ref", ref_name="main", type="branch", snapshot_id=FIRST),
        act("set-snapshot-ref", ref_name="main", type="branch", snapshot_id=SECOND),
        act("set-snapshot-ref", ref_name="audit", type="branch", snapshot_id=FIRST, min_snapshots_to_keep=2),
        act("set-snapshot-ref", ref_name="v1.0", type="tag", snapshot_id=FIRST, max_ref_age_ms=86_400_000),
        act("add-schema", schema=schema(*NEXT_COLUMNS[:1], schema_id=1)),
        act("add-spec", spec={"fields": []}),
        act("add-sort-order", sort_order={"order-id": 0, "fields": []}),
        act("set-statistics", statistics=statistics(location)),
        act("set-partition-statistics", partition_statistics=partition_statistics(location)),
    ]
    path = f"/v1/namespaces/{namespace}/tables/{name}"
    loaded: Json = client.post(path, json={"requirements": [], "updates": updates}).raise_for_status().json()
    return loaded


def statistics(location: str, snapshot_id: int = FIRST) -> Json:
    """Return a statistics file."""
    blob = {
        "type": "apache-datasketches-theta-v1",
        "snapshot-id": snapshot_id,
        "sequence-number": 1,
        "fields": [1],
        "properties": {"ndv": "3"},
    }
    return {
        "snapshot-id": snapshot_id,
        "statistics-path": f"{location}/metadata/{snapshot_id}.stats",
        "file-size-in-bytes": 413,
        "file-footer-size-in-bytes": 42,
        "key-metadata": "a2V5",
        "blob-metadata": [blob],
    }


def partition_statistics(location: str, snapshot_id: int = FIRST) -> Json:
    """Return a partition statistics file."""
    path = f"{location}/metadata/{snapshot_id}.parquet"
    return {"snapshot-id": snapshot_id, "statistics-path": path, "file-size-in-bytes": 43}


def valid_commits(metadata: Mapping[str, Any]) -> list[Json]:
    """Return commits that the table of `table_with_history` takes, one after another or each alone."""
    version, location = metadata["format-version"], metadata["location"]
    third = snapshot(version, THIRD, 3, location, **{"parent-snapshot-id": SECOND})
    main_at_third = act("set-snapshot-ref", ref_name="main", type="branch", snapshot_id=THIRD)
    uuid: Json = {"type": "assert-table-uuid", "uuid": metadata["table-uuid"]}
    main: Json = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": SECOND}
    absent: Json = {"type": "assert-ref-snapshot-id", "ref": "new", "snapshot-id": None}
    key = {
        "key-id": "k1",
        "encrypted-key-metadata": "a2V5",
        "encrypted-by-id": "k0",
        "properties": {"a": "b"},
    }
    spec_fields = [
        {"name": "at_day", "transform": "day", "source-id": 3, "field-id": 1000 if version == 1 else 1001},
        {
            "name": "note_start",
            "transform": "truncate[4]",
            "source-id": 2,
            "field-id": 1001 if version == 1 else 1002,
        },
    ]
    sort_field = {"transform": "hour", "source-id": 3, "direction": "desc", "null-order": "nulls-last"}
    next_schema = schema(*NEXT_COLUMNS, schema_id=2)
    if version > 2:
        dated = {"id": 12, "name": "born", "type": "date", "required": False}
        next_schema["fields"].append(
            {**dated, "initial-default": "2024-02-29", "write-default": "2024-03-01"}
        )
    commits: list[list[Json]] = [
        [uuid, main],
        [act("add-snapshot", snapshot=third), main_at_third],
        [uuid, {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 8}],
        [
            act("add-schema", schema=next_schema, last_column_id=11),
            act("set-current-schema", schema_id=-1),
        ],
        [
            {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 1000},
            {"type": "assert-default-spec-id", "default-spec-id": 0},
        ],
        [
            act("add-spec", spec={"spec-id": 2, "fields": spec_fields[: 1 if version == 1 else 2]}),
            act("set-default-spec", spec_id=-1),
        ],
        [{"type": "assert-default-sort-order-id", "default-sort-order-id": 1}],
        [
            act("add-sort-order", sort_order={"order-id": 2, "fields": [sort_field]}),
            act("set-default-sort-order", sort_order_id=-1),
        ],
        [{"type": "assert-current-schema-id", "current-schema-id": 0}],
        [act("set-current-schema", schema_id=1), act("remove-schemas", schema_ids=[0])],
        [absent],
        [
            act("set-snapshot-ref", ref_name="new", type="branch", snapshot_id=FIRST, max_snapshot_age_ms=1),
            act("set-snapshot-ref", ref_name="t", type="tag", snapshot_id=SECOND, max_ref_age_ms=2**40),
            act("remove-snapshot-ref", ref_name="v1.0"),
        ],
        [],
        [
            act("remove-snapshot-ref", ref_name="audit"),
            act("remove-snapshot-ref", ref_name="v1.0"),
            act("remove-snapshots", snapshot_ids=[FIRST]),
            act("remove-partition-specs", spec_ids=[1]),
        ],
        [],
        [
            act("set-properties", updates={"write.metadata.previous-versions-max": "3", "größe": "ü"}),
            act("remove-properties", removals=["owner", "absent"]),
            act("set-location", location=f"{location}/elsewhere"),
            act("upgrade-format-version", format_version=min(version + 1, 3)),
            act("assign-uuid", uuid=metadata["table-uuid"]),
        ],
        [],
        [
            act("set-statistics", snapshot_id=SECOND, statistics=statistics(location, SECOND)),
            act("remove-statistics", snapshot_id=FIRST),
            act("set-partition-statistics", partition_statistics=partition_statistics(location, SECOND)),
            act("remove-partition-statistics", snapshot_id=FIRST),
            act("add-encryption-key", encryption_key=key),
            act("remove-encryption-key", key_id="k9"),
        ],
    ]
    pairs = zip(commits[::2], commits[1::2], strict=True)
    return [{"requirements": requirements, "updates": updates} for requirements, updates in pairs]


def creation(metadata: Mapping[str, Any]) -> Json:
    """Return the commit that makes such a table anew, as a client commits a staged one."""
    version, location = metadata["format-version"], metadata["location"]
    return {
        "requirements": [{"type": "assert-create"}],
        "updates": [
            act("assign-uuid", uuid="0e4d5ad5-9d5c-4a4b-8f3f-6d1a4d3a2c11"),
            act("upgrade-format-version", format_version=version),
            act("add-schema", schema=schema()),
            act("set-current-schema", schema_id=-1),
            act("add-spec", spec=metadata["partition-specs"][0]),
            act("set-default-spec", spec_id=-1),
            act("add-sort-order", sort_order=metadata["sort-orders"][0]),
            act("set-default-sort-order", sort_order_id=-1),
            act("set-location", location=f"{location}-anew"),
            act("set-properties", updates={"owner": "ada"}),
            act("add-snapshot", snapshot=snapshot(version, FIRST, 1, location)),
            act("set-snapshot-ref", ref_name="main", type="branch", snapshot_id=FIRST),
        ],
    }
