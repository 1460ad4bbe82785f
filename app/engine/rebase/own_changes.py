"""What a snapshot changed, as its own manifests show it, entry by entry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from app.engine.guard.lists import Lists, compare_lists
from app.engine.model.files.entry_filters import partition_field_ids
from app.engine.model.files.manifests import (
    UNASSIGNED_SEQUENCE_NUMBER,
    DataFile,
    EntryStatus,
    FileContent,
    FileKey,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    ManifestSource,
)
from app.engine.model.ids import SnapshotId
from app.engine.model.settings.rebase_settings import RebaseMode
from app.engine.model.table_metadata import TableMetadata
from app.engine.rebase.late_commits import LateCommit
from app.engine.rebase.refusals import Reason, refusal
from app.standings import RebaseRefusal


@dataclass(frozen=True, slots=True)
class OwnManifest:
    """A manifest that the snapshot wrote, with its entries as they were written."""

    listed: ManifestFile
    entries: Sequence[ManifestEntry]

    @property
    def only_adds(self) -> bool:
        return all(entry.status is EntryStatus.ADDED for entry in self.entries)


@dataclass(frozen=True, slots=True)
class OwnChanges:
    """The files that a snapshot adds and removes, and where it says so."""

    own: tuple[OwnManifest, ...]
    gone: tuple[ManifestFile, ...]
    """Manifests of the parent with live files that it replaced."""
    before: Sequence[ManifestFile]
    """All manifests of the parent."""

    def files(self, status: EntryStatus) -> tuple[DataFile, ...]:
        """Return the files of the entries of one status."""
        return tuple(entry.file for each in self.own for entry in each.entries if entry.status is status)

    @property
    def known(self) -> frozenset[str]:
        """The paths of all manifests of the parent."""
        return frozenset(manifest.manifest_path for manifest in self.before)

    @property
    def added(self) -> tuple[DataFile, ...]:
        return self.files(EntryStatus.ADDED)

    @property
    def removed(self) -> tuple[DataFile, ...]:
        return self.files(EntryStatus.DELETED)


def as_written(manifest: ManifestFile) -> ManifestFile:
    """Return a manifest as it was before a list named it: its entries inherit no numbers."""
    return replace(manifest, sequence_number=UNASSIGNED_SEQUENCE_NUMBER, first_row_id=None)


def own_changes(
    current: TableMetadata, late: LateCommit, mode: RebaseMode, source: ManifestSource
) -> OwnChanges | RebaseRefusal:
    """Return what a snapshot changed, or why that is not plain enough to be repeated elsewhere.

    Raises:
        InvalidMetadata, FileMissing, FilesUnavailable: a manifest list or manifest cannot be read.
    """
    listed = source.manifests(late.snapshot)
    before = () if late.parent is None else source.manifests(late.parent)
    snapshot_id = late.snapshot.snapshot_id
    lists = compare_lists(snapshot_id, listed, before)
    gone = tuple(manifest for manifest in lists.gone if manifest.may_have_live_files)
    flaw = next(_flaws_of_lists(current, snapshot_id, lists, listed), None)
    if flaw is None and mode is RebaseMode.APPENDS and gone:
        flaw = refusal(Reason.MANIFESTS, "It merged or rewrote manifests of its parent.")
    if flaw is not None:
        return flaw
    own = []
    for item in lists.new:
        entries = source.entries(as_written(item))
        flaw = _flaw_of_spec(current, item, partition_field_ids(entries))
        if flaw is not None:
            return flaw
        own.append(OwnManifest(item, tuple(entries)))
    changes = OwnChanges(tuple(own), gone, before)
    parent_sequence = late.parent.sequence if late.parent is not None else 0
    for each in own:
        flaw = next(_flaws_of_manifest(current, each, late, parent_sequence), None)
        if flaw is None and mode is RebaseMode.APPENDS:
            flaw = _flaw_of_append(each)
        if flaw is not None:
            return flaw
    return _flaw_of_books(changes, source) or changes


def _flaws_of_lists(
    current: TableMetadata, snapshot_id: SnapshotId, lists: Lists, listed: Sequence[ManifestFile]
) -> Iterator[RebaseRefusal]:
    if len({manifest.manifest_path for manifest in listed}) != len(listed):
        yield refusal(Reason.MANIFESTS, "Its list names a manifest twice.")
    for manifest in lists.new:
        if manifest.added_snapshot_id != snapshot_id:
            yield refusal(
                Reason.MANIFESTS, f"It lists manifest {manifest.manifest_path}, which its parent has not."
            )
        if manifest.key_metadata is not None:
            yield refusal(Reason.FORMAT, f"Its manifest {manifest.manifest_path} is encrypted.")
        if current.find_spec(manifest.partition_spec_id) is None:
            yield refusal(
                Reason.SCHEMA, f"The table has no partition spec {manifest.partition_spec_id} any more."
            )


def _flaw_of_spec(
    current: TableMetadata, listed: ManifestFile, field_ids: tuple[int, ...] | None
) -> RebaseRefusal | None:
    """Return a refusal if a manifest was written with another spec of this id.

    The id of one that is removed is free for another one. What is in doubt is not rebased; the guard, which lets
    it pass, asks `is_surely_of_another_spec`.
    """
    spec = current.find_spec(listed.partition_spec_id)
    if spec is None or field_ids is None or field_ids == tuple(field.field_id for field in spec.fields):
        return None
    return refusal(
        Reason.SCHEMA,
        f"Its manifest {listed.manifest_path} was written with another partition spec {spec.spec_id} than the table "
        "has now.",
    )


def _flaws_of_manifest(
    current: TableMetadata, own: OwnManifest, late: LateCommit, parent_sequence: int
) -> Iterator[RebaseRefusal]:
    listed, path = own.listed, own.listed.manifest_path
    snapshot_id = late.snapshot.snapshot_id
    files: Counter[EntryStatus] = Counter()
    rows: Counter[EntryStatus] = Counter()
    for entry in own.entries:
        files[entry.status] += 1
        rows[entry.status] += entry.file.record_count
        problem = _problem(current, entry, snapshot_id, parent_sequence, late.snapshot.operation)
        if problem is not None:
            yield refusal(Reason.MANIFESTS, f"Its manifest {path} has {entry.file.file_path} {problem}.")
    for status, listed_files, listed_rows in (
        (EntryStatus.ADDED, listed.added_files_count, listed.added_rows_count),
        (EntryStatus.EXISTING, listed.existing_files_count, listed.existing_rows_count),
        (EntryStatus.DELETED, listed.deleted_files_count, listed.deleted_rows_count),
    ):
        if (listed_files, listed_rows) != (files[status], rows[status]):
            yield refusal(Reason.MANIFESTS, f"Its list counts other files or rows than manifest {path} has.")
    is_data = listed.content is ManifestContent.DATA
    if is_data and files[EntryStatus.ADDED] and listed.partition_spec_id != current.default_spec_id:
        yield refusal(
            Reason.SCHEMA,
            f"It adds files of partition spec {listed.partition_spec_id}; the default one is "
            f"{current.default_spec_id}.",
        )


def _problem(
    current: TableMetadata,
    entry: ManifestEntry,
    snapshot_id: SnapshotId,
    parent_sequence: int,
    operation: str | None,
) -> str | None:
    """Return what about an entry cannot be repeated on another base."""
    number = entry.data_sequence_number
    needs_row_id = current.format.has_row_lineage and entry.file.content is FileContent.DATA
    if entry.status is EntryStatus.EXISTING:
        if number is None or entry.file_sequence_number is None or entry.snapshot_id == snapshot_id:
            return "as an existing file without numbers of its own"
        if needs_row_id and entry.file.first_row_id is None:
            return "as an existing file without row ids of its own"
        return None
    if entry.snapshot_id != snapshot_id:
        return f"as changed by snapshot {entry.snapshot_id}"
    if entry.status is EntryStatus.DELETED:
        return None
    # Compactions may give their files the age of those that they replace: no later than what they started from.
    keeps_age = operation == "replace" and number is not None and number <= parent_sequence
    if (number is not None and not keeps_age) or entry.file_sequence_number is not None:
        return "with a sequence number of its own"
    if needs_row_id and entry.file.first_row_id is not None:
        return "with row ids of its own"
    return None


def _flaw_of_append(own: OwnManifest) -> RebaseRefusal | None:
    path = own.listed.manifest_path
    if own.listed.content is not ManifestContent.DATA:
        return refusal(Reason.MANIFESTS, f"It adds delete files, in manifest {path}.")
    if not own.only_adds:
        return refusal(Reason.MANIFESTS, f"Its manifest {path} has other files than added ones.")
    return None


def _flaw_of_books(changes: OwnChanges, source: ManifestSource) -> RebaseRefusal | None:
    """Return a refusal unless all files of replaced manifests are kept or removed."""
    was: Counter[FileKey] = Counter()
    for manifest in changes.gone:
        was.update(entry.file.key for entry in source.entries(manifest) if entry.is_live)
    accounted = Counter(
        entry.file.key
        for each in changes.own
        for entry in each.entries
        if entry.status is not EntryStatus.ADDED
    )
    if was != accounted:
        return refusal(
            Reason.MANIFESTS,
            "The manifests that it replaced have other files than those that it kept or removed.",
        )
    return None
