"""The whole API, fuzzed from openapi.yaml: no server error, and every answer is one that the description has."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from app.api.description import description
from tests.bad_input.commit_bodies import table_with_history
from tests.builders.http_catalog import http_catalog, make_namespace, make_table, make_view

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
THERE: Mapping[str, tuple[str, ...]] = {
    "prefix": ("default",),
    "namespace": ("a", "b"),
    "table": ("t", "v1", "v2", "v3"),
    "view": ("v",),
    "warehouse": ("default", "other"),
    "snapshot": ("1001", "1002"),
    "ref": ("main", "audit", "v1.0"),
}
"""What is there, by the name of the path's piece, so that requests get past the door."""

RUNNING: dict[str, tuple[str, ...]] = {}
"""The id of the job that holds the table `t` now: ids are never used again."""

API = schemathesis.openapi.from_dict(description())
# Every boundary of every parameter and field, one by one: thousands of requests, nearly all of them refused.
API.config.phases.coverage.enabled = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with http_catalog(
        tmp_path_factory.mktemp("fuzzed"), default_warehouse_location="memory://fuzzed"
    ) as client:
        yield client


@pytest.fixture
def filled(api: httpx.Client) -> httpx.Client:
    """Bring back what the operation before this one may have dropped or changed."""
    api.post("/management/v1/warehouses", json={"name": "other", "root-location": "memory://other"})
    namespaces = api.get("/v1/namespaces").json()["namespaces"]
    for namespace in {"a", "b"} - {levels[0] for levels in namespaces}:
        make_namespace(api, namespace)
    for name in ("t", "v1", "v2", "v3"):
        api.delete(f"/v1/namespaces/a/tables/{name}")
    api.delete("/v1/namespaces/a/views/v")
    make_table(api, "a", "t")
    make_view(api, "a", "v")
    for version in (1, 2, 3):
        table_with_history(api, "a", version)
    begun = api.post("/v1/namespaces/a/tables/t/maintenance/jobs", json={"job": "expire-snapshots"})
    RUNNING["job-id"] = (begun.json()["id"],)
    return api


@API.parametrize()
@settings(max_examples=max(10, settings().max_examples // 5), suppress_health_check=list(HealthCheck))
def test_any_request_is_answered_as_described(case: Case[Any], filled: httpx.Client) -> None:
    get_past_the_door(case)

    case.call_and_validate(base_url=str(filled.base_url), checks=CHECKS)


def get_past_the_door(case: Case[Any]) -> None:
    """Let most requests name what is there, and few have an Idempotency-Key: one for all is refused at once.

    What is changed depends on what was drawn and on nothing else, so that a failure can be found again.
    """
    chance = zlib.crc32(repr((case.path_parameters, case.query, case.headers)).encode())
    there = {**THERE, **RUNNING}
    for name in case.path_parameters or ():
        if name in there and chance % 8:
            case.path_parameters[name] = there[name][chance % len(there[name])]
    if case.headers and chance % 10:
        case.headers.pop("Idempotency-Key", None)


def test_every_operation_is_fuzzed() -> None:
    paths = description()["paths"].values()
    described = sum(
        method in item for item in paths for method in ("get", "head", "post", "put", "patch", "delete")
    )

    assert len(list(API.get_all_operations())) == described
