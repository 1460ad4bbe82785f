"""Namespaces over HTTP."""

from __future__ import annotations

from urllib.parse import quote, quote_plus

import httpx
import pytest

from tests.builders.http_catalog import SCHEMA, error_of, make_namespace, make_table, make_view


def test_created_namespace_is_answered_and_loaded(api: httpx.Client) -> None:
    body = {"namespace": ["created", "deep"], "properties": {"owner": "ada"}}

    created = api.post("/v1/namespaces", json=body)

    assert (created.status_code, created.json()) == (200, body)
    loaded = api.get("/v1/namespaces/created").json()
    place = loaded["properties"].pop("location")
    assert loaded == {"namespace": ["created"], "properties": {}}
    body["properties"] = {"owner": "ada", "location": f"{place}/deep"}
    assert api.get("/v1/namespaces/created%1Fdeep").json() == body
    made = api.post("/v1/namespaces/created/tables", json={"name": "t", "schema": SCHEMA}).json()
    assert made["metadata"]["location"] == f"{place}/t"


def test_null_properties_are_none(api: httpx.Client) -> None:
    created = api.post("/v1/namespaces", json={"namespace": ["nulls"], "properties": None})

    assert created.json()["properties"] == {}


def test_name_that_is_taken_is_refused(api: httpx.Client, ns: str) -> None:
    status, kind, message = error_of(api.post("/v1/namespaces", json={"namespace": [ns]}))

    assert (status, kind) == (409, "AlreadyExistsException")
    assert "Namespace already exists" in message


@pytest.mark.parametrize("levels", [[], [""], ["a", ""], ["a\x1fb"], ["a\nb"], ["x" * 256]])
def test_name_that_cannot_be_used_is_refused(api: httpx.Client, levels: list[str]) -> None:
    assert error_of(api.post("/v1/namespaces", json={"namespace": levels}))[:2] == (
        400,
        "BadRequestException",
    )


@pytest.mark.parametrize(
    "name", ["a b", "a+b", "new/db", "new.db", "50%", "søster", "🧊", "a&b=c?d#e", "%2F", "tables"]
)
@pytest.mark.parametrize(
    "encode", [lambda name: quote(name, safe=""), lambda name: quote_plus(name, safe=".-*_")]
)
def test_odd_names_work_in_both_encodings(api: httpx.Client, name: str, encode: object) -> None:
    assert callable(encode)
    api.post("/v1/namespaces", json={"namespace": [name, "x"]})

    loaded = api.get(f"/v1/namespaces/{encode(name)}%1Fx")

    assert loaded.json()["namespace"] == [name, "x"]
    assert api.head(f"/v1/default/namespaces/{encode(name)}").status_code == 204
    assert [name] in api.get("/v1/namespaces").json()["namespaces"]


def test_missing_namespace_is_not_found(api: httpx.Client) -> None:
    status, kind, message = error_of(api.get("/v1/namespaces/newdb"))

    assert (status, kind) == (404, "NoSuchNamespaceException")
    assert message == "Namespace does not exist: newdb"


def test_probing_answers_without_a_body(api: httpx.Client, ns: str) -> None:
    there, missing = api.head(f"/v1/namespaces/{ns}"), api.head("/v1/namespaces/newdb")

    assert (there.status_code, there.content) == (204, b"")
    assert (missing.status_code, missing.content) == (404, b"")


def test_listing_holds_direct_children_only(api: httpx.Client, ns: str) -> None:
    make_namespace(api, ns, "b", "c")
    make_namespace(api, ns, "a")

    listed = api.get("/v1/namespaces", params={"parent": ns}).json()

    assert listed == {"namespaces": [[ns, "a"], [ns, "b"]]}
    assert [ns, "a"] not in api.get("/v1/namespaces", params={"parent": ""}).json()["namespaces"]


def test_children_of_a_missing_namespace_are_not_found(api: httpx.Client) -> None:
    status, kind, message = error_of(api.get("/v1/namespaces", params={"parent": "non-existing"}))

    assert (status, kind, message) == (
        404,
        "NoSuchNamespaceException",
        "Namespace does not exist: non-existing",
    )


@pytest.mark.parametrize("times", [1, 2])
def test_parent_encoded_once_or_twice_is_found(api: httpx.Client, ns: str, times: int) -> None:
    make_namespace(api, ns, "sp ace", "child")
    parent = f"{ns}\x1fsp ace"
    for _ in range(times):
        parent = quote(parent, safe="")

    listed = api.get(f"/v1/namespaces?parent={parent}")

    assert listed.json() == {"namespaces": [[ns, "sp ace", "child"]]}


