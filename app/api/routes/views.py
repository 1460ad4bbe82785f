"""Views."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from app.api.answers import json_answer, loaded_view_answer, no_content
from app.api.bodies.commits import CommitViewBody
from app.api.bodies.identifiers import RenameBody, check_same, identifiers_json
from app.api.bodies.json_body import parse_body
from app.api.bodies.views import CreateViewBody, RegisterViewBody
from app.api.dependencies import Visit, Visited
from app.api.idempotency import run_once
from app.api.paging import page_in_query, page_token
from app.catalog import views
from app.catalog.context import Call
from app.engine.model.identifiers import LEVEL_SEPARATOR, TableIdentifier, check_identifier

router = APIRouter()


@router.get("/v1/namespaces/{namespace}/views")
def list_views(visit: Visited) -> Response:
    """List the views of a namespace."""
    warehouse, namespace = visit.warehouse, visit.namespace
    listing = f"views {warehouse.id} {LEVEL_SEPARATOR.join(namespace.levels)}"
    found = views.list_views(visit.catalog, warehouse, namespace, page_in_query(visit.query, listing))
    token = None if found.next_after is None else page_token(found.next_after, listing)
    return json_answer(identifiers_json(namespace, found.items, token))


@router.post("/v1/namespaces/{namespace}/views")
def create_view(visit: Visited) -> Response:
    """Create a view."""
    body = parse_body(CreateViewBody, visit.body)
    identifier = check_identifier(TableIdentifier(visit.namespace, body.name))
    new = views.NewView(identifier, body.schema_, body.view_version, body.location, body.properties or {})

    def mutate(call: Call) -> Response:
        return loaded_view_answer(views.create_view(visit.catalog, call, visit.warehouse, new))

    return run_once(visit, mutate, lambda result: _recorded(visit, identifier, result))


@router.post("/v1/namespaces/{namespace}/register-view")
def register_view(visit: Visited) -> Response:
    """Take a view metadata file into the catalog."""
    body = parse_body(RegisterViewBody, visit.body)
    identifier = check_identifier(TableIdentifier(visit.namespace, body.name))

    def mutate(call: Call) -> Response:
        return loaded_view_answer(
            views.register_view(visit.catalog, call, visit.warehouse, identifier, body.metadata_location)
        )

    return run_once(visit, mutate, lambda result: _recorded(visit, identifier, result))


@router.get("/v1/namespaces/{namespace}/views/{view}")
def load_view(visit: Visited) -> Response:
    """Return a view."""
    return loaded_view_answer(views.load_view(visit.catalog, visit.warehouse, visit.view))


@router.head("/v1/namespaces/{namespace}/views/{view}")
def view_exists(visit: Visited) -> Response:
    """Tell whether a view exists."""
    views.view_exists(visit.catalog, visit.warehouse, visit.view)
    return no_content()


@router.post("/v1/namespaces/{namespace}/views/{view}")
def replace_view(visit: Visited) -> Response:
    """Commit changes to a view."""
    identifier = visit.view
    body = parse_body(CommitViewBody, visit.body)
    check_same(body.identifier, identifier)

    def mutate(call: Call) -> Response:
        return loaded_view_answer(
            views.replace_view(
                visit.catalog, call, visit.warehouse, identifier, body.requirements or (), body.updates
            )
        )

    return run_once(visit, mutate, lambda result: _recorded(visit, identifier, result))


@router.delete("/v1/namespaces/{namespace}/views/{view}")
def drop_view(visit: Visited) -> Response:
    """Drop a view."""

    def mutate(call: Call) -> Response:
        views.drop_view(visit.catalog, call, visit.warehouse, visit.view)
        return no_content()

    return run_once(visit, mutate, lambda _result: no_content())


@router.post("/v1/views/rename")
def rename_view(visit: Visited) -> Response:
    """Give a view another name."""
    body = parse_body(RenameBody, visit.body)
    source, destination = body.source.checked(), body.destination.checked()

    def mutate(call: Call) -> Response:
        views.rename_view(visit.catalog, call, visit.warehouse, source, destination)
        return no_content()

    return run_once(visit, mutate, lambda _result: no_content())


def _recorded(visit: Visit, identifier: TableIdentifier, location: str) -> Response:
    return loaded_view_answer(views.load_recorded(visit.catalog, visit.warehouse, identifier, location))
