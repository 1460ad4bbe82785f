"""Random lists of table updates: the moves that clients make, in any order, mixed with single updates of any kind."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn as Draw

from tests.conformance.oracle.columns import all_ids, evolved, orders, rarely, schemas, specs
from tests.conformance.oracle.outcomes import Json
from tests.conformance.oracle.table_documents import (
    REF_NAMES,
    SNAPSHOT_IDS,
    START_MS,
    TABLE_LOCATION,
    UUID,
    encryption_key,
    partition_statistics_file,
    retention,
    snapshot,
    statistics_file,
)

MOST_MOVES = 5
LAST_ADDED = -1
UNKNOWN_ID = 5
PROPERTIES: tuple[dict[str, str], ...] = (
    {"owner": "me"},
    {"owner": "me", "empty": "", "größe": "ü"},
    {"write.metadata.previous-versions-max": "1"},
    {"write.metadata.previous-versions-max": "3"},
    {"write.metadata.previous-versions-max": "-4"},
    {"write.metadata.previous-versions-max": "many"},
    {"commit.retry.num-retries": "7"},
    {"format-version": "3"},
    {},
)


@dataclass
class Sketch:
    """What the moves so far have probably made of the table: enough to make the next one fit, no engine."""

    version: int
    schema: Json
    last_column_id: int
    last_partition_id: int
    snapshot_ids: list[int]
    ref_names: list[str]
    current_id: int | None
    last_sequence: int
    next_row_id: int
    time_ms: int
    schema_count: int
    spec_count: int


def sketch_of(base: Json) -> Sketch:
    """Return the sketch to start from."""
    schema = next(item for item in base["schemas"] if item["schema-id"] == base["current-schema-id"])
    current = base.get("current-snapshot-id", -1)
    return Sketch(
        version=base["format-version"],
        schema=copy.deepcopy(schema),
        last_column_id=base["last-column-id"],
        last_partition_id=base["last-partition-id"],
        snapshot_ids=[item["snapshot-id"] for item in base["snapshots"]],
        ref_names=[name for name in base["refs"] if name != "main"],
        current_id=None if current == -1 else current,
        last_sequence=base.get("last-sequence-number", 0),
        next_row_id=base.get("next-row-id", 0),
        time_ms=START_MS + 20_000,
        schema_count=len(base["schemas"]),
        spec_count=len(base["partition-specs"]),
    )


def act(name: str, **fields: Any) -> Json:
    """Return an update; field names are written with underscores here."""
    return {"action": name, **{key.replace("_", "-"): value for key, value in fields.items()}}


@st.composite
def update_lists(draw: Draw, base: Json) -> list[Json]:
    """Return updates for this base."""
    sketch = sketch_of(base)
    updates: list[Json] = []
    for _ in range(draw(st.integers(1, MOST_MOVES))):
        updates += _move(draw, sketch, base)
    return updates


@st.composite
def creations(draw: Draw) -> list[Json]:
    """Return updates that make a table, as a client that staged it sends them, or not quite."""
    version = draw(st.integers(1, 3))
    schema = draw(schemas(version=version, sloppy=False))
    spec = draw(specs(schema, with_ids=True))
    updates = [
        act("assign-uuid", uuid=UUID),
        act("upgrade-format-version", format_version=version),
        act("add-schema", schema=schema),
        act("set-current-schema", schema_id=LAST_ADDED),
        act("add-spec", spec={"spec-id": 0, **spec}),
        act("set-default-spec", spec_id=LAST_ADDED),
        act("add-sort-order", sort_order=draw(orders(schema))),
        act("set-default-sort-order", sort_order_id=LAST_ADDED),
        act("set-location", location=TABLE_LOCATION),
        act("set-properties", updates=draw(st.sampled_from(PROPERTIES))),
    ]
    sketch = Sketch(
        version=version,
        schema=schema,
        last_column_id=max(all_ids(schema)),
        last_partition_id=max((field["field-id"] for field in spec["fields"]), default=999),
        snapshot_ids=[],
        ref_names=[],
        current_id=None,
        last_sequence=0,
        next_row_id=0,
        time_ms=START_MS,
        schema_count=1,
        spec_count=1,
    )
    if rarely(draw, 5):
        # The uuid stays: the reference invents one, an engine without random numbers cannot.
        del updates[draw(st.integers(1, len(updates) - 1))]
    if rarely(draw, 8):
        second = draw(st.integers(2, len(updates) - 1))
        updates[1], updates[second] = updates[second], updates[1]
    for _ in range(draw(st.integers(0, 2))):
        updates += append(draw, sketch)
    return updates


def _move(draw: Draw, sketch: Sketch, base: Json) -> list[Json]:
    match draw(st.integers(0, 15)):
        case 0 | 1 | 2:
            return append(draw, sketch)
        case 3 | 4:
            return _change_columns(draw, sketch, base)
        case 5:
            return _change_partitioning(draw, sketch)
        case 6:
            order = draw(orders(sketch.schema))
            return [
                act("add-sort-order", sort_order=order),
                act(
                    "set-default-sort-order",
                    sort_order_id=draw(st.sampled_from((LAST_ADDED, LAST_ADDED, 0, 1))),
                ),
            ]
        case 7 | 8:
            return [_set_ref(draw, sketch)]
        case 9:
            return _remove_ref(draw, sketch)
        case 10:
            return _expire(draw, sketch, base)
        case 11:
            return [_settings(draw, sketch)]
        case 12 | 13:
            return [_statistics(draw, sketch)]
        case 14:
            return _upgrade(draw, sketch)
        case _:
            return [_lone(draw, sketch)]


def append(draw: Draw, sketch: Sketch) -> list[Json]:
    """Add a snapshot and mostly make it the head of main, or of another branch."""
    free = [item for item in SNAPSHOT_IDS if item not in sketch.snapshot_ids]
    snapshot_id = draw(st.sampled_from(SNAPSHOT_IDS if rarely(draw, 20) or not free else free))
    sketch.time_ms += draw(st.sampled_from((0, 1_000, 1_000, 30_000)))
    if rarely(draw, 20):
        sketch.time_ms = draw(st.sampled_from((START_MS - 100_000, START_MS + 400_000_000)))
    parent = None if rarely(draw, 10) else sketch.current_id
    sequence = sketch.last_sequence + 1
    if rarely(draw, 15):
        sequence = draw(st.integers(0, sequence))
    added = snapshot(
        draw, snapshot_id, parent, version=sketch.version, sequence=sequence, timestamp_ms=sketch.time_ms
    )
    if sketch.version >= 3 and not rarely(draw, 25):
        rows = draw(st.integers(0, 20))
        first = sketch.next_row_id + (draw(st.integers(-1, 3)) if rarely(draw, 8) else 0)
        added.update({"first-row-id": max(first, 0), "added-rows": rows})
        sketch.next_row_id += rows
    if rarely(draw, 15):
        added.pop("sequence-number", None)
    if rarely(draw, 30):
        added["sequence-number"] = sequence
    sketch.last_sequence = max(sequence, sketch.last_sequence)
    if snapshot_id not in sketch.snapshot_ids:
        sketch.snapshot_ids.append(snapshot_id)
    updates = [act("add-snapshot", snapshot=added)]
    match draw(st.integers(0, 7)):
        case 0:
            pass  # staged: published by a later commit
        case 1:
            name = draw(st.sampled_from(REF_NAMES))
            sketch.ref_names.append(name)
            updates.append(act("set-snapshot-ref", ref_name=name, type="branch", snapshot_id=snapshot_id))
        case _:
            sketch.current_id = snapshot_id
            updates.append(act("set-snapshot-ref", ref_name="main", type="branch", snapshot_id=snapshot_id))
    return updates


def _change_columns(draw: Draw, sketch: Sketch, base: Json) -> list[Json]:
    match draw(st.integers(0, 7)):
        case 0:
            schema = draw(st.sampled_from(base["schemas"]))
        case 1:
            schema = draw(schemas(version=sketch.version, first_id=draw(st.sampled_from((1, 1, 40)))))
        case _:
            schema = draw(evolved(sketch.schema, sketch.last_column_id, sketch.version))
    added = act("add-schema", schema={**schema, "schema-id": draw(st.integers(0, 3))})
    if draw(st.booleans()):
        added["last-column-id"] = sketch.last_column_id
    updates = [added]
    if not rarely(draw, 6):
        sketch.schema = schema
        target = LAST_ADDED if not rarely(draw, 6) else draw(st.integers(0, sketch.schema_count + 1))
        updates.append(act("set-current-schema", schema_id=target))
    sketch.schema_count += 1
    sketch.last_column_id = max(sketch.last_column_id, *all_ids(schema), 0)
    return updates


def _change_partitioning(draw: Draw, sketch: Sketch) -> list[Json]:
    spec = draw(specs(sketch.schema, sketch.last_partition_id))
    if not rarely(draw, 25):
        spec["spec-id"] = draw(st.integers(0, 2))
    if sketch.version == 1 and not rarely(draw):
        for position, field in enumerate(spec["fields"]):
            if "field-id" in field:
                field["field-id"] = 1000 + position
    ids = [field["field-id"] for field in spec["fields"] if "field-id" in field]
    sketch.last_partition_id = max(sketch.last_partition_id, *ids, 0)
    updates = [act("add-spec", spec=spec)]
    if not rarely(draw, 6):
        target = LAST_ADDED if not rarely(draw, 6) else draw(st.integers(0, sketch.spec_count))
        updates.append(act("set-default-spec", spec_id=target))
    sketch.spec_count += 1
    return updates


def _set_ref(draw: Draw, sketch: Sketch) -> Json:
    known = sketch.snapshot_ids if sketch.snapshot_ids and not rarely(draw) else SNAPSHOT_IDS
    snapshot_id = draw(st.sampled_from(known))
    name = draw(st.sampled_from(("main", *REF_NAMES)))
    kind = "branch" if name == "main" and not rarely(draw) else draw(st.sampled_from(("branch", "tag")))
    settings = retention(draw, kind)
    if rarely(draw, 15):
        settings = draw(
            st.sampled_from(
                (
                    {"min-snapshots-to-keep": 0},
                    {"max-ref-age-ms": -1},
                    {"max-snapshot-age-ms": 0},
                    {"min-snapshots-to-keep": 3, "max-snapshot-age-ms": 5},
                    {"max-ref-age-ms": None},
                )
            )
        )
    if name == "main":
        sketch.current_id = snapshot_id
    else:
        sketch.ref_names.append(name)
    return {**act("set-snapshot-ref", ref_name=name, type=kind, snapshot_id=snapshot_id), **settings}


def _remove_ref(draw: Draw, sketch: Sketch) -> list[Json]:
    name = draw(st.sampled_from((*REF_NAMES, *sketch.ref_names, "main", "nowhere")))
    if name == "main":
        sketch.current_id = None
    return [act("remove-snapshot-ref", ref_name=name)]


def _expire(draw: Draw, sketch: Sketch, base: Json) -> list[Json]:
    """Expire as the reference does: refs first, one update per snapshot, then specs and schemas."""
    if not sketch.snapshot_ids or rarely(draw, 4):
        return [_remove_columns(draw, sketch, base)]
    doomed = draw(st.lists(st.sampled_from(sketch.snapshot_ids), max_size=2, unique=True))
    updates = []
    if not rarely(draw, 4):
        # Refs that still name a doomed snapshot go or move first; if they don't, both sides must notice.
        keeper = next((item for item in reversed(sketch.snapshot_ids) if item not in doomed), None)
        for name in dict.fromkeys((*base["refs"], *sketch.ref_names, "main")):
            if name == "main" and keeper is not None and sketch.current_id in doomed:
                sketch.current_id = keeper
                updates.append(act("set-snapshot-ref", ref_name=name, type="branch", snapshot_id=keeper))
            elif name != "main" or sketch.current_id in doomed:
                updates.append(act("remove-snapshot-ref", ref_name=name))
    sketch.snapshot_ids = [item for item in sketch.snapshot_ids if item not in doomed]
    if draw(st.booleans()):
        updates += [act("remove-snapshots", snapshot_ids=[item]) for item in doomed]
    else:
        updates.append(act("remove-snapshots", snapshot_ids=[*doomed, 4_711]))
    return updates


def _remove_columns(draw: Draw, sketch: Sketch, base: Json) -> Json:
    if draw(st.booleans()):
        others = [
            item["spec-id"] for item in base["partition-specs"] if item["spec-id"] != base["default-spec-id"]
        ]
        wanted = [*others, UNKNOWN_ID] if not rarely(draw, 5) else [*others, base["default-spec-id"]]
        return act("remove-partition-specs", spec_ids=draw(st.lists(st.sampled_from(wanted), max_size=2)))
    others = [item["schema-id"] for item in base["schemas"] if item["schema-id"] != base["current-schema-id"]]
    wanted = [*others, UNKNOWN_ID] if not rarely(draw, 5) else [*others, base["current-schema-id"]]
    return act("remove-schemas", schema_ids=draw(st.lists(st.sampled_from(wanted), max_size=2)))


def _settings(draw: Draw, sketch: Sketch) -> Json:
    match draw(st.integers(0, 3)):
        case 0:
            return act("set-properties", updates=draw(st.sampled_from(PROPERTIES)))
        case 1:
            names = st.lists(
                st.sampled_from(("owner", "absent", "write.metadata.previous-versions-max")), max_size=2
            )
            return act("remove-properties", removals=draw(names))
        case 2:
            places = (
                TABLE_LOCATION,
                "s3://bucket/elsewhere",
                "s3://bucket/elsewhere//",
                "file:///x/",
                "/x/y",
                "s3://",
            )
            return act("set-location", location=draw(st.sampled_from(places)))
        case _:
            uuids = (UUID, UUID.upper(), "0e4d5ad5-9d5c-4a4b-8f3f-6d1a4d3a2c11")
            return act("assign-uuid", uuid=draw(st.sampled_from(uuids)))


def _statistics(draw: Draw, sketch: Sketch) -> Json:
    snapshot_id = draw(st.sampled_from((*sketch.snapshot_ids, 4_711)))
    match draw(st.integers(0, 5)):
        case 0:
            return act(
                "set-statistics", snapshot_id=snapshot_id, statistics=statistics_file(draw, snapshot_id)
            )
        case 1:
            return act("remove-statistics", snapshot_id=snapshot_id)
        case 2:
            file = partition_statistics_file(draw, snapshot_id)
            return act("set-partition-statistics", partition_statistics=file)
        case 3:
            return act("remove-partition-statistics", snapshot_id=snapshot_id)
        case 4:
            return act("add-encryption-key", encryption_key=encryption_key(draw))
        case _:
            return act("remove-encryption-key", key_id=draw(st.sampled_from(("k1", "k2", "k3"))))


def _upgrade(draw: Draw, sketch: Sketch) -> list[Json]:
    wanted = sketch.version + 1 if not rarely(draw, 5) else draw(st.integers(0, 5))
    if sketch.version < wanted <= 3:
        sketch.version = wanted
    return [act("upgrade-format-version", format_version=wanted)]


def _lone(draw: Draw, sketch: Sketch) -> Json:
    """Return half of a move: an id that nothing added."""
    some_id = draw(st.sampled_from((LAST_ADDED, 0, 1, 2, UNKNOWN_ID)))
    match draw(st.integers(0, 2)):
        case 0:
            return act("set-current-schema", schema_id=some_id)
        case 1:
            return act("set-default-spec", spec_id=some_id)
        case _:
            return act("set-default-sort-order", sort_order_id=some_id)
