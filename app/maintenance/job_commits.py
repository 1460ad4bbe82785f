"""What a job has committed, by the server's receipts: which snapshots, and on top of what."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from app.client.catalog import RemoteCatalog
from app.client.http.failures import CatalogRefused
from app.client.request_parts import JsonObject
from app.engine.model.document import find_count
from app.engine.model.identifiers import TableIdentifier

LANDED: Final = "landed"
AT_WORK: Final = frozenset({"in-progress", "unknown"})
_TOTALS: Final = {
    "total-records": ("added-records", "deleted-records"),
    "total-data-files": ("added-data-files", "deleted-data-files"),
    "total-delete-files": ("added-delete-files", "removed-delete-files"),
    "total-files-size": ("added-files-size", "removed-files-size"),
}
"""Keys of snapshot summaries that add up (the spec's appendix F, optional snapshot summary fields)."""


@dataclass(frozen=True, slots=True)
class JobCommit:
    """A snapshot that a job has added."""

    snapshot_id: int
    parent_id: int | None
    summary: Mapping[str, str]
    parent_summary: Mapping[str, str]
    """Empty if there is no parent, or it has expired."""

    def number(self, key: str) -> int:
        """Return a number of the summary; 0 if it has none, or something that is none."""
        return find_count(self.summary.get(key)) or 0

    def wrong_totals(self) -> list[str]:
        """Return which totals do not follow from the parent's, as sentences."""
        wrong = []
        for total, (added, removed) in _TOTALS.items():
            before = find_count(self.parent_summary.get(total))
            if total not in self.summary or before is None:
                continue  # Any writer may have written the parent's.
            due = before + self.number(added) - self.number(removed)
            if self.summary[total] != str(due):
                wrong.append(
                    f"snapshot {self.snapshot_id} has {total} {self.summary[total]}, and {due} is due"
                )
        return wrong


@dataclass(frozen=True, slots=True)
class JobTraces:
    """What the server knows of a job's requests."""

    commits: Sequence[JobCommit]
    """Snapshots of the table, oldest first."""
    gone: Sequence[int]
    """Snapshots that it added and that have expired since."""
    refusals: Sequence[str]
    """What requests that did not land were answered, newest first."""
    is_settled: bool
    """Whether no request of the job is at work any more."""
    has_rivals: bool
    """Whether others have meanwhile changed or replaced files; appends change none."""


def snapshots_of(catalog: RemoteCatalog, table: TableIdentifier) -> dict[int, JsonObject]:
    """Return the snapshots of a table by id; raises `CallFailed`."""
    found = catalog.tables.load(table).metadata.get("snapshots", [])
    return {snapshot["snapshot-id"]: snapshot for snapshot in found}


def traces_of(
    catalog: RemoteCatalog, table: TableIdentifier, job_id: str, known: Container[int]
) -> JobTraces:
    """Ask the server what a job has committed to a table.

    Args:
        catalog: the warehouse.
        table: the table.
        job_id: the job.
        known: the snapshots that were there when it began.

    Raises:
        CallFailed: the server does not answer.
    """
    try:
        receipts = catalog.receipts.find(job=job_id)
    except CatalogRefused as refused:
        if refused.status != 404:
            raise
        receipts = []
    landed = [
        snapshot_id
        for receipt in reversed(receipts)
        if receipt["outcome"] == LANDED
        for change in receipt.get("changes", [])
        for snapshot_id in change.get("snapshot-ids", [])
    ]
    snapshots = snapshots_of(catalog, table)
    return JobTraces(
        commits=[_commit(snapshots, snapshot_id) for snapshot_id in landed if snapshot_id in snapshots],
        gone=[snapshot_id for snapshot_id in landed if snapshot_id not in snapshots],
        refusals=[receipt["error"]["message"] for receipt in receipts if "error" in receipt],
        is_settled=not any(receipt["outcome"] in AT_WORK for receipt in receipts),
        has_rivals=any(
            snapshot_id not in known
            and snapshot_id not in landed
            and snapshot.get("summary", {}).get("operation") != "append"
            for snapshot_id, snapshot in snapshots.items()
        ),
    )


def _commit(snapshots: Mapping[int, JsonObject], snapshot_id: int) -> JobCommit:
    snapshot = snapshots[snapshot_id]
    parent_id = snapshot.get("parent-snapshot-id")
    parent = snapshots.get(parent_id, {}) if parent_id is not None else {}
    return JobCommit(snapshot_id, parent_id, snapshot.get("summary", {}), parent.get("summary", {}))
