"""Files in this process's memory: for tests and for trying things out."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

from app.engine.model.ids import Location
from app.errors import FileExists, FileMissing
from app.fileio.files import ListedFile
from app.fileio.tails import Tail


class MemoryFiles:
    """A FileIO in memory; any scheme will do, and locations compare byte by byte."""

    def __init__(self, now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000) -> None:
        self._now_ms = now_ms
        self._files: dict[Location, tuple[bytes, int]] = {}
        self._lock = threading.Lock()

    def read(self, location: Location) -> bytes:
        try:
            return self._files[location][0]
        except KeyError:
            raise FileMissing(location) from None

    def read_at_most(self, location: Location, max_bytes: int) -> bytes | None:
        content = self.read(location)
        return content if len(content) <= max_bytes else None

    def read_tail(self, location: Location, most_bytes: int) -> Tail:
        content = self.read(location)
        return Tail(len(content), content[max(0, len(content) - most_bytes) :])

    def write_new(self, location: Location, content: bytes) -> None:
        entry = (bytes(content), self._now_ms())
        with self._lock:
            if location in self._files:
                raise FileExists(location)
            self._files[location] = entry

    def delete(self, location: Location) -> None:
        with self._lock:
            self._files.pop(location, None)

    def delete_empty_folder(self, location: Location) -> bool:  # noqa: ARG002 - there are no folders
        return False

    def exists(self, location: Location) -> bool:
        return location in self._files

    def find_file(self, location: Location) -> ListedFile | None:
        found = self._files.get(location)
        return None if found is None else ListedFile(location, len(found[0]), found[1])

    def list_files(self, prefix: Location) -> Iterator[ListedFile]:
        start = prefix if prefix.endswith("/") else prefix + "/"
        with self._lock:
            found = [(where, *entry) for where, entry in self._files.items() if where.startswith(start)]
        for location, content, modified_ms in found:
            yield ListedFile(location, len(content), modified_ms)


SHARED = MemoryFiles()
"""What `memory://` locations name: one store for the whole process."""
