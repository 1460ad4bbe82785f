"""Partition statistics: counted from manifests, written as a file, and named by the table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import orjson

from app.catalog.commits.files.staged_files import StagedFiles
from app.catalog.commits.intentions import Base, Intention, Planned
from app.catalog.commits.landing import land_one
from app.catalog.commits.plans import load_base
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.context.places.file_names import new_content_uuid
from app.catalog.context.recorded_places import RecordedPlace
from app.catalog.manifests.table_manifests import TableManifests, readable_or_refused
from app.catalog.upkeep.readable_manifests import readable_manifests
from app.engine.branches.ref_changes import snapshot_by_id
from app.engine.change.apply import apply_updates
from app.engine.change.updates import SetPartitionStatistics
from app.engine.model.files.entry_filters import entry_facts
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location, SnapshotId
from app.engine.model.statistics import PartitionStatisticsFile
from app.engine.model.table_metadata import TableMetadata
from app.engine.partition_statistics.counts import CountedPartitions, PartitionCount, unified_fields
from app.errors import CommitStateUnknown, CorruptTable, IcetowerError, InvalidRequest, NoSuchSnapshot
from app.formats.metadata.names import metadata_folder
from app.formats.parquet.partition_statistics import write_partition_statistics

_ATTEMPTS: Final = 5
"""How often the current snapshot is counted anew because it has gone."""


@dataclass(frozen=True, slots=True)
class WrittenStatistics:
    """Partition statistics that were written, or would be."""

    snapshot_id: SnapshotId
    partitions: int
    file: PartitionStatisticsFile | None
    """None in a preview."""

    def facts(self, location: Location | None, *, dry_run: bool) -> dict[str, Any]:
        """Return them by the names of the answer, with where the table's metadata is then."""
        facts: dict[str, Any] = {
            "dry-run": dry_run,
            "metadata-location": location,
            "snapshot-id": self.snapshot_id,
            "partitions": self.partitions,
        }
        if self.file is not None:
            facts["statistics-path"] = self.file.statistics_path
            facts["file-size-in-bytes"] = self.file.file_size_in_bytes
        return facts


@dataclass(frozen=True)
class NamePartitionStatistics(Intention[TableMetadata, WrittenStatistics]):
    """The entry of a statistics file in a table's metadata."""

    identifier: TableIdentifier
    uuid: str
    written: WrittenStatistics
    kind = TABLES

    def require(self, base: Base[TableMetadata]) -> bool:
        """Check that the table still has the snapshot.

        Raises:
            NoSuchTable, NoSuchSnapshot: it is gone.
            InvalidRequest: another table has the name now.
        """
        metadata = base.present()
        if metadata.uuid != self.uuid:
            raise InvalidRequest(f"{self.identifier} was replaced by another table meanwhile")
        snapshot_by_id(metadata, self.written.snapshot_id)
        return True

    def apply(
        self, catalog: Catalog, base: Base[TableMetadata], _files: StagedFiles
    ) -> Planned[TableMetadata, WrittenStatistics]:
        """Name the file."""
        assert self.written.file is not None
        updates = [SetPartitionStatistics(partition_statistics=self.written.file)]
        draft = apply_updates(base.present(), updates, catalog.now_ms())
        return Planned(draft.finish(base.stored_at), self.written, updates=updates)

    def remembered_as(
        self,
        at: RecordedPlace,
        *,
        changed: bool,  # noqa: ARG002 - it always changes something
        detail: WrittenStatistics | None,
    ) -> str:
        """Return the answer itself: the file may be replaced when it is asked for again."""
        assert detail is not None
        return orjson.dumps(detail.facts(at.location, dry_run=False)).decode()


def preview_partition_statistics(
    catalog: Catalog, identifier: TableIdentifier, snapshot_id: SnapshotId | None
) -> tuple[WrittenStatistics, Location]:
    """Return of how many partitions statistics would be written; nothing is written.

    Raises:
        NoSuchTable, NoSuchSnapshot: there is no such table or snapshot.
        InvalidRequest: the table is not partitioned, its specs contradict each other, or it has no snapshot.
        NotSupported: the table is encrypted.
        MetadataFileMissing, CorruptMetadata, FilesUnavailable: the metadata or a manifest cannot be read.
    """
    catalog.permit("write_partition_statistics", identifier)
    base = load_base(catalog, TABLES, identifier)
    wanted, counts = _counted(catalog, identifier, base.present(), snapshot_id)
    assert base.seen is not None
    return WrittenStatistics(wanted, len(counts), None), base.seen.metadata_location


