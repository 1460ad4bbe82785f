"""Views over HTTP."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote, urlsplit

import httpx
import pytest

from tests.builders.http_catalog import (
    SCHEMA,
    VIEW_VERSION,
    error_of,
    make_namespace,
    make_table,
    make_view,
    set_properties,
)


def test_created_view_is_answered_and_loaded(api: httpx.Client, ns: str) -> None:
    created = make_view(api, ns, "v")

    assert created["metadata"]["current-version-id"] == 1
    assert created["metadata-location"]
    assert api.get(f"/v1/namespaces/{ns}/views/v").json() == created


def test_view_with_two_queries_of_one_dialect_is_refused_in_javas_words(api: httpx.Client, ns: str) -> None:
    query = {"type": "sql", "dialect": "trino", "sql": "SELECT 1"}
    version = {**VIEW_VERSION, "representations": [query, {**query, "dialect": "TRINO"}]}
    body = {"name": "v", "schema": SCHEMA, "view-version": version, "properties": {}}

    status, kind, message = error_of(api.post(f"/v1/namespaces/{ns}/views", json=body))

    assert (status, kind) == (400, "IllegalArgumentException")
    assert message.lower() == "invalid view version: cannot add multiple queries for dialect trino"


@pytest.mark.parametrize(
    ("make", "message"),
    [(make_view, "View already exists: {}.v"), (make_table, "Table with same name already exists: {}.v")],
)
def test_name_that_is_taken_is_refused(api: httpx.Client, ns: str, make: object, message: str) -> None:
    assert callable(make)
    make(api, ns, "v")
    body = {"name": "v", "schema": SCHEMA, "view-version": VIEW_VERSION, "properties": {}}

    refused = api.post(f"/v1/namespaces/{ns}/views", json=body)

    assert error_of(refused) == (409, "AlreadyExistsException", message.format(ns))


def test_view_whose_metadata_file_is_gone_does_not_exist_for_head_either(api: httpx.Client, ns: str) -> None:
    created = make_view(api, ns, "v")
    url = f"/v1/namespaces/{ns}/views/v"
    assert api.head(url).status_code == 204

    Path(urlsplit(created["metadata-location"]).path).unlink()

    assert (api.head(url).status_code, api.get(url).status_code) == (404, 404)


def test_missing_view_is_not_found(api: httpx.Client, ns: str) -> None:
    make_table(api, ns, "t")

    for url in (
        f"/v1/namespaces/{ns}/views/v",
        "/v1/namespaces/nope/views/v",
        f"/v1/namespaces/{ns}/views/t",
    ):
        status, kind, message = error_of(api.get(url))
        assert (status, kind) == (404, "NoSuchViewException")
        assert message.startswith("View does not exist: ")
        assert api.head(url).status_code == 404


def test_probe_answers_without_a_body(api: httpx.Client, ns: str) -> None:
    make_view(api, ns, "v")

    probed = api.head(f"/v1/namespaces/{ns}/views/v")

    assert (probed.status_code, probed.content) == (204, b"")


def test_listing_holds_views_only_in_pages(api: httpx.Client, ns: str) -> None:
    make_table(api, ns, "t")
    for name in "abc":
        make_view(api, ns, name)

    first = api.get(f"/v1/namespaces/{ns}/views", params={"pageSize": 2}).json()
    rest = api.get(f"/v1/namespaces/{ns}/views", params={"pageToken": first["next-page-token"]}).json()

    assert [item["name"] for item in [*first["identifiers"], *rest["identifiers"]]] == ["a", "b", "c"]
    assert "next-page-token" not in rest


def test_token_of_a_table_listing_is_refused(api: httpx.Client, ns: str) -> None:
    for name in "ab":
        make_table(api, ns, name)
    token = api.get(f"/v1/namespaces/{ns}/tables", params={"pageSize": 1}).json()["next-page-token"]

    assert error_of(api.get(f"/v1/namespaces/{ns}/views", params={"pageToken": token}))[0] == 400


def test_replaced_view_is_answered_with_its_new_state(api: httpx.Client, ns: str) -> None:
    uuid = make_view(api, ns, "v")["metadata"]["view-uuid"]
    body = {
        "identifier": {"namespace": [ns], "name": "v"},
        "requirements": [{"type": "assert-view-uuid", "uuid": uuid}],
        "updates": set_properties(a="b")["updates"],
    }

    replaced = api.post(f"/v1/namespaces/{ns}/views/v", json=body)

    assert replaced.json()["metadata"]["properties"] == {"a": "b"}
    assert api.get(f"/v1/namespaces/{ns}/views/v").json() == replaced.json()


def replacement(sql: str, *, new_schema: bool, **properties: str) -> dict[str, object]:
    """Return a commit that replaces the query, as the Java client sends it."""
    version = {**VIEW_VERSION, "version-id": 2, "schema-id": -1 if new_schema else 0}
    version["representations"] = [{"type": "sql", "dialect": "spark", "sql": sql}]
    field = {"id": 1, "name": sql[-1], "required": False, "type": "long"}
    added = [{"action": "add-schema", "schema": {"type": "struct", "schema-id": 1, "fields": [field]}}]
    return {
        "updates": [
            *(added if new_schema else []),
            {"action": "add-view-version", "view-version": version},
            {"action": "set-current-view-version", "view-version-id": -1},
            *(set_properties(**properties)["updates"] if properties else []),
        ]
    }


@pytest.mark.parametrize("new_schema", [False, True])
def test_replace_that_is_sent_again_does_nothing(api: httpx.Client, ns: str, new_schema: bool) -> None:
    make_view(api, ns, "v")
    body = replacement("SELECT a", new_schema=new_schema, owner="ada")
    first = api.post(f"/v1/namespaces/{ns}/views/v", json=body)

    again = api.post(f"/v1/namespaces/{ns}/views/v", json=body)

    assert again.status_code == 200
    assert again.json() == first.json()


@pytest.mark.parametrize("new_schema", [False, True])
def test_replace_that_is_sent_again_takes_no_later_one_back(
    api: httpx.Client, ns: str, new_schema: bool
) -> None:
    make_view(api, ns, "v")
    early, late = (replacement(sql, new_schema=new_schema) for sql in ("SELECT a", "SELECT b"))
    api.post(f"/v1/namespaces/{ns}/views/v", json=early).raise_for_status()
    landed = api.post(f"/v1/namespaces/{ns}/views/v", json=late)

    again = api.post(f"/v1/namespaces/{ns}/views/v", json=early)

    status, kind, message = error_of(again)
    assert (status, kind) == (500, "CommitStateUnknownException")
    assert "has landed before: version 2 of the view" in message
    assert api.get(f"/v1/namespaces/{ns}/views/v").json() == landed.json()


@pytest.mark.parametrize("new_schema", [False, True])
@pytest.mark.parametrize("kept", [1, 2])
def test_replace_whose_version_has_left_the_history_takes_no_later_one_back(
    api: httpx.Client, ns: str, new_schema: bool, kept: int
) -> None:
    make_view(api, ns, "v")
    keep = set_properties(**{"version.history.num-entries": str(kept)})
    api.post(f"/v1/namespaces/{ns}/views/v", json=keep).raise_for_status()
    bodies = [replacement(f"SELECT {name}", new_schema=new_schema) for name in "abcd"]
    for later_by, body in enumerate(bodies, 1):
        updates = body["updates"]
        assert isinstance(updates, list)
        updates[int(new_schema)]["view-version"]["timestamp-ms"] += later_by
        api.post(f"/v1/namespaces/{ns}/views/v", json=body).raise_for_status()
    landed = api.get(f"/v1/namespaces/{ns}/views/v").json()
    assert len(landed["metadata"]["versions"]) == kept

    again = api.post(f"/v1/namespaces/{ns}/views/v", json=bodies[0])

    status, kind, message = error_of(again)
    assert (status, kind) == (500, "CommitStateUnknownException")
    assert "has landed before" in message
    assert api.get(f"/v1/namespaces/{ns}/views/v").json() == landed


def test_late_version_that_never_landed_lands_where_others_have_left_the_history(
    api: httpx.Client, ns: str
) -> None:
    make_view(api, ns, "v")
    keep = set_properties(**{"version.history.num-entries": "1"})
    api.post(f"/v1/namespaces/{ns}/views/v", json=keep).raise_for_status()
    for sql in ("SELECT a", "SELECT b"):
        api.post(f"/v1/namespaces/{ns}/views/v", json=replacement(sql, new_schema=False)).raise_for_status()

    late = api.post(f"/v1/namespaces/{ns}/views/v", json=replacement("SELECT c", new_schema=False))

    (version,) = late.json()["metadata"]["versions"]
    assert version["representations"][0]["sql"] == "SELECT c"


def test_return_to_an_earlier_query_that_is_sent_again_takes_no_later_one_back(
    api: httpx.Client, ns: str
) -> None:
    """The view keeps the earlier version with its time: that of the return is only in the log."""
    make_view(api, ns, "v")
    bodies = [replacement(sql, new_schema=False) for sql in ("SELECT a", "SELECT 1", "SELECT b")]
    for later_by, body in enumerate(bodies, 1):
        updates = body["updates"]
        assert isinstance(updates, list)
        updates[0]["view-version"]["timestamp-ms"] += later_by
        api.post(f"/v1/namespaces/{ns}/views/v", json=body).raise_for_status()
    landed = api.get(f"/v1/namespaces/{ns}/views/v").json()

    again = api.post(f"/v1/namespaces/{ns}/views/v", json=bodies[1])

    status, kind, message = error_of(again)
    assert (status, kind) == (500, "CommitStateUnknownException")
    assert "has landed before: version 1 of the view" in message
    assert api.get(f"/v1/namespaces/{ns}/views/v").json() == landed


def test_replace_that_is_sent_again_needs_no_version_log(api: httpx.Client, ns: str) -> None:
    made = make_view(api, ns, "v")
    path = Path(urlsplit(made["metadata-location"]).path).with_name("without-a-log.metadata.json")
    path.write_bytes(json.dumps({**made["metadata"], "version-log": []}).encode())
    body = {"name": "w", "metadata-location": str(path)}
    assert api.post(f"/v1/namespaces/{ns}/register-view", json=body).status_code == 200
    add = {"action": "add-view-version", "view-version": made["metadata"]["versions"][0]}

    again = api.post(f"/v1/namespaces/{ns}/views/w", json={"updates": [add]})

    assert again.json()["metadata"]["versions"] == made["metadata"]["versions"]


def test_version_that_waited_can_become_current_when_it_is_sent_again(api: httpx.Client, ns: str) -> None:
    make_view(api, ns, "v")
    body = replacement("SELECT a", new_schema=False)
    updates = body["updates"]
    assert isinstance(updates, list)
    api.post(f"/v1/namespaces/{ns}/views/v", json={"updates": updates[:1]}).raise_for_status()

    current = api.post(f"/v1/namespaces/{ns}/views/v", json=body)

    assert current.json()["metadata"]["current-version-id"] == 2


def test_replace_needs_no_requirements(api: httpx.Client, ns: str) -> None:
    make_view(api, ns, "v")
    body = {"updates": set_properties(a="b")["updates"]}

    assert api.post(f"/v1/namespaces/{ns}/views/v", json=body).status_code == 200


def test_replace_of_another_view_is_a_conflict(api: httpx.Client, ns: str) -> None:
    make_view(api, ns, "v")
    body = {**set_properties(a="b"), "requirements": [{"type": "assert-view-uuid", "uuid": "other"}]}

    assert error_of(api.post(f"/v1/namespaces/{ns}/views/v", json=body))[:2] == (409, "CommitFailedException")


def test_replace_of_a_missing_view_is_not_found(api: httpx.Client, ns: str) -> None:
    response = api.post(f"/v1/namespaces/{ns}/views/v", json=set_properties(a="b"))

    assert error_of(response)[:2] == (404, "NoSuchViewException")


def test_contradicting_identifier_is_refused(api: httpx.Client, ns: str) -> None:
    make_view(api, ns, "v")
    body = {**set_properties(a="b"), "identifier": {"namespace": [ns], "name": "w"}}

    assert error_of(api.post(f"/v1/namespaces/{ns}/views/v", json=body))[0] == 400


def test_dropped_view_can_be_registered_again(api: httpx.Client, ns: str) -> None:
    before = make_view(api, ns, "v")

    assert api.delete(f"/v1/namespaces/{ns}/views/v").status_code == 204
    assert error_of(api.delete(f"/v1/namespaces/{ns}/views/v"))[:2] == (404, "NoSuchViewException")
    body = {"name": "v", "metadata-location": before["metadata-location"]}
    assert api.post(f"/v1/namespaces/{ns}/register-view", json=body).json() == before
    assert error_of(api.post(f"/v1/namespaces/{ns}/register-view", json=body))[:2] == (
        409,
        "AlreadyExistsException",
    )


def test_view_is_unregistered_where_it_is_expected(api: httpx.Client, ns: str) -> None:
    before, url = make_view(api, ns, "v"), f"/v1/namespaces/{ns}/views/v"
    elsewhere = {"X-Icetower-Expected-Metadata-Location": quote(before["metadata-location"], safe="")}
    now = api.post(url, json=set_properties(a="b")).json()

    status, kind, message = error_of(api.post(f"{url}/unregister", headers=elsewhere))
    assert (status, kind) == (409, "CommitFailedException")
    assert message.startswith(
        f"Cannot unregister {ns}.v: expected metadata-location {before['metadata-location']}"
    )
    assert api.head(url).status_code == 204

    there = {"X-Icetower-Expected-Metadata-Location": quote(now["metadata-location"], safe="")}
    gone = api.post(f"{url}/unregister", headers={**there, "Idempotency-Key": f"{ns}-key"})
    assert (
        gone.json() == api.post(f"{url}/unregister", headers={**there, "Idempotency-Key": f"{ns}-key"}).json()
    )
    assert gone.json()["metadata"] == now["metadata"]
    assert error_of(api.post(f"{url}/unregister"))[:2] == (404, "NoSuchViewException")
    # Another catalog may have it by now.
    assert api.get("/v1/dropped", params={"namespace": ns}).json()["dropped"] == []


def test_view_that_cannot_be_read_is_unregistered_unread(api: httpx.Client, ns: str) -> None:
    location, url = make_view(api, ns, "v")["metadata-location"], f"/v1/namespaces/{ns}/views/v"
    Path(urlsplit(location).path).unlink()
    assert api.post(f"{url}/unregister").status_code == 404

    gone = api.post(f"{url}/unregister", headers={"X-Icetower-Unread": "true"})

    assert gone.json() == {"metadata-location": location}
    assert error_of(api.get(url))[:2] == (404, "NoSuchViewException")


def test_renamed_view_is_the_same_view(api: httpx.Client, ns: str) -> None:
    before = make_view(api, ns, "v")
    make_namespace(api, ns, "other")
    body = {
        "source": {"namespace": [ns], "name": "v"},
        "destination": {"namespace": [ns, "other"], "name": "w"},
    }

    assert api.post("/v1/views/rename", json=body).status_code == 204

    assert api.get(f"/v1/namespaces/{ns}%1Fother/views/w").json() == before
    assert error_of(api.post("/v1/views/rename", json=body))[:2] == (404, "NoSuchViewException")
