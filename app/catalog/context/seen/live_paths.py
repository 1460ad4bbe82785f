"""Which files are live on a branch, or named by deletes: no append reads all manifests."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from app.engine.model.files.delete_files import referenced_path
from app.engine.model.files.entry_filters import entry_facts, live_paths
from app.engine.model.files.manifests import FileContent, ManifestContent, ManifestFile, ManifestSource
from app.engine.model.ids import Location
from app.engine.model.snapshot import Snapshot
from app.errors import CorruptMetadata, FileMissing
from app.fileio.locations import place_of
from app.formats.caches import BoundedCache

_BYTES_A_PATH: Final = 120
_BYTES_A_MANIFEST: Final = 800


@dataclass(slots=True)
class _Index:
    """The paths of one head: how often each is there, by the hash of its place."""

    manifests: dict[Location, ManifestFile] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


class LivePaths:
    """The live files of the branches that were appended to last, within a number of bytes.

    From one head to the next only the manifests are read that are in one of the two and not in the other. A table
    that is too large to be kept is read whole each time.
    """

    def __init__(self, max_bytes: int) -> None:
        self._indexes = BoundedCache[_Index](max_bytes)

    def at(
        self,
        branch: Hashable,
        source: ManifestSource,
        head: Snapshot | None,
        content: ManifestContent = ManifestContent.DATA,
    ) -> LiveFiles:
        """Return the live files of a head, or those that its deletes are about.

        Of the deletes, those count that are about one data file.

        Args:
            branch: names a branch of a table; another table of the same name must have another one.
            source: reads manifests.
            head: the newest snapshot of the branch, if there is one.
            content: of the manifests that are read.

        Raises:
            CorruptMetadata, InvalidLocation, FileMissing, FilesUnavailable: a manifest cannot be read.
        """
        if head is None:
            return LiveFiles(_Index(), source, ())
        manifests = [item for item in source.manifests(head) if item.content is content]
        key = branch, content
        index = self._indexes.find(key) or _Index()
        with index.lock:
            try:
                _advance_or_rebuild(index, source, manifests)
            except BaseException:
                # It may be half of one head and half of another.
                index.manifests.clear()
                index.counts.clear()
                self._indexes.forget(key)
                raise
            size_bytes = _BYTES_A_PATH * len(index.counts) + _BYTES_A_MANIFEST * len(index.manifests)
        self._indexes.put(key, index, size_bytes)
        return LiveFiles(index, source, manifests)


class LiveFiles:
    """The live files of one head; to be asked before the branch moves on."""

    def __init__(self, index: _Index, source: ManifestSource, manifests: Sequence[ManifestFile]) -> None:
        self._index = index
        self._source = source
        self._manifests = manifests

    def among(self, paths: Iterable[Location]) -> list[Location]:
        """Return which of some paths are live files; two spellings of one place are one file.

        Raises:
            CorruptMetadata, InvalidLocation, FileMissing, FilesUnavailable: a manifest cannot be read.
        """
        wanted = {place_of(path): path for path in paths}
        found = {place for place in wanted if hash(place) in self._index.counts}
        # Hashes of two places may be equal: the manifests decide.
        return (
            [wanted[place] for place in _surely_live(self._source, self._manifests, found)] if found else []
        )


def _paths_in(source: ManifestSource, manifest: ManifestFile) -> Iterator[Location]:
    entries = source.entries(manifest)
    if manifest.content is ManifestContent.DATA:
        return live_paths(entries)
    if all(file.content is FileContent.EQUALITY_DELETES for file in entry_facts(entries)):
        return iter(())  # without making objects of them, which there may be very many of
    named = (referenced_path(entry.file) for entry in entries if entry.is_live)
    return (path for path in named if path is not None)


def _advance_or_rebuild(index: _Index, source: ManifestSource, manifests: Sequence[ManifestFile]) -> None:
    if index.manifests:
        try:
            _advance(index, source, manifests)
        except (FileMissing, CorruptMetadata):
            # A manifest of the older head may have been deleted since; those of this one are all there is to know.
            index.manifests, index.counts = {}, {}
    _advance(index, source, manifests)


def _advance(index: _Index, source: ManifestSource, manifests: Sequence[ManifestFile]) -> None:
    """Make an index that of a head with these manifests."""
    now = {manifest.manifest_path: manifest for manifest in manifests}
    gone = [manifest for path, manifest in index.manifests.items() if path not in now]
    if len(gone) > len(manifests):
        index.manifests, index.counts, gone = {}, {}, []
    counts = index.counts
    for path, manifest in now.items():
        if path not in index.manifests:
            for file_path in _paths_in(source, manifest):
                key = hash(place_of(file_path))
                counts[key] = counts.get(key, 0) + 1
    for manifest in gone:
        for file_path in _paths_in(source, manifest):
            key = hash(place_of(file_path))
            left = counts.get(key, 0) - 1
            if left > 0:
                counts[key] = left
            else:
                counts.pop(key, None)
    index.manifests = now


def _surely_live(
    source: ManifestSource, manifests: Sequence[ManifestFile], places: set[Hashable]
) -> list[Hashable]:
    found = []
    for manifest in manifests:
        for file_path in _paths_in(source, manifest):
            if (place := place_of(file_path)) in places:
                places.discard(place)
                found.append(place)
        if not places:
            break
    return found
