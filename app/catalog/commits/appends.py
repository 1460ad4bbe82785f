"""Appends by reference as intentions: those that come together become one snapshot."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from app.catalog.commits.files.snapshot_files import SnapshotFiles
from app.catalog.commits.files.staged_files import StagedFiles
from app.catalog.commits.intentions import Base, Intention, Joined, Planned, check_slots
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.context.places.file_names import content_mark
from app.catalog.context.recorded_places import RecordedPlace
from app.catalog.context.seen.live_paths import LiveFiles
from app.catalog.manifests.table_manifests import TableManifests
from app.database.pointers.left_files import BegunDeletion, TakenIn
from app.engine.appends.appended_files import AppendedFile
from app.engine.appends.merging import MergeRules, merge_groups, merged_entries
from app.engine.appends.name_mapping import NAME_MAPPING, new_name_mapping
from app.engine.branches.heads import check_branch, head_of, new_head
from app.engine.change.apply import apply_updates
from app.engine.change.requirements import AssertRefSnapshotId, Requirement, check_requirements, is_create
from app.engine.change.summaries import added_counts, changed_partition_count, totals_after
from app.engine.change.updates import SetProperties, Update
from app.engine.model.files.manifests import (
    DataFile,
    EntryStatus,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from app.engine.model.files.partition_values import specs_with_fixed_values
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location, SnapshotId, SpecId
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.errors import (
    CorruptMetadata,
    FileMissing,
    FilesAlreadyLive,
    FilesBeingDeleted,
    InvalidDataFile,
    InvalidLocation,
    InvalidRequest,
    NotSupported,
)
from app.fileio.locations import place_of
from app.formats.manifests.writer import WrittenManifest
from app.formats.metadata.own_names import is_own_content

_CLOCKS_DIFFER_MS: Final = 60_000
"""So much may a store's clock be ahead of the database's."""


@dataclass(frozen=True, slots=True)
class Appended:
    """What became of one append: the snapshot, and what this request has added to it."""

    branch: str
    snapshot_id: SnapshotId
    sequence_number: int
    timestamp_ms: int
    added_data_files: int
    added_records: int
    added_files_size: int

    def facts(self, location: Location | None) -> dict[str, Any]:
        """Return them by the names of the answer, with where the table's metadata is then."""
        return {
            "snapshot-id": self.snapshot_id,
            "sequence-number": self.sequence_number,
            "timestamp-ms": self.timestamp_ms,
            "branch": self.branch,
            "metadata-location": location,
            "added-data-files": self.added_data_files,
            "added-records": self.added_records,
            "added-files-size": self.added_files_size,
        }


@dataclass(frozen=True, slots=True)
class _Fitted:
    """The data files of a request, and the table that they were fitted to."""

    table: tuple[Any, ...]
    files: tuple[DataFile, ...]
    needs_name_mapping: bool


@dataclass(frozen=True)
class AppendedByReference(Intention[TableMetadata, Appended]):
    """Files that one request appends to a branch."""

    identifier: TableIdentifier
    branch: str
    files: Sequence[AppendedFile]
    requirements: Sequence[Requirement] = ()
    summary: tuple[tuple[str, str], ...] = ()
    """Keys of its own for the snapshot's summary."""
    allow_duplicates: bool = False
    looked_ms: int = 0
    """When looking at the files began, by the database's clock."""
    asks_as: str | None = field(default=None, compare=False)
    """Its name in the table's queue, where it has to ask before it lands in slots of others."""
    _fitted: list[_Fitted] = field(default_factory=list, compare=False, repr=False)
    """What they were fitted to last: most tables are the same when the turn comes."""
    kind = TABLES

    def lands_with_others(self) -> bool:
        """Say that it does: its answer is its own snapshot."""
        return True

    def joins(self) -> Hashable | None:
        """Return branch and summary, unless it depends on where the branch is: others may be first."""
        if any(isinstance(item, AssertRefSnapshotId) for item in self.requirements):
            return None
        return "append", self.branch, self.summary

    def fit(self, metadata: TableMetadata) -> _Fitted:
        """Return the data files that its files are in a table.

        Raises:
            InvalidDataFile: one does not fit the table.
            NotSupported: the table is encrypted.
        """
        if metadata.is_encrypted:
            raise NotSupported(
                f"Cannot append to {self.identifier}: it is encrypted, and the server has no keys"
            )
        table = (
            metadata.uuid,
            metadata.format_version,
            metadata.current_schema_id,
            metadata.default_spec_id,
            metadata.default_sort_order_id,
            metadata.properties,
            len(metadata.schemas),
            len(metadata.partition_specs),
            len(metadata.sort_orders),
        )
        if not self._fitted or self._fitted[-1].table != table:
            files = tuple([file.data_file(metadata) for file in self.files])
            needs = any(file.needs_name_mapping(metadata) for file in self.files)
            self._fitted[:] = [_Fitted(table, files, needs)]
        return self._fitted[-1]

    def require(self, base: Base[TableMetadata]) -> bool:
        """Check every requirement, and that the branch is one.

        Raises:
            NoSuchTable, NoSuchRef: there is no such table or branch.
            InvalidRequest: the branch is a tag, or the table is to be made.
            RequirementFailed: the table is not what the client built on.
            Reserved: it has to ask for the slots of others first.
        """
        current = base.present()
        if self.asks_as is not None:
            check_slots(base, self.asks_as)
        if is_create(self.requirements):
            raise InvalidRequest("Cannot append with requirement assert-create: the table is there")
        check_requirements(current, self.requirements)
        check_branch(current, self.branch, "append to")
        return True

    def begin_joined(self, catalog: Catalog, base: Base[TableMetadata]) -> Joined[TableMetadata, Appended]:
        """Return a snapshot that it may share."""
        return _JoinedAppends(catalog, base, self.branch, self.summary)

    def apply(
        self, catalog: Catalog, base: Base[TableMetadata], files: StagedFiles
    ) -> Planned[TableMetadata, Appended]:
        """Write a snapshot of its own."""
        joined = self.begin_joined(catalog, base)
        joined.add(self)
        (planned,) = joined.apply(files)
        return planned

    def remembered_as(self, at: RecordedPlace, *, changed: bool, detail: Appended | None) -> str:  # noqa: ARG002 - it always changes something
        """Return the answer itself: the snapshot may be gone when it is asked for again."""
        assert detail is not None
        return orjson.dumps(detail.facts(at.location)).decode()


