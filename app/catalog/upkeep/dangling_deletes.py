"""Removing dangling deletes: delete files that apply to no live data file any more."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from app.catalog.commits.files.snapshot_files import SnapshotFiles
from app.catalog.commits.files.staged_files import StagedFiles
from app.catalog.commits.intentions import Base, Intention, Planned
from app.catalog.commits.landing import land_one
from app.catalog.commits.plans import load_base
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.context.recorded_places import RecordedPlace
from app.catalog.manifests.table_manifests import TableManifests, readable_or_refused
from app.catalog.upkeep.readable_manifests import manifests_of_head
from app.engine.branches.heads import check_branch, head_of, new_head
from app.engine.branches.picked_changes import without_files
from app.engine.change.apply import apply_updates
from app.engine.change.summaries import changed_partition_count, removed_counts, totals_after
from app.engine.model.files.delete_files import is_deletion_vector
from app.engine.model.files.entry_filters import entry_facts
from app.engine.model.files.manifests import (
    DataFile,
    EntryStatus,
    FileContent,
    FileKey,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location, SnapshotId
from app.engine.model.table_metadata import TableMetadata
from app.engine.selection.dangling_deletes import LiveAges

_WHAT = "remove dangling deletes of"


@dataclass(frozen=True, slots=True)
class DanglingDeletes:
    """The delete files that went, or would go."""

    branch: str
    snapshot_id: SnapshotId | None
    """The new snapshot; None if there is none."""
    files: Sequence[DataFile]

    def facts(self, location: Location | None, *, dry_run: bool) -> dict[str, Any]:
        """Return them by the names of the answer, with where the table's metadata is then."""
        facts: dict[str, Any] = {"dry-run": dry_run, "branch": self.branch}
        if self.snapshot_id is not None:
            facts["snapshot-id"] = self.snapshot_id
        vectors = sum(map(is_deletion_vector, self.files))
        contents = [file.content for file in self.files]
        return facts | {
            "metadata-location": location,
            "removed-delete-files": len(self.files),
            "removed-position-delete-files": contents.count(FileContent.POSITION_DELETES) - vectors,
            "removed-dvs": vectors,
            "removed-equality-delete-files": contents.count(FileContent.EQUALITY_DELETES),
        }


@dataclass(frozen=True, slots=True)
class _Found:
    """What dangles in one state of a branch."""

    listed: frozenset[ManifestFile]
    dangling: Mapping[FileKey, ManifestEntry]


@dataclass(frozen=True)
class RemoveDanglingDeletes(Intention[TableMetadata, DanglingDeletes]):
    """The removal of delete files that dangled when they were looked for.

    A compaction may have added data files since then that are as old as those it replaced. So data manifests that
    were not seen then are read in its turn, and what applies to a file in them stays.
    """

    identifier: TableIdentifier
    branch: str
    found: _Found
    uuid: str
    kind = TABLES

    def require(self, base: Base[TableMetadata]) -> bool:
        """Check that the table and the branch are there."""
        check_branch(base.present(), self.branch, _WHAT)
        return True

    def apply(
        self, catalog: Catalog, base: Base[TableMetadata], files: StagedFiles
    ) -> Planned[TableMetadata, DanglingDeletes]:
        """Write the delete manifests without those that dangle.

        Raises:
            NotSupported: the table is encrypted now.
            CorruptMetadata, FileMissing, FilesUnavailable: a manifest cannot be read.
        """
        metadata = base.present()
        listed = manifests_of_head(catalog, self.identifier, metadata, self.branch, _WHAT)
        found = self.found if metadata.uuid == self.uuid else _look(catalog, metadata, listed)
        unseen = [manifest for manifest in listed if manifest not in found.listed]
        dangling = {
            key
            for key, entry in _dangling(catalog, metadata, found.dangling.values(), unseen).items()
            if entry
        }
        new = SnapshotFiles(catalog, files, metadata)
        snapshot_id = new.new_id()
        manifests, removed = _without(catalog, metadata, listed, dangling, new, snapshot_id)
        if not removed:
            return Planned(None, DanglingDeletes(self.branch, None, ()))
        head = head_of(metadata, self.branch)
        summary = {
            "operation": "replace",
            **removed_counts(removed),
            **changed_partition_count(removed),
            **totals_after(head, (), removed),
        }
        updates = new_head(metadata, self.branch, new.write_snapshot(head, snapshot_id, manifests, summary))
        draft = apply_updates(metadata, updates, catalog.now_ms())
        done = DanglingDeletes(self.branch, snapshot_id, removed)
        return Planned(draft.finish(base.stored_at), done, updates=updates)

    def remembered_as(self, at: RecordedPlace, *, changed: bool, detail: DanglingDeletes | None) -> str:  # noqa: ARG002 - the answer says it
        """Return the answer itself: the snapshot may be gone when it is asked for again."""
        assert detail is not None
        return orjson.dumps(detail.facts(at.location, dry_run=False)).decode()


