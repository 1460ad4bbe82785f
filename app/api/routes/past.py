"""The past: tables restored to a time, and the difference of a warehouse at two times. An extension."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from app.api.bodies.past import RestoreBody, catalog_diff_json
from app.api.dependencies import Visited
from app.api.idempotency import run_once
from app.api.responses.answers import json_answer
from app.api.responses.paging import PAGING, next_page_token, numbered_page_in_query
from app.catalog.context.catalog import Catalog
from app.catalog.past.catalog_diff import load_catalog_diff
from app.catalog.past.restore import answer_text, restore_tables

router = APIRouter()


@router.post("/v1/restore")
def restore_table_states(visit: Visited) -> Response:
    """Make tables what they were at a time."""
    body = visit.extension_body(RestoreBody)
    identifiers = [each.checked() for each in body.tables]

    def restore(catalog: Catalog) -> Response:
        at_ms, found = restore_tables(catalog, identifiers, body.at, dry_run=body.dry_run)
        return json_answer(answer_text(at_ms, found, dry_run=body.dry_run).encode())

    if body.dry_run:
        return restore(visit.catalog)
    return run_once(visit, restore, lambda recorded: json_answer(recorded.encode()))


@router.get("/v1/diff")
def load_diff_of_catalog(visit: Visited) -> Response:
    """Return what is different in a warehouse at two times."""
    query = visit.parameters("from", "to", *PAGING)
    before, after = query.get("from"), query.get("to") or None
    listing = f"catalog diff {visit.warehouse.id} {before or ''} {after or ''}"
    page = numbered_page_in_query(query, listing)
    found = load_catalog_diff(visit.catalog, before, after, page)
    return json_answer(catalog_diff_json(found, next_page_token(found.names.next_after, listing)))
