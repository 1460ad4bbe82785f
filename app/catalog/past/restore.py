"""Restoring tables to what they were at a time: new commits, of all tables or of none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import orjson

from app.catalog.commits.files.staged_files import StagedFiles
from app.catalog.commits.intentions import Base, Intention, Planned
from app.catalog.commits.landing import land
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.context.recorded_places import RecordedPlace
from app.catalog.past.moments import check_moment
from app.database.pointers.pointer import Pointer
from app.engine.appends.name_mapping import NAME_MAPPING, reads_all_of
from app.engine.change.apply import apply_updates
from app.engine.change.edits.properties import check_settable
from app.engine.change.restoration import lost_snapshot, restoring_updates
from app.engine.change.updates import Update
from app.engine.model.data_types.moments import moment_text
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location
from app.engine.model.settings.properties import GC_ENABLED
from app.engine.model.table_metadata import TableMetadata
from app.engine.properties.own_properties import MOVED_TO, PROTECTED
from app.errors import InvalidRequest, InvalidUpdate, NoSuchTable
from app.recoveries import RestoreRefused

MOST_TABLES = 1_000
"""In one restoration."""


@dataclass(frozen=True, slots=True)
class Restored:
    """What one table was, and becomes again."""

    identifier: TableIdentifier
    location: Location
    """Its metadata file of that time."""
    snapshot_id: int | None
    """Its current snapshot of that time."""
    updates: tuple[Update, ...]
    """What changes; none if it is as it was."""


@dataclass(frozen=True)
class Restoration(Intention[TableMetadata, None]):
    """What one table is to become again."""

    identifier: TableIdentifier
    then: TableMetadata
    at_ms: int
    answer: str = ""
    """What is answered if the request is sent again under its Idempotency-Key."""
    kind = TABLES
    advanced_as = "restored"

    def require(self, base: Base[TableMetadata]) -> bool:
        """Check that it is the same table, and still has the snapshot."""
        now = base.present()
        if now.uuid != self.then.uuid:
            raise RestoreRefused(
                f"Cannot restore {self.identifier}: at {moment_text(self.at_ms)} it was another table, "
                f"with uuid {self.then.uuid}"
            )
        lost = lost_snapshot(now, self.then)
        if lost is not None:
            raise RestoreRefused(
                f"Cannot restore {self.identifier}: its snapshot {lost} of {moment_text(self.at_ms)} has been "
                "expired since, and its files may be gone. Choose a later time"
            )
        return True

    def apply(
        self, catalog: Catalog, base: Base[TableMetadata], _files: StagedFiles
    ) -> Planned[TableMetadata, None]:
        """Make it what it was."""
        updates = _updates(base.present(), self.then)
        draft = apply_updates(base.present(), updates, catalog.now_ms())
        after = draft.finish(base.stored_at) if draft.has_changes else None
        return Planned(after, None, updates=updates)

    def remembered_as(self, at: RecordedPlace, *, changed: bool, detail: None) -> str:  # noqa: ARG002 - the answer says it
        """Return the answer of the whole restoration."""
        return self.answer


def restore_tables(
    catalog: Catalog, identifiers: Sequence[TableIdentifier], at: str, *, dry_run: bool
) -> tuple[int, list[Restored]]:
    """Make tables what they were at a time, all in one transaction, or say what would change.

    Schema, partition spec, sort order, properties, location and the rows of main come back; other branches and tags
    stay, and so does protection.

    Args:
        catalog: the warehouse as it is now.
        identifiers: the tables, by the names that they have now.
        at: the time, as `moment_ms` takes it.
        dry_run: change nothing.

    Returns:
        The time in epoch milliseconds, and what becomes of each table.

    Raises:
        InvalidMoment: the time makes no sense.
        InvalidRequest: no table is given, one is given twice, or there are too many.
        NoSuchTable: there was no such table then, or is none now.
        RestoreRefused: it is another table now, or its snapshot has been expired.
        PastIsGone: its metadata of that time is gone.
        InvalidLocation: it lay where the warehouse may not write now.
        PointerMoved: other commits won every attempt.
        CommitStateUnknown: the database did not answer.
    """
    catalog.permit("restore_tables", *identifiers)
    at_ms = check_moment(catalog.server, at)
    _check_list(identifiers)
    past = replace(catalog, as_of_ms=at_ms)
    found = [_load_then(catalog, past, identifier) for identifier in identifiers]
    intentions = [
        Restoration(identifier, then, at_ms) for identifier, (_, then) in zip(identifiers, found, strict=True)
    ]
    planned = []
    for intention, (was, then) in zip(intentions, found, strict=True):
        pointer, now = catalog.read_now(TABLES, intention.identifier)
        intention.require(Base(TABLES, intention.identifier, pointer, now))
        planned.append(_restored(was, then, _updates(now, then)))
    if not dry_run:
        # The first one remembers the answer for all: what was read may be gone when it is asked for again.
        answer = answer_text(at_ms, planned, dry_run=False)
        land(catalog, [replace(intentions[0], answer=answer), *intentions[1:]])
    return at_ms, planned


def answer_text(at_ms: int, restored: Sequence[Restored], *, dry_run: bool) -> str:
    """Return what becomes of each table as JSON, with the updates only for a dry run."""
    tables = []
    for each in restored:
        table: dict[str, object] = {
            "namespace": list(each.identifier.namespace.levels),
            "name": each.identifier.name,
            "metadata-location-then": each.location,
        }
        if each.snapshot_id is not None:
            table["snapshot-id"] = each.snapshot_id
        if dry_run:
            table["updates"] = [
                update.model_dump(mode="json", by_alias=True, exclude_none=True) for update in each.updates
            ]
        tables.append(table)
    return orjson.dumps({"at-ms": at_ms, "tables": tables}).decode()


def _updates(now: TableMetadata, then: TableMetadata) -> list[Update]:
    return restoring_updates(now, then, staying=_staying(now, then))


def _staying(now: TableMetadata, then: TableMetadata) -> frozenset[str]:
    """Return the properties that stay as they are when a table is restored."""
    staying = {PROTECTED}
    if MOVED_TO in now.properties or MOVED_TO in then.properties:
        staying |= {MOVED_TO, GC_ENABLED}  # A fence is about what another catalog has now.
    mappings = now.properties.get(NAME_MAPPING), then.properties.get(NAME_MAPPING)
    if mappings[1] is None or (mappings[0] is not None and reads_all_of(mappings[0], mappings[1])):
        # Files that came since, on branches and in older snapshots, are read by the names that came since.
        staying.add(NAME_MAPPING)
    staying |= {name for name, value in then.properties.items() if _is_refused(name, value)}
    return frozenset(staying)


def _is_refused(name: str, value: str) -> bool:
    """Say whether a value cannot be set: it came from elsewhere, or before it was looked at."""
    try:
        check_settable({name: value})
    except InvalidUpdate:
        return True
    return False


def _restored(was: Pointer, then: TableMetadata, updates: Sequence[Update]) -> Restored:
    snapshot = then.current_snapshot
    snapshot_id = None if snapshot is None else snapshot.snapshot_id
    return Restored(was.identifier, was.metadata_location, snapshot_id, tuple(updates))


def _check_list(identifiers: Sequence[TableIdentifier]) -> None:
    if not 1 <= len(identifiers) <= MOST_TABLES:
        raise InvalidRequest(
            f"Invalid tables: give 1 to {MOST_TABLES} tables to restore, not {len(identifiers)}"
        )
    if len(set(identifiers)) < len(identifiers):
        twice = next(item for item in identifiers if identifiers.count(item) > 1)
        raise InvalidRequest(f"Invalid tables: {twice} is given twice")


def _load_then(catalog: Catalog, past: Catalog, identifier: TableIdentifier) -> tuple[Pointer, TableMetadata]:
    """Return what has a name now as it was, whatever it was called then."""
    assert past.as_of_ms is not None
    when = moment_text(past.as_of_ms)
    now = catalog.find(identifier)
    state = None if now is None else catalog.server.past.states([now.id], past.as_of_ms).get(now.id)
    called = identifier if state is None else state.identifier
    try:
        was, then = past.read_now(TABLES, called)
    except NoSuchTable as error:
        raise NoSuchTable(f"{called} at {when}") from error
    if now is None or now.id != was.id:
        # Old tables of version 1 may have no uuid.
        again = then if now is not None and now.uuid == was.uuid and was.uuid else None
        raise RestoreRefused(f"Cannot restore {identifier} to {when}: {_where(catalog, was, again)}")
    return replace(was, identifier=identifier), then


def _registered_anew(was: Pointer, then: TableMetadata) -> str:
    """Say what helps where the table has been out of the catalog since."""
    snapshot_id = then.current_snapshot_id
    rows = "" if snapshot_id is None else f"set main to the snapshot that it had then, {snapshot_id}, or "
    return (
        "that table has left the catalog since, and was registered anew. For what it was, "
        f"{rows}register its metadata file of that time over it: {was.metadata_location}"
    )


def _where(catalog: Catalog, was: Pointer, again: TableMetadata | None) -> str:
    """Say what has become of a table that has lost its name.

    Args:
        catalog: its warehouse.
        was: the table as it was.
        again: what it was, if the name has the same table, registered anew; None otherwise.
    """
    entry = catalog.server.dropped.find_pointer(was.id, catalog.now_ms())
    now = catalog.server.pointers.find_locked(was.id)
    if again is not None and (entry is not None or now is None):
        return _registered_anew(was, again)
    if entry is not None:
        return f"that table was dropped and can come back: undrop id {entry.id} first"
    if now is not None:
        return f"that table has the name {now.identifier} now: restore it under this name, or rename it back"
    return "that table is gone, and cannot come back"
