"""Orphans of tables: an extension."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from app.api.bodies.orphans import OrphansBody, orphan_lines, orphan_runs_json
from app.api.dependencies import Visited
from app.api.idempotency import run_once
from app.api.responses.answers import json_answer, text_answer
from app.catalog.context.catalog import Catalog
from app.catalog.deletions import orphans
from app.catalog.deletions.orphan_reports import report_of
from app.errors import InvalidRequest

router = APIRouter()

LINES = b"application/x-ndjson"


@router.post("/v1/namespaces/{namespace}/tables/{table}/orphans")
def mark_orphans(visit: Visited) -> Response:
    """Mark the orphans of a table to be deleted, or say which they are."""
    body = visit.extension_body(OrphansBody)
    identifier, wish = visit.table, body.wish()
    wants_lines = LINES in (visit.header(b"accept") or b"")
    if body.dry_run:
        # Nothing is changed, so there is nothing to remember under an Idempotency-Key.
        found = orphans.preview_orphans(visit.catalog, identifier, wish)
        if wants_lines:
            return text_answer(orphan_lines(found.files.values()), LINES)
        return json_answer(report_of(found, dry_run=True).to_json().encode())
    if wants_lines:
        raise InvalidRequest("Only a dry run answers lines of JSON: accept application/json")

    def mutate(catalog: Catalog) -> Response:
        return json_answer(orphans.mark_orphans(catalog, identifier, wish).to_json().encode())

    return run_once(visit, mutate, lambda stored: json_answer(stored.encode()))


@router.get("/v1/namespaces/{namespace}/tables/{table}/orphans")
def orphan_runs(visit: Visited) -> Response:
    """Say what has become of orphans that were marked."""
    visit.parameters()
    return json_answer(orphan_runs_json(orphans.orphan_runs(visit.catalog, visit.table)))
