"""Branches and tags: listed, made, moved and removed. Every change is a commit with a receipt."""

from __future__ import annotations

import logging
from abc import abstractmethod
from dataclasses import dataclass

import orjson

from app.catalog.commits.cherry_picks import CherryPicks
from app.catalog.commits.files.staged_files import StagedFiles
from app.catalog.commits.intentions import Base, Intention, Planned
from app.catalog.commits.landing import land_one
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.context.recorded_places import RecordedPlace
from app.catalog.named import event_at
from app.database.pointers.history import PointerEvent
from app.database.pointers.pointer import Pointer
from app.engine.branches.ref_changes import (
    CherryPick,
    PickKind,
    Publish,
    RefChange,
    Unchecked,
    check_expected,
    destination,
    pick_kind,
    picked_snapshot,
    ref_by_name,
    ref_type,
    set_ref,
)
from app.engine.change.apply import apply_updates
from app.engine.change.updates import AddSnapshot, RemoveSnapshotRef, Update
from app.engine.model.identifiers import TableIdentifier, check_name
from app.engine.model.ids import Location, SnapshotId
from app.engine.model.refs import MAIN_BRANCH, SnapshotRef
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.errors import IcetowerError, InvalidRefMove

log = logging.getLogger(__name__)

_UNCHANGED = "unchanged "
"""What older builds recorded before the place if a request had nothing to do."""


@dataclass(frozen=True, slots=True)
class NamedRef:
    """A branch or tag, and the snapshot that it names."""

    name: str
    ref: SnapshotRef
    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class Receipt:
    """The receipt of a change: which ref, from where to where, in which commit, by whom.

    Snapshots are None where the ref did not exist. `sequence`, `at_ms`, `author` and `request_id` are those of the
    pointer's history; they are None if nothing had to be changed.
    """

    identifier: TableIdentifier
    name: str
    changed: bool
    ref: SnapshotRef | None
    snapshot_before: SnapshotId | None
    snapshot_after: SnapshotId | None
    location_before: Location | None
    location_after: Location
    sequence: int | None = None
    at_ms: int | None = None
    author: str | None = None
    request_id: str | None = None


@dataclass(frozen=True, slots=True)
class _Change:
    """What a change has done to its ref; None where the ref did not exist."""

    before: SnapshotRef | None
    after: SnapshotRef | None
    location_before: Location | None


@dataclass(frozen=True)
class _RefIntention(Intention[TableMetadata, _Change]):
    """A change of one branch or tag."""

    identifier: TableIdentifier
    name: str
    kind = TABLES

    @abstractmethod
    def changes(self, catalog: Catalog, base: TableMetadata, files: StagedFiles) -> list[Update]:
        """Return the updates that make the change."""

    def apply(
        self, catalog: Catalog, base: Base[TableMetadata], files: StagedFiles
    ) -> Planned[TableMetadata, _Change]:
        """Apply the change."""
        before = base.present()
        draft = apply_updates(before, self.changes(catalog, before, files), catalog.now_ms())
        after = draft.finish(base.stored_at) if draft.has_changes else None
        was, now = (metadata.snapshot_refs.get(self.name) for metadata in (before, after or before))
        return Planned(after, _Change(was, now, base.stored_at))

    def remembered_as(self, at: RecordedPlace, *, changed: bool, detail: _Change | None) -> str:
        """Return what the receipt says: the metadata files may be gone when it is asked for again."""
        assert detail is not None
        refs = [None if ref is None else ref.to_object() for ref in (detail.before, detail.after)]
        return orjson.dumps([changed, *refs, detail.location_before, at.location]).decode()


@dataclass(frozen=True)
class _ChangeRef(_RefIntention):
    change: RefChange

    def require(self, base: Base[TableMetadata]) -> bool:
        """Check that the ref is where it is expected to be, and that the change is possible."""
        check_expected(base.present(), self.name, self.change.expected)
        ref_type(base.present(), self.change)
        return True

    def changes(self, catalog: Catalog, base: TableMetadata, files: StagedFiles) -> list[Update]:
        """Return the updates; a cherry-pick may write a new snapshot for them."""
        change, move = self.change, self.change.move
        if not isinstance(move, CherryPick | Publish):
            return [set_ref(base, change, destination(base, self.name, move))]
        picked = picked_snapshot(base, move)
        kind = pick_kind(base, self.name, picked)
        if kind is PickKind.FAST_FORWARD:
            return [set_ref(base, change, picked.snapshot_id)]
        snapshot = CherryPicks(catalog, files).reapply(base, self.name, picked, kind)
        return [AddSnapshot(snapshot=snapshot), set_ref(base, change, snapshot.snapshot_id)]


@dataclass(frozen=True)
class _RemoveRef(_RefIntention):
    expected: SnapshotId | Unchecked

    def require(self, base: Base[TableMetadata]) -> bool:
        """Check that the ref is there, and where it is expected to be."""
        ref_by_name(base.present(), self.name)
        check_expected(base.present(), self.name, self.expected)
        return True

    def changes(self, _catalog: Catalog, _base: TableMetadata, _files: StagedFiles) -> list[Update]:
        """Return the removal."""
        return [RemoveSnapshotRef(ref_name=self.name)]


def list_refs(catalog: Catalog, identifier: TableIdentifier) -> list[NamedRef]:
    """Return a table's branches and tags: main first, then by name.

    Raises:
        NoSuchTable: no table has this name.
    """
    catalog.permit("list_refs", identifier)
    _, metadata = catalog.read_now(TABLES, identifier)
    names = sorted(metadata.snapshot_refs, key=lambda name: (name != MAIN_BRANCH, name))
    return [_named(metadata, name) for name in names]


