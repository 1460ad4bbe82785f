"""One fault at a time: both sides refuse the same update, in the words that clients and their tests look for."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import pytest

from tests.conformance.oracle import engine
from tests.conformance.oracle.outcomes import Json, Refused
from tests.conformance.oracle.plain_documents import (
    COLUMNS,
    OTHER_UUID,
    schema_of,
    snapshot,
    table,
    view,
    view_version,
)
from tests.conformance.oracle.reference import Reference
from tests.conformance.oracle.table_documents import START_MS, TABLE_LOCATION, UUID
from tests.conformance.oracle.update_lists import LAST_ADDED, act

pytestmark = pytest.mark.spark

NOW_MS = START_MS + 100_000
VARIANT = {"id": 4, "name": "v", "required": False, "type": "variant"}


@dataclass(frozen=True)
class Fault:
    """Updates of which the last one is refused, and the words; a missing base is a table to create."""

    words: str
    updates: list[Json]
    base: Json | None = field(default_factory=table)
    is_conflict: bool = False


NEW = [
    act("assign-uuid", uuid=UUID),
    act("set-location", location=TABLE_LOCATION),
    act("add-schema", schema=schema_of(*COLUMNS)),
    act("add-spec", spec={"spec-id": 0, "fields": []}),
]
FAULTS = [
    Fault("Cannot downgrade v2 table to v1", [act("upgrade-format-version", format_version=1)]),
    Fault(
        "Cannot upgrade table to unsupported format version: v5",
        [act("upgrade-format-version", format_version=5)],
    ),
    Fault(
        "Cannot set last added schema: no schema has been added",
        [act("set-current-schema", schema_id=LAST_ADDED)],
    ),
    Fault("Cannot set current schema to unknown schema: 7", [act("set-current-schema", schema_id=7)]),
    Fault(
        "Cannot set last added spec: no spec has been added", [act("set-default-spec", spec_id=LAST_ADDED)]
    ),
    Fault(
        "Cannot set last added sort order: no sort order has been added",
        [act("set-default-sort-order", sort_order_id=LAST_ADDED)],
    ),
    Fault("Cannot remove the default partition spec", [act("remove-partition-specs", spec_ids=[1, 0])]),
    Fault("Cannot remove the current schema", [act("remove-schemas", schema_ids=[1, 0])]),
    Fault(
        "Attempting to add a snapshot before a schema is added",
        [*NEW[:2], act("add-snapshot", snapshot=snapshot(1))],
        None,
    ),
    Fault(
        "Attempting to add a snapshot before a partition spec is added",
        [*NEW[:3], act("add-snapshot", snapshot=snapshot(1))],
        None,
    ),
    Fault(
        "Attempting to add a snapshot before a sort order is added",
        [*NEW, act("add-snapshot", snapshot=snapshot(1))],
        None,
    ),
    Fault("Snapshot already exists for id: 2", [act("add-snapshot", snapshot=snapshot(2))]),
    Fault(
        "Validation failed, please retry: Cannot add snapshot with sequence number 2 older than last sequence number 2",
        [act("add-snapshot", snapshot=snapshot(3, sequence_number=2))],
        is_conflict=True,
    ),
    Fault(
        "Cannot add a snapshot: first-row-id is null",
        [act("add-snapshot", snapshot=snapshot(3, 2))],
        table(3),
    ),
    Fault(
        "Validation failed, please retry: Cannot add a snapshot, first-row-id is behind table next-row-id: 19 < 20",
        [act("add-snapshot", snapshot=snapshot(3, 3, first_row_id=19))],
        table(3),
        is_conflict=True,
    ),
    Fault(
        "Cannot set main to unknown snapshot: 9",
        [act("set-snapshot-ref", ref_name="main", type="branch", snapshot_id=9)],
    ),
    Fault(
        "Invalid schema for v2:\n- Invalid type for v: variant is not supported until v3",
        [act("add-schema", schema=schema_of(*COLUMNS, VARIANT))],
    ),
    Fault(
        "Cannot find source column for partition field: ",
        [
            act(
                "add-spec",
                spec={"spec-id": 0, "fields": [{"name": "x", "transform": "year", "source-id": 9}]},
            )
        ],
    ),
    Fault(
        "Cannot create identity partition sourced from different field in schema: id",
        [
            act(
                "add-spec",
                spec={"spec-id": 0, "fields": [{"name": "id", "transform": "identity", "source-id": 2}]},
            )
        ],
    ),
    Fault(
        "Cannot create required field with unknown type: u",
        [act("add-schema", schema=schema_of({"id": 4, "name": "u", "required": True, "type": "unknown"}))],
        table(3),
    ),
    Fault("Cannot reassign uuid", [act("assign-uuid", uuid=OTHER_UUID)], view()),
    Fault("Cannot downgrade v1 view to v0", [act("upgrade-format-version", format_version=0)], view()),
    Fault(
        "Cannot set last version id: no current version id has been set",
        [act("set-current-view-version", view_version_id=LAST_ADDED)],
        view(),
    ),
    Fault(
        "Cannot set current version to unknown version: 5",
        [act("set-current-view-version", view_version_id=5)],
        view(),
    ),
    Fault(
        "Cannot set last added schema: no schema has been added",
        [act("add-view-version", view_version=view_version(2, LAST_ADDED))],
        view(),
    ),
    Fault(
        "Cannot add version with unknown schema: 7",
        [act("add-view-version", view_version=view_version(2, 7))],
        view(),
    ),
    Fault(
        "Invalid view version: Cannot add multiple queries for dialect spark",
        [act("add-view-version", view_version=view_version(2, 0, "spark", "SPARK"))],
        view(),
    ),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.words[:60])
def test_both_refuse_in_the_same_words(reference: Reference, fault: Fault) -> None:
    theirs, ours = ask(reference, fault)

    for refused in (theirs, ours):
        assert isinstance(refused, Refused)
        assert re.match(re.escape(fault.words), refused.message)
        assert refused.is_conflict == fault.is_conflict


def test_a_query_must_not_lose_a_dialect_silently(reference: Reference) -> None:
    updates = [
        act("add-view-version", view_version=view_version(2, 0, "trino")),
        act("set-current-view-version", view_version_id=LAST_ADDED),
    ]

    theirs, ours = ask(reference, Fault("", updates, view()))

    for refused in (theirs, ours):
        assert isinstance(refused, Refused)
        assert refused.message.startswith("Cannot replace view due to loss of view dialects")
        assert "spark" in refused.message
        assert "trino" in refused.message


@pytest.mark.parametrize(
    ("base", "update"),
    [
        (table(), act("add-view-version", view_version=view_version(2))),
        (table(), act("set-current-view-version", view_version_id=1)),
        (view(), act("add-spec", spec={"spec-id": 0, "fields": []})),
        (view(), act("remove-snapshots", snapshot_ids=[1])),
    ],
    ids=["view version on table", "current version on table", "spec on view", "snapshots on view"],
)
def test_updates_of_the_other_kind_are_refused(reference: Reference, base: Json, update: Json) -> None:
    for refused in ask(reference, Fault("", [update], base)):
        assert isinstance(refused, Refused)
        assert refused.message.startswith("Cannot apply ")


def ask(reference: Reference, fault: Fault) -> tuple[object, object]:
    if fault.base is None:
        return reference.create(fault.updates), engine.create(fault.updates, NOW_MS)
    if "view-uuid" in fault.base:
        return reference.commit_view(fault.base, fault.updates), engine.commit_view(
            fault.base, fault.updates, NOW_MS
        )
    location = f"{TABLE_LOCATION}/metadata/1.json"
    return reference.commit(fault.base, location, fault.updates), engine.commit(
        fault.base, location, fault.updates, NOW_MS
    )
