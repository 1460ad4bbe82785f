"""The databases on which lives of tables are tried out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.catalog.context.server import Server
from tests.builders.catalogs import server_on
from tests.builders.databases import migrated_database_of
from tests.servers.postgres import PostgresServer


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def base_server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    """A server on an empty database."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path}/icetower.db"
    else:
        postgres: PostgresServer = request.getfixturevalue("postgres_server")
        url = postgres.url(migrated_database_of(postgres))
    server = server_on(url)
    yield server
    server.orphan_runs._database.close()
