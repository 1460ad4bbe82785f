"""Operations as conflicts see them: what they read, remove, replace and refer to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from app.engine.expressions.expressions import ALWAYS_TRUE, Expression
from app.engine.model.files.manifests import DataFile, Partition
from app.engine.model.ids import Location, SchemaId, SnapshotId, SpecId


class Isolation(StrEnum):
    """Which concurrent changes conflict with an operation."""

    SERIALIZABLE = "serializable"
    """All that touch rows it has read: the result is as if it had run alone."""
    SNAPSHOT = "snapshot"
    """Those that touch what it replaces or refers to; new rows do not conflict."""
    NONE = "none"
    """No change: it is applied to the table as it is."""


@dataclass(frozen=True, slots=True)
class RemovedFile:
    """A file that an operation removes. Without `file` the rest is looked up where it matters."""

    path: Location
    file: DataFile | None = None

    @classmethod
    def of(cls, file: DataFile) -> RemovedFile:
        return cls(file.file_path, file)


@dataclass(frozen=True, slots=True)
class Append:
    """Adds files and reads nothing."""


@dataclass(frozen=True, slots=True)
class Delete:
    """Removes whole files: named ones, and those whose rows all match a filter."""

    row_filter: Expression | None = None
    removed_files: tuple[RemovedFile, ...] = ()
    checks_existence: bool = False
    """Whether a named file that is gone already is a conflict."""
    case_sensitive: bool = True


@dataclass(frozen=True, slots=True)
class Overwrite:
    """Replaces files: named ones, and those whose rows all match a filter."""

    row_filter: Expression | None = None
    conflict_filter: Expression | None = None
    """Which rows were read; with None those of the row filter or, without one, all rows."""
    added_files: tuple[DataFile, ...] = ()
    removed_files: tuple[RemovedFile, ...] = ()
    removed_delete_files: tuple[RemovedFile, ...] = ()
    checks_new_data: bool = False
    checks_new_deletes: bool = False
    checks_added_match_filter: bool = False
    case_sensitive: bool = True


@dataclass(frozen=True, slots=True)
class ReplacePartitions:
    """Replaces all files of some partitions, or of an unpartitioned table."""

    partitions: tuple[tuple[SpecId, Partition], ...]
    checks_new_data: bool = False
    checks_new_deletes: bool = False
    is_append_only: bool = False
    """Whether a file in one of the partitions is a conflict."""


@dataclass(frozen=True, slots=True)
class RowDelta:
    """Adds delete files and data files."""

    conflict_filter: Expression | None = ALWAYS_TRUE
    """Which rows were read; if that is unknown, None, and only files are checked."""
    referenced_files: frozenset[Location] = frozenset()
    """The data files that the delete files refer to."""
    vector_targets: frozenset[Location] = frozenset()
    """The data files for which deletion vectors are added."""
    removed_files: tuple[RemovedFile, ...] = ()
    removed_delete_files: tuple[RemovedFile, ...] = ()
    checks_deleted_files: bool = False
    """Whether files that a `delete` removed conflict, too, and removed files must still be there."""
    checks_new_data: bool = False
    checks_new_deletes: bool = False
    checks_removed_data: bool = False
    """Whether files with rows that were read, and that others removed, conflict, too."""
    case_sensitive: bool = True


@dataclass(frozen=True, slots=True)
class RewriteFiles:
    """Replaces files by others with the same rows."""

    removed_files: tuple[RemovedFile, ...] = ()
    removed_delete_files: tuple[RemovedFile, ...] = ()
    data_sequence_number: int | None = None
    """The age that the new files keep, so that equality deletes still apply to them; None for a new one."""
    moved_files: frozenset[Location] = frozenset()
    """Removed files whose rows get another spec, so that their equality deletes do not apply to them."""


@dataclass(frozen=True, slots=True)
class RewriteManifests:
    """Replaces manifests by others with the same files."""

    removed_manifests: tuple[Location, ...] = ()


@dataclass(frozen=True, slots=True)
class CherryPickOperation:
    """Repeats on a branch what another snapshot changed elsewhere."""

    snapshot_id: SnapshotId


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """Changes columns. A None field is not checked; without `schema_id` the base snapshot's schema is expected."""

    schema_id: SchemaId | None = None
    last_column_id: int | None = None


@dataclass(frozen=True, slots=True)
class SpecChange:
    """Changes the partitioning. A None field is not checked."""

    spec_id: SpecId | None = None
    last_partition_id: int | None = None


@dataclass(frozen=True, slots=True)
class PropertyChange:
    """Sets or removes properties: the last one wins."""


Operation: TypeAlias = (
    Append
    | Delete
    | Overwrite
    | ReplacePartitions
    | RowDelta
    | RewriteFiles
    | RewriteManifests
    | CherryPickOperation
    | SchemaChange
    | SpecChange
    | PropertyChange
)
