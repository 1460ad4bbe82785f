"""Which snapshots landed after a commit was prepared, so that it cannot land."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile

from app.engine.change.requirements import AssertRefSnapshotId
from app.engine.change.updates import AddSnapshot, SetSnapshotRef, Update
from app.engine.model.ancestry import ancestors
from app.engine.model.ids import SnapshotId
from app.engine.model.refs import MAIN_BRANCH
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.errors import CommitFailed, RequirementFailed, StaleUpdate

MAX_SNAPSHOTS = 20
"""How many of the snapshots are listed; there may be thousands."""


@dataclass(frozen=True, slots=True)
class LandedSince:
    """The newest of the snapshots that landed, newest first, and how many landed in all."""

    snapshots: tuple[Snapshot, ...]
    count: int


def landed_since(
    current: TableMetadata, updates: Sequence[Update], error: CommitFailed
) -> LandedSince | None:
    """Return the snapshots that landed before a commit; None if that is unknown."""
    match error:
        case RequirementFailed(requirement=AssertRefSnapshotId(ref=name, snapshot_id=expected)):
            return _on_ref(current, name, expected)
        case StaleUpdate(counter="last-sequence-number", expected=int(expected_number)):
            return _newest(item for item in reversed(current.snapshots) if item.sequence > expected_number)
        case StaleUpdate(counter="next-row-id", expected=int(expected_id)):
            return _newest(item for item in reversed(current.snapshots) if _last_row_id(item) >= expected_id)
    for update in updates:
        if isinstance(update, AddSnapshot):
            target = refs_set_by(updates).get(update.snapshot.snapshot_id)
            return None if target is None else _on_ref(current, target, update.snapshot.parent_snapshot_id)
    return None


def landed_between(before: TableMetadata, after: TableMetadata) -> LandedSince:
    """Return the snapshots that landed from one state of a table to a later one."""
    known = before.snapshots_by_id
    return _newest(item for item in reversed(after.snapshots) if item.snapshot_id not in known)


def has_all_since(current: TableMetadata, snapshot: Snapshot) -> bool:
    """Return whether a table surely has every snapshot that landed after another one's parent.

    Each commit takes the next sequence number, and one that is built on a parent a higher one than it. If no number is
    missing since, none of those snapshots has expired: the other one never landed unless it is there.
    """
    parent_id = snapshot.parent_snapshot_id
    parent = None if parent_id is None else current.snapshots_by_id.get(parent_id)
    if parent is None or not current.format.has_sequence_numbers:
        return False
    # Snapshots without parent may have been added with numbers that others had.
    found = {
        item.sequence
        for item in takewhile(lambda item: item is not parent, reversed(current.snapshots))
        if item.sequence > parent.sequence and item.parent_snapshot_id is not None
    }
    return len(found) == current.last_sequence - parent.sequence


def _on_ref(current: TableMetadata, name: str, expected: SnapshotId | None) -> LandedSince | None:
    ref = current.snapshot_refs.get(name)
    if ref is None:
        return LandedSince((), 0)
    if expected is not None and expected not in current.snapshots_by_id:
        # It has expired, or never existed, so it is unknown where to cut the history.
        return None
    start = expected
    if expected is None and name != MAIN_BRANCH:
        # A new branch begins on main: snapshots of main did not land on the branch.
        main = current.snapshot_refs.get(MAIN_BRANCH)
        start = main.snapshot_id if main else None
    landed: list[Snapshot] = []
    for snapshot in ancestors(current, ref.snapshot_id):
        if snapshot.snapshot_id == start:
            return _newest(landed)
        landed.append(snapshot)
    # The ref was moved to another history, or back: snapshots are new if the expected history lacks them.
    known = {snapshot.snapshot_id for snapshot in ancestors(current, start)}
    return _newest(takewhile(lambda snapshot: snapshot.snapshot_id not in known, landed))


def _newest(snapshots: Iterable[Snapshot]) -> LandedSince:
    found = iter(snapshots)
    first = tuple(islice(found, MAX_SNAPSHOTS))
    return LandedSince(first, len(first) + sum(1 for _ in found))


def _last_row_id(snapshot: Snapshot) -> int:
    if snapshot.first_row_id is None:
        return -1
    return snapshot.first_row_id + (snapshot.added_rows or 0) - 1


def refs_set_by(updates: Sequence[Update]) -> dict[SnapshotId, str]:
    """Return, for each snapshot that updates set a ref to, the first such ref."""
    found: dict[SnapshotId, str] = {}
    for update in updates:
        if isinstance(update, SetSnapshotRef):
            found.setdefault(update.snapshot_id, update.ref_name)
    return found