class _JoinedAppends(Joined[TableMetadata, Appended]):
    """Appends that become one snapshot: one list, and a manifest for each partition spec."""

    def __init__(
        self,
        catalog: Catalog,
        base: Base[TableMetadata],
        branch: str,
        summary: tuple[tuple[str, str], ...],
    ) -> None:
        self._catalog = catalog
        self._base = base
        self._branch = branch
        self._summary = summary
        self._source = TableManifests(catalog, base.present(), base.staged)
        self._parts: list[_Fitted] = []
        self._places: set[Hashable] = set()
        self._known_paths: dict[ManifestContent, LiveFiles] = {}
        self._looked_ms = catalog.now_ms()
        self._known: list[BegunDeletion] | None = None

    def add(self, intention: Intention[TableMetadata, Appended]) -> None:
        """Take one request's files in, unless the branch has one of them already."""
        assert isinstance(intention, AppendedByReference)
        metadata = self._base.present()
        fitted = intention.fit(metadata)
        paths = [file.file_path for file in fitted.files]
        if not intention.allow_duplicates:
            live = [path for path in paths if place_of(path) in self._places]
            live = live or self._paths_of(ManifestContent.DATA).among(paths)
            if live:
                raise FilesAlreadyLive(self._branch, live)
        self._check_not_deleted_from(paths)
        self._check_not_going(intention, paths)
        self._places.update(map(place_of, paths))
        self._parts.append(fitted)

    def apply(self, files: StagedFiles) -> list[Planned[TableMetadata, Appended]]:
        """Write the snapshot of all of them."""
        metadata = self._base.present()
        head = head_of(metadata, self._branch)
        new = SnapshotFiles(self._catalog, files, metadata)
        snapshot_id = new.new_id()
        added = [file for part in self._parts for file in part.files]
        summary = {
            **dict(self._summary),
            "operation": "append",
            **added_counts(added),
            **changed_partition_count(added),
            **totals_after(head, added, ()),
        }
        manifests = _Manifests(self._source, new, snapshot_id).after(head, added, metadata)
        snapshot = new.write_snapshot(head, snapshot_id, manifests, summary)
        updates = self._updates(metadata, snapshot)
        draft = apply_updates(metadata, updates, self._catalog.now_ms())
        after = draft.finish(self._base.stored_at)
        taken_in = TakenIn(self._looked_ms, frozenset(each.id for each in self._known or ()))
        return [
            Planned(after, self._detail(snapshot, part), taken_in=taken_in, updates=() if number else updates)
            for number, part in enumerate(self._parts)
        ]

    def _check_not_going(self, intention: AppendedByReference, paths: Sequence[Location]) -> None:
        """Check that a deletion of the table's files has none of some files.

        A deletion knows nothing of files that were written after it was queued.

        Raises:
            InvalidDataFile: a file is gone meanwhile.
            FilesBeingDeleted: a file was there when a deletion was queued that is at work.
        """
        seen = self._base.seen
        if seen is None or not self._catalog.has_rows:
            return  # a file-system table, of which the server deletes nothing
        deletions = self._catalog.server.file_deletions
        if self._known is None or intention.looked_ms < self._looked_ms:
            self._looked_ms = intention.looked_ms
            self._known = deletions.begun(seen, self._looked_ms)
        if not self._known:
            return
        for path in paths:
            found = self._catalog.files.find_file(path)
            if found is None:
                raise InvalidDataFile(path, "it has been deleted meanwhile")
            for each in self._known:
                if not each.is_at_work:
                    continue  # it has left this file alone
                if each.is_sweep and not self._may_be_swept(path):
                    continue
                if found.modified_ms <= each.created_ms + _CLOCKS_DIFFER_MS:
                    raise FilesBeingDeleted(path, each.kind, each.identifier, is_registration=False)

    def _may_be_swept(self, path: Location) -> bool:
        uuid, folder = self._base.present().uuid, path.rpartition("/")[0]
        return is_own_content(path, content_mark(self._catalog.server, uuid, folder))

    def _check_not_deleted_from(self, paths: Sequence[Location]) -> None:
        """Check that no position deletes of the branch are about some files.

        They are older than the files would be, and so delete nothing there. But some engines apply them all the same,
        and others do not read a table with a deletion vector that is older than its file.

        Raises:
            InvalidDataFile: there are some.
        """
        named = self._paths_of(ManifestContent.DELETES).among(paths)
        if named:
            raise InvalidDataFile(
                named[0],
                f"branch {self._branch} has position deletes or a deletion vector for a file of this name, which some "
                "engines would apply to it. Append a copy with another name; or, if the branch does not have the file "
                "any more, remove dangling deletes first",
            )

    def _paths_of(self, content: ManifestContent) -> LiveFiles:
        found = self._known_paths.get(content)
        if found is None:
            metadata, seen = self._base.present(), self._base.seen
            registration = seen.registration if seen is not None else 0
            branch = (self._catalog.files, metadata.uuid, registration, self._branch)
            head = head_of(metadata, self._branch)
            found = self._catalog.server.live_paths.at(branch, self._source, head, content)
            self._known_paths[content] = found
        return found

    def _updates(self, metadata: TableMetadata, snapshot: Snapshot) -> list[Update]:
        updates = new_head(metadata, self._branch, snapshot)
        if any(part.needs_name_mapping for part in self._parts):
            # As Spark's add_files does: without one, readers would take columns by their position.
            mapping = new_name_mapping(metadata.current_schema)
            updates.append(SetProperties(updates={NAME_MAPPING: mapping}))
        return updates

    def _detail(self, snapshot: Snapshot, part: _Fitted) -> Appended:
        return Appended(
            self._branch,
            snapshot.snapshot_id,
            snapshot.sequence,
            snapshot.timestamp_ms,
            len(part.files),
            sum(file.record_count for file in part.files),
            sum(file.file_size_in_bytes for file in part.files),
        )


