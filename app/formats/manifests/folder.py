"""A folder on the local disk with copies of manifests and manifest lists of object stores.

Such files never change, so a copy is right for ever. Several processes may share a folder: a file is renamed into it
when it is complete, and it begins with its key and checksum; a file that breaks these rules counts as absent. Nothing
here has to survive: writes are not flushed, and a folder that cannot be used only causes a warning.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final
from uuid import uuid4

from app.engine.model.ids import Location
from app.fileio.locations import is_instant

log = logging.getLogger(__name__)

_MARK: Final = b"icetower manifest 1\n"
_DIGEST_BYTES: Final = hashlib.sha256().digest_size
_HEADER_BYTES: Final = len(_MARK) + 2 * _DIGEST_BYTES
_SUFFIX: Final = ".manifest"
_UNFINISHED_SUFFIX: Final = ".part"
_UNFINISHED_SECONDS: Final = 3600
"""Older unfinished files are left from a process that ended while it wrote."""
_LEFT_AFTER_CLEARING: Final = 0.9
_CLEARINGS: Final = 20
"""How often a folder is searched for old files while its whole budget is written once."""


class ManifestFolder:
    """Copies of files that were read, up to a number of bytes; those used longest ago go first."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._written_bytes = max_bytes  # so that the first write checks how much is there already
        self._is_unusable = False

    def reader(
        self, storage: Mapping[str, str], registration: int, read: Callable[[Location], bytes]
    ) -> Callable[[Location], bytes]:
        """Return a function that reads files of a store from here, or else with `read`.

        `storage` distinguishes stores: two may have different files at one location; so may one store before and after
        a table was registered.
        """
        store = json.dumps([dict(storage), registration], sort_keys=True).encode()

        def read_through(location: Location) -> bytes:
            if is_instant(location):  # As near as the folder: it is not copied.
                return read(location)
            key = hashlib.sha256(hashlib.sha256(store).digest() + location.encode()).digest()
            content = self._find(key)
            if content is None:
                content = read(location)
                self._keep(key, content)
            return content

        return read_through

    def _place_of(self, key: bytes) -> Path:
        name = key.hex()
        return self._path / name[:2] / f"{name}{_SUFFIX}"

    def _find(self, key: bytes) -> bytes | None:
        place = self._place_of(key)
        try:
            kept = place.read_bytes()
            content = kept[_HEADER_BYTES:]
            if kept[:_HEADER_BYTES] != _header(key, content):
                log.warning("manifest cache: %s is damaged", place)
                place.unlink(missing_ok=True)
                return None
            os.utime(place)  # its time of last use
        except FileNotFoundError:
            return None
        except OSError as error:
            self._warn(error)
            return None
        return content

    def _keep(self, key: bytes, content: bytes) -> None:
        size = _HEADER_BYTES + len(content)
        if size > self._max_bytes // 4:
            return
        place = self._place_of(key)
        unfinished = place.with_name(f"{uuid4().hex}{_UNFINISHED_SUFFIX}")
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            try:
                unfinished.write_bytes(_header(key, content) + content)
                unfinished.replace(place)
            finally:
                unfinished.unlink(missing_ok=True)
            self._count(size)
        except OSError as error:
            self._warn(error)

    def _count(self, size: int) -> None:
        with self._lock:
            self._written_bytes += size
            if self._written_bytes < self._max_bytes // _CLEARINGS:
                return
            self._written_bytes = 0
        self._clear()

    def _clear(self) -> None:
        """Delete what was used longest ago until there is room; other processes may do the same."""
        held = sorted(self._held())
        total = sum(size for _, size, _ in held)
        if total <= self._max_bytes:
            return
        for _, size, path in held:
            if total <= self._max_bytes * _LEFT_AFTER_CLEARING:
                return
            path.unlink(missing_ok=True)
            total -= size

    def _held(self) -> Iterator[tuple[float, int, Path]]:
        for path in self._path.glob("??/*"):
            try:
                status = path.stat()
                if path.suffix == _SUFFIX:
                    yield status.st_mtime, status.st_size, path
                elif (
                    path.suffix == _UNFINISHED_SUFFIX and status.st_mtime < time.time() - _UNFINISHED_SECONDS
                ):
                    path.unlink()
            except FileNotFoundError:
                continue

    def _warn(self, error: OSError) -> None:
        if not self._is_unusable:
            self._is_unusable = True
            log.warning("the manifest cache in %s cannot be used: %s", self._path, error)


def _header(key: bytes, content: bytes) -> bytes:
    return _MARK + key + hashlib.sha256(content).digest()
