"""Tables over HTTP, all but loading and committing."""

from __future__ import annotations

import uuid
from pathlib import Path

import httpx
import pytest

from app.fileio.locations import local_path
from tests.builders.http_catalog import (
    SCHEMA,
    error_of,
    http_catalog,
    make_namespace,
    make_table,
    make_view,
    set_properties,
)


def test_created_table_is_answered_with_metadata_and_etag(api: httpx.Client, ns: str) -> None:
    body = {"name": "t", "schema": SCHEMA, "properties": {"owner": "ada"}}

    created = api.post(f"/v1/namespaces/{ns}/tables", json=body)

    loaded = created.json()
    assert created.status_code == 200
    assert loaded["metadata-location"].endswith(".metadata.json")
    assert loaded["metadata"]["properties"]["owner"] == "ada"
    assert api.get(f"/v1/namespaces/{ns}/tables/t").headers["etag"] == created.headers["etag"]


def test_staged_table_is_described_and_not_stored(api: httpx.Client, ns: str) -> None:
    body = {"name": "t", "schema": SCHEMA, "stage-create": True}

    staged = api.post(f"/v1/namespaces/{ns}/tables", json=body, headers={"idempotency-key": "staged"})

    assert staged.status_code == 200
    assert "metadata-location" not in staged.json()
    assert "etag" not in staged.headers
    assert api.head(f"/v1/namespaces/{ns}/tables/t").status_code == 404


@pytest.mark.parametrize("make", [make_table, make_view])
def test_name_that_is_taken_is_refused(api: httpx.Client, ns: str, make: object) -> None:
    assert callable(make)
    make(api, ns, "t")

    response = api.post(f"/v1/namespaces/{ns}/tables", json={"name": "t", "schema": SCHEMA})

    assert error_of(response)[:2] == (409, "AlreadyExistsException")


def test_table_in_a_missing_namespace_is_refused(api: httpx.Client) -> None:
    response = api.post("/v1/namespaces/missing/tables", json={"name": "t", "schema": SCHEMA})

    assert error_of(response) == (404, "NoSuchNamespaceException", "Namespace does not exist: missing")


@pytest.mark.parametrize("name", ["", "a\x1fb", "x" * 256])
def test_name_that_cannot_be_used_is_refused(api: httpx.Client, ns: str, name: str) -> None:
    response = api.post(f"/v1/namespaces/{ns}/tables", json={"name": name, "schema": SCHEMA})

    assert error_of(response)[:2] == (400, "BadRequestException")


def test_listing_holds_tables_of_this_namespace_only(api: httpx.Client, ns: str) -> None:
    make_namespace(api, ns, "child")
    make_table(api, f"{ns}%1Fchild", "deep")
    make_view(api, ns, "v")
    make_table(api, ns, "b")
    make_table(api, ns, "a.b/c d")

    listed = api.get(f"/v1/namespaces/{ns}/tables").json()

    assert listed == {
        "identifiers": [{"namespace": [ns], "name": "a.b/c d"}, {"namespace": [ns], "name": "b"}]
    }


def test_pages_go_on_where_the_last_ended(api: httpx.Client, ns: str) -> None:
    for name in "abcde":
        make_table(api, ns, name)

    first = api.get(f"/v1/namespaces/{ns}/tables", params={"pageSize": 2}).json()
    make_table(api, ns, "aa")
    token = first["next-page-token"]
    second = api.get(f"/v1/namespaces/{ns}/tables", params={"pageToken": token, "pageSize": 10}).json()

    assert [item["name"] for item in first["identifiers"]] == ["a", "b"]
    assert [item["name"] for item in second["identifiers"]] == ["c", "d", "e"]
    assert "next-page-token" not in second


def test_token_of_another_namespace_is_refused(api: httpx.Client, ns: str) -> None:
    for name in "ab":
        make_table(api, ns, name)
    token = api.get(f"/v1/namespaces/{ns}/tables", params={"pageSize": 1}).json()["next-page-token"]
    make_namespace(api, ns, "other")

    response = api.get(f"/v1/namespaces/{ns}%1Fother/tables", params={"pageToken": token})

    assert error_of(response)[0] == 400


def test_tables_of_a_missing_namespace_are_not_found(api: httpx.Client) -> None:
    assert error_of(api.get("/v1/namespaces/missing/tables"))[:2] == (404, "NoSuchNamespaceException")