def write_statistics_of_partitions(
    catalog: Catalog, identifier: TableIdentifier, snapshot_id: SnapshotId | None
) -> tuple[WrittenStatistics, Location]:
    """Write the statistics of a snapshot's partitions, and let the table name them.

    Raises:
        NoSuchTable, NoSuchSnapshot: there is no such table or snapshot.
        InvalidRequest: the table is not partitioned, its specs contradict each other, or it has no snapshot.
        NotSupported: the table is encrypted.
        PointerMoved: other commits won every attempt.
        CommitStateUnknown: the database did not answer; the file stays.
        CommitRefused: a manifest list or a manifest is damaged or gone.
        MetadataFileMissing, CorruptMetadata, FilesUnavailable: the metadata cannot be read.
        CorruptTable: partition values or counts do not fit the statistics file.
    """
    catalog.permit("write_partition_statistics", identifier)
    for left in reversed(range(_ATTEMPTS)):
        try:
            return _write(catalog, identifier, snapshot_id)
        except NoSuchSnapshot:
            # What was the current snapshot may have been replaced and expired meanwhile.
            if snapshot_id is not None or not left:
                raise
    raise AssertionError


def _write(
    catalog: Catalog, identifier: TableIdentifier, snapshot_id: SnapshotId | None
) -> tuple[WrittenStatistics, Location]:
    base = load_base(catalog, TABLES, identifier)
    metadata = base.present()
    with readable_or_refused(identifier):
        wanted, counts = _counted(catalog, identifier, metadata, snapshot_id)
    try:
        content = write_partition_statistics(counts, unified_fields(metadata), metadata.format_version)
    except ValueError as error:
        raise CorruptTable(metadata.location, str(error)) from error
    folder = metadata_folder(metadata.location, metadata.properties)
    path = Location(
        f"{folder}/partition-stats-{wanted}-{new_content_uuid(catalog.server, metadata.uuid, folder)}.parquet"
    )
    files = StagedFiles(catalog, remembers_contents=False)
    try:
        files.write(path, content)
        catalog.server.step("statistics_stored")
        file = PartitionStatisticsFile(
            snapshot_id=wanted, statistics_path=path, file_size_in_bytes=len(content)
        )
        written = WrittenStatistics(wanted, len(counts), file)
        landed = land_one(catalog, NamePartitionStatistics(identifier, metadata.uuid, written))
    except CommitStateUnknown:
        raise  # It may have landed, so the file stays.
    except IcetowerError:
        files.discard()
        raise
    assert landed.loaded.location is not None
    return written, landed.loaded.location


def _counted(
    catalog: Catalog,
    identifier: TableIdentifier,
    metadata: TableMetadata,
    snapshot_id: SnapshotId | None,
) -> tuple[SnapshotId, list[PartitionCount]]:
    try:
        fields = unified_fields(metadata)
    except ValueError as error:
        raise InvalidRequest(f"Cannot write partition statistics of {identifier}: {error}") from error
    if not fields:
        raise InvalidRequest(f"Cannot write partition statistics of {identifier}: it has no partition fields")
    current = metadata.current_snapshot
    snapshot = current if snapshot_id is None else snapshot_by_id(metadata, snapshot_id)
    if snapshot is None:
        raise InvalidRequest(f"Cannot write partition statistics of {identifier}: it has no current snapshot")
    listed = readable_manifests(catalog, identifier, metadata, snapshot, "count partitions of")
    source = TableManifests(catalog, metadata)
    counts = CountedPartitions(metadata, fields)
    for manifest in listed:
        try:
            counts.note(manifest.partition_spec_id, entry_facts(source.entries(manifest)))
        except ValueError as error:
            raise InvalidRequest(f"Cannot write partition statistics of {identifier}: {error}") from error
    return snapshot.snapshot_id, counts.in_order()
