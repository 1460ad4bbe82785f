"""Which files only expired snapshots reach, in an order in which deletion can be resumed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeVar

from app.engine.model.files.manifests import FileContent, ManifestFile, ManifestSource
from app.engine.model.ids import Location
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.errors import CorruptMetadata, FileMissing, InvalidLocation, InvalidMetadata

Read = TypeVar("Read", Snapshot, ManifestFile)
Found = TypeVar("Found")

UNREADABLE = (FileMissing, InvalidLocation, InvalidMetadata, CorruptMetadata)


class CleanupLevel(StrEnum):
    """Which files are deleted after snapshots have expired."""

    NONE = "none"
    METADATA_ONLY = "metadata-only"
    """Manifests, manifest lists and statistics, no data or delete files."""
    ALL = "all"


class FileKind(StrEnum):
    """The role of a file in its table."""

    DATA = "data-files"
    POSITION_DELETES = "position-delete-files"
    """Also those of deletion vectors; a file counts once, however many it has."""
    EQUALITY_DELETES = "equality-delete-files"
    MANIFEST = "manifests"
    MANIFEST_LIST = "manifest-lists"
    STATISTICS = "statistics-files"


_KINDS = {
    FileContent.DATA: FileKind.DATA,
    FileContent.POSITION_DELETES: FileKind.POSITION_DELETES,
    FileContent.EQUALITY_DELETES: FileKind.EQUALITY_DELETES,
}


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file, and its size if the metadata has it."""

    location: Location
    kind: FileKind
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Expired:
    """What an expiry removed from a table, from which unreachable files can be found."""

    snapshots: tuple[Snapshot, ...]
    statistics: tuple[FoundFile, ...]


@dataclass(frozen=True, slots=True)
class Unreachable:
    """The files that may be deleted, in groups: a file is deleted before those that name it.

    So deletion can stop anywhere, and be planned again from what is left.
    """

    content: tuple[FoundFile, ...] = ()
    manifests: tuple[FoundFile, ...] = ()
    manifest_lists: tuple[FoundFile, ...] = ()
    statistics: tuple[FoundFile, ...] = ()
    unreadable: tuple[Location, ...] = ()
    """Unreadable files of expired snapshots; they and the files that they name are kept."""
    obstacle: str | None = None
    """Why nothing may be deleted: a file of a remaining snapshot cannot be read."""

    @property
    def groups(self) -> tuple[tuple[FoundFile, ...], ...]:
        return (self.content, self.manifests, self.manifest_lists, self.statistics)

    def only(self, locations: Collection[Location]) -> Unreachable:
        """Return the same without the files that are at other locations."""
        content, manifests, lists, statistics = (
            tuple(item for item in group if item.location in locations) for group in self.groups
        )
        return replace(
            self, content=content, manifests=manifests, manifest_lists=lists, statistics=statistics
        )

    def __iter__(self) -> Iterator[FoundFile]:
        for group in self.groups:
            yield from group


@dataclass(slots=True)
class _Remaining:
    """What is still reachable: manifests by place, and all other places."""

    manifests: dict[Hashable, ManifestFile] = field(default_factory=dict)
    """Those of the table's snapshots, which must be readable."""
    later: dict[Hashable, ManifestFile] = field(default_factory=dict)
    """Those of snapshots that expired since, which may be deleted already."""
    places: set[Hashable] = field(default_factory=set)


class _Obstacle(Exception):
    """A remaining file cannot be read."""


def expired_between(before: TableMetadata, after: TableMetadata) -> Expired:
    """Return what one state of a table has and a later one does not."""
    paths = {item.location for item in statistics_of(after)}
    return Expired(
        tuple(item for item in before.snapshots if item.snapshot_id not in after.snapshots_by_id),
        tuple(item for item in statistics_of(before) if item.location not in paths),
    )


def statistics_of(metadata: TableMetadata) -> Iterator[FoundFile]:
    """Yield the statistics files of the table and of its partitions."""
    for table in metadata.statistics:
        yield FoundFile(table.statistics_path, FileKind.STATISTICS, table.file_size_in_bytes)
    for partitions in metadata.partition_statistics:
        yield FoundFile(partitions.statistics_path, FileKind.STATISTICS, partitions.file_size_in_bytes)


def unreachable_files(
    expired: Expired,
    current: TableMetadata | None,
    source: ManifestSource,
    *,
    level: CleanupLevel = CleanupLevel.ALL,
    landed: TableMetadata | None = None,
    stays: Iterable[Location] = (),
    place_of: Callable[[str], Hashable] = str,
) -> Unreachable:
    """Return the files that expired snapshots reach and the table does not.

    A writer may have named any file as anything: a live data file as a manifest, or the metadata file as statistics.
    So only what can be read as a manifest or a list goes as one, and whatever the table reaches in any role stays, but
    for what is both a readable manifest, or a list, and named as a data file: finding that would read every manifest.

    Args:
        current: the table now, read after the expiry landed; None if all of it is deleted.
        landed: the table right after the expiry. The files of snapshots that a later expiry removed are kept, as
            they are deleted at their own time, but need not be readable.
        stays: other files that are in use, such as the current metadata file.
        place_of: returns the same for two spellings of one location.

    Raises:
        FilesUnavailable: the store does not answer; safe to try again.

    Spec: #snapshot-retention-policy
    """
    if level is CleanupLevel.NONE:
        return Unreachable()
    present = current.snapshots_by_id if current else {}
    gone = [item for item in expired.snapshots if item.snapshot_id not in present]
    later = [item for item in (landed.snapshots if landed else ()) if item.snapshot_id not in present]
    search = _Search(source, place_of)
    manifests, lists = search.expired_manifests(gone)
    statistics = {place_of(item.location): item for item in expired.statistics}
    try:
        remaining = search.remaining(current, later, manifests, reads_all=bool(statistics))
        remaining.places |= {place_of(location) for location in stays}
        content = search.content_of(manifests)
        doomed = {**statistics, **content}
        for places in (remaining.places, remaining.manifests, remaining.later, manifests, lists):
            for place in places:
                doomed.pop(place, None)
        search.remove_live(doomed, remaining)
    except _Obstacle as obstacle:
        return Unreachable(unreadable=tuple(search.unreadable), obstacle=str(obstacle))
    kept = remaining.places | remaining.manifests.keys() | remaining.later.keys()
    kept |= {place_of(location) for location in search.unreadable}
    named = kept | content.keys()
    return Unreachable(
        content=tuple(doomed[place] for place in content if place in doomed)
        if level is CleanupLevel.ALL
        else (),
        manifests=tuple(
            FoundFile(item.manifest_path, FileKind.MANIFEST, item.manifest_length or None)
            for place, item in manifests.items()
            if place not in kept
        ),
        manifest_lists=tuple(
            FoundFile(item, FileKind.MANIFEST_LIST) for place, item in lists.items() if place not in kept
        ),
        statistics=tuple(doomed[place] for place in statistics if place in doomed and place not in named),
        unreadable=tuple(search.unreadable),
    )


