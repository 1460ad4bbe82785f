"""New snapshots for the guard: manifests that are lists, with a budget, gone and broken files, and who asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from app.engine.guard.arrivals import Arrival
from app.engine.model.files.manifests import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from app.engine.model.ids import Location, SnapshotId, SpecId
from app.engine.model.snapshot import Snapshot
from app.errors import FileMissing, FilesUnavailable, InvalidMetadata
from tests.builders.branches import UNPARTITIONED, Branch

ROOT = "memory://wh/t"
ROWS = 10
"""In each data file."""
TABLE = Branch(UNPARTITIONED).metadata


def is_inside(location: str) -> bool:
    return location.startswith(f"{ROOT}/")


def file_of(name: str, content: FileContent = FileContent.DATA) -> DataFile:
    """Return a file; a name with a slash in it is a whole location."""
    path = name if "/" in name else f"{ROOT}/data/{name}.parquet"
    return DataFile(content, Location(path), "parquet", SpecId(0), (), ROWS, 100)


def snapshot(
    number: int, parent: int | None = None, operation: str | None = "append", /, **summary: int
) -> Snapshot:
    """Return a snapshot whose sequence number is its own number."""
    told = {key.replace("_", "-"): str(value) for key, value in summary.items()}
    return Snapshot(
        snapshot_id=SnapshotId(number),
        parent_snapshot_id=None if parent is None else SnapshotId(parent),
        sequence_number=number,
        timestamp_ms=1_700_000_000_000 + number,
        manifest_list=Location(f"{ROOT}/metadata/list-{number}.avro"),
        summary=None if operation is None else {"operation": operation, **told},
    )


@dataclass
class Manifests:
    """A `BudgetedManifests` out of dictionaries; each list costs 100 bytes, each manifest its length."""

    left_bytes: int = 1_000_000
    looks: int = 10
    lists: dict[SnapshotId, Sequence[ManifestFile]] = field(default_factory=dict)
    contents: dict[Location, Sequence[ManifestEntry]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)
    late: set[str] = field(default_factory=set)
    """Manifests whose first entry can be read, and no more."""
    unavailable: set[str] = field(default_factory=set)
    opened: list[str] = field(default_factory=list)

    def manifest(
        self,
        name: str,
        snapshot_id: int,
        added: Sequence[str] = (),
        existing: Sequence[str] = (),
        deleted: Sequence[str] = (),
        *,
        content: FileContent = FileContent.DATA,
        written_at: int | None = None,
    ) -> ManifestFile:
        """Return a manifest that a snapshot wrote; files that were there before it have number `written_at`."""
        before = written_at or 1
        number = snapshot_id
        entries = [
            *(self._entry(EntryStatus.ADDED, each, content, number, number) for each in added),
            *(self._entry(EntryStatus.EXISTING, each, content, before, before) for each in existing),
            *(self._entry(EntryStatus.DELETED, each, content, number, before) for each in deleted),
        ]
        path = Location(f"{ROOT}/metadata/{name}.avro")
        self.contents[path] = entries
        return ManifestFile(
            path,
            1000,
            SpecId(0),
            ManifestContent.DATA if content is FileContent.DATA else ManifestContent.DELETES,
            sequence_number=number,
            min_sequence_number=min(before if existing else number, number),
            added_snapshot_id=SnapshotId(snapshot_id),
            added_files_count=len(added),
            existing_files_count=len(existing),
            deleted_files_count=len(deleted),
            added_rows_count=ROWS * len(added),
            existing_rows_count=ROWS * len(existing),
            deleted_rows_count=ROWS * len(deleted),
        )

    @staticmethod
    def _entry(
        status: EntryStatus, name: str, content: FileContent, snapshot_id: int, number: int
    ) -> ManifestEntry:
        return ManifestEntry(status, SnapshotId(snapshot_id), number, number, file_of(name, content))

    def commit(self, made: Snapshot, *manifests: ManifestFile) -> Snapshot:
        """Give a snapshot its manifest list."""
        self.lists[made.snapshot_id] = manifests
        return made

    def manifests(self, made: Snapshot) -> Sequence[ManifestFile] | None:
        assert made.manifest_list is not None
        return self.lists[made.snapshot_id] if self._open(made.manifest_list, 100) else None

    def entries(self, manifest: ManifestFile) -> Iterable[ManifestEntry] | None:
        path = manifest.manifest_path
        if not self._open(path, manifest.manifest_length):
            return None
        return self._broken_off(path) if path in self.late else self.contents[path]

    def _broken_off(self, path: Location) -> Iterator[ManifestEntry]:
        yield self.contents[path][0]
        raise InvalidMetadata(f"{path} breaks off")

    def exists(self, location: Location) -> bool | None:
        if not self.looks:
            return None
        self.looks -= 1
        return location not in self.gone

    def _open(self, location: Location, cost: int) -> bool:
        if location in self.unavailable:
            raise FilesUnavailable(f"Cannot read {location}")
        if cost > self.left_bytes:
            return False
        if location in self.gone:
            raise FileMissing(location)
        if location in self.broken:
            raise InvalidMetadata(f"Cannot read {location}")
        self.left_bytes -= cost
        self.opened.append(location)
        return True


def arrival(made: Snapshot, parent: Snapshot | None = None) -> Arrival:
    """Return a snapshot as it arrives on its parent; without one, its parent is forgotten if it names one."""
    return Arrival(made, parent, is_root=made.parent_snapshot_id is None)


def without_counts(manifest: ManifestFile) -> ManifestFile:
    """Return a manifest as early v1 writers listed it."""
    return replace(
        manifest,
        added_files_count=None,
        existing_files_count=None,
        deleted_files_count=None,
        added_rows_count=None,
        existing_rows_count=None,
        deleted_rows_count=None,
    )
