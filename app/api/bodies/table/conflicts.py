"""JSON of conflict checks: the operation that is described, and what it conflicts with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Generic, Literal, Self, TypeVar, assert_never

from pydantic import Discriminator, Field, Tag, model_validator

from app.api.bodies.json_answer import present
from app.api.bodies.json_body import MOST_COLUMNS, ExtensionBody
from app.engine.conflicts.operations import (
    Append,
    CherryPickOperation,
    Delete,
    Isolation,
    Operation,
    Overwrite,
    PropertyChange,
    RemovedFile,
    ReplacePartitions,
    RewriteFiles,
    RewriteManifests,
    RowDelta,
    SchemaChange,
    SpecChange,
)
from app.engine.conflicts.partition_tuples import partition_tuple
from app.engine.conflicts.report import Conflict, ConflictReport
from app.engine.expressions.expression_json import parse_expression
from app.engine.expressions.expressions import ALWAYS_TRUE, Expression
from app.engine.model.document import INT, LONG, Bool, Int, JsonValue, Long
from app.engine.model.files.manifests import DataFile, FileContent, Partition
from app.engine.model.files.partition_values import PartitionValues
from app.engine.model.ids import Location, SchemaId, SnapshotId, SpecId
from app.engine.model.refs import MAIN_BRANCH
from app.engine.model.table_metadata import TableMetadata
from app.errors import InvalidRequest

MAX_CONFLICTS = 100
MAX_SNAPSHOTS = 1000
"""How many of the newest concurrent snapshots are listed."""
MAX_FILES = 100_000

Text = Annotated[str, Field(min_length=1, max_length=4096)]
Tuple = dict[str, JsonValue] | list[JsonValue]
Number = Annotated[Long, Field(ge=0)]
Item = TypeVar("Item")


class PartitionBody(ExtensionBody):
    spec_id: Annotated[SpecId, INT] | None = None
    partition: Tuple | None = None

    def key(self, metadata: TableMetadata) -> tuple[SpecId, Partition]:
        """Return the partition; raises `InvalidRequest` if it does not fit the table."""
        return partition_tuple(metadata, self.spec_id, self.partition)


class ByFieldIdBody(ExtensionBody, Generic[Item]):
    """A map from field ids, as the protocol writes it: keys and values apart."""

    keys: Annotated[tuple[Int, ...], MOST_COLUMNS]
    values: tuple[Item, ...]

    @model_validator(mode="after")
    def _is_even(self) -> Self:
        if len(self.keys) != len(self.values):
            raise ValueError("there must be as many values as keys")
        return self

    def items(self) -> Iterator[tuple[int, Item]]:
        """Yield ids and values one by one, so that other threads run: see `MOST_COLUMNS`."""
        for key, value in zip(self.keys, self.values, strict=True):  # noqa: UP028 - that would not let them run
            yield key, value


Counts = ByFieldIdBody[Number] | None
Bounds = ByFieldIdBody[Annotated[str, Field(pattern=r"^([0-9a-fA-F]{2})*$")]] | None


def _counts(counts: Counts) -> dict[int, int] | None:
    return dict(counts.items()) if counts else None


def _bounds(bounds: Bounds) -> dict[int, bytes] | None:
    return {key: bytes.fromhex(value) for key, value in bounds.items()} if bounds else None


class FileBody(ExtensionBody):
    """A file with what a check can use of it, in the words of the protocol's content files."""

    file_path: Text
    spec_id: Annotated[SpecId, INT] | None = None
    partition: Tuple | None = None
    record_count: Number = 1
    value_counts: Counts = None
    null_value_counts: Counts = None
    nan_value_counts: Counts = None
    lower_bounds: Bounds = None
    upper_bounds: Bounds = None

    def file(self, metadata: TableMetadata) -> DataFile:
        """Return the file; raises `InvalidRequest` if its partition does not fit the table."""
        spec_id, partition = partition_tuple(metadata, self.spec_id, self.partition)
        return DataFile(
            content=FileContent.DATA,
            file_path=Location(self.file_path),
            file_format="parquet",
            spec_id=spec_id,
            partition=partition,
            record_count=self.record_count,
            file_size_in_bytes=0,
            value_counts=_counts(self.value_counts),
            null_value_counts=_counts(self.null_value_counts),
            nan_value_counts=_counts(self.nan_value_counts),
            lower_bounds=_bounds(self.lower_bounds),
            upper_bounds=_bounds(self.upper_bounds),
        )


def _form_of(value: object) -> str:
    return "path" if isinstance(value, str) else "file"


