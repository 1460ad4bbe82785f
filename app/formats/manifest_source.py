"""Where manifests come from: files in a store, kept parsed in memory within a byte budget."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from app.engine.model.ids import Location
from app.engine.model.manifests import ManifestEntry, ManifestFile
from app.engine.model.snapshot import Snapshot
from app.errors import InvalidMetadata
from app.fileio.files import FileIO
from app.formats.manifest_columns import ManifestColumns
from app.formats.manifest_headers import unlisted_manifest
from app.formats.manifest_lists import read_manifest_list
from app.formats.metadata_files import BoundedCache

MAX_MANIFEST_BYTES: Final = 512 << 20
"""A manifest that says it is larger is not even fetched."""
_LISTED_BYTES: Final = 700
_SUMMARY_BYTES: Final = 250

Value = TypeVar("Value")


class ManifestCache:
    """Parsed manifest lists and manifests. Such a file never changes, so what is kept of it is right for ever.

    One for the whole process; safe to use from many threads, of which only one reads a file while others wait for it.
    """

    def __init__(self, max_bytes: int) -> None:
        self._kept: BoundedCache[Any] = BoundedCache(max_bytes)
        self._being_read: dict[Hashable, Future[Any]] = {}
        self._lock = threading.Lock()

    @property
    def held_bytes(self) -> int:
        return self._kept.held_bytes

    def find_or_read(self, key: Hashable, read: Callable[[], tuple[Value, int]]) -> Value:
        """Return what is kept under a key; else what `read` answers with its size in bytes, or raises."""
        kept: Value | None = self._kept.find(key)
        if kept is not None:
            return kept
        with self._lock:
            reading = self._being_read.get(key)
            is_ours = reading is None
            if reading is None:
                reading = self._being_read[key] = Future()
        if not is_ours:
            shared: Value = reading.result()
            return shared
        try:
            value, size_bytes = read()
        except BaseException as error:
            reading.set_exception(error)
            raise
        else:
            self._kept.put(key, value, size_bytes)
            reading.set_result(value)
            return value
        finally:
            with self._lock:
                del self._being_read[key]


class FileManifestSource:
    """A `ManifestSource` that reads files. Many of them, over different stores, may share one cache."""

    def __init__(self, files: FileIO, cache: ManifestCache) -> None:
        self._files = files
        self._cache = cache

    def manifests(self, snapshot: Snapshot) -> Sequence[ManifestFile]:
        location = snapshot.manifest_list
        if location is None:
            return [self._unlisted(Location(path)) for path in snapshot.manifests or ()]

        def read() -> tuple[tuple[ManifestFile, ...], int]:
            listed = read_manifest_list(self._files.read(location), location)
            summaries = sum(len(manifest.partitions or ()) for manifest in listed)
            return listed, _LISTED_BYTES * len(listed) + _SUMMARY_BYTES * summaries

        return self._cache.find_or_read((self._files, location), read)

    def entries(self, manifest: ManifestFile) -> Sequence[ManifestEntry]:
        return self.columns(manifest)

    def columns(self, manifest: ManifestFile) -> ManifestColumns:
        """Return a manifest's entries as columns; raises like `entries`."""
        if manifest.manifest_length > MAX_MANIFEST_BYTES:
            raise InvalidMetadata(
                f"Cannot read manifest {manifest.manifest_path}: with {manifest.manifest_length} bytes "
                f"it is larger than {MAX_MANIFEST_BYTES}"
            )

        def read() -> tuple[ManifestColumns, int]:
            columns = ManifestColumns(manifest, self._files.read(manifest.manifest_path))
            return columns, columns.size_bytes

        # Summaries do not change what is read, and a key without them is quick to compare.
        key = (
            self._files,
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
        return self._cache.find_or_read(key, read)

    def _unlisted(self, location: Location) -> ManifestFile:
        def read() -> tuple[ManifestFile, int]:
            return unlisted_manifest(self._files.read(location), location), _LISTED_BYTES

        return self._cache.find_or_read((self._files, location, "unlisted"), read)
