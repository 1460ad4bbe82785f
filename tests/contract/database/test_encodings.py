"""Encodings of Postgres: every character of a name is kept, or the database is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.database.connections.database import Database
from app.database.schema.migrations import migrate
from app.engine.model.identifiers import Namespace
from app.errors import InvalidSetting
from tests.contract.database.every_call import fill
from tests.contract.database.stores import AUTHOR, Stores
from tests.servers.postgres import PostgresServer

pytestmark = pytest.mark.postgres

ODD = Namespace(("日本", "e\u0301", "\U0010ffff"))


@pytest.fixture
def name(postgres_server: PostgresServer) -> Iterator[str]:
    name = "of_another_encoding"
    yield name
    postgres_server.drop_database(name)
    postgres_server.execute("DROP ROLE IF EXISTS latin")


def create(server: PostgresServer, name: str, encoding: str) -> None:
    server.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' LOCALE 'C'")


def check_names(database: Database) -> None:
    migrate(database)
    stores = Stores.on(database)
    fill(stores)
    warehouse = stores.warehouses.list()[0].id
    stores.namespaces.create(warehouse, ODD, {"ä": "ß"}, AUTHOR)
    assert stores.namespaces.find(warehouse, ODD) == {"ä": "ß"}
    assert "日本" in stores.namespaces.list_children(warehouse, None)


def test_a_database_that_takes_bytes_as_they_come_keeps_all_characters(
    postgres_server: PostgresServer, name: str
) -> None:
    create(postgres_server, name, "SQL_ASCII")
    database = Database.open(postgres_server.url(name))
    check_names(database)
    database.close()


def test_a_role_with_an_encoding_of_its_own_writes_all_characters(
    postgres_server: PostgresServer, name: str
) -> None:
    create(postgres_server, name, "UTF8")
    postgres_server.execute("CREATE ROLE latin SUPERUSER LOGIN")
    postgres_server.execute("ALTER ROLE latin SET client_encoding = 'LATIN1'")
    database = Database.open(postgres_server.url(name).replace("//postgres@", "//latin@"))
    check_names(database)
    database.close()


def test_a_database_that_lacks_characters_is_refused(postgres_server: PostgresServer, name: str) -> None:
    create(postgres_server, name, "LATIN1")
    database = Database.open(postgres_server.url(name))
    with pytest.raises(InvalidSetting, match="encoding LATIN1"):
        migrate(database)
    database.close()
