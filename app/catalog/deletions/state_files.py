"""The files that a state of a table reaches, read from its manifests as they are now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from app.catalog.context.absent_stores import check_store_is_there
from app.catalog.context.catalog import Catalog
from app.catalog.manifests.table_manifests import CheckedManifests
from app.engine.model.files.manifests import ManifestFile
from app.engine.model.ids import Location
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.engine.retention.reachability import statistics_of
from app.errors import FileMissing

Found = TypeVar("Found")


@dataclass
class StateFiles:
    """Calls `note` with every file that states of tables reach; reads each manifest once."""

    note: Callable[[str], object]
    """Called with each location, once or more often; with that of a manifest before it is read."""
    _read: set[int] = field(default_factory=set)
    """Hashes of the manifests and lists that were read whole."""
    _stores: set[tuple[int, str]] = field(default_factory=set)
    """Folders from which files are gone, each with its warehouse, where the store is there."""

    def pass_over(self, catalog: Catalog, locations: Iterable[Location]) -> None:
        """Do not read these manifests and lists: it is known where they lead."""
        self._read.update(_key(catalog, location) for location in locations)

    def add(self, catalog: Catalog, metadata: TableMetadata, *, is_current: bool) -> None:
        """Note all that a state reaches.

        Args:
            catalog: the table's warehouse.
            metadata: the state.
            is_current: False if manifests and lists may be gone: these lead to no other file.

        Raises:
            FileMissing, InvalidLocation, CorruptMetadata, InvalidMetadata: a file of it cannot be read.
            FilesUnavailable: the store does not answer, or is not there.
        """
        for file in statistics_of(metadata):
            self.note(file.location)
        for entry in metadata.metadata_log:
            self.note(entry.metadata_file)
        for snapshot in metadata.snapshots:
            for part in _parts(snapshot):
                self.add_snapshot(catalog, part, is_current=is_current)

    def add_snapshot(self, catalog: Catalog, snapshot: Snapshot, *, is_current: bool) -> None:
        """Note all that a snapshot reaches; args and errors as those of `add`."""
        location = snapshot.manifest_list
        if location is not None:
            self.note(location)
            if _key(catalog, location) in self._read:
                return
        for path in snapshot.manifests or ():
            self.note(path)
        source = CheckedManifests(catalog, None)
        manifests = self._unless_missing(catalog, lambda: source.read_list(snapshot), is_current=is_current)
        is_whole = manifests is not None
        for manifest in manifests or ():
            is_whole &= self._add_manifest(catalog, manifest, is_current=is_current)
        if is_whole and location is not None:
            self._read.add(_key(catalog, location))

    def _add_manifest(self, catalog: Catalog, manifest: ManifestFile, *, is_current: bool) -> bool:
        self.note(manifest.manifest_path)
        key = _key(catalog, manifest.manifest_path)
        if key in self._read:
            return True
        paths = self._unless_missing(
            catalog, lambda: CheckedManifests(catalog, None).live_paths(manifest), is_current=is_current
        )
        if paths is None:
            return False
        for path in paths:
            self.note(path)
        self._read.add(key)
        return True

    def check_gone(self, catalog: Catalog, location: str) -> None:
        """Check that a file is gone that was not found.

        Raises:
            FilesUnavailable: its store is not there.
        """
        key = catalog.warehouse.id, location.rpartition("/")[0]
        if key not in self._stores:
            check_store_is_there(catalog, location)
            self._stores.add(key)

    def _unless_missing(
        self, catalog: Catalog, read: Callable[[], Found], *, is_current: bool
    ) -> Found | None:
        """Return what is read; None if an earlier state names a file that is gone."""
        try:
            return read()
        except FileMissing as error:
            if is_current:
                raise
            self.check_gone(catalog, error.location)
            return None


def _key(catalog: Catalog, location: Location) -> int:
    """Return a number for a file: two warehouses may have different files at one location."""
    return hash((catalog.warehouse.id, location))


def _parts(snapshot: Snapshot) -> Iterator[Snapshot]:
    """Yield a snapshot; one that names its manifests itself once for each.

    So a manifest that is gone hides no other.
    """
    if snapshot.manifest_list is not None or not snapshot.manifests:
        yield snapshot
        return
    for path in snapshot.manifests:
        yield snapshot.replace(manifests=(path,))
