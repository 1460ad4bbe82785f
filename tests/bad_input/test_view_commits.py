"""Commits to a view that must not land."""

from __future__ import annotations

from typing import Any

import pytest

from tests.bad_input.attacks import CONFLICT, POST, Attack, check_refused
from tests.bad_input.commit_bodies import (
    act,
    schema,
)
from tests.bad_input.commits import COLUMN, NEVER, VIEW, new
from tests.bad_input.victim import Victim
from tests.builders.http_catalog import VIEW_VERSION


def replacing(
    name: str, message: str, *updates: Any, status: int = 400, kind: str = "", requirements: Any = ()
) -> Attack:
    """Return a commit to the view."""
    return Attack(
        name,
        POST,
        VIEW,
        status,
        message,
        kind or (CONFLICT if status == 409 else ""),
        {"requirements": list(requirements), "updates": list(updates)},
    )


TRINO = {**VIEW_VERSION, "representations": [{"type": "sql", "dialect": "trino", "sql": "SELECT 1"}]}
VIEWS = [
    replacing("a table's update", "Cannot apply add-snapshot to a view: it is for tables", new()),
    replacing(
        "a table's ref",
        "Cannot apply remove-snapshot-ref to a view: it is for tables",
        act("remove-snapshot-ref", ref_name="main"),
    ),
    replacing(
        "a table's requirement",
        "Cannot validate a view: assert-table-uuid is for tables",
        requirements=[{"type": "assert-table-uuid", "uuid": "$VIEW_UUID"}],
    ),
    replacing(
        "another view",
        f"Requirement failed: view UUID does not match: expected $VIEW_UUID != {NEVER}",
        status=409,
        requirements=[{"type": "assert-view-uuid", "uuid": NEVER}],
    ),
    replacing(
        "a new table's requirement",
        "Cannot validate a view: assert-create is for tables",
        requirements=[{"type": "assert-create"}],
    ),
    replacing(
        "another uuid",
        f"Cannot reassign uuid: the view has $VIEW_UUID, the update says {NEVER}",
        act("assign-uuid", uuid=NEVER),
    ),
    replacing(
        "version 2",
        "Cannot upgrade view to unsupported format version: v2 (supported: v1)",
        act("upgrade-format-version", format_version=2),
    ),
    replacing("version 0", "Cannot downgrade v1 view to v0", act("upgrade-format-version", format_version=0)),
    replacing(
        "unknown version",
        "Cannot set current version to unknown version: 7",
        act("set-current-view-version", view_version_id=7),
    ),
    replacing(
        "last version of none",
        "Cannot set last version id: no current version id has been set",
        act("set-current-view-version", view_version_id=-1),
    ),
    replacing(
        "unknown schema",
        "Cannot add version with unknown schema: 7",
        act("add-view-version", view_version={**VIEW_VERSION, "schema-id": 7}),
    ),
    replacing(
        "last schema of none",
        "Cannot set last added schema: no schema has been added",
        act("add-view-version", view_version={**VIEW_VERSION, "schema-id": -1}),
    ),
    replacing(
        "two queries of a dialect",
        "Invalid view version: Cannot add multiple queries for dialect trino",
        act("add-view-version", view_version={**TRINO, "representations": TRINO["representations"] * 2}),
        kind="IllegalArgumentException",
    ),
    replacing(
        "a dialect lost",
        "Cannot replace view due to loss of view dialects …",
        act("add-view-version", view_version=TRINO),
        act("set-current-view-version", view_version_id=-1),
    ),
    replacing(
        "a schema with one id twice",
        "Invalid schema: field id 1 is used more than once (new)",
        act("add-schema", schema=schema({**COLUMN, "id": 1})),
    ),
    replacing(
        "no history kept",
        "Table property version.history.num-entries must be at least 1, found -3",
        act("set-properties", updates={"version.history.num-entries": "-3"}),
    ),
    Attack("no list of updates", POST, VIEW, 400, "Invalid body: updates: …", body={"updates": {}}),
    Attack(
        "another view's name",
        POST,
        VIEW,
        400,
        "Invalid body: identifier is a.t, but the path names a.v",
        body={"identifier": {"namespace": ["a"], "name": "t"}, "updates": []},
    ),
]


@pytest.mark.parametrize("attack", VIEWS, ids=str)
def test_attack_is_refused_and_changes_nothing(victim: Victim, attack: Attack) -> None:
    check_refused(attack, victim)
