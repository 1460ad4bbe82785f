"""The queue of files to delete: of dropped tables, of expired snapshots, and orphans."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, and_, bindparam, case, func, select, update

from app.database.connections.clock import database_now_ms, is_held, read_now_ms
from app.database.connections.database import Database
from app.database.pointers.foreign_files import are_deleted_now
from app.database.pointers.left_files import (
    BegunDeletion,
    begin_deletion,
    begun_deletions,
    comes_back,
    insert_sweep,
)
from app.database.pointers.pointer import Pointer
from app.database.schema.rows import file_deletions as rows
from app.database.schema.rows import warehouses
from app.database.statements.driver_sql import rows_of
from app.engine.model.ids import Location, SnapshotId, TableUuid

FinalState = Literal["done", "failed", "kept"]
Kind = Literal["purge", "expire", "orphans"]


@dataclass(frozen=True, slots=True)
class Deletion:
    """One entry: a dropped table, an expiry of snapshots, or orphans; its files still exist."""

    id: int
    kind: Kind
    warehouse_id: int
    uuid: TableUuid
    metadata_location: Location
    """The last file of a purged table, the file that an expiry wrote, or the table's as orphans were marked."""
    identifier: str
    attempts: int
    """How often it has failed."""
    created_ms: int
    pointer_id: int | None
    """The table's pointer; None for a purge that an older build has queued."""
    expired: str | None
    """What an expiry took out, the report of marked orphans, or the places of a purged table, as JSON.

    None for orphans that are not marked: what servers left, which is deleted where it is found.
    """
    leases: int
    """How often it was leased, with this time: who has it later has a higher number."""
    empty_looks: int
    """How often in a row nothing at all was found where its files should be."""


@dataclass(frozen=True, slots=True)
class Purge:
    """The purge of a table that was dropped."""

    metadata_location: Location
    """The table's last metadata file; it may be deleted by now."""
    facts: str | None
    """What the purge noted before it deleted anything, as JSON."""


@dataclass(frozen=True, slots=True)
class WaitingDeletion:
    """One entry that has failed, and why."""

    kind: Kind
    identifier: str
    attempts: int
    """How often it has failed."""
    created_ms: int
    not_before_ms: int
    """When it is tried again; in the past if it never is."""
    is_given_up: bool
    error: str


_COLUMNS = [rows.c[field.name] for field in fields(Deletion)]
_SHOWN_MS = 7 * 86_400_000
"""How long it is shown that an entry was given up."""
_HAS_EXPIRED = (
    select(rows.c.id)
    .where(
        rows.c.uuid == bindparam("of_table"), rows.c.kind == "expire", rows.c.expired.like(bindparam("text"))
    )
    .limit(1)
)
_HAS_FAILED = (rows.c.state == "queued") & (rows.c.attempts > 0)


class _NotBegun(Exception):
    """A sweep may delete nothing: what was to be written down is undone."""


