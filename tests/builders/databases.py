"""Databases with all tables and no rows: migrated once in a test process, then copied."""

from __future__ import annotations

import tempfile
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from app.database.connections.database import Database
from app.database.schema.migrations import migrate
from app.database.schema.revisions import found_revision, known_revision

if TYPE_CHECKING:  # A server on SQLite does without the driver of Postgres, and a test sees to it.
    from tests.servers.postgres import PostgresServer

_SQLITE = "sqlite:///"


def migrated(url: str) -> str:
    """Bring a database to the newest revision, as an operator does before starting a server, and return its URL."""
    path = Path(url.removeprefix(_SQLITE))
    if url.startswith(_SQLITE) and not path.exists():
        path.write_bytes(_sqlite_file())
        return url
    with closing(Database.open(url)) as database:
        if found_revision(database) != known_revision():
            migrate(database)
    return url


def migrated_database_of(server: PostgresServer) -> str:
    """Create a migrated database on a server, and return its name."""
    return server.create_database(_postgres_database(server))


@cache
def _sqlite_file() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "migrated.db")
        with closing(Database.open(f"{_SQLITE}{path}")) as database:
            migrate(database)
        return path.read_bytes()


@cache
def _postgres_database(server: PostgresServer) -> str:
    name = server.create_database()
    migrated(server.url(name))
    return name