PathOrFile = Annotated[
    Annotated[Text, Tag("path")] | Annotated[FileBody, Tag("file")], Discriminator(_form_of)
]
Removed = Annotated[tuple[PathOrFile, ...], Field(max_length=MAX_FILES)]
Paths = Annotated[tuple[Text, ...], Field(max_length=MAX_FILES)]
Added = Annotated[tuple[FileBody, ...], Field(max_length=MAX_FILES)]
Partitions = Annotated[tuple[PartitionBody, ...], Field(max_length=MAX_FILES)]


class AppendBody(ExtensionBody):
    kind: Literal["append"]
    added_files: Added = ()


class DeleteBody(ExtensionBody):
    kind: Literal["delete"]
    row_filter: JsonValue = None
    removed_data_files: Removed = ()
    check_existence: Bool = True
    case_sensitive: Bool = True


class OverwriteBody(ExtensionBody):
    kind: Literal["overwrite"]
    isolation: Isolation = Isolation.SERIALIZABLE
    filter: JsonValue = None
    row_filter: JsonValue = None
    added_files: Added = ()
    check_added_files: Bool = False
    removed_data_files: Removed = ()
    removed_delete_files: Paths = ()
    case_sensitive: Bool = True


class ReplacePartitionsBody(ExtensionBody):
    kind: Literal["replace-partitions"]
    isolation: Isolation = Isolation.SERIALIZABLE
    partitions: Partitions = ()
    added_files: Added = ()
    append_only: Bool = False


class RowDeltaBody(ExtensionBody):
    kind: Literal["row-delta"]
    isolation: Isolation = Isolation.SERIALIZABLE
    filter: JsonValue = None
    referenced_data_files: Paths = ()
    deletion_vectors_for: Paths = ()
    added_files: Added = ()
    removed_data_files: Removed = ()
    removed_delete_files: Paths = ()
    check_deleted_files: Bool = True
    case_sensitive: Bool = True


class RewriteFilesBody(ExtensionBody):
    kind: Literal["rewrite-files"]
    removed_data_files: Removed = ()
    removed_delete_files: Paths = ()
    data_sequence_number: Number | None = None


class RewriteManifestsBody(ExtensionBody):
    kind: Literal["rewrite-manifests"]
    removed_manifests: Annotated[Paths, Field(min_length=1)]


class CherryPickBody(ExtensionBody):
    kind: Literal["cherry-pick"]
    snapshot_id: Annotated[SnapshotId, LONG]


class SchemaBody(ExtensionBody):
    kind: Literal["schema"]
    schema_id: Annotated[SchemaId, INT] | None = None
    last_column_id: Int | None = None


class PartitionSpecBody(ExtensionBody):
    kind: Literal["partition-spec"]
    spec_id: Annotated[SpecId, INT] | None = None
    last_partition_id: Int | None = None


class PropertiesBody(ExtensionBody):
    kind: Literal["properties"]


OperationBody = Annotated[
    AppendBody
    | DeleteBody
    | OverwriteBody
    | ReplacePartitionsBody
    | RowDeltaBody
    | RewriteFilesBody
    | RewriteManifestsBody
    | CherryPickBody
    | SchemaBody
    | PartitionSpecBody
    | PropertiesBody,
    Field(discriminator="kind"),
]


class CheckConflictsBody(ExtensionBody):
    base_snapshot_id: Annotated[SnapshotId, LONG] | None = None
    ref: Text = MAIN_BRANCH
    operation: OperationBody

    def describe(self, metadata: TableMetadata) -> Operation:
        """Return the operation; raises `BadRequest` if it does not fit the table."""
        body = self.operation
        match body:
            case AppendBody():
                _files(body.added_files, metadata)
                return Append()
            case PropertiesBody():
                return PropertyChange()
            case DeleteBody():
                _need_one(body, "row-filter", "removed-data-files")
                return Delete(
                    row_filter=_filter(body.row_filter),
                    removed_files=_removed(body.removed_data_files, metadata),
                    checks_existence=body.check_existence,
                    case_sensitive=body.case_sensitive,
                )
            case OverwriteBody():
                return _overwrite(body, metadata)
            case ReplacePartitionsBody():
                return _replace_partitions(body, metadata)
            case RowDeltaBody():
                return _row_delta(body, metadata)
            case RewriteFilesBody():
                _need_one(body, "removed-data-files", "removed-delete-files")
                return RewriteFiles(
                    _removed(body.removed_data_files, metadata),
                    _removed(body.removed_delete_files, metadata),
                    body.data_sequence_number,
                )
            case RewriteManifestsBody():
                return RewriteManifests(tuple(map(Location, body.removed_manifests)))
            case CherryPickBody():
                return CherryPickOperation(body.snapshot_id)
            case SchemaBody():
                return SchemaChange(body.schema_id, body.last_column_id)
            case PartitionSpecBody():
                _need_one(body, "spec-id", "last-partition-id")
                return SpecChange(body.spec_id, body.last_partition_id)
            case never:
                assert_never(never)


