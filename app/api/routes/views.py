"""Views."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from app.api.bodies.identifiers import check_same
from app.api.bodies.json_body import parse_body
from app.api.bodies.table.commits import parse_commit
from app.api.bodies.views import CreateViewBody, RegisterViewBody
from app.api.dependencies import Visited
from app.api.idempotency import done_once
from app.api.named_answers import loaded_once, names_answer, rename_answer, unregistered_answer
from app.api.responses.answers import loaded_view_answer, no_content
from app.catalog import named, views
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import VIEWS, LoadedView
from app.engine.model.identifiers import TableIdentifier, check_identifier

router = APIRouter()


@router.get("/v1/namespaces/{namespace}/views")
def list_views(visit: Visited) -> Response:
    """List the views of a namespace."""
    return names_answer(visit, VIEWS)


@router.post("/v1/namespaces/{namespace}/views")
def create_view(visit: Visited) -> Response:
    """Create a view."""
    body = parse_body(CreateViewBody, visit.body)
    identifier = check_identifier(TableIdentifier(visit.namespace, body.name))
    new = views.NewView(identifier, body.schema_, body.view_version, body.location, body.properties or {})
    return loaded_once(
        visit, VIEWS, identifier, lambda catalog: named.create(catalog, new), loaded_view_answer
    )


@router.post("/v1/namespaces/{namespace}/register-view")
def register_view(visit: Visited) -> Response:
    """Register a metadata file as a view."""
    body = parse_body(RegisterViewBody, visit.body)
    identifier = check_identifier(TableIdentifier(visit.namespace, body.name))

    def mutate(catalog: Catalog) -> LoadedView:
        return named.register(
            catalog,
            VIEWS,
            identifier,
            body.metadata_location,
            overwrite=bool(body.overwrite),
            read_only=bool(body.read_only),
            expected=body.expected_metadata_location,
        )

    return loaded_once(visit, VIEWS, identifier, mutate, loaded_view_answer)


@router.get("/v1/namespaces/{namespace}/views/{view}")
def load_view(visit: Visited) -> Response:
    """Return a view."""
    return loaded_view_answer(named.load(visit.catalog, VIEWS, visit.view))


@router.head("/v1/namespaces/{namespace}/views/{view}")
def view_exists(visit: Visited) -> Response:
    """Answer whether a view exists."""
    named.check_exists(visit.catalog, VIEWS, visit.view)
    return no_content()


@router.post("/v1/namespaces/{namespace}/views/{view}")
def replace_view(visit: Visited) -> Response:
    """Commit changes to a view."""
    identifier = visit.view
    body = parse_commit(visit.body)
    check_same(body.identifier, identifier)

    def mutate(catalog: Catalog) -> LoadedView:
        return views.replace_view(catalog, identifier, body.requirements or (), body.updates or ())

    return loaded_once(visit, VIEWS, identifier, mutate, loaded_view_answer, named.load_landed)


@router.delete("/v1/namespaces/{namespace}/views/{view}")
def drop_view(visit: Visited) -> Response:
    """Drop a view."""
    return done_once(visit, lambda catalog: named.drop(catalog, VIEWS, visit.view))


@router.post("/v1/namespaces/{namespace}/views/{view}/unregister")
def unregister_view(visit: Visited) -> Response:
    """Extension: let a view go, as tables are."""
    visit.parameters()
    return unregistered_answer(visit, VIEWS, visit.view, loaded_view_answer)


@router.post("/v1/views/rename")
def rename_view(visit: Visited) -> Response:
    """Give a view another name."""
    return rename_answer(visit, VIEWS)
