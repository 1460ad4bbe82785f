"""Answers that tables and views have in common: listings and renames."""

from __future__ import annotations

from starlette.responses import Response

from app.api.answers import json_answer, no_content
from app.api.bodies.identifiers import RenameBody, identifiers_json
from app.api.bodies.json_body import parse_body
from app.api.dependencies import Visit
from app.api.idempotency import run_once
from app.api.paging import page_in_query, page_token
from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import Kind, M
from app.engine.model.identifiers import LEVEL_SEPARATOR


def names_answer(visit: Visit, kind: Kind[M]) -> Response:
    """List the tables or views of a namespace."""
    catalog, namespace = visit.catalog, visit.namespace
    listing = f"{kind}s {catalog.warehouse.id} {LEVEL_SEPARATOR.join(namespace.levels)}"
    found = named.list_names(catalog, kind, namespace, page_in_query(visit.query, listing))
    token = None if found.next_after is None else page_token(found.next_after, listing)
    return json_answer(identifiers_json(namespace, found.items, token))


def rename_answer(visit: Visit, kind: Kind[M]) -> Response:
    """Give a table or view another name."""
    body = parse_body(RenameBody, visit.body)
    source, destination = body.source.checked(), body.destination.checked()

    def mutate(catalog: Catalog) -> Response:
        named.rename(catalog, kind, source, destination)
        return no_content()

    return run_once(visit, mutate, lambda _result: no_content())
