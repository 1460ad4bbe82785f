"""Metadata files of tables and views: read, checked, and kept in memory within a byte budget."""

from __future__ import annotations

import gzip
import threading
import time
import zlib
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

from app import telemetry
from app.engine.model.ids import Location
from app.engine.model.table_metadata import TableMetadata, read_table_metadata
from app.engine.model.view_metadata import ViewMetadata, read_view_metadata
from app.errors import FileMissing, InvalidMetadata, MetadataFileMissing
from app.fileio.files import FileIO
from app.fileio.locations import scheme_of
from app.formats.metadata_names import is_gzipped

MAX_METADATA_BYTES = 1 << 30
"""A metadata file that is larger, also once unpacked, is refused: it would take the server down."""
UNSUSPICIOUS_BYTES = 64 << 20
MAX_GZIP_RATIO = 100
"""Metadata shrinks to a tenth or a twentieth; what unpacks to more than this and is large was made to harm."""
PARSED_WEIGHT = 12
"""Parsed metadata takes about this many times the memory of its JSON (measured: 10 to 14)."""
_HITS = telemetry.METADATA_READS.labels(cache="hit")
_MISSES = telemetry.METADATA_READS.labels(cache="miss")
_INSTANT_SCHEMES = frozenset({"file", "memory"})

Value = TypeVar("Value")
Metadata = TableMetadata | ViewMetadata


