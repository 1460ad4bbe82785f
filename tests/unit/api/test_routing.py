"""Which paths and methods are served, and how all others are refused."""

from __future__ import annotations

import threading
from pathlib import Path

import httpx
import pytest
from pyiceberg.catalog.rest.response import OAuthErrorResponse
from starlette.routing import Route

from app.api.routing import described_path, endpoints, operations, route_labels, routes
from app.catalog import namespaces
from tests.builders.http_catalog import error_of, http_catalog

FORM = {"grant_type": "client_credentials", "client_id": "me", "client_secret": "word", "scope": "catalog"}


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/v1",
        "/v1/",
        "/v1/config/",
        "/v1//config",
        "/v1/namespaces/",
        "/v1/namespaces//tables",
        "/v1/namespaces/a/tables/",
        "/v1/namespaces/a/tables/b/c",
        "/v1/a/b/namespaces",
        "/v1/default",
        "/v1/default/config",
        "/v1/namespaces/a/functions",
        "/v1/oauth/tokens",
        "/v2/config",
        "/nope",
    ],
)
def test_unknown_path_is_refused_in_the_protocols_shape(api: httpx.Client, path: str) -> None:
    status, kind, message = error_of(api.get(path))

    assert (status, kind) == (404, "NoSuchRouteException")
    assert path in message


@pytest.mark.parametrize(
    "path", ["/v1/oauth/tokens", "/v1/oauth/tokens/", "//v1/oauth/tokens", "/v1/default/oauth/tokens"]
)
def test_clients_with_a_credential_are_told_in_oauths_shape_that_there_are_no_tokens(
    api: httpx.Client, path: str
) -> None:
    response = api.post(f"{api.base_url}{path}", data=FORM)

    assert response.status_code == 400
    assert OAuthErrorResponse.model_validate_json(response.content).error == "unsupported_grant_type"
    assert response.json()["error_description"] == (
        "This server gives no tokens: leave 'credential' out, or say with 'oauth2-server-uri' who gives them"
    )


def test_encoded_slash_is_part_of_a_name(api: httpx.Client) -> None:
    assert error_of(api.get("/v1/namespaces/a%2Ftables")) == (
        404,
        "NoSuchNamespaceException",
        "Namespace does not exist: a/tables",
    )


def test_refused_path_is_shown_as_it_was_sent(api: httpx.Client) -> None:
    assert "/v1/sales/tables/nope" in error_of(api.get("/v1/sales/tables/nope"))[2]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/v1/namespaces/a/tables/t", "DELETE, GET, HEAD, POST"),
        ("PATCH", "/v1/default/namespaces/a", "DELETE, GET, HEAD"),
        ("DELETE", "/v1/namespaces", "GET, POST"),
        ("POST", "/v1/config", "GET"),
        ("OPTIONS", "/v1/config", "GET"),
        ("POST", "/health", "GET"),
        ("GET", "/v1/transactions/commit", "POST"),
        ("PUT", "/management/v1/warehouses/x", "DELETE, GET, PATCH"),
    ],
)
def test_wrong_method_is_refused_with_the_right_ones(
    api: httpx.Client, method: str, path: str, allowed: str
) -> None:
    response = api.request(method, path)

    assert error_of(response)[:2] == (405, "MethodNotAllowedException")
    assert response.headers["allow"] == allowed


def test_wrong_method_is_refused_to_head_without_a_body(api: httpx.Client) -> None:
    response = api.head("/v1/config")

    assert (response.status_code, response.content) == (405, b"")


def test_busiest_route_is_tried_first() -> None:
    first = routes()[0]

    assert isinstance(first, Route)
    assert first.path == "/v1/namespaces/{namespace}/tables/{table}"


def test_no_operation_is_served_twice() -> None:
    served = list(operations(routes()))

    assert len(served) == len(set(served))


def test_endpoints_are_the_prefixed_operations() -> None:
    assert set(endpoints(routes())) == {
        f"{method} {path}" for method, path in operations(routes()) if path.startswith("/v1/{prefix}/")
    }


def test_every_route_has_a_label_without_names_in_it() -> None:
    labels = route_labels(routes())

    assert set(labels.values()) == {path for _, path in operations(routes())}


@pytest.mark.parametrize(
    ("path", "described"),
    [
        ("/v1/namespaces", "/v1/{prefix}/namespaces"),
        ("/v1/config", "/v1/config"),
        ("/health", "/health"),
        ("/management/v1/warehouses", "/management/v1/warehouses"),
    ],
)
def test_described_path_shows_the_prefix(path: str, described: str) -> None:
    assert described_path(path) == described


def test_a_request_for_which_no_thread_can_be_started_was_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, created = threading.Thread.start, {"namespace": ["a"]}

    def refuse(thread: threading.Thread) -> None:
        if "AnyIO" in thread.name:
            raise RuntimeError("can't start new thread")
        start(thread)

    with http_catalog(tmp_path) as client:
        with monkeypatch.context() as full:
            full.setattr(threading.Thread, "start", refuse)
            refused = client.post("/v1/namespaces", json=created)
        again = client.post("/v1/namespaces", json=created)

    assert error_of(refused) == (
        503,
        "ServiceUnavailableException",
        "This was not begun: can't start new thread",
    )
    assert refused.headers["retry-after"] == "1"
    assert again.status_code == 200


def test_an_error_of_a_route_that_has_begun_does_not_say_that_it_was_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(namespaces, "create_namespace", fail)

    with http_catalog(tmp_path) as client:
        status, kind, _ = error_of(client.post("/v1/namespaces", json={"namespace": ["a"]}))

    assert (status, kind) == (500, "InternalServerError")
