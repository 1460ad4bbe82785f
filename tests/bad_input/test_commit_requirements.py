"""Commits of unknown kinds, and requirements that do not hold."""

from __future__ import annotations

import pytest

from tests.bad_input.attacks import POST, TAKEN, Attack, check_refused
from tests.bad_input.commit_bodies import (
    FIRST,
    SECOND,
    act,
)
from tests.bad_input.commits import NEVER, TABLES, committing, new, requiring
from tests.bad_input.victim import Victim

KNOWN_ACTIONS = "Invalid body: updates[0]: unknown or missing action; known are: add-encryption-key, …"
ENVELOPES = [
    committing("unknown update", f"{KNOWN_ACTIONS} (not 'drop-everything')", act("drop-everything")),
    committing("update without a kind", KNOWN_ACTIONS, {"updates": {"a": "b"}}),
    committing("kind is a number", KNOWN_ACTIONS, {"action": 7}),
    committing("kind is a list", KNOWN_ACTIONS, {"action": ["set-properties"]}),
    committing(
        "kind in snake case",
        f"{KNOWN_ACTIONS} (not 'set_properties')",
        {"action": "set_properties", "updates": {}},
    ),
    committing("update is a text", KNOWN_ACTIONS, "set-properties"),
    committing("update is null", KNOWN_ACTIONS, None),
    committing("a requirement among the updates", f"{KNOWN_ACTIONS}", {"type": "assert-create"}),
    requiring(
        "unknown requirement",
        "Invalid body: requirements[0]: unknown or missing type; known are: assert-create, … (not 'assert-weather')",
        {"type": "assert-weather"},
        status=400,
    ),
    requiring(
        "requirement without a kind",
        "Invalid body: requirements[0]: unknown or missing type; …",
        {},
        status=400,
    ),
    Attack(
        "requirements are a text",
        POST,
        f"{TABLES}/v2",
        400,
        "Invalid body: requirements: Input should be a valid array",
        body={"requirements": "", "updates": []},
    ),
    Attack(
        "updates are an object",
        POST,
        f"{TABLES}/v2",
        400,
        "Invalid body: updates: Input should be a valid array",
        body={"requirements": [], "updates": {}},
    ),
    Attack(
        "another table's name",
        POST,
        f"{TABLES}/v2",
        400,
        "Invalid body: identifier is a.t, but the path names a.v2",
        body={"identifier": {"namespace": ["a"], "name": "t"}, "requirements": [], "updates": []},
    ),
    Attack(
        "another namespace",
        POST,
        f"{TABLES}/v2",
        400,
        "Invalid body: identifier is a.b.v2, but the path names a.v2",
        body={"identifier": {"namespace": ["a", "b"], "name": "v2"}, "requirements": [], "updates": []},
    ),
    Attack(
        "name without a namespace",
        POST,
        f"{TABLES}/v2",
        400,
        "Invalid body: identifier.namespace: Field required",
        body={"identifier": {"name": "v2"}, "requirements": [], "updates": []},
    ),
]

