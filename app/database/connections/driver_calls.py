"""Statements of every commit on SQLite, which its driver sends by itself.

SQLAlchemy needs longer for one of them than SQLite does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection


def run_on_sqlite(connection: Connection, sql: str, values: Mapping[str, Any] | Sequence[Any] = ()) -> int:
    """Run a statement and return how many rows it has changed; errors are those of the driver."""
    driver_connection: Any = connection.connection.dbapi_connection
    return int(driver_connection.execute(sql, values).rowcount)
