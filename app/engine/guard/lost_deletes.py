"""Deletes that a rewrite loses: in another partition spec they do not apply."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from app.engine.model.files.entry_filters import EntryFacts
from app.engine.model.files.manifests import (
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from app.engine.model.ids import SpecId
from app.engine.model.partition_spec import unpartitioned_specs
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.engine.selection.deletes import DeleteIndex


@dataclass(frozen=True, slots=True)
class LostDelete:
    """Equality deletes that apply to a data file, and no more to its rows where they are now."""

    file: ManifestEntry
    delete: ManifestEntry
    age: int
    """The data sequence number that its rows have now."""


@dataclass(slots=True)
class Moves:
    """What a rewrite does to data files, by their partition spec."""

    snapshot: Snapshot
    age: int | None = None
    """The lowest data sequence number that new files were given; None if all got the snapshot's own."""
    specs: set[SpecId] = field(default_factory=set)
    """Of the new files."""
    left: list[ManifestFile] = field(default_factory=list)
    """New manifests that name files which it removes."""
    adds_deletes: bool = False
    """Whether it may have moved deletes as well."""

    def note(self, manifest: ManifestFile, entries: Iterable[EntryFacts]) -> None:
        """Note what a new manifest adds and removes."""
        if self.snapshot.operation != "replace":
            return
        if manifest.content is not ManifestContent.DATA:
            self.adds_deletes |= any(entry.status is EntryStatus.ADDED for entry in entries)
            return
        removes = False
        for entry in entries:
            if entry.status is EntryStatus.ADDED:
                self.specs.add(manifest.partition_spec_id)
                age = entry.data_sequence_number
                if age is not None and age < self.snapshot.sequence and (self.age is None or age < self.age):
                    self.age = age
            elif entry.status is EntryStatus.DELETED and entry.snapshot_id == self.snapshot.snapshot_id:
                removes = True
        if removes:
            self.left.append(manifest)

    def suspects(self, table: TableMetadata, before: Iterable[ManifestFile]) -> list[ManifestFile]:
        """Return the parent's manifests that may have deletes which are lost; most often none.

        Rows that keep their age were read at that age: deletes since then have not been applied to them. Deletes of an
        unpartitioned spec apply everywhere.
        """
        if self.age is None or self.adds_deletes:
            return []
        moved = {manifest.partition_spec_id for manifest in self.left} - self.specs
        moved -= unpartitioned_specs(table.partition_specs)
        return [
            manifest
            for manifest in before
            if manifest.partition_spec_id in moved
            and manifest.content is ManifestContent.DELETES
            and manifest.sequence_number > self.age
            and manifest.may_have_live_files
        ]

    def lost(
        self, removed: Iterable[ManifestEntry], deletes: Iterable[ManifestEntry], table: TableMetadata
    ) -> LostDelete | None:
        """Return equality deletes that are lost, if there are any.

        Args:
            removed: the entries of the manifests in `left`.
            deletes: those of the suspects.

        Spec: #scan-planning
        """
        assert self.age is not None
        later = [
            entry
            for entry in deletes
            if entry.is_live
            and entry.file.content is FileContent.EQUALITY_DELETES
            and (entry.data_sequence_number or 0) > self.age
        ]
        index = DeleteIndex(later, table.partition_specs, table.schemas)
        for entry in removed:
            if entry.status is EntryStatus.DELETED and entry.snapshot_id == self.snapshot.snapshot_id:
                for delete in index.deletes_of(entry.file, entry.data_sequence_number or 0):
                    return LostDelete(entry, delete, self.age)
        return None
