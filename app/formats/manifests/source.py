"""Where manifests come from: files in a store, kept parsed in memory within a byte budget."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any, Final

from app.engine.model.files.entry_filters import FileColumns
from app.engine.model.files.manifests import EntryStatus, ManifestEntry, ManifestFile
from app.engine.model.ids import Location, SnapshotId
from app.engine.model.snapshot import Snapshot
from app.errors import InvalidMetadata
from app.fileio.files import FileIO
from app.fileio.wanted import check_wanted
from app.formats.bounds import MAX_FILE_BYTES, read_bounded, too_large
from app.formats.caches import BoundedCache, ReadThroughCache
from app.formats.manifests.columns import ManifestColumns
from app.formats.manifests.headers import unlisted_manifest
from app.formats.manifests.lists import KnownLines, read_manifest_list
from app.formats.manifests.live_columns import UnpackedManifest

_SUMMARIES: Final = attrgetter("partitions")
_LISTED_BYTES: Final = 1_000
"""With its line as it was packed last."""
_SUMMARY_BYTES: Final = 250
_LINE_BYTES: Final = 600
"""What a line of a list takes besides itself, if it is kept to read another list."""
_SHARE_OF_FILES: Final = 8
"""Columns of files get one part in so many of a cache's size."""
_WORTH_KEEPING: Final = 8
"""Shorter lists are read as fast without the lines of another one."""


class ManifestCache(ReadThroughCache[Any]):
    """Parsed manifest lists and manifests of a whole process, over all its stores.

    Such a file never changes, so its cached content is right for ever.
    """

    def __init__(self, max_bytes: int, max_file_bytes: int = MAX_FILE_BYTES) -> None:
        """Keep so many bytes; no file is read that has more than `max_file_bytes`, unpacked."""
        for_files = max_bytes // _SHARE_OF_FILES
        super().__init__(max_bytes - for_files)
        self.max_file_bytes = max_file_bytes
        self.files = BoundedCache[FileColumns](for_files)
        """The columns of files that scans have asked for."""


