"""Which store a location belongs to: one FileIO for all schemes of a warehouse."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator, Mapping

from app.engine.model.ids import Location
from app.errors import InvalidLocation, InvalidSetting
from app.fileio.bounded_reads import read_at_most
from app.fileio.failures import not_opened
from app.fileio.files import FileIO, ListedFile
from app.fileio.local import LocalFiles
from app.fileio.locations import flaw_of, scheme_of
from app.fileio.memory import SHARED
from app.fileio.network.circuit import ANSWER_SECONDS
from app.fileio.storage_settings import (
    ALLOWED_LOCATIONS,
    StorageEnvironment,
    StorageSettings,
    check_names,
    check_stores,
    further_roots,
)
from app.fileio.tails import Tail, read_tail
from app.fileio.trees import FileTree, FolderEntry, tree_of

_NETWORK = ("s3", "s3a", "s3n", "gs", "abfs", "abfss", "wasb", "wasbs", "hdfs")
KNOWN_SCHEMES = ("file", "memory", *_NETWORK)

_NO_ENVIRONMENT = StorageEnvironment()


class SchemedFiles:
    """A FileIO that gives each location to the store of its scheme, opened at first use."""

    def __init__(self, settings: StorageSettings, answer_s: float, local_roots: tuple[str, ...]) -> None:
        self._settings = settings
        self._roots = local_roots
        self._answer_s = answer_s
        self._stores: dict[str, FileIO] = {}
        self._lock = threading.Lock()

    def read(self, location: Location) -> bytes:
        return self._store(location).read(location)

    def read_at_most(self, location: Location, max_bytes: int) -> bytes | None:
        return read_at_most(self._store(location), location, max_bytes)

    def read_tail(self, location: Location, most_bytes: int) -> Tail:
        return read_tail(self._store(location), location, most_bytes)

    def write_new(self, location: Location, content: bytes) -> None:
        self._store(location).write_new(location, content)

    def delete(self, location: Location) -> None:
        self._store(location).delete(location)

    def delete_empty_folder(self, location: Location) -> bool:
        return self._store(location).delete_empty_folder(location)

    def exists(self, location: Location) -> bool:
        return self._store(location).exists(location)

    def is_near(self, location: Location) -> bool:
        store = self._store(location)
        return not isinstance(store, LocalFiles) or store.is_near(location)

    def find_file(self, location: Location) -> ListedFile | None:
        return self._store(location).find_file(location)

    def list_files(self, prefix: Location) -> Iterator[ListedFile]:
        return self._store(prefix).list_files(prefix)

    def write_once(self, location: Location, content: bytes) -> None:
        self._tree(location).write_once(location, content)

    def check_writes_once(self, location: Location) -> None:
        self._tree(location).check_writes_once(location)

    def replace(self, location: Location, content: bytes) -> None:
        self._tree(location).replace(location, content)

    def list_folder(self, location: Location) -> list[FolderEntry] | None:
        return self._tree(location).list_folder(location)

    def create_folder(self, location: Location) -> None:
        self._tree(location).create_folder(location)

    def remove_folder(self, location: Location) -> bool:
        return self._tree(location).remove_folder(location)

    def _tree(self, location: Location) -> FileTree:
        return tree_of(self._store(location), location)

    def _store(self, location: Location) -> FileIO:
        # The text up to the first colon: cheap, and right for every scheme seen before.
        store = self._stores.get("file" if location[:1] == "/" else location.partition(":")[0])
        return store if store is not None else self._open(location)

    def _open(self, location: Location) -> FileIO:
        scheme = scheme_of(location)
        if scheme not in KNOWN_SCHEMES:
            known = ", ".join(KNOWN_SCHEMES)
            raise InvalidLocation(f"No store for scheme {scheme!r}: {location}; known are {known}")
        with self._lock:
            if scheme not in self._stores:
                try:
                    self._stores[scheme] = self._opened(scheme, location)
                except InvalidSetting as error:
                    raise not_opened(error) from error
            return self._stores[scheme]

    def _opened(self, scheme: str, location: Location) -> FileIO:
        if scheme == "file":
            return LocalFiles(self._roots)
        if scheme == "memory":
            return SHARED
        from app.fileio.network import network_stores

        opener = network_stores.OPENERS[scheme]
        for other, store in self._stores.items():
            if network_stores.OPENERS.get(other) is opener:
                return store
        return network_stores.open_store(location, self._settings, self._answer_s)


def files_for(
    storage: Mapping[str, str],
    environment: StorageEnvironment = _NO_ENVIRONMENT,
    answer_s: float = ANSWER_SECONDS,
    local_roots: tuple[str, ...] = (),
) -> FileIO:
    """Return the files of these storage settings: the same object for the same settings.

    A store is opened when its first location is used; until then only the names of its settings are checked.

    Args:
        storage: the settings; `env:NAME` stands for the value of an environment variable.
        environment: which variables these may be.
        answer_s: how long a store over a network may take for one small file.
        local_roots: folders that no symbolic link may lead out of.

    Raises:
        InvalidSetting: a setting of no store, or an environment variable that may not be read or is not set.
    """
    if storage:
        from app.fileio.network import network_stores

        check_names(storage, network_stores.SETTINGS)
    settings = environment.read(storage)
    values = tuple(sorted(settings.values.items()))
    return _files_for(values, settings.from_environment, answer_s, local_roots)


def flaw_of_root(location: str) -> str | None:
    """Return why files of a warehouse cannot lie below a location; None if they can."""
    flaw = flaw_of(location)
    if flaw is None and scheme_of(location) not in KNOWN_SCHEMES:
        return f"known schemes are {', '.join(sorted(KNOWN_SCHEMES))}"
    return flaw


def check_storage(
    root: str, storage: Mapping[str, str], environment: StorageEnvironment = _NO_ENVIRONMENT
) -> None:
    """Check a warehouse's storage settings as far as that needs no answer of its store.

    Raises:
        InvalidSetting: they make no sense; as `files_for`.
        InvalidLocation: they are of another store than the warehouse's root.
    """
    if not storage and scheme_of(root) != "hdfs":
        return  # there is nothing to check that would be worth loading the stores
    from app.fileio.network import network_stores

    check_stores(storage, network_stores.SETTINGS)
    for location in further_roots(storage):
        if flaw := flaw_of_root(location):
            raise InvalidSetting(f"Storage setting {ALLOWED_LOCATIONS} has {location[:200]!r}: {flaw}")
    environment = environment.for_root(root)
    files_for(storage, environment)
    network_stores.check_settings(root, environment.read(storage))


@functools.lru_cache(maxsize=256)
def _files_for(
    values: tuple[tuple[str, str], ...],
    from_environment: frozenset[str],
    answer_s: float,
    local_roots: tuple[str, ...],
) -> SchemedFiles:
    return SchemedFiles(StorageSettings(dict(values), from_environment), answer_s, local_roots)