@pytest.mark.parametrize(
    "flag", ["", "?purgeRequested=false", "?purgeRequested=False", "?purgeRequested=TRUE"]
)
def test_dropped_table_is_gone(api: httpx.Client, ns: str, flag: str) -> None:
    make_table(api, ns, "t")

    assert api.delete(f"/v1/namespaces/{ns}/tables/t{flag}").status_code == 204
    assert error_of(api.delete(f"/v1/namespaces/{ns}/tables/t{flag}"))[:2] == (404, "NoSuchTableException")


def test_purge_flag_that_is_neither_true_nor_false_is_refused(api: httpx.Client, ns: str) -> None:
    make_table(api, ns, "t")

    response = api.delete(f"/v1/namespaces/{ns}/tables/t?purgeRequested=maybe")

    assert error_of(response)[0] == 400
    assert api.head(f"/v1/namespaces/{ns}/tables/t").status_code == 204


def test_purge_of_files_that_may_belong_to_others_is_refused(api: httpx.Client, ns: str) -> None:
    make_table(api, ns, "t")
    api.post(f"/v1/namespaces/{ns}/tables/t", json=set_properties(**{"gc.enabled": "false"}))

    response = api.delete(f"/v1/namespaces/{ns}/tables/t?purgeRequested=true")

    assert error_of(response)[0] == 400
    assert "gc.enabled" in error_of(response)[2]


def rename(api: httpx.Client, kind: str, source: list[str], destination: list[str]) -> httpx.Response:
    names = {
        end: {"namespace": name[:-1], "name": name[-1]}
        for end, name in (("source", source), ("destination", destination))
    }
    return api.post(f"/v1/{kind}/rename", json=names)


def test_renamed_table_is_the_same_table(api: httpx.Client, ns: str) -> None:
    before = make_table(api, ns, "t")
    make_namespace(api, ns, "other")

    assert rename(api, "tables", [ns, "t"], [ns, "other", "u"]).status_code == 204

    assert api.get(f"/v1/namespaces/{ns}%1Fother/tables/u").json() == before
    assert api.head(f"/v1/namespaces/{ns}/tables/t").status_code == 404


def test_rename_to_itself_does_nothing(api: httpx.Client, ns: str) -> None:
    make_table(api, ns, "t")

    assert rename(api, "tables", [ns, "t"], [ns, "t"]).status_code == 204


def test_rename_onto_another_table_is_refused(api: httpx.Client, ns: str) -> None:
    make_table(api, ns, "t")
    make_table(api, ns, "u")

    status, kind, message = error_of(rename(api, "tables", [ns, "t"], [ns, "u"]))

    assert (status, kind) == (409, "AlreadyExistsException")
    assert message == f"Cannot rename {ns}.t to {ns}.u. Table already exists"


def test_rename_of_or_into_something_missing_says_what_is_missing(api: httpx.Client, ns: str) -> None:
    make_table(api, ns, "t")

    source = error_of(rename(api, "tables", [ns, "nope"], [ns, "u"]))
    destination = error_of(rename(api, "tables", [ns, "t"], ["non_existing", "u"]))

    assert source == (404, "NoSuchTableException", f"Table does not exist: {ns}.nope")
    assert destination == (404, "NoSuchNamespaceException", "Namespace does not exist: non_existing")


def test_registered_table_is_the_file_itself(api: httpx.Client, ns: str) -> None:
    before = make_table(api, ns, "t")
    api.delete(f"/v1/namespaces/{ns}/tables/t")
    body = {"name": "back", "metadata-location": before["metadata-location"]}

    registered = api.post(f"/v1/namespaces/{ns}/register", json=body)

    assert registered.json() == before
    assert "etag" in registered.headers


def test_register_over_a_table_needs_overwrite(api: httpx.Client, ns: str) -> None:
    other = make_table(api, ns, "other")
    make_table(api, ns, "t")
    body = {"name": "t", "metadata-location": other["metadata-location"]}

    refused = api.post(f"/v1/namespaces/{ns}/register", json={**body, "overwrite": False})
    replaced = api.post(f"/v1/namespaces/{ns}/register", json={**body, "overwrite": True})

    assert error_of(refused)[:2] == (409, "AlreadyExistsException")
    assert replaced.json() == other


