"""Edits of a draft's snapshots."""

from __future__ import annotations

from app.engine.change.draft import MetadataDraft
from app.engine.change.updates import AddSnapshot, RemoveSnapshots
from app.engine.model.document import MAX_LONG
from app.engine.model.ids import NO_SNAPSHOT
from app.engine.model.snapshot import Snapshot
from app.errors import ClockBehind, InvalidUpdate, StaleUpdate

OPERATIONS = frozenset({"append", "replace", "overwrite", "delete"})
CLOCK_LEAD_MS = 86_400_000
"""How far a writer's clock may be ahead of ours."""
MOST_COMMITS_AHEAD = 2**32
"""How far a sequence number may be ahead of the last one.

Writers give the next one; a copy of another table's snapshots leaves out those that have expired. There are 2^31 such
leaps until no number is left, so no commit makes a table one that takes no other.
"""
MOST_ROWS_ADDED = 2**48
"""How many row ids one snapshot may take: all rows of any table, which its first snapshot of version 3 numbers.

It may also pass over so many: a copy of another table's snapshots leaves out those that have expired.
"""


def add_snapshot(draft: MetadataDraft, update: AddSnapshot) -> None:
    """Add a snapshot, and advance the table's sequence number and next row id.

    Raises:
        InvalidUpdate: the snapshot can never be added to this table.
        StaleUpdate: another commit came first; with a fresh base the writer can try again.
        ClockBehind: the snapshot's time makes no sense here, but neither does the table's.

    Spec: #sequence-numbers, #row-lineage
    """
    snapshot = update.snapshot
    for what, present in (
        ("schema", draft.schemas),
        ("partition spec", draft.specs),
        ("sort order", draft.sort_orders),
    ):
        if not present:
            raise InvalidUpdate(f"Attempting to add a snapshot before a {what} is added")
    if snapshot.snapshot_id in draft.snapshots:
        raise InvalidUpdate(f"Snapshot already exists for id: {snapshot.snapshot_id}")
    if snapshot.snapshot_id == NO_SNAPSHOT:
        raise InvalidUpdate(f"Cannot add snapshot with id {NO_SNAPSHOT}: it stands for no snapshot")
    _check_readable(draft, snapshot)
    if snapshot.manifest_list is None and draft.format.requires_manifest_lists:
        raise InvalidUpdate(
            f"Cannot add snapshot {snapshot.snapshot_id} to a v{draft.format_version} table: it has no manifest-list"
        )
    if draft.format.has_sequence_numbers:
        _advance_sequence(draft, snapshot)
    elif snapshot.sequence:
        raise InvalidUpdate(
            f"Cannot add snapshot with sequence number {snapshot.sequence} to a v{draft.format_version} table: "
            "it must be 0"
        )
    if draft.format.has_row_lineage:
        _advance_row_id(draft, snapshot)
    draft.snapshots[snapshot.snapshot_id] = snapshot
    draft.added_snapshot_ids.add(snapshot.snapshot_id)
    draft.has_changes = True


def _check_readable(draft: MetadataDraft, snapshot: Snapshot) -> None:
    operation = snapshot.operation
    if operation is not None and operation not in OPERATIONS:
        raise InvalidUpdate(
            f"Cannot add snapshot {snapshot.snapshot_id}: operation {operation[:100]!r} is none of "
            f"{', '.join(sorted(OPERATIONS))}"
        )
    if is_too_far_ahead(snapshot.timestamp_ms, draft.now_ms):
        if draft.base is not None and draft.base.last_updated_ms > draft.now_ms:
            raise ClockBehind(draft.now_ms, draft.base.last_updated_ms)
        # Time in a table's log never runs backwards, so all other writers would fail until then.
        raise InvalidUpdate(
            f"Cannot add snapshot {snapshot.snapshot_id}: timestamp-ms {snapshot.timestamp_ms} is more than a day "
            f"ahead of {draft.now_ms}"
        )


def is_too_far_ahead(timestamp_ms: int, now_ms: int) -> bool:
    """Return whether a time is further ahead of ours than a writer's clock may be."""
    return timestamp_ms > now_ms + CLOCK_LEAD_MS


def is_sequence_stale(snapshot: Snapshot, last_sequence: int) -> bool:
    """Return whether a snapshot was numbered before the table's last one."""
    return snapshot.sequence <= last_sequence and snapshot.parent_snapshot_id is not None


def is_row_id_stale(snapshot: Snapshot, next_row_id: int) -> bool:
    """Return whether a snapshot counts its rows from an id that the table has given away."""
    return snapshot.first_row_id is not None and snapshot.first_row_id < next_row_id


def _advance_sequence(draft: MetadataDraft, snapshot: Snapshot) -> None:
    if is_sequence_stale(snapshot, draft.last_sequence):
        raise StaleUpdate(
            f"Cannot add snapshot with sequence number {snapshot.sequence} older than last sequence number "
            f"{draft.last_sequence}",
            "last-sequence-number",
            snapshot.sequence - 1,
            draft.last_sequence,
            snapshot,
        )
    highest = min(draft.last_sequence + MOST_COMMITS_AHEAD, MAX_LONG)
    if snapshot.sequence > highest:
        raise InvalidUpdate(
            f"Cannot add snapshot {snapshot.snapshot_id}: after sequence number {snapshot.sequence} the table could "
            f"soon take no further commit; the highest allowed is {highest}"
        )
    # A snapshot without parent replaces the table and may have an old number; the table's number never falls.
    draft.last_sequence = max(draft.last_sequence, snapshot.sequence)


def _advance_row_id(draft: MetadataDraft, snapshot: Snapshot) -> None:
    if snapshot.first_row_id is None or snapshot.added_rows is None:
        raise InvalidUpdate("Cannot add a snapshot: first-row-id is null")
    if is_row_id_stale(snapshot, draft.next_row_id):
        raise StaleUpdate(
            f"Cannot add a snapshot, first-row-id is behind table next-row-id: {snapshot.first_row_id} < "
            f"{draft.next_row_id}",
            "next-row-id",
            snapshot.first_row_id,
            draft.next_row_id,
            snapshot,
        )
    highest = min(draft.next_row_id + MOST_ROWS_ADDED, MAX_LONG)
    if snapshot.first_row_id > highest:
        raise InvalidUpdate(
            f"Cannot add a snapshot: first-row-id {snapshot.first_row_id} passes over more row ids than any table has; "
            f"the highest allowed is {highest}"
        )
    most = min(MOST_ROWS_ADDED, MAX_LONG - snapshot.first_row_id)
    if snapshot.added_rows > most:
        raise InvalidUpdate(
            f"Cannot add a snapshot: {snapshot.added_rows} added rows exceed what row ids can number; the highest "
            f"allowed is {most}"
        )
    # From where it counts, which may be further on: the ids that it gives must not be given again.
    draft.next_row_id = snapshot.first_row_id + snapshot.added_rows


def remove_snapshots(draft: MetadataDraft, update: RemoveSnapshots) -> None:
    """Remove snapshots with their statistics; children keep naming their parent.

    A ref to a removed snapshot is an error only when the draft is finished: a later update may remove or move it.
    """
    # What is not there is left out one by one: a set of ids that were chosen to do harm takes seconds.
    doomed = {snapshot_id for snapshot_id in update.snapshot_ids if snapshot_id in draft.snapshots}
    if not doomed:
        return
    for snapshot_id in doomed:
        del draft.snapshots[snapshot_id]
        draft.statistics.pop(snapshot_id, None)
        draft.partition_statistics.pop(snapshot_id, None)
    draft.has_removed_snapshots = True
    draft.has_changes = True
