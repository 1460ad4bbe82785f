"""What a database cannot do becomes an error of ours, and nothing else ever leaves the room."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text

from app.database.connections.database import Database
from app.database.warehouses import Warehouse
from app.errors import DatabaseBehind, DatabaseUnavailable
from tests.contract.database.every_call import EVERY_CALL, LOCKED_READS, READS, WRITES, error_of, fill
from tests.contract.database.stores import Stores
from tests.servers.postgres import PostgresServer

SOME_WAREHOUSE = Warehouse(1, "main", "file:///lake", {}, {}, {})
UNREACHABLE = ["sqlite:////missing/directory/x.db", "postgresql://u@/x?host=/missing/directory"]

Call = Callable[[Stores], Any]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def empty_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database that nobody has migrated."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'empty.db'}"
    else:
        server: PostgresServer = request.getfixturevalue("postgres_server")
        url = server.url(server.create_database())
    database = Database.open(url)
    yield database
    database.close()


@pytest.fixture
def crowded(stores: Stores, database_url: str) -> Iterator[Stores]:
    """The stores, filled, on one connection for reads and one for writes, for which nobody waits long."""
    fill(stores)
    database = Database.open(database_url, pool_size=1, pool_timeout_s=0.02)
    yield Stores.of(database, stores.warehouse)
    database.close()


@pytest.mark.parametrize("url", UNREACHABLE)
@pytest.mark.parametrize("call", EVERY_CALL.values(), ids=EVERY_CALL)
def test_each_call_says_that_the_database_does_not_answer(url: str, call: Call) -> None:
    database = Database.open(url)

    with pytest.raises(DatabaseUnavailable) as refusal:
        call(Stores.of(database, SOME_WAREHOUSE))

    assert refusal.value.__cause__ is not None
    assert "missing" not in str(refusal.value), "where the database is, is the server's business"
    database.close()


def test_each_call_says_that_the_tables_are_missing(empty_database: Database) -> None:
    calls = {which: call for which, call in EVERY_CALL.items() if which != "check writes"}

    said = {which: error_of(call, Stores.of(empty_database, SOME_WAREHOUSE)) for which, call in calls.items()}

    assert {which: type(error) for which, error in said.items()} == dict.fromkeys(calls, DatabaseBehind)
    assert all("icetower migrate" in str(error) for error in said.values())


def test_each_call_works_when_nothing_is_wrong(stores: Stores) -> None:
    """So the tests around this one fail for the reason that they name."""
    fill(stores)

    assert {which: error_of(call, stores) for which, call in EVERY_CALL.items()} == dict.fromkeys(EVERY_CALL)


def test_each_transaction_waits_only_so_long_for_a_connection(crowded: Stores) -> None:
    calls = LOCKED_READS | WRITES
    has_begun, may_end = threading.Event(), threading.Event()

    def occupy(_: Connection) -> None:
        has_begun.set()
        may_end.wait()

    with ThreadPoolExecutor(1) as thread:
        occupied = thread.submit(crowded.database.write, occupy)
        has_begun.wait()
        said = {which: str(error_of(call, crowded)) for which, call in calls.items()}
        may_end.set()
        occupied.result()

    assert {which for which, words in said.items() if "does not keep up" in words} == set(calls)
    assert {which: error_of(call, crowded) for which, call in calls.items()} == dict.fromkeys(calls)


def test_each_read_waits_only_so_long_for_a_connection(crowded: Stores) -> None:
    said = crowded.database.read(
        lambda _: {which: str(error_of(call, crowded)) for which, call in READS.items()}
    )

    assert {which for which, words in said.items() if "does not keep up" in words} == set(READS)
    assert {which: error_of(call, crowded) for which, call in READS.items()} == dict.fromkeys(READS)


def test_what_a_transaction_raises_undoes_it(stores: Stores) -> None:
    fill(stores)

    def change_and_stop(connection: Connection) -> None:
        connection.execute(text("UPDATE pointers SET metadata_location = 'wrong'"))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stores.database.write(change_and_stop)

    assert stores.there("a.t").metadata_location == "a.t/0.json"
    stores.advance(stores.there("a.t"), "1.json")


def test_connections_for_reads_cannot_write(stores: Stores) -> None:
    fill(stores)
    update = text("UPDATE pointers SET metadata_location = 'wrong'")

    with pytest.raises(DatabaseUnavailable, match=r"it only reads|the file is read-only"):
        stores.database.read(lambda connection: connection.execute(update))

    assert stores.there("a.t").metadata_location == "a.t/0.json"


def test_a_connection_that_is_in_use_at_the_end_is_closed_too(database: Database) -> None:
    """An open one would fail the test: warnings are errors."""
    database.read(lambda _: database.close())
