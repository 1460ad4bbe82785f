"""Which commits may be rebased, by what they ask for: before any manifest is read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.engine.branches.ref_changes import PUBLISHED_WAP_ID, SOURCE_SNAPSHOT_ID, WAP_ID
from app.engine.change.edits.snapshots import OPERATIONS, is_row_id_stale, is_sequence_stale
from app.engine.change.requirements import AssertRefSnapshotId, Requirement, check_requirements
from app.engine.change.updates import AddSnapshot, SetSnapshotRef, Update
from app.engine.expressions.expression_json import parse_expression
from app.engine.expressions.expressions import Expression
from app.engine.model.ancestry import ancestors
from app.engine.model.ids import NO_SNAPSHOT, SnapshotId
from app.engine.model.refs import SnapshotRef
from app.engine.model.settings.rebase_settings import RebaseMode
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.engine.rebase.refusals import Reason, refusal
from app.errors import IcetowerError, InvalidFilter
from app.standings import RebaseRefusal

REBASED_FROM = "icetower.rebased-from"
"""In the summary of a rebased snapshot: the manifest list that its writer made."""
CONFLICT_FILTER = "icetower.conflict-filter"
"""In the summary of a snapshot: which rows its writer has read, as an expression in JSON."""
_PUBLISHING = (WAP_ID, PUBLISHED_WAP_ID, SOURCE_SNAPSHOT_ID)
_EXACTLY_ONCE = ("flink.", "kafka.connect.")
"""What the summary keys of writers begin with that write everything exactly once."""
_KAFKA_OFFSETS = "kafka.connect.offsets."
"""Behind it, a key names one connector."""
_FLINK_NAMES = ("flink.job-id", "flink.operator-id")
"""The keys whose values, together, name one sink."""


@dataclass(frozen=True, slots=True)
class LateCommit:
    """A commit of one snapshot to one branch, and the branch as it is now."""

    snapshot: Snapshot
    update: SetSnapshotRef
    parent: Snapshot | None
    """What the snapshot was built on; None if the branch had no snapshot."""
    head: Snapshot | None
    """What the branch names now; None if it has no snapshot."""


def is_behind(current: TableMetadata, requirements: Sequence[Requirement], updates: Sequence[Update]) -> bool:
    """Return whether a commit is refused, and only because other snapshots came first."""
    added = [update.snapshot for update in updates if isinstance(update, AddSnapshot)]
    if not added:
        return False
    moved = {update.ref_name for update in updates if isinstance(update, SetSnapshotRef)}
    failed: list[Requirement] = []

    def note(position: int, error: IcetowerError | None) -> bool:
        if error is not None:
            failed.append(requirements[position])
        return True

    check_requirements(current, requirements, note)
    if any(not isinstance(item, AssertRefSnapshotId) or item.ref not in moved for item in failed):
        return False
    return bool(failed) or _is_stale(current, added[0])


def _is_stale(current: TableMetadata, snapshot: Snapshot) -> bool:
    version = current.format
    return (version.has_sequence_numbers and is_sequence_stale(snapshot, current.last_sequence)) or (
        version.has_row_lineage and is_row_id_stale(snapshot, current.next_row_id or 0)
    )


def snapshot_to_rebase(updates: Sequence[Update]) -> Snapshot | None:
    """Return the snapshot of a commit that adds it to a ref and does nothing else, or None."""
    match sorted(updates, key=lambda update: update.action):
        case [AddSnapshot(snapshot=snapshot), SetSnapshotRef(snapshot_id=snapshot_id)]:
            return snapshot if snapshot_id == snapshot.snapshot_id else None
    return None


def late_commit_of(
    current: TableMetadata, requirements: Sequence[Requirement], updates: Sequence[Update]
) -> LateCommit | RebaseRefusal:
    """Return what a commit would be rebased from and onto, or why it is not rebased."""
    snapshot = snapshot_to_rebase(updates)
    if snapshot is None:
        return refusal(Reason.COMMIT, "It does more than add one snapshot to one branch.")
    (update,) = (item for item in updates if isinstance(item, SetSnapshotRef))
    ref = current.snapshot_refs.get(update.ref_name)
    parent_id = None if snapshot.parent_snapshot_id == NO_SNAPSHOT else snapshot.parent_snapshot_id
    if snapshot.snapshot_id in current.snapshots_by_id:
        return refusal(Reason.COMMIT, f"The table has a snapshot {snapshot.snapshot_id} already.")
    expected = {
        item.snapshot_id
        for item in requirements
        if isinstance(item, AssertRefSnapshotId) and item.ref == update.ref_name
    }
    if expected - {parent_id}:
        return refusal(
            Reason.COMMIT, "It expects another snapshot on the branch than the one it was built on."
        )
    flaw = _flaw_of_branch(update, ref)
    if flaw is not None:
        return refusal(Reason.COMMIT, flaw)
    head_id = ref.snapshot_id if ref is not None else None
    if not _descends(current, head_id, parent_id):
        return refusal(
            Reason.HISTORY,
            f"Snapshot {parent_id}, on which it was built, is not in the history of the branch.",
        )
    return LateCommit(
        snapshot,
        update,
        None if parent_id is None else current.snapshots_by_id[parent_id],
        None if head_id is None else current.snapshots_by_id[head_id],
    )


def filter_in_summary(snapshot: Snapshot) -> Expression | None:
    """Return which rows a snapshot's writer says it has read; None if it does not say.

    Raises:
        InvalidFilter: what it says is not an expression.
    """
    text = (snapshot.summary or {}).get(CONFLICT_FILTER)
    if text is None:
        return None
    try:
        return parse_expression(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise InvalidFilter(f"Invalid {CONFLICT_FILTER} in the summary: it is not JSON: {error}") from error


def exactly_once_key(snapshot: Snapshot) -> str | None:
    """Return the summary key that shows an exactly-once writer, or None."""
    return next((key for key in snapshot.summary or () if key.startswith(_EXACTLY_ONCE)), None)


def _writers(snapshot: Snapshot) -> set[str]:
    """Return by what exactly-once writers know a snapshot of their own when they look for it."""
    summary = snapshot.summary or {}
    found = {key for key in summary if key.startswith(_KAFKA_OFFSETS)}
    if all(key in summary for key in _FLINK_NAMES):
        found.add(" ".join(f"{key} {summary[key]}" for key in _FLINK_NAMES))
    return found


def _committed_since(current: TableMetadata, late: LateCommit) -> SnapshotId | None:
    """Return a newer commit of the same exactly-once writer.

    A commit without the keys that name its writer counts as one of any.
    """
    own = _writers(late.snapshot)
    parent_id = None if late.parent is None else late.parent.snapshot_id
    for snapshot in ancestors(current, None if late.head is None else late.head.snapshot_id):
        if snapshot.snapshot_id == parent_id:
            return None
        if exactly_once_key(snapshot) is not None:
            others = _writers(snapshot)
            if not own or not others or own & others:
                return snapshot.snapshot_id
    return None


def _flaw_of_branch(update: SetSnapshotRef, ref: SnapshotRef | None) -> str | None:
    if update.type != "branch" or (ref is not None and not ref.is_branch):
        return f"{update.ref_name} is a tag."
    wanted = (update.min_snapshots_to_keep, update.max_snapshot_age_ms, update.max_ref_age_ms)
    if ref is None or wanted == (None, None, None):
        return None
    if wanted != (ref.min_snapshots_to_keep, ref.max_snapshot_age_ms, ref.max_ref_age_ms):
        return f"It sets how long snapshots of {update.ref_name} are kept."
    return None


def _descends(current: TableMetadata, head_id: SnapshotId | None, parent_id: SnapshotId | None) -> bool:
    """Return whether a branch surely descends from a snapshot, or with None began without one."""
    if head_id is None:
        return parent_id is None
    if parent_id is not None:
        return any(snapshot.snapshot_id == parent_id for snapshot in ancestors(current, head_id))
    *_, oldest = ancestors(current, head_id)
    return oldest.parent_snapshot_id in (None, NO_SNAPSHOT)


def refusal_of(
    current: TableMetadata, late: LateCommit, mode: RebaseMode, *, exactly_once: bool
) -> RebaseRefusal | None:
    """Return why a commit is not rebased, as far as its snapshot shows; None if it may be.

    Args:
        exactly_once: whether commits of writers may be rebased that write everything exactly once.
    """
    return next(_refusals(current, late, mode, exactly_once=exactly_once), None)


def _refusals(
    current: TableMetadata, late: LateCommit, mode: RebaseMode, *, exactly_once: bool
) -> Iterator[RebaseRefusal]:
    snapshot = late.snapshot
    summary = snapshot.summary or {}
    if not current.format.has_sequence_numbers:
        yield refusal(Reason.FORMAT, "Tables of format version 1 have no sequence numbers.")
    for each in (snapshot, late.parent, late.head):
        if each is not None and (each.manifest_list is None or each.key_id is not None):
            yield refusal(
                Reason.FORMAT, f"Snapshot {each.snapshot_id} has no manifest list that the server can read."
            )
    for key in (*_PUBLISHING, REBASED_FROM):
        if key in summary:
            yield refusal(
                Reason.PUBLISHED, f"Its summary has {key}: it publishes or repeats another snapshot."
            )
    writer = exactly_once_key(snapshot)
    if writer is not None and not exactly_once:
        yield refusal(
            Reason.EXACTLY_ONCE,
            f"Its summary has {writer[:100]}: its writer counts on refusals to write everything exactly once.",
        )
    elif writer is not None and (newer := _committed_since(current, late)) is not None:
        yield refusal(
            Reason.EXACTLY_ONCE,
            f"Snapshot {newer} came first, and its writer may be the same: both may have the same data.",
        )
    if snapshot.operation not in OPERATIONS:
        yield refusal(Reason.MODE, "Its summary does not say which operation it is.")
    elif mode is RebaseMode.APPENDS and snapshot.operation != "append":
        yield refusal(
            Reason.MODE, f"It is of operation {snapshot.operation}, and only appends are rebased here."
        )
    if snapshot.schema_id != current.current_schema_id:
        yield refusal(
            Reason.SCHEMA,
            f"It was written with schema {snapshot.schema_id}; the current one is {current.current_schema_id}.",
        )
