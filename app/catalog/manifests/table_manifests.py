"""The manifests of a warehouse's tables, from the shared cache."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from app.catalog.context.catalog import Catalog
from app.catalog.context.places.locations import check_location
from app.catalog.context.registrations import registration_of
from app.engine.health.column_summary import LiveMetrics
from app.engine.health.live_columns import LiveColumns
from app.engine.model.files.entry_filters import EntryFacts, FileColumns, PartitionTest, ValueRange
from app.engine.model.files.manifests import EntryStatus, ManifestEntry, ManifestFile
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.error_frames import let_go_of_frames
from app.errors import CommitRefused, CorruptMetadata, CorruptTable, FileMissing, InvalidMetadata
from app.formats.bounds import read_bounded
from app.formats.manifests.columns import ManifestColumns
from app.formats.manifests.lists import KnownLines
from app.formats.manifests.live_columns import UnpackedManifest
from app.formats.manifests.paths import statuses_and_paths
from app.formats.manifests.source import FileManifestSource, ManifestCache

FindStaged = Callable[[Location], bytes | None]
"""Returns the content of a file that is written, and may not be in the store yet; None of any other."""


class TableManifests:
    """A `ManifestSource` for use cases: an unreadable file raises `CorruptMetadata`.

    Writers say where manifests are. With the server's own keys nothing is read that the warehouse may not use, and
    nothing that the cache knows from another one.
    """

    def __init__(
        self, catalog: Catalog, table: TableMetadata | None, staged: FindStaged | None = None
    ) -> None:
        """Read manifests of a table; without it, nothing is believed that was kept of them before.

        Args:
            catalog: the table's warehouse.
            table: its metadata.
            staged: finds files that the store may not have yet.
        """
        self._catalog = catalog
        self._files = catalog.files
        self.registration = registration_of(catalog, table)
        folder = catalog.server.manifest_folder
        read = None
        if folder is not None and table is not None:
            read = folder.reader(catalog.warehouse.storage, self.registration, self._read)
        if staged is not None:
            read = partial(_staged_or_stored, staged, read or self._read)
        self._source = FileManifestSource(self._files, catalog.server.manifest_cache, read, self.registration)

    def _read(self, location: Location) -> bytes:
        return read_bounded(self._files, location, self._catalog.server.manifest_cache.max_file_bytes)

    def _check_lists(self, snapshot: Snapshot) -> None:
        for location in (snapshot.manifest_list, *(snapshot.manifests or ())):
            if location is not None:
                check_location(self._catalog, location, "manifest list")

    def manifests(self, snapshot: Snapshot) -> Sequence[ManifestFile]:
        """Return a snapshot's manifests in the order of its list.

        Raises:
            CorruptMetadata: the manifest list is not one.
            InvalidLocation, FileMissing, FilesUnavailable: the manifest list cannot be read.
        """
        self._check_lists(snapshot)
        try:
            return self._source.manifests(snapshot)
        except InvalidMetadata as error:
            raise CorruptMetadata(snapshot.manifest_list or "", str(error)) from error

    def entries(self, manifest: ManifestFile) -> Iterable[ManifestEntry]:
        """Return a manifest's entries of every status, with inherited values filled in.

        Raises:
            CorruptMetadata: the manifest is not one, or contradicts the list.
            InvalidLocation, FileMissing, FilesUnavailable: the manifest cannot be read.
        """
        check_location(self._catalog, manifest.manifest_path, "manifest")
        with _corrupt_if_invalid(manifest.manifest_path):
            return _TableEntries(self._source.columns(manifest), manifest.manifest_path)

    def unpacked(self, manifest: ManifestFile) -> UnpackedManifest:
        """Return a manifest whose live files can be counted; it is read anew, and not kept.

        Raises:
            CorruptMetadata: the manifest is not one, or too large.
            InvalidLocation, FileMissing, FilesUnavailable: the manifest cannot be read.
        """
        check_location(self._catalog, manifest.manifest_path, "manifest")
        with _corrupt_if_invalid(manifest.manifest_path):
            return self._source.unpacked(manifest)

    def live_columns(self, unpacked: UnpackedManifest) -> LiveColumns:
        """Return the live files of a manifest as columns.

        Raises:
            CorruptMetadata: an entry makes no sense, or the manifest contradicts the list.
        """
        with _corrupt_if_invalid(unpacked.location):
            return unpacked.live_columns()

    def live_metrics(self, unpacked: UnpackedManifest) -> Iterator[LiveMetrics]:
        """Yield the metrics of the live files of a manifest, of some thousand files at a time.

        Raises:
            CorruptMetadata: an entry makes no sense, or the manifest contradicts the list.
        """
        with _corrupt_if_invalid(unpacked.location):
            yield from unpacked.live_metrics()

    def keep_list(self, location: Location, lines: KnownLines) -> None:
        """Keep a manifest list that this server has just written."""
        self._source.keep_list(location, lines)

    def keep_listed(self, was: ManifestFile, now: ManifestFile) -> None:
        """Keep a manifest's entries as a new list of this server names it; nothing is read."""
        self._source.keep_listed(was, now)


def _staged_or_stored(staged: FindStaged, stored: Callable[[Location], bytes], location: Location) -> bytes:
    content = staged(location)
    return stored(location) if content is None else content


