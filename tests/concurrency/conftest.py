"""Several server processes on one database, on SQLite and on Postgres."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.servers.icetower import icetower_process

PROCESSES = 2


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def servers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[str]]:
    """Addresses of two servers that share one database and one warehouse."""
    settings = {
        "default_warehouse_location": str(tmp_path / "warehouse"),
        "database_url": f"sqlite:///{tmp_path / 'icetower.db'}",
        "log_level": "warning",
        "threads": "16",
    }
    if request.param == "postgres":
        postgres = request.getfixturevalue("postgres_server")
        settings["database_url"] = postgres.url(postgres.create_database())
    with ExitStack() as running:
        urls = []
        for number in range(PROCESSES):
            folder = tmp_path / f"server-{number}"
            folder.mkdir()
            urls.append(running.enter_context(icetower_process(folder, **settings)))
        yield urls
