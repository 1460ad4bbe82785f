"""The manifests of a rebased snapshot: its own ones, and those of the branch as it is now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.engine.branches.picked_changes import without_files
from app.engine.model.files.manifests import (
    UNASSIGNED_SEQUENCE_NUMBER,
    EntryStatus,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    ManifestSource,
)
from app.engine.model.ids import SnapshotId, SpecId
from app.engine.rebase.own_changes import OwnChanges, OwnManifest
from app.engine.rebase.refusals import Reason, refusal
from app.engine.selection.files import PartitionSelection
from app.standings import RebaseRefusal


@dataclass(frozen=True, slots=True)
class NewManifest:
    """A manifest that the server has to write."""

    spec_id: SpecId
    content: ManifestContent
    entries: tuple[ManifestEntry, ...]


@dataclass(frozen=True, slots=True)
class NewList:
    """The manifests of a rebased snapshot; those that are new have no numbers yet."""

    verbatim: tuple[ManifestFile, ...]
    """Those that its writer wrote."""
    written: tuple[NewManifest, ...]
    kept: tuple[ManifestFile, ...]
    """Those of the head."""
    replaced_count: int


def new_list(
    changes: OwnChanges, snapshot_id: SnapshotId, at_head: Sequence[ManifestFile], source: ManifestSource
) -> NewList | RebaseRefusal:
    """Return the manifests of a snapshot that repeats changes on a head, or why there are none.

    Where the head still has all manifests that the snapshot replaced, its own ones take their places. Otherwise
    another commit rewrote them, and only what it added can be taken as it is.

    Raises:
        InvalidMetadata, FileMissing, FilesUnavailable: a manifest cannot be read.
    """
    replaced = {manifest.manifest_path for manifest in changes.gone}
    if not replaced:
        return NewList(tuple(map(_unnumbered, changes.own)), (), tuple(at_head), 0)
    if replaced <= {manifest.manifest_path for manifest in at_head}:
        kept = tuple(manifest for manifest in at_head if manifest.manifest_path not in replaced)
        return NewList(tuple(map(_unnumbered, changes.own)), (), kept, len(replaced))
    return _repeated(changes, snapshot_id, at_head, source)


def _unnumbered(own: OwnManifest) -> ManifestFile:
    """Return a manifest for the new list, from whose snapshot it inherits its numbers."""
    numbers = [
        entry.data_sequence_number
        for entry in own.entries
        if entry.is_live and entry.data_sequence_number is not None
    ]
    return replace(
        own.listed,
        sequence_number=UNASSIGNED_SEQUENCE_NUMBER,
        min_sequence_number=min(numbers, default=UNASSIGNED_SEQUENCE_NUMBER),
        first_row_id=None,
    )


def _repeated(
    changes: OwnChanges, snapshot_id: SnapshotId, at_head: Sequence[ManifestFile], source: ManifestSource
) -> NewList | RebaseRefusal:
    written = [*_added_again(changes)]
    doomed = {file.key: file for file in changes.removed}
    missing = set(doomed)
    partitions = PartitionSelection(file.partition_key for file in doomed.values())
    replaced, known = {manifest.manifest_path for manifest in changes.gone}, changes.known
    kept: list[ManifestFile] = []
    for manifest in at_head:
        # All files that go were in manifests that the snapshot replaced: they are there still, or in new ones.
        may_have_some = manifest.manifest_path in replaced or manifest.manifest_path not in known
        if not may_have_some or not manifest.may_have_live_files or not partitions.may_hold(manifest):
            kept.append(manifest)
            continue
        entries = list(source.entries(manifest))
        found = {entry.file.key for entry in entries if entry.is_live} & doomed.keys()
        if not found:
            kept.append(manifest)
            continue
        missing -= found
        rest = tuple(without_files(entries, doomed, snapshot_id))
        written.append(NewManifest(manifest.partition_spec_id, manifest.content, rest))
    if missing:
        path, _ = min(missing)
        return refusal(Reason.CONFLICT, f"File {path}, which it removes, is not there any more.")
    verbatim = tuple(_unnumbered(own) for own in changes.own if own.only_adds)
    return NewList(verbatim, tuple(written), tuple(kept), len(at_head) - len(kept))


def _added_again(changes: OwnChanges) -> list[NewManifest]:
    """Return manifests of what was added in manifests that also have other files."""
    added: dict[tuple[SpecId, ManifestContent], list[ManifestEntry]] = {}
    for own in changes.own:
        if not own.only_adds:
            fresh = [entry for entry in own.entries if entry.status is EntryStatus.ADDED]
            if fresh:
                added.setdefault((own.listed.partition_spec_id, own.listed.content), []).extend(fresh)
    return [NewManifest(spec_id, content, tuple(entries)) for (spec_id, content), entries in added.items()]
