"""Schemas, partition specs and sort orders that no commit may add, choose or remove."""

from __future__ import annotations

import pytest

from tests.bad_input.attacks import Attack, check_refused
from tests.bad_input.commit_bodies import (
    act,
    schema,
)
from tests.bad_input.commits import COLUMN, committing
from tests.bad_input.victim import Victim

SHAPES = [
    committing(
        "unknown schema",
        "Cannot set current schema to unknown schema: 7",
        act("set-current-schema", schema_id=7),
    ),
    committing(
        "last schema of none",
        "Cannot set last added schema: no schema has been added",
        act("set-current-schema", schema_id=-1),
    ),
    committing(
        "current before added",
        "Cannot set last added schema: no schema has been added",
        act("set-current-schema", schema_id=-1),
        act("add-schema", schema=schema(COLUMN)),
    ),
    committing(
        "current schema removed", "Cannot remove the current schema", act("remove-schemas", schema_ids=[0])
    ),
    committing(
        "new current schema removed",
        "Cannot remove the current schema",
        act("set-current-schema", schema_id=1),
        act("remove-schemas", schema_ids=[1]),
    ),
    committing("schema is null", "Invalid body: updates[0].schema: …", act("add-schema", schema=None)),
    committing(
        "one field id twice",
        "Invalid schema: field id 1 is used more than once (new)",
        act("add-schema", schema=schema({**COLUMN, "id": 1})),
    ),
    committing(
        "one name twice",
        "Invalid schema: multiple fields for name place.x",
        act("add-schema", schema=schema({**COLUMN, "name": "place.x"})),
    ),
    committing(
        "reserved field id",
        "Cannot add schema: field id 2147483646 is reserved",
        act("add-schema", schema=schema({**COLUMN, "id": 2**31 - 2})),
    ),
    committing(
        "field id that leaves no others",
        "Cannot add a column with id 2147483447: it would leave too few ids for others; the highest allowed is "
        "1073741824",
        act("add-schema", schema=schema({**COLUMN, "id": 2**31 - 201})),
    ),
    committing(
        "a type of v3",
        "Invalid schema for v2:\n- Invalid type for new: variant is not supported until v3",
        act("add-schema", schema=schema({**COLUMN, "type": "variant"})),
    ),
    committing(
        "types of v3 in v1",
        "Invalid schema for v1:\n- Invalid type for new: timestamp_ns is not supported until v3",
        act("add-schema", schema=schema({**COLUMN, "type": "timestamp_ns"})),
        version=1,
    ),
    committing(
        "a default of v3",
        "Invalid schema for v2:\n- Invalid initial default for new: non-null default (7) is not supported until v3",
        act("add-schema", schema=schema({**COLUMN, "initial-default": 7})),
    ),
    committing(
        "a default on no calendar",
        "Invalid write default for new: '2024-02-30' is not a single value of its type",
        act("add-schema", schema=schema({**COLUMN, "type": "date", "write-default": "2024-02-30"})),
        version=3,
    ),
    committing(
        "partition's column dropped",
        "Cannot find source column for partition field: id_bucket (source-id 1)",
        act("add-schema", schema={"type": "struct", "fields": [COLUMN]}),
        act("set-current-schema", schema_id=-1),
    ),
    committing(
        "partition's column retyped",
        "…id_bucket…",
        act(
            "add-schema",
            schema={
                "type": "struct",
                "fields": [{"id": 1, "name": "id", "type": "double", "required": True}, COLUMN],
            },
        ),
        act("set-current-schema", schema_id=-1),
    ),
    committing(
        "last spec of none",
        "Cannot set last added spec: no spec has been added",
        act("set-default-spec", spec_id=-1),
    ),
    committing(
        "unknown spec",
        "Cannot set default partition spec to unknown spec: 7",
        act("set-default-spec", spec_id=7),
    ),
    committing(
        "default spec removed",
        "Cannot remove the default partition spec",
        act("remove-partition-specs", spec_ids=[0]),
    ),
    committing(
        "spec of a missing column",
        "Cannot find source column for partition field: p (source-id 77)",
        act("add-spec", spec={"fields": [{"name": "p", "transform": "identity", "source-id": 77}]}),
    ),
    committing(
        "spec of a column to come",
        "Cannot find source column for partition field: p (source-id 12)",
        act("add-schema", schema=schema(COLUMN)),
        act("add-spec", spec={"fields": [{"name": "p", "transform": "identity", "source-id": 12}]}),
    ),
    committing(
        "spec of a column that does not fit",
        "Invalid source type string for transform hour of partition field: p",
        act("add-spec", spec={"fields": [{"name": "p", "transform": "hour", "source-id": 2}]}),
    ),
    committing(
        "partition ids of manifests",
        "Cannot add partition field p: field id 102 is below 1000",
        act(
            "add-spec",
            spec={"fields": [{"name": "p", "transform": "identity", "source-id": 2, "field-id": 102}]},
        ),
    ),
    committing(
        "partition ids below zero",
        "Cannot add partition field p: field id -5 is below 1000",
        act(
            "add-spec",
            spec={"fields": [{"name": "p", "transform": "identity", "source-id": 2, "field-id": -5}]},
        ),
    ),
    committing(
        "reserved partition id",
        "Cannot add partition field p: field id 2147483647 is reserved",
        act(
            "add-spec",
            spec={"fields": [{"name": "p", "transform": "identity", "source-id": 2, "field-id": 2**31 - 1}]},
        ),
    ),
    committing(
        "one partition id twice",
        "Cannot use partition field id more than once: 1005",
        act(
            "add-spec",
            spec={
                "fields": [
                    {"name": name, "transform": f"bucket[{count}]", "source-id": 2, "field-id": 1005}
                    for name, count in (("p", 2), ("q", 3))
                ]
            },
        ),
    ),
    committing(
        "partition ids out of order in v1",
        "Cannot add partition spec: v1 tables need field ids in sequence from 1000, found 1007 for p",
        act(
            "add-spec",
            spec={"fields": [{"name": "p", "transform": "identity", "source-id": 2, "field-id": 1007}]},
        ),
        version=1,
    ),
    committing(
        "last order of none",
        "Cannot set last added sort order: no sort order has been added",
        act("set-default-sort-order", sort_order_id=-1),
    ),
    committing(
        "unknown order",
        "Cannot set default sort order to unknown sort order: 7",
        act("set-default-sort-order", sort_order_id=7),
    ),
    committing(
        "order by a missing column",
        "Cannot find source column for sort field with source-id 77",
        act(
            "add-sort-order",
            sort_order={
                "order-id": 1,
                "fields": [
                    {"transform": "identity", "source-id": 77, "direction": "asc", "null-order": "nulls-last"}
                ],
            },
        ),
    ),
    committing(
        "order by nothing of a missing column",
        "Cannot find source column for sort field with source-id 77",
        act(
            "add-sort-order",
            sort_order={
                "order-id": 1,
                "fields": [
                    {"transform": "void", "source-id": 77, "direction": "asc", "null-order": "nulls-last"}
                ],
            },
        ),
    ),
]


@pytest.mark.parametrize("attack", SHAPES, ids=str)
def test_attack_is_refused_and_changes_nothing(victim: Victim, attack: Attack) -> None:
    check_refused(attack, victim)
