"""What is unknown in a request: passed over where the protocol says so, refused in Icetower's own routes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it ships no types

from tests.builders.http_catalog import http_catalog
from tests.conformance.test_openapi import API, DESCRIBED, EXTENSIONS, names

UNKNOWN = "novel-thing"
OF_THE_PROTOCOL = frozenset({"CommitTableRequest", "CommitTransactionRequest"})
"""Bodies that dry runs take as clients of the protocol send them."""


def schema_of(key: str) -> dict[str, Any]:
    found: dict[str, Any] = DESCRIBED[key]["requestBody"]["content"]["application/json"]
    return found


def is_own(key: str) -> bool:
    reference = schema_of(key)["schema"].get("$ref", "")
    return (
        bool(EXTENSIONS & set(DESCRIBED[key]["tags"])) and reference.rpartition("/")[2] not in OF_THE_PROTOCOL
    )


WITH_BODY = [key for key, operation in DESCRIBED.items() if "requestBody" in operation]
OWN = [key for key in WITH_BODY if is_own(key)]
OTHERS = [key for key in WITH_BODY if not is_own(key)]
OWN_WITHOUT_BODY = [
    key
    for key, operation in DESCRIBED.items()
    if EXTENSIONS & set(operation["tags"]) - {"operations"} and key not in WITH_BODY
]
"""Probes, metrics and pages about the API take any parameter, as those who ask add some against caches."""
OWN_WITH_QUERY = [key for key in OWN_WITHOUT_BODY if names(key, "query")]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with http_catalog(tmp_path_factory.mktemp("catalog")) as client:
        yield client


def send(api: httpx.Client, key: str, body: object = None, query: str = "") -> httpx.Response:
    method, _, path = key.partition(" ")
    return api.request(
        method, re.sub("{[a-z-]+}", "x", path.replace("{prefix}", "default")) + query, json=body
    )


def is_described(key: str, body: object) -> bool:
    schema = {**schema_of(key)["schema"], "components": API["components"]}
    return bool(Draft202012Validator(schema).is_valid(body))


def with_unknown(body: Any) -> Iterator[tuple[str, Any]]:
    """Yield a body with something unknown in it, and in each object of its lists."""
    yield f"unknown field '{UNKNOWN}'", {**body, UNKNOWN: 1}
    for name, items in body.items():
        if isinstance(items, list) and items and isinstance(items[0], dict):
            yield (
                f"{name}[0]: unknown field '{UNKNOWN}'",
                {**body, name: [{**items[0], UNKNOWN: 1}, *items[1:]]},
            )


@pytest.mark.parametrize("key", OWN)
def test_unknown_fields_and_parameters_of_own_bodies_are_refused_and_described_so(
    api: httpx.Client, key: str
) -> None:
    example = schema_of(key)["example"]

    for message, body in with_unknown(example):
        answer = send(api, key, body)

        assert (answer.status_code, message in answer.json()["error"]["message"]) == (400, True), answer.text
        assert not is_described(key, body)
    answer = send(api, key, example, f"?{UNKNOWN}=1")
    assert answer.status_code == 400
    assert f"unknown parameter '{UNKNOWN}'" in answer.json()["error"]["message"]
    assert "unknown" not in send(api, key, example).text


@pytest.mark.parametrize("key", OTHERS)
def test_unknown_fields_of_the_protocol_are_passed_over(api: httpx.Client, key: str) -> None:
    body = {**schema_of(key)["example"], UNKNOWN: 1}

    assert is_described(key, body)
    assert UNKNOWN not in send(api, key, body, f"?{UNKNOWN}=1").text


@pytest.mark.parametrize("key", OWN_WITHOUT_BODY)
def test_unknown_parameters_are_refused_also_where_none_is_known(api: httpx.Client, key: str) -> None:
    answer = send(api, key, query="?dry-run=true")

    assert (answer.status_code, "unknown parameter 'dry-run'" in answer.text) == (400, True), answer.text


@pytest.mark.parametrize("key", OWN_WITH_QUERY)
def test_parameters_are_those_that_are_described(api: httpx.Client, key: str) -> None:
    api.post("/v1/namespaces", json={"namespace": ["x"]})
    schema = {"type": "struct", "schema-id": 0, "fields": []}
    api.post("/v1/namespaces/x/tables", json={"name": "x", "schema": schema})
    known = sorted(names(key, "query"))

    answer = send(api, key, query=f"?{known[0]}x=1")

    message = f"unknown parameter '{known[0]}x'; did you mean {known[0]}?"
    assert (answer.status_code, message in answer.text) == (400, True), answer.text
    for name in known:
        assert "unknown parameter" not in send(api, key, query=f"?{name}=1").text
