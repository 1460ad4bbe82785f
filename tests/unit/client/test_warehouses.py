"""The calls of the management API, and what is left out of them."""

from __future__ import annotations

import json

import httpx

from app.client.warehouses import WarehouseCalls
from tests.unit.client.scripted_server import ScriptedServer, ok

LAKE = {
    "name": "lake",
    "root-location": "s3://lake",
    "default-properties": {"a": "1"},
    "override-properties": {},
    "storage": {"s3.region": "eu-west-1"},
}


def test_warehouses_are_read_page_by_page() -> None:
    other = LAKE | {"name": "other"}
    server = ScriptedServer([ok({"warehouses": [LAKE], "next-page-token": "t"}), ok({"warehouses": [other]})])

    assert [found.name for found in WarehouseCalls(server.calls()).list()] == ["lake", "other"]


def test_warehouses() -> None:
    server = ScriptedServer(
        [ok({"warehouses": [LAKE]}), ok(LAKE), ok(LAKE), ok(LAKE), ok(LAKE), httpx.Response(204)]
    )
    warehouses = WarehouseCalls(server.calls())

    assert [found.name for found in warehouses.list()] == ["lake"]
    assert warehouses.create("lake", "s3://lake", storage={"k": "v"}).root_location == "s3://lake"
    assert warehouses.load("la/ke").default_properties == {"a": "1"}
    changed = warehouses.update("lake", updates={"storage": {"k": "v"}}, removals={})
    assert changed.storage == {"s3.region": "eu-west-1"}
    warehouses.update("lake", updates={}, removals={"override-properties": ["k"]})
    warehouses.drop("lake")

    asked = [(request.method, request.url.raw_path.decode()) for request in server.requests]
    assert asked == [
        ("GET", "/management/v1/warehouses?pageToken=&pageSize=1000"),
        ("POST", "/management/v1/warehouses"),
        ("GET", "/management/v1/warehouses/la%2Fke"),
        ("PATCH", "/management/v1/warehouses/lake"),
        ("PATCH", "/management/v1/warehouses/lake"),
        ("DELETE", "/management/v1/warehouses/lake"),
    ]
    assert json.loads(server.requests[1].content) == {
        "name": "lake",
        "root-location": "s3://lake",
        "storage": {"k": "v"},
    }
    assert json.loads(server.requests[3].content) == {"updates": {"storage": {"k": "v"}}, "removals": {}}
    assert json.loads(server.requests[4].content) == {
        "updates": {},
        "removals": {"override-properties": ["k"]},
    }
