"""What errors of SQLAlchemy, sqlite3 and psycopg mean, and which of our errors they become."""

from __future__ import annotations

import sqlite3
import sys
from types import ModuleType
from typing import TYPE_CHECKING, TypeGuard

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.errors import DatabaseBehind, DatabaseUnavailable, InvalidRequest

if TYPE_CHECKING:
    import psycopg

_DEADLOCK, _SERIALIZATION_FAILURE = "40P01", "40001"
_READ_ONLY, _LOCK_NOT_FREE, _STOOD_STILL = "25006", "55P03", "25P03"
_BROKEN_CONSTRAINT = "23"
_OVER_A_LIMIT = "54000"
_CONNECTION_ERRORS = ("08", "57P")
_MISSING_SCHEMA_OBJECT = {"42P01", "42703"}
_NO_SCHEMA = "3F000"
_MISSING_SQLITE_OBJECT = ("no such table", "no such column", "has no column named")

_NO_CONNECTION_LEFT = "it has no connection left"
_POSTGRES_REASONS = {
    "25006": "it only reads (a standby, a former primary, or default_transaction_read_only is on)",
    "25P03": "this server stood still in the middle of a transaction",
    "25P04": "a transaction took longer than the role's transaction_timeout",
    "42501": "its role lacks a right",
    "53100": "its disk is full",
    "53200": "it has no memory left",
    "53300": _NO_CONNECTION_LEFT,
    "55P03": "another transaction held the row for too long",
    "57014": "it took too long",
    "57P01": "it is shutting down, or an administrator ended the session",
    "57P02": "it crashed",
    "57P03": "it is starting up or shutting down",
}
_WORDS_OF_REFUSALS = {
    "too many connections": _NO_CONNECTION_LEFT,
    "too many clients": _NO_CONNECTION_LEFT,
    "connection slots are reserved": _NO_CONNECTION_LEFT,
    "no more connections allowed": _NO_CONNECTION_LEFT,
    "authentication failed": "it refuses the role, its password or its certificate",
    "pg_hba.conf": "its pg_hba.conf refuses the role from here",
    "certificate": "its certificate, or that of this server, was refused",
    "database system is": "it is starting up or shutting down",
}
"""What Postgres and pgBouncer say, in English, to those that are not connected yet: the driver has no code then."""
_SQLITE_REASONS = {
    sqlite3.SQLITE_BUSY: "another writer held it for too long",
    sqlite3.SQLITE_LOCKED: "another writer held it for too long",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_READONLY: "the file is read-only",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened",
    sqlite3.SQLITE_NOTADB: "the file is not a SQLite database",
    sqlite3.SQLITE_CORRUPT: "the file is damaged",
    sqlite3.SQLITE_IOERR: "the file cannot be read or written",
    sqlite3.SQLITE_AUTH: "access is denied",
    sqlite3.SQLITE_PERM: "access is denied",
}


class ConstraintBroken(DatabaseUnavailable):
    """A constraint refused a row, and nothing was changed.

    The store that sent the row turns it into an error with a meaning, if it expects it.
    """


class LockNotFree(DatabaseUnavailable):
    """Another transaction held a lock for too long; nothing was changed."""


MAX_ATTEMPTS_AFTER_COLLISION = 8
"""For a transaction that lost a deadlock or a race: each time, another one won."""
MAX_ATTEMPTS_AFTER_LOST_CONNECTION = 2
"""After the first one, the pool also closes its older connections."""


class Undone(Exception):
    """A transaction was undone, but a second attempt may succeed."""

    def __init__(self, error: Exception, max_attempts: int) -> None:
        self.error = error
        self.max_attempts = max_attempts
        super().__init__(str(error))


def our_error(error: Exception) -> DatabaseUnavailable | DatabaseBehind | InvalidRequest:
    """Return the error to raise for a failure that certainly changed nothing."""
    if _holds_nul(error):
        return InvalidRequest("The request holds the character NUL where no text of the database can")
    if _is_too_long_for_an_index(error):
        return InvalidRequest(
            "A location in the request is too long for the database: Postgres takes 2,704 bytes, unless they repeat "
            "themselves. Nothing was changed; choose a shorter one"
        )
    if isinstance(error, PoolTimeout):
        return DatabaseUnavailable("The database does not keep up: no connection became free in time")
    if _is_broken_constraint(error):
        return ConstraintBroken(f"The database refused a row ({error_code(error)}); nothing was changed")
    if _lacks_schema(error):
        return DatabaseBehind(
            "The database lacks a table or column that this build needs; run `icetower migrate`"
        )
    if error_code(error) == _NO_SCHEMA:
        return DatabaseBehind(
            "The database has no schema to work in: none that the role's search_path names is there; make one with "
            "CREATE SCHEMA, or name another one with ALTER ROLE ... SET search_path"
        )
    kind = LockNotFree if error_code(error) == _LOCK_NOT_FREE else DatabaseUnavailable
    return kind(f"The database does not answer as it should: {reason(error)}")


