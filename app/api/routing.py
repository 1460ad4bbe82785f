"""The routes, in the order in which they are tried, and the answer where no route matches."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

from fastapi import FastAPI
from fastapi.middleware.asyncexitstack import AsyncExitStackMiddleware
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Receive, Scope, Send

from app.api.entrance.commit_ids import Mutations
from app.api.entrance.web_pages import asks_for_tokens
from app.api.error_responses import error_body, oauth_error_body, status_and_type
from app.api.responses.answers import json_answer
from app.api.routes import (
    config,
    docs,
    dropped,
    health,
    maintenance,
    metrics,
    namespaces,
    orphans,
    past,
    receipts,
    tower,
    views,
    warehouses,
)
from app.api.routes.table import (
    appends,
    commits,
    conflicts,
    dry_runs,
    expiry,
    history,
    loads,
    refs,
    registrations,
    scans,
    table_health,
    table_properties,
    tables,
    upkeep,
)
from app.errors import IcetowerError, MethodNotAllowed, NoSuchRoute, Unavailable

_V1 = "/v1/"
_PREFIXED = "/v1/{prefix}/"
_CONFIG = "/v1/config"
_ALONE = {_CONFIG: config.get_config, "/health": health.health}
_PARAMETER = re.compile(r"{\w+}")
"""Routes have underscores where the description has hyphens."""

_NO_TOKENS = (
    "This server gives no tokens: leave 'credential' out, or say with 'oauth2-server-uri' who gives them"
)

_CHANGE_NOTHING = (conflicts, dry_runs, maintenance, metrics, orphans, registrations, scans)
"""Routes that change no table, view, namespace or warehouse, whatever their method."""

_READING = ("/plan", "/plan/{plan-id}", "/tasks", "/metrics")
_OF_NOW = re.compile(r"/(commits|tower|health|maintenance|orphans|dropped)(/|$)|{prefix}/diff$")
"""Of the present only: what is done to it, or was, and how it fares."""
_OF_TABLE = re.compile(r"/v1/namespaces/(?P<namespace>[^/]+)/tables/(?P<table>[^/]+)")
_OF_TABLES = re.compile(r"/v1/namespaces/(?P<namespace>[^/]+)/tables")
_APPEND = re.compile(rf"{_OF_TABLE.pattern}/append")
_QUICK = {"GET": loads.load_table, "HEAD": loads.table_exists, "POST": commits.commit_table}
_QUICK_OF_TABLES = {"GET": tables.list_tables, "POST": tables.create_table}


async def of_table(request: Request) -> Response:
    """Load, probe or commit to a table."""
    return await _QUICK[request.method](request)


def routes() -> list[BaseRoute]:
    """Return every route, the quick ones first."""
    quick: list[BaseRoute] = [
        Route("/v1/namespaces/{namespace}/tables/{table}", of_table, methods=list(_QUICK)),
        Route("/v1/namespaces/{namespace}/tables/{table}/append", appends.append_files, methods=["POST"]),
        *(
            _without_head(Route("/v1/namespaces/{namespace}/tables", handler, methods=[method]))
            for method, handler in _QUICK_OF_TABLES.items()
        ),
        _without_head(Route(_CONFIG, config.get_config, methods=["GET"])),
        _without_head(Route("/health", health.health, methods=["GET"])),
    ]
    modules = (
        tables,
        namespaces,
        commits,
        dry_runs,
        registrations,
        refs,
        history,
        receipts,
        tower,
        table_health,
        table_properties,
        maintenance,
        conflicts,
        expiry,
        upkeep,
        orphans,
        dropped,
        past,
        scans,
        views,
        metrics,
        warehouses,
        health,
        docs,
    )
    return [*quick, *(route for module in modules for route in module.router.routes)]


def operations(served: list[BaseRoute]) -> Iterator[tuple[str, str]]:
    """Yield method and path of all that is served, paths as openapi.yaml has them."""
    for route in served:
        assert isinstance(route, Route)
        for method in sorted(route.methods or ()):
            yield method, described_path(route.path)


def endpoints(served: list[BaseRoute]) -> tuple[str, ...]:
    """Return the operations of the protocol, as clients see them."""
    return tuple(f"{method} {path}" for method, path in operations(served) if path.startswith(_PREFIXED))


def endpoints_of_the_past(served: Sequence[str]) -> tuple[str, ...]:
    """Return those operations of the protocol that a warehouse as it was serves: they read."""
    return tuple(
        endpoint
        for endpoint in served
        if (endpoint.startswith(("GET ", "HEAD ")) and not _OF_NOW.search(endpoint))
        or endpoint.endswith(_READING)
    )


def route_labels(served: list[BaseRoute]) -> Mapping[object, str]:
    """Return each route's described path by its endpoint, for counters and log lines."""
    return {route.endpoint: described_path(route.path) for route in served if isinstance(route, Route)}


def described_path(path: str) -> str:
    """Return a routed path as openapi.yaml has it, with the prefix."""
    path = _PARAMETER.sub(lambda match: match[0].replace("_", "-"), path)
    if path.startswith(_V1) and path != _CONFIG:
        return _PREFIXED + path[len(_V1) :]
    return path


