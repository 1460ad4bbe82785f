"""The profile of a table's columns, from manifests only."""

from __future__ import annotations

from typing import Final

from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.history import snapshot_named
from app.catalog.manifests.table_manifests import TableManifests
from app.catalog.upkeep.counted_files import read_ahead
from app.engine.health.column_profile import TableProfile, column_profiles
from app.engine.health.column_summary import ColumnSummaries
from app.engine.model.files.manifests import ManifestContent
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata

_BYTES_A_COLUMN: Final = 1_500
_BYTES_A_PROFILE: Final = 1_000


def load_profile(catalog: Catalog, identifier: TableIdentifier, wanted: str | None = None) -> TableProfile:
    """Return what the manifests of a snapshot say of its columns.

    Args:
        catalog: the warehouse, for one caller.
        identifier: the table.
        wanted: a snapshot's id, a branch or a tag; None for the current snapshot. A snapshot is shown with the columns
            that it was written with, the current one with those that the table has now.

    Raises:
        NoSuchTable: no table has this name.
        NoSuchSnapshot: the table does not have it.
        MetadataFileMissing, CorruptMetadata, InvalidLocation, FileMissing, FilesUnavailable: the metadata, a manifest
            list or a manifest cannot be read.
    """
    catalog.permit("load_profile", identifier)
    pointer, metadata = catalog.read_now(TABLES, identifier)
    snapshot = metadata.current_snapshot if wanted is None else snapshot_named(metadata, wanted)

    def read() -> tuple[TableProfile, int]:
        profile = _profile(catalog, metadata, snapshot, is_named=wanted is not None)
        return profile, _BYTES_A_PROFILE + _BYTES_A_COLUMN * len(profile.columns)

    snapshot_id = None if snapshot is None else snapshot.snapshot_id
    of_pointer = catalog.files, pointer.id, pointer.metadata_location, pointer.registration
    key = (*of_pointer, snapshot_id, wanted is None)
    return catalog.server.table_profiles.find_or_read(key, read)


def _profile(
    catalog: Catalog, metadata: TableMetadata, snapshot: Snapshot | None, *, is_named: bool
) -> TableProfile:
    schema = metadata.schema_of(snapshot) if snapshot is not None and is_named else metadata.current_schema
    source = TableManifests(catalog, metadata)
    manifests = [] if snapshot is None else source.manifests(snapshot)
    live = [manifest for manifest in manifests if manifest.may_have_live_files]
    data = [manifest for manifest in live if manifest.content is ManifestContent.DATA]
    summaries = ColumnSummaries(schema)
    for unpacked in read_ahead(catalog, source, data):
        for metrics in source.live_metrics(unpacked):
            summaries.add(metrics)
    return TableProfile(
        snapshot_id=None if snapshot is None else snapshot.snapshot_id,
        data_files=summaries.files,
        rows=summaries.rows,
        delete_files=sum(
            # Where a writer has not counted them, there is one at least.
            1 if manifest.live_files is None else manifest.live_files
            for manifest in live
            if manifest.content is ManifestContent.DELETES
        ),
        columns=column_profiles(schema, summaries, metadata.properties),
    )
