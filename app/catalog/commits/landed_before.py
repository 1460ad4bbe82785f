"""Commits that landed once, and whose snapshots are gone by now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain

from app.catalog.commits.files.expiry_records import ExpiryRecord
from app.catalog.commits.intentions import Base
from app.catalog.context.catalog import Catalog, own_catalog
from app.catalog.context.kinds import TABLES, M
from app.catalog.context.places.locations import is_allowed
from app.database.pointer_states import EarlierState
from app.database.pointers.history import PointerEvent
from app.database.pointers.left_files import QueuedExpiry
from app.database.pointers.pointer import PointerKind
from app.engine.change.landed_since import has_all_since
from app.engine.change.updates import AddSnapshot, SetSnapshotRef, Update
from app.engine.model.ancestry import is_ancestor
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import TableUuid
from app.engine.model.table_metadata import TableMetadata
from app.engine.model.view_metadata import ViewMetadata
from app.engine.retention.expired_snapshots import Expiry
from app.engine.retention.reachability import CleanupLevel, Expired
from app.errors import (
    CommitStateUnknown,
    CorruptMetadata,
    InvalidMetadata,
    MetadataFileMissing,
    NoSuchWarehouse,
)
from app.fileio.wanted import check_wanted

MOST_NAMES = 10
"""At how many tables of one uuid is looked."""
EVENTS_LOOKED_THROUGH, EVENTS_A_PAGE = 1_000, 50


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
    # What was registered may be older than what the table was before: its numbers were given twice.
    is_registered = bool(base.seen.registration)
    gone = {
        item.snapshot_id
        for item in added
        if (is_refused or item.sequence <= current.last_sequence)
        and item.snapshot_id not in current.snapshots_by_id
        and (is_registered or not has_all_since(current, item))
    }
    if not gone:
        return
    parents = {snapshot.parent_snapshot_id for snapshot in current.snapshots}
    for snapshot_id in sorted(gone):
        if snapshot_id in parents or catalog.server.file_deletions.has_expired(base.seen.uuid, snapshot_id):
            raise CommitStateUnknown(
                f"Cannot tell whether this commit has landed: {base.identifier} had snapshot {snapshot_id}, which has "
                "expired. Nothing was changed or deleted"
            )
    if is_registered:
        # Under another pointer it may have been newer: that was dropped or let go, and its files may be there.
        ended = catalog.server.pointer_states.ended(base.seen.uuid, besides=base.seen.id)
        for metadata in _readable(catalog, ended):
            for snapshot_id in gone & metadata.snapshots_by_id.keys():
                raise CommitStateUnknown(
                    f"This commit to {base.identifier} has landed before: the table had snapshot {snapshot_id} when it "
                    "was dropped or let go, and older metadata was registered since. Nothing was changed or deleted"
                )


def was_never_on(catalog: Catalog, base: Base[TableMetadata], move: SetSnapshotRef) -> bool:
    """Say whether older metadata proves that a ref never was at a staged snapshot.

    It does if it goes back to before the snapshot came. Of commits that landed in one file only the last is seen: one
    that took the ref back in it was sent before anybody could see the ref, so it may as well have come first.

    Raises:
        FilesUnavailable: it cannot be read now.
    """
    seen = base.seen
    if seen is None or seen.registration:
        return False  # What was registered may be older than what the table was before.
    with suppress(MetadataFileMissing, CorruptMetadata, InvalidMetadata):
        now = catalog.read(TABLES, seen)
        older = (
            catalog.read_file(TABLES, each.metadata_file, seen.uuid) for each in reversed(now.metadata_log)
        )
        for state in chain([now], older):
            check_wanted()
            if move.snapshot_id not in state.snapshots_by_id:
                return True
            ref = state.snapshot_refs.get(move.ref_name)
            if ref is not None and is_ancestor(state, move.snapshot_id, ref.snapshot_id):
                return False
    return False


def check_not_under_another_name(
    catalog: Catalog, identifier: TableIdentifier, uuid: TableUuid, updates: Sequence[Update]
) -> None:
    """Check that a commit has not landed in a table that has lost this name since.

    It was renamed, dropped, or unregistered and may be in another catalog. Its snapshots use the files that a client
    deletes when it is refused.

    Args:
        uuid: which table the commit is meant for, as it says itself.

    Raises:
        CommitStateUnknown: it may have landed.
        DatabaseUnavailable, FilesUnavailable: it cannot be seen.
    """
    added = [update.snapshot.snapshot_id for update in updates if isinstance(update, AddSnapshot)]
    if not added:
        return
    for called, metadata in _tables_with(catalog, uuid):
        for snapshot_id in added:
            if snapshot_id in metadata.snapshots_by_id or catalog.server.file_deletions.has_expired(
                uuid, snapshot_id
            ):
                raise CommitStateUnknown(
                    f"This commit to {identifier} has landed before: that table, which {called}, has or had "
                    f"snapshot {snapshot_id}. Nothing was changed or deleted"
                )


def _tables_with(catalog: Catalog, uuid: TableUuid) -> Iterator[tuple[str, TableMetadata]]:
    """Yield the tables that have a uuid or had it last, and what became of each name."""
    server = catalog.server
    alike = [
        *server.neighbours.with_uuid(uuid, MOST_NAMES),
        *server.neighbours.dropped_with_uuid(uuid, catalog.now_ms(), MOST_NAMES),
    ]
    for pointer in (server.pointers.find_locked(each.pointer_id) for each in alike):
        if pointer is None or pointer.kind is not PointerKind.TABLE:
            continue
        is_here = pointer.warehouse_id == catalog.warehouse.id
        with suppress(MetadataFileMissing, CorruptMetadata, NoSuchWarehouse):
            holding = catalog if is_here else own_catalog(server, pointer.warehouse_id)
            called = f"is or was last called {pointer.identifier}" if is_here else "is in another warehouse"
            yield called, holding.read(TABLES, pointer)
    for metadata in _readable(catalog, server.pointer_states.ended(uuid)):
        yield "has left this catalog", metadata


def _readable(catalog: Catalog, states: Sequence[EarlierState]) -> Iterator[TableMetadata]:
    """Yield the metadata of states whose files are still there."""
    for state in states[:MOST_NAMES]:
        is_here = state.kind is PointerKind.TABLE and state.warehouse_id == catalog.warehouse.id
        if is_here and is_allowed(catalog, state.location):
            with suppress(MetadataFileMissing, InvalidMetadata):
                yield catalog.read_file(TABLES, state.location)


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


def last_events(catalog: Catalog, pointer_id: int) -> Iterator[PointerEvent]:
    """Yield the last events of a pointer, newest first."""
    before: int | None = None
    for _ in range(EVENTS_LOOKED_THROUGH // EVENTS_A_PAGE):
        events = catalog.shown_pointers.history(pointer_id, before, EVENTS_A_PAGE)
        yield from events
        if len(events) < EVENTS_A_PAGE:
            return
        before = events[-1].sequence
