"""Detection: the conflicts of an operation, by the checks of its kind, in their order."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import assert_never

from app.engine.branches.picked_changes import changed_partition, file_changes, written_since
from app.engine.branches.ref_changes import PickKind, pick_kind, snapshot_by_id
from app.engine.conflicts import checks
from app.engine.conflicts import operations as ops
from app.engine.conflicts.concurrent import REMOVING_ROWS, Concurrent
from app.engine.conflicts.report import Conflict, ConflictKind, ConflictReport
from app.engine.conflicts.scopes import Scope, scope_of_partitions, scope_of_rows, shown
from app.engine.conflicts.verdicts import verdict
from app.engine.expressions.expressions import ALWAYS_TRUE, AlwaysFalse, Expression
from app.engine.model.files.manifests import ManifestContent, ManifestSource
from app.engine.model.files.partition_values import PartitionValues
from app.engine.model.ids import SnapshotId
from app.engine.model.refs import MAIN_BRANCH
from app.engine.model.table_metadata import TableMetadata
from app.engine.selection.files import FileSelection, RowFilter
from app.errors import InvalidRefMove

MAX_CONFLICTS = 1000
"""A longer list would not help."""


def detect_conflicts(
    metadata: TableMetadata,
    source: ManifestSource,
    ref: str,
    base_snapshot_id: SnapshotId | None,
    operation: ops.Operation,
    *,
    limit: int = MAX_CONFLICTS,
) -> ConflictReport:
    """Return the conflicts of an operation with what happened to a branch since a base.

    It opens only manifests that concurrent snapshots wrote, except to look up a file of which only the path is known.

    Args:
        base_snapshot_id: what the operation read; None if the branch was empty then.
        limit: the search stops after this many conflicts.

    Raises:
        InvalidFilter: a filter does not fit the table's columns.
        InvalidMetadata, FileMissing, FilesUnavailable: a manifest cannot be read.
        NoSuchSnapshot: the snapshot to be picked is not there.
        NoSuchRef: the branch to pick onto is not there.
    """
    _check_filters(metadata, operation)
    head = metadata.snapshot_refs.get(ref)
    head_id = head.snapshot_id if head else None
    # A branch that is not there yet begins at what its first writer has read; main begins with nothing.
    is_new = head is None and ref != MAIN_BRANCH
    concurrent = Concurrent(metadata, source, base_snapshot_id if is_new else head_id, base_snapshot_id)
    found = tuple(islice(_conflicts(concurrent, source, ref, operation), limit + 1))
    conflicts = _without_repetitions(found[:limit])
    since = tuple(concurrent.since_fork())
    is_outdated = not conflicts and _is_outdated(concurrent, operation)
    has_left_base = not is_new and not since and head_id != concurrent.base_id
    safe, reason = verdict(
        operation, conflicts, since, ref, has_left_base=has_left_base, is_outdated=is_outdated
    )
    return ConflictReport(
        ref=ref,
        base_snapshot_id=base_snapshot_id,
        head_snapshot_id=head_id,
        since=since,
        conflicts=conflicts,
        is_complete=len(found) <= limit,
        safe_to_reapply=safe,
        reason=reason,
        partitions=PartitionValues(metadata),
    )


def _is_outdated(concurrent: Concurrent, operation: ops.Operation) -> bool:
    """Return whether rows that an operation has read are gone, which is no conflict.

    The reference looks for them where files are removed by a filter, but not where they are named, nor in row deltas.
    """
    if not isinstance(operation, ops.Overwrite | ops.RowDelta) or not operation.checks_new_data:
        return False
    scope = scope_of_rows(
        concurrent.metadata, _what_was_read(operation), case_sensitive=operation.case_sensitive
    )
    gone = checks.removed_data_files(concurrent, scope, REMOVING_ROWS)
    return any(True for _ in chain(gone, checks.new_delete_files(concurrent, scope)))


def _what_was_read(operation: ops.Overwrite | ops.RowDelta) -> Expression:
    if operation.conflict_filter is not None:
        return operation.conflict_filter
    if isinstance(operation, ops.RowDelta) or operation.removed_files:
        return ALWAYS_TRUE
    row_filter = operation.row_filter
    return ALWAYS_TRUE if row_filter is None or isinstance(row_filter, AlwaysFalse) else row_filter


def _check_filters(metadata: TableMetadata, operation: ops.Operation) -> None:
    """Check filters also where nothing is searched by them.

    Whether they fit is no matter of what others did.
    """
    if isinstance(operation, ops.Delete | ops.Overwrite | ops.RowDelta):
        read = None if isinstance(operation, ops.Delete) else operation.conflict_filter
        replaced = None if isinstance(operation, ops.RowDelta) else operation.row_filter
        for given in (read, replaced):
            if given is not None:
                RowFilter.of(given, metadata.current_schema, case_sensitive=operation.case_sensitive)


def _without_repetitions(conflicts: tuple[Conflict, ...]) -> tuple[Conflict, ...]:
    """Leave out what two checks found alike: the message says which partition it is."""
    first = {
        (item.kind, item.message, item.snapshot_id, item.file_path): item for item in reversed(conflicts)
    }
    kept = {id(item) for item in first.values()}
    return tuple(item for item in conflicts if id(item) in kept)


def _conflicts(
    concurrent: Concurrent, source: ManifestSource, ref: str, operation: ops.Operation
) -> Iterator[Conflict]:
    match operation:
        case ops.Append() | ops.PropertyChange():
            return
        case ops.Delete():
            yield from _of_delete(concurrent, operation)
        case ops.Overwrite():
            yield from _of_overwrite(concurrent, operation)
        case ops.ReplacePartitions():
            yield from _of_replace_partitions(concurrent, operation)
        case ops.RowDelta():
            yield from _of_row_delta(concurrent, operation)
        case ops.RewriteFiles():
            yield from _of_rewrite_files(concurrent, operation)
        case ops.RewriteManifests():
            yield from checks.missing_manifests(concurrent, operation.removed_manifests)
        case ops.CherryPickOperation():
            yield from _of_cherry_pick(concurrent, source, ref, operation)
        case ops.SchemaChange():
            yield from _of_schema_change(concurrent, operation)
        case ops.SpecChange():
            yield from _of_spec_change(concurrent.metadata, operation)
        case never:
            assert_never(never)


def _of_delete(concurrent: Concurrent, operation: ops.Delete) -> Iterator[Conflict]:
    if operation.checks_existence:
        yield from checks.missing_files(concurrent, operation.removed_files, ManifestContent.DATA)
    yield from _of_row_filter(concurrent, operation)


def _of_row_filter(concurrent: Concurrent, operation: ops.Delete | ops.Overwrite) -> Iterator[Conflict]:
    """Yield files that a filter cannot drop as a whole."""
    if operation.row_filter is not None:
        matching = _matching(concurrent.metadata, operation, operation.row_filter)
        yield from checks.partially_matching_files(
            concurrent, matching, operation.removed_files, shown(operation.row_filter)
        )


def _matching(
    metadata: TableMetadata, operation: ops.Delete | ops.Overwrite, row_filter: Expression
) -> FileSelection:
    rows = RowFilter.of(row_filter, metadata.current_schema, case_sensitive=operation.case_sensitive)
    return FileSelection(rows, metadata.partition_specs)


def _of_overwrite(concurrent: Concurrent, operation: ops.Overwrite) -> Iterator[Conflict]:
    metadata = concurrent.metadata
    # The reference writes a filter that no row matches where an operation has no filter.
    row_filter = None if isinstance(operation.row_filter, AlwaysFalse) else operation.row_filter

    def scope(expression: Expression) -> Scope:
        return scope_of_rows(metadata, expression, case_sensitive=operation.case_sensitive)

    if operation.checks_added_match_filter and row_filter is not None:
        matching = _matching(metadata, operation, row_filter)
        yield from checks.added_outside_filter(operation.added_files, matching, shown(row_filter))
    checks_history = operation.checks_new_data or operation.checks_new_deletes
    if checks_history:
        yield from checks.unknown_history(concurrent)
    # A part of the history would only give a part of the answer.
    if checks_history and concurrent.is_known and concurrent.head_id is not None:
        read = None if operation.conflict_filter is None else scope(operation.conflict_filter)
        if operation.checks_new_data:
            yield from checks.added_data_files(concurrent, scope(_what_was_read(operation)))
        if operation.checks_new_deletes:
            if row_filter is not None:
                of_filter = read or scope(row_filter)
                yield from checks.new_delete_files(concurrent, of_filter)
                yield from checks.removed_data_files(concurrent, of_filter)
            yield from checks.new_deletes_for_files(concurrent, operation.removed_files, read)
    if checks_history:
        yield from _missing(concurrent, operation)
    yield from _of_row_filter(concurrent, operation)


def _missing(
    concurrent: Concurrent, operation: ops.Overwrite | ops.RowDelta | ops.RewriteFiles
) -> Iterator[Conflict]:
    yield from checks.missing_files(concurrent, operation.removed_files, ManifestContent.DATA)
    yield from checks.missing_files(concurrent, operation.removed_delete_files, ManifestContent.DELETES)


def _of_replace_partitions(concurrent: Concurrent, operation: ops.ReplacePartitions) -> Iterator[Conflict]:
    scope = scope_of_partitions(concurrent.metadata, operation.partitions)
    if operation.checks_new_data or operation.checks_new_deletes:
        yield from checks.unknown_history(concurrent)
    if concurrent.is_known and operation.checks_new_data:
        yield from checks.added_data_files(concurrent, scope)
    if concurrent.is_known and operation.checks_new_deletes:
        yield from checks.removed_data_files(concurrent, scope)
        yield from checks.new_delete_files(concurrent, scope)
    if operation.is_append_only:
        yield from checks.occupied_partitions(concurrent, scope)


def _of_row_delta(concurrent: Concurrent, operation: ops.RowDelta) -> Iterator[Conflict]:
    if concurrent.head_id is None and concurrent.is_known:
        return
    yield from checks.no_ancestor(concurrent)
    read = operation.conflict_filter
    scope = None
    if read is not None:
        scope = scope_of_rows(concurrent.metadata, read, case_sensitive=operation.case_sensitive)
    if not concurrent.is_known:
        named = operation.referenced_files or operation.vector_targets
        if named or operation.checks_new_data or operation.checks_new_deletes:
            yield from checks.unknown_history(concurrent)
    else:
        if operation.referenced_files:
            yield from checks.gone_data_files(
                concurrent, operation.referenced_files, scope, is_after_deletes=operation.checks_deleted_files
            )
        if operation.checks_new_data and scope is not None:
            yield from checks.added_data_files(concurrent, scope)
        if operation.checks_removed_data and scope is not None:
            yield from checks.removed_data_files(concurrent, scope, REMOVING_ROWS)
        if operation.checks_new_deletes:
            yield from checks.new_deletes_for_files(concurrent, operation.removed_files, scope)
            if scope is not None:
                yield from checks.new_delete_files(concurrent, scope)
    yield from checks.referenced_and_removed(operation.removed_files, operation.referenced_files)
    if concurrent.is_known:
        yield from checks.added_vectors(concurrent, operation.vector_targets, scope)
    if operation.checks_deleted_files:
        yield from _missing(concurrent, operation)


def _of_rewrite_files(concurrent: Concurrent, operation: ops.RewriteFiles) -> Iterator[Conflict]:
    if operation.removed_files and concurrent.metadata.format.has_delete_files:
        yield from checks.unknown_history(concurrent)
        if concurrent.is_known:
            removed = {item.path for item in operation.removed_files}
            still_subject = (
                set() if operation.data_sequence_number is None else removed - operation.moved_files
            )
            yield from checks.new_deletes_for_files(
                concurrent, operation.removed_files, still_subject=still_subject
            )
    yield from _missing(concurrent, operation)


def _of_cherry_pick(
    concurrent: Concurrent, source: ManifestSource, ref: str, operation: ops.CherryPickOperation
) -> Iterator[Conflict]:
    metadata = concurrent.metadata
    picked = snapshot_by_id(metadata, operation.snapshot_id)
    try:
        kind = pick_kind(metadata, ref, picked)
    except InvalidRefMove as error:
        yield Conflict(ConflictKind.CHERRY_PICK, str(error), picked.snapshot_id)
        return
    if kind is not PickKind.REPLACE_PARTITIONS:
        return
    changes = file_changes(source, picked)
    for snapshot, file in written_since(source, metadata, concurrent.head_id, picked, changes):
        message = changed_partition(snapshot, file)
        yield Conflict.with_file(ConflictKind.CHERRY_PICK, message, snapshot.snapshot_id, file)
    # A pick counts from the parent of the picked snapshot, whatever the caller's base is.
    since_parent = Concurrent(metadata, source, concurrent.head_id, picked.parent_snapshot_id)
    removed = tuple(ops.RemovedFile.of(file) for file in changes.removed)
    yield from checks.missing_files(since_parent, removed, ManifestContent.DATA)


def _of_schema_change(concurrent: Concurrent, operation: ops.SchemaChange) -> Iterator[Conflict]:
    metadata, expected = concurrent.metadata, operation.schema_id
    if expected is None and concurrent.base_id is not None:
        base = metadata.snapshots_by_id.get(concurrent.base_id)
        expected = base.schema_id if base else None
    kind = ConflictKind.SCHEMA_CHANGED
    yield from _changed(kind, "current schema", expected, metadata.current_schema_id)
    yield from _changed(kind, "last assigned field id", operation.last_column_id, metadata.last_column_id)


def _of_spec_change(metadata: TableMetadata, operation: ops.SpecChange) -> Iterator[Conflict]:
    kind = ConflictKind.SPEC_CHANGED
    yield from _changed(kind, "default partition spec", operation.spec_id, metadata.default_spec_id)
    expected, found = operation.last_partition_id, metadata.last_partition_id
    yield from _changed(kind, "last assigned partition id", expected, found)


def _changed(kind: ConflictKind, name: str, expected: int | None, found: int | None) -> Iterator[Conflict]:
    if expected is not None and expected != found:
        yield Conflict(kind, f"{name} changed: expected id {expected} != {found}")
