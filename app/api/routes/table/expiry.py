"""Expiring snapshots: an extension."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from app.api.bodies.table.expiry import ExpireSnapshotsBody, expiry_json
from app.api.dependencies import Visited
from app.api.idempotency import claim_of, run_once
from app.api.responses.answers import json_answer
from app.catalog.context.catalog import Catalog
from app.catalog.deletions import expiry

router = APIRouter()


@router.post("/v1/namespaces/{namespace}/tables/{table}/expire")
def expire_snapshots(visit: Visited) -> Response:
    """Expire snapshots, or say which would go."""
    body = visit.extension_body(ExpireSnapshotsBody)
    identifier, request = visit.table, body.request()
    if body.dry_run:
        # Nothing is changed, so there is nothing to remember under an Idempotency-Key.
        preview = expiry.preview_expiry(visit.catalog, identifier, request)
        return json_answer(expiry_json(preview, dry_run=True))

    def mutate(catalog: Catalog) -> Response:
        outcome = expiry.expire_snapshots(catalog, identifier, request)
        return json_answer(expiry_json(outcome, dry_run=False))

    def replay(recorded: str) -> Response:
        claim = claim_of(visit)
        key = claim.key if claim is not None else None
        outcome = expiry.recorded_expiry(visit.catalog, identifier, recorded, key)
        return json_answer(expiry_json(outcome, dry_run=False))

    return run_once(visit, mutate, replay)
