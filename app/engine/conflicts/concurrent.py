"""Concurrent snapshots: those between the base of an operation and the branch's head."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final

from app.engine.model.ancestry import ancestors
from app.engine.model.files.entry_filters import FilterableEntries
from app.engine.model.files.manifests import ManifestContent, ManifestEntry, ManifestFile, ManifestSource
from app.engine.model.ids import NO_SNAPSHOT, Location, SnapshotId
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata

MAX_KEPT_BYTES: Final = 32 << 20
"""How many bytes of manifests are kept from one check to the next, by the length of their files."""

Operations = frozenset[str]
"""The operations that snapshots name in their summaries; each check looks at some of them."""

ADDING_DATA: Operations = frozenset({"append", "overwrite"})
REMOVING_DATA: Operations = frozenset({"overwrite", "replace", "delete"})
REMOVING_ROWS: Operations = frozenset({"overwrite", "delete"})
REWRITING_DATA: Operations = frozenset({"overwrite", "replace"})
ADDING_DELETES: Operations = frozenset({"overwrite", "delete"})
ADDING_VECTORS: Operations = frozenset({"overwrite", "delete", "replace"})


class Concurrent:
    """The snapshots after a base, up to a head; manifests are read when they are needed.

    Of each snapshot only those manifests are opened that it wrote itself: the effort is linear in what happened,
    whatever the size of the table.
    """

    def __init__(
        self,
        metadata: TableMetadata,
        source: ManifestSource,
        head_id: SnapshotId | None,
        base_id: SnapshotId | None,
    ) -> None:
        self.metadata = metadata
        self.head_id = head_id
        self.base_id = base_id = _id_or_none(base_id)
        self._source = source
        self._own: dict[tuple[SnapshotId, ManifestContent], Sequence[ManifestFile]] = {}
        self._entries: dict[Location, Iterable[ManifestEntry]] = {}
        self._kept_bytes = 0
        found: list[Snapshot] = []
        for snapshot in ancestors(metadata, head_id):
            if snapshot.snapshot_id == base_id:
                break
            found.append(snapshot)
        if found:
            # An expired base is still known as the parent of the oldest snapshot.
            self.is_known = _id_or_none(found[-1].parent_snapshot_id) == base_id
        else:
            # A branch that has lost all its snapshots, as where the table was replaced, has left its base, too.
            self.is_known = base_id in (None, head_id)
        self.last_known_id = found[-1].snapshot_id if found else None
        self.snapshots: Sequence[Snapshot] = tuple(reversed(found))

    @cached_property
    def base_sequence(self) -> int:
        """The sequence number after which everything is new."""
        base = None if self.base_id is None else self.metadata.snapshots_by_id.get(self.base_id)
        return base.sequence if base else 0

    def since_fork(self) -> Sequence[Snapshot]:
        """Return the concurrent snapshots, without those that the base descends from."""
        if self.is_known or self.base_id is None:
            return self.snapshots
        of_base = {snapshot.snapshot_id for snapshot in ancestors(self.metadata, self.base_id)}
        return tuple(snapshot for snapshot in self.snapshots if snapshot.snapshot_id not in of_base)

    def ids(self, operations: Operations | None) -> frozenset[SnapshotId]:
        """Return the ids of the snapshots with one of these operations; None for all."""
        return frozenset(snapshot.snapshot_id for snapshot in self._of(operations))

    def _of(self, operations: Operations | None) -> Iterator[Snapshot]:
        for snapshot in self.snapshots:
            # Where a writer left the operation out, it may have been any.
            if operations is None or snapshot.operation is None or snapshot.operation in operations:
                yield snapshot

    def manifests(
        self, content: ManifestContent, operations: Operations | None = None
    ) -> Iterator[tuple[Snapshot, ManifestFile]]:
        """Yield each snapshot's own manifests, oldest snapshot first."""
        for snapshot in self._of(operations):
            key = (snapshot.snapshot_id, content)
            if key not in self._own:
                self._own[key] = [
                    manifest
                    for manifest in self._source.manifests(snapshot)
                    if manifest.added_snapshot_id == snapshot.snapshot_id and manifest.content is content
                ]
            yield from ((snapshot, manifest) for manifest in self._own[key])

    def entries(self, manifest: ManifestFile) -> Iterable[ManifestEntry]:
        """Return a manifest's entries of every status; they can be read several times."""
        found = self._entries.get(manifest.manifest_path)
        if found is None:
            found = self._source.entries(manifest)
            if not isinstance(found, FilterableEntries | Sequence):
                found = tuple(found)
            # Several checks may want them, but a year of manifests is too much to keep.
            self._kept_bytes += manifest.manifest_length
            if self._kept_bytes <= MAX_KEPT_BYTES:
                self._entries[manifest.manifest_path] = found
        return found

    def live_entries_at(
        self, snapshot_id: SnapshotId | None, content: ManifestContent
    ) -> Iterator[ManifestEntry]:
        """Yield the live entries of a snapshot. It opens every manifest of the table: a last resort."""
        snapshot = None if snapshot_id is None else self.metadata.snapshots_by_id.get(snapshot_id)
        for manifest in self._source.manifests(snapshot) if snapshot else ():
            if manifest.content is content:
                yield from (entry for entry in self._source.entries(manifest) if entry.is_live)

    def manifests_at_head(self) -> Sequence[ManifestFile]:
        """Return the manifests of the head."""
        head = None if self.head_id is None else self.metadata.snapshots_by_id.get(self.head_id)
        return self._source.manifests(head) if head else ()


def _id_or_none(snapshot_id: SnapshotId | None) -> SnapshotId | None:
    return None if snapshot_id == NO_SNAPSHOT else snapshot_id