class _Search:
    """A search for unreachable files: what it reads, and which files it could not read."""

    def __init__(self, source: ManifestSource, place_of: Callable[[str], Hashable]) -> None:
        self.unreadable: list[Location] = []
        self._source, self._place_of = source, place_of

    def expired_manifests(
        self, gone: Iterable[Snapshot]
    ) -> tuple[dict[Hashable, ManifestFile], dict[Hashable, Location]]:
        """Return the manifests and the manifest lists of expired snapshots."""
        manifests: dict[Hashable, ManifestFile] = {}
        lists: dict[Hashable, Location] = {}
        for snapshot in gone:
            found = self._read(self._source.manifests, snapshot, snapshot.manifest_list or Location(""))
            if found is None:
                continue
            for manifest in found:
                manifests.setdefault(self._place_of(manifest.manifest_path), manifest)
            if snapshot.manifest_list is not None:
                lists[self._place_of(snapshot.manifest_list)] = snapshot.manifest_list
        return manifests, lists

    def content_of(self, manifests: Mapping[Hashable, ManifestFile]) -> dict[Hashable, FoundFile]:
        """Return the live data and delete files of manifests that only expired snapshots have."""
        content: dict[Hashable, FoundFile] = {}
        for manifest in manifests.values():
            for file in self._read(self._live_files, manifest, manifest.manifest_path) or ():
                content.setdefault(self._place_of(file.location), file)
        return content

    def _live_files(self, manifest: ManifestFile) -> list[FoundFile]:
        files = (entry.file for entry in self._source.entries(manifest) if entry.is_live)
        return [FoundFile(file.file_path, _KINDS[file.content], file.file_size_in_bytes) for file in files]

    def _read(
        self, read: Callable[[Read], Sequence[Found]], what: Read, location: Location
    ) -> Sequence[Found] | None:
        try:
            return read(what)
        except FileMissing:
            # An earlier attempt deleted it, after the files that it names.
            return None
        except UNREADABLE:
            self.unreadable.append(location)
            return None

    def remaining(
        self,
        current: TableMetadata | None,
        later: Sequence[Snapshot],
        candidates: dict[Hashable, ManifestFile],
        *,
        reads_all: bool,
    ) -> _Remaining:
        """Return what is still reachable, and remove its manifests from the candidates.

        Args:
            reads_all: find every manifest, though no candidate is left.
        """
        remaining = _Remaining()
        present = current.snapshots if current else ()
        if current is not None:
            remaining.places |= {self._place_of(item.location) for item in statistics_of(current)}
            remaining.places |= {self._place_of(entry.metadata_file) for entry in current.metadata_log}
        for snapshot in (*present, *later):
            if snapshot.manifest_list is not None:
                remaining.places.add(self._place_of(snapshot.manifest_list))
        for snapshot in present:
            if not candidates and not reads_all:
                return remaining
            try:
                self._keep(snapshot, remaining.manifests, candidates)
            except UNREADABLE as error:
                raise _Obstacle(
                    f"{error} (snapshot {snapshot.snapshot_id}, which stays, needs it)"
                ) from error
        for snapshot in later if candidates or reads_all else ():
            with contextlib.suppress(*UNREADABLE):
                self._keep(snapshot, remaining.later, candidates)
        return remaining

    def _keep(
        self,
        snapshot: Snapshot,
        kept: dict[Hashable, ManifestFile],
        candidates: dict[Hashable, ManifestFile],
    ) -> None:
        for manifest in self._source.manifests(snapshot):
            place = self._place_of(manifest.manifest_path)
            kept.setdefault(place, manifest)
            candidates.pop(place, None)

    def remove_live(self, content: dict[Hashable, FoundFile], remaining: _Remaining) -> None:
        """Remove from the candidates the live files of remaining manifests."""
        for manifest in remaining.manifests.values():
            if not content:
                return
            try:
                self._remove_live_of(manifest, content)
            except UNREADABLE as error:
                raise _Obstacle(f"{error} (a remaining snapshot has this manifest)") from error
        for manifest in remaining.later.values():
            if content and self._place_of(manifest.manifest_path) not in remaining.manifests:
                with contextlib.suppress(*UNREADABLE):
                    self._remove_live_of(manifest, content)

    def _remove_live_of(self, manifest: ManifestFile, content: dict[Hashable, FoundFile]) -> None:
        for entry in self._source.entries(manifest):
            if entry.is_live:
                content.pop(self._place_of(entry.file.file_path), None)