def test_parent_with_a_literal_plus_is_found_where_none_has_a_space(api: httpx.Client, ns: str) -> None:
    make_namespace(api, ns, "a+b")
    make_namespace(api, ns, "a+b", "child")
    url = f"/v1/namespaces?parent={ns}%1Fa+b"

    assert api.get(url).json() == {"namespaces": [[ns, "a+b", "child"]]}

    make_namespace(api, ns, "a b")
    assert api.get(url).json() == {"namespaces": []}


def test_pages_of_a_parent_encoded_twice_go_on(api: httpx.Client, ns: str) -> None:
    for child in ("a", "b", "c"):
        make_namespace(api, ns, "sp ace", child)
    url = f"/v1/namespaces?parent={quote(quote(f'{ns}{chr(31)}sp ace', safe=''), safe='')}&pageSize=2"

    first = api.get(url).json()
    second = api.get(f"{url}&pageToken={first['next-page-token']}").json()

    assert [*first["namespaces"], *second["namespaces"]] == [[ns, "sp ace", name] for name in "abc"]
    assert "next-page-token" not in second


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_pages_hold_everything_once(api: httpx.Client, ns: str, size: int) -> None:
    wanted = [[ns, f"child{number}"] for number in range(4)]
    for levels in wanted:
        make_namespace(api, *levels)

    found: list[list[str]] = []
    token: str | None = ""
    while token is not None:
        page = api.get("/v1/namespaces", params={"parent": ns, "pageSize": size, "pageToken": token}).json()
        assert len(page["namespaces"]) <= size
        found += page["namespaces"]
        token = page.get("next-page-token")
        assert token != ""

    assert found == wanted


def test_properties_are_set_removed_and_missed(api: httpx.Client, ns: str) -> None:
    api.post(f"/v1/namespaces/{ns}/properties", json={"updates": {"a": "1", "b": "2"}})

    changed = api.post(
        f"/v1/namespaces/{ns}/properties", json={"updates": {"a": "3"}, "removals": ["b", "c", "c"]}
    )

    assert changed.json() == {"updated": ["a"], "removed": ["b"], "missing": ["c"]}
    properties = api.get(f"/v1/namespaces/{ns}").json()["properties"]
    assert properties == {"a": "3", "location": properties["location"]}


def test_change_of_nothing_is_answered_with_three_lists(api: httpx.Client, ns: str) -> None:
    changed = api.post(f"/v1/namespaces/{ns}/properties", json={})

    assert changed.json() == {"updated": [], "removed": [], "missing": []}


def test_property_both_set_and_removed_is_refused(api: httpx.Client, ns: str) -> None:
    response = api.post(f"/v1/namespaces/{ns}/properties", json={"updates": {"a": "1"}, "removals": ["a"]})

    assert error_of(response)[:2] == (422, "UnprocessableEntityException")


def test_properties_of_a_missing_namespace_are_not_found(api: httpx.Client) -> None:
    status, kind, message = error_of(
        api.post("/v1/namespaces/newdb/properties", json={"updates": {"a": "1"}})
    )

    assert (status, kind) == (404, "NoSuchNamespaceException")
    assert message.startswith("Namespace does not exist: newdb")


def test_empty_namespace_is_dropped(api: httpx.Client, ns: str) -> None:
    assert api.delete(f"/v1/namespaces/{ns}").status_code == 204
    assert error_of(api.delete(f"/v1/namespaces/{ns}"))[:2] == (404, "NoSuchNamespaceException")


@pytest.mark.parametrize("content", ["table", "view", "namespace"])
def test_namespace_with_anything_in_it_is_not_dropped(api: httpx.Client, ns: str, content: str) -> None:
    if content == "table":
        make_table(api, ns, "t")
    elif content == "view":
        make_view(api, ns, "v")
    else:
        make_namespace(api, ns, "child")

    status, kind, message = error_of(api.delete(f"/v1/namespaces/{ns}"))

    assert (status, kind) == (409, "NamespaceNotEmptyException")
    assert message.startswith(f"Namespace {ns} is not empty.")


def test_unknown_prefix_is_no_warehouse(api: httpx.Client) -> None:
    assert error_of(api.get("/v1/nowhere/namespaces"))[:2] == (404, "NoSuchWarehouseException")
