"""The snapshot that a rebased commit lands as, and the updates that bring it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.engine.change.summaries import TOTALS, totals_after
from app.engine.change.updates import AddSnapshot, SetSnapshotRef, Update
from app.engine.model.ids import Location, SnapshotId
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.engine.rebase.late_commits import REBASED_FROM, LateCommit
from app.engine.rebase.new_lists import NewList
from app.engine.rebase.own_changes import OwnChanges


@dataclass(frozen=True, slots=True)
class Rebase:
    """What became of a commit that was rebased."""

    onto: SnapshotId | None
    """The snapshot that it was put on; None if the branch has none."""
    snapshot: Snapshot
    updates: tuple[Update, ...]
    """What was applied in place of what its client sent."""


def rebase_of(
    current: TableMetadata,
    late: LateCommit,
    changes: OwnChanges,
    listed: NewList,
    *,
    manifest_list: Location,
    sequence_number: int,
    first_row_id: int | None,
    added_rows: int | None,
) -> Rebase:
    """Return a commit as it lands on the head: only what depends on the base changes.

    Args:
        manifest_list: where the new list is; the numbers are those that it gives.
    """
    head, snapshot = late.head, late.snapshot
    onto = None if head is None else head.snapshot_id
    rebased = snapshot.replace(
        parent_snapshot_id=onto,
        sequence_number=sequence_number,
        # Time in the log must not run backwards, whatever the clocks of writers said.
        timestamp_ms=max(snapshot.timestamp_ms, current.last_updated_ms),
        manifest_list=manifest_list,
        summary=_summary(late, changes, listed),
        first_row_id=first_row_id,
        added_rows=added_rows,
    )
    return Rebase(onto, rebased, (AddSnapshot(snapshot=rebased), _ref_update(current, late)))


def _ref_update(current: TableMetadata, late: LateCommit) -> SetSnapshotRef:
    """Return the move of the branch, which keeps its settings where the client sends none."""
    ref, update = current.snapshot_refs.get(late.update.ref_name), late.update
    if ref is None:
        return update
    return update.model_copy(
        update={
            "min_snapshots_to_keep": ref.min_snapshots_to_keep,
            "max_snapshot_age_ms": ref.max_snapshot_age_ms,
            "max_ref_age_ms": ref.max_ref_age_ms,
        }
    )


def _summary(late: LateCommit, changes: OwnChanges, listed: NewList) -> dict[str, str]:
    theirs = late.snapshot.summary or {}
    summary = {key: value for key, value in theirs.items() if key not in TOTALS}
    summary |= totals_after(late.head, changes.added, changes.removed)
    counts = {
        "manifests-created": len(listed.verbatim) + len(listed.written),
        "manifests-kept": len(listed.kept),
        "manifests-replaced": listed.replaced_count,
    }
    summary |= {key: str(count) for key, count in counts.items() if key in theirs}
    assert late.snapshot.manifest_list is not None
    return {**summary, REBASED_FROM: late.snapshot.manifest_list}


def lists_of_writer(snapshot: Snapshot) -> Sequence[Location]:
    """Return the manifest lists by which a snapshot's writer may know it."""
    before = (snapshot.summary or {}).get(REBASED_FROM)
    found = [] if snapshot.manifest_list is None else [snapshot.manifest_list]
    return found if before is None else [*found, Location(before)]
