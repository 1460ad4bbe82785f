"""A database for each test, once on SQLite and once on Postgres, and the stores on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.database.connections.database import Database
from tests.builders.databases import migrated, migrated_database_of
from tests.contract.database.stores import Stores
from tests.servers.postgres import PostgresServer
from tests.servers.postgres_proxy import postgres_wire

__all__ = ["postgres_wire"]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database with all tables and no rows."""
    if request.param == "sqlite":
        yield migrated(f"sqlite:///{tmp_path / 'catalog.db'}")
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    name = migrated_database_of(server)
    yield server.url(name)
    server.drop_database(name)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    opened = Database.open(database_url)
    yield opened
    opened.close()


@pytest.fixture
def stores(database: Database) -> Stores:
    return Stores.on(database)
