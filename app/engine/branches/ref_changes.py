"""Moves of branches and tags: what each does to a table, and when it is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Literal, assert_never

from app.engine.change.requirements import AssertRefSnapshotId
from app.engine.change.updates import SetSnapshotRef
from app.engine.model.ancestry import ancestors, is_ancestor
from app.engine.model.data_types.moments import timestamp_text
from app.engine.model.ids import SnapshotId
from app.engine.model.refs import MAIN_BRANCH, SnapshotRef
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.errors import InvalidRefMove, NoSuchRef, NoSuchSnapshot, RequirementFailed

WAP_ID = "wap.id"
PUBLISHED_WAP_ID = "published-wap-id"
SOURCE_SNAPSHOT_ID = "source-snapshot-id"
_MOST_DIGITS: Final = 19
"""Of the id of a snapshot."""


@dataclass(frozen=True, slots=True)
class ToSnapshot:
    """To any snapshot."""

    snapshot_id: SnapshotId


@dataclass(frozen=True, slots=True)
class ToRef:
    """To where another branch or tag is."""

    name: str


@dataclass(frozen=True, slots=True)
class ToTime:
    """To the snapshot that was current then."""

    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class FastForward:
    """Ahead, to where another branch or tag is."""

    name: str


@dataclass(frozen=True, slots=True)
class RollBack:
    """Back, to an ancestor: by snapshot id or by the name of a branch or tag."""

    target: SnapshotId | str


@dataclass(frozen=True, slots=True)
class CherryPick:
    """Forward, by the changes of another snapshot."""

    snapshot_id: SnapshotId


@dataclass(frozen=True, slots=True)
class Publish:
    """Forward, by the changes of the snapshot staged under this id (write, audit, publish)."""

    wap_id: str


Move = ToSnapshot | ToRef | ToTime | FastForward | RollBack
"""Moves to a snapshot that is there already."""
Pick = CherryPick | Publish
"""Moves that may need a new snapshot."""


class Unchecked(Enum):
    """A change that expects nothing of the ref; None expects that the ref does not exist."""

    UNCHECKED = "unchecked"


@dataclass(frozen=True, slots=True)
class RefChange:
    """What a caller wants of a branch or tag.

    `move` None leaves it where it is, and puts a new one at the head of main. `type` None keeps what it is, and makes
    a new one a branch. `retention` holds what is to be changed: None as a value clears a setting.
    """

    name: str
    move: Move | Pick | None = None
    type: Literal["branch", "tag"] | None = None
    retention: Mapping[str, int | None] = field(default_factory=dict)
    expected: SnapshotId | Unchecked | None = Unchecked.UNCHECKED


class PickKind(Enum):
    """How a snapshot is put onto a branch."""

    FAST_FORWARD = "fast-forward"
    APPEND = "append"
    REPLACE_PARTITIONS = "replace-partitions"


def check_expected(metadata: TableMetadata, name: str, expected: SnapshotId | Unchecked | None) -> None:
    """Check that a ref is at the snapshot that the caller expects; None expects no ref.

    Raises:
        RequirementFailed: it is somewhere else.
    """
    if isinstance(expected, Unchecked):
        return
    found = metadata.snapshot_refs.get(name)
    if (found.snapshot_id if found else None) == expected:
        return
    if found is None:
        reason = f"branch or tag {name} is missing, expected {expected}"
    elif expected is None:
        reason = f"{found.type} {name} exists, at {found.snapshot_id}"
    else:
        reason = f"{found.type} {name} has changed: expected id {expected} != {found.snapshot_id}"
    demand = AssertRefSnapshotId(ref=name, snapshot_id=expected)
    raise RequirementFailed(reason, demand, expected, found.snapshot_id if found else None)


def ref_type(metadata: TableMetadata, change: RefChange) -> Literal["branch", "tag"]:
    """Return whether a ref will be a branch or a tag.

    Raises:
        InvalidRefMove: it will be a tag, and only branches move in this way.
    """
    present = metadata.snapshot_refs.get(change.name)
    kind = change.type or (present.type if present else "branch")
    if kind == "tag" and isinstance(change.move, FastForward | RollBack | CherryPick | Publish):
        raise InvalidRefMove(f"Cannot move {change.name} so: it is a tag, and only branches go ahead or back")
    return kind


def destination(metadata: TableMetadata, name: str, move: Move | None) -> SnapshotId:
    """Return the snapshot that a move leads to.

    Raises:
        NoSuchSnapshot: the table does not have it.
        NoSuchRef: a ref that the move names does not exist.
        InvalidRefMove: a fast-forward to no descendant, or a rollback to no ancestor.
    """
    present = metadata.snapshot_refs.get(name)
    match move:
        case None:
            return present.snapshot_id if present else ref_by_name(metadata, MAIN_BRANCH).snapshot_id
        case ToSnapshot(snapshot_id):
            return snapshot_by_id(metadata, snapshot_id).snapshot_id
        case ToRef(other):
            return ref_by_name(metadata, other).snapshot_id
        case ToTime(timestamp_ms):
            return _as_of(metadata, name, present, timestamp_ms)
        case FastForward(other):
            target = ref_by_name(metadata, other).snapshot_id
            if present is not None and not is_ancestor(metadata, present.snapshot_id, target):
                raise InvalidRefMove(f"Cannot fast-forward: {name} is not an ancestor of {other}")
            return target
        case RollBack(wanted):
            target = snapshot_of(metadata, wanted).snapshot_id
            if not is_ancestor(metadata, target, ref_by_name(metadata, name).snapshot_id):
                raise InvalidRefMove(
                    f"Cannot roll back to snapshot, not an ancestor of the current state of {name}: {target}"
                )
            return target
        case never:
            assert_never(never)


def snapshot_by_id(metadata: TableMetadata, snapshot_id: SnapshotId) -> Snapshot:
    """Return a snapshot of a table.

    Raises:
        NoSuchSnapshot: the table does not have it.
    """
    found = metadata.snapshots_by_id.get(snapshot_id)
    if found is None:
        raise NoSuchSnapshot(snapshot_id)
    return found


def ref_by_name(metadata: TableMetadata, name: str) -> SnapshotRef:
    """Return a branch or tag of a table.

    Raises:
        NoSuchRef: the table does not have it; of `main` that means that the table is empty.
    """
    found = metadata.snapshot_refs.get(name)
    if found is None:
        raise NoSuchRef(name)
    return found


def snapshot_of(metadata: TableMetadata, wanted: SnapshotId | str) -> Snapshot:
    """Return the snapshot of an id, or of a text: an id, else the name of a branch or tag.

    Raises:
        NoSuchSnapshot: the table does not have it.
        NoSuchRef: the table has no such branch or tag.
    """
    if not isinstance(wanted, str):
        return snapshot_by_id(metadata, wanted)
    digits = wanted.removeprefix("-")
    if digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS:
        snapshot_id = SnapshotId(int(wanted))
        if snapshot_id in metadata.snapshots_by_id or wanted not in metadata.snapshot_refs:
            return snapshot_by_id(metadata, snapshot_id)
    return snapshot_by_id(metadata, ref_by_name(metadata, wanted).snapshot_id)


def _as_of(metadata: TableMetadata, name: str, present: SnapshotRef | None, timestamp_ms: int) -> SnapshotId:
    if present is not None and present.is_branch and name != MAIN_BRANCH:
        # Only main has a log; for other branches the snapshots' own times count.
        for snapshot in ancestors(metadata, present.snapshot_id):
            if snapshot.timestamp_ms <= timestamp_ms:
                return snapshot.snapshot_id
    else:
        for entry in reversed(metadata.snapshot_log):
            if entry.timestamp_ms <= timestamp_ms:
                return snapshot_by_id(metadata, entry.snapshot_id).snapshot_id
    moment = timestamp_text(timestamp_ms, 1000, with_zone=True)
    raise NoSuchSnapshot(f"none is known to have been current at {timestamp_ms} ({moment})")


def set_ref(metadata: TableMetadata, change: RefChange, snapshot_id: SnapshotId) -> SetSnapshotRef:
    """Return the update that puts a ref at a snapshot, with the retention it has or is given."""
    present = metadata.snapshot_refs.get(change.name)
    kind = ref_type(metadata, change)
    kept = present if present is not None and present.type == kind else None
    settings: dict[str, int | None] = {
        "min-snapshots-to-keep": kept.min_snapshots_to_keep if kept else None,
        "max-snapshot-age-ms": kept.max_snapshot_age_ms if kept else None,
        "max-ref-age-ms": present.max_ref_age_ms if present else None,
        **change.retention,
    }
    return SetSnapshotRef(
        ref_name=change.name,
        snapshot_id=snapshot_id,
        type=kind,
        min_snapshots_to_keep=settings["min-snapshots-to-keep"],
        max_snapshot_age_ms=settings["max-snapshot-age-ms"],
        max_ref_age_ms=settings["max-ref-age-ms"],
    )


def picked_snapshot(metadata: TableMetadata, pick: Pick) -> Snapshot:
    """Return the snapshot that a pick names.

    Raises:
        NoSuchSnapshot: the table does not have it, or nothing was staged under the id.
    """
    match pick:
        case CherryPick(snapshot_id):
            return snapshot_by_id(metadata, snapshot_id)
        case Publish(wap_id):
            staged = [item for item in metadata.snapshots if (item.summary or {}).get(WAP_ID) == wap_id]
            if not staged:
                raise NoSuchSnapshot(f"none was staged with {WAP_ID} {wap_id}")
            return staged[-1]
        case never:
            assert_never(never)


def pick_kind(metadata: TableMetadata, branch: str, picked: Snapshot) -> PickKind:
    """Return how a snapshot is put onto a branch.

    Raises:
        InvalidRefMove: the branch has it already, itself, as a copy or by its WAP id; or it changed the
            table in a way that only a fast-forward can repeat.
        NoSuchRef: there is no such branch.

    Spec: #snapshots
    """
    head_id = _head_of(metadata, branch)
    on_branch = list(ancestors(metadata, head_id))
    _check_not_picked(on_branch, picked)
    if picked.parent_snapshot_id == head_id:
        return PickKind.FAST_FORWARD
    if picked.operation == "append":
        return PickKind.APPEND
    if picked.replaces_partitions:
        base_id = picked.parent_snapshot_id
        if base_id is not None and all(item.snapshot_id != base_id for item in on_branch):
            raise InvalidRefMove(
                "Cannot cherry-pick overwrite, based on non-ancestor of the current state: "
                f"{picked.snapshot_id}"
            )
        return PickKind.REPLACE_PARTITIONS
    raise InvalidRefMove(
        f"Cannot cherry-pick snapshot {picked.snapshot_id}: not append, dynamic overwrite, or fast-forward"
    )


def _head_of(metadata: TableMetadata, branch: str) -> SnapshotId | None:
    ref = metadata.snapshot_refs.get(branch)
    if ref is None and branch != MAIN_BRANCH:
        raise NoSuchRef(branch)
    return ref.snapshot_id if ref else None


def _check_not_picked(on_branch: list[Snapshot], picked: Snapshot) -> None:
    wap_id = (picked.summary or {}).get(WAP_ID)
    for snapshot in on_branch:
        summary = snapshot.summary or {}
        if snapshot.snapshot_id == picked.snapshot_id:
            raise InvalidRefMove(f"Cannot cherrypick snapshot {picked.snapshot_id}: already an ancestor")
        if summary.get(SOURCE_SNAPSHOT_ID) == str(picked.snapshot_id):
            raise InvalidRefMove(
                f"Cannot cherrypick snapshot {picked.snapshot_id}: already picked to create ancestor "
                f"{snapshot.snapshot_id}"
            )
        if wap_id and wap_id in (summary.get(WAP_ID), summary.get(PUBLISHED_WAP_ID)):
            raise InvalidRefMove(
                f"Duplicate request to cherry pick wap id that was published already: {wap_id}"
            )
