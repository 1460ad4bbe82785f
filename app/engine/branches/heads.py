"""Heads of branches: what a commit builds on, and how its snapshot becomes the next."""

from __future__ import annotations

from app.engine.change.updates import AddSnapshot, SetSnapshotRef, Update
from app.engine.model.refs import MAIN_BRANCH
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.errors import InvalidRequest, NoSuchRef


def check_branch(metadata: TableMetadata, branch: str, what: str) -> None:
    """Check that something can be committed to a branch; `what` is a verb for the refusal.

    Raises:
        NoSuchRef: there is no such branch. Main is always there, though it may have no snapshot.
        InvalidRequest: it is a tag.
    """
    ref = metadata.snapshot_refs.get(branch)
    if ref is None and branch != MAIN_BRANCH:
        raise NoSuchRef(branch)
    if ref is not None and ref.type != "branch":
        raise InvalidRequest(f"Cannot {what} {branch[:200]}: it is a tag, which never moves")


def head_of(metadata: TableMetadata, branch: str) -> Snapshot | None:
    """Return the snapshot that a branch names; None if it has none."""
    ref = metadata.snapshot_refs.get(branch)
    return metadata.snapshots_by_id[ref.snapshot_id] if ref is not None else None


def new_head(metadata: TableMetadata, branch: str, snapshot: Snapshot) -> list[Update]:
    """Return the updates that make a snapshot the head of a branch; retention stays."""
    ref = metadata.snapshot_refs.get(branch)
    return [
        AddSnapshot(snapshot=snapshot),
        SetSnapshotRef(
            ref_name=branch,
            snapshot_id=snapshot.snapshot_id,
            type="branch",
            min_snapshots_to_keep=ref.min_snapshots_to_keep if ref else None,
            max_snapshot_age_ms=ref.max_snapshot_age_ms if ref else None,
            max_ref_age_ms=ref.max_ref_age_ms if ref else None,
        ),
    ]
