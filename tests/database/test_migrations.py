"""Migrations: up from nothing, down and up again on data, and at their end what `rows.py` says."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text

from app.database.connections.database import Database
from app.database.schema import partial_indexes  # noqa: F401 - adds them to the metadata
from app.database.schema.migrations import downgrade, migrate
from app.database.schema.revisions import MIGRATIONS, check_revision, found_revision, known_revision
from app.database.schema.rows import metadata
from app.database.warehouses import Layout
from app.errors import DatabaseBehind, DatabaseUnavailable
from tests.contract.database.every_call import fill
from tests.contract.database.races import run_together
from tests.contract.database.stores import Stores
from tests.e2e.patience import wait_until
from tests.servers.postgres import PostgresServer

MIGRATION_LOCK = 0x1CE703E2
"""As in `migrations/env.py`."""
STRUCTURE = {
    "sqlite": ["SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"],
    "postgresql": [
        """
        SELECT table_name, column_name, data_type, is_nullable, column_default, collation_name
        FROM information_schema.columns WHERE table_schema = 'public'
        """,
        "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
        """
        SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid)
        FROM pg_constraint WHERE connamespace = 'public'::regnamespace
        """,
    ],
}


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def urls(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    """The URLs of two empty databases."""
    if request.param == "sqlite":
        return [f"sqlite:///{tmp_path / name}.db" for name in ("one", "two")]
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return [server.url(server.create_database()) for _ in range(2)]


@pytest.fixture
def database(urls: list[str]) -> Iterator[Database]:
    opened = Database.open(urls[0])
    yield opened
    opened.close()


def revisions() -> list[str]:
    """Return all revisions, oldest first."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("path_separator", "os")
    return [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()][::-1]


def structure(database: Database) -> set[tuple[Any, ...]]:
    """Return all tables, columns, indexes and constraints, in the database's own words."""
    found = {row for question in STRUCTURE[database.dialect_name] for row in database.fetch(question, ())}
    return {
        tuple(sorted_words(each) if isinstance(each, str) else each for each in row)
        for row in found
        if "alembic_version" not in row
    }


def sorted_words(sql: str) -> str:
    """Return the same for clauses in any order: SQLite keeps the CREATE TABLE as it was written."""
    return " ".join(sorted(sql.replace(",", " ").replace(")", " ) ").split()))


def test_head_is_what_the_rows_say(database: Database, urls: list[str]) -> None:
    migrate(database)
    made_from_rows = Database.open(urls[1])
    made_from_rows.write(metadata.create_all)

    differences = database.read(
        lambda connection: compare_metadata(MigrationContext.configure(connection), metadata)
    )
    assert differences == []
    assert structure(database) == structure(made_from_rows)
    made_from_rows.close()


def test_each_revision_goes_down_and_up_again_with_rows_in_place(database: Database) -> None:
    migrate(database)
    check_revision(database)
    fill(Stores.on(database))

    for revision in revisions()[::-1]:
        before = structure(database)
        downgrade(database, f"{revision}-1" if revision != revisions()[0] else "base")
        migrate(database, revision)
        assert structure(database) == before
        assert found_revision(database) == revision
        downgrade(database, f"{revision}-1" if revision != revisions()[0] else "base")

    assert database.read(lambda connection: inspect(connection).get_table_names()) == ["alembic_version"]
    migrate(database)
    fill(Stores.on(database))


def test_going_down_does_not_forget_the_layout_of_a_warehouse(database: Database) -> None:
    migrate(database)
    warehouses = Stores.on(database).warehouses
    warehouses.create("lake", "file:///lake", layout=Layout.HADOOP, created_ms=1)

    with pytest.raises(DatabaseBehind, match="drop its warehouses first, their files stay: lake"):
        downgrade(database, "0010")
    assert found_revision(database) == known_revision()

    warehouses.drop("lake")
    downgrade(database, "0010")
    migrate(database)


def test_places_in_hdfs_and_azure_get_the_names_that_are_asked_for(database: Database) -> None:
    migrate(database, "0013")
    places = [
        "abfs://c@acc.dfs.core.windows.net/t/",
        "hdfs://nn:8020/t/",
        "hdfs:///t/",
        "hdfs://nn/u/",
        "s3://b/t/",
    ]

    def insert(connection: Connection) -> None:
        for place in places:
            at = {"place": place}
            connection.execute(text("INSERT INTO table_places (pointer_id, place) VALUES (7, :place)"), at)
            connection.execute(
                text("INSERT INTO foreign_places (pointer_id, place, noted) VALUES (7, :place, 5)"), at
            )

    database.write(insert)
    migrate(database)

    for table in ("table_places", "foreign_places"):
        found = {place for (place,) in database.fetch(f"SELECT place FROM {table} WHERE pointer_id = 7", ())}
        assert found == {*places, "abfs://c@acc/t/", "hdfs:///u/"}
    downgrade(database, "0013")
    migrate(database)


def test_known_revision_is_the_one_that_alembic_ends_at() -> None:
    assert known_revision() == revisions()[-1]


def test_migrating_again_changes_nothing(database: Database) -> None:
    migrate(database)
    fill(Stores.on(database))
    before = Stores.on(database).there("a.t")

    migrate(database)

    assert Stores.on(database).there("a.t") == before
    assert found_revision(database) == known_revision()


def test_servers_that_start_together_migrate_once(urls: list[str]) -> None:
    servers = [Database.open(urls[0]) for _ in range(4)]

    outcomes = run_together([partial(migrate, each) for each in servers])

    assert sorted(map(str, outcomes)) == [known_revision()] * 3 + ["None"], "one of them found nothing"
    check_revision(servers[0])
    for each in servers:
        each.close()


