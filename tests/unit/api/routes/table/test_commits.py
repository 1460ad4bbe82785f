"""Commits over HTTP: what is answered when they land, when they do not, and when nobody knows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.errors import CommitStateUnknown, FilesUnavailable
from tests.builders.http_catalog import (
    SCHEMA,
    error_of,
    http_catalog,
    make_namespace,
    make_table,
    make_view,
    set_properties,
)
from tests.builders.staged_tables import land


def change(namespace: str, name: str, **updates: str) -> dict[str, Any]:
    return {"identifier": {"namespace": [namespace], "name": name}, **set_properties(**updates)}


def properties_of(api: httpx.Client, namespace: str, name: str) -> dict[str, str]:
    properties: dict[str, str] = api.get(f"/v1/namespaces/{namespace}/tables/{name}").json()["metadata"][
        "properties"
    ]
    return properties


def test_landed_commit_is_answered_with_the_new_metadata(api: httpx.Client, ns: str) -> None:
    before = make_table(api, ns, "t")

    committed = api.post(f"/v1/namespaces/{ns}/tables/t", json=set_properties(a="b"))

    after = committed.json()
    assert committed.status_code == 200
    assert set(after) == {"metadata-location", "metadata"}
    assert after["metadata"]["properties"]["a"] == "b"
    assert after["metadata"]["metadata-log"][-1]["metadata-file"] == before["metadata-location"]
    assert api.get(f"/v1/namespaces/{ns}/tables/t").json() == after


def test_commit_through_the_prefix_is_the_same(api: httpx.Client, ns: str) -> None:
    make_table(api, ns, "t")

    assert api.post(f"/v1/default/namespaces/{ns}/tables/t", json=set_properties(a="b")).status_code == 200
    assert properties_of(api, ns, "t")["a"] == "b"


def test_failed_requirement_is_a_conflict(api: httpx.Client, ns: str) -> None:
    make_table(api, ns, "t")
    body = {
        **set_properties(a="b"),
        "requirements": [{"type": "assert-current-schema-id", "current-schema-id": 7}],
    }

    status, kind, message = error_of(api.post(f"/v1/namespaces/{ns}/tables/t", json=body))

    assert (status, kind) == (409, "CommitFailedException")
    assert message == "Requirement failed: current schema changed: expected id 7 != 0"
    assert "a" not in properties_of(api, ns, "t")


def test_commit_to_a_missing_table_is_not_found(api: httpx.Client, ns: str) -> None:
    response = api.post(f"/v1/namespaces/{ns}/tables/nope", json=set_properties(a="b"))

    assert error_of(response)[:2] == (404, "NoSuchTableException")


def test_identifier_in_the_body_may_repeat_the_path(api: httpx.Client, ns: str) -> None:
    make_table(api, ns, "t")

    assert api.post(f"/v1/namespaces/{ns}/tables/t", json=change(ns, "t", a="b")).status_code == 200


def test_identifier_in_the_body_must_not_contradict_the_path(api: httpx.Client, ns: str) -> None:
    make_table(api, ns, "t")

    status, _, message = error_of(api.post(f"/v1/namespaces/{ns}/tables/t", json=change(ns, "u", a="b")))

    assert status == 400
    assert "identifier" in message


@pytest.mark.parametrize(
    "body",
    [
        {"requirements": {}, "updates": []},
        {"requirements": [], "updates": [{"action": "explode"}]},
        {"requirements": [], "updates": [{}]},
        {"requirements": [], "updates": [None]},
        {"requirements": [{"type": "assert-weather"}], "updates": []},
        {"requirements": [], "updates": [{"action": "add-view-version"}]},
        {"requirements": [], "updates": [{"action": "set-current-view-version", "view-version-id": 1}]},
        {"requirements": [{"type": "assert-view-uuid", "uuid": "x"}], "updates": []},
    ],
)
def test_senseless_commit_is_refused(api: httpx.Client, ns: str, body: object) -> None:
    make_table(api, ns, "t")

    assert error_of(api.post(f"/v1/namespaces/{ns}/tables/t", json=body))[:2] == (400, "BadRequestException")


def test_commit_with_assert_create_creates(api: httpx.Client, ns: str) -> None:
    body = {"name": "t", "schema": SCHEMA, "stage-create": True}
    staged = api.post(f"/v1/namespaces/{ns}/tables", json=body).json()["metadata"]

    other = api.post(f"/v1/namespaces/{ns}/tables", json=body).json()["metadata"]

    created, again = land(api, ns, "t", staged), land(api, ns, "t", staged)

    assert created.json()["metadata"]["table-uuid"] == staged["table-uuid"]
    assert again.json() == created.json()
    refused = land(api, ns, "t", other)
    assert error_of(refused) == (409, "CommitFailedException", "Requirement failed: table already exists")


def test_transaction_changes_all_tables(api: httpx.Client, ns: str) -> None:
    for name in "tu":
        make_table(api, ns, name)
    body = {"table-changes": [change(ns, "t", a="1"), change(ns, "u", a="2"), change(ns, "t", b="3")]}

    committed = api.post("/v1/transactions/commit", json=body)

    assert (committed.status_code, committed.content) == (204, b"")
    assert properties_of(api, ns, "t").items() >= {"a": "1", "b": "3"}.items()
    assert properties_of(api, ns, "u")["a"] == "2"


def test_transaction_with_one_failure_changes_nothing(api: httpx.Client, ns: str) -> None:
    make_table(api, ns, "t")
    body = {"table-changes": [change(ns, "t", a="1"), change(ns, "nope", a="2")]}

    refused = api.post("/v1/transactions/commit", json=body)

    assert error_of(refused)[:2] == (404, "NoSuchTableException")
    assert "a" not in properties_of(api, ns, "t")


@pytest.mark.parametrize("body", [{}, {"table-changes": []}, {"table-changes": [set_properties(a="b")]}])
def test_senseless_transaction_is_refused(api: httpx.Client, body: object) -> None:
    assert error_of(api.post("/v1/transactions/commit", json=body))[0] == 400


def failing_at(step: str, error: Exception) -> Callable[[str], None]:
    def fail(name: str) -> None:
        if name == step:
            raise error

    return fail


@pytest.mark.parametrize("step", ["before_write", "after_write", "before_put", "after_put"])
def test_unexpected_failure_of_a_commit_is_never_a_refusal(tmp_path: Path, step: str) -> None:
    with http_catalog(tmp_path) as api:
        make_namespace(api, "a")
        make_table(api, "a", "t")
    with http_catalog(tmp_path, step=failing_at(step, ZeroDivisionError("hunter2"))) as api:
        response = api.post("/v1/namespaces/a/tables/t", json=set_properties(a="b"))
        landed = "a" in properties_of(api, "a", "t")

    status, kind, message = error_of(response)
    assert (status, kind) == (500, "InternalServerError")
    assert "hunter2" not in message
    assert landed is (step == "after_put")


def test_unknown_outcome_is_told_as_such(tmp_path: Path) -> None:
    with http_catalog(tmp_path) as api:
        make_namespace(api, "a")
        make_table(api, "a", "t")
    with http_catalog(tmp_path, step=failing_at("after_put", CommitStateUnknown("who knows"))) as api:
        response = api.post("/v1/namespaces/a/tables/t", json=set_properties(a="b"))

    assert error_of(response) == (500, "CommitStateUnknownException", "who knows")
    assert "retry-after" not in response.headers


def test_commit_that_could_not_begin_may_be_sent_again(tmp_path: Path) -> None:
    with http_catalog(tmp_path) as api:
        make_namespace(api, "a")
        make_table(api, "a", "t")
    with http_catalog(tmp_path, step=failing_at("before_write", FilesUnavailable("disk full"))) as api:
        response = api.post("/v1/namespaces/a/tables/t", json=set_properties(a="b"))

    assert error_of(response) == (503, "ServiceUnavailableException", "disk full")
    assert response.headers["retry-after"] == "1"


def test_view_is_no_table_to_commit_to(api: httpx.Client, ns: str) -> None:
    make_view(api, ns, "v")

    response = api.post(f"/v1/namespaces/{ns}/tables/v", json=set_properties(a="b"))

    assert error_of(response)[:2] == (404, "NoSuchTableException")


@pytest.mark.parametrize(
    "empty", [{}, {"requirements": None, "updates": None}, {"requirements": []}, {"updates": []}]
)
def test_lists_that_are_not_there_are_empty_as_in_the_reference(
    api: httpx.Client, ns: str, empty: dict[str, Any]
) -> None:
    made, view = make_table(api, ns, "t"), make_view(api, ns, "v")
    path = f"/v1/namespaces/{ns}"
    named = {"identifier": {"namespace": [ns], "name": "t"}, **empty}

    table = api.post(f"{path}/tables/t", json=empty)
    same_view = api.post(f"{path}/views/v", json=empty)
    dry = api.post(f"{path}/tables/t/validate", json=empty)
    transaction = api.post("/v1/transactions/commit", json={"table-changes": [named]})

    assert table.json()["metadata-location"] == made["metadata-location"]
    assert same_view.json()["metadata-location"] == view["metadata-location"]
    assert (dry.status_code, dry.json()["would-commit"]) == (200, True)
    assert transaction.status_code == 204


def test_updates_without_requirements_land(api: httpx.Client, ns: str) -> None:
    make_table(api, ns, "t")
    body = {"updates": set_properties(a="b")["updates"]}

    assert api.post(f"/v1/namespaces/{ns}/tables/t", json=body).is_success
    named = {"identifier": {"namespace": [ns], "name": "t"}, "updates": set_properties(c="d")["updates"]}
    assert api.post("/v1/transactions/commit", json={"table-changes": [named]}).is_success
    assert {"a": "b", "c": "d"}.items() <= properties_of(api, ns, "t").items()
