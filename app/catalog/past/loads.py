"""A table as it was at a time, for clients that read it."""

from __future__ import annotations

from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES, Loaded, LoadedTable
from app.catalog.context.moments import moment_text
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.properties import GC_ENABLED
from app.recoveries import PastIsGone


def load_as_it_was(catalog: Catalog, identifier: TableIdentifier) -> LoadedTable:
    """Return a table of a warehouse that is shown as it was.

    The metadata is that of its file but for one property: `gc.enabled` is false. All files written later look like
    orphans from there, and engines delete orphans without a commit that the catalog could refuse.

    Raises:
        NoSuchTable: no table had this name.
        PastIsGone: it was there, and its metadata or the files of its snapshot are gone.
        CorruptMetadata, FilesUnavailable: its metadata cannot be read.
    """
    catalog.permit("load_table", identifier)
    pointer, metadata = catalog.read_now(TABLES, identifier)
    snapshot = metadata.current_snapshot
    if snapshot is not None and snapshot.manifest_list and not catalog.files.exists(snapshot.manifest_list):
        assert catalog.as_of_ms is not None
        raise PastIsGone(
            f"table {identifier} was at snapshot {snapshot.snapshot_id} at {moment_text(catalog.as_of_ms)}, but the "
            "files of that snapshot have been deleted since: it was expired, or the table was purged"
        )
    kept = metadata.model_copy(update={"properties": {**metadata.properties, GC_ENABLED: "false"}})
    return Loaded(identifier, pointer.metadata_location, kept, kept.to_json(), pointer.registration)
