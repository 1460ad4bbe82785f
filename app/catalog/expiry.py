"""Expiring snapshots: what would go, letting it go by a commit, and remembering what went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from app.catalog.commits import PlannedPut, put, read_base
from app.catalog.context import Call, Catalog
from app.catalog.expiry_records import ExpiryRecord
from app.catalog.table_manifests import TableManifests
from app.catalog.tables import find_table
from app.database.file_deletions import QueuedExpiry
from app.database.pointers import Pointer, PointerKind
from app.database.warehouses import Warehouse
from app.engine.change.apply import apply_updates
from app.engine.change.updates import (
    RemovePartitionSpecs,
    RemoveSchemas,
    RemoveSnapshotRef,
    RemoveSnapshots,
    Update,
)
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location, SchemaId, SnapshotId, SpecId, TableUuid
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.engine.retention.expired_snapshots import Expiry, ExpiryWish, plan_expiry
from app.engine.retention.reachability import (
    CleanupLevel,
    Unreachable,
    expired_between,
    unreachable_files,
)
from app.errors import CorruptMetadata, FileMissing, NoSuchTable
from app.fileio.locations import place_of


@dataclass(frozen=True, slots=True)
class ExpiryRequest:
    """What a client asks for."""

    wish: ExpiryWish = field(default_factory=ExpiryWish)
    cleanup: CleanupLevel = CleanupLevel.ALL
    grace_ms: int | None = None
    """How long the files stay after the commit; None for what the server is set to."""


@dataclass(frozen=True, slots=True)
class ExpiryOutcome:
    """What went, or would go."""

    metadata_location: Location
    """Where the table is now."""
    snapshots: tuple[Snapshot, ...]
    ref_names: tuple[str, ...]
    spec_ids: tuple[SpecId, ...]
    schema_ids: tuple[SchemaId, ...]
    unreachable: Unreachable | None = None
    """The files that would be deleted; only of a preview."""
    deleted_after_ms: int | None = None
    """When deletion may begin; None if nothing is to be deleted, and of a preview."""


def preview_expiry(
    catalog: Catalog, warehouse: Warehouse, identifier: TableIdentifier, request: ExpiryRequest
) -> ExpiryOutcome:
    """Return what would go now, with every file that would be deleted, and change nothing.

    Raises:
        NoSuchTable: no table has this name.
        ExpiryRefused: garbage collection is off, or a ref names a snapshot that was to go.
        InvalidUpdate: a retention setting of the table is not a number.
        MetadataFileMissing: the table's metadata file is gone.
        CorruptMetadata: the table's metadata, or a manifest list that is needed, cannot be read.
        FilesUnavailable: the store does not answer.
    """
    pointer = find_table(catalog, warehouse, identifier)
    base = read_base(catalog, warehouse, pointer)
    now_ms = catalog.now_ms()
    planned = _plan(catalog, warehouse, base, request.wish, now_ms)
    after = apply_updates(base, updates_of(planned), now_ms).finish(pointer.metadata_location)
    if catalog.pointers.others_with_uuid(pointer.uuid, pointer.id):
        found = Unreachable(
            obstacle="another table of this catalog has the same uuid and may share the files"
        )
    else:
        found = unreachable_files(
            expired_between(base, after),
            after,
            TableManifests(catalog, warehouse),
            level=request.cleanup,
            place_of=place_of,
        )
    return _outcome(pointer.metadata_location, planned, found)


def expire_snapshots(
    catalog: Catalog, call: Call, warehouse: Warehouse, identifier: TableIdentifier, request: ExpiryRequest
) -> ExpiryOutcome:
    """Let snapshots, and refs that are too old, go by one commit, and queue what only they reached for deletion.

    What goes is decided anew each time another commit wins: a ref made meanwhile keeps its snapshots.

    Raises:
        NoSuchTable: no table has this name.
        ExpiryRefused: garbage collection is off, or a ref names a snapshot that was to go.
        InvalidUpdate: a retention setting of the table is not a number.
        PointerMoved: other commits won every attempt.
        CommitStateUnknown: the database did not answer; nothing was deleted.
        MetadataFileMissing: the table's metadata file is gone.
        CorruptMetadata: the table's metadata, or a manifest list that is needed, cannot be read.
        FilesUnavailable: the store does not answer.
    """
    now_ms = catalog.now_ms()
    last: list[tuple[Expiry, int | None]] = []

    def plan() -> list[PlannedPut]:
        pointer = find_table(catalog, warehouse, identifier)
        base = read_base(catalog, warehouse, pointer)
        planned = _plan(catalog, warehouse, base, request.wish, now_ms)
        draft = apply_updates(base, updates_of(planned), catalog.now_ms())
        if not draft.has_changes:
            last[:] = [(planned, None)]
            return [PlannedPut(identifier, PointerKind.TABLE, pointer, base, None)]
        after = draft.finish(pointer.metadata_location)
        expired = expired_between(base, after)
        has_files = bool(expired.snapshots or expired.statistics)
        delete_after_ms = None
        if has_files and request.cleanup is not CleanupLevel.NONE:
            grace_ms = catalog.rules.expired_file_grace_ms if request.grace_ms is None else request.grace_ms
            delete_after_ms = catalog.now_ms() + grace_ms
        record = ExpiryRecord(
            key=call.claim.key if call.claim else None,
            cleanup=request.cleanup,
            delete_after_ms=delete_after_ms,
            expired=expired,
            ref_names=planned.ref_names,
            spec_ids=planned.spec_ids,
            schema_ids=planned.schema_ids,
        )
        last[:] = [(planned, delete_after_ms)]
        queued = QueuedExpiry(record.to_json(), delete_after_ms)
        return [PlannedPut(identifier, PointerKind.TABLE, pointer, base, after, queued)]

    (landed,) = put(catalog, call, warehouse, plan)
    ((planned, delete_after_ms),) = last
    assert landed.location is not None
    return _outcome(landed.location, planned, deleted_after_ms=delete_after_ms)


def recorded_expiry(
    catalog: Catalog, warehouse: Warehouse, identifier: TableIdentifier, location: str, key: str | None
) -> ExpiryOutcome:
    """Return what an expiry did that is asked for again under its Idempotency-Key.

    Args:
        location: the metadata location that was recorded with the key.
        key: the Idempotency-Key: an expiry that found nothing to do left the location of whoever wrote it.

    Raises:
        NoSuchTable: the table was dropped since.
    """
    pointer = catalog.pointers.find(warehouse.id, identifier)
    if pointer is None or pointer.kind is not PointerKind.TABLE:
        raise NoSuchTable(identifier)
    record = _record_of(catalog, pointer, location)
    if record is None or record.key != key:
        return ExpiryOutcome(Location(location), (), (), (), ())
    return ExpiryOutcome(
        Location(location),
        record.expired.snapshots,
        record.ref_names,
        record.spec_ids,
        record.schema_ids,
        deleted_after_ms=record.delete_after_ms,
    )


def updates_of(expiry: Expiry) -> Sequence[Update]:
    """Return the updates that carry an expiry out: refs first, so that none is ever left without its snapshot."""
    updates: list[Update] = [RemoveSnapshotRef(ref_name=name) for name in expiry.ref_names]
    if expiry.snapshots:
        ids: tuple[SnapshotId, ...] = tuple(snapshot.snapshot_id for snapshot in expiry.snapshots)
        updates.append(RemoveSnapshots(snapshot_ids=ids))
    if expiry.spec_ids:
        updates.append(RemovePartitionSpecs(spec_ids=expiry.spec_ids))
    if expiry.schema_ids:
        updates.append(RemoveSchemas(schema_ids=expiry.schema_ids))
    return updates


def _plan(
    catalog: Catalog, warehouse: Warehouse, base: TableMetadata, wish: ExpiryWish, now_ms: int
) -> Expiry:
    try:
        return plan_expiry(base, wish, now_ms, TableManifests(catalog, warehouse))
    except FileMissing as error:
        # The table is there; a file of it is not, and that is no mistake in the request.
        raise CorruptMetadata(error.location, "it is gone") from error


def _record_of(catalog: Catalog, pointer: Pointer, location: str) -> ExpiryRecord | None:
    expired = catalog.file_deletions.find_expired(TableUuid(pointer.uuid), Location(location))
    return None if expired is None else ExpiryRecord.from_json(expired)


def _outcome(
    location: Location,
    planned: Expiry,
    unreachable: Unreachable | None = None,
    deleted_after_ms: int | None = None,
) -> ExpiryOutcome:
    return ExpiryOutcome(
        location,
        planned.snapshots,
        planned.ref_names,
        planned.spec_ids,
        planned.schema_ids,
        unreachable,
        deleted_after_ms,
    )