REQUIREMENTS = [
    requiring(
        "another uuid",
        f"Requirement failed: UUID does not match: expected $UUID != {NEVER}",
        {"type": "assert-table-uuid", "uuid": NEVER},
    ),
    requiring(
        "a uuid that is none",
        "Requirement failed: UUID does not match: expected $UUID != x",
        {"type": "assert-table-uuid", "uuid": "x"},
    ),
    requiring(
        "uuid is null",
        "Invalid body: requirements[0].uuid: Input should be a valid string",
        {"type": "assert-table-uuid", "uuid": None},
        status=400,
    ),
    requiring(
        "no uuid",
        "Invalid body: requirements[0].uuid: Field required",
        {"type": "assert-table-uuid"},
        status=400,
    ),
    requiring(
        "main elsewhere",
        f"Requirement failed: branch main has changed: expected id {FIRST} != {SECOND}",
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": FIRST},
    ),
    requiring(
        "main not there",
        "Requirement failed: branch main was created concurrently",
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None},
    ),
    requiring(
        "tag not there",
        "Requirement failed: tag v1.0 was created concurrently",
        {"type": "assert-ref-snapshot-id", "ref": "v1.0"},
    ),
    requiring(
        "missing branch",
        "Requirement failed: branch or tag nope is missing, expected 7",
        {"type": "assert-ref-snapshot-id", "ref": "nope", "snapshot-id": 7},
    ),
    requiring(
        "snapshot id is a text",
        "Invalid body: requirements[0].snapshot-id: Input should be a valid integer",
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": "1002"},
        status=400,
    ),
    requiring(
        "snapshot id of 2^63",
        "Invalid body: 9223372036854775808 is not a 64-bit integer",
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 2**63},
        status=400,
    ),
    requiring(
        "field ids moved on",
        "Requirement failed: last assigned field id changed: expected id 1 != 8",
        {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 1},
    ),
    requiring(
        "another schema",
        "Requirement failed: current schema changed: expected id 1 != 0",
        {"type": "assert-current-schema-id", "current-schema-id": 1},
    ),
    requiring(
        "partition ids moved on",
        "Requirement failed: last assigned partition id changed: expected id 999 != 1000",
        {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 999},
    ),
    requiring(
        "another spec",
        "Requirement failed: default partition spec changed: expected id 1 != 0",
        {"type": "assert-default-spec-id", "default-spec-id": 1},
    ),
    requiring(
        "another order",
        "Requirement failed: default sort order changed: expected id 0 != 1",
        {"type": "assert-default-sort-order-id", "default-sort-order-id": 0},
    ),
    requiring(
        "schema id of 2^31",
        "Invalid body: requirements[0].current-schema-id: Input should be less than or equal to 2147483647",
        {"type": "assert-current-schema-id", "current-schema-id": 2**31},
        status=400,
    ),
    requiring("it exists", "Requirement failed: table already exists", {"type": "assert-create"}),
    requiring(
        "new and known",
        "Invalid create requirements: assert-create cannot stand beside assert-table-uuid",
        {"type": "assert-create"},
        {"type": "assert-table-uuid", "uuid": NEVER},
        status=400,
    ),
    requiring(
        "a view's requirement",
        "Cannot validate a table: assert-view-uuid is for views",
        {"type": "assert-view-uuid", "uuid": NEVER},
        status=400,
    ),
    requiring(
        "the second one fails",
        "Requirement failed: current schema changed: expected id 7 != 0",
        {"type": "assert-table-uuid", "uuid": "$UUID"},
        {"type": "assert-current-schema-id", "current-schema-id": 7},
    ),
    Attack(
        "create where a view is",
        POST,
        f"{TABLES}/v",
        409,
        "View with same name already exists: a.v",
        TAKEN,
        {"requirements": [{"type": "assert-create"}], "updates": []},
    ),
    Attack(
        "create from nothing",
        POST,
        f"{TABLES}/x",
        400,
        "The table has no uuid: the updates need an assign-uuid",
        body={"requirements": [{"type": "assert-create"}], "updates": []},
    ),
    Attack(
        "create without columns",
        POST,
        f"{TABLES}/x",
        400,
        "…schema…",
        body={
            "requirements": [{"type": "assert-create"}],
            "updates": [act("assign-uuid", uuid=NEVER), act("set-location", location="$LOCATION")],
        },
    ),
    Attack(
        "create a snapshot first",
        POST,
        f"{TABLES}/x",
        400,
        "Attempting to add a snapshot before a schema is added",
        body={"requirements": [{"type": "assert-create"}], "updates": [new()]},
    ),
    Attack(
        "create in no namespace",
        POST,
        "/v1/namespaces/nope/tables/x",
        400,
        "The table has no uuid…",
        body={"requirements": [{"type": "assert-create"}], "updates": []},
    ),
]


@pytest.mark.parametrize("attack", [*ENVELOPES, *REQUIREMENTS], ids=str)
def test_attack_is_refused_and_changes_nothing(victim: Victim, attack: Attack) -> None:
    check_refused(attack, victim)
