"""Edits of a draft's branches and tags."""

from __future__ import annotations

from app.engine.change.draft import MetadataDraft
from app.engine.change.logs import append_snapshot_log
from app.engine.change.updates import RemoveSnapshotRef, SetSnapshotRef
from app.engine.model.refs import MAIN_BRANCH, SnapshotRef
from app.errors import InvalidUpdate


def set_snapshot_ref(draft: MetadataDraft, update: SetSnapshotRef) -> None:
    """Create or replace a ref; `main` also moves the current snapshot and its log."""
    name, snapshot_id = update.ref_name, update.snapshot_id
    _check_retention(update)
    snapshot = draft.snapshots.get(snapshot_id)
    if snapshot is None:
        raise InvalidUpdate(f"Cannot set {name} to unknown snapshot: {snapshot_id}")
    if name == MAIN_BRANCH and update.type != "branch":
        raise InvalidUpdate(f"Cannot set {MAIN_BRANCH} to a tag: it must be a branch")
    replaced = draft.refs.get(name)
    ref = SnapshotRef(
        snapshot_id=snapshot_id,
        type=update.type,
        min_snapshots_to_keep=update.min_snapshots_to_keep,
        max_snapshot_age_ms=update.max_snapshot_age_ms,
        max_ref_age_ms=update.max_ref_age_ms,
    )
    if replaced is not None and replaced.type == ref.type:
        # Missing retention settings are cleared, but fields that only other writers know are kept.
        ref = ref.with_unknown_fields(replaced.unknown_fields)
    if replaced == ref:
        return
    draft.refs[name] = ref
    draft.has_changes = True
    if name == MAIN_BRANCH:
        draft.current_snapshot_id = snapshot_id
        draft.became_current_ids.add(snapshot_id)
        # After a rollback, an old snapshot is current from now on; a new one has been since it was made.
        added = snapshot_id in draft.added_snapshot_ids
        append_snapshot_log(draft.snapshot_log, snapshot_id, snapshot.timestamp_ms if added else draft.now_ms)


def _check_retention(update: SetSnapshotRef) -> None:
    settings = {
        "min-snapshots-to-keep": update.min_snapshots_to_keep,
        "max-snapshot-age-ms": update.max_snapshot_age_ms,
        "max-ref-age-ms": update.max_ref_age_ms,
    }
    for name, value in settings.items():
        if value is None:
            continue
        if value <= 0:
            raise InvalidUpdate(f"Invalid {name} for {update.ref_name}: {value}, it must be greater than 0")
        if update.type == "tag" and name != "max-ref-age-ms":
            raise InvalidUpdate(f"Tags do not support setting {name} ({update.ref_name})")


def remove_snapshot_ref(draft: MetadataDraft, update: RemoveSnapshotRef) -> None:
    """Remove a ref; without `main`, the table has no current snapshot, but keeps its log."""
    if draft.refs.pop(update.ref_name, None) is None:
        return
    if update.ref_name == MAIN_BRANCH:
        draft.current_snapshot_id = None
    draft.has_changes = True
