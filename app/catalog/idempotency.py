"""Outcomes under Idempotency-Keys: how the first request under a key was answered."""

from __future__ import annotations

from app.catalog.context.rows import IdempotencyClaim, RecordedOutcome
from app.catalog.context.server import Server
from app.errors import IdempotencyKeyReused


def find_outcome(server: Server, claim: IdempotencyClaim) -> RecordedOutcome | None:
    """Return the outcome of the request that finished under this key; None if there is none.

    Raises:
        IdempotencyKeyReused: the key belongs to another request.
    """
    outcome = server.idempotency_keys.find(claim.principal, claim.key, claim.now_ms)
    if outcome is not None and outcome.request_hash != claim.request_hash:
        raise IdempotencyKeyReused(claim.key)
    return outcome


def record_refusal(server: Server, claim: IdempotencyClaim, status: int, body: bytes) -> None:
    """Store a refusal that a repeated request would meet again.

    Raises:
        IdempotencyKeyTaken: an equal request was answered first.
    """
    server.idempotency_keys.record(claim, status, body.decode())
