"""SQL for SQLite's own driver, for the statements of every commit.

SQLAlchemy needs longer to run one of them than SQLite does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import ClauseElement, Connection, Executable
from sqlalchemy.dialects import sqlite


def sqlite_sql(statement: ClauseElement) -> str:
    """Return a statement's text, with its parameters by name; all of them must be bound."""
    return str(statement.compile(dialect=sqlite.dialect(paramstyle="named")))


def rows_of(
    connection: Connection, statement: Executable, values: Mapping[str, Any]
) -> Sequence[Sequence[Any]]:
    """Run a statement and return its rows.

    On SQLite its own driver does it, and errors are the driver's.

    Args:
        connection: of a transaction, or one that reads.
        statement: made once and kept: its text is remembered. No column of it needs a type of SQLAlchemy's.
        values: of the parameters that it has not got values for.
    """
    if connection.dialect.name != "sqlite":
        return connection.execute(statement, values).all()
    rows: list[tuple[Any, ...]] = _on_driver(connection, statement, values).fetchall()
    return rows


def run_with(connection: Connection, statement: Executable, *values: Mapping[str, Any]) -> int:
    """Run a statement with each of some values; return how many rows it has changed. See `rows_of`."""
    if connection.dialect.name != "sqlite":
        return connection.execute(statement, values if len(values) > 1 else values[0]).rowcount
    return sum(_on_driver(connection, statement, each).rowcount for each in values)


def _on_driver(connection: Connection, statement: Executable, values: Mapping[str, Any]) -> Any:
    driver_connection: Any = connection.connection.dbapi_connection
    text, own = _text_and_values(statement, tuple(values))
    return driver_connection.execute(text, {**own, **values})


@lru_cache(maxsize=64)
def _text_and_values(statement: ClauseElement, names: tuple[str, ...]) -> tuple[str, Mapping[str, Any]]:
    # An INSERT has the columns that it is given values for.
    compiled = statement.compile(dialect=sqlite.dialect(paramstyle="named"), column_keys=list(names))
    return str(compiled), {name: value for name, value in compiled.params.items() if value is not None}
