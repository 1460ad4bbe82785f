"""Metadata files of tables and views: read, checked, and cached within a byte budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeVar

import orjson

from app import telemetry
from app.engine.model.ids import Location, TableUuid
from app.engine.model.registrations import is_read_only
from app.engine.model.settings.properties import GC_ENABLED, SCAN_PLANNING_MODE
from app.engine.model.table_metadata import TableMetadata, read_table_metadata
from app.engine.model.view_metadata import ViewMetadata, read_view_metadata
from app.errors import FileMissing, InvalidMetadata, MetadataFileMissing
from app.fileio.files import FileIO, is_near
from app.fileio.locations import is_instant
from app.formats.bounds import MAX_FILE_BYTES, check_json, pack, read_bounded, unpack
from app.formats.caches import BoundedCache, ReadThroughCache
from app.formats.metadata.names import is_gzipped

PARSED_WEIGHT = 12
"""Parsed metadata takes about this many times the memory of its JSON (measured: 10 to 14)."""
_LARGEST_SHARE = 0.75
"""Of its cache one table may take so much: a long history takes a hundred times longer to read than to keep."""
_HITS = telemetry.METADATA_READS.labels(cache="hit")
_MISSES = telemetry.METADATA_READS.labels(cache="miss")

Metadata = TableMetadata | ViewMetadata


@dataclass(frozen=True, slots=True)
class MetadataJson:
    """A table's metadata as compact JSON, with a version of its content.

    Attributes:
        scan_planning_mode: the property that clients are given apart from the metadata, if the table has it.
    """

    content: bytes
    version: str
    scan_planning_mode: str | None = None

    @staticmethod
    def of(metadata: TableMetadata, content: bytes, registration: int) -> MetadataJson:
        """Return the JSON with its version: a digest of megabytes would cost more than all else."""
        version = f"{metadata.uuid} {registration} {metadata.last_updated_ms} {len(content)}"
        return MetadataJson(content, version, metadata.properties.get(SCAN_PLANNING_MODE))


M = TypeVar("M", TableMetadata, ViewMetadata)
Value = TypeVar("Value")


class MetadataFiles:
    """Reads metadata files of stores by location.

    Files that this catalog wrote never change, so what is kept of them is right for ever, in any process. It is kept
    by store, location, uuid and registration: two warehouses may have equal roots in two stores, and a file that
    another catalog wrote may be replaced before it is registered again; each registration has a number of its own,
    which the pointer carries to all servers. What is read-only here has `gc.enabled=false`. A file may also vanish:
    before kept content is used, its presence is checked, on local disk each time, elsewhere when the last check is
    older than `recheck_ms`.
    """

    def __init__(self, max_bytes: int, recheck_ms: int, max_file_bytes: int = MAX_FILE_BYTES) -> None:
        """Keep so many bytes; no file of more than `max_file_bytes` is read or written."""
        # JSON for answers and parsed metadata for commits are kept apart: a catalog that is mostly read would
        # otherwise spend its budget on parsed objects that no request needs.
        self._json: ReadThroughCache[MetadataJson] = ReadThroughCache(max_bytes // 2, _LARGEST_SHARE)
        self._parsed: ReadThroughCache[Metadata] = ReadThroughCache(
            max_bytes - max_bytes // 2, _LARGEST_SHARE
        )
        self._seen: BoundedCache[float] = BoundedCache(4 << 20)
        self._recheck_s = recheck_ms / 1000
        self._max_file_bytes = max_file_bytes

    def find_json(
        self,
        files: FileIO,
        location: Location,
        uuid: TableUuid,
        registration: int,
        *,
        refs_only: bool,
    ) -> MetadataJson | None:
        """Return kept JSON without waiting for a network; None when it must be loaded first.

        Raises:
            MetadataFileMissing: the file is gone.
        """
        if not self.is_seen_at_once(files, location):
            return None
        key = (files, location, uuid, registration, refs_only)
        return self._find(self._json, key, files, location)

    def table_json(
        self,
        files: FileIO,
        location: Location,
        uuid: TableUuid,
        registration: int,
        *,
        refs_only: bool = False,
    ) -> MetadataJson:
        """Return a table's metadata as compact JSON.

        With `refs_only`, snapshots that no ref names are left out.

        Raises:
            MetadataFileMissing: the file is gone, or another table's is in its place.
            InvalidMetadata: the file is not table metadata.
            FilesUnavailable: the store does not answer.
        """

        def make() -> tuple[MetadataJson, int]:
            metadata = self.read_table(files, location, uuid, registration)
            made = (metadata.with_referenced_snapshots_only() if refs_only else metadata).to_json()
            return MetadataJson.of(metadata, made, registration), len(made)

        key = (files, location, uuid, registration, refs_only)
        kept = self._find(self._json, key, files, location)
        return self._json.find_or_read(key, make) if kept is None else kept

    def read_table(
        self, files: FileIO, location: Location, uuid: TableUuid | None = None, registration: int = 0
    ) -> TableMetadata:
        """Return a table's metadata.

        Args:
            uuid: the table's, as its pointer has it; without it the file is read anew.
            registration: the pointer's.

        Raises:
            MetadataFileMissing: the file is gone, or another table's is in its place.
            InvalidMetadata: the file is not table metadata.
            FilesUnavailable: the store does not answer.
        """

        def parsed(content: bytes) -> TableMetadata:
            return read_table_metadata(content).registered_as(registration)

        return self._read_parsed(files, location, uuid, registration, TableMetadata, parsed)

    def read_view(
        self, files: FileIO, location: Location, uuid: TableUuid | None = None, registration: int = 0
    ) -> ViewMetadata:
        """Return a view's metadata; `uuid` and `registration` as for a table.

        Raises:
            MetadataFileMissing: the file is gone, or another view's is in its place.
            InvalidMetadata: the file is not view metadata.
            FilesUnavailable: the store does not answer.
        """
        return self._read_parsed(files, location, uuid, registration, ViewMetadata, read_view_metadata)

    def read_either(self, files: FileIO, location: Location) -> Metadata:
        """Return what a metadata file holds, be it of a table or of a view; nothing of it is kept.

        Raises:
            MetadataFileMissing: no file is there.
            InvalidMetadata: the file is neither.
            FilesUnavailable: the store does not answer.
        """
        content = self._read(files, location)
        try:
            return read_table_metadata(content)
        except InvalidMetadata:
            if b'"view-uuid"' not in content:
                raise
        return read_view_metadata(content)

    def write(self, files: FileIO, location: Location, content: bytes) -> None:
        """Write a new metadata file durably; it is compressed if its name says so.

        Raises:
            InvalidMetadata: it is too large to be read again.
            FilesUnavailable: the store does not answer, or refuses.
        """
        files.write_new(location, self.packed(location, content))

    def packed(self, location: Location, content: bytes) -> bytes:
        """Return what a metadata file at a location has to hold.

        Raises:
            InvalidMetadata: it is too large to be read again.
        """
        check_json(content, self._max_file_bytes)
        return pack(content, self._max_file_bytes) if is_gzipped(location) else content

    def identify(self, files: FileIO, location: Location) -> tuple[TableUuid, int]:
        """Return the uuid in a file that other writers own, and a number of its content.

        With the number as registration, what is kept of the file is right even if it was replaced since. A file that
        is no metadata has no uuid; reading it says why.

        Raises:
            MetadataFileMissing: no file is there.
            FilesUnavailable: the store does not answer.
        """
        try:
            content = self._read(files, location)
            document = orjson.loads(content)
        except (InvalidMetadata, orjson.JSONDecodeError):
            return TableUuid(""), 1
        uuid = document.get("table-uuid") if isinstance(document, dict) else None
        number = int.from_bytes(blake2b(content, digest_size=8).digest()) >> 2
        return TableUuid(uuid if isinstance(uuid, str) else ""), number + 1

    def keep(
        self, files: FileIO, location: Location, metadata: Metadata, content: bytes, registration: int
    ) -> None:
        """Remember a file that was just written and is now pointed to."""
        key = (files, type(metadata), location, metadata.uuid, registration)
        self._parsed.put(key, metadata, len(content) * PARSED_WEIGHT)
        if isinstance(metadata, TableMetadata):
            metadata.registered_as(registration)
            made = MetadataJson.of(metadata, content, registration)
            self._json.put((files, location, metadata.uuid, registration, False), made, len(content))
        self._mark_seen(files, location)

    def _read_parsed(
        self,
        files: FileIO,
        location: Location,
        uuid: TableUuid | None,
        registration: int,
        kind: type[M],
        parsed_from: Callable[[bytes], M],
    ) -> M:
        def parse() -> tuple[M, int]:
            content = self._read(files, location)
            parsed = parsed_from(content)
            if uuid is not None and parsed.uuid != uuid:
                raise MetadataFileMissing(location, f": uuid {parsed.uuid} is there by now, not {uuid}")
            if is_read_only(registration):
                # Clients that delete files themselves ask this property first.
                parsed = parsed.replace(properties={**parsed.properties, GC_ENABLED: "false"})
            return parsed, len(content) * PARSED_WEIGHT

        if uuid is None:
            return parse()[0]
        key = (files, kind, location, uuid, registration)
        kept = self._find(self._parsed, key, files, location)
        return kept if isinstance(kept, kind) else self._parsed.find_or_read(key, parse)

    def _find(
        self, cache: BoundedCache[Value], key: Hashable, files: FileIO, location: Location
    ) -> Value | None:
        """Return what is kept of a file; None if nothing is.

        Raises:
            MetadataFileMissing: the file is gone.
        """
        kept = cache.find(key)
        if kept is not None:
            self.check_present(files, location)
            _HITS.inc()
        return kept

    def _read(self, files: FileIO, location: Location) -> bytes:
        _MISSES.inc()
        try:
            content = read_bounded(files, location, self._max_file_bytes)
        except FileMissing as error:
            raise MetadataFileMissing(location) from error
        if content[:2] == b"\x1f\x8b" or is_gzipped(location):
            content = unpack(content, self._max_file_bytes)
        check_json(content, self._max_file_bytes)
        self._mark_seen(files, location)
        return content

    def is_seen_at_once(self, files: FileIO, location: Location) -> bool:
        """Say whether `check_present` waits for no network.

        It does not where the file is on this machine, or was seen just now.
        """
        return is_near(files, location) or self._recently_seen(files, location)

    def check_present(self, files: FileIO, location: Location) -> None:
        """Check that a file is there.

        Raises:
            MetadataFileMissing: the file is gone.
            FilesUnavailable: the store does not answer.
        """
        if not is_instant(location) and self._recently_seen(files, location):
            return
        if not files.exists(location):
            raise MetadataFileMissing(location)
        self._mark_seen(files, location)

    def _recently_seen(self, files: FileIO, location: Location) -> bool:
        seen_s = self._seen.find((files, location))
        return seen_s is not None and time.monotonic() - seen_s < self._recheck_s

    def _mark_seen(self, files: FileIO, location: Location) -> None:
        if not is_instant(location):
            self._seen.put((files, location), time.monotonic(), 200 + len(location))
