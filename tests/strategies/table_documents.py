"""Strategies for table metadata as JSON: three format versions, history, and fields that no build knows."""

from __future__ import annotations

import itertools
import json
from functools import cache

from hypothesis import strategies as st

from app.engine.model.table_metadata import TableMetadata, read_table_metadata
from app.errors import InvalidMetadata
from tests.strategies.json_values import MAX_LONG, Json, mutations, texts, unknown_fields
from tests.strategies.partitions_and_orders import order_documents, spec_documents
from tests.strategies.table_schemas import evolutions, highest_id, schema_documents

START_MS = 1_700_000_000_000
VERSIONS = st.sampled_from([1, 2, 3])
LOCATIONS = st.sampled_from(["s3://bucket/t", "file:/data/t", "file:///data/t", "/data/ü t", "gs://b/t//x"])
SNAPSHOT_IDS = st.integers(0, MAX_LONG) | st.integers(0, 20) | st.integers(-MAX_LONG - 1, -2)
REF_NAMES = st.sampled_from(["audit", "v1.0", "Main", "feature/x", "ветка"])


def tables(versions: st.SearchStrategy[int] = VERSIONS) -> st.SearchStrategy[TableMetadata]:
    """Return tables with history, read from their JSON."""
    return table_documents(versions).map(lambda document: read_table_metadata(json.dumps(document).encode()))


@st.composite
def odd_tables(draw: st.DrawFn) -> TableMetadata:
    """Return tables that other writers might have left: damaged, where what is left can be read."""
    document = draw(table_documents() | early_v1_documents())
    try:
        return read_table_metadata(draw(mutations(document)))
    except InvalidMetadata:
        return read_table_metadata(json.dumps(document).encode())


@st.composite
def table_documents(draw: st.DrawFn, versions: st.SearchStrategy[int] = VERSIONS) -> dict[str, Json]:
    """Return the JSON of a table as this build writes it."""
    version = draw(versions)
    schemas = draw(_schema_lists(version))
    current = schemas[-1]
    specs = draw(_spec_lists(current, version))
    orders = [draw(order_documents(current, order_id)) for order_id in range(1, draw(st.integers(1, 2)) + 1)]
    orders = list({order["order-id"]: order for order in orders}.values())
    snapshots = draw(_snapshot_lists(version, len(schemas)))
    refs = draw(_refs([snapshot["snapshot-id"] for snapshot in snapshots]))
    log = _snapshot_log(snapshots, refs)
    document: dict[str, Json] = {
        "format-version": version,
        "table-uuid": draw(st.uuids().map(str)),
        "location": draw(LOCATIONS),
        "last-sequence-number": max((item["sequence-number"] for item in snapshots), default=0),
        "last-updated-ms": START_MS + 10_000,
        "last-column-id": max(highest_id(schema) for schema in schemas),
        "current-schema-id": current["schema-id"],
        "schema": current,
        "schemas": schemas,
        "default-spec-id": specs[-1]["spec-id"],
        "partition-spec": specs[-1]["fields"],
        "partition-specs": specs,
        "last-partition-id": max(
            999, *(field["field-id"] for spec in specs for field in spec["fields"]), 999
        ),
        "default-sort-order-id": orders[-1]["order-id"],
        "sort-orders": orders,
        "properties": draw(st.dictionaries(texts(), texts(), max_size=2)),
        "current-snapshot-id": refs["main"]["snapshot-id"] if "main" in refs else -1,
        "next-row-id": sum(item["added-rows"] for item in snapshots),
        "refs": refs,
        "snapshots": snapshots,
        "statistics": draw(_statistics(snapshots)),
        "partition-statistics": [],
        "snapshot-log": log,
        "metadata-log": [
            {"timestamp-ms": START_MS + number, "metadata-file": f"s3://bucket/t/metadata/{number}.json"}
            for number in range(draw(st.integers(0, 3)))
        ],
    }
    return _of_version(document) | draw(
        unknown_fields().filter(lambda extra: extra.keys().isdisjoint({"schema"}))
    )


def _of_version(document: dict[str, Json]) -> dict[str, Json]:
    """Leave out what a format version does not have."""
    version = document["format-version"]
    unwanted = {"next-row-id"} if version < 3 else set()
    unwanted |= {"last-sequence-number"} if version == 1 else {"schema", "partition-spec"}
    if version >= 3 and document["current-snapshot-id"] == -1:
        unwanted.add("current-snapshot-id")
    for snapshot in document["snapshots"]:
        if version == 1:
            del snapshot["sequence-number"]
        if version < 3:
            del snapshot["added-rows"], snapshot["first-row-id"]
    return {name: value for name, value in document.items() if name not in unwanted}


@st.composite
def _schema_lists(draw: st.DrawFn, version: int) -> list[Json]:
    schemas = [draw(schema_documents(version, 0, min_columns=1, with_unknown=True))]
    for schema_id in range(1, draw(st.integers(1, 3))):
        next_id = max(highest_id(schema) for schema in schemas) + 1
        schemas.append(draw(evolutions(schemas[-1], version, next_id, schema_id)))
    return schemas