@pytest.mark.postgres
def test_a_migration_takes_longer_than_the_roles_transactions_may(postgres_server: PostgresServer) -> None:
    """Another migration holds it up until its time would be over."""
    url = postgres_server.url(postgres_server.create_database())
    hurried = Database.open(f"{url}&options=-c%20transaction_timeout%3D3s")
    waits = text(
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event = 'advisory' AND now() - xact_start > '4s'"
    )
    with ThreadPoolExecutor(1) as thread, closing(Database.open(url)) as other, closing(hurried):

        def hold(connection: Connection) -> Future[str | None]:
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": MIGRATION_LOCK})
            migrating = thread.submit(migrate, hurried)
            wait_until(
                lambda: migrating.done() or other.read(lambda reading: reading.scalars(waits).one()) == 1
            )
            return migrating

        assert other.write(hold).result() is None
        check_revision(hurried)


def test_a_migration_that_fails_changes_nothing(database: Database) -> None:
    """The third table is in the way: the two before it are not left behind."""
    database.write(lambda connection: connection.execute(text("CREATE TABLE pointers (x INTEGER)")))

    with pytest.raises(DatabaseUnavailable):
        migrate(database)

    assert database.read(lambda connection: inspect(connection).get_table_names()) == ["pointers"]
    assert found_revision(database) is None


def test_an_empty_database_is_behind(database: Database) -> None:
    with pytest.raises(
        DatabaseBehind, match=f"at revision none, expected {known_revision()}; run `icetower migrate`"
    ):
        check_revision(database)


def test_a_newer_database_is_left_alone(database: Database) -> None:
    migrate(database)
    newer = text("UPDATE alembic_version SET version_num = 'newer'")
    database.write(lambda connection: connection.execute(newer))

    with pytest.raises(DatabaseBehind, match="at revision newer, which this build does not know"):
        check_revision(database)
    with pytest.raises(DatabaseBehind, match="Run a newer build of Icetower"):
        migrate(database)
    with pytest.raises(DatabaseBehind, match="Run a newer build of Icetower"):
        downgrade(database, "base")

    assert found_revision(database) == "newer"


def test_an_unknown_revision_is_refused(database: Database) -> None:
    with pytest.raises(DatabaseBehind, match="Cannot migrate to revision nonsense"):
        migrate(database, "nonsense")

    def tables(connection: Connection) -> list[str]:
        return inspect(connection).get_table_names()

    assert database.read(tables) == []


MIGRATED = "no longer at revision .*, which this server works with: it was migrated. Nothing was changed"


def test_server_that_a_migration_came_before_changes_nothing(database: Database, urls: list[str]) -> None:
    migrate(database)
    check_revision(database)
    stores = Stores.on(database)
    stores.warehouses.create("before", "file:///before", created_ms=1)
    before = stores.warehouses.list()

    with closing(Database.open(urls[0])) as newer:
        downgrade(newer, "-1")
        change = text("UPDATE warehouses SET created_ms = 7")
        for write in (
            database.write,
            database.write_without_waiting,
            database.write_together,
            database.write_lightly,
            database.read_locked,
        ):
            with pytest.raises(DatabaseUnavailable, match=MIGRATED):
                write(lambda connection: connection.execute(change))
        with pytest.raises(DatabaseUnavailable, match=MIGRATED):
            database.check_writes()
        migrate(newer)

    assert stores.warehouses.list() == before
    stores.warehouses.create("after", "file:///after", created_ms=1)


WAITING = text("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'alembic_version'::regclass")


@contextmanager
def two_builds(postgres_server: PostgresServer) -> Iterator[tuple[Database, Database]]:
    """Open one database twice: for a build that migrates it, and for a server that is at work."""
    url = postgres_server.url(postgres_server.create_database())
    with closing(Database.open(url)) as newer, closing(Database.open(url)) as server:
        migrate(server)
        check_revision(server)
        yield newer, server


@pytest.mark.postgres
def test_migration_waits_for_changes_that_have_begun(postgres_server: PostgresServer) -> None:
    with ThreadPoolExecutor(1) as thread, two_builds(postgres_server) as (newer, server):

        def change(connection: Connection) -> Future[str | None]:
            migrating = thread.submit(downgrade, newer, "-1")
            wait_until(
                lambda: migrating.done() or server.read(lambda reading: reading.scalars(WAITING).one()) == 1
            )
            assert not migrating.done()
            connection.execute(text("UPDATE warehouses SET created_ms = 7"))
            return migrating

        assert server.write(change).result() == known_revision()


@pytest.mark.postgres
def test_change_that_begins_while_a_migration_runs_waits_and_is_refused(
    postgres_server: PostgresServer,
) -> None:
    with ThreadPoolExecutor(1) as thread, two_builds(postgres_server) as (newer, server):

        def migrate_slowly(connection: Connection) -> Future[None]:
            connection.execute(text("LOCK TABLE alembic_version"))
            connection.execute(text("UPDATE alembic_version SET version_num = 'newer'"))
            changing: Future[None] = thread.submit(server.write, lambda _connection: None)
            wait_until(
                lambda: changing.done() or newer.read(lambda reading: reading.scalars(WAITING).one()) == 1
            )
            assert not changing.done()
            return changing

        with pytest.raises(DatabaseUnavailable, match=MIGRATED):
            newer.write(migrate_slowly).result()
