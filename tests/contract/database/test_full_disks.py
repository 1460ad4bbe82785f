"""A full disk under Postgres, which refuses changes only where a table has to grow."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection

from app.database.connections.database import Database
from app.errors import DatabaseUnavailable
from tests.builders.databases import migrated_database_of
from tests.servers.postgres import PostgresServer

pytestmark = pytest.mark.postgres


def process_id(connection: Connection) -> int:
    return int(connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())


def test_a_full_disk_is_noticed_without_a_change(own_postgres_server: PostgresServer) -> None:
    name = migrated_database_of(own_postgres_server)
    database = Database.open(own_postgres_server.url(name), pool_size=1)
    folder = own_postgres_server.temporary_files()
    database.check_writes()
    writer = database.write(process_id)

    # Where its next files would be, each write finds no space.
    links = [folder / f"pgsql_tmp{writer}.{number}" for number in range(100)]
    for link in links:
        link.symlink_to("/dev/full")
    with pytest.raises(DatabaseUnavailable, match=r"its disk is full \(53100\)"):
        database.check_writes()

    for link in links:
        link.unlink(missing_ok=True)
    database.check_writes()
    assert list(folder.iterdir()) == []
    database.close()


def test_where_no_temporary_files_are_allowed_a_disk_is_not_taken_for_full(
    postgres_server: PostgresServer,
) -> None:
    name = migrated_database_of(postgres_server)
    postgres_server.execute(f"ALTER DATABASE {name} SET temp_file_limit = 0")
    database = Database.open(postgres_server.url(name), pool_size=1)

    database.check_writes()

    database.close()
    postgres_server.drop_database(name)
