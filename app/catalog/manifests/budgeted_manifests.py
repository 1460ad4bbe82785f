"""A table's manifests within a commit's reading budget, from the shared cache if possible."""

from __future__ import annotations

from collections.abc import Sequence

from app.catalog.context.catalog import Catalog
from app.catalog.context.places.locations import check_location
from app.catalog.context.registrations import registration_of
from app.catalog.manifests.table_manifests import FindStaged
from app.engine.model.files.manifests import ManifestEntry, ManifestFile
from app.engine.model.ids import Location
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.fileio.bounded_reads import read_at_most
from app.formats.avro import cost_within
from app.formats.bounds import read_bounded
from app.formats.manifests.source import FileManifestSource

MOST_LOOKS = 20
"""How often one commit may ask a store whether a file exists: each time is a request."""


class BudgetedTableManifests:
    """`BudgetedManifests` for one commit, with all its tables and attempts.

    With the server's own keys nothing is read that the warehouse may not use. What is read stays in the cache: the
    next commit compares with this list, and the next query plans with these manifests.
    """

    def __init__(self, catalog: Catalog, max_bytes: int) -> None:
        """Allow so many bytes."""
        self._catalog = catalog
        self._files = catalog.files
        self._source = self._source_under(0)
        self._left_bytes = max_bytes
        self._left_looks = MOST_LOOKS
        self._fetched: dict[Location, bytes] = {}
        self._find_staged: FindStaged = _nothing

    def of(self, table: TableMetadata, staged: FindStaged | None) -> BudgetedTableManifests:
        """Return the same, for the manifests of a table; what is `staged` costs nothing."""
        self._find_staged = staged or _nothing
        self._source = self._source_under(registration_of(self._catalog, table))
        return self

    def _source_under(self, registration: int) -> FileManifestSource:
        cache = self._catalog.server.manifest_cache
        return FileManifestSource(self._files, cache, self._fetched_or_read, registration)

    def manifests(self, snapshot: Snapshot) -> Sequence[ManifestFile] | None:
        """Return a snapshot's manifests, or None when the budget is used up.

        Raises:
            InvalidMetadata: the manifest list is not one.
            InvalidLocation, FileMissing, FilesUnavailable: the manifest list cannot be read.
        """
        for location in self._source.unread_lists(snapshot):
            check_location(self._catalog, location, "manifest list")
            if not self._fetch(location):
                return None
        return self._source.manifests(snapshot)

    def entries(self, manifest: ManifestFile) -> Sequence[ManifestEntry] | None:
        """Return a manifest's entries, or None when the budget is used up.

        Raises:
            InvalidMetadata: the manifest is not one, or contradicts the list.
            InvalidLocation, FileMissing, FilesUnavailable: the manifest cannot be read.
        """
        if not self._source.is_at_hand(manifest):
            check_location(self._catalog, manifest.manifest_path, "manifest")
            # The list has the size, so most that do not fit are not read; if the size is wrong, the store has it.
            if manifest.manifest_length > self._left_bytes or not self._fetch(manifest.manifest_path):
                return None
        return self._source.entries(manifest)

    def exists(self, location: Location) -> bool | None:
        """Say whether a file exists; None when the number of requests is used up.

        Raises:
            InvalidLocation: it is outside the warehouse.
            FilesUnavailable: the store does not answer.
        """
        check_location(self._catalog, location, "manifest")
        if self._find_staged(location) is not None:
            return True
        if not self._left_looks:
            return None
        self._left_looks -= 1
        return self._files.exists(location)

    def _fetch(self, location: Location) -> bool:
        """Read a file if it fits into the budget. Not inside the cache: its other readers have no budget."""
        if self._find_staged(location) is not None:
            return True
        content = read_at_most(self._files, location, self._left_bytes)
        if content is None:
            return False
        cost_bytes = cost_within(content, self._left_bytes)
        if cost_bytes is None:
            # What was spent to find that out is not known: up to all that was left.
            self._left_bytes = 0
            return False
        self._left_bytes -= cost_bytes
        self._fetched[location] = content
        return True

    def _fetched_or_read(self, location: Location) -> bytes:
        content = self._find_staged(location) or self._fetched.pop(location, None)
        if content is not None:
            return content
        return read_bounded(self._files, location, self._catalog.server.manifest_cache.max_file_bytes)


def _nothing(_location: Location) -> bytes | None:
    return None
