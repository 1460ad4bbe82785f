"""One crash-prone server on each database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.database.connections.database import Database
from app.database.migrations import migrate
from tests.crash.crashes import CrashingServer


def migrated(url: str) -> str:
    """Bring a database to the newest revision, as an operator does before starting a server."""
    database = Database.open(url)
    migrate(database)
    database.close()
    return url


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CrashingServer]:
    settings: dict[str, str] = {}
    if request.param == "postgres":
        postgres = request.getfixturevalue("postgres_server")
        settings["database_url"] = migrated(postgres.url(postgres.create_database()))
    with CrashingServer(tmp_path, settings) as started:
        yield started
