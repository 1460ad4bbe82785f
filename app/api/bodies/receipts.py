"""JSON of receipts: what became of requests that change something."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from app.api.bodies.json_answer import present
from app.catalog.context.rows import CommitReceipt, LandedChange
from app.catalog.receipts import metadata_version


def commit_receipt_json(receipt: CommitReceipt, reader: str) -> bytes:
    """Return one receipt; `reader` is the principal who asks."""
    return orjson.dumps(_receipt(receipt, reader))


def commit_receipts_json(receipts: Sequence[CommitReceipt], reader: str) -> bytes:
    """Return several receipts; `reader` is the principal who asks."""
    return orjson.dumps({"commits": [_receipt(receipt, reader) for receipt in receipts]})


def _receipt(receipt: CommitReceipt, reader: str) -> dict[str, Any]:
    head = receipt.head
    facts = {
        "commit-id": head.commit_id,
        "outcome": receipt.outcome,
        "operation": head.operation.replace("_", "-"),
        "author": head.principal,
        "request-id": head.request_id,
        "job": head.job,
        # A key is its owner's: who knows it could ask in the owner's place.
        "idempotency-key": head.key if head.principal == reader else None,
        "began-ms": head.began_ms,
        "noted-ms": receipt.noted_ms,
        "rebased": any(change.rebased for change in receipt.changes) if receipt.changes else None,
        "landed-together": receipt.landed_together if receipt.changes else None,
        "changes": [_change(change) for change in receipt.changes] or None,
        "error": dict(receipt.error) or None,
    }
    return present(facts)


def _change(change: LandedChange) -> dict[str, Any]:
    facts = {
        "kind": change.kind,
        "event": change.event,
        "namespace": list(change.levels) or None,
        "name": change.name,
        "metadata-location-before": change.location_before,
        "metadata-location-after": change.location_after,
        "metadata-version": metadata_version(change),
        "snapshot-ids": list(change.snapshot_ids) or None,
        "current-snapshot-id": change.current_snapshot_id,
    }
    return present(facts)
