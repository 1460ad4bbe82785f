"""The servers that real clients talk to: one on SQLite, one on Postgres, each once for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.builders.databases import migrated_database_of
from tests.servers.icetower import icetower_process
from tests.servers.postgres import PostgresServer

SETTINGS = {
    # What these servers queue themselves is deleted at once. A round takes 10 ms, and they go on as long as tests run.
    "file_deletion_interval_seconds": "1",
    "log_level": "warning",
    # Whatever real clients write in these tests must look sound to the guard, or their commits fail.
    "default_warehouse_properties": '{"icetower.guard": "reject"}',
}


@pytest.fixture(scope="session")
def sqlite_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a server on SQLite and a local folder."""
    with icetower_process(tmp_path_factory.mktemp("icetower-sqlite"), **SETTINGS) as url:
        yield url


@pytest.fixture(scope="session")
def postgres_backed_server(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer
) -> Iterator[str]:
    """Address of a server on Postgres and a local folder."""
    database = postgres_server.url(migrated_database_of(postgres_server))
    with icetower_process(
        tmp_path_factory.mktemp("icetower-postgres"), database_url=database, **SETTINGS
    ) as url:
        yield url
