"""Where manifests come from: files in a store, kept parsed in memory within a byte budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from app.engine.model.ids import Location, SpecId
from app.engine.model.manifests import ManifestEntry, ManifestFile
from app.engine.model.snapshot import Snapshot
from app.fileio.files import FileIO
from app.formats.manifest_lists import read_manifest_list
from app.formats.manifests import read_manifest
from app.formats.metadata_files import BoundedCache

_PARSED_WEIGHT = 12


class ManifestCache:
    """Parsed manifest lists and manifests: such files never change, so what is kept is right for ever."""

    def __init__(self, max_bytes: int) -> None:
        self._kept: BoundedCache[Any] = BoundedCache(max_bytes)

    @property
    def held_bytes(self) -> int:
        return self._kept.held_bytes

    def find(self, key: object) -> Any:
        return self._kept.find(key)  # type: ignore[arg-type]

    def put(self, key: object, value: Any, size_bytes: int) -> None:
        self._kept.put(key, value, size_bytes)  # type: ignore[arg-type]


class FileManifestSource:
    """A `ManifestSource` that reads files. Many of them may share one cache."""

    def __init__(self, files: FileIO, cache: ManifestCache) -> None:
        self._files = files
        self._cache = cache

    def manifests(self, snapshot: Snapshot) -> Sequence[ManifestFile]:
        if snapshot.manifest_list is None:
            return [
                ManifestFile(Location(path), 0, SpecId(0), added_snapshot_id=snapshot.snapshot_id)
                for path in snapshot.manifests or ()
            ]
        key = (self._files, snapshot.manifest_list)
        kept: tuple[ManifestFile, ...] | None = self._cache.find(key)
        if kept is None:
            content = self._files.read(snapshot.manifest_list)
            kept = read_manifest_list(content, snapshot.manifest_list)
            self._cache.put(key, kept, len(content) * _PARSED_WEIGHT)
        return kept

    def entries(self, manifest: ManifestFile) -> Sequence[ManifestEntry]:
        # Counts and summaries do not change what is read, but would not hash cheaply.
        key = (self._files, replace(manifest, partitions=None))
        kept: tuple[ManifestEntry, ...] | None = self._cache.find(key)
        if kept is None:
            content = self._files.read(manifest.manifest_path)
            kept = read_manifest(content, manifest)
            self._cache.put(key, kept, len(content) * _PARSED_WEIGHT)
        return kept
