"""Which store a location belongs to: one FileIO for all schemes of a warehouse."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Mapping

from app.engine.model.ids import Location
from app.errors import InvalidLocation
from app.fileio import adls, gcs, hdfs, s3
from app.fileio.bounded_reads import read_at_most
from app.fileio.circuit import ANSWER_SECONDS
from app.fileio.failures import opening_failure
from app.fileio.files import FileIO, ListedFile
from app.fileio.local import LocalFiles
from app.fileio.locations import scheme_of
from app.fileio.memory import SHARED
from app.fileio.object_store import ObjectStore
from app.fileio.punctual_store import PunctualStore
from app.fileio.storage_settings import check_names, read_environment

_Opener = Callable[[Mapping[str, str]], FileIO | ObjectStore]


def _open_local(_: Mapping[str, str]) -> FileIO:
    return LocalFiles()


def _open_memory(_: Mapping[str, str]) -> FileIO:
    return SHARED


_OPENERS: dict[str, _Opener] = {
    "file": _open_local,
    "memory": _open_memory,
    "s3": s3.open_s3,
    "s3a": s3.open_s3,
    "s3n": s3.open_s3,
    "gs": gcs.open_gcs,
    "abfs": adls.open_adls,
    "abfss": adls.open_adls,
    "wasb": adls.open_adls,
    "wasbs": adls.open_adls,
    "hdfs": hdfs.open_hdfs,
}

KNOWN_SCHEMES = frozenset(_OPENERS)

_SETTINGS = s3.SETTINGS | gcs.SETTINGS | adls.SETTINGS | hdfs.SETTINGS


class SchemedFiles:
    """A FileIO that gives each location to the store of its scheme, opened at first use."""

    def __init__(self, storage: Mapping[str, str], answer_s: float, local_roots: tuple[str, ...]) -> None:
        self._storage = storage
        self._roots = local_roots
        self._answer_s = answer_s
        self._stores: dict[str, FileIO] = {}
        self._opened: dict[_Opener, FileIO] = {}
        self._lock = threading.Lock()

    def read(self, location: Location) -> bytes:
        return self._store(location).read(location)

    def read_at_most(self, location: Location, max_bytes: int) -> bytes | None:
        return read_at_most(self._store(location), location, max_bytes)

    def write_new(self, location: Location, content: bytes) -> None:
        self._store(location).write_new(location, content)

    def delete(self, location: Location) -> None:
        self._store(location).delete(location)

    def exists(self, location: Location) -> bool:
        return self._store(location).exists(location)

    def list_files(self, prefix: Location) -> Iterator[ListedFile]:
        return self._store(prefix).list_files(prefix)

    def _store(self, location: Location) -> FileIO:
        # The text up to the first colon: cheap, and right for every scheme seen before.
        store = self._stores.get("file" if location[:1] == "/" else location.partition(":")[0])
        return store if store is not None else self._open(location)

    def _open(self, location: Location) -> FileIO:
        scheme = scheme_of(location)
        opener = _OPENERS.get(scheme)
        if opener is None:
            known = ", ".join(_OPENERS)
            raise InvalidLocation(f"No store for scheme {scheme!r}: {location}; known are {known}")
        with self._lock:
            if opener not in self._opened:
                store = _open_translated(opener, self._storage, location)
                if scheme == "file":
                    store = LocalFiles(self._roots)
                elif isinstance(store, ObjectStore):
                    store = PunctualStore(store, self._answer_s)
                self._opened[opener] = store
            self._stores[scheme] = self._opened[opener]
            return self._stores[scheme]


def files_for(
    storage: Mapping[str, str], answer_s: float = ANSWER_SECONDS, local_roots: tuple[str, ...] = ()
) -> FileIO:
    """Return the files of these storage settings: the same object for the same settings.

    A store is opened when its first location is used; until then only the names of its settings are checked.

    Args:
        storage: a warehouse's storage settings.
        answer_s: how long a store over a network may take for one small file.
        local_roots: folders that no symbolic link may lead out of.

    Raises:
        InvalidSetting: a setting of no store, or an environment variable that is not set.
    """
    check_names(storage, _SETTINGS)
    return _files_for(tuple(sorted(read_environment(storage).items())), answer_s, local_roots)


@functools.lru_cache(maxsize=256)
def _files_for(
    storage: tuple[tuple[str, str], ...], answer_s: float, local_roots: tuple[str, ...]
) -> SchemedFiles:
    return SchemedFiles(dict(storage), answer_s, local_roots)


def _open_translated(opener: _Opener, storage: Mapping[str, str], location: Location) -> FileIO | ObjectStore:
    try:
        return opener(storage)
    except (OSError, ValueError, OverflowError, ImportError) as error:
        raise opening_failure(scheme_of(location), storage, error) from error