@st.composite
def _spec_lists(draw: st.DrawFn, schema: Json, version: int) -> list[Json]:
    specs: list[Json] = []
    next_field_id = 1000
    for spec_id in range(draw(st.integers(1, 3))):
        spec = draw(spec_documents(schema, spec_id, 1000 if version == 1 else next_field_id))
        next_field_id += len(spec["fields"])
        specs.append(spec)
    return specs


@st.composite
def _snapshot_lists(draw: st.DrawFn, version: int, schema_count: int) -> list[Json]:
    ids = draw(st.lists(SNAPSHOT_IDS, unique=True, max_size=5))
    first_row_id = 0
    snapshots = []
    for position, snapshot_id in enumerate(ids):
        added_rows = draw(st.integers(0, 100))
        snapshot = {
            "snapshot-id": snapshot_id,
            "sequence-number": 0 if version == 1 else position + 1,
            "timestamp-ms": START_MS + position * 1000,
            "summary": {"operation": "append"} | draw(st.dictionaries(texts(), texts(), max_size=1)),
            "schema-id": draw(st.integers(0, schema_count - 1)),
            "first-row-id": first_row_id,
            "added-rows": added_rows,
        }
        first_row_id += added_rows
        if position and draw(st.booleans()):
            snapshot["parent-snapshot-id"] = ids[position - 1]
        if version == 1 and draw(st.booleans()):
            snapshot["manifests"] = ["s3://bucket/t/metadata/m0.avro"]
        else:
            snapshot["manifest-list"] = f"s3://bucket/t/metadata/snap-{position}.avro"
        snapshots.append(snapshot | draw(unknown_fields()))
    return snapshots


@st.composite
def _refs(draw: st.DrawFn, snapshot_ids: list[int]) -> dict[str, Json]:
    if not snapshot_ids:
        return {}
    any_id = st.sampled_from(snapshot_ids)
    refs = {}
    if draw(st.booleans()):
        refs["main"] = {"snapshot-id": draw(any_id), "type": "branch"} | draw(unknown_fields())
    for name in draw(st.lists(REF_NAMES, unique=True, max_size=2)):
        kind = draw(st.sampled_from(["branch", "tag"]))
        refs[name] = {"snapshot-id": draw(any_id), "type": kind} | draw(retention(kind))
    return refs


@cache
def retention(kind: str) -> st.SearchStrategy[dict[str, int]]:
    """Return retention settings that a branch or a tag can have, mostly some."""
    names = ["max-ref-age-ms"]
    if kind == "branch":
        names += ["min-snapshots-to-keep", "max-snapshot-age-ms"]
    return st.dictionaries(st.sampled_from(names), st.integers(1, 1_000_000), max_size=2)


def _snapshot_log(snapshots: list[Json], refs: dict[str, Json]) -> list[Json]:
    """Every snapshot up to main's was current once, in order."""
    if "main" not in refs:
        return []
    current = refs["main"]["snapshot-id"]
    log = []
    for snapshot in snapshots:
        log.append({"timestamp-ms": snapshot["timestamp-ms"], "snapshot-id": snapshot["snapshot-id"]})
        if snapshot["snapshot-id"] == current:
            break
    return log


@st.composite
def _statistics(draw: st.DrawFn, snapshots: list[Json]) -> list[Json]:
    numbers = itertools.count()
    return [
        statistics_document(snapshot["snapshot-id"], next(numbers)) | draw(unknown_fields())
        for snapshot in snapshots
        if draw(st.booleans())
    ]


def statistics_document(snapshot_id: int, number: int) -> dict[str, Json]:
    """Return the JSON of a statistics file."""
    return {
        "snapshot-id": snapshot_id,
        "statistics-path": f"s3://bucket/t/metadata/{number}.stats",
        "file-size-in-bytes": 400,
        "file-footer-size-in-bytes": 40,
        "blob-metadata": [
            {
                "type": "apache-datasketches-theta-v1",
                "snapshot-id": snapshot_id,
                "sequence-number": 1,
                "fields": [1],
                "properties": {"ndv": "7"},
            }
        ],
    }


@st.composite
def early_v1_documents(draw: st.DrawFn) -> dict[str, Json]:
    """Return the JSON of a v1 table whose writer knew only one schema and one spec, and no refs."""
    document = draw(table_documents(st.just(1)))
    for name in (
        "schemas",
        "partition-specs",
        "last-partition-id",
        "sort-orders",
        "default-sort-order-id",
        "refs",
    ):
        del document[name]
    for name in ("current-schema-id", "default-spec-id"):
        del document[name]
    document["schema"] = {name: value for name, value in document["schema"].items() if name != "schema-id"}
    document["partition-spec"] = [
        {name: value for name, value in field.items() if name != "field-id"}
        for field in document["partition-spec"]
    ]
    if draw(st.booleans()):
        del document["table-uuid"]
    return document