class _TableEntries:
    """The entries of one manifest; an unreadable one raises `CorruptMetadata`."""

    def __init__(self, entries: ManifestColumns, location: Location) -> None:
        self._entries = entries
        self._location = location

    def __iter__(self) -> Iterator[ManifestEntry]:
        with _corrupt_if_invalid(self._location):
            yield from self._entries

    def live_in(self, is_wanted: PartitionTest, ranges: Sequence[ValueRange] = ()) -> Iterator[ManifestEntry]:
        """Yield entries as `FilterableEntries` promises."""
        with _corrupt_if_invalid(self._location):
            yield from self._entries.live_in(is_wanted, ranges)

    def live_positions(self, is_wanted: PartitionTest, ranges: Sequence[ValueRange] = ()) -> Sequence[int]:
        """Return positions as `ColumnarEntries` promises."""
        with _corrupt_if_invalid(self._location):
            return self._entries.live_positions(is_wanted, ranges)

    def entries_at(self, positions: Sequence[int]) -> Iterator[ManifestEntry]:
        """Yield entries as `ColumnarEntries` promises."""
        with _corrupt_if_invalid(self._location):
            yield from self._entries.entries_at(positions)

    def files_at(self, positions: Sequence[int]) -> FileColumns:
        """Return columns as `ColumnarEntries` promises."""
        with _corrupt_if_invalid(self._location):
            return self._entries.files_at(positions)

    def live_paths(self) -> Iterator[Location]:
        """Yield the paths as `PathedEntries` promises."""
        with _corrupt_if_invalid(self._location):
            yield from self._entries.live_paths()

    @property
    def partition_field_ids(self) -> tuple[int, ...] | None:
        """The ids as `SpecifiedEntries` promises."""
        return self._entries.partition_field_ids

    @property
    def partition_value_ids(self) -> frozenset[int] | None:
        """The ids as `SpecifiedEntries` promises."""
        return self._entries.partition_value_ids

    def facts(self) -> Iterator[EntryFacts]:
        """Yield the facts as `CountableEntries` promises."""
        with _corrupt_if_invalid(self._location):
            yield from self._entries.facts()


@contextmanager
def _corrupt_if_invalid(location: Location) -> Iterator[None]:
    try:
        yield
    except InvalidMetadata as error:
        # They hold the file's content, in a cycle with the frame of this `with` from Python 3.13 on.
        let_go_of_frames(error)
        raise CorruptMetadata(location, str(error)) from error


@contextmanager
def readable_or_refused(identifier: TableIdentifier) -> Iterator[None]:
    """Refuse a change that needs manifests which cannot be read: it certainly does not land.

    Raises:
        CommitRefused: a manifest list or a manifest is damaged or gone.
    """
    try:
        yield
    except CorruptTable:
        raise  # They can be read, and contradict the table.
    except (CorruptMetadata, FileMissing) as error:
        raise CommitRefused(
            f"Cannot change {identifier}: {error}. Nothing was changed. Put that file back, or take the branch back "
            "to a snapshot whose files are whole (`icetower table rollback`)"
        ) from error


class CheckedManifests(TableManifests):
    """Manifests for deletions: yields nothing unless two decoders agree."""

    def entries(self, manifest: ManifestFile) -> Iterator[ManifestEntry]:
        """Yield a manifest's entries once both decoders agree on which files they name, and how.

        Raises:
            CorruptMetadata: the manifest is not one, contradicts the list, or the decoders disagree.
            InvalidLocation, FileMissing, FilesUnavailable: the manifest cannot be read.
        """
        location = manifest.manifest_path
        with _corrupt_if_invalid(location):
            columns, content = self._columns(manifest)
            entries = list(columns)
            found = [(int(entry.status), str(entry.file.file_path)) for entry in entries]
            agreed = found == statuses_and_paths(content, location)
        if not agreed:
            raise CorruptMetadata(location, "two decoders read different entries")
        yield from entries

    def live_paths(self, manifest: ManifestFile) -> list[Location]:
        """Return the paths of a manifest's live files once both decoders agree on them.

        Raises:
            CorruptMetadata: the manifest is not one, contradicts the list, or the decoders disagree.
            InvalidLocation, FileMissing, FilesUnavailable: the manifest cannot be read.
        """
        location = manifest.manifest_path
        with _corrupt_if_invalid(location):
            columns, content = self._columns(manifest)
            found = list(columns.live_paths())
            checked = statuses_and_paths(content, location)
        if found != [path for status, path in checked if status != EntryStatus.DELETED]:
            raise CorruptMetadata(location, "two decoders read different entries")
        return found

    def read_list(self, snapshot: Snapshot) -> Sequence[ManifestFile]:
        """Return a snapshot's manifests from the files as they are now, whatever is kept of them.

        Raises:
            CorruptMetadata: the manifest list is not one.
            InvalidLocation, FileMissing, FilesUnavailable: the manifest list cannot be read.
        """
        self._check_lists(snapshot)
        with _corrupt_if_invalid(snapshot.manifest_list or Location("")):
            return self._source_without_cache(self._read).manifests(snapshot)

    def _columns(self, manifest: ManifestFile) -> tuple[ManifestColumns, bytes]:
        """Return a manifest's entries and the bytes that they were read from."""
        check_location(self._catalog, manifest.manifest_path, "manifest")
        contents: list[bytes] = []

        def read(wanted: Location) -> bytes:
            contents.append(self._read(wanted))
            return contents[-1]

        # Both decoders read the same bytes, which are fetched once.
        return self._source_without_cache(read).columns(manifest), contents[0]

    def _source_without_cache(self, read: Callable[[Location], bytes]) -> FileManifestSource:
        none_kept = ManifestCache(0, self._catalog.server.manifest_cache.max_file_bytes)
        return FileManifestSource(self._files, none_kept, read)
