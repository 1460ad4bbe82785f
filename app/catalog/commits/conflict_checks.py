"""Conflict checks: does an operation conflict with what happened since it began."""

from __future__ import annotations

from collections.abc import Callable

from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.manifests.table_manifests import TableManifests
from app.engine.branches.ref_changes import ref_by_name, snapshot_by_id
from app.engine.conflicts.detection import detect_conflicts
from app.engine.conflicts.operations import Operation
from app.engine.conflicts.report import ConflictReport
from app.engine.conflicts.snapshot_operations import operation_of
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import SnapshotId
from app.engine.model.refs import MAIN_BRANCH
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.errors import InvalidRequest

Describe = Callable[[TableMetadata], Operation]
"""An operation, once it is known what partition specs the table has."""


def check_conflicts(
    catalog: Catalog,
    identifier: TableIdentifier,
    ref: str,
    base_snapshot_id: SnapshotId | None,
    describe: Describe,
) -> ConflictReport:
    """Return the conflicts of a described operation with a branch; nothing is changed.

    Args:
        base_snapshot_id: what the operation has read; None if the branch had no snapshot then.

    Raises:
        NoSuchTable: no table has this name.
        NoSuchSnapshot: the base, or the snapshot to be picked, is not there.
        NoSuchRef: there is no such branch.
        InvalidRequest: the ref is a tag, or the description does not fit the table.
        InvalidFilter: a filter does not fit the table's columns.
        InvalidLocation, CorruptMetadata, FileMissing: a manifest is outside the warehouse, broken or gone.
        FilesUnavailable: the store does not answer.
    """
    catalog.permit("check_conflicts", identifier)
    _, metadata = catalog.read_now(TABLES, identifier)
    # A table without snapshots has no main yet, and may be written to all the same.
    if (ref != MAIN_BRANCH or ref in metadata.snapshot_refs) and not ref_by_name(metadata, ref).is_branch:
        raise InvalidRequest(
            f"Cannot check for conflicts on {ref}: it is a tag, and nothing is committed to tags"
        )
    if base_snapshot_id is not None and not _is_parent(metadata, base_snapshot_id):
        snapshot_by_id(metadata, base_snapshot_id)
    operation = describe(metadata)
    return detect_conflicts(metadata, TableManifests(catalog, metadata), ref, base_snapshot_id, operation)


def _is_parent(metadata: TableMetadata, snapshot_id: SnapshotId) -> bool:
    """Return whether a snapshot has a child, so that what came after it is known."""
    return any(snapshot.parent_snapshot_id == snapshot_id for snapshot in metadata.snapshots)


def conflicts_of_snapshot(
    catalog: Catalog, base: TableMetadata, snapshot: Snapshot, ref: str = MAIN_BRANCH
) -> ConflictReport:
    """Return what a commit's new snapshot conflicts with on a branch.

    The operation is derived from the snapshot: what its manifests add and remove, and what its summary calls it. It
    is checked against what happened on the branch between the snapshot's parent and the head.

    Args:
        base: the table as it is now; it need not have the snapshot.

    Raises:
        InvalidLocation, CorruptMetadata, FileMissing: a manifest is outside the warehouse, broken or gone.
        FilesUnavailable: the store does not answer.
    """
    source = TableManifests(catalog, base)
    operation = operation_of(base, source, snapshot)
    return detect_conflicts(base, source, ref, snapshot.parent_snapshot_id, operation)
