"""One catalog with something to lose, for all attacks of a module, on SQLite and on Postgres."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from app.database.connections.database import Database
from app.setting_types import DatabaseUrl
from tests.bad_input.victim import MAX_BODY_BYTES, Victim
from tests.builders.databases import migrated, migrated_database_of
from tests.builders.http_catalog import http_catalog
from tests.servers.postgres import PostgresServer


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def victim(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    folder = tmp_path_factory.mktemp("victim")
    url = f"sqlite:///{folder / 'icetower.db'}"
    if request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres_server")
        url = server.url(migrated_database_of(server))
    with (
        closing(Database.open(migrated(url))) as database,
        http_catalog(folder, database_url=DatabaseUrl(url), max_body_bytes=MAX_BODY_BYTES) as client,
    ):
        attacked = Victim(client, database, folder)
        attacked.fill()
        yield attacked
