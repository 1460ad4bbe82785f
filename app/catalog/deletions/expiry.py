"""Expiring snapshots: the preview, the commit, and the record of what was removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from app.catalog.commits.files.expiry_records import ExpiryRecord
from app.catalog.commits.files.staged_files import StagedFiles
from app.catalog.commits.intentions import Base, Intention, Planned
from app.catalog.commits.landing import land_one
from app.catalog.commits.plans import load_base
from app.catalog.context.catalog import Catalog
from app.catalog.context.deletable import Owner, deletable
from app.catalog.context.kinds import TABLES
from app.catalog.context.recorded_places import RecordedPlace
from app.catalog.deletions.other_readers import OtherReaders
from app.catalog.filesystem_tables.rules import refused
from app.catalog.manifests.table_manifests import TableManifests
from app.database.connections.clock import earlier_now_ms
from app.database.pointers.left_files import QueuedExpiry
from app.engine.change.apply import apply_updates
from app.engine.change.updates import (
    RemovePartitionSpecs,
    RemoveSchemas,
    RemoveSnapshotRef,
    RemoveSnapshots,
    Update,
)
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location
from app.engine.model.table_metadata import TableMetadata
from app.engine.retention.expired_snapshots import Expiry, ExpiryWish, plan_expiry
from app.engine.retention.reachability import (
    CleanupLevel,
    Unreachable,
    expired_between,
    unreachable_files,
)
from app.errors import CorruptMetadata, FileMissing, FilesUnavailable, IcetowerError, Throttled
from app.fileio.links import real_places


@dataclass(frozen=True, slots=True)
class ExpiryRequest:
    """An expiry, as a client asks for it."""

    wish: ExpiryWish = field(default_factory=ExpiryWish)
    cleanup: CleanupLevel = CleanupLevel.ALL
    grace_ms: int | None = None
    """How long the files stay after the commit; None for the server's setting."""
    as_of_ms: int | None = None
    """Epoch milliseconds at which ages are counted, if that is earlier than now."""


@dataclass(frozen=True, slots=True)
class ExpiryOutcome:
    """What was removed, or would be."""

    metadata_location: Location
    """Where the table is now."""
    expiry: Expiry
    deleted_after_ms: int | None = None
    """When deletion may begin; None if nothing is to be deleted, and in a preview."""
    unreachable: Unreachable | None = None
    """The files that would be deleted; only in a preview."""
    as_of_ms: int | None = None
    """Epoch milliseconds at which ages were counted; only in a preview."""


@dataclass(frozen=True)
class ExpireSnapshots(Intention[TableMetadata, ExpiryRecord]):
    """An expiry, planned again for each base: a ref made meanwhile keeps its snapshots."""

    identifier: TableIdentifier
    request: ExpiryRequest
    now_ms: int
    """Epoch milliseconds; every attempt measures ages from it."""
    kind = TABLES

    def require(self, base: Base[TableMetadata]) -> bool:
        """Check that the table is there."""
        base.present()
        return True

    def apply(
        self, catalog: Catalog, base: Base[TableMetadata], _files: StagedFiles
    ) -> Planned[TableMetadata, ExpiryRecord]:
        """Remove the snapshots that go, and queue the files that only they reach."""
        request, before = self.request, base.present()
        expiry = _plan(catalog, before, request.wish, self.now_ms)
        draft = apply_updates(before, updates_of(expiry), catalog.now_ms())
        after = draft.finish(base.stored_at) if draft.has_changes else before
        expired = expired_between(before, after)
        grace_ms = delete_after_ms = None
        if (expired.snapshots or expired.statistics) and request.cleanup is not CleanupLevel.NONE:
            if not catalog.has_rows:
                raise refused(
                    "delete the files of expired snapshots",
                    "the server does not know which other tables of the file system name them",
                    "ask for cleanup none, which only removes the snapshots, or adopt the table first",
                )
            grace_ms = catalog.rules.expired_file_grace_ms if request.grace_ms is None else request.grace_ms
            delete_after_ms = catalog.now_ms() + grace_ms
        claim = catalog.caller.claim
        record = ExpiryRecord(claim.key if claim else None, request.cleanup, delete_after_ms, expired, expiry)
        if not draft.has_changes:
            return Planned(None, record)
        return Planned(after, record, expiry=QueuedExpiry(record.to_json(), grace_ms))


