"""The snapshots that a commit brings: what each is built on, and what it replaces."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from app.engine.change.updates import AddSnapshot, RemoveSnapshotRef, SetSnapshotRef, Update
from app.engine.guard.findings import Finding
from app.engine.model.ancestry import Descent
from app.engine.model.ids import NO_SNAPSHOT, SnapshotId
from app.engine.model.settings.guard_settings import FindingKind
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata


@dataclass(slots=True)
class Arrival:
    """A new snapshot.

    `parent` is None if there is no parent (`is_root`), or if the parent has expired.
    """

    snapshot: Snapshot
    parent: Snapshot | None
    is_root: bool
    begins_branch: bool = False
    """Whether the commit makes a branch that was not there and ends at this snapshot."""
    findings: list[Finding] = field(default_factory=list)
    """What is wrong with its place among the other snapshots."""


def arrivals(base: TableMetadata | None, updates: Iterable[Update], after: TableMetadata) -> list[Arrival]:
    """Return the snapshots that updates add to a table and leave in it, in their order.

    Branches are followed update by update: one that is taken away and set anew has no history then, which is how a
    table is replaced, and a rollback may come before the append that is built on it.
    """
    # The snapshots of the table, which are not copied, and those that the commit adds.
    known = ChainMap({}, base.snapshots_by_id if base is not None else {})
    heads: dict[str, SnapshotId] = {}
    if base is not None:
        heads = {name: ref.snapshot_id for name, ref in base.snapshot_refs.items() if ref.is_branch}
    arrived: dict[SnapshotId, Arrival] = {}
    moves: list[tuple[Arrival, str, SnapshotId]] = []
    for update in updates:
        if isinstance(update, AddSnapshot):
            snapshot = update.snapshot
            if snapshot.snapshot_id not in known and snapshot.snapshot_id in after.snapshots_by_id:
                parent_id = snapshot.parent_snapshot_id
                parent = None if parent_id is None else known.get(parent_id)
                is_root = parent_id in (None, NO_SNAPSHOT)
                arrived[snapshot.snapshot_id] = Arrival(snapshot, parent, is_root)
            known[snapshot.snapshot_id] = snapshot
        elif isinstance(update, RemoveSnapshotRef):
            heads.pop(update.ref_name, None)
        elif isinstance(update, SetSnapshotRef):
            head = heads.pop(update.ref_name, None)
            if update.type == "branch":
                heads[update.ref_name] = update.snapshot_id
                arrival = arrived.get(update.snapshot_id)
                if arrival is None:
                    continue
                if head is None:
                    arrival.begins_branch = True
                elif head not in (update.snapshot_id, arrival.snapshot.parent_snapshot_id):
                    moves.append((arrival, update.ref_name, head))
    if moves:
        descent = Descent(known)
        for arrival, branch, head in moves:
            arrival.findings += _moved(arrival, branch, head, descent)
    return list(arrived.values())


def _moved(arrival: Arrival, branch: str, head: SnapshotId, descent: Descent) -> Iterator[Finding]:
    snapshot = arrival.snapshot
    if arrival.is_root:
        yield Finding(
            FindingKind.PARENTLESS,
            f"snapshot {snapshot.snapshot_id} has no parent, but takes the place of snapshot {head} on branch {branch}",
            snapshot.snapshot_id,
        )
    elif _descends_from_others_than(descent, snapshot, head):
        yield Finding(
            FindingKind.BYPASSED_HEAD,
            f"snapshot {snapshot.snapshot_id} takes the place of snapshot {head} on branch {branch}, but was built on "
            f"snapshot {snapshot.parent_snapshot_id}, which does not have what came since",
            snapshot.snapshot_id,
        )


def _descends_from_others_than(descent: Descent, snapshot: Snapshot, head: SnapshotId) -> bool:
    """Return whether a snapshot surely does not descend from another one.

    Where ancestors have been expired, nothing is sure.
    """
    if descent.is_ancestor(head, snapshot.snapshot_id):
        return False
    before_all = descent.oldest_ancestor(snapshot.snapshot_id).parent_snapshot_id
    # It is known if some descend from themselves.
    return before_all in (None, NO_SNAPSHOT) or before_all in descent.snapshots
