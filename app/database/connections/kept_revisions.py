"""Whether a database that a change begins on still has the tables that this process knows."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Connection

from app.database.connections.driver_errors import error_code
from app.errors import DatabaseUnavailable

_DIVISION_BY_ZERO: Final = "22012"
_FOUND_ON_SQLITE: Final = "SELECT version_num FROM alembic_version"


def beginning_at(revision: str) -> str:
    """Return the SQL that begins a transaction on Postgres, and fails at any other revision.

    It is one message to Postgres, and a question of its own would be one more for each commit. Until the transaction
    ends no migration begins: it locks the table that is read here.
    """
    question = f"SELECT 1 / count(*) FROM alembic_version WHERE version_num = '{revision}'"  # noqa: S608 - our own name
    return f"BEGIN ISOLATION LEVEL READ COMMITTED; {question}"


def is_at_another(error: Exception) -> bool:
    """Say whether this is how beginning a transaction fails at another revision."""
    return error_code(error) == _DIVISION_BY_ZERO


def check_on_sqlite(connection: Connection, revision: str) -> None:
    """Check the revision in a transaction that has begun; raises `DatabaseUnavailable`."""
    driver_connection: Any = connection.connection.dbapi_connection
    if driver_connection.execute(_FOUND_ON_SQLITE).fetchall() != [(revision,)]:
        raise migrated(revision)


def migrated(revision: str) -> DatabaseUnavailable:
    """Return the error for a change that a migration came before."""
    return DatabaseUnavailable(
        f"The database is no longer at revision {revision}, which this server works with: it was migrated. Nothing was "
        "changed. Stop this server, and start one of the build that has migrated it"
    )