def preview_expiry(catalog: Catalog, identifier: TableIdentifier, request: ExpiryRequest) -> ExpiryOutcome:
    """Return what would be removed now, with every file, and change nothing.

    Raises:
        NoSuchTable: no table has this name.
        ExpiryRefused: garbage collection is off, or a ref names a snapshot that was to be removed.
        InvalidUpdate: a retention setting of the table is not a number.
        MetadataFileMissing, CorruptMetadata, FilesUnavailable: the metadata or a manifest list cannot be read.
    """
    catalog.permit("expire_snapshots", identifier)
    base = load_base(catalog, TABLES, identifier)
    as_of_ms = _as_of_ms(catalog, request)
    planned = ExpireSnapshots(identifier, request, as_of_ms).apply(catalog, base, StagedFiles(catalog))
    pointer = base.seen
    assert pointer is not None
    if catalog.server.pointers.may_share_files(pointer.uuid, pointer.id):
        found = Unreachable(
            obstacle="another table may share the files: one has the same uuid, or this one has or had none"
        )
    else:
        after = planned.metadata or base.present()
        found = unreachable_files(
            planned.detail.expired,
            after,
            TableManifests(catalog, after),
            level=request.cleanup,
            stays=(pointer.metadata_location,),
            place_of=real_places(),
        )
        owner = Owner.of(pointer.uuid, pointer.id, base.present(), after)
        going = deletable(catalog, owner, [item.location for item in found])
        try:
            found = found.only(frozenset(OtherReaders(catalog, owner).unread(going)))
        except (FilesUnavailable, Throttled) as error:
            found = Unreachable(obstacle=str(error))
    return ExpiryOutcome(
        pointer.metadata_location, planned.detail.expiry, unreachable=found, as_of_ms=as_of_ms
    )


def expire_snapshots(catalog: Catalog, identifier: TableIdentifier, request: ExpiryRequest) -> ExpiryOutcome:
    """Remove snapshots and old refs in one commit, and queue their files for deletion.

    Raises:
        NoSuchTable: no table has this name.
        ExpiryRefused: garbage collection is off, or a ref names a snapshot that was to be removed.
        InvalidUpdate: a retention setting of the table is not a number.
        PointerMoved: other commits won every attempt.
        CommitStateUnknown: the database did not answer; nothing was deleted.
        CommitRefused: a manifest list is damaged or gone.
        MetadataFileMissing, CorruptMetadata, FilesUnavailable: the metadata cannot be read.
    """
    catalog.permit("expire_snapshots", identifier)
    landed = land_one(catalog, ExpireSnapshots(identifier, request, _as_of_ms(catalog, request)))
    assert landed.detail is not None
    assert landed.loaded.location is not None
    catalog.server.has_deletions.set()
    return ExpiryOutcome(landed.loaded.location, landed.detail.expiry, landed.detail.delete_after_ms)


def recorded_expiry(
    catalog: Catalog, identifier: TableIdentifier, recorded: str, key: str | None
) -> ExpiryOutcome:
    """Return the outcome of an expiry that is sent again under its Idempotency-Key.

    Args:
        recorded: what was recorded with the key.
        key: the Idempotency-Key: an expiry that found nothing to do left a location that another commit wrote.

    Raises:
        NoSuchTable: the table was dropped since, and its metadata file is gone too.
    """
    catalog.permit("expire_snapshots", identifier)
    at = RecordedPlace.of_text(recorded)
    uuid = at.uuid
    if uuid is None:
        try:
            # Another table may have the name by now.
            uuid = catalog.read_file(TABLES, at.location).uuid
        except IcetowerError:
            uuid = catalog.load(TABLES, identifier).uuid
    stored = catalog.server.file_deletions.find_expired(uuid, at.location)
    record = None if stored is None else ExpiryRecord.from_json(stored)
    if record is None or record.key != key:
        return ExpiryOutcome(at.location, Expiry((), ()))
    return ExpiryOutcome(at.location, record.expiry, record.delete_after_ms)


def updates_of(expiry: Expiry) -> Sequence[Update]:
    """Return the updates of an expiry: refs first, so that no ref is left without its snapshot."""
    updates: list[Update] = [RemoveSnapshotRef(ref_name=name) for name in expiry.ref_names]
    if expiry.snapshots:
        ids = tuple(snapshot.snapshot_id for snapshot in expiry.snapshots)
        updates.append(RemoveSnapshots(snapshot_ids=ids))
    if expiry.spec_ids:
        updates.append(RemovePartitionSpecs(spec_ids=expiry.spec_ids))
    if expiry.schema_ids:
        updates.append(RemoveSchemas(schema_ids=expiry.schema_ids))
    return updates


def _as_of_ms(catalog: Catalog, request: ExpiryRequest) -> int:
    # Never later than now: nothing is older than it is.
    now_ms = earlier_now_ms(catalog.now_ms())
    return now_ms if request.as_of_ms is None else min(now_ms, request.as_of_ms)


def _plan(catalog: Catalog, base: TableMetadata, wish: ExpiryWish, now_ms: int) -> Expiry:
    try:
        return plan_expiry(base, wish, now_ms, TableManifests(catalog, base))
    except FileMissing as error:
        # The table exists but a file of it does not, which is no mistake in the request.
        raise CorruptMetadata(error.location, "it is gone") from error
