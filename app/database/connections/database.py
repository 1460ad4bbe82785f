"""A database, SQLite or Postgres: opened once, with one way to read and one way to write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from threading import Lock
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine

from app.database.connections.dialects import engine_for_reads, engine_for_writes
from app.database.connections.driver_calls import begin_when_free, run_on_sqlite
from app.database.connections.driver_errors import (
    MAX_ATTEMPTS_AFTER_COLLISION,
    MAX_ATTEMPTS_AFTER_LOST_CONNECTION,
    Undone,
    commit_was_refused,
    library_errors,
    lost_connection,
    only_reads,
    our_error,
    reason,
    stood_still,
    undid_transaction,
)
from app.database.connections.gates import LONGEST_WAIT_S, Gate
from app.database.connections.kept_revisions import beginning_at, check_on_sqlite, is_at_another, migrated
from app.database.connections.own_sessions import check_own_sessions
from app.database.connections.readers import Readers
from app.database.connections.shared_writes import SharedWrites
from app.database.connections.sqlite_files import FileIdentity, OpenedFile
from app.errors import CommitStateUnknown, DatabaseUnavailable
from app.shares import group_at_work
from app.waits import do_elsewhere

_Result = TypeVar("_Result")
_LIGHT_POOL_SIZE = 4
"""More than one: a write that waits for a row must not hold up all others."""
_BEGIN_ON_POSTGRES = "BEGIN ISOLATION LEVEL READ COMMITTED"
_NO_CHANGE = "DELETE FROM warehouses WHERE false"
"""Postgres refuses it where it only reads."""
_LITTLE_MEMORY = "SET LOCAL work_mem = 64"
_TEMPORARY_FILE = """
    SELECT count(*) FROM generate_series(
        1, CASE WHEN pg_size_bytes(current_setting('temp_file_limit')) BETWEEN 0 AND 1048576 THEN 0 ELSE 5000 END
    )
"""
"""Postgres writes 72 kB to a file and deletes it, unless it may not.

