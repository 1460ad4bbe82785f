"""What clients are told first."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from app.setting_types import SecretProperties
from tests.builders.http_catalog import error_of, http_catalog


def test_bare_uri_is_the_default_warehouse(api: httpx.Client) -> None:
    config = api.get("/v1/config").json()

    assert config["defaults"] == {}
    assert config["overrides"] == {"prefix": "default"}
    assert config["idempotency-key-lifetime"] == "PT30M"


@pytest.mark.parametrize("query", ["?warehouse=default", "?warehouse=", "?unknown=1"])
def test_named_default_warehouse_is_the_same(api: httpx.Client, query: str) -> None:
    assert api.get("/v1/config" + query).json() == api.get("/v1/config").json()


def test_unknown_warehouse_is_not_found(api: httpx.Client) -> None:
    status, kind, message = error_of(api.get("/v1/config", params={"warehouse": "nope"}))

    assert (status, kind) == (404, "NoSuchWarehouseException")
    assert message == "Warehouse does not exist: nope"


def test_endpoints_hold_the_served_ones_and_no_others(api: httpx.Client) -> None:
    endpoints = api.get("/v1/config").json()["endpoints"]

    assert "HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}" in endpoints
    assert "POST /v1/{prefix}/transactions/commit" in endpoints
    assert len(endpoints) == len(set(endpoints))
    assert not [endpoint for endpoint in endpoints if "{prefix}" not in endpoint]


def test_settings_of_the_warehouse_reach_its_clients(tmp_path: Path) -> None:
    with http_catalog(
        tmp_path,
        default_warehouse="lake",
        default_warehouse_properties=SecretProperties({"clients": "4"}),
        default_warehouse_overrides=SecretProperties({"io-impl": "x", "prefix": "elsewhere"}),
        idempotency_key_lifetime_minutes=90,
    ) as api:
        config = api.get("/v1/config").json()

    assert config["defaults"] == {"clients": "4"}
    assert config["overrides"] == {"io-impl": "x", "prefix": "lake"}
    assert config["idempotency-key-lifetime"] == "PT90M"
