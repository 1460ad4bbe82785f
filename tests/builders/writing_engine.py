"""An engine that writes a table: data and delete files, manifests merged and kept, branches, replaced tables."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from app.engine.change.apply import apply_updates
from app.engine.change.initial import new_table_metadata
from app.engine.change.updates import AddSnapshot, RemoveSnapshotRef, SetSnapshotRef, Update
from app.engine.guard.lists import tally_of_entries
from app.engine.model.files.manifests import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from app.engine.model.ids import Location, SnapshotId
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.fileio.memory import MemoryFiles
from app.formats.manifests.lists import assign_numbers, write_manifest_list
from app.formats.manifests.source import FileManifestSource, ManifestCache
from app.formats.manifests.writer import write_manifest
from tests.builders.catalogs import START_MS
from tests.builders.guarded import without_counts
from tests.builders.histories import UUID
from tests.builders.tables import SCHEMA

ROOT = "memory://wh/t"


@dataclass(frozen=True)
class Commit:
    """What a commit starts from, what it asks for, and what comes of it."""

    base: TableMetadata
    updates: list[Update]
    after: TableMetadata
    snapshot: Snapshot


@dataclass
class Made:
    """A commit before it is written, for those who want to falsify it."""

    snapshot_id: SnapshotId
    parent_id: SnapshotId | None
    manifests: list[ManifestFile]
    summary: dict[str, str]


Falsify = Callable[[Made], None]


def _honest(_made: Made) -> None:
    return None


@dataclass
class WritingEngine:
    """Writes one table as engines do; `metadata` is the table as its last commit left it."""

    format_version: int = 2
    counts_in_lists: bool = True
    files: Any = field(default_factory=MemoryFiles)
    """A store: in memory, or of local files."""
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    on: TableMetadata | None = None
    """The table that it writes to; without one it makes a new one."""

    def __post_init__(self) -> None:
        self.source = FileManifestSource(self.files, ManifestCache(64 << 20))
        self.metadata = (
            self.on
            if self.on is not None
            else new_table_metadata(
                schema=SCHEMA,
                spec=None,
                order=None,
                location=Location(ROOT),
                properties={"format-version": str(self.format_version)},
                uuid=UUID,
                now_ms=START_MS,
            )
        )

    # What a table holds.

    def head(self, branch: str = "main") -> Snapshot | None:
        ref = self.metadata.snapshot_refs.get(branch)
        return self.metadata.snapshots_by_id[ref.snapshot_id] if ref else None

    def manifests(self, snapshot: Snapshot | None) -> list[ManifestFile]:
        return list(self.source.manifests(snapshot)) if snapshot else []

    def live(self, snapshot: Snapshot | None, content: ManifestContent) -> list[ManifestEntry]:
        return [
            entry
            for manifest in self.manifests(snapshot)
            if manifest.content is content
            for entry in self.source.entries(manifest)
            if entry.is_live
        ]

    # What an engine does with it.

    def append(
        self,
        names: Sequence[str],
        *,
        branch: str | None = "main",
        merge: bool = False,
        totals: bool = True,
        falsify: Falsify = _honest,
    ) -> Commit:
        """Add data files; merging puts all that lives into one manifest. Without a branch it is only staged."""
        parent = self.head(branch or "main")
        snapshot_id = self._next_id()
        before = self.manifests(parent)
        new = [self._added(name, FileContent.DATA) for name in names]
        if merge:
            carried = [_existing(entry) for entry in self.live(parent, ManifestContent.DATA)]
            kept = [item for item in before if item.content is ManifestContent.DELETES]
            manifests = [self._manifest(snapshot_id, [*new, *carried]), *kept]
        else:
            manifests = [self._manifest(snapshot_id, new), *before] if new else before
        return self._commit(
            snapshot_id, "append", parent, manifests, branch=branch, totals=totals, falsify=falsify
        )

    def delete(
        self,
        paths: Iterable[str],
        add: Sequence[str] = (),
        *,
        branch: str = "main",
        operation: str | None = None,
        entries: Sequence[ManifestEntry] = (),
        falsify: Falsify = _honest,
    ) -> Commit:
        """Remove data files, rewriting only manifests that have them; with new files it is an overwrite."""
        doomed = set(paths)
        parent = self.head(branch)
        snapshot_id = self._next_id()
        manifests = []
        for manifest in self.manifests(parent):
            present = list(self.source.entries(manifest))
            if not any(entry.is_live and entry.file.file_path in doomed for entry in present):
                manifests.append(manifest)
                continue
            rewritten = [
                replace(entry, status=EntryStatus.DELETED, snapshot_id=snapshot_id)
                if entry.file.file_path in doomed
                else _existing(entry)
                for entry in present
                if entry.is_live
            ]
            manifests.append(self._manifest(snapshot_id, rewritten))
        added = [*(self._added(name, FileContent.DATA) for name in add), *entries]
        if added:
            manifests.insert(0, self._manifest(snapshot_id, added))
        operation = operation or ("overwrite" if added else "delete")
        return self._commit(snapshot_id, operation, parent, manifests, branch=branch, falsify=falsify)

    def compact(self, paths: Iterable[str], *, branch: str = "main") -> Commit:
        """Put the rows of some data files into one new file."""
        doomed = set(paths)
        gone = [
            entry.file
            for entry in self.live(self.head(branch), ManifestContent.DATA)
            if entry.file.file_path in doomed
        ]
        new = self._added("compacted", FileContent.DATA)
        rows = sum(file.record_count for file in gone)
        entries = [replace(new, file=replace(new.file, record_count=rows))]
        return self.delete(doomed, branch=branch, operation="replace", entries=entries)

    def delete_rows(self, names: Sequence[str], *, branch: str = "main") -> Commit:
        """Add delete files."""
        parent = self.head(branch)
        snapshot_id = self._next_id()
        new = self._manifest(snapshot_id, [self._added(name, FileContent.POSITION_DELETES) for name in names])
        return self._commit(snapshot_id, "overwrite", parent, [*self.manifests(parent), new], branch=branch)

    def delete_with(self, *deletes: DataFile, branch: str = "main") -> Commit:
        """Add delete files that are given: see `vector_for`, `position_deletes_for` and `equality_deletes`."""
        parent = self.head(branch)
        snapshot_id = self._next_id()
        entries = [ManifestEntry(EntryStatus.ADDED, None, None, None, file) for file in deletes]
        new = self._manifest(snapshot_id, entries)
        return self._commit(snapshot_id, "delete", parent, [*self.manifests(parent), new], branch=branch)

    def vector_for(self, path: str) -> DataFile:
        """Return a deletion vector for a data file."""
        added = self._added("deletes", FileContent.POSITION_DELETES).file
        return replace(
            added,
            file_path=Location(added.file_path.replace(".parquet", ".puffin")),
            file_format="puffin",
            referenced_data_file=Location(path),
            content_offset=4,
            content_size_in_bytes=40,
        )

    def position_deletes_for(self, path: str | None) -> DataFile:
        """Return a file of position deletes for one data file, or for some of which it does not say which."""
        added = self._added("deletes", FileContent.POSITION_DELETES).file
        return replace(added, referenced_data_file=None if path is None else Location(path))

    def equality_deletes(self) -> DataFile:
        """Return a file of equality deletes."""
        return replace(self._added("deletes", FileContent.EQUALITY_DELETES).file, equality_ids=(1,))

    def rewrite_manifests(self, *, branch: str = "main") -> Commit:
        """Put all that lives into two manifests of each content."""
        parent = self.head(branch)
        snapshot_id = self._next_id()
        manifests = []
        for content in ManifestContent:
            entries = [_existing(entry) for entry in self.live(parent, content)]
            manifests += [self._manifest(snapshot_id, part) for part in (entries[::2], entries[1::2]) if part]
        return self._commit(snapshot_id, "replace", parent, manifests, branch=branch)

    def replace_table(self, names: Sequence[str]) -> Commit:
        """Start anew, as REPLACE TABLE … AS SELECT does: main is taken away and set to a snapshot without parent."""
        snapshot_id = self._next_id()
        new = [self._manifest(snapshot_id, [self._added(name, FileContent.DATA) for name in names])]
        return self._commit(snapshot_id, "append", None, new, first=[RemoveSnapshotRef(ref_name="main")])

    def roll_back_and_append(self, to: Snapshot, names: Sequence[str]) -> Commit:
        """Go back and write on, in one commit."""
        snapshot_id = self._next_id()
        new = self._manifest(snapshot_id, [self._added(name, FileContent.DATA) for name in names])
        back = SetSnapshotRef(ref_name="main", snapshot_id=to.snapshot_id, type="branch")
        return self._commit(snapshot_id, "append", to, [new, *self.manifests(to)], first=[back])

    # How.

    def _next_id(self) -> SnapshotId:
        return SnapshotId(next(self.numbers) + 1_000)

    def _added(self, name: str, content: FileContent) -> ManifestEntry:
        number = next(self.numbers)
        path = name if ":" in name else f"{self.metadata.location}/data/{name}-{number}.parquet"
        spec = self.metadata.default_spec
        partition = (None,) * len(spec.fields)
        file = DataFile(content, Location(path), "parquet", spec.spec_id, partition, 1 + number % 7, 100)
        return ManifestEntry(EntryStatus.ADDED, None, None, None, file)

    def _manifest(self, snapshot_id: SnapshotId, entries: Sequence[ManifestEntry]) -> ManifestFile:
        is_data = not entries or entries[0].file.content is FileContent.DATA
        written = write_manifest(
            entries,
            schema=self.metadata.current_schema,
            spec=self.metadata.default_spec,
            format_version=self.format_version,
            content=ManifestContent.DATA if is_data else ManifestContent.DELETES,
            snapshot_id=snapshot_id,
        )
        location = Location(f"{self.metadata.location}/metadata/{snapshot_id}-m{next(self.numbers)}.avro")
        self.files.write_new(location, written.content)
        return written.at(location)

    def _commit(
        self,
        snapshot_id: SnapshotId,
        operation: str,
        parent: Snapshot | None,
        manifests: list[ManifestFile],
        *,
        branch: str | None = "main",
        totals: bool = True,
        first: Sequence[Update] = (),
        falsify: Falsify = _honest,
    ) -> Commit:
        base = self.metadata
        has_numbers = self.format_version >= 2
        sequence_number = base.last_sequence + 1 if has_numbers else 0
        first_row_id = base.next_row_id if self.format_version >= 3 else None
        # The table's reader sees them with their numbers, which a list of their own gives them.
        numbered, next_row_id = assign_numbers(
            manifests, sequence_number=sequence_number, first_row_id=first_row_id
        )
        summary = {"operation": operation}
        if totals:
            tally = tally_of_entries(entry for item in numbered for entry in self.source.entries(item))
            summary |= {
                "total-data-files": str(tally.data_files),
                "total-delete-files": str(tally.delete_files),
                "total-records": str(tally.records),
            }
        made = Made(snapshot_id, parent.snapshot_id if parent else None, list(numbered), summary)
        falsify(made)
        listed = (
            made.manifests
            if self.counts_in_lists or has_numbers
            else list(map(without_counts, made.manifests))
        )
        location = Location(f"{self.metadata.location}/metadata/snap-{snapshot_id}.avro")
        self.files.write_new(
            location,
            write_manifest_list(
                listed,
                format_version=self.format_version,
                snapshot_id=snapshot_id,
                parent_snapshot_id=made.parent_id,
                sequence_number=sequence_number,
                first_row_id=first_row_id,
            ).content,
        )
        snapshot = Snapshot(
            snapshot_id=snapshot_id,
            parent_snapshot_id=made.parent_id,
            sequence_number=sequence_number if has_numbers else None,
            timestamp_ms=base.last_updated_ms + 1,
            manifest_list=location,
            summary=made.summary,
            schema_id=base.current_schema_id,
            first_row_id=first_row_id,
            added_rows=None if first_row_id is None else (next_row_id or first_row_id) - first_row_id,
        )
        updates: list[Update] = [*first, AddSnapshot(snapshot=snapshot)]
        if branch is not None:
            updates.append(SetSnapshotRef(ref_name=branch, snapshot_id=snapshot_id, type="branch"))
        draft = apply_updates(base, updates, base.last_updated_ms + 1)
        self.metadata = draft.finish(
            Location(f"{self.metadata.location}/metadata/{snapshot_id}.metadata.json")
        )
        return Commit(base, updates, self.metadata, snapshot)


def _existing(entry: ManifestEntry) -> ManifestEntry:
    return replace(entry, status=EntryStatus.EXISTING)
