"""JSON of expiring snapshots: the request, and what was removed or would be."""

from __future__ import annotations

from typing import Annotated, Any

import orjson
from pydantic import Field

from app.api.bodies.json_answer import as_long, present
from app.api.bodies.json_body import ExtensionBody
from app.catalog.deletions.expiry import ExpiryOutcome, ExpiryRequest
from app.engine.model.document import LONG, Bool, Int, Long
from app.engine.model.ids import SnapshotId
from app.engine.retention.expired_snapshots import ExpiryWish
from app.engine.retention.reachability import CleanupLevel, FileKind, Unreachable

GracePeriod = Annotated[Long, Field(ge=0, le=366 * 24 * 3_600_000)]
"""For how many milliseconds files stay before they are deleted."""


class ExpireSnapshotsBody(ExtensionBody):
    dry_run: Bool = False
    older_than_ms: Annotated[Long, Field(ge=0)] | None = None
    retain_last: Annotated[Int, Field(ge=1)] | None = None
    snapshot_ids: tuple[Annotated[SnapshotId, LONG], ...] = ()
    clean_expired_metadata: Bool = False
    cleanup: CleanupLevel = CleanupLevel.ALL
    grace_period_ms: GracePeriod | None = None
    as_of_ms: Annotated[Long, Field(ge=0)] | None = None

    def request(self) -> ExpiryRequest:
        """Return the request for the use case."""
        wish = ExpiryWish(
            self.older_than_ms, self.retain_last, self.snapshot_ids, self.clean_expired_metadata
        )
        return ExpiryRequest(wish, self.cleanup, self.grace_period_ms, self.as_of_ms)


def expiry_json(outcome: ExpiryOutcome, *, dry_run: bool) -> bytes:
    """Return what was removed, or would be; only a dry run lists the files."""
    expiry, files = outcome.expiry, outcome.unreachable
    answer: dict[str, Any] = {
        "dry-run": dry_run,
        "metadata-location": outcome.metadata_location,
        "snapshots": [
            {"snapshot-id": snapshot.snapshot_id, "timestamp-ms": snapshot.timestamp_ms}
            for snapshot in expiry.snapshots
        ],
        "refs": list(expiry.ref_names),
        "partition-spec-ids": list(expiry.spec_ids),
        "schema-ids": list(expiry.schema_ids),
    }
    if outcome.deleted_after_ms is not None:
        answer["files-deleted-after-ms"] = outcome.deleted_after_ms
    answer |= present({"as-of-ms": outcome.as_of_ms})
    if files is not None:
        answer["files"] = _totals(files)
        answer |= present({"unreadable": list(files.unreadable) or None, "obstacle": files.obstacle})
    return orjson.dumps(answer)


def _totals(files: Unreachable) -> dict[str, dict[str, int]]:
    sizes: dict[FileKind, list[int | None]] = {kind: [] for kind in FileKind}
    for item in files:
        sizes[item.kind].append(item.size_bytes)
    return {kind.value: {"count": len(found), **_size(found)} for kind, found in sizes.items()}


def _size(sizes: list[int | None]) -> dict[str, int]:
    known = [size for size in sizes if size is not None]
    return {"size-bytes": as_long(sum(known))} if len(known) == len(sizes) else {}
