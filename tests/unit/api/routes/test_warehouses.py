"""Warehouses over HTTP."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.builders.http_catalog import error_of, make_namespace

URL = "/management/v1/warehouses"
_NUMBERS = itertools.count(1)


@pytest.fixture
def warehouse(api: httpx.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("ICETOWER_SECRET_TOKEN", "hunter3")
    body = {
        "name": f"wh.{next(_NUMBERS)}",
        "root-location": f"file://{tmp_path}/files/",
        "default-properties": {"clients": "4"},
        "override-properties": {"io-impl": "x"},
        "storage": {
            "s3.access-key-id": "me",
            "s3.secret-access-key": "hunter2",
            "s3.session-token": "env:ICETOWER_SECRET_TOKEN",
        },
    }
    created = api.post(URL, json=body)
    assert created.status_code == 200, created.text
    shown: dict[str, Any] = created.json()
    return shown


def test_created_warehouse_is_shown_with_secrets_masked(
    api: httpx.Client, warehouse: dict[str, Any], tmp_path: Path
) -> None:
    shown = api.get(f"{URL}/{warehouse['name']}")

    assert shown.json() == warehouse
    assert warehouse["root-location"] == f"file://{tmp_path}/files"
    assert warehouse["storage"] == {
        "s3.access-key-id": "me",
        "s3.secret-access-key": "********",
        "s3.session-token": "env:ICETOWER_SECRET_TOKEN",
    }
    assert warehouse in api.get(URL).json()["warehouses"]
    assert "hunter2" not in api.get(URL).text + shown.text


def test_warehouses_are_listed_in_pages(api: httpx.Client, warehouse: dict[str, Any]) -> None:
    whole = api.get(URL).json()
    names, token = [], ""
    for _ in whole["warehouses"]:
        page = api.get(URL, params={"pageSize": 1, "pageToken": token}).json()
        names += [item["name"] for item in page["warehouses"]]
        token = page.get("next-page-token", "")

    assert warehouse["name"] in names
    assert names == [item["name"] for item in whole["warehouses"]]
    assert token == ""
    assert "next-page-token" not in whole
    assert error_of(api.get(URL, params={"pageToken": "x"}))[0] == 400


def test_new_warehouse_has_nothing_that_a_mask_could_hide(api: httpx.Client, tmp_path: Path) -> None:
    storage = {"s3.access-key-id": "me", "s3.secret-access-key": "********"}
    body = {"name": f"wh.{next(_NUMBERS)}", "root-location": f"file://{tmp_path}", "storage": storage}

    refused = api.post(URL, json=body)

    assert "s3.secret-access-key is masked" in error_of(refused)[2]
    assert api.get(f"{URL}/{body['name']}").status_code == 404


def test_clients_of_a_warehouse_are_led_to_it(api: httpx.Client, warehouse: dict[str, Any]) -> None:
    config = api.get("/v1/config", params={"warehouse": warehouse["name"]}).json()
    prefix = config["overrides"]["prefix"]

    api.post(f"/v1/{prefix}/namespaces", json={"namespace": ["only_here"]})

    assert config["defaults"] == {"clients": "4"}
    assert config["overrides"]["io-impl"] == "x"
    assert api.get(f"/v1/{prefix}/namespaces").json() == {"namespaces": [["only_here"]]}
    assert api.head("/v1/namespaces/only_here").status_code == 404


def test_root_location_names_a_warehouse_too(api: httpx.Client, warehouse: dict[str, Any]) -> None:
    config = api.get("/v1/config", params={"warehouse": warehouse["root-location"]}).json()

    assert config["overrides"]["prefix"] == warehouse["name"]


def test_name_that_is_taken_is_refused(api: httpx.Client, warehouse: dict[str, Any]) -> None:
    body = {"name": warehouse["name"], "root-location": "memory://x"}

    assert error_of(api.post(URL, json=body))[:2] == (409, "AlreadyExistsException")


@pytest.mark.parametrize("name", ["", "namespaces", "config", "a/b", "x" * 300, "a\x1fb"])
def test_name_that_cannot_stand_in_a_path_is_refused(api: httpx.Client, name: str) -> None:
    assert error_of(api.post(URL, json={"name": name, "root-location": "memory://x"}))[0] == 400


@pytest.mark.parametrize(
    "body", [{}, {"name": "x"}, {"name": "x", "root-location": ""}, {"name": "x", "root-location": 1}]
)
def test_senseless_warehouse_is_refused(api: httpx.Client, body: dict[str, Any]) -> None:
    assert error_of(api.post(URL, json=body))[0] == 400


def test_given_fields_replace_and_others_stay(api: httpx.Client, warehouse: dict[str, Any]) -> None:
    changed = api.patch(f"{URL}/{warehouse['name']}", json={"default-properties": {"clients": "8"}})

    assert changed.json() == {**warehouse, "default-properties": {"clients": "8"}}
    config = api.get("/v1/config", params={"warehouse": warehouse["name"]}).json()
    assert config["defaults"] == {"clients": "8"}


def test_mask_that_comes_back_keeps_the_secret(api: httpx.Client, warehouse: dict[str, Any]) -> None:
    storage = {**warehouse["storage"], "s3.access-key-id": "you"}

    changed = api.patch(f"{URL}/{warehouse['name']}", json={"storage": storage})

    assert changed.json()["storage"] == storage


@pytest.mark.parametrize(
    "change",
    [
        {"s3.endpoint": "http://evil.example"},
        {"s3.region": "evil-1"},
        {"client.region": "evil-1"},
        {"s3.role-arn": "arn:evil"},
        {"gcs.service.host": "http://evil.example"},
        {"adls.account-name": "evil"},
        {"adls.auth.shared-key.account.name": "evil"},
        {"adls.blob-storage-authority": ".evil.example"},
        {"adls.dfs-storage-scheme": "http"},
        {"adls.tenant-id": "evil"},
        {"hdfs.host": "evil.example"},
        {"hdfs.endpoint": "http://evil.example"},
        {"allowed-locations": "abfss://c@a.dfs.evil.example/"},
    ],
    ids=str,
)
def test_masked_secret_is_not_sent_elsewhere(
    api: httpx.Client, warehouse: dict[str, Any], change: dict[str, str]
) -> None:
    url = f"{URL}/{warehouse['name']}"
    (key,) = change

    refused = api.patch(url, json={"storage": {**warehouse["storage"], **change}})

    status, kind, message = error_of(refused)
    assert (status, kind) == (400, "BadRequestException")
    assert message.startswith(
        f"Storage setting s3.secret-access-key must be given anew: {key} changes, which may decide"
    )
    assert api.get(url).json() == warehouse
    anew = {**warehouse["storage"], "s3.secret-access-key": "known", **change}
    assert api.patch(url, json={"storage": anew}).is_success


def test_endpoint_that_goes_is_a_change_too(api: httpx.Client, warehouse: dict[str, Any]) -> None:
    url = f"{URL}/{warehouse['name']}"
    stored = {"s3.endpoint": "http://store", "s3.access-key-id": "me", "s3.secret-access-key": "hunter2"}
    api.patch(url, json={"storage": stored}).raise_for_status()

    refused = api.patch(url, json={"storage": {"s3.access-key-id": "me", "s3.secret-access-key": "********"}})

    assert "s3.endpoint changes" in error_of(refused)[2]


def test_single_keys_are_set_and_removed_and_the_others_stay(
    api: httpx.Client, warehouse: dict[str, Any]
) -> None:
    url = f"{URL}/{warehouse['name']}"
    protected = {"icetower.protected": "true", "old": "1"}
    api.patch(url, json={"default-properties": protected, "override-properties": {"a": "1"}})

    changed = api.patch(
        url,
        json={
            "updates": {"default-properties": {"clients": "8"}, "storage": {"s3.connect-timeout": "5"}},
            "removals": {"default-properties": ["old", "never there"]},
        },
    )

    assert changed.json() == warehouse | {
        "default-properties": {"icetower.protected": "true", "clients": "8"},
        "override-properties": {"a": "1"},
        "storage": warehouse["storage"] | {"s3.connect-timeout": "5"},
    }
    assert api.get(url).json() == changed.json()


def test_secret_that_is_kept_is_not_sent_elsewhere_by_a_single_key(
    api: httpx.Client, warehouse: dict[str, Any]
) -> None:
    url = f"{URL}/{warehouse['name']}"
    change = {"s3.endpoint": "http://evil.example"}

    refused = api.patch(url, json={"updates": {"storage": change}})

    assert "s3.secret-access-key must be given anew: s3.endpoint changes" in error_of(refused)[2]
    assert api.get(url).json() == warehouse
    anew = {**change, "s3.secret-access-key": "known", "s3.session-token": "env:ICETOWER_SECRET_TOKEN"}
    assert api.patch(url, json={"updates": {"storage": anew}}).is_success
    gone = api.patch(
        url,
        json={
            "updates": {"storage": {"s3.endpoint": "http://store"}},
            "removals": {"storage": ["s3.secret-access-key", "s3.access-key-id", "s3.session-token"]},
        },
    )
    assert gone.json()["storage"]["s3.endpoint"] == "http://store"


def test_variable_that_is_named_already_is_not_sent_elsewhere_by_a_single_key(
    api: httpx.Client, warehouse: dict[str, Any]
) -> None:
    url = f"{URL}/{warehouse['name']}"
    token = {"s3.session-token": warehouse["storage"]["s3.session-token"]}
    change = {"s3.endpoint": "http://evil.example", "s3.secret-access-key": "known"}

    refused = api.patch(url, json={"updates": {"storage": change}})

    assert "s3.session-token must be given anew: s3.endpoint changes" in error_of(refused)[2]
    assert api.get(url).json() == warehouse
    assert api.patch(url, json={"updates": {"storage": change | token}}).is_success


@pytest.mark.parametrize("kind", ["default-properties", "override-properties"])
@pytest.mark.parametrize(
    "key", ["icetower.protected", "icetower.undrop.keep-ms", "icetower.undrop.purge-waits"]
)
def test_a_replacement_says_what_becomes_of_what_keeps_things_from_loss(
    api: httpx.Client, warehouse: dict[str, Any], kind: str, key: str
) -> None:
    url = f"{URL}/{warehouse['name']}"
    value, other = ("86400000", "0") if key.endswith("-ms") else ("true", "false")
    api.patch(url, json={kind: {key: value, "a": "1"}}).raise_for_status()

    refused = api.patch(url, json={kind: {"a": "2"}})

    assert error_of(refused)[:2] == (400, "BadRequestException")
    assert f"A replacement of {kind} has to say what becomes of {key}" in error_of(refused)[2]
    assert api.get(url).json()[kind] == {key: value, "a": "1"}
    assert api.patch(url, json={kind: {key: other}}).json()[kind] == {key: other}
    assert api.patch(url, json={"removals": {kind: [key]}}).json()[kind] == {}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"default-properties": {}, "updates": {"default-properties": {"a": "1"}}},
            "default-properties can be replaced, or changed key by key, not both",
        ),
        (
            {"updates": {"storage": {"a": "1"}}, "removals": {"storage": ["a"]}},
            "Cannot both set and remove storage: a",
        ),
        ({"updates": {"default-properties": {"icetower.guard": "loud"}}}, "icetower.guard must be"),
        ({"updates": {"override-properties": {"a": 1}}}, "updates.override-properties.a"),
        ({"removals": {"storage": "a"}}, "removals.storage"),
        ({"updates": []}, "updates"),
    ],
)
def test_changes_that_make_no_sense_are_refused(
    api: httpx.Client, warehouse: dict[str, Any], change: dict[str, Any], said: str
) -> None:
    refused = api.patch(f"{URL}/{warehouse['name']}", json=change)

    assert error_of(refused)[:2] == (400, "BadRequestException")
    assert said in error_of(refused)[2]
    assert api.get(f"{URL}/{warehouse['name']}").json() == warehouse


def test_mask_of_nothing_is_no_secret(api: httpx.Client, warehouse: dict[str, Any]) -> None:
    refused = api.patch(f"{URL}/{warehouse['name']}", json={"storage": {"gcs.oauth2.token": "********"}})

    assert error_of(refused)[2] == (
        "Storage setting gcs.oauth2.token is masked, and there is no value that the mask could hide"
    )


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
def test_missing_warehouse_is_not_found(api: httpx.Client, method: str) -> None:
    response = api.request(method, f"{URL}/nope", json={})

    assert error_of(response)[:2] == (404, "NoSuchWarehouseException")


def test_empty_warehouse_is_dropped(api: httpx.Client, warehouse: dict[str, Any]) -> None:
    assert api.delete(f"{URL}/{warehouse['name']}").status_code == 204
    assert error_of(api.get(f"/v1/{warehouse['name']}/namespaces"))[:2] == (404, "NoSuchWarehouseException")


def test_warehouse_with_namespaces_is_not_dropped(api: httpx.Client) -> None:
    make_namespace(api, "keeps_it")

    assert error_of(api.delete(f"{URL}/default"))[:2] == (409, "WarehouseNotEmptyException")


def test_location_names_the_innermost_warehouse_around_it(api: httpx.Client, tmp_path: Path) -> None:
    root = f"file://{tmp_path}/lake"
    for name, place in {
        "outer": root,
        "inner": f"{root}/x",
        "twin.1": f"{root}/y",
        "twin.2": f"{root}/y/",
    }.items():
        api.post(URL, json={"name": name, "root-location": place}).raise_for_status()

    def prefix(location: str) -> httpx.Response:
        return api.get("/v1/config", params={"warehouse": location})

    assert prefix(f"{root}/rest/").json()["overrides"]["prefix"] == "outer"
    assert prefix(f"{root}/x/a/b").json()["overrides"]["prefix"] == "inner"
    assert prefix(f"{tmp_path}/lake/x").json()["overrides"]["prefix"] == "inner"
    assert error_of(prefix(f"{tmp_path}/lakes"))[:2] == (404, "NoSuchWarehouseException")
    assert error_of(prefix(f"{root}/y/z")) == (
        400,
        "BadRequestException",
        f"Location {root}/y/z belongs to several warehouses: ask for one by its name: twin.1, twin.2",
    )


def test_settings_that_the_server_cannot_use_are_no_fault_of_who_asks_for_a_table(
    api: httpx.Client, warehouse: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is not kept either: once the operator has mended them, the same request is carried out."""
    key, at = {"idempotency-key": f"key-{warehouse['name']}"}, f"/v1/{warehouse['name']}/namespaces"
    assert api.post(at, json={"namespace": ["a"]}).status_code == 200
    wanted = {"name": "t", "schema": {"type": "struct", "fields": []}}

    with monkeypatch.context() as restarted:
        restarted.delenv("ICETOWER_SECRET_TOKEN")
        refused = api.post(f"{at}/a/tables", json=wanted, headers=key)
    made = api.post(f"{at}/a/tables", json=wanted, headers=key)

    status, kind, message = error_of(refused)
    assert (status, kind) == (503, "ServiceUnavailableException")
    assert message.startswith(
        f"Cannot open the store of warehouse {warehouse['name']}: Environment variable "
    )
    assert "ICETOWER_SECRET_TOKEN of the server is not set" in message
    assert message.endswith("has to mend that: for a warehouse, the operator of the server")
    assert (made.status_code, "idempotent-replayed" in made.headers) == (200, False)
