"""Roles of Postgres that may not do all that a server does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.database.connections.database import Database
from app.database.schema.rights import check_changes
from app.errors import DatabaseUnavailable
from tests.builders.databases import migrated_database_of
from tests.contract.database.every_call import fill
from tests.contract.database.stores import Stores
from tests.servers.postgres import PostgresServer

pytestmark = pytest.mark.postgres


@pytest.fixture
def database(postgres_server: PostgresServer) -> Iterator[Database]:
    """A database as a role sees it that owns nothing there."""
    name = migrated_database_of(postgres_server)
    postgres_server.execute("CREATE ROLE guest LOGIN")
    database = Database.open(postgres_server.url(name).replace("//postgres@", "//guest@"))
    yield database
    database.close()
    postgres_server.drop_database(name)
    postgres_server.execute("DROP ROLE guest")


def grant(server: PostgresServer, database: Database, sql: str) -> None:
    name = database.read(
        lambda connection: connection.exec_driver_sql("SELECT current_database()").scalar_one()
    )
    owner = Database.open(server.url(name))
    owner.write(lambda connection: connection.exec_driver_sql(sql))
    owner.close()


def test_rights_that_a_role_lacks_are_named(postgres_server: PostgresServer, database: Database) -> None:
    with pytest.raises(DatabaseUnavailable, match=r"role lacks rights on .*pointers, .*warehouses_id_seq"):
        check_changes(database)

    grant(postgres_server, database, "GRANT ALL ON ALL TABLES IN SCHEMA public TO guest")
    with pytest.raises(DatabaseUnavailable, match=r"role lacks rights on .*_id_seq, .*_seq: it needs"):
        check_changes(database)

    grant(postgres_server, database, "GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO guest")
    check_changes(database)

    grant(postgres_server, database, "REVOKE INSERT ON receipts FROM guest")
    with pytest.raises(DatabaseUnavailable, match=r"role lacks rights on receipts: it needs"):
        check_changes(database)


def test_rights_that_are_asked_for_are_enough(postgres_server: PostgresServer, database: Database) -> None:
    grant(
        postgres_server,
        database,
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO guest",
    )
    grant(postgres_server, database, "GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO guest")

    fill(Stores.on(database))


def test_a_change_says_that_its_role_may_not_make_it(database: Database) -> None:
    with pytest.raises(DatabaseUnavailable, match=r"its role lacks a right \(42501\)"):
        database.write(lambda connection: connection.exec_driver_sql("DELETE FROM receipts"))
