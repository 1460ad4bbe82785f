"""One crash-prone server on each database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders.databases import migrated_database_of
from tests.crash.crashes import CrashingServer
from tests.servers.modes import MODES


@pytest.fixture
def mode(request: pytest.FixtureRequest) -> dict[str, str]:
    """Settings that turn the tower on or off, for tests that ask for both; else what servers have by themselves."""
    return MODES[request.param] if hasattr(request, "param") else {}


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def server(request: pytest.FixtureRequest, tmp_path: Path, mode: dict[str, str]) -> Iterator[CrashingServer]:
    settings = dict(mode)
    if request.param == "postgres":
        postgres = request.getfixturevalue("postgres_server")
        settings["database_url"] = postgres.url(migrated_database_of(postgres))
    with CrashingServer(tmp_path, settings) as started:
        yield started