class FileManifestSource:
    """A `ManifestSource` that reads files. Many of them, over different stores, may share one cache."""

    def __init__(
        self,
        files: FileIO,
        cache: ManifestCache,
        read: Callable[[Location], bytes] | None = None,
        registration: int = 0,
    ) -> None:
        """Read what the cache lacks, with `read` if it is given, else from `files`.

        Args:
            files: where the manifests are.
            cache: what is known of them; its limit holds.
            read: reads a file of at most the cache's `max_file_bytes`.
            registration: of the table; what the cache knows under another one is not believed.
        """
        self._files = files
        self._store = files, registration
        self._cache = cache
        self._max_file_bytes = cache.max_file_bytes
        self._read = read or partial(read_bounded, files, max_bytes=cache.max_file_bytes)

    def manifests(self, snapshot: Snapshot) -> Sequence[ManifestFile]:
        location = snapshot.manifest_list
        if location is None:
            return [self._unlisted(Location(path)) for path in snapshot.manifests or ()]

        def read() -> tuple[tuple[ManifestFile, ...], int]:
            known = self._cache.find(self._key_of_lines(location))
            lines = read_manifest_list(self._read(location), location, self._max_file_bytes, known)
            return self._keep_lines(location, lines)

        return self._cache.find_or_read((self._store, location), read)

    def keep_list(self, location: Location, lines: KnownLines) -> None:
        """Keep a manifest list that has just been written, as a reader would find it."""
        listed, size = self._keep_lines(location, lines)
        self._cache.put((self._store, location), listed, size)

    def _keep_lines(self, location: Location, lines: KnownLines) -> tuple[tuple[ManifestFile, ...], int]:
        """Keep the lines of a list for the next one, and return its manifests and their size."""
        listed = tuple(lines.values)
        size = _size_of_list(listed)
        if len(listed) >= _WORTH_KEEPING:
            size_of_lines = size + len(lines.content) + _LINE_BYTES * len(listed)
            self._cache.put(self._key_of_lines(location), lines, size_of_lines)
        return listed, size

    def _key_of_lines(self, location: Location) -> Hashable:
        """Return where the lines of the last list are kept: most of a list is the list before it."""
        return self._store, location.rpartition("/")[0], "lines"

    def keep_listed(self, was: ManifestFile, now: ManifestFile) -> None:
        """Keep a manifest's entries as another list names it, if they are at hand; nothing is read."""
        columns = self._cache.find(self._key_of(was))
        if columns is not None:
            found = columns.listed_as(now)
            self._cache.put(self._key_of(now), found, found.size_bytes)

    def entries(self, manifest: ManifestFile) -> Sequence[ManifestEntry]:
        return self.columns(manifest)

    def columns(self, manifest: ManifestFile) -> ManifestColumns:
        """Return a manifest's entries as columns; raises like `entries`."""
        check_wanted()
        self._check_length(manifest)

        def read() -> tuple[ManifestColumns, int]:
            content = self._read(manifest.manifest_path)
            columns = ManifestColumns(manifest, content, self._max_file_bytes, self._cache.files)
            return columns, columns.size_bytes

        return self._cache.find_or_read(self._key_of(manifest), read)

    def unpacked(self, manifest: ManifestFile) -> UnpackedManifest:
        """Return a manifest whose live files can be counted; it is read anew, and not kept.

        Raises:
            InvalidMetadata: the manifest is not one, or too large; names the file.
            FileMissing: the manifest is gone.
            FilesUnavailable: the store does not answer; safe to try again.
        """
        self._check_length(manifest)
        return UnpackedManifest(manifest, self._read(manifest.manifest_path), self._max_file_bytes)

    def unread_lists(self, snapshot: Snapshot) -> list[Location]:
        """Return the files that `manifests` would have to read now."""
        location = snapshot.manifest_list
        if location is not None:
            return [] if self._cache.find((self._store, location)) is not None else [location]
        return [
            Location(path)
            for path in snapshot.manifests or ()
            if self._cache.find((self._store, path, "unlisted")) is None
        ]

    def is_at_hand(self, manifest: ManifestFile) -> bool:
        """Return whether a manifest's entries are in the cache."""
        return self._cache.find(self._key_of(manifest)) is not None

    def _check_length(self, manifest: ManifestFile) -> None:
        if manifest.manifest_length > self._max_file_bytes:
            raise too_large(
                f"Cannot read manifest {manifest.manifest_path}: with {manifest.manifest_length} bytes "
                f"it is larger than {self._max_file_bytes}"
            )

    def _key_of(self, manifest: ManifestFile) -> Hashable:
        # Summaries do not change what is read, and a key without them is quick to compare.
        return (
            self._store,
            manifest.manifest_path,
            manifest.manifest_length,
            manifest.partition_spec_id,
            manifest.content,
            manifest.sequence_number,
            manifest.added_snapshot_id,
            manifest.added_files_count,
            manifest.existing_files_count,
            manifest.first_row_id,
        )

    def _unlisted(self, location: Location) -> ManifestFile:
        def read() -> tuple[ManifestFile, int]:
            content = self._read(location)
            manifest = unlisted_manifest(content, location, self._max_file_bytes)
            with suppress(InvalidMetadata):  # Reading its entries says what is wrong.
                manifest = replace(manifest, added_snapshot_id=self._writer_of(manifest, content))
            return manifest, _LISTED_BYTES

        return self._cache.find_or_read((self._store, location, "unlisted"), read)

    def _writer_of(self, manifest: ManifestFile, content: bytes) -> SnapshotId | None:
        """Return the snapshot that wrote a manifest, as its entries say; None if it kept them all."""
        entries = ManifestColumns(manifest, content, self._max_file_bytes)
        changed = (entry.snapshot_id for entry in entries if entry.status is not EntryStatus.EXISTING)
        return next(changed, None)


def _size_of_list(manifests: Sequence[ManifestFile]) -> int:
    """Return about how much memory a manifest list takes."""
    summaries = sum(map(len, filter(None, map(_SUMMARIES, manifests))))
    return _LISTED_BYTES * len(manifests) + _SUMMARY_BYTES * summaries
