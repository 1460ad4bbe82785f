"""One crash-prone server on each database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.database.connections.database import Database
from app.database.migrations import migrate
from tests.crash.crashes import CrashingServer
from tests.servers.modes import MODES


def migrated(url: str) -> str:
    """Bring a database to the newest revision, as an operator does before starting a server."""
    database = Database.open(url)
    migrate(database)
    database.close()
    return url


@pytest.fixture
def mode(request: pytest.FixtureRequest) -> dict[str, str]:
    """Settings that turn the tower on or off, for tests that ask for both; else what servers have by themselves."""
    return MODES[request.param] if hasattr(request, "param") else {}


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def server(request: pytest.FixtureRequest, tmp_path: Path, mode: dict[str, str]) -> Iterator[CrashingServer]:
    settings = dict(mode)
    if request.param == "postgres":
        postgres = request.getfixturevalue("postgres_server")
        settings["database_url"] = migrated(postgres.url(postgres.create_database()))
    with CrashingServer(tmp_path, settings) as started:
        yield started
