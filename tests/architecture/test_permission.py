"""Nothing of a warehouse is reached by a caller who was not asked for: one seam, and no way past it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from app.catalog.context.callers import Question
from app.errors import NotAllowed
from app.main import create_app
from tests.architecture.source_files import ROOT, python_files, shown
from tests.builders.http_catalog import served, settings_in

SEAM = {
    "app/api/dependencies.py": "gives every route the catalog of its caller",
    "app/catalog/context/catalog.py": "makes that of the server's own work, for no caller",
}
"""The only places where a `Catalog` may be made."""

Sources = Mapping[str, ast.Module]


@cache
def sources() -> Sources:
    return {
        shown(path): ast.parse(path.read_text(encoding="utf-8"))
        for path in python_files("app/api", "app/catalog")
    }


def with_planted(path: str, code: str) -> Sources:
    """Return the sources with more code in one of them."""
    planted = ast.parse(code)
    known = sources()[path]
    return {**sources(), path: ast.Module([*known.body, *planted.body], [])}


def ways_past(found: Sources) -> Iterator[str]:
    """Yield what lets a route reach a warehouse without a question."""
    for path, tree in found.items():
        if path.startswith("app/api/"):
            yield from stores_in_routes(path, tree)
        yield from catalogs_made(path, tree)
    used = names_used_by_routes(found)
    for path, tree in found.items():
        if path.startswith("app/catalog/"):
            yield from unasked(path, tree, used)


def stores_in_routes(path: str, tree: ast.Module) -> Iterator[str]:
    """Yield where a route reaches behind a catalog: `x.server.<anything>` but the clock."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Attribute | ast.Name)
            and (node.value.attr if isinstance(node.value, ast.Attribute) else node.value.id) == "server"
            and node.attr != "now_ms"
        ):
            yield f"{path}:{node.lineno} reaches {ast.unparse(node)}"


def catalogs_made(path: str, tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Catalog" and path not in SEAM:
            yield f"{path}:{node.lineno} makes a catalog of its own"


def names_used_by_routes(found: Sources) -> set[str]:
    """Return the names of all functions and attributes that the HTTP side uses."""
    return {
        node.attr if isinstance(node, ast.Attribute) else node.id
        for path, tree in found.items()
        if path.startswith("app/api/")
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute | ast.Name)
    }


def unasked(path: str, tree: ast.Module, used: set[str]) -> Iterator[str]:
    """Yield the functions that routes call on a catalog or server and that do not ask first."""
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef) or node.name.startswith("_") or node.name not in used:
            continue
        given = [ast.unparse(item.annotation) for item in node.args.args if item.annotation is not None]
        # With a pointer in hand the question has been asked: only use cases give pointers away.
        if "Pointer" in given or not (given[:1] == ["Catalog"] or given[:2] == ["Server", "Caller"]):
            continue
        body = [line for line in node.body if not is_docstring(line)]
        first = ast.unparse(body[0]) if body else ""
        if not re.match(r"(catalog|server)\.permit\(", first):
            yield f"{path}: {node.name} does not ask first"


def is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def test_there_is_no_way_past_the_question() -> None:
    assert list(ways_past(sources())) == []


@pytest.mark.parametrize(
    ("path", "code", "found"),
    [
        (
            "app/api/routes/views.py",
            "def peek(visit): return visit.parts.server.pointers.find(1, visit.view)",
            "reaches visit.parts.server.pointers",
        ),
        (
            "app/api/routes/views.py",
            "def peek(visit): return visit.catalog.server.metadata_files",
            "reaches visit.catalog.server.metadata_files",
        ),
        (
            "app/api/routes/views.py",
            "def peek(server, warehouse): return Catalog(server, warehouse, SOMEBODY)",
            "makes a catalog of its own",
        ),
        (
            "app/catalog/views.py",
            (
                "def load_recorded(catalog: Catalog, identifier: TableIdentifier) -> bytes:\n"
                "    return catalog.read(VIEWS, catalog.load(VIEWS, identifier))"
            ),
            "load_recorded does not ask first",
        ),
        (
            "app/catalog/warehouses.py",
            (
                "def load_warehouse(server: Server, caller: Caller, name: str) -> Warehouse:\n"
                "    return server.warehouses.find(name)"
            ),
            "load_warehouse does not ask first",
        ),
    ],
)
def test_a_way_past_it_is_found(path: str, code: str, found: str) -> None:
    (way,) = ways_past(with_planted(path, code))

    assert way.startswith(path)
    assert way.endswith(found)


API: dict[str, Any] = yaml.safe_load((ROOT / "openapi.yaml").read_text(encoding="utf-8"))
OPEN = {
    "health": "says that the process is alive",
    "ready": "says that the server can work",
    "metrics": "counters",
    "openapiJson": "the description of the API",
    "openapiYaml": "the description of the API",
    "docs": "the description of the API",
    "reportMetrics": "is counted; nothing about the table is looked up or changed",
}
"""Operations that are about no warehouse, and why they need not ask."""
OPERATIONS = [
    (method, path, operation)
    for path, operations in API["paths"].items()
    for method, operation in operations.items()
    if method in ("get", "head", "post", "put", "patch", "delete")
]


def refuse(question: Question) -> None:
    raise NotAllowed(f"{question.caller.principal} may not {question.operation}")


@pytest.fixture(scope="module")
def closed_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A server on which nothing is allowed."""
    folder: Path = tmp_path_factory.mktemp("closed")
    with served(create_app(settings_in(folder), ask_permission=refuse)) as client:
        yield client


@pytest.mark.parametrize(
    ("method", "path", "operation"), OPERATIONS, ids=[item[2]["operationId"] for item in OPERATIONS]
)
def test_every_operation_asks_before_it_answers(
    closed_api: httpx.Client, method: str, path: str, operation: dict[str, Any]
) -> None:
    """Nothing of what the requests are about exists, and still each is answered 403 and not 404."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    target = path.replace("{prefix}", "default").replace("{warehouse}", "default")
    target = re.sub(r"{([a-z-]+)}", r"\1", target)
    example = content.get("example", {})
    if "identifier" in example:
        example = {**example, "identifier": {"namespace": ["namespace"], "name": target.split("/")[6]}}

    answer = closed_api.request(method.upper(), target, json=example if content else None)

    if operation["operationId"] in OPEN:
        assert answer.status_code < 400
        return
    assert answer.status_code == 403
    if method != "head":
        assert answer.json()["error"]["type"] == "ForbiddenException"