def mutations(served: list[BaseRoute]) -> Mutations:
    """Return the operations that change something in the catalog, by method and endpoint."""
    found: dict[tuple[str, object], str] = {("POST", of_table): "commit_table"}
    for route in served:
        assert isinstance(route, Route)
        for method in (route.methods or set()) - {"GET", "HEAD"}:
            if (
                route.endpoint is not of_table
                and sys.modules[route.endpoint.__module__] not in _CHANGE_NOTHING
            ):
                found[method, route.endpoint] = route.endpoint.__name__
    return found


class Dispatcher:
    """Runs the quick routes at once, and the others through FastAPI's router, which costs more.

    What no route serves is refused with the protocol's errors.
    """

    def __init__(self, app: FastAPI, served: list[BaseRoute]) -> None:
        app.router.redirect_slashes = False
        app.router.routes[:] = served
        self._others = AsyncExitStackMiddleware(app.router)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        handler = _quick_handler(scope) if scope["type"] == "http" else None
        if handler is not None:
            response = await handler(Request(scope, receive))
            await response(scope, receive, send)
            return
        try:
            await self._others(scope, receive, send)
        except HTTPException as error:
            await _refuse(Request(scope), error)(scope, receive, send)
        except RuntimeError as error:
            if _has_begun(error, scope):
                raise
            raise Unavailable(f"This was not begun: {error}") from error


def _quick_handler(scope: Scope) -> Callable[[Request], Awaitable[Response]] | None:
    path, method = scope["path"], scope["method"]
    found = _OF_TABLE.fullmatch(path)
    if found is not None and method in _QUICK:
        scope["path_params"] = found.groupdict()
        scope["endpoint"] = of_table
        return _QUICK[method]
    if method == "POST" and (found := _APPEND.fullmatch(path)) is not None:
        scope["path_params"] = found.groupdict()
        scope["endpoint"] = appends.append_files
        return appends.append_files
    if method in _QUICK_OF_TABLES and (found := _OF_TABLES.fullmatch(path)) is not None:
        scope["path_params"] = found.groupdict()
        scope["endpoint"] = _QUICK_OF_TABLES[method]
        return _QUICK_OF_TABLES[method]
    if method == "GET" and path in _ALONE:
        scope["path_params"] = {}
        scope["endpoint"] = _ALONE[path]
        return _ALONE[path]
    return None


def _has_begun(error: RuntimeError, scope: Scope) -> bool:
    """Say whether a route may have begun before this was raised.

    It has not if the pool of threads has raised it, which has no error of its own for threads that cannot be started.
    """
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    is_of_pool = any(frame.f_globals.get("__name__", "").startswith("anyio.") for frame in frames)
    route = getattr(scope.get("endpoint"), "__code__", None)
    return not is_of_pool or route is None or any(frame.f_code is route for frame in frames)


def _refuse(request: Request, error: HTTPException) -> Response:
    # The path as it was sent: the front door may have taken a prefix out of the one that was routed.
    path = request.scope["raw_path"][:500].decode("latin-1")
    if error.status_code == 404 and request.method == "POST" and asks_for_tokens(request.scope["raw_path"]):
        # Clients that send a credential read no other shape, and PyIceberg only after 400 and 401.
        return json_answer(oauth_error_body("unsupported_grant_type", _NO_TOKENS), 400)
    if error.status_code == 404:
        return _refusal(request, NoSuchRoute(f"No route serves {path}{_advice(path)}"))
    if error.status_code == 405:
        allowed = ", ".join(_allowed(request))
        refused = MethodNotAllowed(f"{request.method} is not allowed on {path}: allowed are {allowed}")
        response = _refusal(request, refused)
        response.raw_headers.append((b"allow", allowed.encode("ascii")))
        return response
    # No other status is expected here; the front door answers it as a failure of the server.
    raise error


def _advice(path: str) -> str:
    # Clients put /v1 behind the address that they are given, and `icetower warehouse` /management.
    if path.startswith(("/v1/v1/", "/v1/management/")):
        return ". Give clients the address of the server without /v1"
    if path in {"/", "/v1", "/v1/"}:
        return ". Routes of the catalog begin with /v1/, and /docs shows all of them"
    if path.startswith("//"):
        return ". Give clients the address of the server without a slash at its end"
    if asks_for_tokens(path.encode("latin-1")):
        return f". {_NO_TOKENS}"
    return ""


def _refusal(request: Request, error: IcetowerError) -> Response:
    status, kind = status_and_type(error)
    body = b"" if request.method == "HEAD" else error_body(status, kind, str(error))
    return json_answer(body, status)


def _allowed(request: Request) -> list[str]:
    found: set[str] = set()
    for route in request.app.router.routes:
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE:
            found |= route.methods or set()
    return sorted(found)


def _without_head(route: Route) -> Route:
    # Starlette adds HEAD to every GET; only what openapi.yaml describes is served.
    route.methods = (route.methods or set()) - {"HEAD"}
    return route
