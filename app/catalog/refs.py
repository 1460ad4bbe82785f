"""Branches and tags: listed, made, moved and removed; every change is a commit and has a receipt."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from app.catalog.cherry_picks import PickedFiles
from app.catalog.commit_plans import tell_standing
from app.catalog.commits import PlannedPut, put, read_base
from app.catalog.context import Call, Catalog
from app.catalog.tables import find_table
from app.database.pointer_history import PointerEvent
from app.database.pointers import Pointer, PointerKind
from app.database.warehouses import Warehouse
from app.engine.branches.ref_changes import (
    CherryPick,
    PickKind,
    Publish,
    RefChange,
    Unchecked,
    check_expected,
    destination,
    find_ref,
    pick_kind,
    picked_snapshot,
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
from app.errors import CommitFailed, CommitStateUnknown, IcetowerError, InvalidRefMove

log = logging.getLogger(__name__)

EVENTS_LOOKED_THROUGH = 1_000
_UNCHANGED = "unchanged "
"""Stands before the location in what is remembered of a request that had nothing to do."""


@dataclass(frozen=True, slots=True)
class NamedRef:
    """A branch or tag, and the snapshot that it names."""

    name: str
    ref: SnapshotRef
    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a change did: to which ref, from where to where, in which commit, by whom and when.

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


class _NothingToDo(Exception):
    pass


@dataclass(slots=True)
class _Seen:
    """What the last plan was made from."""

    pointer: Pointer | None = None
    base: TableMetadata | None = None


def list_refs(catalog: Catalog, warehouse: Warehouse, identifier: TableIdentifier) -> list[NamedRef]:
    """Return a table's branches and tags: main first, then by name.

    Raises:
        NoSuchTable: no table has this name.
    """
    metadata = read_base(catalog, warehouse, find_table(catalog, warehouse, identifier))
    names = sorted(metadata.snapshot_refs, key=lambda name: (name != MAIN_BRANCH, name))
    return [_named(metadata, name) for name in names]


def load_ref(catalog: Catalog, warehouse: Warehouse, identifier: TableIdentifier, name: str) -> NamedRef:
    """Return one branch or tag.

    Raises:
        NoSuchTable: no table has this name.
        NoSuchRef: the table has no such branch or tag.
    """
    metadata = read_base(catalog, warehouse, find_table(catalog, warehouse, identifier))
    find_ref(metadata, name)
    return _named(metadata, name)


def _named(metadata: TableMetadata, name: str) -> NamedRef:
    ref = metadata.snapshot_refs[name]
    return NamedRef(name, ref, metadata.snapshots_by_id[ref.snapshot_id])


def change_ref(
    catalog: Catalog, call: Call, warehouse: Warehouse, identifier: TableIdentifier, change: RefChange
) -> Receipt:
    """Make or move a branch or tag, or change its retention, in one commit.

    Raises:
        InvalidName: no branch or tag can have this name.
        NoSuchTable: no table has this name.
        NoSuchRef: a branch or tag that is to be moved, or moved to, does not exist.
        NoSuchSnapshot: a snapshot that is to be moved to does not exist.
        InvalidRefMove: the snapshots do not stand to each other as the move needs.
        InvalidUpdate: the retention is none, or main would become a tag.
        RequirementFailed: the ref is not where it is expected to be.
        PointerMoved: other commits won every attempt.
        CommitStateUnknown: the database did not answer.
        FilesUnavailable: the store does not answer; nothing was changed.
    """
    check_name(change.name, "branch or tag name")
    picked_files = PickedFiles(catalog, warehouse)

    def updates(base: TableMetadata) -> list[Update]:
        check_expected(base, change.name, change.expected)
        ref_type(base, change)
        move = change.move
        if not isinstance(move, CherryPick | Publish):
            return [set_ref(base, change, destination(base, change.name, move))]
        picked = picked_snapshot(base, move)
        kind = pick_kind(base, change.name, picked)
        if kind is PickKind.FAST_FORWARD:
            picked_files.discard()
            return [set_ref(base, change, picked.snapshot_id)]
        snapshot = picked_files.reapply(base, change.name, picked, kind)
        return [AddSnapshot(snapshot=snapshot), set_ref(base, change, snapshot.snapshot_id)]

    try:
        receipt = _commit(catalog, call, warehouse, identifier, change.name, updates)
    except CommitStateUnknown:
        picked_files.keep()
        raise
    except IcetowerError:
        picked_files.discard()
        raise
    picked_files.keep()
    return receipt


def remove_ref(
    catalog: Catalog,
    call: Call,
    warehouse: Warehouse,
    identifier: TableIdentifier,
    name: str,
    expected: SnapshotId | Unchecked,
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
    if name == MAIN_BRANCH:
        raise InvalidRefMove(f"Cannot remove {MAIN_BRANCH}: without it the table would have no rows")

    def updates(base: TableMetadata) -> list[Update]:
        find_ref(base, name)
        check_expected(base, name, expected)
        return [RemoveSnapshotRef(ref_name=name)]

    return _commit(catalog, call, warehouse, identifier, name, updates)


def _commit(
    catalog: Catalog,
    call: Call,
    warehouse: Warehouse,
    identifier: TableIdentifier,
    name: str,
    updates: Callable[[TableMetadata], list[Update]],
) -> Receipt:
    """Commit what is wanted of the table as it then is, and tell what came of it."""
    seen = _Seen()

    def plan() -> list[PlannedPut]:
        seen.pointer = find_table(catalog, warehouse, identifier)
        seen.base = read_base(catalog, warehouse, seen.pointer)
        wanted: list[Update] = []
        try:
            wanted = updates(seen.base)
            draft = apply_updates(seen.base, wanted, catalog.now_ms())
            if not draft.has_changes:
                raise _NothingToDo
            metadata = draft.finish(seen.pointer.metadata_location)
        except CommitFailed as error:
            tell_standing(error, identifier, seen.pointer, seen.base, wanted)
            raise
        return [PlannedPut(identifier, PointerKind.TABLE, seen.pointer, seen.base, metadata)]

    try:
        landed = put(catalog, call, warehouse, plan)[0]
    except _NothingToDo:
        assert seen.pointer is not None
        assert seen.base is not None
        location = seen.pointer.metadata_location
        if call.claim is not None:
            catalog.idempotency_keys.record(call.claim, 200, _UNCHANGED + location)
        return _unchanged(identifier, name, location, seen.base)
    assert seen.pointer is not None
    assert seen.base is not None
    assert landed.location is not None
    try:
        event = _event_at(catalog, seen.pointer.id, landed.location)
    except IcetowerError as error:
        # It has landed: that its place in the history cannot be told now must not make it a failure.
        log.warning("could not read the history of %s: %s", identifier, error)
        event = None
    return _receipt(
        identifier, name, seen.base, landed.metadata, seen.pointer.metadata_location, landed.location, event
    )


def load_receipt(
    catalog: Catalog, warehouse: Warehouse, identifier: TableIdentifier, name: str, recorded: str
) -> Receipt:
    """Return the receipt of a change again.

    Args:
        recorded: what was recorded with the Idempotency-Key.

    Raises:
        NoSuchTable: the table was dropped since.
        MetadataFileMissing: the metadata that the change made is gone.
    """
    pointer = find_table(catalog, warehouse, identifier)
    files = catalog.files_of(warehouse)
    location = Location(recorded.removeprefix(_UNCHANGED))
    after = catalog.metadata_files.read_table(files, location)
    if recorded.startswith(_UNCHANGED):
        return _unchanged(identifier, name, location, after)
    event = _event_at(catalog, pointer.id, location)
    before: TableMetadata | None = None
    previous = event.previous_location if event else None
    if previous is not None:
        try:
            before = catalog.metadata_files.read_table(files, previous)
        except IcetowerError as error:
            log.info("the metadata before %s cannot be read any more: %s", location, error)
    return _receipt(identifier, name, before, after, previous, location, event)


def _event_at(catalog: Catalog, pointer_id: int, location: Location) -> PointerEvent | None:
    before: int | None = None
    for _ in range(EVENTS_LOOKED_THROUGH // 50):
        events = catalog.pointers.history(pointer_id, before, 50)
        for event in events:
            if event.location == location and event.previous_location != location:
                return event
        if len(events) < 50:
            return None
        before = events[-1].sequence
    return None


def _unchanged(
    identifier: TableIdentifier, name: str, location: Location, metadata: TableMetadata
) -> Receipt:
    ref = metadata.snapshot_refs.get(name)
    snapshot_id = ref.snapshot_id if ref else None
    return Receipt(identifier, name, False, ref, snapshot_id, snapshot_id, location, location)


def _receipt(
    identifier: TableIdentifier,
    name: str,
    before: TableMetadata | None,
    after: TableMetadata,
    location_before: Location | None,
    location_after: Location,
    event: PointerEvent | None,
) -> Receipt:
    old = before.snapshot_refs.get(name) if before is not None else None
    new = after.snapshot_refs.get(name)
    return Receipt(
        identifier=identifier,
        name=name,
        changed=True,
        ref=new,
        snapshot_before=old.snapshot_id if old else None,
        snapshot_after=new.snapshot_id if new else None,
        location_before=location_before,
        location_after=location_after,
        sequence=event.sequence if event else None,
        at_ms=event.at_ms if event else None,
        author=event.author if event else None,
        request_id=event.request_id if event else None,
    )
