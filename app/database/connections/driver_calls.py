"""Statements of every commit on SQLite, which its driver sends by itself.

SQLAlchemy needs longer for one of them than SQLite does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from time import sleep as _pause
from typing import Any, Final

from sqlalchemy import Connection

from app.database.connections.driver_errors import is_busy, library_errors

BUSY_TIMEOUT_MS: Final = "busy_timeout_ms"
"""In the `info` of a connection that writes: how long it waits for other processes."""
_LOOK_S: Final = 0.0005


def run_on_sqlite(connection: Connection, sql: str, values: Mapping[str, Any] | Sequence[Any] = ()) -> int:
    """Run a statement and return how many rows it has changed; errors are those of the driver."""
    driver_connection: Any = connection.connection.dbapi_connection
    return int(driver_connection.execute(sql, values).rowcount)


def begin_when_free(connection: Connection, begin: Callable[[], object]) -> None:
    """Begin a transaction on SQLite as soon as no other process writes.

    SQLite itself would sleep for longer each time, up to 100 ms, while others come and go.

    Raises the driver's or SQLAlchemy's error if the database stays busy, or cannot be used.
    """
    end_s: float | None = None
    while True:
        try:
            begin()
        except library_errors() as error:
            now_s = time.monotonic()
            if end_s is None:
                end_s = now_s + connection.info[BUSY_TIMEOUT_MS] / 1000
            if not is_busy(error) or now_s >= end_s:
                raise
        else:
            return
        _pause(_LOOK_S)
