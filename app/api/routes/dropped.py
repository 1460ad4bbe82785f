"""What was dropped and can come back: an extension."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from app.api.bodies.dropped import DroppedBody, UndropBody, dropped_json
from app.api.dependencies import Visited
from app.api.idempotency import run_once
from app.api.names_in_paths import namespaces_in_parent
from app.api.responses.answers import json_answer
from app.api.responses.paging import DEFAULT_PAGE_SIZE, PAGING, next_page_token, numbered_page_in_query
from app.catalog.context.catalog import Catalog
from app.catalog.context.listings import Page
from app.catalog.past import dropped
from app.engine.model.identifiers import check_name
from app.errors import InvalidRequest

router = APIRouter()


@router.get("/v1/dropped")
def list_dropped(visit: Visited) -> Response:
    """List what can come back, latest drop first."""
    catalog, query = visit.catalog, visit.parameters("namespace", "name", *PAGING)
    readings = namespaces_in_parent(query.get("namespace", ""), visit.literal_query.get("namespace", ""))
    name = query.get("name")
    if name is not None and not readings:
        raise InvalidRequest("Invalid name: it goes with namespace")
    listing = f"dropped {catalog.warehouse.id} {query.get('namespace', '')} {name or ''}"
    page = numbered_page_in_query(query, listing)
    found = dropped.list_dropped(
        catalog,
        Page(page.after, DEFAULT_PAGE_SIZE if page.limit is None else page.limit),
        namespace=readings[0] if readings else None,
        name=None if name is None else check_name(name, "name"),
    )
    return json_answer(dropped_json(found.items, next_page_token(found.next_after, listing)))


@router.post("/v1/undrop")
def undrop(visit: Visited) -> Response:
    """Bring something back."""
    body = visit.extension_body(UndropBody)

    def mutate(catalog: Catalog) -> Response:
        back = dropped.undrop(
            catalog,
            body.wanted(),
            dropped.NewName(body.as_.namespace, body.as_.name, body.create_namespace),
        )
        return json_answer(dropped.answer_text(back).encode())

    return run_once(visit, mutate, lambda result: json_answer(result.encode()))


@router.post("/v1/dropped/purge")
def purge_dropped(visit: Visited) -> Response:
    """Forget something that was dropped, and delete a table's files."""
    body = visit.extension_body(DroppedBody)

    def mutate(catalog: Catalog) -> Response:
        purged = dropped.purge_dropped(catalog, body.wanted())
        return json_answer(dropped.answer_text(purged).encode())

    return run_once(visit, mutate, lambda result: json_answer(result.encode()))
