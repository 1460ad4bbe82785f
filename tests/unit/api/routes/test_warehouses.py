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
def warehouse(api: httpx.Client, tmp_path: Path) -> dict[str, Any]:
    body = {
        "name": f"wh.{next(_NUMBERS)}",
        "root-location": f"file://{tmp_path}/files/",
        "default-properties": {"clients": "4"},
        "override-properties": {"io-impl": "x"},
        "storage": {
            "s3.access-key-id": "me",
            "s3.secret-access-key": "hunter2",
            "s3.session-token": "env:HOME",
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
        "s3.session-token": "env:HOME",
    }
    assert warehouse in api.get(URL).json()["warehouses"]
    assert "hunter2" not in api.get(URL).text + shown.text


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