class _Manifests:
    """The manifests of a snapshot that adds files to a head; small ones are merged."""

    def __init__(self, source: TableManifests, new: SnapshotFiles, snapshot_id: SnapshotId) -> None:
        self._source = source
        self._new = new
        self._snapshot_id = snapshot_id

    def after(
        self, head: Snapshot | None, added: Sequence[DataFile], metadata: TableMetadata
    ) -> list[ManifestFile]:
        packed = self._packed(added)
        before = list(self._source.manifests(head)) if head is not None else []
        untouched = specs_with_fixed_values(metadata)
        data: list[ManifestFile] = []
        kept: list[ManifestFile] = []
        for item in before:
            is_data = item.content is ManifestContent.DATA
            (data if is_data and item.partition_spec_id not in untouched else kept).append(item)
        new = [written.manifest for _, written in packed]
        found: list[ManifestFile] = []
        own = {id(written.manifest): (entries, written) for entries, written in packed}
        for group in merge_groups([*new, *data], MergeRules.of(metadata.properties)):
            merged = self._merged(group, own) if len(group) > 1 else None
            if merged is not None:
                found.append(merged)
                continue
            for manifest in group:
                mine = own.get(id(manifest))
                found.append(manifest if mine is None else self._new.store(mine[1]))
        return [*found, *kept]

    def _packed(self, added: Sequence[DataFile]) -> list[tuple[list[ManifestEntry], WrittenManifest]]:
        by_spec: dict[SpecId, list[ManifestEntry]] = {}
        for file in added:
            entry = ManifestEntry(EntryStatus.ADDED, self._snapshot_id, None, None, file)
            by_spec.setdefault(file.spec_id, []).append(entry)
        return [
            (entries, self._new.pack(spec_id, self._snapshot_id, entries))
            for spec_id, entries in by_spec.items()
        ]

    def _merged(
        self,
        group: Sequence[ManifestFile],
        own: dict[int, tuple[list[ManifestEntry], WrittenManifest]],
    ) -> ManifestFile | None:
        """Write one manifest instead of several; None if one of those cannot be read."""
        entries: list[ManifestEntry] = []
        try:
            for manifest in group:
                mine = own.get(id(manifest))
                entries += mine[0] if mine is not None else merged_entries(self._source.entries(manifest))
            packed = self._new.pack(group[0].partition_spec_id, self._snapshot_id, entries)
        except (CorruptMetadata, FileMissing, InvalidLocation):
            return None
        return self._new.store(packed)