class FileDeletions:
    """The queue that `Pointers` fills; each entry has one worker at a time.

    A worker whose lease ran out may still be at work. Once another one has the entry, it changes nothing any more.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def now_ms(self) -> int:
        """Return the time of the database, which every entry follows."""
        return read_now_ms(self._database)

    def lease(self, lease_ms: int, besides: Collection[int] = ()) -> Deletion | None:
        """Hold an entry that is due for `lease_ms`, and return it.

        Of those that are due first in their warehouses it is the oldest one.

        Times are the database's: the clocks of servers differ.

        Args:
            lease_ms: how long no other worker gets it.
            besides: the ids of warehouses whose entries are left alone.
        """
        now_ms = database_now_ms()
        is_due = (
            rows.c.state == "queued",
            rows.c.not_before_ms <= now_ms,
            ~is_held(rows.c.leased_until_ms, lease_ms),
        )
        # The first one of each warehouse: behind it there may be a million, also of a warehouse that is left alone.
        first = (
            select(rows.c.id)
            .where(rows.c.warehouse_id == warehouses.c.id, *is_due)
            .order_by(rows.c.not_before_ms, rows.c.id)
            .limit(1)
            .correlate(warehouses)
            .scalar_subquery()
        )
        firsts = select(first.label("id")).where(warehouses.c.id.not_in(besides)).subquery()
        oldest = select(func.min(firsts.c.id))
        # Asking first keeps an idle worker from taking SQLite's only write lock again and again.
        while (found := self._database.read(lambda connection: connection.scalars(oldest).one())) is not None:
            leased = self._lease(now_ms + lease_ms, rows.c.id == found, *is_due)
            if leased is not None:
                return leased
        return None

    def _lease(self, until_ms: ColumnElement[int], *conditions: ColumnElement[bool]) -> Deletion | None:
        values = {"leased_until_ms": until_ms, "leases": rows.c.leases + 1}
        statement = update(rows).where(*conditions).values(values).returning(*_COLUMNS)
        row = self._database.write(lambda connection: connection.execute(statement).one_or_none())
        return None if row is None else Deletion(*row)

    def begin(self, deletion: Deletion, registration: int | None) -> bool:
        """Note that files go from now on, so that they cannot be registered any more.

        Args:
            registration: the one of the table's pointer as the deletion was planned; None if there was no pointer.

        Returns:
            False if nothing may be deleted: the entry is finished or another worker's, or the pointer was registered
            anew or dropped since, or another one may share the files.
        """
        pointer_id, uuid, is_ours = deletion.pointer_id, deletion.uuid, is_held_by(deletion)
        return self._database.write(
            lambda connection: begin_deletion(connection, is_ours, pointer_id, uuid, registration)
        )

    def begin_sweep(self, seen: Pointer, now_ms: int, lease_ms: int) -> Deletion | None:
        """Queue, lease and begin the deletion of what servers left of a table.

        A worker that gets it when the lease is over, as after a crash, only ends it: a later sweep finds the rest.

        Args:
            seen: the table's pointer as the files were looked for.
            now_ms: epoch milliseconds.
            lease_ms: how long no other worker gets it.

        Returns:
            None if nothing may be deleted: the table was registered anew since, or is gone, or another one may share
            the files.

        Raises:
            CommitStateUnknown: safe to try again.
        """

        def begin(connection: Connection) -> Deletion:
            number = insert_sweep(connection, seen, now_ms, lease_ms)
            if number is None:
                raise _NotBegun
            return Deletion(*connection.execute(select(*_COLUMNS).where(rows.c.id == number)).one())

        try:
            return self._database.write(begin)
        except _NotBegun:
            return None

    def hold(self, deletion: Deletion, lease_ms: int, *, must_be_unbroken: bool = False) -> bool:
        """Hold a leased entry for longer; False if another worker has it, or has finished it.

        Args:
            deletion: the entry, as it was leased.
            lease_ms: how long from now.
            must_be_unbroken: whether the lease is not to be had any more once it has run out: since then commits may
                have taken in files that were not being deleted.
        """
        is_unbroken = (rows.c.leased_until_ms > database_now_ms(),) if must_be_unbroken else ()
        return self._update(deletion, *is_unbroken, leased_until_ms=database_now_ms() + lease_ms)

    def release(self, deletion: Deletion) -> None:
        """Let go of a leased entry: it is free to be planned anew."""
        self._update(deletion, leased_until_ms=0)

    def finish(self, deletion: Deletion, state: FinalState, error: str | None = None) -> bool:
        """Take an entry out of the queue: its files are deleted, kept, or cannot be deleted.

        Args:
            deletion: the entry, as it was leased.
            state: what became of the files.
            error: why, if that is to be known later.

        Returns:
            False if another worker has it, or has finished it: then nothing is noted.
        """
        because = {} if error is None else {"last_error": error}
        return self._update(
            deletion, state=state, finished_ms=database_now_ms(), leased_until_ms=0, **because
        )

    def postpone(self, deletion: Deletion, wait_ms: int, error: str) -> bool:
        """Put an entry back into the queue, to be tried again later, and count the failure.

        If it is to come back later than that anyway, which was not confirmed, it does.

        Returns:
            False if another worker has it, or has finished it: then nothing is noted.
        """
        again_ms = database_now_ms() + wait_ms
        return self._update(
            deletion,
            not_before_ms=case((rows.c.not_before_ms > again_ms, rows.c.not_before_ms), else_=again_ms),
            leased_until_ms=0,
            last_error=error,
            attempts=rows.c.attempts + 1,
        )

    def note(self, deletion: Deletion, facts: str) -> None:
        """Keep what a later attempt has to know, as JSON."""
        self._update(deletion, expired=facts)

    def note_empty_looks(self, deletion: Deletion, number: int) -> None:
        """Keep how often in a row nothing at all was found where the files of an entry should be."""
        self._update(deletion, empty_looks=number)

    def come_back(self, deletion: Deletion, wait_ms: int, facts: str) -> None:
        """Put an entry back into the queue for another look; until then nothing is being deleted.

        Args:
            deletion: the entry, as it was leased.
            wait_ms: how long it waits.
            facts: what that look has to know, as JSON.
        """
        self._update(
            deletion,
            not_before_ms=database_now_ms() + wait_ms,
            leased_until_ms=0,
            begun_ms=None,
            attempts=0,
            expired=facts,
        )

    def find_expired(self, uuid: TableUuid, metadata_location: Location) -> str | None:
        """Return what the expiry that wrote this file took out; None if no expiry wrote it."""
        query = select(rows.c.expired).where(
            rows.c.uuid == uuid, rows.c.kind == "expire", rows.c.metadata_location == metadata_location
        )
        return self._database.read(lambda connection: connection.scalars(query).first())

    def has_expired(self, uuid: TableUuid, snapshot_id: SnapshotId) -> bool:
        """Say whether a record of this table says that a commit took this snapshot out."""
        # Each snapshot of a record begins so, and its other fields follow.
        values = {"of_table": uuid, "text": f'%{{"snapshot-id":{snapshot_id},%'}
        return bool(self._database.read(lambda connection: rows_of(connection, _HAS_EXPIRED, values)))

    def begun(self, seen: Pointer, since_ms: int) -> list[BegunDeletion]:
        """Return the deletions of a table's files that are at work, or have ended since some time."""
        return self._database.read(lambda connection: begun_deletions(connection, seen, since_ms))

    def are_at_work(self, besides: int | None) -> bool:
        """Say whether files of any table are being deleted just now, besides those of one pointer."""
        return self._database.read(lambda connection: are_deleted_now(connection, besides))

    def find_purge(self, uuid: TableUuid) -> Purge | None:
        """Return the newest purge that deletes the table's files, or has; None if there is none."""
        query = (
            select(rows.c.metadata_location, rows.c.expired)
            .where(rows.c.uuid == uuid, rows.c.kind == "purge", rows.c.state.in_(("queued", "done")))
            .order_by(rows.c.id.desc())
        )
        found = self._database.read(lambda connection: connection.execute(query).first())
        return None if found is None else Purge(Location(found.metadata_location), found.expired)

    def was_purged(self, deletion: Deletion) -> bool:
        """Say whether a purge of another name in the warehouse has deleted the same files since.

        Those before do not count: the files were there again.
        """
        query = select(rows.c.id).where(
            rows.c.warehouse_id == deletion.warehouse_id,
            rows.c.uuid == deletion.uuid,
            rows.c.kind == "purge",
            rows.c.metadata_location == deletion.metadata_location,
            rows.c.id != deletion.id,
            ((rows.c.state == "done") & (rows.c.finished_ms >= deletion.created_ms)) | comes_back(),
        )
        return self._database.read(lambda connection: connection.scalars(query.limit(1)).first()) is not None

    def other_purges(self, deletion: Deletion) -> list[Location]:
        """Return the last metadata files of the table under other names whose purges are queued.

        One that only looks again does not count: it has deleted what its name had.
        """
        query = select(rows.c.metadata_location).where(
            rows.c.uuid == deletion.uuid,
            rows.c.kind == "purge",
            rows.c.state == "queued",
            rows.c.metadata_location != deletion.metadata_location,
            rows.c.id != deletion.id,
            ~comes_back(),
        )
        found = self._database.read(lambda connection: connection.scalars(query).all())
        return [Location(location) for location in found]

    def waiting(self, warehouse_id: int, most: int, uuid: TableUuid | None = None) -> list[WaitingDeletion]:
        """Return entries that have failed, and wait or were given up lately; the oldest first.

        Args:
            warehouse_id: of which warehouse.
            most: how many are returned at most.
            uuid: of which table; None for all.
        """
        is_given_up = (rows.c.state == "failed") & (rows.c.finished_ms > database_now_ms() - _SHOWN_MS)
        of_table = () if uuid is None else (rows.c.uuid == uuid,)
        query = (
            select(
                rows.c.kind,
                rows.c.identifier,
                rows.c.attempts,
                rows.c.created_ms,
                rows.c.not_before_ms,
                (rows.c.state == "failed").label("is_given_up"),
                func.coalesce(rows.c.last_error, "").label("error"),
            )
            .where(
                # Most entries of a warehouse are done: its index would find all of them. That of states finds few.
                rows.c.warehouse_id + 0 == warehouse_id,
                rows.c.state.in_(("queued", "failed")),
                _HAS_FAILED | is_given_up,
                *of_table,
            )
            .order_by(rows.c.id)
            .limit(most)
        )
        found = self._database.read(lambda connection: connection.execute(query).all())
        return [WaitingDeletion(*row) for row in found]

    def count_waiting(self) -> int:
        """Return how many entries have failed and are tried again."""
        query = select(func.count()).select_from(rows).where(_HAS_FAILED)
        return self._database.read(lambda connection: int(connection.execute(query).scalar_one()))

    def counts(self) -> dict[str, int]:
        """Return how many entries are in each state."""
        query = select(rows.c.state, func.count().label("number")).group_by(rows.c.state)
        found = self._database.read(lambda connection: connection.execute(query).all())
        return {row.state: row.number for row in found}

    def _update(self, deletion: Deletion, *conditions: ColumnElement[bool], **values: Any) -> bool:
        statement = update(rows).where(is_held_by(deletion), *conditions).values(values)
        return self._database.write(lambda connection: connection.execute(statement).rowcount == 1)


def is_held_by(deletion: Deletion) -> ColumnElement[bool]:
    """Return the condition that an entry is still that of the worker which has leased it so.

    Its time does not matter: a lease that ran out holds until another worker asks for one.
    """
    return and_(rows.c.id == deletion.id, rows.c.state == "queued", rows.c.leases == deletion.leases)