def test_register_of_a_missing_file_is_not_found(api: httpx.Client, ns: str) -> None:
    location = make_table(api, ns, "t")["metadata-location"].replace("00000-", "00009-")

    response = api.post(f"/v1/namespaces/{ns}/register", json={"name": "u", "metadata-location": location})

    assert error_of(response)[:2] == (404, "NotFoundException")
    assert location in error_of(response)[2]


def test_unregistered_table_is_answered_once_more_and_can_be_registered(api: httpx.Client, ns: str) -> None:
    before = make_table(api, ns, "t")

    gone = api.post(f"/v1/namespaces/{ns}/tables/t/unregister")

    assert gone.json() == before
    assert api.head(f"/v1/namespaces/{ns}/tables/t").status_code == 404
    assert error_of(api.post(f"/v1/namespaces/{ns}/tables/t/unregister"))[0] == 404
    body = {"name": "t", "metadata-location": before["metadata-location"]}
    assert api.post(f"/v1/namespaces/{ns}/register", json=body).status_code == 200


def test_table_that_cannot_be_read_is_unregistered_unread(api: httpx.Client, ns: str) -> None:
    location = make_table(api, ns, "t")["metadata-location"]
    url, key = f"/v1/namespaces/{ns}/tables/t", {"Idempotency-Key": str(uuid.uuid4())}
    Path(local_path(location)).unlink()
    assert error_of(api.post(f"{url}/unregister"))[:2] == (404, "NotFoundException")
    wrong = {"X-Icetower-Unread": "yes"}
    assert error_of(api.post(f"{url}/unregister", headers=wrong)) == (
        400,
        "BadRequestException",
        "Invalid X-Icetower-Unread 'yes': it must be true or false",
    )
    elsewhere = {"X-Icetower-Unread": "true", "X-Icetower-Expected-Metadata-Location": "elsewhere"}
    assert api.post(f"{url}/unregister", headers=elsewhere).status_code == 409

    unread = {"X-Icetower-Unread": "true", **key}
    gone = [api.post(f"{url}/unregister", headers=unread) for _ in range(2)]

    assert [answer.json() for answer in gone] == [{"metadata-location": location}] * 2
    assert api.get(url).status_code == 404
    assert error_of(api.post(f"{url}/unregister", headers={"X-Icetower-Unread": "true"}))[:2] == (
        404,
        "NoSuchTableException",
    )


def test_literal_plus_finds_the_name_with_a_plus_where_no_name_has_a_space(
    api: httpx.Client, ns: str
) -> None:
    path = f"/v1/namespaces/{ns}"
    make_namespace(api, f"{ns}+x")
    api.post(f"{path}+x/tables", json={"name": "a+b", "schema": SCHEMA}).raise_for_status()
    make_table(api, ns, "c+d")
    make_table(api, ns, "c d")
    make_view(api, ns, "v+w")

    assert api.get(f"{path}+x").json()["namespace"] == [f"{ns}+x"]
    assert [found["name"] for found in api.get(f"{path}+x/tables").json()["identifiers"]] == ["a+b"]
    assert api.head(f"{path}+x/tables/a+b").status_code == 204
    assert api.post(f"{path}+x/tables/a+b", json=set_properties(x="1")).is_success
    assert api.get(f"{path}+x/tables/a+b").json()["metadata"]["properties"]["x"] == "1"
    assert api.delete(f"{path}/tables/c+d").status_code == 204
    assert [found["name"] for found in api.get(f"{path}/tables").json()["identifiers"]] == ["c+d"]
    assert api.get(f"{path}/views/v+w").is_success
    assert error_of(api.get(f"{path}/tables/n+o"))[2] == f"Table does not exist: {ns}.n o"
    assert api.delete(f"{path}+x/tables/a+b").status_code == 204
    assert api.delete(f"{path}+x").status_code == 204


def test_location_without_a_scheme_is_refused_with_what_to_write(tmp_path: Path) -> None:
    with http_catalog(tmp_path, default_warehouse_location="s3://lake/wh") as api:
        make_namespace(api, "a")
        refused = api.post(
            "/v1/namespaces/a/tables", json={"name": "t", "schema": SCHEMA, "location": "/s3/a/t/"}
        )

    assert (
        "tables lie below s3://lake/wh; without a scheme it means a path in the warehouse's bucket"
        in error_of(refused)[2]
    )
