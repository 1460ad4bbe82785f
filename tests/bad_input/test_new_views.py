"""Views that must not come to be, and places where nothing new can be."""

from __future__ import annotations

from typing import Any

import pytest

from tests.bad_input.attacks import POST, TAKEN, Attack, check_refused
from tests.bad_input.creations import ID, VIEWS
from tests.bad_input.victim import Victim
from tests.builders.http_catalog import VIEW_VERSION


def viewing(name: str, message: str, kind: Any = "", **version: Any) -> Attack:
    """Return an attempt to create a view."""
    body = {
        "name": "x",
        "schema": {"type": "struct", "fields": [ID]},
        "properties": {},
        "view-version": {**VIEW_VERSION, **version},
    }
    return Attack(name, POST, VIEWS, 400, message, kind, body)


QUERY = {"type": "sql", "sql": "SELECT 1", "dialect": "spark"}
VIEW_BODY: dict[str, Any] = {
    "name": "x",
    "schema": {"type": "struct", "fields": [ID]},
    "view-version": VIEW_VERSION,
    "properties": {},
}
NEW_VIEWS = [
    viewing("no queries", "Invalid view version: it has no representations", representations=[]),
    viewing(
        "two queries of a dialect",
        "Invalid view version: Cannot add multiple queries for dialect spark",
        "IllegalArgumentException",
        representations=[QUERY, {**QUERY, "dialect": "SPARK"}],
    ),
    viewing(
        "no sql",
        "Invalid view version: a sql representation needs sql and dialect",
        representations=[{"type": "sql", "dialect": "spark"}],
    ),
    viewing(
        "no dialect",
        "Invalid view version: a sql representation needs sql and dialect",
        representations=[{"type": "sql", "sql": "SELECT 1"}],
    ),
    viewing(
        "sql is a number",
        "Invalid body: view-version.representations[0].sql: Input should be a valid string",
        representations=[{**QUERY, "sql": 1}],
    ),
    viewing(
        "representation without a type",
        "Invalid body: view-version.representations[0].type: Field required",
        representations=[{"sql": "SELECT 1", "dialect": "spark"}],
    ),
    viewing(
        "version id is a text",
        "Invalid body: view-version.version-id: Input should be a valid integer",
        **{"version-id": "1"},
    ),
    viewing(
        "version id of 2^31",
        "Invalid body: view-version.version-id: Input should be less than or equal to 2147483647",
        **{"version-id": 2**31},
    ),
    viewing(
        "version id that leaves no others",
        "Cannot add a view version with id 2147483647: it would leave too few ids for others; the highest allowed is "
        "1073741824",
        **{"version-id": 2**31 - 1},
    ),
    viewing(
        "time at the end of time",
        "Cannot add view version 1: timestamp-ms 9223372036854775807 is more than a day ahead of …",
        **{"timestamp-ms": 2**63 - 1},
    ),
    viewing(
        "time below zero",
        "Invalid body: view-version.timestamp-ms: Input should be greater than or equal to 0",
        **{"timestamp-ms": -1},
    ),
    viewing(
        "summary of numbers",
        "Invalid body: view-version.summary.x: Input should be a valid string",
        summary={"x": 1},
    ),
    viewing(
        "default namespace is a text",
        "Invalid body: view-version.default-namespace: Input should be a valid array",
        **{"default-namespace": "a"},
    ),
    Attack(
        "no history kept",
        POST,
        VIEWS,
        400,
        "Table property version.history.num-entries must be at least 1, found 0",
        body={**VIEW_BODY, "properties": {"version.history.num-entries": "0"}},
    ),
    Attack(
        "a view's duplicate columns",
        POST,
        VIEWS,
        400,
        "Invalid schema: field id 1 is used more than once (id2)",
        body={**VIEW_BODY, "schema": {"type": "struct", "fields": [ID, {**ID, "name": "id2"}]}},
    ),
    Attack(
        "no version",
        POST,
        VIEWS,
        400,
        "Invalid body: view-version: Field required",
        body={key: value for key, value in VIEW_BODY.items() if key != "view-version"},
    ),
    Attack(
        "view onto a view", POST, VIEWS, 409, "View already exists: a.v", TAKEN, {**VIEW_BODY, "name": "v"}
    ),
    Attack(
        "view onto a table",
        POST,
        VIEWS,
        409,
        "Table with same name already exists: a.t",
        TAKEN,
        {**VIEW_BODY, "name": "t"},
    ),
    Attack(
        "view in no namespace",
        POST,
        "/v1/namespaces/nope/views",
        404,
        "Namespace does not exist: nope",
        "NoSuchNamespaceException",
        VIEW_BODY,
    ),
    Attack(
        "table in no namespace",
        POST,
        "/v1/namespaces/non-existing/tables",
        404,
        "Namespace does not exist: non-existing",
        "NoSuchNamespaceException",
        {"name": "x", "schema": VIEW_BODY["schema"]},
    ),
    Attack(
        "staged in no namespace",
        POST,
        "/v1/namespaces/nope/tables",
        404,
        "Namespace does not exist: nope",
        "NoSuchNamespaceException",
        {"name": "x", "schema": VIEW_BODY["schema"], "stage-create": True},
    ),
]


@pytest.mark.parametrize("attack", NEW_VIEWS, ids=str)
def test_attack_is_refused_and_changes_nothing(victim: Victim, attack: Attack) -> None:
    check_refused(attack, victim)
