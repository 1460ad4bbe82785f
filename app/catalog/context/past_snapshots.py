"""Whether the files of a table of the past are still there."""

from __future__ import annotations

from app.catalog.context.catalog import Catalog
from app.catalog.context.places.locations import is_allowed
from app.engine.model.data_types.moments import moment_text
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.table_metadata import TableMetadata
from app.recoveries import PastIsGone


def check_snapshot_remains(catalog: Catalog, identifier: TableIdentifier, metadata: TableMetadata) -> None:
    """Check that the current snapshot of a table of the past has not been deleted.

    What lies outside the warehouse is not looked at.

    Raises:
        PastIsGone: its manifest list is gone.
        FilesUnavailable: the store does not answer.
    """
    snapshot = metadata.current_snapshot
    if catalog.as_of_ms is None or snapshot is None or not snapshot.manifest_list:
        return
    if is_allowed(catalog, snapshot.manifest_list) and not catalog.files.exists(snapshot.manifest_list):
        raise PastIsGone(
            f"table {identifier} was at snapshot {snapshot.snapshot_id} at {moment_text(catalog.as_of_ms)}, but the "
            "files of that snapshot have been deleted since: it was expired, or the table was purged"
        )
