"""Commits that landed once, and whose snapshots are gone by now."""

from __future__ import annotations

from collections.abc import Sequence

from app.catalog.commits.files.expiry_records import ExpiryRecord
from app.catalog.commits.intentions import Base
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import M
from app.database.pointers.left_files import QueuedExpiry
from app.engine.change.landed_since import has_all_since
from app.engine.change.updates import AddSnapshot, Update
from app.engine.model.table_metadata import TableMetadata
from app.engine.model.view_metadata import ViewMetadata
from app.engine.retention.expired_snapshots import Expiry
from app.engine.retention.reachability import CleanupLevel, Expired
from app.errors import CommitStateUnknown


def check_never_landed(
    catalog: Catalog, base: Base[M], updates: Sequence[Update], *, is_refused: bool
) -> None:
    """Check that a commit has not landed earlier.

    A client that lost the answer sends its commit again. If its snapshot was expired meanwhile, later snapshots may
    still use its files, and a client that is refused deletes them; and landing again it would bring back a snapshot
    whose files are gone. A snapshot has been in the table if another one names it as its parent, or if a record says
    that it was removed.

    Args:
        is_refused: the commit cannot be applied. If it can, only snapshots numbered as if before others are asked for.

    Raises:
        CommitStateUnknown: it may have landed.
        DatabaseUnavailable: the records cannot be read.
    """
    current = base.metadata
    if base.seen is None or not isinstance(current, TableMetadata):
        return
    added = [update.snapshot for update in updates if isinstance(update, AddSnapshot)]
    asked = {
        item.snapshot_id
        for item in added
        if (is_refused or item.sequence <= current.last_sequence) and not has_all_since(current, item)
    }
    gone = asked - current.snapshots_by_id.keys()
    if not gone:
        return
    parents = {snapshot.parent_snapshot_id for snapshot in current.snapshots}
    for snapshot_id in sorted(gone):
        if snapshot_id in parents or catalog.server.file_deletions.has_expired(base.seen.uuid, snapshot_id):
            raise CommitStateUnknown(
                f"Cannot tell whether this commit has landed: {base.identifier} had snapshot {snapshot_id}, which has "
                "expired. Nothing was changed or deleted"
            )


def record_of_removal(
    before: TableMetadata | ViewMetadata | None, after: TableMetadata | ViewMetadata
) -> QueuedExpiry | None:
    """Return a record of the snapshots that a commit removes without deleting files."""
    if not isinstance(before, TableMetadata) or not isinstance(after, TableMetadata):
        return None
    ids = before.snapshots_by_id.keys() - after.snapshots_by_id.keys()
    if not ids:
        return None
    gone = tuple(item for item in before.snapshots if item.snapshot_id in ids)
    record = ExpiryRecord(None, CleanupLevel.NONE, None, Expired(gone, ()), Expiry(gone, ()))
    return QueuedExpiry(record.to_json(), None)