def load_ref(catalog: Catalog, identifier: TableIdentifier, name: str) -> NamedRef:
    """Return one branch or tag.

    Raises:
        NoSuchTable: no table has this name.
        NoSuchRef: the table has no such branch or tag.
    """
    catalog.permit("load_ref", identifier)
    _, metadata = catalog.read_now(TABLES, identifier)
    ref_by_name(metadata, name)
    return _named(metadata, name)


def _named(metadata: TableMetadata, name: str) -> NamedRef:
    ref = metadata.snapshot_refs[name]
    return NamedRef(name, ref, metadata.snapshots_by_id[ref.snapshot_id])


def change_ref(catalog: Catalog, identifier: TableIdentifier, change: RefChange) -> Receipt:
    """Make or move a branch or tag, or change its retention, in one commit.

    Raises:
        InvalidName: no branch or tag can have this name.
        NoSuchTable: no table has this name.
        NoSuchRef: a branch or tag that is to be moved, or moved to, does not exist.
        NoSuchSnapshot: a snapshot that is to be moved to does not exist.
        InvalidRefMove: the snapshots are not related as the move needs.
        InvalidUpdate: the retention is invalid, or main would become a tag.
        RequirementFailed: the ref is not where it is expected to be.
        PointerMoved: other commits won every attempt.
        CommitStateUnknown: the database did not answer.
        FilesUnavailable: the store does not answer; nothing was changed.
    """
    catalog.permit("change_ref", identifier)
    check_name(change.name, "branch or tag name")
    return _commit(catalog, _ChangeRef(identifier, change.name, change))


def remove_ref(
    catalog: Catalog, identifier: TableIdentifier, name: str, expected: SnapshotId | Unchecked
) -> Receipt:
    """Remove a branch or tag; its snapshots stay until they are expired.

    Raises:
        NoSuchTable: no table has this name.
        NoSuchRef: the table has no such branch or tag.
        InvalidRefMove: it is main, without which the table would be empty.
        RequirementFailed: the ref is not where it is expected to be.
        PointerMoved: other commits won every attempt.
        CommitStateUnknown: the database did not answer.
    """
    catalog.permit("remove_ref", identifier)
    if name == MAIN_BRANCH:
        raise InvalidRefMove(f"Cannot remove {MAIN_BRANCH}: without it the table would have no rows")
    return _commit(catalog, _RemoveRef(identifier, name, expected))


def _commit(catalog: Catalog, intention: _RefIntention) -> Receipt:
    """Commit a change, and return its receipt."""
    landed = land_one(catalog, intention)
    pointer, change, location = landed.base.seen, landed.detail, landed.loaded.location
    assert pointer is not None
    assert change is not None
    assert location is not None
    event = _event_at(catalog, pointer, location) if landed.changed else None
    return _receipt(intention.identifier, intention.name, change, location, event, changed=landed.changed)


def load_receipt(catalog: Catalog, identifier: TableIdentifier, name: str, recorded: str) -> Receipt:
    """Return the receipt of a change again, whatever has the name by now.

    Args:
        recorded: what was recorded with the Idempotency-Key.

    Raises:
        DatabaseUnavailable: it cannot be seen which table has the name.
        MetadataFileMissing: an older build has recorded it, and the metadata of then is gone.
    """
    catalog.permit("load_ref", identifier)
    if not recorded.startswith("["):
        return _receipt_of_older_build(catalog, identifier, name, recorded)
    changed, *refs, location_before, location = orjson.loads(recorded)
    before, after = (None if ref is None else SnapshotRef.from_object(ref) for ref in refs)
    event = _event_at(catalog, catalog.find(identifier), location) if changed else None
    return _receipt(
        identifier, name, _Change(before, after, location_before), location, event, changed=changed
    )


def _receipt_of_older_build(
    catalog: Catalog, identifier: TableIdentifier, name: str, recorded: str
) -> Receipt:
    """Return a receipt of which an older build has recorded the place only."""
    changed = not recorded.startswith(_UNCHANGED)
    at = RecordedPlace.of_text(recorded.removeprefix(_UNCHANGED))
    after = catalog.read_file(TABLES, at.location, at.uuid).snapshot_refs.get(name)
    if not changed:
        return _receipt(
            identifier, name, _Change(after, after, at.location), at.location, None, changed=False
        )
    event = _event_at(catalog, catalog.find(identifier), at.location)
    previous = event.previous_location if event else None
    before: SnapshotRef | None = None
    if previous is not None:
        try:
            before = catalog.read_file(TABLES, previous).snapshot_refs.get(name)
        except IcetowerError as error:
            log.info("the metadata before %s cannot be read any more: %s", at.location, error)
    return _receipt(identifier, name, _Change(before, after, previous), at.location, event, changed=True)


def _event_at(catalog: Catalog, pointer: Pointer | None, location: Location) -> PointerEvent | None:
    if pointer is None:
        return None
    try:
        return event_at(catalog, pointer.id, location)
    except IcetowerError as error:
        # The commit has landed: an unreadable history must not make it a failure.
        log.warning("could not read the history of %s: %s", pointer.identifier, error)
        return None


def _receipt(
    identifier: TableIdentifier,
    name: str,
    change: _Change,
    location: Location,
    event: PointerEvent | None,
    *,
    changed: bool,
) -> Receipt:
    return Receipt(
        identifier=identifier,
        name=name,
        changed=changed,
        ref=change.after,
        snapshot_before=change.before.snapshot_id if change.before else None,
        snapshot_after=change.after.snapshot_id if change.after else None,
        location_before=change.location_before,
        location_after=location,
        sequence=event.sequence if event else None,
        at_ms=event.at_ms if event else None,
        author=event.author if event else None,
        request_id=event.request_id if event else None,
    )
