"""A table as it was at a time, for clients that read it."""

from __future__ import annotations

from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES, Loaded, LoadedTable
from app.catalog.context.past_snapshots import check_snapshot_remains
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.settings.properties import GC_ENABLED


def load_as_it_was(catalog: Catalog, identifier: TableIdentifier, *, refs_only: bool = False) -> LoadedTable:
    """Return a table of a warehouse that is shown as it was.

    The metadata is that of its file but for one property: `gc.enabled` is false. All files written later look like
    orphans from there, and engines delete orphans without a commit that the catalog could refuse. With `refs_only`,
    snapshots that no ref names are left out.

    Raises:
        NoSuchTable: no table had this name.
        PastIsGone: it was there, and its metadata or the files of its snapshot are gone.
        CorruptMetadata, FilesUnavailable: its metadata cannot be read.
    """
    catalog.permit("load_table", identifier)
    pointer, metadata = catalog.read_now(TABLES, identifier)
    check_snapshot_remains(catalog, identifier, metadata)
    kept = metadata.model_copy(update={"properties": {**metadata.properties, GC_ENABLED: "false"}})
    content = (kept.with_referenced_snapshots_only() if refs_only else kept).to_json()
    return Loaded(identifier, pointer.metadata_location, kept, content, pointer.registration)
