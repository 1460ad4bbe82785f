"""Random table metadata with a history, in format versions 1, 2 and 3, as JSON."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn as Draw

from tests.conformance.oracle.columns import all_ids, evolved, orders, rarely, schemas, specs, walk
from tests.conformance.oracle.outcomes import Json

START_MS = 1_700_000_000_000
"""All times of a document are near this one, so that the real clock is easily told from them."""
UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
TABLE_LOCATION = "s3://bucket/warehouse/db/table"
SNAPSHOT_IDS = (11, 12, 13, 14, 15, 3_051_729_675_574_597_004, 9_223_372_036_854_775_807, 0)
REF_NAMES = ("audit", "weekly", "main2", "Main")


def snapshot(
    draw: Draw, snapshot_id: int, parent_id: int | None, *, version: int, sequence: int, timestamp_ms: int
) -> Json:
    """Return one snapshot without row ids."""
    document: Json = {
        "snapshot-id": snapshot_id,
        "timestamp-ms": timestamp_ms,
        "manifest-list": f"{TABLE_LOCATION}/metadata/snap-{snapshot_id}.avro",
        "summary": {"operation": draw(st.sampled_from(("append", "overwrite"))), "added-records": "3"},
    }
    if parent_id is not None:
        document["parent-snapshot-id"] = parent_id
    if version > 1:
        document["sequence-number"] = sequence
    if draw(st.booleans()):
        document["schema-id"] = 0
    return document


def retention(draw: Draw, kind: str) -> Json:
    """Return the retention settings of a ref, mostly none."""
    settings: Json = {}
    if rarely(draw, 4):
        settings["max-ref-age-ms"] = draw(st.sampled_from((1, 86_400_000)))
    if kind == "branch" and rarely(draw, 4):
        settings["min-snapshots-to-keep"] = draw(st.integers(1, 5))
    if kind == "branch" and rarely(draw, 4):
        settings["max-snapshot-age-ms"] = draw(st.sampled_from((1, 86_400_000)))
    return settings


def statistics_file(draw: Draw, snapshot_id: int) -> Json:
    """Return a statistics file with at most one blob."""
    number = draw(st.integers(0, 99))
    blob: Json = {"type": "apache-datasketches-theta-v1", "snapshot-id": snapshot_id}
    blob.update({"sequence-number": 1, "fields": [1], "properties": {"ndv": str(number)}})
    return {
        "snapshot-id": snapshot_id,
        "statistics-path": f"{TABLE_LOCATION}/metadata/{snapshot_id}-{number}.stats",
        "file-size-in-bytes": 413,
        "file-footer-size-in-bytes": 42,
        "blob-metadata": [blob] if draw(st.booleans()) else [],
    }


def partition_statistics_file(draw: Draw, snapshot_id: int) -> Json:
    """Return a partition statistics file."""
    number = draw(st.integers(0, 99))
    return {
        "snapshot-id": snapshot_id,
        "statistics-path": f"{TABLE_LOCATION}/metadata/{snapshot_id}-{number}.parquet",
        "file-size-in-bytes": 43,
    }


def encryption_key(draw: Draw) -> Json:
    """Return one of a few keys; the same id may come with other contents."""
    key: Json = {"key-id": draw(st.sampled_from(("k1", "k2"))), "encrypted-key-metadata": "aGVsbG8="}
    if draw(st.booleans()):
        key["encrypted-by-id"] = "kms-1"
    if draw(st.booleans()):
        key["properties"] = {"algorithm": "AES"}
    return key


@st.composite
def table_documents(draw: Draw, *, versions: tuple[int, ...] = (1, 2, 3)) -> Json:
    """Return valid metadata as a writer of that version would have left it."""
    version = draw(st.sampled_from(versions))
    document: Json = {
        "format-version": version,
        "table-uuid": UUID,
        "location": TABLE_LOCATION,
        "properties": draw(
            st.sampled_from(({}, {"owner": "o"}, {"write.metadata.previous-versions-max": "2"}))
        ),
    }
    _add_columns(draw, document, version)
    _add_snapshots(draw, document, version)
    _add_logs(draw, document)
    _add_statistics(draw, document)
    if version >= 3 and rarely(draw, 4):
        document["encryption-keys"] = [encryption_key(draw)]
    return document


def _add_columns(draw: Draw, document: Json, version: int) -> None:
    history = [draw(schemas(version=version, sloppy=False))]
    highest = max(all_ids(history[0]))
    for _ in range(draw(st.integers(0, 2))):
        changed = _valid(draw(evolved(history[-1], highest, version, sloppy=False)))
        if all({**changed, "schema-id": 0} != {**known, "schema-id": 0} for known in history):
            history.append({**changed, "schema-id": len(history)})
            highest = max(highest, *all_ids(changed))
    history = [_valid(schema) for schema in history]
    current = history[-1] if not rarely(draw, 6) else draw(st.sampled_from(history))
    known_specs: list[Json] = []
    last_partition_id = 999
    for schema in draw(st.sampled_from(([current], [current], [history[0], current]))):
        spec = draw(specs(schema, last_partition_id, with_ids=True, sloppy=False))
        spec["fields"] = [field for field in spec["fields"] if _still_fits(field, schema, current)]
        if version == 1:
            for position, field in enumerate(spec["fields"]):
                field["field-id"] = 1000 + position
        known_specs.append({"spec-id": len(known_specs), **spec})
        last_partition_id = max(last_partition_id, *(field["field-id"] for field in spec["fields"]), 999)
    known_orders = [{"order-id": 0, "fields": []}]
    order = draw(orders(current, sloppy=False))
    if order["fields"]:
        known_orders.append({**order, "order-id": 1})
    document.update(
        {
            "last-column-id": highest + draw(st.integers(0, 1)),
            "schemas": history,
            "current-schema-id": current["schema-id"],
            "partition-specs": known_specs,
            "default-spec-id": known_specs[-1]["spec-id"],
            "last-partition-id": last_partition_id,
            "sort-orders": known_orders,
            "default-sort-order-id": draw(st.sampled_from(known_orders))["order-id"],
        }
    )
    if version == 1:
        document["schema"] = current
        document["partition-spec"] = known_specs[-1]["fields"]


def _still_fits(field: Json, old: Json, current: Json) -> bool:
    """Tell whether a partition field of an old schema can be read with the current one."""
    types = [
        {field_id: kind for field_id, _name, kind, _plain in walk(schema)}.get(field["source-id"])
        for schema in (old, current)
    ]
    ids = {name: field_id for field_id, name, _type, _plain in walk(current)}
    return types[1] in (None, types[0]) and ids.get(field["name"]) in (None, field["source-id"])


def _valid(schema: Json) -> Json:
    """Take out of a schema what no writer writes: a field twice."""
    seen_ids: set[int] = set()
    seen_names: set[str] = set()
    kept = []
    for field in schema["fields"]:
        ids = set(all_ids({"fields": [field]}))
        if not ids & seen_ids and field["name"] not in seen_names:
            kept.append(field)
            seen_ids |= ids
            seen_names.add(field["name"])
    return {**schema, "fields": kept}


def _add_snapshots(draw: Draw, document: Json, version: int) -> None:
    count = draw(st.integers(0, 4))
    ids = draw(st.lists(st.sampled_from(SNAPSHOT_IDS), min_size=count, max_size=count, unique=True))
    # A table that was upgraded has snapshots of the time before.
    upgraded_at = draw(st.integers(0, count)) if rarely(draw, 4) else 0
    snapshots = []
    next_row_id = 0
    for position, snapshot_id in enumerate(ids):
        parent = ids[position - 1] if position else (77 if rarely(draw, 8) else None)
        made_as = version if position >= upgraded_at else version - 1
        item = snapshot(
            draw,
            snapshot_id,
            parent,
            version=made_as,
            sequence=position + 1,
            timestamp_ms=START_MS + 1_000 * position,
        )
        if made_as >= 3:
            added = draw(st.integers(0, 50))
            item.update({"first-row-id": next_row_id, "added-rows": added})
            next_row_id += added
        snapshots.append(item)
    document["snapshots"] = snapshots
    document["last-updated-ms"] = START_MS + 10_000
    if version > 1:
        document["last-sequence-number"] = count + draw(st.integers(0, 1))
    if version >= 3:
        document["next-row-id"] = next_row_id
    refs: Json = {}
    if ids and not rarely(draw, 8):
        current = ids[-1] if not rarely(draw, 4) else draw(st.sampled_from(ids))
        document["current-snapshot-id"] = current
        refs["main"] = {"snapshot-id": current, "type": "branch", **retention(draw, "branch")}
    elif version < 3:
        document["current-snapshot-id"] = -1
    if ids:
        for name in draw(st.lists(st.sampled_from(REF_NAMES), max_size=2, unique=True)):
            kind = draw(st.sampled_from(("branch", "tag")))
            refs[name] = {"snapshot-id": draw(st.sampled_from(ids)), "type": kind, **retention(draw, kind)}
    document["refs"] = refs


def _add_logs(draw: Draw, document: Json) -> None:
    log: list[dict[str, Any]] = []
    current = document.get("current-snapshot-id", -1)
    if current != -1:
        log = [
            {"timestamp-ms": item["timestamp-ms"], "snapshot-id": item["snapshot-id"]}
            for item in document["snapshots"]
        ]
        if log[-1]["snapshot-id"] != current:
            log.append({"timestamp-ms": START_MS + 9_000, "snapshot-id": current})
        log = log[draw(st.integers(0, len(log) - 1)) :]
    document["snapshot-log"] = log
    document["metadata-log"] = [
        {"timestamp-ms": START_MS + 100 * number, "metadata-file": f"{TABLE_LOCATION}/metadata/{number}.json"}
        for number in range(draw(st.integers(0, 3)))
    ]


def _add_statistics(draw: Draw, document: Json) -> None:
    document["statistics"] = []
    document["partition-statistics"] = []
    for item in document["snapshots"]:
        if rarely(draw, 4):
            document["statistics"].append(statistics_file(draw, item["snapshot-id"]))
        if rarely(draw, 4):
            document["partition-statistics"].append(partition_statistics_file(draw, item["snapshot-id"]))
