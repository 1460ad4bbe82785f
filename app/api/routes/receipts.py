"""Receipts: what became of a request that changes something. An extension."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from app.api.bodies.receipts import commit_receipt_json, commit_receipts_json
from app.api.dependencies import Visited
from app.api.responses.answers import json_answer
from app.catalog import receipts

router = APIRouter()


@router.get("/v1/commits")
def list_receipts(visit: Visited) -> Response:
    """Return what became of requests, by Idempotency-Key, request id or job."""
    key, request_id = visit.query.get("idempotency-key"), visit.query.get("request-id")
    found = receipts.list_receipts(visit.catalog, key=key, request_id=request_id, job=visit.query.get("job"))
    return json_answer(commit_receipts_json(found, visit.principal))


@router.get("/v1/commits/{commit_id}")
def load_receipt(visit: Visited) -> Response:
    """Return what became of one request."""
    found = receipts.load_receipt(visit.catalog, visit.text("commit_id"))
    return json_answer(commit_receipt_json(found, visit.principal))