class BoundedCache(Generic[Value]):
    """The values used last, up to a number of bytes; safe to use from many threads."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._held_bytes = 0
        self._values: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def held_bytes(self) -> int:
        return self._held_bytes

    def find(self, key: Hashable) -> Value | None:
        """Return the value and count it as used now."""
        with self._lock:
            found = self._values.get(key)
            if found is None:
                return None
            self._values.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: Value, size_bytes: int) -> None:
        """Keep a value, forgetting those used longest ago; one over a quarter of the budget is not kept."""
        if size_bytes > self._max_bytes // 4:
            return
        with self._lock:
            previous = self._values.pop(key, None)
            if previous is not None:
                self._held_bytes -= previous[1]
            self._values[key] = (value, size_bytes)
            self._held_bytes += size_bytes
            while self._held_bytes > self._max_bytes:
                _, (_, forgotten_bytes) = self._values.popitem(last=False)
                self._held_bytes -= forgotten_bytes

    def forget(self, key: Hashable) -> None:
        """Drop a value if it is there."""
        with self._lock:
            found = self._values.pop(key, None)
            if found is not None:
                self._held_bytes -= found[1]


class MetadataFiles:
    """Reads metadata files by location.

    A metadata file never changes once written, so what is kept by location is right for ever, in any process.
    That a file vanished must still be noticed: before kept content is used, its presence is checked, on local
    disk each time, elsewhere when the last check is older than `recheck_ms`.
    """

    def __init__(self, max_bytes: int, recheck_ms: int) -> None:
        # JSON for answers and parsed metadata for commits are kept apart: a catalog that is mostly read
        # would otherwise spend its budget on parsed objects that nobody asks for.
        self._json: BoundedCache[bytes] = BoundedCache(max_bytes // 2)
        self._parsed: BoundedCache[Metadata] = BoundedCache(max_bytes - max_bytes // 2)
        self._seen: BoundedCache[float] = BoundedCache(4 << 20)
        self._recheck_s = recheck_ms / 1000

    def find_json(self, files: FileIO, location: Location, *, refs_only: bool = False) -> bytes | None:
        """Return kept JSON without waiting for a network; None when it must be loaded first."""
        if scheme_of(location) not in _INSTANT_SCHEMES and not self._recently_seen(location):
            return None
        content = self._json.find((location, refs_only))
        if content is None:
            return None
        self._check_present(files, location)
        _HITS.inc()
        return content

    def table_json(self, files: FileIO, location: Location, *, refs_only: bool = False) -> bytes:
        """Return a table's metadata as compact JSON; with `refs_only` without snapshots that no ref names.

        Raises:
            MetadataFileMissing: the file is gone.
            InvalidMetadata: the file is not table metadata.
            FilesUnavailable: the store does not answer.
        """
        content = self._json.find((location, refs_only))
        if content is not None:
            self._check_present(files, location)
            _HITS.inc()
            return content
        metadata = self.read_table(files, location)
        content = (metadata.with_referenced_snapshots_only() if refs_only else metadata).to_json()
        self._json.put((location, refs_only), content, len(content))
        return content

    def read_table(self, files: FileIO, location: Location) -> TableMetadata:
        """Return a table's metadata.

        Raises:
            MetadataFileMissing: the file is gone.
            InvalidMetadata: the file is not table metadata.
            FilesUnavailable: the store does not answer.
        """
        kept = self._parsed.find(location)
        if isinstance(kept, TableMetadata):
            self._check_present(files, location)
            _HITS.inc()
            return kept
        content = self._read(files, location)
        metadata = read_table_metadata(content)
        self._parsed.put(location, metadata, len(content) * PARSED_WEIGHT)
        return metadata

    def read_view(self, files: FileIO, location: Location) -> ViewMetadata:
        """Return a view's metadata.

        Raises:
            MetadataFileMissing: the file is gone.
            InvalidMetadata: the file is not view metadata.
            FilesUnavailable: the store does not answer.
        """
        kept = self._parsed.find(location)
        if isinstance(kept, ViewMetadata):
            self._check_present(files, location)
            _HITS.inc()
            return kept
        content = self._read(files, location)
        metadata = read_view_metadata(content)
        self._parsed.put(location, metadata, len(content) * PARSED_WEIGHT)
        return metadata

    def write(self, files: FileIO, location: Location, content: bytes) -> None:
        """Write a new metadata file durably; it is compressed if its name says so.

        Raises:
            FilesUnavailable: the store does not answer, or refuses.
        """
        files.write_new(
            location, gzip.compress(content, compresslevel=6, mtime=0) if is_gzipped(location) else content
        )

    def keep(self, location: Location, metadata: Metadata, content: bytes) -> None:
        """Remember a file that was just written and is now pointed to."""
        self._parsed.put(location, metadata, len(content) * PARSED_WEIGHT)
        if isinstance(metadata, TableMetadata):
            self._json.put((location, False), content, len(content))
        self._mark_seen(location)

    def _read(self, files: FileIO, location: Location) -> bytes:
        _MISSES.inc()
        try:
            content = files.read(location)
        except FileMissing as error:
            raise MetadataFileMissing(location) from error
        if content[:2] == b"\x1f\x8b" or is_gzipped(location):
            content = _unpacked(content)
        if len(content) > MAX_METADATA_BYTES:
            raise InvalidMetadata(f"Metadata file {location} is larger than {MAX_METADATA_BYTES} bytes")
        self._mark_seen(location)
        return content

    def _check_present(self, files: FileIO, location: Location) -> None:
        if scheme_of(location) not in _INSTANT_SCHEMES and self._recently_seen(location):
            return
        if not files.exists(location):
            raise MetadataFileMissing(location)
        self._mark_seen(location)

    def _recently_seen(self, location: Location) -> bool:
        seen_s = self._seen.find(location)
        return seen_s is not None and time.monotonic() - seen_s < self._recheck_s

    def _mark_seen(self, location: Location) -> None:
        if scheme_of(location) not in _INSTANT_SCHEMES:
            self._seen.put(location, time.monotonic(), 200 + len(location))


def _unpacked(content: bytes) -> bytes:
    """Unpack gzip, but not without end: a small file can unpack to any size."""
    limit = min(MAX_METADATA_BYTES, max(UNSUSPICIOUS_BYTES, MAX_GZIP_RATIO * len(content)))
    unpacker = zlib.decompressobj(wbits=31)
    try:
        unpacked = unpacker.decompress(content, limit + 1)
    except zlib.error as error:
        raise InvalidMetadata(f"The file is named as gzip but cannot be unpacked: {error}") from error
    if len(unpacked) > limit:
        raise InvalidMetadata(f"The file is gzip and unpacks to more than {limit} bytes")
    if not unpacker.eof:
        raise InvalidMetadata("The file is gzip but ends too early")
    if unpacker.unused_data:
        raise InvalidMetadata("The file is gzip with something else behind it")
    return unpacked