def preview_dangling_deletes(
    catalog: Catalog, identifier: TableIdentifier, branch: str
) -> tuple[DanglingDeletes, Location]:
    """Return what would be removed now, and where the table is; nothing is changed.

    Raises:
        NoSuchTable, NoSuchRef: there is no such table or branch.
        InvalidRequest: the branch is a tag.
        NotSupported: the table is encrypted.
        CommitRefused: a manifest list or a manifest is damaged or gone.
        MetadataFileMissing, CorruptMetadata, FilesUnavailable: the metadata cannot be read.
    """
    catalog.permit("remove_dangling_deletes", identifier)
    base, found = _look_at(catalog, identifier, branch)
    assert base.seen is not None
    files = [entry.file for entry in found.dangling.values()]
    return DanglingDeletes(branch, None, files), base.seen.metadata_location


def remove_dangling_deletes(
    catalog: Catalog, identifier: TableIdentifier, branch: str
) -> tuple[DanglingDeletes, Location]:
    """Remove dangling deletes in one commit; return what went, and where the table is.

    Raises:
        NoSuchTable, NoSuchRef: there is no such table or branch.
        InvalidRequest: the branch is a tag.
        NotSupported: the table is encrypted.
        PointerMoved: other commits won every attempt.
        CommitStateUnknown: the database did not answer; the new files stay.
        CommitRefused: a manifest list or a manifest is damaged or gone.
        MetadataFileMissing, CorruptMetadata, FilesUnavailable: the metadata cannot be read.
    """
    catalog.permit("remove_dangling_deletes", identifier)
    base, found = _look_at(catalog, identifier, branch)
    catalog.server.step("dangling_found")
    landed = land_one(catalog, RemoveDanglingDeletes(identifier, branch, found, base.present().uuid))
    assert landed.detail is not None
    assert landed.loaded.location is not None
    return landed.detail, landed.loaded.location


def _look_at(
    catalog: Catalog, identifier: TableIdentifier, branch: str
) -> tuple[Base[TableMetadata], _Found]:
    base = load_base(catalog, TABLES, identifier)
    with readable_or_refused(identifier):
        listed = manifests_of_head(catalog, identifier, base.present(), branch, _WHAT)
        return base, _look(catalog, base.present(), listed)


def _look(catalog: Catalog, metadata: TableMetadata, listed: Sequence[ManifestFile]) -> _Found:
    source = TableManifests(catalog, metadata)
    deletes = [
        entry
        for manifest in listed
        if manifest.content is ManifestContent.DELETES
        for entry in source.entries(manifest)
        if entry.is_live
    ]
    found = _dangling(catalog, metadata, deletes, listed)
    return _Found(frozenset(listed), {key: entry for key, entry in found.items() if entry is not None})


def _dangling(
    catalog: Catalog,
    metadata: TableMetadata,
    deletes: Iterable[ManifestEntry],
    listed: Iterable[ManifestFile],
) -> dict[FileKey, ManifestEntry | None]:
    """Return each delete file that applies to nothing there; None for those that stay."""
    known = list(deletes)
    if not known:
        return {}
    source, ages = TableManifests(catalog, metadata), LiveAges(known, metadata.partition_specs)
    for manifest in listed:
        if manifest.content is ManifestContent.DATA:
            for file in entry_facts(source.entries(manifest)):
                if file.status is not EntryStatus.DELETED:
                    ages.note(manifest.partition_spec_id, file)
    found: dict[FileKey, ManifestEntry | None] = {}
    for entry in known:
        stays = ages.may_apply(entry) or found.get(entry.file.key, entry) is None
        found[entry.file.key] = None if stays else entry
    return found


def _without(
    catalog: Catalog,
    metadata: TableMetadata,
    listed: Sequence[ManifestFile],
    dangling: Collection[FileKey],
    new: SnapshotFiles,
    snapshot_id: SnapshotId,
) -> tuple[list[ManifestFile], list[DataFile]]:
    """Return the manifests without some delete files, and those of them that were there."""
    source = TableManifests(catalog, metadata)
    manifests: list[ManifestFile] = []
    removed: list[DataFile] = []
    for manifest in listed:
        is_of_deletes = manifest.content is ManifestContent.DELETES
        entries = list(source.entries(manifest)) if is_of_deletes and dangling else []
        going = [entry.file for entry in entries if entry.is_live and entry.file.key in dangling]
        if going:
            removed += going
            spec_id, kept = manifest.partition_spec_id, without_files(entries, dangling, snapshot_id)
            manifests.append(new.write_manifest(spec_id, snapshot_id, kept, ManifestContent.DELETES))
        else:
            manifests.append(manifest)
    return manifests, removed