def _overwrite(body: OverwriteBody, metadata: TableMetadata) -> Operation:
    _need_one(body, "filter", "row-filter", "removed-data-files")
    if body.check_added_files and body.row_filter is None:
        raise InvalidRequest(
            "Invalid body: operation.check-added-files needs a row-filter to check them against"
        )
    return Overwrite(
        row_filter=_filter(body.row_filter),
        conflict_filter=_filter(body.filter),
        added_files=_files(body.added_files, metadata),
        removed_files=_removed(body.removed_data_files, metadata),
        removed_delete_files=_removed(body.removed_delete_files, metadata),
        checks_new_data=body.isolation is Isolation.SERIALIZABLE,
        checks_new_deletes=body.isolation is not Isolation.NONE,
        checks_added_match_filter=body.check_added_files,
        case_sensitive=body.case_sensitive,
    )


def _replace_partitions(body: ReplacePartitionsBody, metadata: TableMetadata) -> Operation:
    _need_one(body, "partitions", "added-files")
    added = ((file.spec_id, file.partition) for file in _files(body.added_files, metadata))
    return ReplacePartitions(
        partitions=(*(partition.key(metadata) for partition in body.partitions), *added),
        checks_new_data=body.isolation is Isolation.SERIALIZABLE,
        checks_new_deletes=body.isolation is not Isolation.NONE,
        is_append_only=body.append_only,
    )


def _row_delta(body: RowDeltaBody, metadata: TableMetadata) -> Operation:
    _files(body.added_files, metadata)
    vectors = frozenset(map(Location, body.deletion_vectors_for))
    found = _filter(body.filter)
    return RowDelta(
        conflict_filter=ALWAYS_TRUE if found is None else found,
        referenced_files=frozenset(map(Location, body.referenced_data_files)) | vectors,
        vector_targets=vectors,
        removed_files=_removed(body.removed_data_files, metadata),
        removed_delete_files=_removed(body.removed_delete_files, metadata),
        checks_deleted_files=body.check_deleted_files,
        checks_new_data=body.isolation is Isolation.SERIALIZABLE,
        checks_new_deletes=body.isolation is not Isolation.NONE,
        case_sensitive=body.case_sensitive,
    )


def _need_one(body: ExtensionBody, *names: str) -> None:
    """Refuse an empty description: it would conflict with nothing."""
    for name in names:
        if getattr(body, name.replace("-", "_")) not in (None, ()):
            return
    raise InvalidRequest(f"Invalid body: operation needs at least one of {', '.join(names)}")


def _filter(value: JsonValue) -> Expression | None:
    return None if value is None else parse_expression(value)


def _files(bodies: tuple[FileBody, ...], metadata: TableMetadata) -> tuple[DataFile, ...]:
    return tuple(body.file(metadata) for body in bodies)


def _removed(bodies: tuple[str | FileBody, ...], metadata: TableMetadata) -> tuple[RemovedFile, ...]:
    return tuple(
        RemovedFile(Location(body)) if isinstance(body, str) else RemovedFile.of(body.file(metadata))
        for body in bodies
    )


def conflict_report_json(report: ConflictReport) -> dict[str, Any]:
    """Return a report as a JSON value; of very many conflicts only the first."""
    shown = report.conflicts[:MAX_CONFLICTS]
    return present(
        {
            "ref": report.ref,
            "base-snapshot-id": report.base_snapshot_id,
            "head-snapshot-id": report.head_snapshot_id,
            "would-conflict": report.would_conflict,
            "safe-to-reapply": report.safe_to_reapply,
            "reason": report.reason,
            "snapshots-since": [
                {
                    "snapshot-id": snapshot.snapshot_id,
                    "timestamp-ms": snapshot.timestamp_ms,
                    "operation": snapshot.operation or "unknown",
                }
                for snapshot in report.since[-MAX_SNAPSHOTS:]
            ],
            "snapshots-since-count": len(report.since),
            "conflicts": [_conflict(conflict, report.partitions) for conflict in shown],
            "is-complete": report.is_complete and len(shown) == len(report.conflicts),
        }
    )


def _conflict(conflict: Conflict, values: PartitionValues) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "kind": conflict.kind.value,
        "message": conflict.message,
        "snapshot-id": conflict.snapshot_id,
        "file-path": conflict.file_path,
        "spec-id": conflict.spec_id,
    }
    if conflict.spec_id is not None and conflict.partition is not None:
        facts["partition"] = values.shown(conflict.spec_id, conflict.partition)
    return present(facts)
