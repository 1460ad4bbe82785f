"""Why Postgres takes no connection: those who read `/ready` learn it, though the driver has no code for it."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from app.database.connections.database import Database
from app.errors import DatabaseUnavailable
from tests.builders.databases import migrated_database_of
from tests.servers.postgres import PostgresServer

pytestmark = pytest.mark.postgres


@pytest.fixture
def url(postgres_server: PostgresServer) -> Iterator[str]:
    name = migrated_database_of(postgres_server)
    postgres_server.execute("CREATE ROLE guest LOGIN")
    yield postgres_server.url(name).replace("//postgres@", "//guest@")
    postgres_server.drop_database(name)
    postgres_server.execute("DROP ROLE guest")


def test_that_a_role_has_no_connection_left_is_said(postgres_server: PostgresServer, url: str) -> None:
    postgres_server.execute("ALTER ROLE guest CONNECTION LIMIT 1")
    with psycopg.connect(url):
        database = Database.open(url)

        with pytest.raises(DatabaseUnavailable, match=r"as it should: it has no connection left$"):
            database.check_writes()

        database.close()
