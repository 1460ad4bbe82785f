"""Several server processes on one database, on SQLite and on Postgres."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.builders.databases import migrated_database_of
from tests.servers.icetower import icetower_process
from tests.servers.modes import MODES
from tests.servers.postgres import PostgresServer
from tests.servers.postgres_proxy import postgres_wire

__all__ = ["postgres_wire"]

PROCESSES = 2


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'icetower.db'}"
    postgres: PostgresServer = request.getfixturevalue("postgres_server")
    return postgres.url(migrated_database_of(postgres))


@pytest.fixture
def mode(request: pytest.FixtureRequest) -> dict[str, str]:
    """Settings that turn the tower on or off, for tests that ask for both; else what servers have by themselves."""
    return MODES[request.param] if hasattr(request, "param") else {}


@pytest.fixture
def servers(database_url: str, tmp_path: Path, mode: dict[str, str]) -> Iterator[list[str]]:
    """Addresses of two servers that share one database and one warehouse."""
    settings = {
        "default_warehouse_location": str(tmp_path / "warehouse"),
        "database_url": database_url,
        "log_level": "warning",
        "threads": "16",
        "file_deletion_interval_seconds": "0.1",
        **mode,
    }
    with ExitStack() as running:
        urls = []
        for number in range(PROCESSES):
            folder = tmp_path / f"server-{number}"
            folder.mkdir()
            urls.append(running.enter_context(icetower_process(folder, **settings)))
        yield urls
