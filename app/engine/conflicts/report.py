"""Conflicts as values: with which snapshot, file and partition, and the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from app.engine.model.files.manifests import DataFile
from app.engine.model.files.partition_values import PartitionValues
from app.engine.model.ids import Location, SnapshotId, SpecId
from app.engine.model.snapshot import Snapshot


class ConflictKind(StrEnum):
    """Why an operation cannot be committed on top of what happened."""

    HISTORY = "history"
    """The base is not an ancestor of the head, or snapshots between them have expired."""
    ADDED_DATA = "added-data-files"
    """A concurrent snapshot added rows that the operation should have seen."""
    REMOVED_DATA = "removed-data-files"
    """A concurrent snapshot removed rows that the operation has read or replaces."""
    NEW_DELETES = "new-delete-files"
    """A concurrent snapshot deletes rows that the operation has read or replaces."""
    NEW_DELETES_FOR_FILE = "new-deletes-for-removed-file"
    """A concurrent snapshot deletes rows of a file that the operation replaces; they would come back."""
    MISSING_DATA_FILE = "missing-data-file"
    """A file that the operation refers to or removes is not there any more."""
    MISSING_DELETE_FILE = "missing-delete-file"
    """A delete file that the operation removes is not there any more."""
    MISSING_MANIFEST = "missing-manifest"
    """A manifest that the operation replaces is not there any more."""
    ADDED_VECTOR = "added-deletion-vector"
    """A concurrent snapshot added a deletion vector for a file for which the operation adds one, too."""
    PARTITION_NOT_EMPTY = "partition-not-empty"
    """A partition that the operation expects to be empty has files."""
    PARTIAL_MATCH = "partially-matching-file"
    """A filter deletes some rows of a file, but not all: the file cannot be dropped as a whole."""
    FILTER_MISMATCH = "added-file-outside-filter"
    """A file that the operation adds may have rows outside of its own filter."""
    REFERENCED_AND_REMOVED = "referenced-and-removed"
    """The operation removes a file that its own delete files refer to."""
    CHERRY_PICK = "cherry-pick"
    """The snapshot cannot be picked onto this branch."""
    SCHEMA_CHANGED = "schema-changed"
    """Another commit changed the columns."""
    SPEC_CHANGED = "partition-spec-changed"
    """Another commit changed the partitioning."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """One conflict. What does not belong to a snapshot, a file or a partition has None there."""

    kind: ConflictKind
    message: str
    """One sentence, in the reference's words where it has some."""
    snapshot_id: SnapshotId | None = None
    """The concurrent snapshot."""
    file_path: Location | None = None
    spec_id: SpecId | None = None
    partition: tuple[Any, ...] | None = None

    @classmethod
    def with_file(
        cls, kind: ConflictKind, message: str, snapshot_id: SnapshotId | None, file: DataFile
    ) -> Conflict:
        return cls(kind, message, snapshot_id, file.file_path, file.spec_id, file.partition)


@dataclass(frozen=True, slots=True)
class ConflictReport:
    """The conflicts of an operation with what happened to a branch since a base."""

    ref: str
    base_snapshot_id: SnapshotId | None
    head_snapshot_id: SnapshotId | None
    since: tuple[Snapshot, ...]
    """The concurrent snapshots, oldest first."""
    conflicts: tuple[Conflict, ...]
    is_complete: bool
    """False if the search stopped at a limit."""
    safe_to_reapply: bool
    """Whether the same files can be committed on top of the head."""
    reason: str
    """Why it is safe or is not, in one or two sentences."""
    partitions: PartitionValues
    """Shows the partitions of the conflicts."""

    @property
    def would_conflict(self) -> bool:
        return bool(self.conflicts)
