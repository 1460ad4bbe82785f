"""A database for each test, once on SQLite and once on Postgres, and the stores on it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.database.connections.database import Database
from app.database.migrations import migrate
from tests.contract.database.stores import Stores
from tests.servers.postgres import PostgresServer
from tests.servers.postgres_proxy import postgres_wire

__all__ = ["postgres_wire"]


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite database with all tables and no rows, to be copied."""
    path = tmp_path_factory.mktemp("sqlite") / "migrated.db"
    database = Database.open(f"sqlite:///{path}")
    migrate(database)
    database.close()
    return path


@pytest.fixture(scope="session")
def migrated_database(postgres_server: PostgresServer) -> str:
    """A Postgres database with all tables and no rows, to be copied."""
    name = postgres_server.create_database()
    database = Database.open(postgres_server.url(name))
    migrate(database)
    database.close()
    return name


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database with all tables and no rows."""
    if request.param == "sqlite":
        shutil.copyfile(request.getfixturevalue("migrated_file"), tmp_path / "catalog.db")
        yield f"sqlite:///{tmp_path / 'catalog.db'}"
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    name = server.create_database(request.getfixturevalue("migrated_database"))
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
