"""The snapshots that a commit brings: what each is built on, and what it replaces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from app.engine.change.updates import AddSnapshot, RemoveSnapshotRef, SetSnapshotRef, Update
from app.engine.guard.findings import Finding
from app.engine.model.guard_settings import FindingKind
from app.engine.model.ids import NO_SNAPSHOT, SnapshotId
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
    findings: list[Finding] = field(default_factory=list)
    """What is wrong with its place among the other snapshots."""


def arrivals(base: TableMetadata | None, updates: Iterable[Update], after: TableMetadata) -> list[Arrival]:
    """Return the snapshots that updates add to a table and leave in it, in their order.

    Branches are followed update by update: one that is taken away and set anew has no history then, which is how a
    table is replaced, and a rollback may come before the append that is built on it.
    """
    known = _Known(base.snapshots_by_id if base is not None else {})
    heads: dict[str, SnapshotId] = {}
    if base is not None:
        heads = {name: ref.snapshot_id for name, ref in base.snapshot_refs.items() if ref.is_branch}
    arrived: dict[SnapshotId, Arrival] = {}
    for update in updates:
        if isinstance(update, AddSnapshot):
            snapshot = update.snapshot
            if known.find(snapshot.snapshot_id) is None and snapshot.snapshot_id in after.snapshots_by_id:
                parent_id = snapshot.parent_snapshot_id
                arrived[snapshot.snapshot_id] = Arrival(
                    snapshot, known.find(parent_id), is_root=parent_id in (None, NO_SNAPSHOT)
                )
            known.add(snapshot)
        elif isinstance(update, RemoveSnapshotRef):
            heads.pop(update.ref_name, None)
        elif isinstance(update, SetSnapshotRef):
            head = heads.pop(update.ref_name, None)
            if update.type == "branch":
                heads[update.ref_name] = update.snapshot_id
                arrival = arrived.get(update.snapshot_id)
                if arrival is not None and head is not None:
                    arrival.findings += _moved(arrival, update.ref_name, head, known)
    return list(arrived.values())


def _moved(arrival: Arrival, branch: str, head: SnapshotId, known: _Known) -> Iterator[Finding]:
    snapshot = arrival.snapshot
    if arrival.is_root:
        if head != snapshot.snapshot_id:
            yield Finding(
                FindingKind.PARENTLESS,
                f"snapshot {snapshot.snapshot_id} has no parent, but takes the place of snapshot {head} on branch "
                f"{branch}",
                snapshot.snapshot_id,
            )
    elif known.descends_from_others_than(snapshot, head):
        yield Finding(
            FindingKind.BYPASSED_HEAD,
            f"snapshot {snapshot.snapshot_id} takes the place of snapshot {head} on branch {branch}, but was built on "
            f"snapshot {snapshot.parent_snapshot_id}, which does not have what came since",
            snapshot.snapshot_id,
        )


class _Known:
    """The snapshots of a table, which are not copied, and those that a commit adds."""

    def __init__(self, before: Mapping[SnapshotId, Snapshot]) -> None:
        self._before = before
        self._added: dict[SnapshotId, Snapshot] = {}

    def add(self, snapshot: Snapshot) -> None:
        self._added[snapshot.snapshot_id] = snapshot

    def find(self, snapshot_id: SnapshotId | None) -> Snapshot | None:
        if snapshot_id is None:
            return None
        return self._added.get(snapshot_id) or self._before.get(snapshot_id)

    def descends_from_others_than(self, snapshot: Snapshot, head: SnapshotId) -> bool:
        """Return whether a snapshot surely does not descend from another one.

        Where ancestors have been expired, nothing is sure.
        """
        seen: set[SnapshotId] = set()
        at: Snapshot | None = snapshot
        while at is not None and at.snapshot_id not in seen:
            if at.snapshot_id == head:
                return False
            seen.add(at.snapshot_id)
            parent_id = at.parent_snapshot_id
            if parent_id in (None, NO_SNAPSHOT):
                return True
            if parent_id == head:
                return False
            at = self.find(parent_id)
        return at is not None
