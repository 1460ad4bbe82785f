"""openapi.yaml is what is served, and what the Iceberg REST specification says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it ships no types

from app.api.description import METHODS, description
from app.api.error_responses import STATUS_AND_TYPE
from app.api.routing import endpoints, operations, routes
from tests.conformance.rest_specification import SPECIFIED, Operation

API = description()

ADDED_STATUSES: dict[str, frozenset[str]] = {
    # The warehouse may be shown as it was, and the files of that time be gone.
    **dict.fromkeys(("loadTable", "tableExists", "planTableScan", "loadView"), frozenset({"410"})),
    # The specification leaves out that a caller may not ask.
    "viewExists": frozenset({"403", "410"}),
    # A prefix may name no warehouse.
    "createNamespace": frozenset({"404"}),
    # A purge or an unregister of a table that never stands still gives up in the end.
    "dropTable": frozenset({"409"}),
    "unregisterTable": frozenset({"409"}),
}
ADDED_FOR_BODIES = frozenset({"413", "415"})
ADDED_FOR_KEYS = frozenset({"422"})
_REBASE_HEADERS = frozenset({"X-Icetower-Rebase", "X-Icetower-Conflict-Filter"})
ADDED_PARAMETERS = {
    # The specification leaves the header out here; clients send it all the same.
    "createView": frozenset({"Idempotency-Key"}),
    # Ours: who asks for it gets a rebase instead of a refusal.
    "updateTable": _REBASE_HEADERS,
    "commitTransaction": _REBASE_HEADERS,
    # Ours as well: a table that has moved on is not let go.
    "unregisterTable": frozenset({"X-Icetower-Expected-Metadata-Location", "X-Icetower-Unread"}),
}
EXTENSIONS = frozenset({"extension", "management", "operations"})


def described() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in API["paths"].items():
        for method in METHODS:
            if method in item:
                yield method.upper(), path, item[method]


DESCRIBED = {f"{method} {path}": operation for method, path, operation in described()}
PROTOCOL = {key: operation for key, operation in DESCRIBED.items() if not EXTENSIONS & set(operation["tags"])}


def resolved(given: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in given:
        return given
    found: Any = API
    for piece in given["$ref"].removeprefix("#/").split("/"):
        found = found[piece]
    assert isinstance(found, dict)
    return found


def parameters(key: str) -> list[dict[str, Any]]:
    path = key.partition(" ")[2]
    given = [*API["paths"][path].get("parameters", []), *DESCRIBED[key].get("parameters", [])]
    return [resolved(parameter) for parameter in given]


def names(key: str, place: str) -> frozenset[str]:
    return frozenset(parameter["name"] for parameter in parameters(key) if parameter["in"] == place)


def test_what_is_described_is_served_and_the_other_way_round() -> None:
    assert set(DESCRIBED) == {f"{method} {path}" for method, path in operations(routes())}


def test_clients_are_told_of_all_that_has_a_prefix() -> None:
    assert set(endpoints(routes())) == {key for key in DESCRIBED if "/v1/{prefix}/" in key}


def test_nothing_but_extensions_is_beyond_the_specification() -> None:
    assert set(PROTOCOL) == set(SPECIFIED)


@pytest.mark.parametrize("key", SPECIFIED)
def test_operation_agrees_with_the_specification(key: str) -> None:
    specified: Operation = SPECIFIED[key]
    operation = DESCRIBED[key]
    added = ADDED_STATUSES.get(specified.name, frozenset()) | (
        ADDED_FOR_BODIES if "413" in operation["responses"] else frozenset()
    )
    if "Idempotency-Key" in names(key, "header"):
        added |= ADDED_FOR_KEYS

    assert operation["operationId"] == specified.name
    assert names(key, "path") == specified.path
    assert names(key, "query") == specified.query
    assert names(key, "header") == specified.headers | ADDED_PARAMETERS.get(specified.name, frozenset())
    assert frozenset(operation["responses"]) == specified.statuses | added
    assert ("requestBody" in operation) is specified.has_body


@pytest.mark.parametrize("key", DESCRIBED)
def test_operation_is_described_in_full(key: str) -> None:
    operation = DESCRIBED[key]

    assert operation["summary"]
    assert len(operation["tags"]) == 1
    assert operation["tags"][0] in {tag["name"] for tag in API["tags"]}
    assert names(key, "path") == frozenset(re.findall(r"{([a-z-]+)}", key))
    for parameter in parameters(key):
        assert parameter["description"]
        assert parameter["required"] is (parameter["in"] == "path")


@pytest.mark.parametrize("key", DESCRIBED)
def test_operation_has_the_statuses_of_what_is_refused_before_its_route(key: str) -> None:
    operation = DESCRIBED[key]
    refusals = {"403"} | (ADDED_FOR_BODIES if "requestBody" in operation else set())

    assert refusals <= frozenset(operation["responses"])


def bodies(key: str) -> Iterator[dict[str, Any]]:
    """Yield everything with a media type in an operation: its body and its answers."""
    operation = DESCRIBED[key]
    for given in [operation.get("requestBody", {}), *map(resolved, operation["responses"].values())]:
        yield from given.get("content", {}).values()


def examples(key: str) -> list[tuple[dict[str, Any], Any]]:
    """Return every example of an operation beside the schema it is one of."""
    found = []
    for thing in (*bodies(key), *parameters(key)):
        if "example" in thing:
            found.append((thing["schema"], thing["example"]))
        found += [(thing["schema"], example["value"]) for example in thing.get("examples", {}).values()]
    return found


@pytest.mark.parametrize("key", DESCRIBED)
def test_operation_has_examples_and_they_are_right(key: str) -> None:
    shown = examples(key)

    assert shown
    for schema, example in shown:
        Draft202012Validator({**schema, "components": API["components"]}).validate(example)


@pytest.mark.parametrize("key", DESCRIBED)
def test_request_body_has_an_example(key: str) -> None:
    for body in DESCRIBED[key].get("requestBody", {}).get("content", {}).values():
        assert "example" in body


def schemas(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"]
        for child in node.values():
            yield from schemas(child)
    elif isinstance(node, list):
        for child in node:
            yield from schemas(child)


def test_every_reference_leads_somewhere_and_every_component_is_used() -> None:
    used = set(schemas(API))
    defined = {f"#/components/{kind}/{name}" for kind, named in API["components"].items() for name in named}

    assert used == defined


def test_every_schema_is_one() -> None:
    for schema in API["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


def test_error_examples_are_answers_that_are_given() -> None:
    given = {(status, kind) for status, kind in STATUS_AND_TYPE.values()}
    # Told once there is authentication.
    given.add((419, "AuthenticationTimeoutException"))

    shown = {
        (example["error"]["code"], example["error"]["type"])
        for key in DESCRIBED
        for _, example in examples(key)
        if isinstance(example, dict) and "error" in example
    }

    assert shown <= given
