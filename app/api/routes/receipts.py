"""Receipts: what became of a request that changes something. An extension."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from app.api.bodies.receipts import commit_receipt_json, commit_receipts_json
from app.api.dependencies import Visit, open_visit
from app.api.responses.answers import json_answer
from app.catalog import receipts
from app.catalog.context.catalog import Catalog
from app.catalog.context.rows import CommitReceipt, Outcome
from app.catalog.context.seen.receipt_book import SLOW_SECONDS, WRITE_SECONDS
from app.errors import NoSuchCommit

router = APIRouter()

_WRITING_S: Final = 0.1
LOOKS_AGAIN_AFTER_S: Final = (WRITE_SECONDS + _WRITING_S, SLOW_SECONDS)
"""By then other processes have written the refusals that they had, and after both what they were at work on."""


@router.get("/v1/commits")
async def list_receipts(request: Request) -> Response:
    """Return what became of requests, by Idempotency-Key, request id or job."""
    visit = await open_visit(request)
    query = visit.parameters("idempotency-key", "request-id", "job")
    found = await _found_soon(
        visit,
        lambda catalog: receipts.list_receipts(
            catalog,
            key=query.get("idempotency-key"),
            request_id=query.get("request-id"),
            job=query.get("job"),
        ),
    )
    return json_answer(commit_receipts_json(found, visit.principal))


@router.get("/v1/commits/{commit_id}")
async def load_receipt(request: Request) -> Response:
    """Return what became of one request."""
    visit = await open_visit(request)
    visit.parameters()
    commit_id = visit.text("commit_id")
    (found,) = await _found_soon(visit, lambda catalog: [receipts.load_receipt(catalog, commit_id)])
    return json_answer(commit_receipt_json(found, visit.principal))


async def _found_soon(visit: Visit, load: Callable[[Catalog], list[CommitReceipt]]) -> list[CommitReceipt]:
    """Return what is found, if need be a moment later.

    What another process may be about to write is waited for, without a thread: the first refusals of those that
    seem to be at work, and then all.
    """
    is_first = True
    for pause_s in LOOKS_AGAIN_AFTER_S:
        with contextlib.suppress(NoSuchCommit):
            found = await visit.in_thread(lambda: load(visit.catalog))
            if not is_first or all(each.outcome is not Outcome.IN_PROGRESS for each in found):
                return found
        is_first = False
        await asyncio.sleep(pause_s)
    return await visit.in_thread(lambda: load(visit.catalog))