def reason(error: Exception) -> str:
    """Return the reason without SQL, values and host names: the chained exception has those."""
    origin = origin_of(error)
    if _is_of_postgres(origin):
        if origin.sqlstate is None:
            said = (meaning for words, meaning in _WORDS_OF_REFUSALS.items() if words in str(origin))
            return next(said, "the connection failed or was lost")
        return f"{_POSTGRES_REASONS.get(origin.sqlstate, 'it failed')} ({origin.sqlstate})"
    if isinstance(origin, sqlite3.Error):
        primary_code = getattr(origin, "sqlite_errorcode", 0) & 0xFF
        return f"{_SQLITE_REASONS.get(primary_code, 'it failed')} ({error_code(error)})"
    return type(origin).__name__


def error_code(error: Exception) -> str:
    """Return the driver's own code, such as 23505 or SQLITE_FULL."""
    origin = origin_of(error)
    if _is_of_postgres(origin):
        return origin.sqlstate or type(origin).__name__
    return getattr(origin, "sqlite_errorname", type(origin).__name__)


def origin_of(error: Exception) -> BaseException:
    """Return the driver's exception inside SQLAlchemy's, or the exception itself."""
    if isinstance(error, DBAPIError) and error.orig is not None:
        return error.orig
    return error


def undid_transaction(error: Exception) -> bool:
    """Say whether a deadlock or a serialization failure undid the transaction."""
    origin = origin_of(error)
    return _is_of_postgres(origin) and origin.sqlstate in (_DEADLOCK, _SERIALIZATION_FAILURE)


def is_busy(error: Exception) -> bool:
    """Say whether another process writes to the same SQLite database."""
    origin = origin_of(error)
    return (
        isinstance(origin, sqlite3.Error)
        and getattr(origin, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
    )


def lost_connection(error: Exception) -> bool:
    """Say whether the connection is gone, so that another one may work."""
    return isinstance(error, DBAPIError) and error.connection_invalidated


def stood_still(error: Exception) -> bool:
    """Say whether Postgres undid a transaction in which nothing came for too long.

    It looks once more before it runs the next statement: a COMMIT that is answered so was not run.
    """
    origin = origin_of(error)
    return _is_of_postgres(origin) and origin.sqlstate == _STOOD_STILL


def only_reads(error: Exception) -> bool:
    """Say whether the server of this connection takes no writes, as after a failover."""
    origin = origin_of(error)
    return _is_of_postgres(origin) and origin.sqlstate == _READ_ONLY


def commit_was_refused(error: Exception, connection: object) -> bool:
    """Say whether a failed COMMIT certainly changed nothing.

    Postgres: it answered with an ERROR and the session goes on, or the transaction was over before. Another FATAL
    answer, no answer, or an answer from a proxy that lost the server proves nothing.
    SQLite: the transaction is still open, or a lock, a full disk or a constraint stopped it. An error of the disk
    itself proves nothing: after a crash, the log may contain the whole transaction.
    """
    driver = _postgres_driver()
    if driver is not None and isinstance(connection, driver.Connection):
        return stood_still(error) or (
            _is_of_postgres(error)
            and error.sqlstate is not None
            and not error.sqlstate.startswith(_CONNECTION_ERRORS)
            and error.diag.severity_nonlocalized == "ERROR"
            and not connection.closed
            and connection.info.transaction_status == driver.pq.TransactionStatus.IDLE
        )
    if isinstance(error, sqlite3.Error):
        primary_code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_IOERR) & 0xFF
        return primary_code not in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT)
    return False


def _holds_nul(error: Exception) -> bool:
    """Say whether psycopg refused a text because of a NUL in it; the connection goes on."""
    origin, driver = origin_of(error), _postgres_driver()
    return (
        driver is not None
        and isinstance(origin, driver.DataError)
        and origin.sqlstate is None
        and "NUL" in str(origin)
    )


def _is_too_long_for_an_index(error: Exception) -> bool:
    """Say whether a text was too long for an index of Postgres, which takes 2,704 bytes.

    The code alone may also mean that the database has no number left for a transaction.
    """
    origin = origin_of(error)
    if not _is_of_postgres(origin) or origin.sqlstate != _OVER_A_LIMIT:
        return False
    # Its messages are in any language. The index is named from 2,704 bytes on, and not from 8,191 on.
    found = origin.diag
    return found.constraint_name is not None or (found.source_function or "").startswith("index_form_tuple")


def _lacks_schema(error: Exception) -> bool:
    origin = origin_of(error)
    if _is_of_postgres(origin):
        return origin.sqlstate in _MISSING_SCHEMA_OBJECT
    return isinstance(origin, sqlite3.OperationalError) and any(
        text in str(origin) for text in _MISSING_SQLITE_OBJECT
    )


def library_errors() -> tuple[type[Exception], ...]:
    """Return what SQLAlchemy and the drivers that are in use may raise."""
    driver = _postgres_driver()
    return (
        (SQLAlchemyError, sqlite3.Error) if driver is None else (SQLAlchemyError, sqlite3.Error, driver.Error)
    )


def _is_broken_constraint(error: Exception) -> bool:
    origin = origin_of(error)
    if _is_of_postgres(origin):
        return (origin.sqlstate or "").startswith(_BROKEN_CONSTRAINT)
    return isinstance(origin, sqlite3.IntegrityError)


def _is_of_postgres(error: BaseException) -> TypeGuard[psycopg.Error]:
    driver = _postgres_driver()
    return driver is not None and isinstance(error, driver.Error)


def _postgres_driver() -> ModuleType | None:
    # SQLAlchemy imports it for a database that needs it; on SQLite a start would be longer for nothing.
    return sys.modules.get("psycopg")
