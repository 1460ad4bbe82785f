"""Operations, as far as it matters for what they can collide with: what they read, remove, replace and refer to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from app.engine.expressions.expressions import ALWAYS_TRUE, Expression
from app.engine.model.ids import Location, SchemaId, SnapshotId, SpecId
from app.engine.model.manifests import DataFile, Partition


class Isolation(StrEnum):
    """How much of what happens meanwhile an operation cares about."""

    SERIALIZABLE = "serializable"
    """It must come out as if nothing had happened while it ran."""
    SNAPSHOT = "snapshot"
    """What it replaces or refers to must be as it was; new rows may have come in."""
    NONE = "none"
    """It is applied to whatever is there."""


@dataclass(frozen=True, slots=True)
class RemovedFile:
    """A file that an operation removes; all about it, if that is known, else it is looked up where it matters."""

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
    """Removes whole files: those that are named, and those all of whose rows match a filter."""

    row_filter: Expression | None = None
    removed_files: tuple[RemovedFile, ...] = ()
    checks_existence: bool = False
    """Whether a named file that is not there any more is a conflict."""
    case_sensitive: bool = True


@dataclass(frozen=True, slots=True)
class Overwrite:
    """Replaces files by others: those that are named, and those all of whose rows match a filter."""

    row_filter: Expression | None = None
    conflict_filter: Expression | None = None
    """Which rows were read; None says that it is what the row filter says, or everything."""
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
    """Adds delete files, and data files beside them."""

    conflict_filter: Expression | None = ALWAYS_TRUE
    """Which rows were read; None if nobody knows, and then only files are checked."""
    referenced_files: frozenset[Location] = frozenset()
    """The data files that the delete files refer to."""
    vector_targets: frozenset[Location] = frozenset()
    """The data files for which deletion vectors are added."""
    removed_files: tuple[RemovedFile, ...] = ()
    removed_delete_files: tuple[RemovedFile, ...] = ()
    checks_deleted_files: bool = False
    """Whether a file that was dropped by a delete is missed, too, and each file to be removed must be there."""
    checks_new_data: bool = False
    checks_new_deletes: bool = False
    case_sensitive: bool = True


@dataclass(frozen=True, slots=True)
class RewriteFiles:
    """Replaces files by others with the same rows."""

    removed_files: tuple[RemovedFile, ...] = ()
    removed_delete_files: tuple[RemovedFile, ...] = ()
    data_sequence_number: int | None = None
    """What the new files keep of the old ones, so that equality deletes still apply to them."""


@dataclass(frozen=True, slots=True)
class RewriteManifests:
    """Replaces manifests by others with the same files."""

    removed_manifests: tuple[Location, ...] = ()


@dataclass(frozen=True, slots=True)
class CherryPick:
    """Repeats on a branch what another snapshot changed elsewhere."""

    snapshot_id: SnapshotId


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """Changes columns; what is None is not minded, without a schema that of the base snapshot is."""

    schema_id: SchemaId | None = None
    last_column_id: int | None = None


@dataclass(frozen=True, slots=True)
class SpecChange:
    """Changes the partitioning; what is None is not minded."""

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
    | CherryPick
    | SchemaChange
    | SpecChange
    | PropertyChange
)
