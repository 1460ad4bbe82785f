"""Verdicts: whether an operation can still be committed, and why, for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import assert_never

from app.engine.conflicts import operations as ops
from app.engine.conflicts.report import Conflict, ConflictKind
from app.engine.model.snapshot import Snapshot

_ADVICE = {
    ConflictKind.HISTORY: "What happened since is not known: start again from the branch's head.",
    ConflictKind.ADDED_DATA: "Rows came in that it has not seen: read the table again, and compute it anew.",
    ConflictKind.REMOVED_DATA: "Rows that it has read are gone: read the table again, and compute it anew.",
    ConflictKind.NEW_DELETES: "Rows that it has read were deleted: read the table again, and compute it anew.",
    ConflictKind.NEW_DELETES_FOR_FILE: "Rows of files that it replaces were deleted, and would come back: "
    "read those files again.",
    ConflictKind.MISSING_DATA_FILE: "Files that it is about are gone: plan it again.",
    ConflictKind.MISSING_DELETE_FILE: "Delete files that it removes are gone: plan it again.",
    ConflictKind.MISSING_MANIFEST: "Manifests that it replaces are gone: plan it again.",
    ConflictKind.ADDED_VECTOR: "A data file can have one deletion vector only: merge the deletes, and write it anew.",
    ConflictKind.PARTITION_NOT_EMPTY: "A partition that it expects to be empty has files now.",
    ConflictKind.PARTIAL_MATCH: "Files came in of which only some rows match: they have to be rewritten, not dropped.",
    ConflictKind.FILTER_MISMATCH: "Its own files hold rows outside of what it overwrites: another attempt "
    "does not help.",
    ConflictKind.REFERENCED_AND_REMOVED: "It contradicts itself; another attempt does not help.",
    ConflictKind.CHERRY_PICK: "The snapshot cannot be repeated on this branch: make the change there anew.",
    ConflictKind.SCHEMA_CHANGED: "Columns have changed: load the table again, and make the change to what it is now.",
    ConflictKind.SPEC_CHANGED: "The partitioning has changed: load the table again, and make the change to what it is "
    "now.",
}

_OUTDATED = (
    "Iceberg's own writers would commit it, but rows that it has read are gone: if what it adds was computed from "
    "them, read the table again, and compute it anew."
)


def verdict(
    operation: ops.Operation,
    conflicts: Sequence[Conflict],
    since: Sequence[Snapshot],
    ref: str,
    *,
    has_left_base: bool,
    is_outdated: bool,
) -> tuple[bool, str]:
    """Return whether the same change can be committed on top of the head, and why or why not.

    Args:
        operation: the change.
        conflicts: those of Iceberg's own writers.
        since: the concurrent snapshots.
        ref: the branch.
        has_left_base: whether the branch has gone back, so that it does not have the base any more.
        is_outdated: whether rows that it has read are gone, though that is no conflict.
    """
    if conflicts:
        counts = Counter(conflict.kind for conflict in conflicts)
        return False, " ".join(_ADVICE[kind] for kind in counts)
    if not since and not has_left_base:
        return True, f"Nothing has happened on {ref} since."
    number = f"{len(since)} snapshots have" if len(since) > 1 else "1 snapshot has"
    happened = f"{number} come onto {ref} since" if since else f"{ref} does not have the base any more"
    checked, words = (False, _OUTDATED) if is_outdated else _without_conflicts(operation)
    return checked, f"{happened}. {words}"


def _without_conflicts(operation: ops.Operation) -> tuple[bool, str]:
    match operation:
        case ops.Append():
            return (
                True,
                "An append conflicts with nothing, as long as its rows do not depend on what was read.",
            )
        case ops.PropertyChange():
            return True, "Properties conflict with nothing: the last value wins."
        case ops.SchemaChange() | ops.SpecChange():
            return True, "None of them changed what it builds on."
        case ops.CherryPickOperation():
            return True, "None of them stands in the way of the pick."
        case ops.RewriteFiles() | ops.RewriteManifests():
            return True, "None of them touched what it replaces."
        case ops.Delete():
            return True, "A delete of whole files conflicts with nothing that is still there."
        case ops.Overwrite() | ops.ReplacePartitions() | ops.RowDelta():
            return _checked(operation)
        case never:
            assert_never(never)


def _checked(operation: ops.Overwrite | ops.ReplacePartitions | ops.RowDelta) -> tuple[bool, str]:
    if operation.checks_new_data:
        return True, "None of them touched what it has read or replaces."
    if operation.checks_new_deletes:
        return True, "None of them touched what it replaces; rows that came in were not looked at."
    if isinstance(operation, ops.RowDelta):
        return True, "The files that it refers to are there; other changes were not looked at."
    return False, "What they changed was not looked at: it was to be applied to whatever is there."
