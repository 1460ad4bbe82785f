"""How connections to SQLite and Postgres are made: durable and with time limits."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, LiteralString

from sqlalchemy import URL, Connection, Engine, NullPool, QueuePool, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import ConnectionPoolEntry

from app.database.connections.driver_calls import BUSY_TIMEOUT_MS
from app.errors import InvalidSetting

if TYPE_CHECKING:
    import psycopg

SQLITE_BUSY_TIMEOUT_S = 30.0

_CONNECT_DEFAULTS: dict[str, Any] = {
    "application_name": "icetower",
    # Whatever is set for the role: names may have any character.
    "client_encoding": "utf8",
    "connect_timeout": 10,
    # A server that vanished is noticed after about half a minute, and not after two hours.
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 30_000,
}
# A client that stops in mid-transaction, or vanishes, must not keep its locks: less long than others wait for them.
_SERVER_SETTINGS = (
    "-c statement_timeout=30s -c lock_timeout=10s -c idle_in_transaction_session_timeout=5s"
    " -c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=4"
)
"""The URL's own `options` come later, so they override these."""
_SEVERAL_HOSTS = re.compile(r":\d+,[^@/?]*(/|\?|$)")
"""As libpq takes them, and SQLAlchemy does not."""
_LIMIT = "longest_wait_s"
_ENCODINGS = frozenset({"UTF8", "SQL_ASCII"})
"""Those that keep every character as it comes; no other one has all of them."""
_LIGHT_SETTINGS = "-c lock_timeout=1s -c synchronous_commit=off"
"""What may be lost must not keep others waiting either, beside a row that somebody holds for long.

Not by a SET: a pooler that hands a session on after each transaction would hand that on to commits.
"""


def engine_for_writes(url: str, pool_size: int, pool_timeout_s: float, *, is_durable: bool = True) -> Engine:
    """Return an engine whose connections begin and end transactions only on request.

    What is committed is on disk; if it is not to be durable, a loss of power may take the last of it back.
    """
    parsed = _parse(url)
    return _engine(
        parsed,
        read_only=False,
        is_durable=is_durable,
        poolclass=QueuePool,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=pool_timeout_s,
        pool_use_lifo=True,
    )


def engine_for_reads(url: str) -> Engine:
    """Return an engine whose connections cannot write; it keeps no pool of them."""
    return _engine(_parse(url), read_only=True, poolclass=NullPool)


def _parse(text: str) -> URL:
    try:
        url = make_url(text)
    except (ArgumentError, ValueError) as error:
        if _SEVERAL_HOSTS.search(text):
            raise InvalidSetting(
                "Invalid setting database_url: several hosts with ports are written "
                "postgresql://user:password@/name?host=one:5432&host=two:5432"
            ) from error
        raise InvalidSetting(
            "Invalid setting database_url: it is not a URL such as postgresql://user:password@host:5432/name"
        ) from error
    if url.drivername in ("postgres", "postgresql", "postgresql+psycopg"):
        if "@" in (url.host or ""):
            # Else an error about this host would show the end of the password.
            raise InvalidSetting(
                "Invalid setting database_url: it has two @; write %40 for the one in the password"
            )
        return url.set(drivername="postgresql+psycopg")
    if url.drivername in ("sqlite", "sqlite+pysqlite"):
        if url.host:
            raise InvalidSetting(
                "Invalid setting database_url: SQLite has no host; write sqlite:/// before a path, as in "
                "sqlite:////absolute/path/to/icetower.db"
            )
        is_in_memory = ":memory:" in (url.database or ":memory:") or url.query.get("mode") == "memory"
        if is_in_memory:
            raise InvalidSetting(
                "Invalid setting database_url: SQLite in memory would lose every table: name a file, as in sqlite:///icetower.db"
            )
        return url.set(drivername="sqlite+pysqlite")
    raise InvalidSetting(
        f"Invalid setting database_url: it begins with {url.drivername!r}, expected 'sqlite' or 'postgresql'"
    )


