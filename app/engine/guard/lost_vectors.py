"""Deletion vectors that a snapshot removes, and the data files that it leaves without one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from app.engine.model.files.delete_files import PUFFIN, is_deletion_vector, referenced_path
from app.engine.model.files.entry_filters import EntryFacts, entries_at, entry_facts
from app.engine.model.files.manifests import EntryStatus, ManifestContent, ManifestEntry, ManifestFile
from app.engine.model.ids import Location, SnapshotId


@dataclass(slots=True)
class RemovedVectors:
    """What a snapshot removes of deletion vectors.

    A data file has one vector at most, with all its deleted rows: where it goes and no other one comes, they are back,
    unless the data file goes, too. Of other delete files that cannot be known, since what they say may stand in others.
    """

    snapshot_id: SnapshotId
    left: list[ManifestFile] = field(default_factory=list)
    """Manifests of its own that name removed vectors. DuckDB leaves them the snapshot that added them."""
    facts: dict[Location, Sequence[EntryFacts]] = field(default_factory=dict)
    """Of the manifests in `left`: most of their vectors have nothing to do with it, and need not become objects."""
    suspects: dict[Location, int] = field(default_factory=dict)
    """The data files that may have lost theirs, with its sequence number."""

    def note(self, manifest: ManifestFile, facts: Sequence[EntryFacts]) -> None:
        """Note whether a new manifest removes vectors."""
        if (
            manifest.content is ManifestContent.DELETES
            and manifest.added_snapshot_id == self.snapshot_id
            and any(entry.status is EntryStatus.DELETED and entry.file_format == PUFFIN for entry in facts)
        ):
            self.left.append(manifest)
            self.facts[manifest.manifest_path] = facts

    def suspect(self, manifest: ManifestFile, entries: Iterable[ManifestEntry]) -> None:
        """Suspect the data files whose vectors a manifest in `left` removes."""
        for path, entry in self._vectors(manifest, entries, EntryStatus.DELETED):
            number = entry.data_sequence_number or 0
            self.suspects[path] = max(self.suspects.get(path, 0), number)

    def clear(self, manifest: ManifestFile, entries: Iterable[ManifestEntry]) -> None:
        """Suspect no more what has a vector in a manifest, or is removed there."""
        if manifest.content is ManifestContent.DELETES:
            # Vectors that replace others are new; all others are looked at only where that does not say it.
            for status in (EntryStatus.ADDED, EntryStatus.EXISTING):
                if self.suspects:
                    for path, _ in self._vectors(manifest, entries, status):
                        self.suspects.pop(path, None)
        else:
            for fact in entry_facts(entries):
                if fact.status is EntryStatus.DELETED and fact.snapshot_id == self.snapshot_id:
                    self.suspects.pop(fact.path, None)

    def may_stay_in(self, manifest: ManifestFile) -> bool:
        """Say whether suspects may be live in a manifest: vectors apply to no newer files."""
        return (
            bool(self.suspects)
            and manifest.content is ManifestContent.DATA
            and manifest.may_have_live_files
            and manifest.min_sequence_number <= max(self.suspects.values())
        )

    def convict(self, entries: Iterable[ManifestEntry]) -> list[Location]:
        """Return the suspects that are live in a manifest, and suspect them no more.

        A vector does not apply to a file that is newer.

        Spec: #scan-planning
        """
        found: list[Location] = []
        for entry in entry_facts(entries):
            number = self.suspects.get(entry.path)
            is_live = entry.status is not EntryStatus.DELETED
            if number is not None and is_live and (entry.data_sequence_number or 0) <= number:
                found.append(entry.path)
                del self.suspects[entry.path]
        return found

    def _vectors(
        self, manifest: ManifestFile, entries: Iterable[ManifestEntry], status: EntryStatus
    ) -> Iterator[tuple[Location, ManifestEntry]]:
        facts = self.facts.get(manifest.manifest_path) or entry_facts(entries)
        wanted = [at for at, fact in enumerate(facts) if fact.status is status and fact.file_format == PUFFIN]
        for entry in entries_at(entries, wanted):
            path = referenced_path(entry.file)
            if path is not None and is_deletion_vector(entry.file):
                yield path, entry
