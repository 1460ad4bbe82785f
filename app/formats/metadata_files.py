"""Metadata files of tables and views: read, checked, and kept in memory within a byte budget."""

from __future__ import annotations

import gzip
import time
import zlib

from app import telemetry
from app.engine.model.ids import Location
from app.engine.model.table_metadata import TableMetadata, read_table_metadata
from app.engine.model.view_metadata import ViewMetadata, read_view_metadata
from app.errors import FileMissing, InvalidMetadata, MetadataFileMissing
from app.fileio.files import FileIO
from app.fileio.locations import scheme_of
from app.formats.caches import BoundedCache, ReadThroughCache
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

Metadata = TableMetadata | ViewMetadata


class MetadataFiles:
    """Reads metadata files by location.

    A metadata file never changes once written, so what is kept by location is right for ever, in any process.
    That a file vanished must still be noticed: before kept content is used, its presence is checked, on local
    disk each time, elsewhere when the last check is older than `recheck_ms`.
    """

    def __init__(self, max_bytes: int, recheck_ms: int) -> None:
        # JSON for answers and parsed metadata for commits are kept apart: a catalog that is mostly read
        # would otherwise spend its budget on parsed objects that nobody asks for.
        self._json: ReadThroughCache[bytes] = ReadThroughCache(max_bytes // 2)
        self._parsed: ReadThroughCache[Metadata] = ReadThroughCache(max_bytes - max_bytes // 2)
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

        def make() -> tuple[bytes, int]:
            metadata = self.read_table(files, location)
            made = (metadata.with_referenced_snapshots_only() if refs_only else metadata).to_json()
            return made, len(made)

        return self._json.find_or_read((location, refs_only), make)

    def read_table(self, files: FileIO, location: Location) -> TableMetadata:
        """Return a table's metadata.

        Raises:
            MetadataFileMissing: the file is gone.
            InvalidMetadata: the file is not table metadata.
            FilesUnavailable: the store does not answer.
        """
        kept = self._parsed.find(("table", location))
        if isinstance(kept, TableMetadata):
            self._check_present(files, location)
            _HITS.inc()
            return kept

        def parse() -> tuple[TableMetadata, int]:
            content = self._read(files, location)
            return read_table_metadata(content), len(content) * PARSED_WEIGHT

        return self._parsed.find_or_read(("table", location), parse)

    def read_view(self, files: FileIO, location: Location) -> ViewMetadata:
        """Return a view's metadata.

        Raises:
            MetadataFileMissing: the file is gone.
            InvalidMetadata: the file is not view metadata.
            FilesUnavailable: the store does not answer.
        """
        kept = self._parsed.find(("view", location))
        if isinstance(kept, ViewMetadata):
            self._check_present(files, location)
            _HITS.inc()
            return kept

        def parse() -> tuple[ViewMetadata, int]:
            content = self._read(files, location)
            return read_view_metadata(content), len(content) * PARSED_WEIGHT

        return self._parsed.find_or_read(("view", location), parse)

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
        is_table = isinstance(metadata, TableMetadata)
        self._parsed.put(("table" if is_table else "view", location), metadata, len(content) * PARSED_WEIGHT)
        if is_table:
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
