"""INSERT statements with a rule for a row that exists already, in each database's form."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlalchemy import Executable, Table
from sqlalchemy.dialects import sqlite

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql

    AnyInsert = postgresql.Insert | sqlite.Insert


class OnEachDatabase:
    """One statement in the form of each dialect, made when that dialect asks for it first."""

    def __init__(self, table: Table, build: Callable[[AnyInsert], Executable]) -> None:
        self._table = table
        self._build = build
        self._statements: dict[str, Executable] = {}

    def __getitem__(self, dialect: str) -> Executable:
        """Return the statement for `postgresql` or `sqlite`."""
        statement = self._statements.get(dialect)
        if statement is None:
            # Kept, for building costs more than running.
            statement = self._statements[dialect] = self._build(insert_into(self._table, dialect))
        return statement


def insert_into(table: Table, dialect: str) -> AnyInsert:
    """Return an INSERT to which the dialect's ON CONFLICT can be added."""
    if dialect == "sqlite":
        return sqlite.insert(table)
    # Only where the database is Postgres: the import takes longer than that of our own database room.
    from sqlalchemy.dialects import postgresql

    return postgresql.insert(table)
