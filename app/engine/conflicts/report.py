"""Conflicts as values: what collides, with which snapshot, file and partition, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from app.engine.model.ids import Location, SnapshotId, SpecId
from app.engine.model.partition_values import PartitionValues
from app.engine.model.snapshot import Snapshot


class ConflictKind(StrEnum):
    """Why an operation cannot be put on top of what happened."""

    HISTORY = "history"
    """The base is not an ancestor of the branch's head, or what lies between is not known any more."""
    ADDED_DATA = "added-data-files"
    """A concurrent snapshot added rows that the operation should have seen."""
    REMOVED_DATA = "removed-data-files"
    """A concurrent snapshot removed rows that the operation has read or replaces."""
    NEW_DELETES = "new-delete-files"
    """A concurrent snapshot deletes rows among those that the operation has read or replaces."""
    NEW_DELETES_FOR_FILE = "new-deletes-for-removed-file"
    """A concurrent snapshot deletes rows of a file that the operation replaces, which would bring them back."""
    MISSING_DATA_FILE = "missing-data-file"
    """A file that the operation refers to or removes is not there any more."""
    MISSING_DELETE_FILE = "missing-delete-file"
    """A delete file that the operation removes is not there any more."""
    MISSING_MANIFEST = "missing-manifest"
    """A manifest that the operation replaces is not there any more."""
    ADDED_VECTOR = "added-deletion-vector"
    """A concurrent snapshot added a deletion vector for a file that the operation adds one for, too."""
    PARTITION_NOT_EMPTY = "partition-not-empty"
    """A partition that was to be filled, not replaced, has files."""
    PARTIAL_MATCH = "partially-matching-file"
    """A file has both rows that a filter deletes and others, so that it cannot just be dropped."""
    FILTER_MISMATCH = "added-file-outside-filter"
    """A file that the operation adds may have rows that its own filter does not cover."""
    REFERENCED_AND_REMOVED = "referenced-and-removed"
    """The operation removes a file that its own delete files refer to."""
    CHERRY_PICK = "cherry-pick"
    """The snapshot cannot be picked onto this branch."""
    SCHEMA_CHANGED = "schema-changed"
    """Somebody else changed the columns."""
    SPEC_CHANGED = "partition-spec-changed"
    """Somebody else changed the partitioning."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """One thing that collides; what does not belong to a snapshot, a file or a partition has None there."""

    kind: ConflictKind
    message: str
    """One sentence, with the protocol's words where it has some."""
    snapshot_id: SnapshotId | None = None
    """The concurrent snapshot."""
    file_path: Location | None = None
    spec_id: SpecId | None = None
    partition: tuple[Any, ...] | None = None


@dataclass(frozen=True, slots=True)
class ConflictReport:
    """What an operation that was made from a base collides with on a branch as it is now."""

    ref: str
    base_snapshot_id: SnapshotId | None
    head_snapshot_id: SnapshotId | None
    since: tuple[Snapshot, ...]
    """The concurrent snapshots, oldest first."""
    conflicts: tuple[Conflict, ...]
    is_complete: bool
    """False if there are more conflicts than were looked for."""
    safe_to_reapply: bool
    """Whether the same files, committed on top of the head, give what the operation meant."""
    reason: str
    """Why it is safe or is not, in one or two sentences."""
    partitions: PartitionValues
    """Shows the partitions of the conflicts."""

    @property
    def would_conflict(self) -> bool:
        return bool(self.conflicts)
