"""Which store a location belongs to: one FileIO for all schemes of a warehouse."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Mapping

from app.engine.model.ids import Location
from app.errors import InvalidLocation
from app.fileio.files import FileIO, ListedFile
from app.fileio.local import LocalFiles
from app.fileio.locations import scheme_of
from app.fileio.memory import SHARED

_Opener = Callable[[Mapping[str, str]], FileIO]

_LOCAL = LocalFiles()

_OPENERS: dict[str, _Opener] = {
    "file": lambda _: _LOCAL,
    "memory": lambda _: SHARED,
}


class SchemedFiles:
    """A FileIO that hands each location to the store its scheme names, opened when first needed."""

    def __init__(self, storage: Mapping[str, str]) -> None:
        self._storage = storage
        self._stores: dict[str, FileIO] = {}
        self._lock = threading.Lock()

    def read(self, location: Location) -> bytes:
        return self._store(location).read(location)

    def write_new(self, location: Location, content: bytes) -> None:
        self._store(location).write_new(location, content)

    def delete(self, location: Location) -> None:
        self._store(location).delete(location)

    def exists(self, location: Location) -> bool:
        return self._store(location).exists(location)

    def list_files(self, prefix: Location) -> Iterator[ListedFile]:
        return self._store(prefix).list_files(prefix)

    def _store(self, location: Location) -> FileIO:
        # The key is the text up to the first colon, whatever it is: cheap, and right for every scheme seen
        # before.
        store = self._stores.get("file" if location[:1] == "/" else location.partition(":")[0])
        return store if store is not None else self._open(location)

    def _open(self, location: Location) -> FileIO:
        scheme = scheme_of(location)
        opener = _OPENERS.get(scheme)
        if opener is None:
            raise InvalidLocation(
                f"No store for scheme {scheme!r}: {location}; known are {', '.join(sorted(_OPENERS))}"
            )
        with self._lock:
            if scheme not in self._stores:
                self._stores[scheme] = opener(self._storage)
            return self._stores[scheme]


def files_for(storage: Mapping[str, str]) -> FileIO:
    """Return the files that storage settings give access to: the same object for the same settings."""
    return _files_for(tuple(sorted(storage.items())))


@functools.lru_cache(maxsize=256)
def _files_for(storage: tuple[tuple[str, str], ...]) -> SchemedFiles:
    return SchemedFiles(dict(storage))
