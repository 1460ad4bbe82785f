"""Poolers between a server and Postgres: each connection needs a session of its own."""

from __future__ import annotations

import psycopg
import pytest

from app.database.connections.database import Database
from app.database.schema.migrations import migrate
from app.database.schema.revisions import check_revision
from app.errors import InvalidSetting
from tests.builders.databases import migrated_database_of
from tests.servers.postgres import PostgresServer
from tests.servers.transaction_pooler import pooler_before

pytestmark = pytest.mark.postgres


def test_a_pooler_that_hands_sessions_on_is_refused_before_anything_is_set_there(
    postgres_server: PostgresServer,
) -> None:
    name = migrated_database_of(postgres_server)
    with pooler_before(postgres_server, name) as pooler:
        for work in (migrate, check_revision):
            database = Database.open(pooler.url, pool_size=1)
            with pytest.raises(InvalidSetting, match="pool_mode = session"):
                work(database)
            database.close()
        with psycopg.connect(pooler.url) as connection:
            connection.execute("CREATE TABLE of_another_program ()")
    postgres_server.drop_database(name)
