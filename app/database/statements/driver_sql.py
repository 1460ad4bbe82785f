"""SQL for SQLite's own driver, for the statements of every commit.

SQLAlchemy needs longer to run one of them than SQLite does.
"""

from __future__ import annotations

from sqlalchemy import ClauseElement
from sqlalchemy.dialects import sqlite


def sqlite_sql(statement: ClauseElement) -> str:
    """Return a statement's text, with its parameters by name; all of them must be bound."""
    return str(statement.compile(dialect=sqlite.dialect(paramstyle="named")))
