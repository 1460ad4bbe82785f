"""INSERT statements with a rule for a row that exists already, in each database's form."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlalchemy import Executable, Table
from sqlalchemy.dialects import postgresql, sqlite

AnyInsert = postgresql.Insert | sqlite.Insert


def on_each_database(table: Table, build: Callable[[AnyInsert], Executable]) -> Mapping[str, Executable]:
    """Return the statement for each dialect. It is built once: building costs more than running."""
    return {"postgresql": build(postgresql.insert(table)), "sqlite": build(sqlite.insert(table))}
