"""Dry runs over HTTP: the shape of verdicts, and what a 409 says beside its error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx

from app.database.connections.database import Database
from tests.bad_input.commit_bodies import FIRST, SECOND, act, table_with_history
from tests.builders.http_catalog import (
    error_of,
    http_catalog,
    make_namespace,
    make_table,
    make_view,
    set_properties,
)

MAIN_AT_FIRST = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": FIRST}
NO_TAG = {"type": "assert-ref-snapshot-id", "ref": "v1.0", "snapshot-id": None}
LANDED = [
    {
        "snapshot-id": SECOND,
        "sequence-number": 2,
        "timestamp-ms": 1_700_000_002_000,
        "operation": "append",
    }
]


def test_verdict_on_a_commit_that_would_land(api: httpx.Client, ns: str) -> None:
    table = make_table(api, ns, "t")
    uuid = table["metadata"]["table-uuid"]
    needed = {"type": "assert-table-uuid", "uuid": uuid}
    body = {**set_properties(a="b"), "requirements": [needed]}

    told = api.post(f"/v1/namespaces/{ns}/tables/t/validate", json=body)

    assert told.status_code == 200
    assert told.json() == {
        "identifier": {"namespace": [ns], "name": "t"},
        "would-commit": True,
        "metadata-location": table["metadata-location"],
        "already-committed": False,
        "changes-table": True,
        "requirements": [{"requirement": needed, "result": "passed", "expected": uuid, "found": uuid}],
        "updates": [{"action": "set-properties", "result": "applied"}],
        "difference": {"schema-changes": [], "metadata": {"properties": {"a": {"to": "b"}}}},
        "snapshots": [],
        "guard": [],
    }


def test_conflict_of_a_verdict_and_of_the_409_are_the_same(api: httpx.Client, ns: str) -> None:
    table = table_with_history(api, ns, 2)
    body = {**set_properties(a="b"), "requirements": [MAIN_AT_FIRST, NO_TAG]}
    path = f"/v1/default/namespaces/{ns}/tables/v2"

    told = api.post(f"{path}/validate", json=body).json()
    refused = api.post(path, json=body)

    assert error_of(refused) == (
        409,
        "CommitFailedException",
        f"Requirement failed: branch main has changed: expected id {FIRST} != {SECOND}",
    )
    assert refused.json() == {"error": {**told["error"], "conflict": told["conflict"]}}
    assert told["conflict"] == {
        "requirement": MAIN_AT_FIRST,
        "expected": FIRST,
        "found": SECOND,
        "identifier": {"namespace": [ns], "name": "v2"},
        "metadata-location": table["metadata-location"],
        "conflicts": f"{path}/conflicts",
        "snapshot-count": 1,
        "snapshots": LANDED,
    }
    assert told["requirements"][1] == {
        "requirement": NO_TAG,
        "result": "failed",
        "expected": None,
        "found": FIRST,
        "error": {
            "message": "Requirement failed: tag v1.0 was created concurrently",
            "type": "CommitFailedException",
            "code": 409,
        },
    }


def test_409_of_a_transaction_names_the_table(api: httpx.Client, ns: str) -> None:
    make_table(api, ns, "t")
    table_with_history(api, ns, 2)
    changes = [
        {"identifier": {"namespace": [ns], "name": "t"}, **set_properties(a="b")},
        {
            "identifier": {"namespace": [ns], "name": "v2"},
            **set_properties(a="b"),
            "requirements": [MAIN_AT_FIRST],
        },
    ]

    told = api.post("/v1/transactions/validate", json={"table-changes": changes}).json()
    refused = api.post("/v1/transactions/commit", json={"table-changes": changes}).json()

    assert refused["error"]["conflict"]["identifier"] == {"namespace": [ns], "name": "v2"}
    assert refused["error"]["conflict"]["conflicts"] == f"/v1/namespaces/{ns}/tables/v2/conflicts"
    assert refused == {"error": {**told["error"], "conflict": told["conflict"]}}
    assert [table["would-commit"] for table in told["tables"]] == [True, False]
    assert told["tables"][1]["requirements"][0]["table-change"] == 1


def test_stale_snapshot_and_dangling_ref_tell_what_is_known(api: httpx.Client, ns: str) -> None:
    table = table_with_history(api, ns, 2)["metadata"]
    stale = {**table["snapshots"][1], "snapshot-id": 9, "parent-snapshot-id": FIRST}
    path = f"/v1/namespaces/{ns}/tables/v2"

    behind = api.post(
        path, json={"requirements": [], "updates": [act("add-snapshot", snapshot=stale)]}
    ).json()
    dangling = api.post(
        path, json={"requirements": [], "updates": [act("remove-snapshots", snapshot_ids=[SECOND])]}
    ).json()

    assert behind["error"]["conflict"]["counter"] == "last-sequence-number"
    assert (behind["error"]["conflict"]["expected"], behind["error"]["conflict"]["found"]) == (1, 2)
    assert (behind["error"]["conflict"]["snapshot-id"], behind["error"]["conflict"]["snapshots"]) == (
        9,
        LANDED,
    )
    assert (dangling["error"]["conflict"]["ref"], dangling["error"]["conflict"]["snapshot-id"]) == (
        "main",
        SECOND,
    )
    assert "snapshots" not in dangling["error"]["conflict"]


def test_409_of_a_ref_that_moved_tells_the_same(api: httpx.Client, ns: str) -> None:
    table_with_history(api, ns, 2)
    path = f"/v1/namespaces/{ns}/tables/v2/refs/main"

    refused = api.put(path, json={"rollback-to": FIRST, "expected-snapshot-id": FIRST}).json()

    assert refused["error"]["conflict"]["requirement"] == MAIN_AT_FIRST
    assert refused["error"]["conflict"]["snapshots"] == LANDED


def test_refusal_under_an_idempotency_key_is_repeated_with_its_conflict(api: httpx.Client, ns: str) -> None:
    table_with_history(api, ns, 2)
    body = {**set_properties(a="b"), "requirements": [MAIN_AT_FIRST]}
    headers = {"idempotency-key": f"{ns}-refused"}

    answers = [api.post(f"/v1/namespaces/{ns}/tables/v2", json=body, headers=headers) for _ in range(2)]

    assert answers[0].json() == answers[1].json()
    assert answers[1].json()["error"]["conflict"]["snapshots"] == LANDED
    assert answers[1].headers["idempotent-replayed"] == "true"


def test_errors_that_are_no_lost_races_have_no_conflict(api: httpx.Client, ns: str) -> None:
    make_view(api, ns, "v")
    body = {"requirements": [{"type": "assert-create"}], "updates": []}

    taken = api.post(f"/v1/namespaces/{ns}/tables/v", json=body)
    missing = api.post(f"/v1/namespaces/{ns}/tables/nope", json=set_properties(a="b"))

    assert (taken.status_code, taken.json()["error"].keys()) == (409, {"message", "type", "code"})
    assert (missing.status_code, missing.json()["error"].keys()) == (404, {"message", "type", "code"})


def test_409_of_a_view_tells_the_requirement(api: httpx.Client, ns: str) -> None:
    uuid = make_view(api, ns, "v")["metadata"]["view-uuid"]
    never = "0e4d5ad5-9d5c-4a4b-8f3f-6d1a4d3a2c11"
    needed = {"type": "assert-view-uuid", "uuid": never}

    refused = api.post(f"/v1/namespaces/{ns}/views/v", json={"requirements": [needed], "updates": []}).json()

    assert refused["error"]["conflict"] == {"requirement": needed, "expected": never, "found": uuid}


def test_names_in_the_link_are_quoted(tmp_path: Path) -> None:
    with http_catalog(tmp_path) as api:
        api.post("/v1/namespaces", json={"namespace": ["a b", "ü"]}).raise_for_status()
        at = "/v1/default/namespaces/a%20b%1F%C3%BC/tables"
        api.post(at, json={"name": "x/y", "schema": {"type": "struct", "fields": []}}).raise_for_status()
        body: Any = {"requirements": [{"type": "assert-create"}], "updates": []}

        refused = api.post(f"{at}/x%2Fy", json=body).json()

    assert refused["error"]["conflict"]["conflicts"] == f"{at}/x%2Fy/conflicts"


def test_validation_leaves_no_trace_in_the_database(tmp_path: Path) -> None:
    with http_catalog(tmp_path) as api:
        make_namespace(api, "a")
        make_table(api, "a", "t")
        database = Database.open(f"sqlite:///{tmp_path / 'icetower.db'}")
        names = [row[0] for row in database.fetch("SELECT name FROM sqlite_master WHERE type = 'table'", ())]
        before = {name: database.fetch(f"SELECT * FROM {name}", ()) for name in names}
        api.post(
            "/v1/namespaces/a/tables/t/validate", json=set_properties(a="b"), headers={"idempotency-key": "k"}
        ).raise_for_status()
        after = {name: database.fetch(f"SELECT * FROM {name}", ()) for name in names}
        database.close()

    assert "idempotency_keys" in names
    assert after == before
