"""Whether changes conflict with what happened since, as `engine.conflicts` says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.engine.conflicts import operations as ops
from app.engine.conflicts.detection import detect_conflicts
from app.engine.conflicts.snapshot_operations import operation_of, row_delta_of
from app.engine.expressions.expressions import ALWAYS_TRUE, Expression
from app.engine.model.files.delete_files import referenced_path
from app.engine.model.files.manifests import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestFile,
    ManifestSource,
)
from app.engine.model.table_metadata import TableMetadata
from app.engine.rebase.late_commits import LateCommit
from app.engine.rebase.own_changes import OwnChanges
from app.engine.rebase.refusals import Reason, refusal
from app.standings import RebaseRefusal


def refusal_of_changes(
    current: TableMetadata,
    late: LateCommit,
    changes: OwnChanges,
    conflict_filter: Expression | None,
    source: ManifestSource,
) -> RebaseRefusal | None:
    """Return why a commit may conflict with what happened since; None if it surely does not.

    Isolation is serializable: the commit must come to what it would come to if it had begun only now. An append
    without a filter counts as one that has read nothing.

    Args:
        conflict_filter: which rows its writer has read; None if it does not say, which is all.

    Raises:
        InvalidFilter: the filter does not fit the table's columns.
        InvalidMetadata, FileMissing, FilesUnavailable: a manifest cannot be read.
    """
    is_append = late.snapshot.operation == "append"
    if is_append and (changes.removed or _deletes_of(changes.added)):
        return refusal(Reason.MANIFESTS, "It says append, but removes files or adds delete files.")
    if is_append and conflict_filter is None:
        return None
    parent_id = None if late.parent is None else late.parent.snapshot_id
    branch = late.update.ref_name
    asked = [*_of_files(current, late, changes, source), *_of_rows(late, changes, conflict_filter)]
    for operation in asked:
        report = detect_conflicts(current, source, branch, parent_id, operation, limit=1)
        if report.conflicts:
            return refusal(Reason.CONFLICT, f"{report.conflicts[0].message.rstrip('.')}.")
    return _flaw_of_deletes(late, changes, source)


def _of_files(
    current: TableMetadata, late: LateCommit, changes: OwnChanges, source: ManifestSource
) -> Iterator[ops.Operation]:
    """Yield what to ask about the files that a commit removes or deletes rows of."""
    yield operation_of(current, source, late.snapshot)
    if late.snapshot.operation == "replace":
        yield row_delta_of(_deletes_of(changes.added))
        return
    # Its kind alone does not always ask whether they are there, and for new deletes of their rows.
    removed = changes.removed
    yield ops.Overwrite(
        removed_files=tuple(map(ops.RemovedFile.of, _data_of(removed))),
        removed_delete_files=tuple(map(ops.RemovedFile.of, _deletes_of(removed))),
        checks_new_deletes=True,
    )


def _of_rows(
    late: LateCommit, changes: OwnChanges, conflict_filter: Expression | None
) -> Iterator[ops.Operation]:
    """Yield what to ask about the rows that a commit has read; compactions read none."""
    if late.snapshot.operation != "replace":
        yield ops.RowDelta(
            conflict_filter=ALWAYS_TRUE if conflict_filter is None else conflict_filter,
            checks_new_data=True,
            checks_new_deletes=True,
            # What it adds may have been computed from rows that are gone; what it deletes was not.
            checks_removed_data=bool(_data_of(changes.added)),
        )
    if any(file.content is FileContent.EQUALITY_DELETES for file in changes.added):
        # Put on top, they would also delete rows that came in since, which they never saw.
        yield ops.RowDelta(conflict_filter=ALWAYS_TRUE, checks_new_data=True)


def _data_of(files: Sequence[DataFile]) -> list[DataFile]:
    return [file for file in files if file.content is FileContent.DATA]


def _deletes_of(files: Sequence[DataFile]) -> list[DataFile]:
    return [file for file in files if file.content is not FileContent.DATA]


def _flaw_of_deletes(late: LateCommit, changes: OwnChanges, source: ManifestSource) -> RebaseRefusal | None:
    """Return a refusal for delete files that may be about any data file."""
    at_head = [] if late.head is None else source.manifests(late.head)
    before = [] if late.parent is None else source.manifests(late.parent)
    if any(
        file.content is FileContent.POSITION_DELETES and referenced_path(file) is None
        for file in changes.added
    ):
        there = {manifest.manifest_path for manifest in at_head}
        if any(manifest.manifest_path not in there for manifest in before if _has_data(manifest)):
            return refusal(
                Reason.CONFLICT,
                "Its position deletes do not say which data files they are about, and some may be gone.",
            )
    newest_dropped = max(
        (
            entry.data_sequence_number or 0
            for own in changes.own
            for entry in own.entries
            if entry.status is EntryStatus.DELETED
            and entry.file.content is not FileContent.DATA
            and referenced_path(entry.file) is None
        ),
        default=None,
    )
    if newest_dropped is None:
        return None
    known = changes.known
    if any(
        manifest.min_sequence_number <= newest_dropped
        for manifest in at_head
        if _has_data(manifest) and manifest.manifest_path not in known
    ):
        return refusal(
            Reason.CONFLICT, "It removes delete files that may apply to data files which came in since."
        )
    return None


def _has_data(manifest: ManifestFile) -> bool:
    return manifest.content is ManifestContent.DATA and manifest.may_have_live_files