def _engine(url: URL, *, read_only: bool, is_durable: bool = True, **pool: Any) -> Engine:
    # In "autocommit" neither SQLAlchemy nor the driver begins a transaction: `Database.write` says BEGIN.
    if url.get_backend_name() == "sqlite":
        arguments = {"check_same_thread": False} | _unless_given({"timeout": SQLITE_BUSY_TIMEOUT_S}, url)
        engine = create_engine(url, isolation_level="AUTOCOMMIT", connect_args=arguments, **pool)
        writer = _set_up_sqlite_writer if is_durable else _set_up_light_sqlite_writer
        event.listen(engine, "connect", _set_up_sqlite_reader if read_only else writer)
        return engine
    own = [_SERVER_SETTINGS] if is_durable else [_SERVER_SETTINGS, _LIGHT_SETTINGS]
    settings = {"options": " ".join([*own, *url.normalized_query.get("options", ())])}
    arguments = settings | _unless_given(_CONNECT_DEFAULTS, url)
    engine = create_engine(
        url, isolation_level="AUTOCOMMIT", connect_args=arguments, use_native_hstore=False, **pool
    )
    event.listen(engine, "do_connect", _connect_to_postgres)
    if read_only:
        event.listen(engine, "connect", _set_up_postgres_reader)
    elif is_durable:
        event.listen(engine, "connect", _set_up_postgres_writer)
    return engine


def _unless_given(defaults: dict[str, Any], url: URL) -> dict[str, Any]:
    return {name: value for name, value in defaults.items() if name not in url.query}


@contextmanager
def unhurried(connection: Connection) -> Iterator[None]:
    """Wait for the statements of the block as long as they take."""
    driver_connection: Any = connection.connection.dbapi_connection
    limit_s = getattr(driver_connection, _LIMIT, None)
    if limit_s is None:
        yield
        return
    setattr(driver_connection, _LIMIT, None)
    try:
        yield
    finally:
        setattr(driver_connection, _LIMIT, limit_s)


def _connect_to_postgres(
    _dialect: object, _record: object, arguments: list[Any], options: dict[str, Any]
) -> psycopg.Connection[Any]:
    # Only here: a server on SQLite needs no driver of Postgres.
    from app.database.connections.punctual_postgres import PunctualConnection

    connection = PunctualConnection.connect(*arguments, **options)
    encoding = connection.info.parameter_status("server_encoding")
    if encoding is not None and encoding not in _ENCODINGS:
        connection.close()
        raise InvalidSetting(
            f"Invalid setting database_url: the database has the encoding {encoding}, which not every name can be "
            "written in; make one with CREATE DATABASE ... TEMPLATE template0 ENCODING 'UTF8'"
        )
    connection.add_notice_handler(connection.hear)
    _or_close(connection, connection.obey_statement_timeout)
    return connection


def _set_up_sqlite_reader(connection: sqlite3.Connection, _record: object) -> None:
    connection.execute("PRAGMA query_only = ON")


def _set_up_sqlite_writer(connection: sqlite3.Connection, record: ConnectionPoolEntry) -> None:
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.execute("PRAGMA synchronous = FULL")
    # On macOS a sync does not reach the disk itself without these; see `app.fileio.syncs`.
    connection.execute("PRAGMA fullfsync = ON")
    connection.execute("PRAGMA checkpoint_fullfsync = ON")
    connection.execute("PRAGMA foreign_keys = ON")
    # From here on only the beginning of a transaction can meet another writer: `begin_when_free` waits for it.
    (record.info[BUSY_TIMEOUT_MS],) = connection.execute("PRAGMA busy_timeout").fetchone()
    connection.execute("PRAGMA busy_timeout = 0")


def _set_up_light_sqlite_writer(connection: sqlite3.Connection, record: ConnectionPoolEntry) -> None:
    _set_up_sqlite_writer(connection, record)
    # The log is not synced with each commit; the next durable one syncs it up to there.
    connection.execute("PRAGMA synchronous = NORMAL")


def _set_up_postgres_reader(connection: psycopg.Connection[Any], _record: object) -> None:
    # Not among the server settings: libpq would take the server for a standby.
    _execute_or_close(connection, "SET default_transaction_read_only = on")


def _set_up_postgres_writer(connection: psycopg.Connection[Any], _record: object) -> None:
    # A commit acknowledged before it is on disk can be lost; settings stronger than "on" are kept.
    _execute_or_close(
        connection,
        "SELECT set_config('synchronous_commit', 'on', false)"
        " WHERE current_setting('synchronous_commit') IN ('off', 'local')",
    )


def _execute_or_close(connection: psycopg.Connection[Any], sql: LiteralString) -> None:
    _or_close(connection, lambda: connection.execute(sql))


def _or_close(connection: psycopg.Connection[Any], set_up: Callable[[], object]) -> None:
    import psycopg

    try:
        set_up()
    except psycopg.Error:
        # The pool forgets a connection that could not be set up.
        connection.close()
        raise
