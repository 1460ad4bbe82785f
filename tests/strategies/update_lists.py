"""Strategies for update lists: some that mostly work on a table, and some that are nearly noise."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from app.engine.change.updates import ACTIONS, Update
from app.engine.model.table_metadata import TableMetadata
from tests.strategies.json_values import MAX_LONG, Json, edge_integers, json_values, texts
from tests.strategies.partitions_and_orders import order_documents, spec_documents
from tests.strategies.table_documents import REF_NAMES, SNAPSHOT_IDS, START_MS, retention, statistics_document
from tests.strategies.table_schemas import evolutions, primitives

_UPDATES: TypeAdapter[tuple[Update, ...]] = TypeAdapter(tuple[Update, ...])


def parse_updates(documents: Sequence[Json]) -> tuple[Update, ...]:
    """Return the updates that a request with this JSON holds."""
    return _UPDATES.validate_json(json.dumps(list(documents)), by_alias=True, by_name=False)


# ------------------------------------------------------------------------------------------------ sensible


@st.composite
def sensible_updates(draw: st.DrawFn, base: TableMetadata, max_size: int = 5) -> tuple[Update, ...]:
    """Return updates of which each makes sense for the table; together they may still contradict each other."""
    documents: list[Json] = []
    for _ in range(draw(st.integers(1, max_size))):
        documents += draw(_sensible_steps(base))
    return parse_updates(documents)


@st.composite
def _sensible_steps(draw: st.DrawFn, base: TableMetadata) -> list[Json]:
    schema = base.current_schema.to_object()
    present = sorted(base.snapshots_by_id)
    steps: list[st.SearchStrategy[list[Json]]] = [
        _schema_step(base),
        _spec_step(base),
        order_documents(schema, 1).map(
            lambda order: [
                {"action": "add-sort-order", "sort-order": order},
                {"action": "set-default-sort-order", "sort-order-id": -1},
            ]
        ),
        appends(base),
        st.dictionaries(texts(), texts(), max_size=2).map(
            lambda updates: [{"action": "set-properties", "updates": updates}]
        ),
        st.lists(st.sampled_from(["a", *base.properties]), max_size=2).map(
            lambda removals: [{"action": "remove-properties", "removals": removals}]
        ),
        st.sampled_from(["s3://bucket/t", "s3://bucket/u/"]).map(
            lambda location: [{"action": "set-location", "location": location}]
        ),
        st.integers(base.format_version, 3).map(
            lambda version: [{"action": "upgrade-format-version", "format-version": version}]
        ),
        st.sampled_from(["main", *base.snapshot_refs]).map(
            lambda name: [{"action": "remove-snapshot-ref", "ref-name": name}]
        ),
        st.lists(st.sampled_from([*present, 12345]), max_size=3).map(
            lambda doomed: [{"action": "remove-snapshots", "snapshot-ids": doomed}]
        ),
        st.lists(st.sampled_from([item.schema_id for item in base.schemas]), max_size=2).map(
            lambda ids: [{"action": "remove-schemas", "schema-ids": ids}]
        ),
        st.lists(st.sampled_from([item.spec_id for item in base.partition_specs]), max_size=2).map(
            lambda ids: [{"action": "remove-partition-specs", "spec-ids": ids}]
        ),
        st.sampled_from(["k1", "k2"]).map(
            lambda name: [
                {
                    "action": "add-encryption-key",
                    "encryption-key": {"key-id": name, "encrypted-key-metadata": "c2VjcmV0"},
                }
            ]
        ),
        st.sampled_from(["k1", "k2"]).map(lambda name: [{"action": "remove-encryption-key", "key-id": name}]),
    ]
    if present:
        steps += [
            refs_to(st.sampled_from(present)).map(lambda update: [update]),
            st.sampled_from(present).map(lambda item: [_set_statistics(item)]),
            st.sampled_from(present).map(lambda item: [{"action": "remove-statistics", "snapshot-id": item}]),
            st.sampled_from(present).map(lambda item: [_set_partition_statistics(item)]),
            st.sampled_from(present).map(
                lambda item: [{"action": "remove-partition-statistics", "snapshot-id": item}]
            ),
        ]
    return draw(st.one_of(steps))


def _set_statistics(snapshot_id: int) -> Json:
    return {"action": "set-statistics", "statistics": statistics_document(snapshot_id, 99)}


def _set_partition_statistics(snapshot_id: int) -> Json:
    file = {"snapshot-id": snapshot_id, "statistics-path": "s3://b/p", "file-size-in-bytes": 1}
    return {"action": "set-partition-statistics", "partition-statistics": file}


@st.composite
def _schema_step(draw: st.DrawFn, base: TableMetadata) -> list[Json]:
    schema = base.current_schema.to_object()
    evolved = draw(evolutions(schema, base.format_version, base.last_column_id + 1, 77))
    return [
        {"action": "add-schema", "schema": evolved},
        {"action": "set-current-schema", "schema-id": draw(st.sampled_from([-1, base.current_schema_id]))},
    ]


@st.composite
def _spec_step(draw: st.DrawFn, base: TableMetadata) -> list[Json]:
    first = 1000 if base.format_version == 1 else (base.last_partition_id or 999) + 1
    spec = draw(spec_documents(base.current_schema.to_object(), 55, first))
    return [{"action": "add-spec", "spec": spec}, {"action": "set-default-spec", "spec-id": -1}]


@st.composite
def appends(draw: st.DrawFn, base: TableMetadata, ref: str | None = None) -> list[Json]:
    """Return the two updates of an append; a second one in the same list is stale."""
    taken = base.snapshots_by_id.keys()
    snapshot_id = draw(SNAPSHOT_IDS.filter(lambda item: item not in taken))
    snapshot: dict[str, Json] = {
        "snapshot-id": snapshot_id,
        "timestamp-ms": START_MS + draw(st.integers(-100_000, 100_000)),
        "manifest-list": "s3://bucket/t/metadata/snap-new.avro",
        "summary": {"operation": "append"},
        "schema-id": base.current_schema_id,
    }
    if base.current_snapshot is not None:
        snapshot["parent-snapshot-id"] = base.current_snapshot.snapshot_id
    if base.format_version > 1:
        snapshot["sequence-number"] = base.last_sequence + 1
    if base.format_version >= 3:
        snapshot |= {"first-row-id": base.next_row_id, "added-rows": draw(st.integers(0, 100))}
    name = ref or draw(st.just("main") | REF_NAMES)
    return [
        {"action": "add-snapshot", "snapshot": snapshot},
        {"action": "set-snapshot-ref", "ref-name": name, "snapshot-id": snapshot_id, "type": "branch"},
    ]


@st.composite
def refs_to(draw: st.DrawFn, snapshot_ids: st.SearchStrategy[int]) -> Json:
    """Return an update that sets a branch or a tag."""
    name = draw(st.just("main") | REF_NAMES)
    kind = "branch" if name == "main" else draw(st.sampled_from(["branch", "tag"]))
    return {
        "action": "set-snapshot-ref",
        "ref-name": name,
        "snapshot-id": draw(snapshot_ids),
        "type": kind,
    } | draw(retention(kind))


# ---------------------------------------------------------------------------------------------------- wild

_IDS = edge_integers()
_NAMES = st.sampled_from(["", "a", "b", "a.b", "main", "list", "part", "ü"]) | texts()
_TRANSFORMS = st.sampled_from(
    [*("identity void year hour day bucket[4] truncate[2] BUCKET[4] bucket[0] bucket[] zorder".split()), ""]
) | st.integers().map(lambda number: f"bucket[{number}]")


@st.composite
def _wild_types(draw: st.DrawFn, depth: int = 3) -> Json:
    shape = draw(st.sampled_from(["primitive"] * 3 + ["struct", "list", "map"])) if depth else "primitive"
    match shape:
        case "struct":
            return {"type": "struct", "fields": draw(_wild_fields(depth - 1))}
        case "list":
            return {
                "type": "list",
                "element-id": draw(_IDS),
                "element-required": draw(st.booleans()),
                "element": draw(_wild_types(depth - 1)),
            }
        case "map":
            return {
                "type": "map",
                "key-id": draw(_IDS),
                "key": draw(_wild_types(depth - 1)),
                "value-id": draw(_IDS),
                "value-required": draw(st.booleans()),
                "value": draw(_wild_types(depth - 1)),
            }
    return draw(primitives(3) | st.sampled_from(["fixed[99999999999]", "decimal(39,0)", "INT", "int[]", ""]))


@st.composite
def _wild_fields(draw: st.DrawFn, depth: int) -> list[Json]:
    return [
        {
            "id": draw(_IDS),
            "name": draw(_NAMES),
            "required": draw(st.booleans()),
            "type": draw(_wild_types(depth)),
        }
        | draw(st.dictionaries(st.sampled_from(["initial-default", "write-default", "doc"]), json_values()))
        for _ in range(draw(st.integers(0, 3)))
    ]


@st.composite
def _wild_schemas(draw: st.DrawFn) -> Json:
    return {
        "type": "struct",
        "schema-id": draw(_IDS),
        "fields": draw(_wild_fields(3)),
        "identifier-field-ids": draw(st.lists(_IDS, max_size=2)),
    }


@st.composite
def _wild_specs(draw: st.DrawFn) -> Json:
    fields = st.fixed_dictionaries(
        {"name": _NAMES, "transform": _TRANSFORMS},
        optional={
            "source-id": _IDS,
            "source-ids": st.lists(_IDS),
            "field-id": _IDS,
            "field_id": _IDS,
            "self": _IDS,
        },
    )
    return {"fields": draw(st.lists(fields, max_size=3))} | draw(
        st.dictionaries(st.sampled_from(["spec-id", "spec_id", "_fields_set"]), _IDS)
    )


@st.composite
def _wild_orders(draw: st.DrawFn) -> Json:
    fields = st.fixed_dictionaries(
        {
            "transform": _TRANSFORMS,
            "source-id": _IDS,
            "direction": st.sampled_from(["asc", "desc", "up"]),
            "null-order": st.sampled_from(["nulls-first", "nulls-last"]),
        }
    )
    return {"order-id": draw(_IDS), "fields": draw(st.lists(fields, max_size=2))}


@st.composite
def _wild_snapshots(draw: st.DrawFn, known_ids: st.SearchStrategy[int]) -> Json:
    required = {"snapshot-id": known_ids | _IDS, "timestamp-ms": _IDS | st.just(START_MS)}
    optional: dict[Any, st.SearchStrategy[Any]] = {
        "parent-snapshot-id": known_ids | _IDS,
        "sequence-number": _IDS,
        "manifest-list": texts(),
        "manifests": st.lists(texts(), max_size=1),
        "summary": st.dictionaries(texts(), texts(), max_size=1),
        "schema-id": _IDS,
        "first-row-id": _IDS | st.just(MAX_LONG),
        "added-rows": _IDS,
        "snapshot_id": _IDS,
    }
    return draw(st.fixed_dictionaries(required, optional=optional))


@st.composite
def wild_update_documents(draw: st.DrawFn, base: TableMetadata | None = None) -> Json:
    """Return the JSON of an update of any kind whose parts are of the right sort, and otherwise anything."""
    ids = st.sampled_from(sorted(base.snapshots_by_id)) if base and base.snapshots else SNAPSHOT_IDS
    parts: dict[str, st.SearchStrategy[Json]] = {
        "uuid": st.uuids().map(str) | texts() | st.just(base.uuid if base else ""),
        "format-version": st.integers(-1, 5) | _IDS,
        "schema": _wild_schemas(),
        "schema-id": _IDS,
        "spec": _wild_specs(),
        "spec-id": _IDS,
        "sort-order": _wild_orders(),
        "sort-order-id": _IDS,
        "snapshot": _wild_snapshots(ids),
        "snapshot-id": ids | _IDS,
        "snapshot-ids": st.lists(ids | _IDS, max_size=3),
        "ref-name": _NAMES,
        "type": st.sampled_from(["branch", "tag", "BRANCH", "TAG", "other"]),
        "min-snapshots-to-keep": _IDS,
        "max-snapshot-age-ms": _IDS,
        "max-ref-age-ms": _IDS,
        "location": texts() | st.sampled_from(["/", "//", "s3://", "s3://b//"]),
        "updates": st.dictionaries(
            texts() | st.sampled_from(["write.metadata.previous-versions-max", "gc.enabled"]),
            texts() | st.sampled_from(["-1", "9" * 30, "٣", "1_0", "true"]),
            max_size=2,
        ),
        "removals": st.lists(texts(), max_size=2),
        "statistics": ids.map(lambda item: statistics_document(item, 0)),
        "partition-statistics": ids.map(lambda item: _set_partition_statistics(item)["partition-statistics"]),
        "spec-ids": st.lists(_IDS, max_size=2),
        "schema-ids": st.lists(_IDS, max_size=2),
        "encryption-key": st.just({"key-id": "k", "encrypted-key-metadata": "AA=="}),
        "key-id": texts(),
        "view-version": st.just({}),
        "view-version-id": _IDS,
    }
    action = draw(st.sampled_from(sorted(ACTIONS)))
    document = {name: draw(parts[name]) for name in PARTS[action] if draw(st.integers(0, 19))}
    return {"action": action} | document


PARTS = {
    "assign-uuid": ["uuid"],
    "upgrade-format-version": ["format-version"],
    "add-schema": ["schema"],
    "set-current-schema": ["schema-id"],
    "add-spec": ["spec"],
    "set-default-spec": ["spec-id"],
    "add-sort-order": ["sort-order"],
    "set-default-sort-order": ["sort-order-id"],
    "add-snapshot": ["snapshot"],
    "set-snapshot-ref": ["ref-name", "snapshot-id", "type", "min-snapshots-to-keep", "max-ref-age-ms"],
    "remove-snapshots": ["snapshot-ids"],
    "remove-snapshot-ref": ["ref-name"],
    "set-location": ["location"],
    "set-properties": ["updates"],
    "remove-properties": ["removals"],
    "set-statistics": ["statistics"],
    "remove-statistics": ["snapshot-id"],
    "set-partition-statistics": ["partition-statistics"],
    "remove-partition-statistics": ["snapshot-id"],
    "remove-partition-specs": ["spec-ids"],
    "remove-schemas": ["schema-ids"],
    "add-encryption-key": ["encryption-key"],
    "remove-encryption-key": ["key-id"],
    "add-view-version": ["view-version"],
    "set-current-view-version": ["view-version-id"],
}
"""The parts of each update, so that most of them parse."""


@st.composite
def wild_updates(draw: st.DrawFn, base: TableMetadata | None = None) -> tuple[Update, ...]:
    """Return updates that parse and otherwise make no sense; those that do not parse are left out."""
    updates: list[Update] = []
    for _ in range(draw(st.integers(1, 8))):
        if base is not None and draw(st.booleans()):
            updates += draw(sensible_updates(base, 1))
            continue
        try:
            updates += parse_updates([draw(wild_update_documents(base))])
        except ValidationError:
            continue
    return tuple(updates)