On a full disk a change is refused only when a table has to grow.
"""


class Database:
    """One database, and the pools of connections to it; safe to share between threads."""

    def __init__(
        self,
        reads: Engine,
        writes: Engine,
        light_writes: Engine,
        file: OpenedFile,
        pool_size: int,
        pool_timeout_s: float,
    ) -> None:
        self.dialect_name = writes.dialect.name
        self._file = file
        self._read_engine = reads
        self._readers = Readers(self._connect_reader, pool_size, pool_timeout_s)
        self._write_engine = writes
        self._light_engine = light_writes
        self._pool_size = pool_size
        self._gate = Gate(pool_size, min(LONGEST_WAIT_S, pool_timeout_s))
        self._is_sqlite = self.dialect_name == "sqlite"
        self._has_own_sessions = self._is_sqlite
        # SQLite has one writer at a time and the others poll; threads of this process wait here instead.
        self._sqlite_turn = Lock()
        self._kept_writers: dict[Engine, Connection] = {}
        self._has_met_read_only = False
        self._is_closed = False
        self._turn_timeout_s = pool_timeout_s
        self._shared_writes = SharedWrites(self._write_quickly, pool_timeout_s)
        self._begin = "BEGIN IMMEDIATE" if self._is_sqlite else _BEGIN_ON_POSTGRES
        self._revision: str | None = None

    @staticmethod
    def open(
        url: str, *, pool_size: int = 10, pool_timeout_s: float = 30.0, opened: FileIdentity | None = None
    ) -> Database:
        """Prepare to connect; the first read or write connects.

        Args:
            url: `sqlite:///relative.db`, `sqlite:////absolute.db` or `postgresql://user@host/name`.
            pool_size: connections for reads, and as many for writes, at most.
            pool_timeout_s: how long a call waits for one of them to become free.
            opened: the file of a SQLite database, if it must be this one.

        Raises:
            InvalidSetting: the URL is not one of these.
        """
        writes = engine_for_writes(url, pool_size, pool_timeout_s)
        light_writes = engine_for_writes(url, _LIGHT_POOL_SIZE, pool_timeout_s, is_durable=False)
        return Database(
            engine_for_reads(url), writes, light_writes, OpenedFile(url, opened), pool_size, pool_timeout_s
        )

    def close(self) -> None:
        """Close all connections that are not in use."""
        self._readers.close()
        self._is_closed = True
        while self._kept_writers:
            self._kept_writers.popitem()[1].close()
        self._read_engine.dispose()
        self._write_engine.dispose()
        self._light_engine.dispose()

    def keep_to_revision(self, revision: str | None) -> None:
        """From now on, change nothing while the database is at another revision; None for any.

        Where a server has been forgotten in a migration, it would leave out what a newer build relies on, such as the
        folders that a table names.
        """
        self._revision = revision
        if not self._is_sqlite:
            self._begin = _BEGIN_ON_POSTGRES if revision is None else beginning_at(revision)

    def check_writes(self) -> None:
        """Check that the database takes changes, without a change.

        Raises:
            DatabaseUnavailable: it does not answer, only reads, or its disk is full.
            CommitStateUnknown: it did not confirm what it had to write.
        """
        if self._is_sqlite:
            self.write_together(_write_again)
        else:
            try_change = partial(self._attempt, self._write_engine, _change_nothing, self._roll_back)
            self._apart(try_change)

    def fetch(self, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Run one prepared statement on the driver and return its rows; raises like `read`."""
        return self._apart(lambda: self._readers.fetch(sql, parameters))

    def read(self, work: Callable[[Connection], _Result]) -> _Result:
        """Return what `work` reads; each statement is a transaction of its own.

        If the connection is dead, `work` runs again on a new one.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        found = self._apart(lambda: self._readers.read(work))
        # A process reads when it starts; the file may be another one when it writes for the first time.
        self._file.note()
        return found

    def write(self, work: Callable[[Connection], _Result]) -> _Result:
        """Run `work` in one transaction, commit it, and return its result.

        If `work` raises, the transaction is undone. `work` runs again if the database undid the transaction, or if
        the connection was lost before COMMIT was sent: it must change nothing but rows.

        Raises:
            DatabaseUnavailable: nothing was changed.
            CommitStateUnknown: the reply to COMMIT was lost.
        """
        return self._in_turn(lambda: self._attempt(self._write_engine, work, self._commit))

    def write_without_waiting(self, work: Callable[[Connection], _Result]) -> _Result:
        """Like `write`, for what waits for no lock, or not for long."""
        return self._apart(lambda: self._attempt(self._write_engine, work, self._commit))

    def write_together(self, work: Callable[[Connection], _Result]) -> _Result:
        """Like `write`, but on SQLite those that wait share one transaction and its sync.

        Postgres shares the sync by itself, and one transaction for many would hold the locks of all.
        """
        return self._shared_writes.run(work) if self._is_sqlite else self.write(work)

    def _write_quickly(self, work: Callable[[Connection], _Result]) -> _Result:
        # Without SQLAlchemy's own idea of a transaction, which Alembic needs, and commits do not.
        return self._attempt(self._write_engine, work, self._commit, begins_itself=True)

    def write_lightly(self, work: Callable[[Connection], _Result]) -> _Result:
        """Like `write`, for what may be lost: it waits neither for the disk nor long for a lock."""
        return self._apart(lambda: self._attempt(self._light_engine, work, self._commit))

    def read_locked(self, work: Callable[[Connection], _Result]) -> _Result:
        """Return what `work` reads in a transaction that may wait for locks and changes nothing.

        No earlier transaction whose outcome was unknown can change afterwards what was read.

        Raises:
            DatabaseUnavailable: the database does not answer, or a lock stays taken.
        """
        try:
            finish = self._settle if self._is_sqlite else self._roll_back
            return self._in_turn(lambda: self._attempt(self._write_engine, work, finish))
        except CommitStateUnknown as error:
            raise DatabaseUnavailable("The database does not say what became of an earlier change") from error

    def _connect_reader(self) -> Connection:
        # SQLite would make an empty file in place of one that was moved away.
        self._file.check()
        # Before the first reader: what is set for it would be set for others, too.
        if not self._has_own_sessions:
            check_own_sessions(self._write_engine, self._light_engine)
            self._has_own_sessions = True
        return self._read_engine.connect()

    def _apart(self, work: Callable[[], _Result]) -> _Result:
        """Do what waits for another machine while others of this thread go on."""
        if self._is_sqlite:
            return work()
        found: list[_Result] = []
        do_elsewhere(lambda: found.append(work()))
        return found[0]

    def _in_turn(self, work: Callable[[], _Result]) -> _Result:
        """Do the same for what may wait for a lock: each table has some connections only."""
        if self._is_sqlite:
            return work()
        group = group_at_work.get()
        try:
            self._gate.enter(group)
        except TimeoutError as error:
            raise DatabaseUnavailable(
                "The database does not keep up: too many changes beside this one wait for locks"
            ) from error

        def work_in_turn() -> _Result:
            try:
                return work()
            finally:
                self._gate.leave(group)

        return self._apart(work_in_turn)

    def _attempt(
        self,
        engine: Engine,
        work: Callable[[Connection], _Result],
        finish: Callable[[Connection], None],
        *,
        begins_itself: bool = False,
    ) -> _Result:
        with self._turn():
            attempt = 1
            while True:
                try:
                    return self._transaction(engine, work, finish, begins_itself=begins_itself)
                except Undone as undone:
                    if attempt >= undone.max_attempts:
                        raise our_error(undone.error) from undone.error
                attempt += 1

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._is_sqlite:
            yield
            return
        if not self._sqlite_turn.acquire(timeout=self._turn_timeout_s):
            raise DatabaseUnavailable("The database does not keep up: other writers came first for too long")
        try:
            yield
        finally:
            self._sqlite_turn.release()

    def _transaction(
        self,
        engine: Engine,
        work: Callable[[Connection], _Result],
        finish: Callable[[Connection], None],
        *,
        begins_itself: bool,
    ) -> _Result:
        self._file.check()
        had_met_read_only = self._has_met_read_only
        try:
            connection = self._kept_writers.pop(engine, None) or engine.connect()
        except library_errors() as error:
            raise our_error(error) from error
        self._file.note()
        try:
            self._begin_on(connection, begins_itself=begins_itself)
            result = work(connection)
        except library_errors() as error:
            self._roll_back(connection)
            raise self._consequence(error, connection) from error
        except BaseException:
            self._roll_back(connection)
            if had_met_read_only:
                self._leave_former_primary()
            raise
        else:
            finish(connection)
            if had_met_read_only:
                self._leave_former_primary()
            return result
        finally:
            # What became of the transaction is known by now, whatever happens here.
            with suppress(*library_errors()):
                self._give_back(engine, connection)

    def _begin_on(self, connection: Connection, *, begins_itself: bool) -> None:
        revision = self._revision
        if not self._is_sqlite:
            try:
                connection.exec_driver_sql(self._begin)
            except library_errors() as error:
                if revision is None or not is_at_another(error):
                    raise
                raise migrated(revision) from error
            return
        if begins_itself:
            begin_when_free(connection, partial(run_on_sqlite, connection, self._begin))
        else:
            begin_when_free(connection, partial(connection.exec_driver_sql, self._begin))
        if revision is not None:
            check_on_sqlite(connection, revision)

    def _give_back(self, engine: Engine, connection: Connection) -> None:
        """Give a connection back to the pool, but keep SQLite's one writer.

        The pool would cost more than a statement does.
        """
        if not self._is_sqlite or self._is_closed or connection.invalidated:
            connection.close()
            return
        if connection.in_transaction():
            connection.rollback()  # SQLAlchemy takes each statement for the beginning of one.
        self._kept_writers[engine] = connection

    def _consequence(self, error: Exception, connection: Connection) -> Exception:
        """Return the error to raise when a transaction was undone before its commit."""
        if undid_transaction(error):
            return Undone(error, MAX_ATTEMPTS_AFTER_COLLISION)
        if lost_connection(error) or stood_still(error):
            return Undone(error, MAX_ATTEMPTS_AFTER_LOST_CONNECTION)
        if only_reads(error):
            # A former primary, or a standby: it answers, so the pool takes it for a good connection.
            connection.invalidate(error)
            self._has_met_read_only = True
            return Undone(error, self._pool_size + 1)
        return our_error(error)

    def _leave_former_primary(self) -> None:
        """Read nothing more from a server that took no writes, now that one takes them.

        Connections that only read never learn of a failover: what they find would be as it was before, for ever.
        """
        self._has_met_read_only = False
        self._readers.renew()

    def _commit(self, connection: Connection) -> None:
        """Commit, and raise what says how it ended: undone, refused, or unknown."""
        dbapi_connection = connection.connection.dbapi_connection
        assert dbapi_connection is not None
        try:
            cursor = dbapi_connection.cursor()
            cursor.execute("COMMIT")
        except library_errors() as error:
            if not commit_was_refused(error, dbapi_connection):
                connection.invalidate(error)
                raise CommitStateUnknown(
                    f"The database did not confirm the change: {reason(error)}. It may or may not be made"
                ) from error
            self._roll_back(connection)
            raise self._consequence(error, connection) from error
        except BaseException:
            connection.invalidate()
            raise
        # Postgres answers COMMIT of a failed transaction with success, and the word ROLLBACK.
        if getattr(cursor, "statusmessage", "COMMIT") != "COMMIT":
            raise DatabaseUnavailable("The database undid the transaction; nothing was changed")

    def _settle(self, connection: Connection) -> None:
        """Overwrite a transaction in SQLite's log whose COMMIT met a disk error.

        It is invisible now, but after a crash before the next write it could come back.
        """
        _write_again(connection)
        self._commit(connection)

    def _roll_back(self, connection: Connection) -> None:
        """End the transaction; if that fails, make the pool drop the connection."""
        if connection.invalidated:
            return
        dbapi_connection = connection.connection.dbapi_connection
        assert dbapi_connection is not None
        try:
            # SQLite has none left where it rolled back by itself, as on a full disk.
            if getattr(dbapi_connection, "in_transaction", True):
                dbapi_connection.cursor().execute("ROLLBACK")
        except library_errors() as error:
            connection.invalidate(error)


def _change_nothing(connection: Connection) -> None:
    for sql in (_NO_CHANGE, _LITTLE_MEMORY, _TEMPORARY_FILE):
        connection.exec_driver_sql(sql)


def _write_again(connection: Connection) -> None:
    """Write a page of SQLite's file as it is."""
    version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
    connection.exec_driver_sql(f"PRAGMA user_version = {version}")
